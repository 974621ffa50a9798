package thread

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/sched"
)

var interpreterOf = map[sched.Interpreter]account.Interpreter{sched.CPython: account.CPython, sched.Ruby: account.Ruby}

// runtimeFacts adds what a piece's waits, the unit's own and those of the threads that it waited
// for, say of the runtime.
func (t *pass) runtimeFacts(q *Piece, acct uint32, ns int64) {
	c := t.books.Facts()
	interpreter := t.walk.interpreter(&q.State)
	jvm := t.jvmOf(q.TID, &q.State)
	if q.State.Doing == sched.Blocked || q.TID != t.starter {
		t.starter, t.reaching = q.TID, jvm == sched.JVMReaching
	}
	reaching := t.reaching // it looks again and again, and sleeps in between
	var safepoint, monitor bool
	for i := range q.Hops {
		w := &q.Hops[i].wait
		interpreter = max(interpreter, t.walk.interpreter(w))
		switch t.jvmOf(q.Hops[i].waiter, w) {
		case sched.JVMSafepoint:
			safepoint = true
		case sched.JVMReaching:
			reaching = true
		case sched.JVMMonitor:
			monitor = true
		}
	}
	if interpreter != sched.NoInterpreter {
		c.Add(acct, books.FactInterpreter, 0, ns)
	}
	switch {
	case safepoint || jvm == sched.JVMSafepoint:
		c.Add(acct, books.FactSafepoint, 0, ns)
		if reaching {
			c.Add(acct, books.FactReaching, 0, ns)
		}
	case monitor || jvm == sched.JVMMonitor:
		c.Add(acct, books.FactMonitor, 0, ns)
	}
}

// jvmOf is what s, a wait of tid's, is for in a Java virtual machine.
func (t *pass) jvmOf(tid uint32, s *sched.Stretch) sched.JVMWait {
	if s.Doing != sched.Blocked {
		return sched.JVMNone
	}
	if s.User == 0 && s.Block == sched.BlockTimer {
		return t.naps()[tid]
	}
	key := placeKey{user: s.User, block: s.Block, futex: s.Futex}
	if s.User != 0 {
		key.futex = 0
	}
	w, ok := t.jvm[key]
	if !ok && len(t.jvm) < mostSites {
		w = t.k.JVMWaitOf(s)
		t.jvm[key] = w
	}
	return w
}

// naps says what threads do that sleep, where all stacks of their sleeps say the same. Of short
// sleeps most have no stack, and the VM thread sleeps in several functions of one kind.
func (t *pass) naps() map[uint32]sched.JVMWait {
	if t.napping != nil {
		return t.napping
	}
	t.napping = map[uint32]sched.JVMWait{}
	lo, hi := t.k.Span()
	t.k.Each(lo, hi, func(tid uint32, s *sched.Stretch) {
		if s.Doing != sched.Blocked || s.Block != sched.BlockTimer || s.User == 0 {
			return
		}
		w := t.jvmOf(tid, s)
		if old, ok := t.napping[tid]; ok && old != w {
			w = sched.JVMNone
		}
		if len(t.napping) < mostSites {
			t.napping[tid] = w
		}
	})
	return t.napping
}

// interpreter is the one whose lock s is a wait for.
func (w *Walk) interpreter(s *sched.Stretch) sched.Interpreter {
	if s.Doing != sched.Blocked || s.Block != sched.BlockFutex {
		return sched.NoInterpreter
	}
	return w.k.InterpreterOf(s)
}

// behindMonitor explains the wait s of tid for a monitor of Java's, which waker ended. Each thread
// waits for it at a word of its own, so that only the last holder is seen. That one had it after
// its last wait for something from outside; who had it before is not known.
func (w *Walk) behindMonitor(tid uint32, s *sched.Stretch, waker uint32) {
	h := hold{holder: waker, lo: s.Begin, hi: s.End, since: s.Begin}
	start := min(w.findAcquired(&h, ^uint64(0)), h.hi)
	w.emit(tid, books.LeafLock, cut(s, h.lo, start))
	w.follow(Hop{waiter: tid, waker: waker, wait: *s, kind: hopLock, Inferred: true}, start, h.hi)
}

// inferHolder finds out who held the lock of an interpreter that s of tid waits for, where the wait
// ended by itself: its time ran out, and the lock was free then. A lock is let go without a sign
// where nobody waits for it at that moment. Only one thread at a time can run with the lock. So the
// thread that wanted a CPU for most of the wait is taken for the holder, and becomes the waker of
// end. It reports false where no thread did for half of the wait.
func (w *Walk) inferHolder(tid uint32, s, end *sched.Stretch) bool {
	if f := w.k.FutexOf(s); f == nil || f.Interpreter == sched.NoInterpreter || !end.ByInterrupt {
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
