package sched

import (
	"fmt"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// A stop-the-world has four phases:
//
//	Begin      Await                Stopped    Starting              End
//	|--prepare-|--somebody awaited--|--stopped-|--restart delayed----|
//
// For other threads the world is stopped from Begin to Starting. From there to End only the
// initiator is delayed. A ragged barrier has one phase, from Await, which is Begin, to Stopped.
// After that the initiator still needs a while to come back.

// Known says how the thread that was awaited is known.
type Known uint8

const (
	KnownNot    Known = iota // it is not: some thread may have been awaited
	KnownNobody              // no thread had to be
	KnownWake                // it called futex to wake the note, or was in that call as it woke the initiator
	KnownWaking              // it woke the initiator from the note, in a call that is not known
	KnownStop                // it had the last P that stopped, but may have stolen that P: supported, never proven
)

// Hop is an event that proves a part of a pause.
type Hop struct {
	Time int64
	TID  uint32
	What string `prose:"yes"` // "sleeps on sched.stopnote"
	How  string `prose:"yes"` // which record says so: "futex wait"
}

// Pause is one stop-the-world or ragged barrier. Times are CLOCK_MONOTONIC, thread ids the host's.
type Pause struct {
	Begin, Await, Stopped, Starting, End int64

	Kind      string // the runtime's word; "safe-point" of a barrier, "stop-the-world" without a trace
	Barrier   bool
	Initiator uint32 // 0 not known
	Awaited   uint32 // 0 nobody, or not known
	Known     Known
	How       string `prose:"yes"` // Known in words, with where the note's address is from
	NoEnd     bool   // without a trace: its start and end are not known, only what the notes say
	Hops      []Hop
}

// PauseRange is a stop-the-world as the trace has it. Times are CLOCK_MONOTONIC, thread ids the
// host's.
type PauseRange struct {
	Begin, End int64
	Kind       string
	Initiator  uint32
	LastStop   int64  // when the last P stopped; 0 none had to, or not known
	LastThread uint32 // the thread which had it
	Start      int64  // first P that another thread started again; End or 0: not seen
}

// Pause finds the phases of a stop-the-world of the trace, and the thread that was awaited. In this
// order:
//  1. A thread that woke the note on which the initiator slept was awaited: its P was the last to
//     stop.
//  2. Without such a wake, the thread of the last P that stopped by the trace was, unless the
//     kernel's records rule that out.
//  3. If the initiator is known not to have slept on the note, no thread was.
func (k *Timeline) Pause(r PauseRange) Pause {
	p := Pause{Begin: clampTime(r.Begin), End: max(clampTime(r.Begin), clampTime(r.End)),
		Kind: r.Kind, Initiator: r.Initiator}
	p.Await, p.Stopped, p.Starting = p.End, p.End, p.End
	start := p.End
	if r.Start > p.Begin {
		start = min(start, clampTime(r.Start))
	}
	p.hop(p.Begin, r.Initiator, "begins: "+r.Kind, "trace")
	note := k.Notes().Stop
	slept, t1 := int64(0), int64(0)
	if note.Address != 0 && r.Initiator != 0 {
		slept = k.sleptOn(r.Initiator, note.Address, p.Begin, p.End)
		t1 = k.awaited(&p, note, "sched.stopnote", slept)
	}
	switch {
	case p.Known == KnownWake, p.Known == KnownWaking:
	case r.LastStop != 0 && r.LastThread != 0 && r.LastThread != r.Initiator &&
		(note.Address == 0 || slept != 0 || !k.callsKnown):
		// A P that was in a system call may have been retaken: then its thread is the thief's.
		p.Known, p.Awaited, t1 = KnownStop, r.LastThread, min(max(clampTime(r.LastStop), p.Begin), start)
		p.How = "thread of the last P that stopped, by the trace; where that P was retaken it is the thief"
		p.hop(t1, p.Awaited, "stops the last P", "trace")
	case note.Address != 0 && slept == 0 && k.callsKnown && k.known(r.Initiator, p.Begin, p.End):
		p.Known, p.How = KnownNobody, "the initiator did not sleep on sched.stopnote: no P had to be awaited"
		if k.wakesKnown() {
			p.How = "no wake of sched.stopnote: no P had to be awaited"
		}
	default:
		p.How = "not recorded"
	}
	if t1 != 0 {
		p.Stopped = min(max(t1, p.Begin), p.End)
		p.Await = p.Stopped
		switch {
		case slept != 0:
			p.Await = min(slept, p.Stopped)
		case p.Known == KnownStop:
			p.Await = p.Begin
		}
	} else {
		p.Stopped = p.Begin
		p.Await = p.Begin
		if slept != 0 {
			p.Await, p.Stopped = slept, max(slept, start)
		}
	}
	p.restart(k, start)
	return p
}

// restart finds when the initiator let the world go on: its first futex wake after the stop, or the
// first P that another thread starts. The earliest of what is recorded counts.
func (p *Pause) restart(k *Timeline, start int64) {
	p.Starting = max(min(start, p.End), p.Stopped)
	how, who := "trace", uint32(0)
	k.EventsOf(p.Initiator, p.Stopped+1, p.End, func(e *Event) bool {
		if e.Begin <= p.Stopped || e.Begin >= p.Starting {
			return e.Begin < p.Starting
		}
		if e.User != 0 && !inStack(k.Stack(e.User), "runtime.startTheWorld") {
			return true // a lock of the runtime
		}
		p.Starting, how, who = e.Begin, "futex wake", p.Initiator
		return false
	}, kernel.FutexWake)
	for _, w := range k.WakesBy(p.Initiator, p.Stopped+1, p.Starting, nil) {
		if w.Signal || w.Call >= 0 && !k.isFutex(w.Call) || w.User != 0 &&
			!inStack(k.Stack(w.User), "runtime.startTheWorld") {
			continue
		}
		p.Starting, how, who = w.Time, "sched_waking by the initiator", p.Initiator
		break
	}
	if p.Starting < p.End {
		p.hop(p.Starting, who, "the world starts again", how)
	}
	if !p.NoEnd {
		p.hop(p.End, p.Initiator, "ends", "trace")
	}
}

func (p *Pause) hop(t int64, tid uint32, what, how string) {
	p.Hops = append(p.Hops, Hop{t, tid, what, how})
}

// sleptOn is when tid first slept on addr in [lo,hi); 0 if it did not.
func (k *Timeline) sleptOn(tid uint32, addr uint64, lo, hi int64) int64 {
	th := k.find(tid)
	if th == nil {
		return 0
	}
	for i := max(th.at(lo), 0); i < len(th.segs) && th.segs[i].begin < hi; i++ {
		s := &th.segs[i]
		if o := th.away(s); s.begin >= lo && s.doing() == Blocked && o != nil &&
			o.flags&offFutex != 0 && o.arg == addr {
			return s.begin
		}
	}
	return 0
}

// awaited finds the thread that woke the note during the pause, and when; 0 if none is known. slept
// is when the initiator first slept on the note.
func (k *Timeline) awaited(p *Pause, note Note, name string, slept int64) (t1 int64) {
	if slept != 0 {
		p.hop(slept, p.Initiator, "sleeps on "+name, "futex wait")
	}
	for _, e := range k.FutexWakes(note.Address, p.Begin, p.End, nil) {
		if e.TID == p.Initiator {
			continue
		}
		p.Known, p.Awaited = KnownWake, e.TID
		p.How = fmt.Sprintf("futex wake on %s (address: %s)", name, note.How)
		p.hop(e.Begin, e.TID, "wakes "+name, "futex wake")
		return e.Begin
	}
	if slept == 0 {
		return 0
	}
	// The call is not recorded, but the waking of the sleeper may be.
	for _, w := range k.Woken(p.Initiator, slept, p.End, nil) {
		if w.Begin < slept || w.Interrupt || w.Signal || !w.Target {
			continue
		}
		if s := k.At(p.Initiator, w.Begin); s.Futex != note.Address {
			continue
		}
		futex := w.Call >= 0 && k.isFutex(w.Call)
		if w.Call >= 0 && (!futex || w.Arg != note.Address) {
			continue // something else that wakes
		}
		p.wokenBy(w.Time, w.Waker, futex, name, note)
		return w.Time
	}
	return 0
}

// wokenBy notes the thread that woke the initiator from the note.
func (p *Pause) wokenBy(t int64, waker uint32, futex bool, name string, note Note) {
	p.Awaited, p.Known = waker, KnownWaking
	p.How = fmt.Sprintf("who woke the initiator from %s (address: %s)", name, note.How)
	how := "sched_waking"
	if futex {
		p.Known = KnownWake
		p.How = fmt.Sprintf("futex wake on %s (address: %s)", name, note.How)
		how = "sched_waking in the futex call"
	}
	p.hop(t, waker, "wakes the initiator from "+name, how)
}

// known reports whether the state of tid is known in all of [lo,hi).
func (k *Timeline) known(tid uint32, lo, hi int64) bool {
	th := k.find(tid)
	if th == nil {
		return false
	}
	ok := true
	k.each(th, lo, hi, func(s *Stretch) bool {
		ok = s.Doing != Unknown
		return ok
	})
	return ok
}

// wakesKnown reports whether calls to wake are recorded at all: then their absence says something.
func (k *Timeline) wakesKnown() bool {
	k.FutexWakes(0, 0, 0, nil)
	return len(k.wakes.byAddress) > 0
}
