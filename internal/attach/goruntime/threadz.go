package goruntime

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// threadz is gperftools' list of threads' stacks, addresses alone.
var threadz = &attach.Kind{
	Name:  "threadz",
	Hints: []string{"--- threadz"},
	Claim: func(lines []paste.Line) int {
		if !strings.HasPrefix(strings.TrimSpace(lines[0].Text), "--- threadz ") {
			return 0
		}
		return claimLegacy(lines, func(s string) bool {
			return strings.HasPrefix(s, "--- threadz ") || strings.HasPrefix(s, "--- Thread ") &&
				strings.HasSuffix(s, "stack: ---") || strings.HasPrefix(s, "[same as previous thread]")
		}, func(s string) bool {
			return threadzFrame(s) != "" || strings.HasPrefix(s, "0x") ||
				strings.HasPrefix(s, "@ 0x") || strings.HasPrefix(s, "creator:")
		})
	},
	Read: func(p *attach.Part) attach.Reading {
		n, named := 0, ""
		for _, line := range p.Lines {
			s := strings.TrimSpace(line.Text)
			if strings.HasPrefix(s, "--- Thread ") {
				n++
			}
			if fn := threadzFrame(s); strings.HasPrefix(s, "PC:") && named == "" && !strings.HasPrefix(fn, "0x") {
				named = fn
			}
		}
		if named != "" {
			return attach.Reading{Title: "threadz of a C++ program, " +
				count(n, "thread", "threads"), State: attach.CannotTell, Glance: true,
				Figures: []string{"the first is in " + named},
				Means:   "it says where threads are at one instant; which of them wait for one lock is not in it",
				Next: []attach.Next{{Command: "gdb -p PID -batch -ex 'thread apply all bt'",
					Why: "has the arguments too: which lock, and who holds it"}}}
		}
		return attach.Reading{Title: "threadz of a C++ program, " + count(n, "thread", "threads"),
			State: attach.CannotTell, Glance: true,
			Means: "it has addresses and no names of functions, so what the threads do is not in it",
			Next:  []attach.Next{{Command: "gdb -p PID -batch -ex 'thread apply all bt'", Why: "names the functions"}}}
	},
}

// threadzFrame gives the function of "PC:  0x00bc8f1c: helper(arg *)" and "0x0040be31: main", the
// address where there is no name, and nothing for another line.
func threadzFrame(s string) string {
	s, isPC := strings.CutPrefix(s, "PC:")
	address, name, ok := strings.Cut(strings.TrimSpace(s), ": ")
	if !strings.HasPrefix(address, "0x") || !ok && !isPC {
		return ""
	}
	if ok {
		return strings.TrimSpace(name)
	}
	return address
}
