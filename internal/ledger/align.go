package ledger

import (
	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/timeline"
)

// alignment checks the two clocks and the records against each other: whoever tells of a goroutine is on a CPU (rules of joining, section 9).
// Left out are states that a generation repeats, and pile-ups: many events with one timestamp near a generation's
// begin, whose time is not their own.
type alignment struct {
	on     map[uint32]onCPU // by thread as the trace has it
	out    Align
	genAt  int64 // when the last generation began
	now    int64 // of the events that are collected
	off, n int64 // of them: off a CPU, all
}

// onCPU is the stretch that a thread was in last.
type onCPU struct {
	begin, end int64
	doing      timeline.Doing
}

const (
	pileUp     = 4   // events of one instant
	pileUpNear = 2e6 // ns from a generation's begin
)

// event takes an event of the trace.
func (a *alignment) event(j *joiner, ev *exectrace.Event) {
	at := int64(ev.Time)
	if ev.Kind == exectrace.KindSync {
		a.genAt = at
		return
	}
	if ev.Kind != exectrace.KindGoroutine || ev.M < 0 || ev.M >= 1<<32 || ev.To == exectrace.NotExist {
		return
	}
	if ev.From == ev.To || ev.From == exectrace.Undetermined {
		a.out.Dropped++
		return
	}
	rel := at - j.base
	if rel < j.begin || rel >= j.end {
		return
	}
	m := uint32(ev.M)
	c, ok := a.on[m]
	if !ok || at < c.begin || at >= c.end {
		if a.on == nil {
			a.on = map[uint32]onCPU{}
		}
		tid := j.host(m)
		if tid == 0 {
			return
		}
		s := j.k.At(tid, at)
		c = onCPU{begin: s.Whole.Begin, end: s.Whole.End, doing: s.Doing}
		if s.Doing == timeline.ThreadOn {
			if d := at - c.begin; d > 0 && c.begin > j.base+j.begin && (a.out.MinNS == 0 || d < a.out.MinNS) {
				a.out.MinNS = d
			}
		}
		a.on[m] = c
	}
	if c.doing == timeline.ThreadUnknown {
		return
	}
	if at != a.now {
		a.flush()
		a.now = at
	}
	a.n++
	if c.doing != timeline.ThreadOn {
		a.off++
	}
}

// flush counts the events of one instant.
func (a *alignment) flush() {
	switch {
	case a.n == 0:
	case a.off > 0 && (a.n >= pileUp || near(a.now, a.genAt)):
		a.out.Dropped += a.n
	default:
		a.out.Transitions += a.n
		a.out.OffCPU += a.off
	}
	a.n, a.off = 0, 0
}

func near(at, gen int64) bool { return at >= gen && at-gen <= pileUpNear }

// sum is what was found.
func (a *alignment) sum() Align {
	a.flush()
	return a.out
}
