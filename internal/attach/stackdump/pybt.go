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
	Hints: []string{"(most recent call first)", ", for file ", " file '", "#", "Thread "},
	Claim: claimPyBT,
	Read:  readPyBT,
}

var (
	pyBTHead  = pattern.New(`^\s*(?:\(gdb\) )?(?:T?r?aceback|[a-z]{0,7}) ?\(most recent call first\):$`)
	pyBTNote  = pattern.New(`^\s+(?:Waiting for |Garbage-collecting|<built-in method |\(frame information optimized out\))|^\(?[Uu]nable to (?:locate|read) python frame`)
	pyBTFrame = pattern.New(`^\s+File "(.*)", line (\d+), in (\S+)`)
	// py-bt-full, and py-bt of its first versions, number the frames of C in which Python's are.
	pyBTFull  = pattern.New(`^\s*#\d+ (?:Frame 0x[0-9a-f]+, for file (.*), line (\d+), in (\S+) \(|file '(.*)', in '(\S+)'$)`)
	pyBTInner = pattern.New(`^\s*#\d+ ((?:Waiting for |Garbage-collecting|<built-in method ).*)`)
	pyTakes   = pattern.New(`(?i)^(?:async )?with .*(?:lock|mutex|sem|cond)\w*(?:\(\))?(?: as \w+)?:$|\.acquire\(`)
)

func claimPyBT(lines []paste.Line) int {
	first := lines[0].Text
	if isHeader(first) && len(lines) > 1 {
		first = lines[1].Text // of thread apply all py-bt
	}
	if _, ok := pyBTFrameOf(first); !ok && !pyBTHead.MatchString(first) && !pyBTInner.MatchString(first) {
		return 0
	}
	frames, source := 0, false
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		_, ok := pyBTFrameOf(text)
		switch {
		case ok:
			frames++
		case source && strings.HasPrefix(text, "    "): // the line of source of the frame above it
		case pyBTHead.MatchString(text), pyBTNote.MatchString(text), pyBTInner.MatchString(text),
			isHeader(text):
		default:
			return false
		}
		source = ok
		return true
	})
	return attach.ClaimIf(frames > 0, n)
}

// pyBTFrameOf is the Python frame in a line.
func pyBTFrameOf(text string) (f frame, ok bool) {
	if m := pyBTFrame.FindStringSubmatch(text); m != nil {
		return frame{fn: m[3], file: tail(m[1]), path: m[1], args: m[2]}, true
	}
	if m := pyBTFull.FindStringSubmatch(text); m != nil {
		path := m[1] + m[4]
		return frame{fn: m[3] + m[5], file: tail(path), path: path, args: m[2]}, true
	}
	return f, false
}

// pyBTThreads are the threads of thread apply all py-bt that are in Python code.
func pyBTThreads(lines []paste.Line) *dump {
	d := &dump{tool: "gdb py-bt", interpreted: true, whole: "gdb -p PID -batch -ex 'thread apply all py-bt'"}
	var t *thread
	for _, l := range lines {
		if m := headerLine.FindStringSubmatch(l.Text); m != nil && isHeader(l.Text) {
			t = &thread{id: atoi(m[3]), name: m[4], n: 1}
			d.threads = append(d.threads, t)
		} else if f, ok := pyBTFrameOf(l.Text); ok && t != nil && len(t.frames) < 400 {
			t.frames = append(t.frames, f)
		}
	}
	all := len(d.threads)
	d.dropEmpty()
	d.bare = all - len(d.threads)
	for _, t := range d.threads {
		t.placePython()
	}
	return d
}

func readPyBT(p *attach.Part) attach.Reading {
	if d := pyBTThreads(p.Lines); len(d.threads) > 1 {
		return d.readPython()
	}
	r := attach.Reading{State: attach.CannotTell, Glance: true}
	frames, place, source, waits := 0, "", "", ""
	for i, l := range p.Lines {
		if f, ok := pyBTFrameOf(l.Text); ok {
			if frames++; frames == 1 {
				place = f.place()
				if i+1 < len(p.Lines) && strings.HasPrefix(p.Lines[i+1].Text, "    ") {
					source = strings.TrimSpace(p.Lines[i+1].Text)
				}
			}
			continue
		}
		s := strings.TrimSpace(l.Text)
		if m := pyBTInner.FindStringSubmatch(l.Text); m != nil {
			s = m[1]
		}
		if frames == 0 && strings.HasPrefix(s, "Waiting for ") {
			waits = s
		} else if frames == 0 && strings.HasPrefix(s, "<built-in method acquire of ") {
			waits = "" // for that lock
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
