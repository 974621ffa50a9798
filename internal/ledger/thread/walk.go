package thread

import (
	"sync"

	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/sched"
)

// How a thread's time in [lo,hi) is explained:
//
//  1. Its stretches come from the timeline, in order of time. Each becomes pieces, and the pieces
//     tile [lo,hi) exactly.
//  2. On a CPU, throttled, or in the run queue: one piece. While a unit lay in its socket, the CPU
//     time of its thread was for others. In the run queue the piece also lists the threads that had
//     the CPU.
//  3. A wait that no thread ends by a release, as for a disk, a fault or a timer: one piece.
//  4. Any other wait may have been interrupted and resumed. So first its real end is found
//     (waitend.go).
//  5. The wait is followed to the thread that ended it only if that thread is of the target and
//     released what was waited for, by its stack or its system call (waker.go, calls.go). Else the
//     wait is one piece of the waiter.
//  6. A message, or the end of a thread: what the waker did during the wait explains the wait.
//     Steps 1 to 8 are applied to the waker, for the same time.
//  7. A lock: the lock's successive releases during the wait say who held it when (holder.go).
//     Steps 1 to 8 are applied to each holder, for its part of the wait. The time between a release
//     and the moment at which the next holder got the lock is a piece of its own.
//  8. Before its birth a thread waits for its maker, after its end for the thread that frees its
//     stack.
//
// Measured is that the first holder to release had the lock: its own release shows it. That any
// later one had it, and since when, is inferred from the order of releases. So are all holders of
// locks on files, which have no record of releases. Such hops are marked.
//
// A wait is never followed to a thread that is on the path already, nor over more than mostHops
// threads. That, and mostVisits, bounds the cost.

// mostVisits bounds the stretches that are looked at for one unit.
const mostVisits = 1 << 16

// mostHops bounds the waits that are followed in a row. Threads that wait for a lock or a permit in
// a line, and sleep until the one before them is done, make a row as long as that line.
const mostHops = 64

// Walk explains threads one after the other. It keeps what it learns of stacks and locks.
type Walk struct {
	k     *sched.Timeline
	lives func() *sched.Lives // read when it is first asked for
	take  func(*Piece)        // of the thread that is being explained

	edges // of the unit that is explained

	// long is unit.Set.InLong, which only units that were taken late need.
	long func(tid uint32, at int64) (long bool, until int64)

	stacks       map[uint32]wakeStack     // by StackID
	acquisitions map[uint64][]acquisition // by futex, parallel to its releases

	hops   []Hop // the path to the thread that is being looked at
	visits int

	// Buffers that are used again.

	piece     Piece
	stretches [mostHops + 2][]sched.Stretch // by depth, as a caller still reads its own list
	holding   []sched.Stretch
	shares    []sched.Share
	wakings   []sched.Waking
}

// edges is what is known of a unit beyond its thread's work on it.
type edges struct {
	joiner uint32 // frees the thread's stack after its end; 0: nobody is known to
	taken  int64  // up to then the thread worked for others
}

// NewWalk starts a walk over k.
func NewWalk(k *sched.Timeline) *Walk {
	return &Walk{
		k: k, stacks: map[uint32]wakeStack{}, acquisitions: map[uint64][]acquisition{},
		lives: sync.OnceValue(func() *sched.Lives { return sched.NewLives(k) }),
	}
}

// Thread explains what kept thread tid during [lo,hi). It hands the pieces to take in order of
// time.
func (w *Walk) Thread(tid uint32, lo, hi int64, take func(*Piece)) {
	w.hops, w.visits, w.take = w.hops[:0], 0, take
	w.walk(tid, lo, hi)
}

// limited reports whether the last story was cut short by mostVisits.
func (w *Walk) limited() bool { return w.visits > mostVisits }

func (w *Walk) walk(tid uint32, lo, hi int64) {
	depth := len(w.hops)
	list := w.k.Stretches(tid, lo, hi, w.stretches[depth][:0])
	w.stretches[depth] = list
	for i := range list {
		s := &list[i]
		if w.visits++; w.visits > mostVisits {
			w.emit(tid, books.LeafLimit, cut(s, s.Begin, hi))
			return
		}
		leaf, _ := LeafOf(s)
		switch s.Doing {
		case sched.Blocked:
			w.blocked(tid, leaf, s)
			continue
		case sched.Gone:
			w.gone(tid, leaf, s)
			continue
		case sched.Queued:
			w.shares = w.k.Behind(tid, s.Begin, s.End, w.shares[:0])
		case sched.OnCPU:
			if depth == 0 && leaf == books.LeafOnCPU {
				s = w.unread(tid, s, w.taken)
			}
		}
		w.emit(tid, leaf, s)
	}
}

// unread explains the part of a stretch on a CPU in which the thread worked for others, as the
// unit's data lay in its socket: up to taken. It returns the rest.
func (w *Walk) unread(tid uint32, s *sched.Stretch, taken int64) *sched.Stretch {
	if s.Begin >= taken {
		return s
	}
	end := min(s.End, taken)
	for lo := s.Begin; lo < end; {
		leaf := books.LeafUnread
		long, until := w.long(tid, lo)
		if long {
			leaf = books.LeafBehindTurn
		}
		until = min(until, end)
		w.emit(tid, leaf, cut(s, lo, until))
		lo = until
	}
	return cut(s, end, s.End)
}

// emit hands out the stretch s of tid as one piece.
func (w *Walk) emit(tid uint32, leaf books.Leaf, s *sched.Stretch) {
	if s.Begin >= s.End {
		return
	}
	w.piece = Piece{Lo: s.Begin, Hi: s.End, Leaf: leaf, TID: tid, State: *s, Hops: w.hops}
	if leaf == books.LeafNoCPU {
		w.piece.Shares = w.shares
	}
	w.take(&w.piece)
}

// cut is s cut to [lo,hi); its Whole stays.
func cut(s *sched.Stretch, lo, hi int64) *sched.Stretch {
	c := *s
	c.Begin, c.End = lo, hi
	return &c
}

// blocked explains a wait: by its leaf, or by what the thread that ended it did meanwhile.
func (w *Walk) blocked(tid uint32, leaf books.Leaf, s *sched.Stretch) {
	switch s.Block {
	case sched.BlockFutex, sched.BlockPipe, sched.BlockNetwork, sched.BlockChild, sched.BlockOther, sched.BlockUnknown:
	default: // no thread ends these by a release
		w.emit(tid, leaf, s)
		return
	}
	end := w.waitEnd(tid, s)
	kind, released := w.releaseKind(s, &end)
	inferred := !released && w.inferHolder(tid, s, &end)
	if inferred {
		kind, released = hopLock, true
	}
	switch {
	case !released || !w.mayFollow(tid, end.Waker):
		if w.isLock(s) {
			leaf = books.LeafLock
		}
		w.emit(tid, leaf, s)
	case kind == hopLock:
		holds := w.holdsDuring(tid, s, &end)
		for h, ok := holds.next(); ok; h, ok = holds.next() {
			h.inferred = inferred
			w.behindHolder(tid, s, &h)
		}
	case kind == hopMessage && s.Block == sched.BlockFutex && w.k.JVMWaitOf(s) == sched.JVMMonitor:
		w.behindMonitor(tid, s, end.Waker)
	default:
		wait := *s
		wait.Whole.End = end.Whole.End
		w.follow(Hop{waiter: tid, waker: end.Waker, wait: wait, kind: kind}, s.Begin, s.End)
	}
}

// behindHolder explains a part of the wait s for a lock by what the holder did meanwhile. A holder
// that got the lock during the wait counts only from that moment on. What it waited for before has
// nothing to do with the lock.
func (w *Walk) behindHolder(tid uint32, s *sched.Stretch, h *hold) {
	if !w.mayFollow(tid, h.holder) {
		w.emit(tid, books.LeafLock, cut(s, h.lo, h.hi))
		return
	}
	lo := h.lo
	if !h.first {
		if start := min(w.acquired(h, w.k.FutexAddr(s)), h.hi); start > lo {
			w.emit(tid, books.LeafLockBetween, cut(s, lo, start))
			lo = start
		}
	}
	w.follow(Hop{waiter: tid, waker: h.holder, wait: *s, kind: hopLock, Inferred: !h.first ||
		h.inferred || s.Futex == 0}, lo, h.hi)
}

// gone explains time before a thread's birth by what its maker did, and time after its end by what
// its joiner did.
func (w *Walk) gone(tid uint32, leaf books.Leaf, s *sched.Stretch) {
	for _, l := range w.lives().Of[tid] {
		if l.Birth == 0 {
			continue
		}
		// Its birth is the end of this stretch or shortly before: between its creation and its
		// first run queue a thread is not there either.
		if l.Birth < s.Whole.Begin || l.Birth > s.Whole.End {
			continue
		}
		if l.Maker == 0 || !w.mayFollow(tid, l.Maker) {
			break
		}
		w.follow(Hop{waiter: tid, waker: l.Maker, wait: *s, kind: hopMaker}, s.Begin, s.End)
		return
	}
	if w.joiner != 0 && len(w.hops) == 0 && w.joiner != tid {
		w.follow(Hop{waiter: tid, waker: w.joiner, wait: *s, kind: hopMaker}, s.Begin, s.End)
		return
	}
	w.emit(tid, leaf, s)
}

// follow explains [lo,hi) of h's wait by what its waker did meanwhile.
func (w *Walk) follow(h Hop, lo, hi int64) {
	if lo >= hi {
		return
	}
	w.hops = append(w.hops, h)
	w.walk(h.waker, lo, hi)
	w.hops = w.hops[:len(w.hops)-1]
}

// mayFollow reports whether a wait of tid may be followed to waker: the path is not too long, and
// would not meet a thread twice.
func (w *Walk) mayFollow(tid, waker uint32) bool {
	if waker == tid || len(w.hops) >= mostHops {
		return false
	}
	for i := range w.hops {
		if h := &w.hops[i]; h.waiter == waker || h.waker == waker {
			return false
		}
	}
	return true
}
