package profiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/attach"
)

// conclude puts in a sentence what follows.
func (t *tally) conclude(r *attach.Reading) {
	if len(r.Signs) > 0 {
		slices.SortStableFunc(r.Signs, func(a, b attach.Sign) int { // a mechanism stands after its cause
			return cmp.Or(cmp.Compare(len(a.BecauseOf), len(b.BecauseOf)), cmp.Compare(b.Share, a.Share))
		})
		if first := r.Signs[0]; first.Grade == attach.Outside {
			r.Means = "The CPU time goes into " + first.Where + "."
		} else {
			r.Means = upper(first.Proof[0]) + "."
		}
		if r.State == attach.Context {
			r.State = attach.CannotTell
		}
		r.Next = append(r.Next, record(t.p.pid, "whose requests lose how much time to it"))
		return
	}
	own := t.share(t.kinds[account.WorkOwn] + t.kinds[account.WorkLibrary] +
		t.kinds[account.WorkInterprets] + t.kinds[account.WorkMap] +
		t.kinds[account.WorkMemmove] + t.kinds[account.WorkInterface] + t.kinds[account.WorkAlloc])
	inKernel := t.share(t.kinds[account.WorkKernel] + t.kinds[account.WorkSyscall])
	ofGo := t.share(t.kinds[account.WorkGoRuntime] + t.kinds[account.WorkGoSched] +
		t.kinds[account.WorkGC] + t.kinds[account.WorkSpin])
	shown := t.idle
	for _, part := range t.kinds {
		shown += part
	}
	switch {
	case r.State == attach.CannotTell && r.Means != "": // compaction by nobody who is known
	case shown < 0.2*t.whole && t.p.through.share > 2*shown/t.whole:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s of the samples are below %s, and %s in the functions that are listed themselves: what is called there was cut off, or has no symbols.", pct(t.p.through.share), t.p.through.name, pct(shown/t.whole))
		r.Next = append(r.Next, ask("perf report --stdio --no-children --sort symbol", 0,
			"the functions by what they take themselves, of the same recording"))
	case shown < 0.2*t.whole:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("Only %s of the samples are in what is here: the rest was filtered or cut off.", pct(shown/t.whole))
	case t.share(t.ofNobody) > 0.2:
		r.State = attach.CannotTell
		r.Means = "It lists functions, and not whether they are the kernel's or a program's."
		r.Next = append(r.Next, ask("perf report --stdio --no-children", 0,
			"the same with the modules, of the same recording"))
	case t.unnamed > 0 && len(t.funcs) == 0 && len(t.comms) > 0 && !t.p.stacks:
		r.State = attach.CannotTell
		r.Figures = []string{"its largest rows: " + t.top(t.comms, 3, 0)}
		if t.idle > 0 {
			r.Figures = append(r.Figures, pct(t.idle/t.whole)+" of it the idle task's, which is not among them")
		}
		if !t.bare {
			r.Means = "Its functions have no symbols: which they are is not in it."
			break
		}
		r.Means = "Its rows name no functions, but what it is sorted by, such as program or module: which functions took the time is not in it."
		r.Next = append(r.Next,
			attach.Next{Command: "perf report --stdio --no-children --sort symbol",
				Why: "the functions, of the same recording"})
	case len(t.p.below) > 0 && t.share(t.unnamed) > 0.5:
		r.State = attach.CannotTell
		r.Means = "The tree was cut off: which functions the time went into is not in it."
		r.Next = append(r.Next, attach.Next{Command: "perf report --stdio --no-children",
			Why: "all of the call graphs, of the same recording"})
	case t.share(t.unnamed) > 0.5:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s of the time has no symbol, so what it was cannot be said.", pct(t.share(t.unnamed)))
		r.Next = append(r.Next, record(t.p.pid, "it finds the symbols while the process lives"))
	case inKernel >= 0.4:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s of %s is the kernel's, in functions that do not say whether it is more than the calls need.", pct(inKernel), t.time())
		r.Next = append(r.Next, ask("perf trace -s -p PID -- sleep 10", t.p.pid,
			"which system calls that is, how many and how long"))
	case ofGo >= 0.35:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s of %s is Go's runtime; functions alone do not say whether its collector, its scheduler or its locks.", pct(ofGo), t.time())
		r.Next = append(r.Next, ask("perf record -e cpu-clock -g -p PID -- sleep 10", t.p.pid,
			"with call graphs, attach perf script: what the runtime does it for"))
	case shown-t.idle < 0.4*t.busy():
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("Of all samples %s are in what is here and not idle; the rest was cut off. No function here is one of a known stall: whether anybody waits for what they do, a profile does not say.", pct((shown-t.idle)/t.whole))
		if below := attach.Largest(t.p.below); len(below) > 1 {
			r.Means = fmt.Sprintf("%s of the samples are in %s and what it calls, of which the largest is %s with %s; the rest was cut off.",
				pct(t.p.below[below[0]]/t.whole), below[0], below[1], pct(t.p.below[below[1]]/t.whole))
		}
		r.Next = append(r.Next, ask("perf report --stdio --no-children --sort symbol", 0,
			"all functions by what they take themselves"))
	case own >= 0.5 && !t.p.stacks && t.share(t.mostOwn()) >= oneOwn:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s of %s is in one function of the program: it computes there, or it spins for a lock or a counter that threads share, which looks the same.", pct(t.share(t.mostOwn())), t.time())
		r.Next = append(r.Next, ask("perf annotate --stdio -s FUNCTION", 0,
			"whether it stands at an atomic instruction or a pause"))
	case own >= 0.5:
		r.Means = fmt.Sprintf("%s of %s is the program's own computing. No mechanism of the runtime or the kernel stands out in what was sampled.", pct(own), t.time())
	default:
		r.Means = "No known mechanism of the runtime or the kernel that makes threads stall stands out."
	}
	if share := t.share(t.jvmGC); share >= 0.2 {
		r.Means += fmt.Sprintf(" Threads of the JVM's collector take %s.", pct(share))
	}
}

// mostOwn is the time in the function of the program itself that has most.
func (t *tally) mostOwn() (most float64) {
	for _, part := range t.names[account.WorkOwn] {
		most = max(most, part)
	}
	return most
}

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
