package stackdump

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// puma reads the stacks that servers of Ruby log when they get a signal: puma at SIGINFO, whose
// workers log a stack as one line, an array; Sidekiq at SIGTTIN, with a logger's words before the
// first line of each stack.
var puma = &attach.Kind{
	Name:  "Ruby threads in a log",
	Hints: []string{"Thread TID-", "Thread: TID-"},
	Claim: func(lines []paste.Line) int {
		if !pumaTask.MatchString(lines[0].Text) {
			return 0
		}
		return claimStacks(lines, pumaTask.MatchString, func(text string) bool {
			return rubyFrame.MatchString(text) || pumaArray.MatchString(text) || ttinFrame.MatchString(text)
		})
	},
	Read: func(p *attach.Part) attach.Reading {
		var lines []paste.Line
		add := func(n int, frame string) {
			lines = append(lines, paste.Line{N: n, Text: "  " + strings.TrimSpace(frame)})
		}
		for _, l := range p.Lines {
			if m := ttinFrame.FindStringSubmatch(l.Text); m != nil {
				add(l.N, m[1])
				continue
			}
			if !pumaArray.MatchString(l.Text) {
				lines = append(lines, l)
				continue
			}
			_, array, _ := strings.Cut(l.Text, `["`)
			for _, frame := range strings.Split(array, `", "`) {
				add(l.N, strings.TrimSuffix(frame, `"]`))
			}
		}
		d := parseStacks(lines, "Ruby threads in a log", pumaTask, rubyFrame)
		for _, t := range d.threads {
			if t.from = -1; dumpers.find(t.frames[:1], anything) < 0 { // else it writes the dump
				t.placeRuby()
			}
		}
		r := d.read()
		r.Not = "Ruby's frames do not show whether a thread waits for the GVL: only native stacks do."
		return r
	},
}

var (
	// "[811] Thread: TID-46k puma srv tp 001" and
	// "2026-03-02T18:13:49.766Z 1 TID-3y WARN: Thread TID-t8w"
	pumaTask  = pattern.New(`^(?:\[\d+\] |.{0,120}\bWARN: )?Thread:? TID-([0-9a-z]+)(?: (.*))?$`)
	pumaArray = pattern.New("^(?:\\[\\d+\\] )?\\[\"\\s*\\S+:\\d+:in [`']")
	ttinFrame = pattern.New("^(?:.{0,120}\\bWARN: )?(/\\S+:\\d+:in [`'].+')$")
)
