package goruntime

import (
	"fmt"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// headlessStack is the frames of a profile as text without the line above them that has the count:
// "#	0x40489e6	main.work+0x46	/src/main.go:71". Profiles of memory and of locks have the
// same lines, so it does not say of what they are.
var headlessStack = &attach.Kind{
	Name:  "stack of a profile as text",
	Hints: []string{"+0x"},
	Claim: func(lines []paste.Line) int {
		n := 0
		for n < len(lines) && lines[n].Command == "" {
			f, ok := stackLine(lines[n].Text)
			if !ok || f.fn == "" || n == 0 &&
				(unmarked(lines[0].Text) == "" || unmarked(lines[0].Text)[0] != '#' || f.at == "") {
				break
			}
			n++
		}
		return attach.ClaimIf(n >= 2, n)
	},
	Read: readHeadless,
}

func readHeadless(p *attach.Part) attach.Reading {
	s := &stack{count: 1}
	for _, line := range p.Lines {
		if f, ok := stackLine(line.Text); ok && f.fn != "" && len(s.frames) < 256 {
			s.frames = append(s.frames, f)
		}
	}
	r := attach.Reading{Title: "one stack of a profile as text", State: attach.CannotTell, Glance: true,
		Means: "the line above the stack is cut off: how many goroutines it is of, or of which profile, is not in the text",
		Not:   "that anybody waits there for long"}
	if len(s.frames) == 0 {
		return r
	}
	if madeThread(s.frames[0].fn) {
		r.Figures = []string{"innermost: " + s.frames[0].fn + at(s.frames[0].at)}
		r.Means = "the runtime made a thread here, as a threadcreate profile says; the line above the stack, with how many, is cut off"
		r.Not = "that threads are many, or that any runs"
		r.Next = []attach.Next{{Command: "curl 'http://HOST:PORT/debug/pprof/threadcreate?debug=1'",
			Why: "how many threads were made, and where"}}
		return r
	}
	own := s.own()
	line := "innermost: " + s.frames[0].fn + at(s.frames[0].at)
	if own.fn != s.frames[0].fn {
		line += ", called by " + own.fn + at(own.at)
	}
	r.Figures = []string{line}
	w := classify(s)
	for _, what := range []string{w.pool, w.down} {
		if what != "" {
			r.Means = fmt.Sprintf("if it is of a goroutine profile, who is here waits for %s; the line above the stack, with how many they are, is cut off", what)
		}
	}
	if w.kind == waitLock {
		r.Means = "if it is of a goroutine profile, who is here waits for a lock; the line above the stack, with how many they are, is cut off"
	}
	r.Next = []attach.Next{{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=2'",
		Why: "all stacks, with how long each has waited"}}
	return r
}
