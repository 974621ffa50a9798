package ledger

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/ledger/thread"
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
			t.Cut = true
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
	lane.Spans = thread.Spans(lane.Spans, t.hi-t.lo)
	return lane
}

// state is a segment of a goroutine as a span.
func (t *teller) state(s *timeline.Segment, lo, hi int64) account.Span {
	tl := t.p.tl
	x := account.Span{Begin: tl.Abs(lo), End: tl.Abs(hi), State: account.Leaf(stateLeaf(s).String())}
	switch s.State() {
	case timeline.Running, timeline.Syscall:
		if m := s.Thread(); m != 0 {
			t.own[m] = true
			host := t.host(m)
			t.hosts[host] += hi - lo
			x.On = t.Name(fmt.Sprintf("thread %d", cmp.Or(host, m)))
		}
		if s.State() == timeline.Syscall {
			x.Stack = t.stack(exectrace.StackID(s.Stack))
		}
	case timeline.Runnable:
		x.Stack = t.stack(exectrace.StackID(s.Stack)) // where its waker stood
		if s.Why() == timeline.WhyNewborn && s.EnderKind() == timeline.EnderGoroutine {
			t.by(&x, s.Ender)
		}
		if why := whyRunnable[s.Why()]; why != "" {
			x.Detail = t.Name(why)
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
		x.Detail = t.Name(tl.Func(tl.Get(exectrace.StackID(s.Stack)).Site))
		switch s.EnderKind() {
		case timeline.EnderGoroutine:
			t.by(&x, s.Ender)
		case timeline.EnderP, timeline.EnderNobody:
			x.By = t.Name("the runtime: network or timer")
		}
	}
	return x
}

// host is a thread's number in the kernel's records, 0 where they do not know it.
func (t *teller) host(m uint32) uint32 {
	if t.p.j == nil || t.p.j.whole {
		return 0
	}
	return t.p.j.host(m)
}

var whyRunnable = map[timeline.Why]string{
	timeline.WhyWoken: "woken", timeline.WhyNewborn: "just made",
	timeline.WhyPreempted: "preempted", timeline.WhyYielded: "yielded", timeline.WhySyscall: "back from a system call",
}

// by writes down which goroutine ended a wait.
func (t *teller) by(x *account.Span, ident uint32) {
	id := t.p.tl.Identity(ident)
	x.By = t.Name(fmt.Sprintf("goroutine %d %s", id.GoID, t.p.tl.Func(id.Entry)))
	x.ByKind, x.ByID = account.LaneGoroutine, int64(id.GoID)
}

// threads adds the lanes of the threads that were met, and of the CPUs at which they ran or were
// queued, by the kernel's records.
func (t *teller) threads(s *account.Story) {
	j := t.p.j
	if j == nil || j.whole {
		return
	}
	delete(t.hosts, 0)
	s.Lanes = append(s.Lanes, t.Lanes(t.hosts, j.base+t.lo, j.base+t.hi)...)
}
