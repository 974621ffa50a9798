package ledger

import (
	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/ledger/thread"
	"github.com/whystall/whystall/internal/oncpu"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/timeline"
)

// The join splits what the runtime calls running, in a system call, runnable or waiting by what the
// kernel's records show of the same time:
//   1. Running and system calls: by the stretches of the goroutine's thread. Time on a CPU stays
//      what the runtime says it was.
//   2. The initiator of a stop-the-world until the world starts again, every goroutine that is
//      runnable meanwhile, and every goroutine that waits for a ragged barrier: by that path's own
//      leaf at that instant (paths.go). The path's time on a CPU is the stop-the-world's.
//   3. Runnable goroutines, and those that wait for a socket or timer which the kernel shows ready:
//      by what the threads of the process did together.
//
// All of it only cuts a piece into parts that tile it, so the sums stay exact.

// part is a stretch of a piece with one leaf. Times are relative to the timeline's base.
type part struct {
	lo, hi int64
	leaf   books.Leaf
	detail timeline.FuncID // who had the CPU, or the function slept in
	// Of LeafNoCPU the thread that had the CPU, 0 idle; of LeafOnCPU and of a path's work the
	// thread that ran, 0 not known.
	tid      uint32
	measured bool // what held it is an event of the very thread
	on       bool // of a path: a thread was at work on it
	named    bool // of a path: why it went on is known
}

// joiner has what the join needs of the kernel's records.
type joiner struct {
	k    *sched.Timeline
	tl   *timeline.Timeline
	base int64 // CLOCK_MONOTONIC of the timeline's 0

	whole bool  // the trace names no threads: only what all of them did together is known
	shift int64 // from the trace's clock to CLOCK_MONOTONIC; not 0 only with whole

	begin, end int64 // relative, of what the records cover
	paths      paths
	holders    holders
	ready      readiness
	samples    *oncpu.Samples // nil without any
	had        enough
	sockets    lateness
	timers     lateness

	tids  map[uint32]uint32 // thread as the trace has it -> in the host's namespace; 0 not known
	words *capacity.Words
	name  func(timeline.FuncID) string // what words numbered

	parts     []part // scratch of the segment that is explained
	held      []part // the same of who held the Ps
	shares    []sched.Share
	occ       []timeline.Occupant
	stretches []sched.Stretch
	tiles     []sched.ProcessTile
}

func newJoiner(k *sched.Timeline, tl *timeline.Timeline) *joiner {
	j := &joiner{k: k, tl: tl, tids: map[uint32]uint32{}, name: tl.Func}
	j.words = capacity.NewWords(k, func(name string) uint32 { return uint32(tl.Name(name)) })
	j.holders.j = j
	return j
}

// start is called when the base of times is known.
func (j *joiner) start(base int64) {
	b, e := j.k.Span()
	j.base = base
	j.begin, j.end = b-j.base, e-j.base
	j.ready.init(j.k, j.base)
	j.paths.init(j)
}

// host is the thread's id in the host's namespace, 0 where the records do not know it.
func (j *joiner) host(thread uint32) uint32 {
	if thread == 0 {
		return 0
	}
	tid, ok := j.tids[thread]
	if !ok {
		tid = j.k.FromNS(thread)
		j.tids[thread] = tid
	}
	return tid
}

// covered reports whether the records cover any of [lo,hi).
func (j *joiner) covered(lo, hi int64) bool { return lo < j.end && hi > j.begin }

// thread appends what tid did in [lo,hi), which the parts tile. on is the leaf of its time on a
// CPU. call means that it was in a system call. Before and after the kernel's recording the
// runtime's word stands.
func (j *joiner) thread(dst []part, tid uint32, lo, hi int64, on books.Leaf, call bool) []part {
	if lo < j.begin {
		end := min(hi, j.begin)
		dst = append(dst, part{lo: lo, hi: end, leaf: on})
		lo = end
	}
	tail := max(lo, min(hi, j.end))
	switch {
	case lo >= tail:
	case tid == 0:
		dst = append(dst, part{lo: lo, hi: tail, leaf: books.LeafMissing})
	default:
		j.stretches = j.k.Stretches(tid, j.base+lo, j.base+tail, j.stretches[:0])
		for i := range j.stretches {
			s := &j.stretches[i]
			dst = j.stretch(dst, tid, s, s.Begin-j.base, s.End-j.base, on, call)
		}
	}
	if tail < hi {
		dst = append(dst, part{lo: tail, hi: hi, leaf: on})
	}
	return dst
}

// stretch appends the parts of one stretch.
func (j *joiner) stretch(dst []part, tid uint32, s *sched.Stretch, b, e int64, on books.Leaf, call bool) []part {
	leaf, named := thread.LeafOf(s)
	p := part{lo: b, hi: e, leaf: leaf, measured: true}
	switch s.Doing {
	case sched.OnCPU:
		switch {
		case leaf != books.LeafOnCPU:
			p.measured = !s.Sampled
		case on != books.LeafSyscall:
			p.leaf = on
		}
		p.tid = tid
	case sched.Queued:
		j.shares = j.k.Behind(tid, j.base+b, j.base+e, j.shares[:0])
		return j.byShares(dst, j.shares, b, e)
	case sched.Throttled:
		p.measured = !s.ByGroup
	case sched.Blocked:
		outside := leaf == books.LeafNetwork || leaf == books.LeafTimer || leaf == books.LeafPipe
		switch {
		case s.Block == sched.BlockStopped:
			p.leaf, p.detail = books.LeafAsleep, j.slept(s)
		case named && leaf == books.LeafAsleep && call:
			p.leaf = books.LeafLock // of C code: the runtime lets no goroutine wait for a futex in a call of its own
			p.detail = j.slept(s)
		case named && leaf != books.LeafAsleep && (call || !outside):
		case call && !named:
			p.leaf = books.LeafSyscall
		default: // the runtime itself sleeps on behalf of a running goroutine
			p.leaf, p.detail = books.LeafAsleep, j.slept(s)
		}
	default: // a thread that is not there runs no goroutine: records are missing
		p.leaf, p.measured = books.LeafMissing, false
	}
	return append(dst, p)
}

// slept is the function that a blocked thread sleeps in.
func (j *joiner) slept(s *sched.Stretch) timeline.FuncID { return timeline.FuncID(j.words.Slept(s)) }

// byShares cuts [b,e) by who had the CPU. The kernel's timeline knows how long each thread had it,
// not when. So the parts stand in the order of the shares, which changes no sum.
func (j *joiner) byShares(dst []part, shares []sched.Share, b, e int64) []part {
	at := b
	first := len(dst)
	for _, s := range shares {
		ns := min(s.NS, e-at)
		if ns <= 0 {
			continue
		}
		if s.TID == sched.NobodyKnown {
			dst = append(dst, part{lo: at, hi: at + ns, leaf: books.LeafNoCPU, tid: s.TID})
			at += ns
			continue
		}
		w := j.words.Behind(s.TID, j.base+at)
		if n := len(dst); n > first && dst[n-1].detail == timeline.FuncID(w.Detail) &&
			j.words.Ref(dst[n-1].tid) == w.Ref {
			dst[n-1].hi = at + ns
		} else {
			dst = append(dst, part{lo: at, hi: at + ns, leaf: books.LeafNoCPU,
				detail: timeline.FuncID(w.Detail), tid: s.TID, measured: true})
		}
		at += ns
	}
	if at < e { // who had it is not known
		dst = append(dst, part{lo: at, hi: e, leaf: books.LeafNoCPU, tid: sched.NobodyKnown})
	}
	return dst
}

// woken looks at a goroutine that just became runnable: the socket or timer may have been ready
// before.
func (j *joiner) woken(ev *exectrace.Event) {
	g := j.tl.Slot(ev.Slot)
	if g == nil {
		return
	}
	cur := j.tl.Seg(uint32(g.Cur))
	if cur == nil || cur.State() != timeline.Runnable || cur.Prev == 0 {
		return
	}
	w := j.tl.Seg(cur.Prev)
	if w == nil || w.State() != timeline.Waiting || w.EnderKind() != timeline.EnderP &&
		w.EnderKind() != timeline.EnderNobody {
		return
	}
	begin, at := j.tl.Start(w), j.tl.Now()
	switch w.Wait() {
	case timeline.WaitNetwork:
		tid, called := j.caller(w)
		if r, ok := j.ready.socket(tid, called, begin, at); ok && tid != 0 {
			j.ready.add(cur.Prev, r, pieceSocket)
			j.ready.wokenAt(g.Ident, r, at)
			j.sockets.add(at - r)
		}
	case timeline.WaitTimer, timeline.WaitMessage:
		if ev.M < 0 || ev.M >= 1<<32 {
			return
		}
		tid := j.host(uint32(ev.M))
		if r, ok := j.ready.timer(j, tid, begin, at); ok && tid != 0 {
			j.ready.add(cur.Prev, r, pieceDue)
			j.timers.add(at - r)
		}
	}
}

// caller is the thread on which a goroutine was before its wait w, and since when: since its last
// system call, where it made one.
func (j *joiner) caller(w *timeline.Segment) (tid uint32, since int64) {
	s := j.tl.Seg(w.Prev)
	if s == nil || s.State() != timeline.Running && s.State() != timeline.Syscall {
		return 0, 0
	}
	if c := j.tl.Seg(s.Prev); s.State() == timeline.Running && c != nil && c.State() == timeline.Syscall {
		s = c
	}
	return j.host(s.Thread()), j.tl.Start(s)
}

// ownFrame makes y ready to book a segment of g's own.
func (p *pass) ownFrame(grp *books.Group, g *timeline.G, seq uint32, lo, cursor int64, class books.Class) *frame {
	y := &p.y
	y.stack = append(y.stack[:0], frame{lo: lo, ident: g.Ident, seg: seq})
	y.cursor, y.class = cursor, class
	p.ownGroup, p.ownRan = grp, 0
	return &y.stack[0]
}

// ownPiece books a piece of the column of all.
func (p *pass) ownPiece(q *piece) {
	ns := q.hi - q.lo
	detail, stack := uint32(q.detail), uint32(0)
	if !q.leaf.Named() {
		detail = 0
	}
	if q.leaf.HasSite() || q.class != books.ClassOwn && q.leaf != books.LeafSTW {
		stack = q.seg.Stack
	}
	switch q.leaf {
	case books.LeafOnCPU, books.LeafSTWWork, books.LeafSweep, books.LeafAssist:
		if q.seg.State() == timeline.Running {
			p.ownRan += ns
		}
	}
	p.ownGroup.All.Book(q.class, q.leaf, stack, detail, ns)
	if q.leaf == books.LeafOnCPU && q.tid != 0 {
		if l := p.sampledIn(q); len(l) > 0 {
			p.ownGroup.All.Sampled(l)
		}
	}
}

// ownJoined books [lo,cursor) of a running, runnable or syscall segment in the column of all. It
// returns how long the thread of a running one was on a CPU.
func (p *pass) ownJoined(grp *books.Group, g *timeline.G, s *timeline.Segment, seq uint32, lo int64,
	cursor *int64) (running int64) {
	f := p.ownFrame(grp, g, seq, lo, *cursor, books.ClassOwn)
	switch s.State() {
	case timeline.Running:
		p.y.joinRunning(f, s, lo, runningLeaf(s), false)
	case timeline.Syscall:
		p.y.joinRunning(f, s, lo, books.LeafSyscall, true)
	default:
		p.y.joinRunnable(f, s, lo, 0)
	}
	*cursor = p.y.cursor
	return p.ownRan
}

// ownJoinedWait books the part of a wait in the column of all that the kernel's records explain,
// down to where they say nothing. It reports whether that was all.
func (p *pass) ownJoinedWait(grp *books.Group, g *timeline.G, s *timeline.Segment, seq uint32,
	lo int64, cursor *int64, class books.Class, leaf books.Leaf) bool {
	f := p.ownFrame(grp, g, seq, lo, *cursor, class)
	switch w := s.Wait(); {
	case collects(w):
		p.y.joinStoppable(f, s, lo, leaf)
	case w == timeline.WaitNetwork || w == timeline.WaitTimer || w == timeline.WaitMessage:
		if s.EnderKind() != timeline.EnderGoroutine {
			p.y.joinWait(f, s, lo)
		}
	}
	*cursor = p.y.cursor
	return *cursor <= lo
}

// lateness adds up how late readiness reached the program.
type lateness struct {
	h       books.Histogram
	ns, max int64
}

func (l *lateness) add(ns int64) {
	ns = max(ns, 0)
	l.h.Add(ns)
	l.ns += ns
	l.max = max(l.max, ns)
}

func (l *lateness) sum() account.LateSum {
	return account.LateSum{N: l.h.N, NS: l.ns, P50: l.h.Quantile(0.5), P99: l.h.Quantile(0.99), Max: l.max}
}
