package thread

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/sched"
)

var interpreterOf = map[sched.Interpreter]account.Interpreter{sched.CPython: account.CPython, sched.Ruby: account.Ruby}

// forInterpreter reports whether a piece is of a wait for the lock of an interpreter, the unit's
// own or that of a thread which it waited for.
func (t *pass) forInterpreter(q *Piece) bool {
	for i := range q.Hops {
		if t.walk.interpreter(&q.Hops[i].wait) != sched.NoInterpreter {
			return true
		}
	}
	return t.walk.interpreter(&q.State) != sched.NoInterpreter
}

// interpreter is the one whose lock s is a wait for.
func (w *Walk) interpreter(s *sched.Stretch) sched.Interpreter {
	if s.Doing != sched.Blocked || s.Block != sched.BlockFutex {
		return sched.NoInterpreter
	}
	if f := w.k.FutexOf(s); f != nil {
		return f.Interpreter
	}
	return sched.NoInterpreter
}

// inferHolder finds out who held the lock of an interpreter that s of tid waits for, where the wait
// ended by itself: its time ran out, and the lock was free then. A lock is let go without a sign
// where nobody waits for it at that moment. Only one thread at a time can run with the lock. So the
// thread that wanted a CPU for most of the wait is taken for the holder, and becomes the waker of
// end. It reports false where no thread did for half of the wait.
func (w *Walk) inferHolder(tid uint32, s, end *sched.Stretch) bool {
	if w.interpreter(s) == sched.NoInterpreter || !end.ByInterrupt {
		return false
	}
	holder, most := uint32(0), (s.End-s.Begin)/2
	for _, other := range w.k.FutexOf(s).Threads() {
		if other == tid || !w.mayFollow(tid, other) {
			continue
		}
		var wanted int64
		w.holding = w.k.Stretches(other, s.Begin, s.End, w.holding[:0])
		for i := range w.holding {
			if x := &w.holding[i]; x.Doing == sched.OnCPU || x.Doing == sched.Queued || x.Doing == sched.Throttled {
				wanted += x.End - x.Begin
			}
		}
		if wanted > most {
			holder, most = other, wanted
		}
	}
	if holder == 0 {
		return false
	}
	end.Waker, end.WakerTarget = holder, true
	return true
}
