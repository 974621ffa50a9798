package ledger

import (
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/timeline"
)

// joinRunning books [lo,cursor) of a running or syscall segment by what its thread did.
func (x *explainer) joinRunning(f *frame, s *timeline.Segment, lo int64, on books.Leaf, call bool) {
	j := x.j
	if j.whole {
		x.joinWhole(f, s, lo, on)
		return
	}
	if s.Thread() == 0 || !j.covered(lo, x.cursor) {
		x.trusted(lo, on, f.ident, s)
		return
	}
	tid := j.host(s.Thread())
	for x.cursor > lo {
		from := lo
		var p *path
		if !call && tid != 0 {
			// A thread that stops the world or waits for a barrier is on its path until the world
			// starts again.
			var ok bool
			if p, from, _, ok = j.paths.of(tid, lo, x.cursor, s.STW()); !ok {
				from, p = lo, nil
			}
		}
		after := from
		if p != nil {
			after = min(x.cursor, p.start)
		}
		if after < x.cursor {
			x.parts(f, s, j.thread(j.parts[:0], tid, after, x.cursor, on, call))
		}
		if p != nil {
			work := on
			if !p.barrier {
				work = books.LeafSTWWork
			}
			x.alongPath(f, s, p, from, after, work)
		}
	}
}

// joinWhole books [lo,cursor) of a running or syscall segment whose thread is not known. While no
// thread of the process was on a CPU and one wanted to be, the goroutine's was not on one either.
// What else its thread lacked is not seen.
func (x *explainer) joinWhole(f *frame, s *timeline.Segment, lo int64, on books.Leaf) {
	j := x.j
	if j.covered(lo, x.cursor) {
		j.parts = j.together(j.parts[:0], max(lo, j.begin), min(x.cursor, j.end))
		l := j.parts
		for i := len(l) - 1; i >= 0; i-- {
			q := l[i]
			if q.lo >= x.cursor || q.leaf != books.LeafThrottled && q.leaf != books.LeafNoCPU {
				continue
			}
			if q.hi < x.cursor {
				x.trusted(q.hi, on, f.ident, s)
			}
			x.emitPart(x.piece(q.lo, q.leaf, f.ident, s), &q)
		}
	}
	if lo < x.cursor {
		x.trusted(lo, on, f.ident, s)
	}
}

// trusted books what only the runtime knows.
func (x *explainer) trusted(lo int64, on books.Leaf, ident uint32, s *timeline.Segment) {
	p := x.piece(lo, on, ident, s)
	x.ofSTW(p, lo)
	x.emit(p)
}

// ofSTW names the stop-the-world that a piece of its initiator belongs to.
func (x *explainer) ofSTW(p *piece, lo int64) {
	if p.leaf != books.LeafSTWWork {
		return
	}
	if n, ok := x.tl.STWBefore(lo, x.cursor); ok {
		stws, base := x.tl.STWs()
		p.n, p.kind = n, stws[n-base].Kind
	}
}

// parts emits parts that tile up to the cursor, the latest first.
func (x *explainer) parts(f *frame, s *timeline.Segment, l []part) {
	x.j.parts = l[:0]
	for i := len(l) - 1; i >= 0; i-- {
		q := &l[i]
		if q.lo >= x.cursor {
			continue
		}
		p := x.piece(q.lo, q.leaf, f.ident, s)
		if q.leaf == books.LeafSTWWork {
			x.ofSTW(p, q.lo)
		}
		x.emitPart(p, q)
	}
}

// emitPart emits a piece with what the part knows.
func (x *explainer) emitPart(p *piece, q *part) {
	p.detail, p.tid = q.detail, q.tid
	if q.measured {
		p.flags |= pieceMeasured
	}
	x.emit(p)
}

// alongPath books [b,e), which ends at the cursor, by a path's own leaves. The path's time on a CPU
// is booked to work.
func (x *explainer) alongPath(f *frame, s *timeline.Segment, t *path, b, e int64, work books.Leaf) {
	x.j.parts = t.cut(x.j.parts[:0], b, e)
	l := x.j.parts
	for i := len(l) - 1; i >= 0; i-- {
		q := l[i]
		if q.lo >= x.cursor {
			continue
		}
		leaf := q.leaf
		if q.on {
			leaf, q.detail = work, 0
		}
		p := x.piece(q.lo, leaf, f.ident, s)
		p.n, p.path = t.n, t
		p.flags |= x.late
		switch {
		case t.barrier:
			p.flags |= pieceBarrier
		default:
			p.flags |= pieceStopped
		}
		if !leaf.Named() {
			p.kind = t.kind
			q.detail = 0
		}
		x.emitPart(p, &q)
	}
}

// joinRunnable books [lo,cursor) of a goroutine that can run. With late, the runtime has not
// noticed yet that it can. Inside a stopped world it books the stop's own leaves, elsewhere what
// the threads of the process did.
func (x *explainer) joinRunnable(f *frame, s *timeline.Segment, lo int64, late pieceFlags) {
	j := x.j
	for x.cursor > lo {
		t, b, e, ok := j.paths.stopped(lo, x.cursor)
		if !ok {
			b, e = lo, lo
		}
		if e < x.cursor {
			x.free(f, s, e, late)
		}
		if b < e {
			x.late = late
			x.alongPath(f, s, t, b, e, books.LeafSTW)
			x.late = 0
		}
	}
}

// free books [lo,cursor) while the world was not stopped.
func (x *explainer) free(f *frame, s *timeline.Segment, lo int64, late pieceFlags) {
	j := x.j
	leaf := books.LeafRunnable
	if lo < j.begin || x.cursor > j.end { // before or after the recording
		if lo < j.begin && x.cursor > j.begin {
			x.free(f, s, j.begin, late)
		}
		if x.cursor > j.end {
			x.emitLate(x.piece(max(lo, j.end), leaf, f.ident, s), late)
		}
		if lo < j.begin || x.cursor <= lo {
			x.emitLate(x.piece(lo, leaf, f.ident, s), late)
			return
		}
	}
	j.parts = j.together(j.parts[:0], lo, x.cursor)
	l := j.parts
	for i := len(l) - 1; i >= 0; i-- {
		q := l[i]
		if q.lo >= x.cursor {
			continue
		}
		p := x.piece(q.lo, q.leaf, f.ident, s)
		p.flags |= late
		if q.leaf == books.LeafLatePoll && late == 0 && !x.idleP(q.lo, q.hi) {
			p.leaf = books.LeafRunnable // behind goroutines whose threads were blocked
		}
		x.emitPart(p, &q)
	}
}

func (x *explainer) emitLate(p *piece, late pieceFlags) {
	p.flags |= late
	x.emit(p)
}

// idleP reports whether a P was free at some time of [lo,hi).
func (x *explainer) idleP(lo, hi int64) bool {
	list, total := x.tl.Occupants(lo, hi, x.j.occ[:0])
	x.j.occ = list
	for _, o := range list {
		total -= o.NS
	}
	return total > 0
}

// together appends the parts of [lo,hi) by what the threads of the process did together: (b) to (e)
// of docs/join.md, "8. Requests". This is coverage and no hop, so none of the parts is measured.
func (j *joiner) together(dst []part, lo, hi int64) []part {
	j.tiles = j.k.Process(j.base+lo, j.base+hi, j.tiles[:0])
	for _, t := range j.tiles {
		b, e := t.Begin-j.base, t.End-j.base
		leaf := books.LeafMissing
		switch t.State {
		case sched.ProcessOn:
			leaf = books.LeafRunnable
		case sched.ProcessThrottled:
			leaf = books.LeafThrottled
		case sched.ProcessNone:
			leaf = books.LeafLatePoll
		case sched.ProcessStopped:
			dst = append(dst, part{lo: b, hi: e, leaf: books.LeafAsleep,
				detail: timeline.FuncID(j.words.Detail(sched.Stopped))})
			continue
		case sched.ProcessQueued:
			from := len(dst)
			j.shares = j.k.Behind(t.TID, t.Begin, t.End, j.shares[:0])
			dst = j.byShares(dst, j.shares, b, e)
			for n := from; n < len(dst); n++ {
				dst[n].measured = false
			}
			continue
		}
		if n := len(dst); n > 0 && dst[n-1].leaf == leaf && dst[n-1].hi == b {
			dst[n-1].hi = e
			continue
		}
		dst = append(dst, part{lo: b, hi: e, leaf: leaf})
	}
	return dst
}

// joinWait books the end of a wait for a socket or a timer: the time after the data had come or the
// timer was due. The goroutine could have run from then on, so it is booked as a runnable one's.
func (x *explainer) joinWait(f *frame, s *timeline.Segment, lo int64) {
	at, late, ok := x.j.ready.of(f.seg)
	if !ok {
		return
	}
	if at = max(at, lo); at < x.cursor {
		x.joinRunnable(f, s, at, late)
	}
}

// joinBarrier books the time of [lo,cursor) in ragged barriers by their own leaves, and the rest as
// leaf.
func (x *explainer) joinBarrier(f *frame, s *timeline.Segment, lo int64, leaf books.Leaf) {
	for x.cursor > lo {
		t, b, e, ok := x.j.paths.barrier(lo, x.cursor)
		if !ok {
			x.joinCollected(f, s, lo, leaf)
			return
		}
		x.joinCollected(f, s, e, leaf)
		x.alongPath(f, s, t, b, e, leaf)
	}
}

// joinStoppable books [lo,cursor) of a wait of the runtime's own: a stopped world by its leaves,
// for a goroutine that waits for the end of a mark phase also the ragged barrier's, and the rest as
// leaf.
func (x *explainer) joinStoppable(f *frame, s *timeline.Segment, lo int64, leaf books.Leaf) {
	for x.cursor > lo {
		t, b, e, ok := x.j.paths.stopped(lo, x.cursor)
		if !ok {
			b, e = lo, lo
		}
		if e < x.cursor {
			if leaf == books.LeafMarkTermQueue {
				x.joinBarrier(f, s, e, leaf)
			} else {
				x.joinCollected(f, s, e, leaf)
			}
		}
		if b < e {
			x.alongPath(f, s, t, b, e, books.LeafSTW)
		}
	}
}

// joinCollected books [lo,cursor) of a wait for the collector, or for the next goroutine to take a
// lock, as leaf. It excepts the time in which no thread of the process was on a CPU although one
// wanted to be: whatever is waited for belongs to this process and lacked quota or CPU as well.
// That is coverage and no hop, so it is not measured.
func (x *explainer) joinCollected(f *frame, s *timeline.Segment, lo int64, leaf books.Leaf) {
	j := x.j
	if leaf == books.LeafUnknown || !j.covered(lo, x.cursor) {
		x.emitTo(lo, leaf, f.ident, s)
		return
	}
	x.emitTo(max(lo, j.end), leaf, f.ident, s) // of the time before and after the recording nothing is known
	j.parts = j.together(j.parts[:0], max(lo, j.begin), x.cursor)
	l := j.parts
	for i := len(l) - 1; i >= 0; i-- {
		q := l[i]
		if q.lo >= x.cursor || q.leaf != books.LeafThrottled && q.leaf != books.LeafNoCPU {
			continue
		}
		x.emitTo(q.hi, leaf, f.ident, s)
		x.emitPart(x.piece(q.lo, q.leaf, f.ident, s), &q)
	}
	x.emitTo(lo, leaf, f.ident, s)
}

// followSemaphore pushes a frame for the goroutine that let this one start a collection or stop the
// world: the semaphore was free when that goroutine released it, and what kept it until then kept
// the waiter. With the trace alone such a wait is a leaf, as the trace does not show that the
// holder had no CPU.
func (x *explainer) followSemaphore(f *frame, s *timeline.Segment, lo int64) bool {
	w := s.Wait()
	if w != timeline.WaitGCStart && w != timeline.WaitSTW ||
		s.EnderKind() != timeline.EnderGoroutine || x.marked(s.Ender) || len(x.stack) >= maxDepth {
		return false
	}
	// While the world was stopped, the goroutine waited for that.
	if _, _, e, ok := x.j.paths.stopped(lo, x.cursor); ok {
		if e >= x.cursor {
			return false
		}
		lo = e
	}
	x.push(frame{lo: lo, ident: s.Ender, seg: s.EnderSeg, sema: waitLeaf(w), inferred: f.inferred,
		first: f.first, through: f.through, hold: f.hold})
	return true
}
