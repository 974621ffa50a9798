package stackdump

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// pyBT reads what gdb prints with "py-bt": the Python frames of one thread, the innermost first,
// each with its line of source. The first letters may be cut off where a paste starts.
var pyBT = &attach.Kind{
	Name:  "gdb py-bt",
	Hints: []string{"(most recent call first)"},
	Claim: claimPyBT,
	Read:  readPyBT,
}

var (
	pyBTHead  = pattern.New(`^\s*(?:\(gdb\) )?(?:T?r?aceback|[a-z]{0,7}) ?\(most recent call first\):$`)
	pyBTNote  = pattern.New(`^\s+(?:Waiting for |Garbage-collecting|<built-in method |\(frame information optimized out\))`)
	pyBTFrame = pattern.New(`^\s+File "(.*)", line (\d+), in (\S+)`)
	pyTakes   = pattern.New(`(?i)^(?:async )?with .*(?:lock|mutex|sem|cond)\w*(?:\(\))?(?: as \w+)?:$|\.acquire\(`)
)

func claimPyBT(lines []paste.Line) int {
	if !pyBTHead.MatchString(lines[0].Text) {
		return 0
	}
	n, frames := 1, 0
	for n < len(lines) && lines[n].Command == "" {
		text := lines[n].Text
		switch {
		case pyBTFrame.MatchString(text):
			frames++
		case pyBTNote.MatchString(text):
		case frames > 0 && strings.HasPrefix(text, "    ") &&
			pyBTFrame.MatchString(lines[n-1].Text): // its line of source
		default:
			return attach.ClaimIf(frames > 0, n)
		}
		n++
	}
	return attach.ClaimIf(frames > 0, n)
}

func readPyBT(p *attach.Part) attach.Reading {
	r := attach.Reading{State: attach.CannotTell, Glance: true}
	frames, place, source, waits := 0, "", "", ""
	for i, l := range p.Lines {
		if m := pyBTFrame.FindStringSubmatch(l.Text); m != nil {
			if frames++; frames == 1 {
				place = fmt.Sprintf("%s (%s:%s)", m[3], tail(m[1]), m[2])
				if i+1 < len(p.Lines) && !pyBTFrame.MatchString(p.Lines[i+1].Text) {
					source = strings.TrimSpace(p.Lines[i+1].Text)
				}
			}
		} else if s := strings.TrimSpace(l.Text); frames == 0 && strings.HasPrefix(s, "Waiting for ") {
			waits = s
		}
	}
	r.Title = fmt.Sprintf("a thread's Python frames as gdb's py-bt prints them, %s", attach.Plural(frames, "frame"))
	line := "it is in " + place
	if source != "" {
		line += fmt.Sprintf(": %.100s", source)
	}
	r.Figures = []string{line}
	r.Means = "Where one thread is in its Python code; in which call of C it waits or computes is not in it."
	r.Not = "How long it has been there: a debugger stops the program at one moment."
	if waits != "" {
		r.Not = "That the GIL is what it waits for: gdb says so of other waits for a lock as well, as in one that the line of source takes."
	}
	switch {
	case pyTakes.MatchString(source):
		r.Means = "It waits for a lock of Python's, by the line that it is in: who has it, and whether anybody who is alive does, is not in it."
		r.Signs = []attach.Sign{{Cause: "lock-contention", Grade: attach.Candidate, Proof: []string{line}}}
		r.Next = []attach.Next{{Command: "gdb -p PID -batch -ex 'thread apply all py-bt'",
			Why: "which thread is inside of that lock; none where it was held at a fork"}}
	case waits != "":
		r.Signs = []attach.Sign{{Cause: "interpreter-lock", Grade: attach.Candidate,
			Proof: []string{line + " (gdb: " + waits + ")"}}}
		r.Next = []attach.Next{{Command: "gdb -p PID -batch -ex 'thread apply all py-bt'",
			Why: "which thread computes while this one waits"}}
	default:
		r.Next = []attach.Next{{Command: "gdb -p PID -batch -ex 'thread apply all py-bt'",
			Why: "all threads: who waits for whom"}}
	}
	return r
}
