package sched

import (
	"github.com/whystall/whystall/exectrace"
)

// Alignment says how well a Go trace and the kernel's records fit: whoever changes a goroutine's state runs on a CPU.
type Alignment struct {
	Transitions int64 // that were checked
	OffCPU      int64 // of them by a thread that was not on a CPU then
	Dropped     int64 // not checked: repeated states, pile-ups at a generation's begin
	Unknown     int64 // not checked: the thread is not known, or its records are missing. Before and after the recording there is nothing to check
	MinNS       int64 // least time from a thread's switch-in to its first transition; 0 none was seen
}

const (
	// The runtime reads the time of the first events of a generation once for many, so that they are not at their own times.
	pileNS = 2e6
	pile   = 3 // transitions at one instant, at least
	// The clocks were found to differ by up to 372 ns.
	clockNS = 500
	// What is kept for the fair control.
	maxKept = 1 << 18
)

// Aligner checks transitions. Feed it every event of the trace in order.
type Aligner struct {
	k       *Timeline
	sum     Alignment
	at      int64 // of the batch
	batch   []*aligned
	sync    int64 // begin of the generation
	any     bool
	held    []pileUp // whose generation may begin yet
	threads map[exectrace.ThreadID]*aligned
	n       int // transitions kept
}

// aligned is a thread as the trace names it.
type aligned struct {
	tid   uint32
	th    *thread // nil without records
	seg   int     // where the last transition was
	first int64   // begin of the stretch on a CPU whose first transition was seen
	kept  []int64 // times of transitions
}

type pileUp struct {
	at int64
	n  int64
	Alignment
}

// Aligner makes a checker of a trace with the same clock.
func (k *Timeline) Aligner() *Aligner {
	return &Aligner{k: k, threads: map[exectrace.ThreadID]*aligned{}}
}

// Event takes the trace's next event.
func (a *Aligner) Event(ev *exectrace.Event) {
	switch ev.Kind {
	case exectrace.KindSync:
		a.flush()
		a.sync, a.any = int64(ev.Time), true
		for _, h := range a.held {
			a.settle(h, a.sync-h.at <= pileNS)
		}
		a.held = a.held[:0]
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

// flush checks the transitions of one instant.
func (a *Aligner) flush() {
	if len(a.batch) == 0 {
		return
	}
	h := pileUp{at: a.at, n: int64(len(a.batch))}
	for _, x := range a.batch {
		a.check(x, a.at, &h.Alignment)
	}
	a.batch = a.batch[:0]
	for len(a.held) > 0 && a.at-a.held[0].at > pileNS {
		a.settle(a.held[0], false)
		a.held = a.held[1:]
	}
	switch {
	case h.n < pile:
		a.settle(h, false)
	case a.any && a.at-a.sync <= pileNS:
		a.settle(h, true)
	default:
		a.held = append(a.held, h)
	}
}

func (a *Aligner) settle(h pileUp, dropped bool) {
	if dropped {
		a.sum.Dropped += h.n
		return
	}
	a.sum.Transitions += h.Transitions
	a.sum.OffCPU += h.OffCPU
	a.sum.Unknown += h.Unknown
}

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

// Result is what was found up to now. Call it at the trace's end.
func (a *Aligner) Result() Alignment {
	a.flush()
	for _, h := range a.held {
		a.settle(h, false)
	}
	a.held = nil
	return a.sum
}
