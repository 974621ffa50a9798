package thread

import (
	"sort"

	"github.com/whystall/whystall/internal/sched"
)

// The timeline ends a wait at each wake-up. Two wake-ups end no wait in the program's sense:
//
//  1. A signal. Its handler runs, and then the thread waits for the same thing again.
//  2. A time that runs out, if the thread looks once and then waits for the same futex again.
//
// So the next end of the same wait counts, and this repeats.

// signalNS is how long after a signal a thread may resume the wait that the signal interrupted. Its
// handler runs first, and where there is no CPU that takes a while.
const signalNS = 100e6

// resumeNS is how long on its CPU a thread may look, after its time ran out, before it waits for
// the same futex again.
const resumeNS = 1e6

// mostResumed bounds how often one wait is seen to resume.
const mostResumed = 64

// waitEnd is the last of the successive stretches of the wait s of tid: its Whole.End and its Waker
// say how the wait really ended.
func (w *Walk) waitEnd(tid uint32, s *sched.Stretch) sched.Stretch {
	end := *s
	for range mostResumed {
		if end.Block == sched.BlockFutex && end.ByInterrupt && !end.WakerSignal {
			next, resumed := w.afterTimeout(tid, &end)
			if !resumed {
				return end
			}
			timeout := end.Whole.End
			end = next
			if !end.ByInterrupt {
				return w.firstRelease(tid, &end, timeout)
			}
			continue
		}
		if !end.WakerSignal {
			return end
		}
		next := w.afterSignal(tid, &end)
		if next.Doing != sched.Blocked || next.Block != s.Block || next.Futex != s.Futex || next.Arg != s.Arg {
			break
		}
		end = next
	}
	return end
}

// afterSignal is the next wait of tid after the signal that ended s; the zero Stretch if none
// follows soon.
func (w *Walk) afterSignal(tid uint32, s *sched.Stretch) sched.Stretch {
	w.wakings = w.k.Woken(tid, s.Whole.End+1, s.Whole.End+signalNS, w.wakings[:0])
	for i := range w.wakings {
		if x := w.k.At(tid, w.wakings[i].Time-1); x.Doing == sched.Blocked {
			return x
		}
	}
	return sched.Stretch{}
}

// afterTimeout is the wait that follows s, whose time ran out. resumed reports whether it is for
// the same futex and follows at once.
func (w *Walk) afterTimeout(tid uint32, s *sched.Stretch) (next sched.Stretch, resumed bool) {
	at, running := s.Whole.End, int64(0)
	for range 16 { // between the two waits it may have been put off its CPU
		x := w.k.At(tid, at)
		switch x.Doing {
		case sched.OnCPU:
			if running += x.Whole.End - x.Whole.Begin; running > resumeNS {
				return x, false
			}
		case sched.Queued, sched.Throttled:
		case sched.Blocked:
			// The two words of a condition take turns, so the address need not be quite the same.
			return x, x.Block == sched.BlockFutex && x.Futex&^7 == s.Futex&^7 && s.Futex != 0
		default:
			return x, false
		}
		if x.Whole.End <= at {
			return x, false
		}
		at = x.Whole.End
	}
	return sched.Stretch{}, false
}

// firstRelease finds the end of the wait s of tid, which timed out at timeout and was resumed: the
// first release after that. The thread that released the futex held it until then, no matter which
// thread got it next. Of the result only Waker and Whole.End are of that release.
func (w *Walk) firstRelease(tid uint32, s *sched.Stretch, timeout int64) sched.Stretch {
	end := *s
	for _, f := range w.wordsOf(s) {
		for i := sort.Search(len(f.Releases),
			func(i int) bool { return f.Releases[i].Time >= timeout }); i < len(f.Releases); i++ {
			if r := &f.Releases[i]; r.Time >= end.Whole.End {
				break
			} else if r.TID != tid {
				end.Waker, end.Whole.End = r.TID, r.Time
			}
		}
	}
	return end
}

// wordsOf is the futexes whose releases end the wait s: a condition has two words, and an
// interpreter's lock is one futex.
func (w *Walk) wordsOf(s *sched.Stretch) (l []*sched.Futex) {
	f := w.k.FutexOf(s)
	if f != nil && f.Interpreter != sched.NoInterpreter {
		return append(l, f)
	}
	for _, addr := range [2]uint64{s.Futex, s.Futex ^ 4} {
		if f := w.k.Futex(addr); f != nil {
			l = append(l, f)
		}
	}
	return l
}
