package profiler

import (
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// mostKey bounds the lines of a key that is a stack.
const mostKey = 260

// inKey counts the lines of a key that is a stack, up to this one: "@usecs[", functions, "]:". 0:
// this line is of none.
func inKey(text string, before int) int {
	switch {
	case before == 0 && mapOpen.MatchString(text), before > 0 && !stackEnd.MatchString(text) &&
		mapFrame.MatchString(text):
		return before + 1
	}
	return 0
}

// stackKey is a map's name, and of the stack that is its key the innermost function and the one
// that says best who asked.
type stackKey struct {
	label, first, last string
	behind             bool
}

func (k *stackKey) add(text string) {
	name, _, _ := strings.Cut(text, "+")
	switch {
	case kernelsStart[name]:
		k.behind = true
	case entries[name]:
	case k.first == "":
		k.first = name
	default:
		k.last = name
	}
}

func (k *stackKey) says() string {
	if k.last == "" {
		return k.label + " of " + k.first
	}
	return k.label + " of " + k.first + " in " + k.last
}

// kernelsStart are functions in which threads of the kernel start, and those in which they work for
// whoever asked before.
var kernelsStart = words("kthread worker_thread process_one_work ret_from_fork ret_from_fork_asm kernel_thread_helper")

// stackEnd closes a key that is a stack, above the rows of its histogram.
var stackEnd = pattern.New(`^(?:,\s*.*)?\]:$`)
