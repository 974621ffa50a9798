package timeline

import "github.com/whystall/whystall/exectrace"

// STW is one stop-the-world, in three parts:
//  1. From Begin to LastStop Ps were being stopped.
//  2. Until Start the world was stopped.
//  3. From there on only the initiator was delayed.
//
// docs/join.md, "4. Anatomy of a stop-the-world", decides who is awaited.
type STW struct {
	Begin, LastStop, Start, End int64 // LastStop 0: nobody was awaited, or it is not known
	Kind                        exectrace.StringID
	GoID                        exectrace.GoID
	Initiator                   FuncID // entry function
	Stack                       exectrace.StackID
	Awaited                     FuncID // entry function of the goroutine on the P that stopped last
	AwaitedStack                exectrace.StackID
	Open                        bool // its end was not seen

	// Threads as the traced process sees them; 0 none or not known.
	Thread        uint32 // of the initiator
	AwaitedThread uint32 // that stopped the last P: a thief's, if the P was retaken
}

func (s STW) span() (begin, end int64) { return s.Begin, s.End }

// until is the end of the time in which the world was being stopped or stopped.
func (s *STW) until(now int64) int64 {
	if s.Start != 0 {
		return s.Start
	}
	return now
}

type stwPhase uint8

const (
	stwNone     stwPhase = iota
	stwAwait             // Ps still run
	stwStopped           // none does
	stwStarting          // another M started a P
)

// maxSTWs bounds the list, the oldest forgotten first. At two stop-the-worlds a collection and ten
// collections a second it holds an hour.
const maxSTWs = 1 << 16

// stops follows the stop-the-worlds. In formats before 1.22 it cannot see who stopped which P,
// unless threads were found for them.
type stops struct {
	procs *procs
	blind bool // nothing is known of threads

	stws  []STW
	first uint32 // number of the first in stws
	near  int    // see before

	// Of the one under way:
	phase    stwPhase
	others   int32 // Ps other than the initiator's that are not stopped
	initM    exectrace.ThreadID
	initP    int32
	initSlot uint32
}

// begin starts s, by the goroutine at slot on P proc and thread m.
func (w *stops) begin(s STW, slot uint32, proc int32, m exectrace.ThreadID) {
	now := s.Begin
	if w.phase != stwNone {
		w.end(now)
	}
	if n := len(w.stws); n >= maxSTWs {
		w.stws = w.stws[:copy(w.stws, w.stws[n/2:])]
		w.first += uint32(n - n/2)
	}
	s.Thread = threadID(m)
	w.stws = append(w.stws, s)
	w.phase, w.initM, w.initP, w.initSlot, w.others = stwAwait, m, proc, slot, 0
	for i := range w.procs.ps {
		if w.procs.ps[i].active && int32(i) != proc {
			w.others++
		}
	}
	if w.others == 0 && !w.blind {
		w.phase = stwStopped
	}
	w.procs.setStopped(true, now)
}

// threadID is a thread's id, 0 for none.
func threadID(m exectrace.ThreadID) uint32 {
	if m < 0 || m >= 1<<32 {
		return 0
	}
	return uint32(m)
}

// procChanged follows the Ps during a stop-the-world: ev started or stopped x. Awaited is the entry
// function of the goroutine that was on x last.
func (w *stops) procChanged(x *proc, ev *exectrace.Event, awaited FuncID, now int64) {
	s := &w.stws[len(w.stws)-1]
	if int32(ev.Proc) == w.initP || w.blind {
		return
	}
	initiates := ev.M == w.initM || ev.M == exectrace.NoThread // who stopped it on behalf of another has no name
	if x.active {
		w.others++
		if w.phase == stwStopped && !initiates {
			w.phase, s.Start = stwStarting, now
			w.procs.setStopped(false, now)
		}
		return
	}
	w.others--
	if w.phase == stwStarting && w.others <= 0 && !w.ranSince(s.Start) {
		// A thread was about to take an idle P as the world was stopped, and gave it up at once:
		// nothing had started.
		w.phase, s.Start = stwAwait, 0
		w.procs.setStopped(true, now)
	}
	if w.phase != stwAwait {
		return
	}
	if !initiates {
		s.LastStop = now
		s.Awaited, s.AwaitedStack = awaited, exectrace.StackID(x.lastStack)
		s.AwaitedThread = threadID(ev.M)
	}
	if w.others <= 0 {
		w.phase = stwStopped
	}
}

// ranSince reports whether a P other than the initiator's has had a goroutine after start.
func (w *stops) ranSince(start int64) bool {
	for i := range w.procs.ps {
		if int32(i) != w.initP && w.procs.ps[i].since > start {
			return true
		}
	}
	return false
}

func (w *stops) end(now int64) {
	if w.phase == stwNone {
		return
	}
	s := &w.stws[len(w.stws)-1]
	s.End = now
	if s.Start == 0 {
		s.Start = now
	}
	w.phase = stwNone
	w.procs.setStopped(false, now)
}

// forget ends what a gap leaves open.
func (w *stops) forget(now int64) {
	if w.phase != stwNone {
		w.stws[len(w.stws)-1].Open = true
		w.end(now)
	}
}

// before counts the stop-the-worlds that began before e. Whoever explains asks for ever earlier
// times, so the search starts from the last answer.
func (w *stops) before(e int64) int {
	l, i := w.stws, min(w.near, len(w.stws))
	for i < len(l) && l[i].Begin < e {
		i++
	}
	for i > 0 && l[i-1].Begin >= e {
		i--
	}
	w.near = i
	return i
}

// stopped is [Timeline.Stopped].
func (w *stops) stopped(s, e, now int64) (begin, end int64, n uint32, ok bool) {
	l := w.stws
	if n := len(l); n == 0 || l[n-1].End != 0 && l[n-1].End <= s {
		return 0, 0, 0, false
	}
	for i := w.before(e) - 1; i >= 0; i-- {
		begin, end = max(s, l[i].Begin), min(e, l[i].until(now))
		if begin < end {
			return begin, end, w.first + uint32(i), true
		}
		if l[i].End != 0 && l[i].End <= s {
			break
		}
	}
	return 0, 0, 0, false
}

// openBefore is [Timeline.STWBefore].
func (w *stops) openBefore(s, e int64) (n uint32, ok bool) {
	i := w.before(e) - 1
	if i < 0 || w.stws[i].End != 0 && w.stws[i].End <= s {
		return 0, false
	}
	return w.first + uint32(i), true
}

// rangeNS is [Timeline.RangeNS].
func (w *stops) rangeNS(s, e, now int64) int64 {
	i := w.before(e)
	if i == 0 || w.stws[i-1].End != 0 && w.stws[i-1].End <= s {
		return 0
	}
	return overlapNS(w.stws[:i], s, e, now)
}
