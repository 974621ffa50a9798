package timeline

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sort"

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
	k       *Kernel
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
	th    *kthread // nil without records
	seg   int      // where the last transition was
	first int64    // begin of the stretch on a CPU whose first transition was seen
	kept  []int64  // times of transitions
}

type pileUp struct {
	at int64
	n  int64
	Alignment
}

// Aligner makes a checker of a trace with the same clock.
func (k *Kernel) Aligner() *Aligner {
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
			if len(a.threads) < maxKthreads {
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
	on := th.segs[i].doing() == ThreadOn
	switch {
	case on:
		if begin := th.segs[i].begin; x.first != begin {
			x.first = begin
			if d := t - begin; d > 0 && (a.sum.MinNS == 0 || d < a.sum.MinNS) {
				a.sum.MinNS = d
			}
		}
	case th.segs[i].doing() == ThreadUnknown:
		sum.Unknown++
		return
	case i > 0 && t-th.segs[i].begin <= clockNS && th.segs[i-1].doing() == ThreadOn:
		on = true
	case i+1 < len(th.segs) && th.segs[i+1].begin-t <= clockNS && th.segs[i+1].doing() == ThreadOn:
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

// Control counts how many stretches of time look as if something had held a thread up.
type Control struct {
	N       int64 // stretches looked at
	Covered int64 // of which it was held up for at least 80 %
	Edge    int64 // and that it ended at most 0.5 ms after it came back to a CPU
}

const edgeNS = 5e5

// HeldUp tells for how much of [lo,hi) thread tid was held up, on no account of its own: throttled, queued, or blocked in
// the kernel's own affairs; whether that is at least 80 %; and whether it last came to a CPU at most 0.5 ms before hi.
func (k *Kernel) HeldUp(tid uint32, lo, hi int64) (ns int64, covered, edge bool) {
	th := k.find(tid)
	if th == nil || lo >= hi {
		return 0, false, false
	}
	came := int64(0)
	k.each(th, clampTime(lo), clampTime(hi), func(s *Stretch) bool {
		switch {
		case s.Doing == ThreadThrottled, s.Doing == ThreadQueued,
			s.Doing == ThreadBlocked && s.Block >= BlockDisk && s.Block <= BlockNUMA:
			ns += s.End - s.Begin
		case s.Doing == ThreadOn && s.Whole.Begin > lo:
			came = s.Whole.Begin
		}
		return true
	})
	covered = ns*5 >= (hi-lo)*4
	return ns, covered, covered && came != 0 && hi-came <= edgeNS
}

func (c *Control) add(covered, edge bool) {
	c.N++
	if covered {
		c.Covered++
	}
	if edge {
		c.Edge++
	}
}

// Fair is the fair control: pairs of transitions of one thread, as far apart as the lengths given, n of each. What share of
// them looks like a pause that something held up is what such a look is worth.
func (a *Aligner) Fair(lengths []int64, n int) (c Control) {
	var threads []*aligned
	for _, x := range a.threads {
		if len(x.kept) > 0 {
			threads = append(threads, x)
		}
	}
	slices.SortFunc(threads, func(x, y *aligned) int { return cmp.Compare(x.tid, y.tid) })
	total := a.n
	if total == 0 {
		return c
	}
	rnd := rand.New(rand.NewPCG(1, uint64(total))) // the same answer each time
	for _, length := range lengths {
		if length <= 0 {
			continue
		}
		for got, tries := 0, 0; got < n && tries < 20*n; tries++ {
			// any transition, each as likely
			at := rnd.IntN(total)
			var x *aligned
			for _, x = range threads {
				if at < len(x.kept) {
					break
				}
				at -= len(x.kept)
			}
			l := x.kept
			j := sort.Search(len(l), func(i int) bool { return l[i] >= l[at]+length })
			if j == len(l) || l[j]-l[at] > length+length/5+20_000 {
				continue
			}
			_, covered, edge := a.k.HeldUp(x.tid, l[at], l[j])
			c.add(covered, edge)
			got++
		}
	}
	return c
}

// RandomWindows is the control by windows of the lengths given that begin where a thread comes to a CPU, n of each.
func (k *Kernel) RandomWindows(lengths []int64, n int) (c Control) {
	if len(k.threads) == 0 {
		return c
	}
	rnd := rand.New(rand.NewPCG(2, uint64(len(k.threads))))
	for _, length := range lengths {
		for got, tries := 0, 0; got < n && tries < 20*n; tries++ {
			th := &k.threads[rnd.IntN(len(k.threads))]
			if len(th.segs) == 0 {
				continue
			}
			s := &th.segs[rnd.IntN(len(th.segs))]
			if length <= 0 || s.doing() != ThreadOn || s.begin+length > k.end {
				continue
			}
			_, covered, edge := k.HeldUp(th.tid, s.begin, s.begin+length)
			c.add(covered, edge)
			got++
		}
	}
	return c
}

// Uninvolved is the control by the threads that a pause had nothing to do with: neither its initiator nor awaited.
func (k *Kernel) Uninvolved(pauses []Pause) (c Control) {
	for i := range pauses {
		p := &pauses[i]
		for j := range k.threads {
			th := &k.threads[j]
			if th.tid == p.Initiator || th.tid == p.Awaited {
				continue
			}
			if at := th.at(p.Begin); at < 0 || th.segs[at].doing() == ThreadUnknown || th.segs[at].doing() == ThreadGone {
				continue
			}
			_, covered, edge := k.HeldUp(th.tid, p.Begin, p.End)
			c.add(covered, edge)
		}
	}
	return c
}
