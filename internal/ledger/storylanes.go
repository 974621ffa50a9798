package ledger

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/ledger/thread"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/timeline"
)

// goroutine is the states of a goroutine during the request, back from where the chain met it last.
func (t *teller) goroutine(a actor) account.Lane {
	tl := t.p.tl
	id := tl.Identity(a.ident)
	lane := account.Lane{Kind: account.LaneGoroutine, ID: int64(id.GoID), Name: tl.Func(id.Entry)}
	at := a.hi
	for s, n := a.seg, 0; s != nil && at > t.lo; n++ {
		if n == maxVisits {
			t.cut = true
			break
		}
		start := max(tl.Start(s), t.lo)
		if start < at {
			lane.Spans = append(lane.Spans, t.state(s, start, at))
			at = start
		}
		if s.State() == timeline.Runnable && s.Why() == timeline.WhyNewborn {
			break
		}
		s = tl.Seg(s.Prev)
	}
	slices.Reverse(lane.Spans)
	lane.Spans = t.spans(lane.Spans)
	return lane
}

// state is a segment of a goroutine as a span.
func (t *teller) state(s *timeline.Segment, lo, hi int64) account.Span {
	tl := t.p.tl
	x := account.Span{Begin: tl.Abs(lo), End: tl.Abs(hi), State: account.Leaf(stateLeaf(s).String())}
	switch s.State() {
	case timeline.Running, timeline.Syscall:
		if m := s.Thread(); m != 0 {
			host := uint32(0)
			if t.p.j != nil && !t.p.j.whole {
				host = t.p.j.host(m)
				t.hosts[host] += hi - lo
			}
			x.On = t.name(fmt.Sprintf("thread %d", cmp.Or(host, m)))
		}
		if s.State() == timeline.Syscall {
			x.Stack = t.stack(exectrace.StackID(s.Stack))
		}
	case timeline.Runnable:
		x.Stack = t.stack(exectrace.StackID(s.Stack)) // where its waker stood
		if s.Why() == timeline.WhyNewborn && s.EnderKind() == timeline.EnderGoroutine {
			x.By = t.who(s.Ender)
		}
		if why := whyRunnable[s.Why()]; why != "" {
			x.Detail = t.name(why)
		}
	case timeline.Waiting:
		x.Stack = t.stack(exectrace.StackID(s.Stack))
		x.State = account.Leaf(waitLeaf(s.Wait()).String())
		switch s.Wait() {
		case timeline.WaitLock:
			x.State = account.LeafLock
		case timeline.WaitMessage, timeline.WaitUnknown:
			x.State = account.LeafOther
		}
		x.Detail = t.name(tl.Func(tl.Get(exectrace.StackID(s.Stack)).Site))
		switch s.EnderKind() {
		case timeline.EnderGoroutine:
			x.By = t.who(s.Ender)
		case timeline.EnderP, timeline.EnderNobody:
			x.By = t.name("the runtime: network or timer")
		}
	}
	return x
}

var whyRunnable = map[timeline.Why]string{
	timeline.WhyWoken: "woken", timeline.WhyNewborn: "just made", timeline.WhyPreempted: "preempted", timeline.WhyYielded: "yielded", timeline.WhySyscall: "back from a system call",
}

// who names a goroutine.
func (t *teller) who(ident uint32) int {
	id := t.p.tl.Identity(ident)
	return t.name(fmt.Sprintf("goroutine %d %s", id.GoID, t.p.tl.Func(id.Entry)))
}

// threads adds the lanes of the threads that were met, and of the CPUs at which they ran or were
// queued, by the kernel's records.
func (t *teller) threads(s *account.Story) {
	j := t.p.j
	if j == nil || j.whole {
		return
	}
	delete(t.hosts, 0)
	tids := byAmount(t.hosts)
	t.cut = t.cut || len(tids) > account.MostLanes
	cpus := map[uint32]int64{}
	for _, tid := range tids[:min(len(tids), account.MostLanes)] {
		lane := account.Lane{Kind: account.LaneThread, ID: int64(tid)}
		if n, ok := j.k.Name(tid, j.base+t.lo); ok {
			lane.Name = sched.PlainComm(n.Comm)
		}
		for _, x := range j.k.Stretches(tid, j.base+t.lo, j.base+t.hi, nil) {
			lane.Spans = append(lane.Spans, t.stretch(tid, &x))
			if x.CPU >= 0 && (x.Doing == sched.OnCPU || x.Doing == sched.Queued || x.Doing == sched.Throttled) {
				cpus[uint32(x.CPU)] += x.End - x.Begin
			}
		}
		lane.Spans = t.spans(lane.Spans)
		s.Lanes = append(s.Lanes, lane)
	}
	for _, cpu := range byAmount(cpus)[:min(len(cpus), account.MostLanes)] {
		lane := account.Lane{Kind: account.LaneCPU, ID: int64(cpu)}
		for _, r := range j.k.Runs(int(cpu), j.base+t.lo, j.base+t.hi, nil) {
			if r.TID != 0 && r.TID != sched.NobodyKnown {
				lane.Spans = append(lane.Spans, t.run(&r))
			}
		}
		lane.Spans = t.spans(lane.Spans)
		s.Lanes = append(s.Lanes, lane)
	}
}

// byAmount lists the keys, the largest amount first.
func byAmount(m map[uint32]int64) (keys []uint32) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b uint32) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
	return keys
}

// stretch is a stretch of a thread as a span.
func (t *teller) stretch(tid uint32, s *sched.Stretch) account.Span {
	j, tl := t.p.j, t.p.tl
	leaf, named := thread.LeafOf(s)
	x := account.Span{Begin: tl.Abs(s.Begin - j.base), End: tl.Abs(s.End - j.base), State: account.Leaf(leaf.String())}
	if s.Doing == sched.Blocked && !named {
		x.State = account.LeafAsleep
	}
	if s.CPU >= 0 && s.Doing != sched.Blocked {
		x.On = t.name(fmt.Sprintf("CPU %d", s.CPU))
	}
	switch s.Doing {
	case sched.Queued:
		if who := j.k.Behind(tid, s.Begin, s.End, nil); len(who) > 0 && who[0].TID != sched.NobodyKnown {
			x.Detail = t.name(tl.Func(timeline.FuncID(j.words.Behind(who[0].TID, s.Begin).Detail)))
		}
	case sched.Blocked:
		x.Detail = t.name(tl.Func(j.slept(s)))
		x.Stack = t.kernelStack(s.Kernel)
		if x.Stack == 0 {
			x.Stack = t.kernelStack(s.User)
		}
		if s.Waker != 0 {
			who := fmt.Sprintf("thread %d", s.Waker)
			if n, ok := j.k.Name(s.Waker, s.End); ok {
				who += " " + sched.PlainComm(n.Comm)
			}
			if s.ByInterrupt {
				who = "an interrupt"
			}
			x.By = t.name(who)
		}
	}
	return x
}

// run is a thread on a CPU as a span.
func (t *teller) run(r *sched.Run) account.Span {
	j, tl := t.p.j, t.p.tl
	x := account.Span{Begin: tl.Abs(r.Begin - j.base), End: tl.Abs(r.End - j.base), State: account.LeafNoCPU}
	n, ok := j.k.Name(r.TID, r.Begin)
	switch {
	case !ok:
		x.Detail = t.name(fmt.Sprintf("thread %d", r.TID))
	case n.Target:
		x.State = account.LeafOnCPU
		x.Detail = t.name(fmt.Sprintf("own thread %d", r.TID))
	default:
		x.Detail = t.name(fmt.Sprintf("%s (pid %d)", sched.PlainComm(n.Comm), n.PID))
	}
	return x
}

// coarse joins neighbours that are short until there are at most so many. What stands for several
// is what the longest of them was. of gives a span's begin, end and number.
func coarse[T any](l []T, most int, wall int64, of func(*T) (begin, end *int64, several *int)) []T {
	for q := max(wall/4000, 1); len(l) > most; q *= 2 {
		out := l[:0]
		var longest int64
		for i := range l {
			s := l[i]
			begin, end, several := of(&s)
			n := len(out)
			if n > 0 {
				lb, le, ls := of(&out[n-1])
				if *end-*begin < q && *begin-*le < q && *begin-*lb < 4*q && (*ls > 0 || *le-*lb < q) {
					first, sum := *lb, max(1, *ls)+max(1, *several)
					last := *end
					if *end-*begin > longest {
						longest = *end - *begin
						out[n-1] = s
						lb, le, ls = of(&out[n-1])
					}
					*lb, *le, *ls = first, last, sum
					continue
				}
			}
			out = append(out, s)
			longest = *end - *begin
		}
		l = out
	}
	return l
}

func (t *teller) spans(l []account.Span) []account.Span {
	return coarse(l, account.MostSpans, t.hi-t.lo, func(s *account.Span) (begin, end *int64, several *int) { return &s.Begin, &s.End, &s.Several })
}
