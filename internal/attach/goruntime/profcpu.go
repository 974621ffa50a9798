package goruntime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// runtimeShare says which of the runtime's services took much of the CPU with all that it calls:
// allocation, maps, copies, stacks that are walked, the search for work. Functions that only start
// others are none.
func (p *profile) runtimeShare(unit func(float64) string) string {
	fn := most(p.cum, func(fn string) bool {
		return strings.HasPrefix(fn, "runtime.") && p.cum[fn] > 1.2*p.flat[fn] &&
			!slices.Contains(gcRoots, fn) && !slices.Contains(runtimeStarts, fn) &&
			!strings.HasPrefix(fn, "runtime.gcDrain") && !strings.Contains(fn, ".func")
	})
	if fn == "" || p.total <= 0 || p.cum[fn] < 0.2*p.total {
		return ""
	}
	text := fmt.Sprintf("most with what it calls, in the runtime: %s, %s%s", fn, unit(p.cum[fn]), p.of(p.cum[fn]))
	if fn == "runtime.findRunnable" || fn == "runtime.findrunnable" {
		text += ", the scheduler's search for goroutines to run"
	}
	if slices.Contains(runtimeLocks, fn) {
		text += ", the runtime's own locks, for which threads spin and sleep"
	}
	return text
}

// runtimeLocks take the locks of the runtime itself, which are no sync.Mutex.
var runtimeLocks = []string{"runtime.lock", "runtime.lock2", "runtime.lockWithRank"}

// locksShare is the share of the CPU below the runtime's own locks.
func (p *profile) locksShare() (share float64) {
	for _, fn := range runtimeLocks {
		share = max(share, ratio(p.cum[fn], p.total))
	}
	return share
}

// runtimeStarts are below or above all others, so that their sums say nothing.
var runtimeStarts = []string{"runtime.goexit", "runtime.main", "runtime.mcall",
	"runtime.systemstack", "runtime.mstart", "runtime.mstart0", "runtime.mstart1",
	"runtime.morestack", "runtime._ExternalCode", "runtime._System", "runtime._GC",
	"runtime.rt0_go", "runtime.park_m", "runtime.schedule"}

// gcRoots are below which all work of GC is done; workers of idle priority give way and are taken
// off.
var gcRoots = []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.bgscavenge"}

// gcInside are functions of marking and sweeping, for outputs that show only the largest. Those
// that allocation calls as well, such as heapBitsSetType, are none.
var gcInside = []string{"runtime.scanobject", "runtime.scanObject", "runtime.scanSpan",
	"runtime.greyobject", "runtime.findObject", "runtime.markBits", "runtime.(*gcWork)",
	"runtime.gcDrain", "runtime.scanblock",
	"runtime.gcmarknewobject", "runtime.tryDeferToSpanScan", "runtime.(*gcBits)",
	"runtime.heapBits.bits", "runtime.heapBits.next", "runtime.heapBits.isPointer",
	"runtime.heapBits.morePointers", "runtime.heapBitsForObject", "runtime.heapBitsSweepSpan",
	"runtime.(*lfstack)", "runtime.gcMarkDone", "runtime.wbBufFlush",
	"runtime.spanClass.sizeclass", "runtime.(*mspan).moveInlineMarks",
	"runtime.typePointers", "runtime.getempty", "runtime.trygetfull", "runtime.spanOf",
	"runtime.(*spanInlineMarkBits)", "internal/runtime/gc/scan."}

// gcShare is GC's share of a CPU profile, at least.
func (p *profile) gcShare() float64 {
	if p.total <= 0 {
		return 0
	}
	var ns float64
	for _, s := range p.stacks {
		if hasAny(s.funcs, gcRoots) && !hasAny(s.funcs, []string{"runtime.gcDrainMarkWorkerIdle"}) {
			ns += s.value
		}
	}
	if len(p.stacks) == 0 {
		for _, fn := range gcRoots {
			ns += p.cum[fn]
		}
		ns -= p.cum["runtime.gcDrainMarkWorkerIdle"]
		var inside float64
		for fn, v := range p.flat {
			if hasPrefix(fn, gcInside) {
				inside += v
			}
		}
		ns = max(ns, inside-p.cum["runtime.gcDrainMarkWorkerIdle"])
	}
	return max(0, min(1, ns/p.total))
}

func hasAny(funcs, roots []string) bool {
	return slices.ContainsFunc(funcs, func(fn string) bool { return slices.Contains(roots, fn) })
}

func hasPrefix(fn string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(fn, p) })
}

// Floors of a CPU profile. Those of finding are what frequent-gc has for a process.
const (
	gcOfUsed  = finding.GCOfUsed
	gcUnclear = finding.GCOfUsedTight
	gcSome    = 0.10 // below which threads that sleep and wake are no matter of GC
	gcLeast   = finding.GCUses

	runtimeLocked = 0.25 // of the CPU used, for locks that take no time in a program that is well
)

func (p *profile) readCPU(r *attach.Reading) {
	unit := func(v float64) string { return finding.Duration(int64(v)) }
	if p.perSample {
		unit = func(v float64) string { return fmt.Sprintf("%.0f samples", v) }
	}
	cpus := ratio(p.total/1e9, p.duration)
	if p.perSample {
		cpus = 0
	}
	switch {
	case p.duration > 0 && p.perSample:
		r.Figures = append(r.Figures, fmt.Sprintf("%s of CPU in %s", unit(p.total), seconds(p.duration)))
	case p.duration > 0:
		r.Figures = append(r.Figures, fmt.Sprintf("%s of CPU in %s: %s on average", unit(p.total),
			seconds(p.duration), busy(cpus)))
	case p.total > 0:
		r.Figures = append(r.Figures, fmt.Sprintf("%s of CPU; over which time is not printed", unit(p.total)))
	case p.least > 0:
		r.Figures = append(r.Figures,
			fmt.Sprintf("%s of CPU in the samples that are shown, the rest of which are cut off", unit(p.least)))
	}
	p.tell(r)
	gc := p.gcShare()
	some := fmt.Sprintf("garbage collection used %s of it, as far as it is shown", percent(gc))
	if n := len(r.Figures); gc > 0 && n > 0 {
		r.Figures[n-1] += "; " + some
	} else if gc > 0 {
		r.Figures = append(r.Figures, some)
	}
	own, _ := p.busiest()
	first := own != "" && p.cum[own] >= p.total/2 && gc < gcUnclear // most is below one function
	rest := attach.Reading{}
	p.figures(&rest, unit)
	if n := len(rest.Figures); first && n > 0 {
		r.Figures, rest.Figures = append(r.Figures, rest.Figures[n-1]), rest.Figures[:n-1]
	}
	unwound := p.unwinding()
	if n := len(r.Figures); unwound >= muchUnwound && n > 0 {
		r.Figures[0] += fmt.Sprintf("; unwinding of stacks used %s of it", percent(unwound))
	}
	soft := p.softFloat()
	if soft >= softLeast {
		r.Figures = append(r.Figures,
			fmt.Sprintf("floating point in software (%s and its like): %s%s in itself",
				most(p.flat, softFloat), unit(soft*p.total), p.of(soft*p.total)))
	} else if text := p.runtimeShare(unit); text != "" {
		rest.Figures = append(rest.Figures, text)
	}
	r.Figures = append(r.Figures, rest.Figures...)
	if gc > 0 {
		r.Facts = append(r.Facts, attach.Fact{Name: FactGCOfUsed, Value: gc})
	}
	r.Means = "it shows what the CPU was used for"
	r.Not = "what requests waited for"
	if p.flat["runtime._ExternalCode"] > 0.3*p.total && p.total > 0 {
		r.Not += "; and _ExternalCode is samples outside of Go's code, no cause"
	}
	switch {
	case gc >= gcOfUsed && cpus >= gcLeast:
		r.State = attach.Ill
		r.Means = fmt.Sprintf("GC takes %s of the CPU that the process uses", percent(gc))
		r.Signs = []attach.Sign{{Cause: "frequent-gc", Grade: attach.Found, Sure: finding.Possible,
			Share: gc, Proof: r.Figures[:2]}}
		r.Next = []attach.Next{{Command: "GODEBUG=gctrace=1 for a minute under load",
			Why: "says how often cycles come, and how much room the heap has"}}
	case gc >= gcUnclear:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("GC takes %s of the CPU used: much, though a program that does little but allocate has that", percent(gc))
		r.Next = []attach.Next{{Command: "GODEBUG=gctrace=1 for a minute under load",
			Why: "says how often cycles come, and how much room the heap has"}}
	case unwound >= muchUnwound:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s of the CPU used is for unwinding stacks, %s", percent(unwound), p.unwinder(unwound))
		r.Next = []attach.Next{{Command: "go tool pprof -peek 'runtime.(gentraceback|callers|.*unwinder.*next)' FILE", Why: "says who asks for stacks"}}
	case soft >= softMuch:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s of the CPU used computes floating point in software: the program was built for a processor without it (GOARM=5, or GOMIPS=softfloat)", percent(soft))
		r.Not = "that this processor has floating point, nor what requests waited for"
		r.Next = []attach.Next{{Command: "go version -m PROGRAM | grep -E 'GOARM|GOMIPS'; grep -m1 -i features /proc/cpuinfo", Why: "what it was built for, and whether the processor has vfp"}}
	case p.wakes() >= futexMuch && gc < gcSome && p.locksShare() < runtimeLocked && p.runtimeShare(unit) == "":
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s of the CPU used puts threads to sleep and wakes them (futex): goroutines come and go in short waits; for what, is not in it", percent(p.wakes()))
		r.Not = "that a lock is contended: Go's scheduler calls futex whenever a P runs out of work or gets some; nor what requests waited for"
		r.Next = []attach.Next{{Command: "go tool pprof -peek 'runtime.futex$' FILE",
			Why: "who calls it: the scheduler, timers, or locks of the runtime"}}
	case p.locksShare() >= runtimeLocked && cpus >= 1:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s of the CPU used is for the runtime's own locks: its threads meet at one of them; which one, its callers say", percent(p.locksShare()))
		r.Not = "that a sync.Mutex is held for long: these locks are the runtime's own; nor what requests waited for"
		r.Next = []attach.Next{{Command: "go tool pprof -peek 'runtime.lock' FILE",
			Why: "the callers of the lock: stacks, timers, the scheduler, the heap"}}
	case p.duration >= leastSpan && cpus < fewCPUs && p.total > 0 && !p.perSample:
		r.Means = fmt.Sprintf("the process used little CPU, %s on average: it waits, or it gets no more; which, and where it waits, is not in a CPU profile", busy(cpus))
	}
}

// fewCPUs is below what the hot spots of a program are no cause of delay: it computes too little.
const fewCPUs = 0.25

// futexMuch is the share of the CPU from which sleeping and waking is much of what a program does.
const futexMuch = 0.25

// wakes is the share of the CPU in the call that puts threads to sleep and wakes them.
func (p *profile) wakes() float64 {
	ns := 0.0
	for _, fn := range []string{"runtime.futex", "runtime.semasleep", "runtime.semawakeup",
		"runtime.pthread_cond_wait", "runtime.pthread_cond_signal"} {
		ns += p.flat[fn]
	}
	return ratio(ns, p.total)
}

// busy writes how many CPUs something keeps busy.
func busy(cpus float64) string {
	if cpus < 0.095 {
		return fmt.Sprintf("%.1g CPUs", cpus)
	}
	return fmt.Sprintf("%.2f CPUs", cpus)
}
