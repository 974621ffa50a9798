package stackdump

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// faultHandler reads what Python's faulthandler prints of all threads.
var faultHandler = &attach.Kind{
	Name:  "Python faulthandler",
	Hints: []string{"Thread 0x", "Current thread 0x", "Fatal Python error", "Windows fatal exception", "Timeout (", "  File \""},
	Claim: claimFault,
	Read: func(p *attach.Part) attach.Reading {
		d := parsePython(p.Lines)
		d.tool, d.whole = "Python faulthandler", "py-spy dump --pid PID"
		r := d.readPython()
		for _, l := range p.Lines {
			if m := pyFatal.FindStringSubmatch(l.Text); m != nil {
				pyEnded(&r, m[1])
			}
			if m := pyTimer.FindStringSubmatch(l.Text); m != nil {
				r.Figures = append([]string{"a timer printed it, set to " + m[1] +
					": what it watched was not done by then"}, r.Figures...)
			}
		}
		return r
	},
}

// traceback reads a Python traceback: an error, and no dump of a slow process.
var traceback = &attach.Kind{
	Name:    "Python traceback",
	Hints:   []string{"Traceback (most recent call last)"},
	Refused: "A traceback tells where an error came from, and nothing about time. For a slow process: py-spy dump --pid PID.",
	Claim: func(lines []paste.Line) int {
		if !strings.HasPrefix(lines[0].Text, "Traceback (most recent call last)") {
			return 0
		}
		n := 1
		for n < len(lines) && lines[n].Command == "" && strings.HasPrefix(lines[n].Text, " ") {
			n++
		}
		if n == 1 {
			return 0
		}
		if n < len(lines) && pyError.MatchString(lines[n].Text) {
			n++
		}
		return n
	},
}

var (
	pyHeader = pattern.New(`^(Current thread|Thread) 0x([0-9a-f]+)(?: \[(.*)\])? ?\((most recent call first|no Python frame|Python frame)`)
	pyFatal  = pattern.New(`^(?:Fatal Python error|Windows fatal exception): (.+)$`)
	// pyOfC is what Python 3.14 adds: the frames of C.
	pyOfC   = pattern.New(`^Current thread's C stack trace|^ {2}Binary file ".*", at |^ {2}<cannot get C stack|^ {2}<truncated rest`)
	pyTimer = pattern.New(`^Timeout \((\d+:\d\d:\d\d(?:\.\d+)?)\)!`)
	pyFrame = pattern.New(`^ {2,}File "(.*)", line (\d+) in (\S+)`)
	pyError = pattern.New(`^[\w.]+(Error|Exception|Exit|Interrupt|Warning)\b`)
)

// pyEnded says that the stacks are those of a program's end. One that is aborted may have hung:
// people do so to see where.
func pyEnded(r *attach.Reading, by string) {
	r.State = attach.CannotTell
	r.Figures = append([]string{"the program ended with: " + cutName(by)}, r.Figures...)
	if strings.HasPrefix(by, "Aborted") {
		r.Not = "Why it was ended is not in it: by itself, or by somebody who saw it hang."
		return
	}
	r.Signs, r.Next = nil, nil
	r.Means = "The program failed: this is the stack of its end, and not of a slow program."
	r.Not = "Whether anything was slow before the end is not in it."
}

func claimFault(lines []paste.Line) int {
	if !pyHeader.MatchString(lines[0].Text) && !pyFrame.MatchString(lines[0].Text) &&
		!pyFatal.MatchString(lines[0].Text) &&
		!strings.HasPrefix(lines[0].Text, "Timeout (") {
		return 0
	}
	return claimSure(lines, pyHeader.MatchString, func(text string) bool {
		return pyFrame.MatchString(text) || pyFatal.MatchString(text) || pyOfC.MatchString(text) ||
			strings.TrimSpace(text) == "..." || strings.HasPrefix(text, "  <no Python frame>") ||
			strings.HasPrefix(text, "Timeout (") || strings.HasPrefix(text, "Python runtime state") ||
			strings.HasPrefix(text, "Extension modules:")
	})
}
