package ledger

import (
	"math"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/timeline"
)

// goRan finds by samples what had the CPUs of a Go program. The names and times of its threads do
// not show that, as any thread runs any goroutine.
func goRan(k *sched.Timeline, r *account.Kernel) {
	of := map[uint32]string{}
	by := map[string]int64{}
	k.Events(math.MinInt64, math.MaxInt64, func(e *sched.Event) bool {
		name, ok := of[e.User]
		if !ok {
			name = goEntry(k.Stack(e.User))
			of[e.User] = name
		}
		by[name] += int64(min(e.Arg[0], math.MaxInt32))
		r.RanN++
		return true
	}, kernel.Sample)
	r.Ran = account.InsteadByName(by, account.InsteadGoroutine)
}

// goEntry is the function that the goroutine on the CPU started with, by its stack, innermost
// first. For a request of net/http it is the handler, and for the runtime's own work what that work
// is.
func goEntry(frames []kernel.Frame) string {
	n := len(frames)
	for n > 0 && frames[n-1].Inferred {
		n--
	}
	whole := n > 0 && frames[n-1].Func == "runtime.goexit"
	if whole {
		n--
	}
	for i := range n {
		// An assist is garbage collection in a goroutine's own time.
		switch name := frames[i].Func; {
		case name == "runtime.gcAssistAlloc", name == "runtime.bgsweep",
			name == "runtime.bgscavenge", strings.HasPrefix(name, "runtime.gcBgMarkWorker"),
			strings.HasPrefix(name, "runtime.gcDrain"):
			return "garbage collection"
		}
	}
	if whole && n > 1 && timeline.Plain(frames[n-1].Func) != frames[n-1].Func {
		n-- // the compiler's own, around a go statement's arguments
	}
	if n == 0 || frames[n-1].Func == "" {
		return "not known"
	}
	root := frames[n-1].Func
	switch {
	case whole && root == "net/http.(*conn).serve":
		for i := n - 2; i > 0; i-- {
			if strings.HasSuffix(frames[i].Func, ".ServeHTTP") && !strings.HasPrefix(frames[i-1].Func, "net/http.") {
				return frames[i-1].Func + " (net/http)"
			}
		}
	case whole && root == "runtime.main" && n > 1:
		return frames[n-2].Func
	case !whole && strings.HasPrefix(root, "runtime."):
		return "Go's scheduler" // on a thread's own stack: looking for work, parking, sysmon
	}
	return root
}
