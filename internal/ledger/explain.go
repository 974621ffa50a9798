package ledger

import (
	"cmp"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/timeline"
)

// The walk explains an activation (A,[a,b)) backwards, from b to a, and looks only at what is past:
//   1. The cursor is at b. The walk goes over A's segments, from the one that covers b to older
//      ones.
//   2. It clips each segment to [a, cursor) and emits it as a piece, which moves the cursor to the
//      piece's start. So the pieces are disjoint, in order and without a hole by construction. When
//      the walk ends, the cursor must be at a.
//   3. It emits no piece for a wait that another goroutine U ended. Instead it pushes a frame for
//      U, bounded below by the wait's start, and walks U from the segment in which U ended the
//      wait. When the cursor reaches the frame's bound, the walk pops the frame and goes on where
//      the wait started.
//   4. Where it reaches U's first segment before the bound, it walks U's maker instead.
//   5. For a wait for a lock it pushes two frames: one for the lock, and on it one for the
//      unlocker, bounded by the moment at which that one can have acquired the lock. When the
//      cursor comes back to the lock's frame above its bound, the last unlock of the class before
//      the cursor names the holder before (locks.go).
//   6. A request that was handed on did not wait together with the goroutines that took it over.
//      Where the wait for work of such a goroutine ended with the request, the walk goes on with
//      the giver, back to the request's start and not to the wait's.
//
// What the ring no longer has, or a gap hides, is unexplained from there down to the frame's bound.

// Limits of one activation: docs/ledger.md, "11. One pass, bounded memory".
const (
	maxDepth  = 4096
	maxVisits = 1 << 16
)

// frame is one actor, or one lock, on the path.
type frame struct {
	lo       int64 // the walk goes down to here
	ident    uint32
	seg      uint32          // the next to look at
	site     timeline.FuncID // of a lock's frame: where the lock is taken
	rel      int             // of a lock's frame: releases from here on are used up, see locks
	class    uint32          // of a lock's frame: its class
	lock     bool
	inferred bool // the holder is known by class only
	holder   bool // this is a holder of a lock
	// the goroutine had a semaphore of the collector: its own work is booked to this leaf; 0: it
	// had none
	sema    books.Leaf
	first   timeline.FuncID // where the first lock on the path is taken; 0 none
	through timeline.FuncID // the same below the first wait
	hold    uint32          // the last hold of a lock on the path: the segment that ended it; 0 none
}

// explainer walks. It is made once and used for every activation.
type explainer struct {
	tl    *timeline.Timeline
	locks *locks

	stack  []frame
	cursor int64
	visits int
	total  int64  // of all activations
	limit  bool   // this activation met a limit
	stale  uint32 // the segment of the request's goroutine that a gap cut off
	prev   int64  // waits before this belong to the request before
	// when a request was handed on, the first first; the walk takes these off
	hops []int64
	out  func(*piece)
	p    piece
	j    *joiner    // nil without kernel records on the same clock
	late pieceFlags // of what is booked now

	// The first wait on the path now.
	class  books.Class
	site   timeline.FuncID
	queue  int32
	turn   int64 // the wait was for the turns of others up to here; 0: it was not
	held   bool  // those others hold what it waits for, each in a request of its own
	serves timeline.Serving
	asked  bool // the wait that is booked now is for an answer: see timeline.Asked

	onPath []uint32 // by ident: the serial of the walk that has it on its path
	serial uint32
}

// explain gives the story of goroutine g during [a,b) to x.out, the latest piece first.
func (x *explainer) explain(g *timeline.G, a, b, prevEnd int64) {
	t := x.tl
	x.stack = x.stack[:0]
	x.cursor, x.visits, x.limit, x.prev = b, 0, false, prevEnd
	x.serial++
	x.own()
	x.stale = 0
	t.Pin(g)
	if at, stale := t.StaleAt(g); stale {
		x.emitTo(max(a, at), books.LeafGap, g.Ident, nil)
		x.stale = uint32(g.Cur)
	}
	x.push(frame{lo: a, ident: g.Ident, seg: uint32(g.Cur)})
	var newer *timeline.Segment // segment of the request's own goroutine
	for len(x.stack) > 0 {
		f := &x.stack[len(x.stack)-1]
		if x.cursor <= f.lo {
			x.pop()
			continue
		}
		if f.lock {
			x.holderBefore(f)
			continue
		}
		depth := len(x.stack) - 1
		if depth == 0 {
			x.own()
		}
		x.visits++
		if x.visits > maxVisits {
			x.limit = true
			x.emitTo(f.lo, books.LeafLimit, f.ident, nil)
			continue
		}
		s := t.Seg(f.seg)
		if s == nil {
			x.emitTo(f.lo, books.LeafLookback, f.ident, nil)
			continue
		}
		start := t.Start(s)
		if start < x.cursor {
			if depth == 0 {
				x.queue = 0
				if newer != nil && newer.State() == timeline.Runnable && newer.Why() == timeline.WhyWoken {
					x.queue = int32(newer.Ender)
				}
			}
			if x.segment(f, s, max(start, f.lo), depth) {
				// The push may have moved f. Its next segment was set before.
				newer = s
				continue
			}
			f = &x.stack[len(x.stack)-1]
		}
		if depth == 0 {
			newer = s
		}
		if x.cursor > f.lo {
			x.older(f, s)
		}
	}
	x.total += int64(x.visits)
}

// own resets the path to the request's own goroutine.
func (x *explainer) own() {
	x.class, x.site, x.queue, x.turn, x.held, x.serves = books.ClassOwn, 0, 0, 0, false, timeline.ServingUnknown
}

// older goes on to the segment before s, or to the goroutine's maker.
func (x *explainer) older(f *frame, s *timeline.Segment) {
	if s.State() == timeline.Runnable && s.Why() == timeline.WhyNewborn {
		if f.sema != 0 {
			x.emitTo(f.lo, f.sema, f.ident, s) // the maker had no semaphore for it
			return
		}
		switch s.EnderKind() {
		case timeline.EnderGoroutine:
			x.mark(f.ident, false)
			if x.marked(s.Ender) {
				x.emitTo(f.lo, books.LeafOrder, f.ident, s)
				return
			}
			if n := len(x.hops); n > 0 && x.cursor == x.hops[n-1] {
				x.hops = x.hops[:n-1]
			}
			f.ident, f.seg = s.Ender, s.EnderSeg
			x.mark(f.ident, true)
		case timeline.EnderP:
			x.emitTo(f.lo, books.LeafTimer, f.ident, s) // time.AfterFunc
		default:
			x.emitTo(f.lo, books.LeafBornOutside, f.ident, s)
		}
		return
	}
	if leaf, ends := pastLeaf(s); ends {
		x.emitTo(f.lo, leaf, f.ident, nil)
		return
	}
	f.seg = s.Prev
}

func (x *explainer) push(f frame) {
	if f.ident != 0 && !f.lock {
		x.mark(f.ident, true)
	}
	x.stack = append(x.stack, f)
}

func (x *explainer) pop() {
	f := &x.stack[len(x.stack)-1]
	if !f.lock {
		x.mark(f.ident, false)
	}
	x.stack = x.stack[:len(x.stack)-1]
}

func (x *explainer) mark(ident uint32, on bool) {
	for int(ident) >= len(x.onPath) {
		x.onPath = append(x.onPath, make([]uint32, max(256, len(x.onPath)))...)
	}
	x.onPath[ident] = 0
	if on {
		x.onPath[ident] = x.serial
	}
}

func (x *explainer) marked(ident uint32) bool {
	return int(ident) < len(x.onPath) && x.onPath[ident] == x.serial
}

// segment books [lo, cursor), which s covers, and reports whether it pushed a frame instead.
func (x *explainer) segment(f *frame, s *timeline.Segment, lo int64, depth int) (pushed bool) {
	if n := len(x.hops); n > 0 && x.cursor == x.hops[n-1] && s.State() == timeline.Waiting &&
		s.EnderKind() == timeline.EnderGoroutine && !x.marked(s.Ender) {
		x.hops = x.hops[:n-1]
		if depth == 0 {
			x.class, x.site = books.ClassMessage, x.tl.Get(exectrace.StackID(s.Stack)).Site
		}
		x.push(frame{lo: f.lo, ident: s.Ender, seg: s.EnderSeg})
		return true
	}
	switch s.State() {
	case timeline.Running:
		leaf := runningLeaf(s)
		if f.sema != 0 && leaf == books.LeafOnCPU {
			leaf = f.sema
		}
		if x.j != nil {
			x.joinRunning(f, s, lo, leaf, false)
			return false
		}
		if leaf == books.LeafSTWWork {
			// The goroutine that stops the world says what for. The kind tells a collection, which
			// allocating starts, from a stop that the program asked for.
			if lo < x.cursor {
				x.trusted(lo, leaf, f.ident, s)
			}
			return false
		}
		x.emitTo(lo, leaf, f.ident, s)
	case timeline.Runnable:
		if x.j != nil {
			x.joinRunnable(f, s, lo, 0)
			return false
		}
		x.stoppable(lo, stateLeaf(s), f, s)
	case timeline.Syscall:
		if depth == 0 {
			x.site = x.tl.Get(exectrace.StackID(s.Stack)).Site
		}
		if x.j != nil {
			x.joinRunning(f, s, lo, books.LeafSyscall, true)
			return false
		}
		x.emitTo(lo, stateLeaf(s), f.ident, s)
	case timeline.Waiting:
		return x.wait(f, s, lo, depth)
	default:
		x.emitTo(lo, stateLeaf(s), f.ident, s)
	}
	return false
}

// stoppable books [lo, cursor) as leaf, except where the world was stopped.
func (x *explainer) stoppable(lo int64, leaf books.Leaf, f *frame, s *timeline.Segment) {
	for x.cursor > lo {
		begin, end, n, ok := x.tl.Stopped(lo, x.cursor)
		if !ok {
			x.emitTo(lo, leaf, f.ident, s)
			return
		}
		x.emitTo(end, leaf, f.ident, s)
		stws, base := x.tl.STWs()
		p := x.piece(begin, books.LeafSTW, f.ident, s)
		p.n, p.kind = n, stws[n-base].Kind
		x.emit(p)
	}
}

// wait books a wait, or pushes frames for the goroutine that ended it.
func (x *explainer) wait(f *frame, s *timeline.Segment, lo int64, depth int) (pushed bool) {
	w, by := s.Wait(), s.EnderKind()
	if depth == 0 {
		info := x.tl.Get(exectrace.StackID(s.Stack))
		x.class, x.site = classOfWait(w, by), info.Site
		if w == timeline.WaitLock {
			x.site = info.LockSite
		}
		// The part before prev belongs to the request before: its goroutine still had work to do
		// for it.
		if x.prev > lo {
			if x.cursor > x.prev {
				if x.wait2(f, s, x.prev, depth) {
					return true // the walk meets the rest again when the frame is done: seg stays
				}
			} else {
				x.emitTo(lo, books.LeafPreviousEnd, f.ident, s)
				return false
			}
			x.emitTo(lo, books.LeafPreviousEnd, f.ident, s)
			return false
		}
	}
	return x.wait2(f, s, lo, depth)
}

func (x *explainer) wait2(f *frame, s *timeline.Segment, lo int64, depth int) (pushed bool) {
	w := s.Wait()
	if f.sema != 0 && !collects(w) {
		// A goroutine that has a semaphore of the collector waits for the collector alone. So it
		// took the semaphore after this wait, and who had it before is not known.
		x.emitTo(f.lo, f.sema, f.ident, s)
		return false
	}
	if followable(s) {
		return x.follow(f, s, lo, depth)
	}
	leaf := unfollowed(s, depth == 0 && x.stale == f.seg)
	switch {
	case w == timeline.WaitIdle, leaf == books.LeafGap, leaf == books.LeafBeforeTrace,
		leaf == books.LeafNotWoken, leaf == books.LeafUnknown:
		x.emitTo(lo, leaf, f.ident, s)
	case leaf == books.LeafLockUnseen:
		if lo < x.cursor {
			p := x.piece(lo, leaf, f.ident, s)
			p.lock = cmp.Or(p.lock, x.tl.Get(exectrace.StackID(s.Stack)).LockSite)
			x.emit(p)
		}
	case w == timeline.WaitMessage, w == timeline.WaitNetwork, w == timeline.WaitTimer:
		// Beyond turn it is the request's own turn, and the goroutine asks for nobody else.
		x.asked = w == timeline.WaitNetwork && s.EnderKind() != timeline.EnderNone && depth > 0 &&
			lo < x.turn && !x.held && x.tl.Asked(f.ident, f.seg)
		if x.j != nil {
			x.joinWait(f, s, lo)
		}
		x.emitTo(lo, leaf, f.ident, s)
		x.asked = false
	case x.j == nil:
		x.stoppable(lo, leaf, f, s)
	case x.followSemaphore(f, s, lo):
		return true
	default:
		x.joinStoppable(f, s, lo, leaf)
	}
	return false
}

// follow pushes the frames for the goroutine that ended a wait.
func (x *explainer) follow(f *frame, s *timeline.Segment, lo int64, depth int) bool {
	if x.marked(s.Ender) {
		x.emitTo(lo, books.LeafOrder, f.ident, s)
		return false
	}
	if len(x.stack) >= maxDepth {
		x.limit = true
		x.emitTo(lo, books.LeafLimit, f.ident, s)
		return false
	}
	next := frame{lo: lo, ident: s.Ender, seg: s.EnderSeg, inferred: f.inferred, first: f.first,
		through: f.through, hold: f.hold}
	if s.Wait() == timeline.WaitLock {
		next.hold = s.EnderSeg
		site := x.tl.Get(exectrace.StackID(s.Stack)).LockSite
		next.first = cmp.Or(f.first, site)
		if depth > 0 {
			next.through = cmp.Or(f.through, site)
		}
		lock := next
		lock.lock, lock.site, lock.class, lock.rel = true, site, x.locks.class(site), -1
		x.push(lock)
		next.lo = x.locks.acquired(x.tl, lock.class, s.Ender, s.EnderSeg, lo, &x.visits)
		next.holder = true
	} else if depth == 0 {
		x.others(f.ident, s, lo)
	}
	x.push(next)
	return true
}

// manyTurns are enough to be a queue, though one of them took half of the wait.
const manyTurns = 5

// others finds how far a wait [lo, cursor) for a message was the turn of others. If a goroutine of
// the waiter's own kind ended the wait, it had what both need, and the whole wait was theirs. If a
// worker ended it, the wait was theirs up to when that worker ended another's wait. A wait shorter
// than two turns is no queue: the request arrived during a turn, or was woken together with many
// others. Where there were many turns one may have been long: its holder had no CPU.
func (x *explainer) others(ident uint32, s *timeline.Segment, lo int64) {
	if s.Wait() != timeline.WaitMessage {
		return
	}
	x.held = x.tl.Alike(ident, s.Ender)
	n, last, longest := x.tl.Turns(x.site, ident, s.Ender, lo, x.cursor)
	switch wait := x.cursor - lo; {
	case n < 2 || wait < 3*longest && (n < manyTurns || wait < 2*longest):
	case x.held:
		x.turn = x.cursor
	default:
		x.turn = last
		x.serves = x.tl.Serves(x.site, ident, s.Ender, lo, x.cursor)
	}
}
