package sched

import "github.com/whystall/whystall/exectrace"

// Alignment says how well a Go trace and the kernel's records fit: a thread that changes a
// goroutine's state must be on a CPU. Transitions before and after the kernel's recording are not
// counted at all.
type Alignment struct {
	Transitions int64 // checked transitions
	OffCPU      int64 // checked transitions by a thread that was not on a CPU then
	Dropped     int64 // not checked: repeated states, and piles at the start of a generation
	Unknown     int64 // not checked: the thread is not known, or its records are missing
	MinNS       int64 // least time from a thread's coming to a CPU to its first transition; 0 none was seen
}

const (
	// A pile is at least so many transitions at one instant. At the start of a generation the
	// runtime reads the clock once for many events, which then do not have their own times. Such
	// piles are within pileNS of it.
	pile   = 3
	pileNS = 2e6
	// clockNS is what the clocks may differ by: up to 372 ns were seen.
	clockNS = 500
	// maxKept bounds the transitions kept for the fair control.
	maxKept = 1 << 18
)

// Aligner checks transitions. It takes every event of the trace in order. Transitions of one
// instant are checked together; a pile of them waits until it is known whether a generation starts
// right after it.
type Aligner struct {
	k       *Timeline
	sum     Alignment
	at      int64 // time of the batch
	batch   []*aligned
	sync    int64 // start of the generation
	synced  bool  // there was one
	waiting []pileUp
	threads map[exectrace.ThreadID]*aligned
	n       int // transitions kept
}

// aligned is a thread of the trace.
type aligned struct {
	tid   uint32
	th    *thread // nil if it has no records
	seg   int     // segment of the last transition, where the next mostly is
	first int64   // start of the stay on a CPU whose first transition was seen
	kept  []int64 // times of transitions, for the fair control
}

// pileUp is the transitions of one instant, checked.
type pileUp struct {
	at int64
	n  int64
	Alignment
}

// Aligner makes a checker for a trace with the same clock.
func (k *Timeline) Aligner() *Aligner {
	return &Aligner{k: k, threads: map[exectrace.ThreadID]*aligned{}}
}

// Event takes the trace's next event.
func (a *Aligner) Event(ev *exectrace.Event) {
	switch ev.Kind {
	case exectrace.KindSync:
		a.flush()
		a.sync, a.synced = int64(ev.Time), true
		for _, h := range a.waiting {
			a.settle(h, a.sync-h.at <= pileNS)
		}
		a.waiting = a.waiting[:0]
	case exectrace.KindGoroutine:
		if ev.From == ev.To || ev.Reason == exectrace.ReasonStatus {
			a.sum.Dropped++
			return
		}
		t := int64(ev.Time)
		if t != a.at {
			a.flush()
			a.at = t
		}
		x := a.threads[ev.M]
		if x == nil {
			x = &aligned{}
			if ev.M > 0 && ev.M < 1<<32 {
				x.tid = a.k.FromNS(uint32(ev.M))
				x.th = a.k.find(x.tid)
			}
			if len(a.threads) < maxThreads {
				a.threads[ev.M] = x
			}
		}
		a.batch = append(a.batch, x)
	}
}

// flush checks the transitions of one instant, and settles those of earlier ones that can be.
func (a *Aligner) flush() {
	if len(a.batch) == 0 {
		return
	}
	h := pileUp{at: a.at, n: int64(len(a.batch))}
	for _, x := range a.batch {
		a.check(x, a.at, &h.Alignment)
	}
	a.batch = a.batch[:0]
	for len(a.waiting) > 0 && a.at-a.waiting[0].at > pileNS {
		a.settle(a.waiting[0], false)
		a.waiting = a.waiting[1:]
	}
	switch {
	case h.n < pile:
		a.settle(h, false)
	case a.synced && a.at-a.sync <= pileNS:
		a.settle(h, true)
	default:
		a.waiting = append(a.waiting, h)
	}
}

// settle counts checked transitions, or drops them.
func (a *Aligner) settle(h pileUp, dropped bool) {
	if dropped {
		a.sum.Dropped += h.n
		return
	}
	a.sum.Transitions += h.Transitions
	a.sum.OffCPU += h.OffCPU
	a.sum.Unknown += h.Unknown
}

// check checks one transition. One within clockNS of a stay on a CPU is on it.
func (a *Aligner) check(x *aligned, t int64, sum *Alignment) {
	if t < a.k.begin || t >= a.k.end {
		return // nothing was recorded then
	}
	th := x.th
	if th == nil {
		sum.Unknown++
		return
	}
	i := x.seg
	if i >= len(th.segs) || th.segs[i].begin > t || a.k.segEnd(th, i) <= t {
		i = th.at(t)
	}
	if i < 0 {
		sum.Unknown++
		return
	}
	x.seg = i
	on := th.segs[i].doing() == OnCPU
	switch {
	case on:
		if begin := th.segs[i].begin; x.first != begin {
			x.first = begin
			if d := t - begin; d > 0 && (a.sum.MinNS == 0 || d < a.sum.MinNS) {
				a.sum.MinNS = d
			}
		}
	case th.segs[i].doing() == Unknown:
		sum.Unknown++
		return
	case i > 0 && t-th.segs[i].begin <= clockNS && th.segs[i-1].doing() == OnCPU:
		on = true
	case i+1 < len(th.segs) && th.segs[i+1].begin-t <= clockNS && th.segs[i+1].doing() == OnCPU:
		on = true
	}
	sum.Transitions++
	if !on {
		sum.OffCPU++
	}
	if on && a.n < maxKept {
		a.n++
		x.kept = append(x.kept, t)
	}
}

// Result is what was found. It is called once, at the end of the trace.
func (a *Aligner) Result() Alignment {
	a.flush()
	for _, h := range a.waiting {
		a.settle(h, false)
	}
	a.waiting = nil
	return a.sum
}
