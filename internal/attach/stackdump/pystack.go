package stackdump

import (
	"cmp"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// pyStack reads pystack of a process or of a core: who has the GIL, and the innermost call last.
var pyStack = &attach.Kind{
	Name:  "pystack",
	Hints: []string{"Traceback for thread ", "Core file information:"},
	Claim: claimPyStack,
	Read: func(p *attach.Part) attach.Reading {
		d := parsePython(p.Lines)
		d.tool, d.whole = "pystack", "pystack remote "+d.pidWord()
		r := d.readPython()
		if len(d.threads) == 1 && d.threads[0].gil() && len(r.Signs) == 0 {
			r.Means = "It has the GIL: it computes at this instant, or is in a call that keeps the GIL."
		}
		for _, l := range p.Lines {
			text := strings.TrimSpace(l.Text)
			if strings.HasPrefix(text, "Core file information:") {
				r.Next = nil // that process may be long gone
			}
			if strings.HasPrefix(text, "The core file seems to have been generated on demand") {
				r.Figures = append(r.Figures, "a core that was made on demand: the process did not crash")
			}
			if signal, ok := strings.CutPrefix(text, "The process died due receiving signal "); ok {
				r.Figures = append(r.Figures, "the process died of "+signal)
			}
		}
		return r
	},
}

var (
	stackHead  = pattern.New(`^Traceback for thread (\d+)(?: \((.*?)\))? \[(.*?)\] \(most recent call last\):`)
	stackFrame = pattern.New(`^ {2,}\((Python|C)\) File "(.*)", line (\d+), in (.+?)(?: \(inlined\))?(?: \((?:/.*|\?+)\))?$`)
	stackCore  = pattern.New(`^(?:Core file information:$|state: \S+ zombie: |pid: \d+ ppid: |uid: \d+ gid: |executable: .* arguments: |The core file seems to have been|The process died due )`)
	stackPID   = pattern.New(`^pid: (\d+) ppid: `)
)

func claimPyStack(lines []paste.Line) int {
	heads := 0
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		if stackHead.MatchString(text) {
			heads++
			return true
		}
		return heads == 0 && stackCore.MatchString(text) || heads > 0 && strings.HasPrefix(text, "    ")
	})
	return done(n, heads)
}

// stackHeader takes the head of one of pystack's threads: its name, its TID, and what it has to do
// with the GIL.
func stackHeader(text string) (name, state string, id int, ok bool) {
	m := stackHead.FindStringSubmatch(text)
	if m == nil {
		return "", "", 0, false
	}
	switch {
	case strings.Contains(m[3], "Has the GIL"):
		state = "active+gil"
	case strings.Contains(m[3], "Waiting for the GIL"):
		state = wantsGIL
	}
	return cmp.Or(m[2], "thread "+m[1]), state, atoi(m[1]), true
}

// wantsGIL is the state of a thread that waits for the GIL, where the tool says so.
const wantsGIL = "waits for the GIL"
