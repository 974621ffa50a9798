package stackdump

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// puma reads the stacks that the server puma logs when it gets SIGINFO. Its workers log a stack as
// one line, an array.
var puma = &attach.Kind{
	Name:  "Ruby threads by puma",
	Hints: []string{"Thread: TID-"},
	Claim: func(lines []paste.Line) int {
		if !pumaTask.MatchString(lines[0].Text) {
			return 0
		}
		return claimStacks(lines, pumaTask.MatchString, pumaFrame)
	},
	Read: func(p *attach.Part) attach.Reading {
		var lines []paste.Line
		for _, l := range p.Lines {
			if !pumaArray.MatchString(l.Text) {
				lines = append(lines, l)
				continue
			}
			_, array, _ := strings.Cut(l.Text, `["`)
			for _, frame := range strings.Split(array, `", "`) {
				lines = append(lines, paste.Line{N: l.N, Text: "  " + strings.TrimSpace(strings.TrimSuffix(frame, `"]`))})
			}
		}
		d := parseStacks(lines, "Ruby threads by puma", pumaTask, rubyFrame)
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
	// "[811] Thread: TID-46k puma srv tp 001"
	pumaTask  = pattern.New(`^(?:\[\d+\] )?Thread: TID-([0-9a-z]+)(?: (.*))?$`)
	pumaArray = pattern.New("^(?:\\[\\d+\\] )?\\[\"\\s*\\S+:\\d+:in [`']")
)

// pumaFrame reports whether a line is a frame, or all frames of a thread.
func pumaFrame(text string) bool { return rubyFrame.MatchString(text) || pumaArray.MatchString(text) }
