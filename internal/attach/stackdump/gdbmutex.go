package stackdump

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// gdbMutex reads a mutex of glibc's that gdb printed, alone or within a structure: it names the
// thread that holds it.
var gdbMutex = &attach.Kind{
	Name:  "mutex printed by gdb",
	Hints: []string{"__owner = "},
	Claim: func(lines []paste.Line) int {
		if !printedMutex.MatchString(lines[0].Text) {
			return 0
		}
		depth := 0
		for i, l := range lines[:min(len(lines), 40)] {
			if i > 0 && l.Command != "" {
				return 0
			}
			if depth += strings.Count(l.Text, "{") - strings.Count(l.Text, "}"); depth <= 0 {
				return i + 1
			}
		}
		return 0
	},
	Read: func(p *attach.Part) attach.Reading {
		m := printedMutex.FindStringSubmatch(p.Lines[0].Text)
		word, owner := atoi(m[1]), atoi(m[2])
		it := "it"
		if a := addressOf.FindStringSubmatch(p.Command); a != nil {
			it = "the mutex " + a[1]
		}
		r := attach.Reading{Title: "a mutex that gdb printed", State: attach.CannotTell, Glance: true,
			Not: "Since when it is held, and what its holder does meanwhile, is not in it: the holder's stack says that."}
		switch {
		case owner == 0:
			r.Means = "No thread holds it at this instant."
		case word == 2:
			r.Figures = []string{fmt.Sprintf("thread %d holds %s; its word, 2, is that of a mutex for which others wait, or did", owner, it)}
			r.Means = fmt.Sprintf("Whoever wants it waits for thread %d.", owner)
			r.Signs = []attach.Sign{{Cause: "lock-contention", Grade: attach.Candidate, Proof: r.Figures[:1]}}
		default:
			r.Figures = []string{fmt.Sprintf("thread %d holds %s", owner, it)}
			r.Means = "It is held, and its word does not say that others wait for it."
		}
		r.Next = []attach.Next{{Command: "gdb -p PID -batch -ex 'thread apply all bt'",
			Why: "what its holder does, and who waits for it"}}
		return r
	},
}

// addressOf is a mutex's address in the command that printed it.
var addressOf = pattern.New(`^(?:p|print)(?:/\w)? .*\)\s*(0x[0-9a-f]{4,16})$`)

// "$10 = {m = {lock = {__data = {__lock = 2, __count = 1, __owner = 811, __nusers = 1, ..."
var printedMutex = pattern.New(`^\$\d+ = (?:\(.*\) )?\{.*\b__lock = (\d+), __count = \d+, __owner = (\d+), `)
