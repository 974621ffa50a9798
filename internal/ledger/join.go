package ledger

import (
	"fmt"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/timeline"
)

// The join: what the runtime calls running, in a syscall, runnable or waiting is split by what the kernel knows of the same time.
//  1. Running and syscall: the stretches of the goroutine's thread. What was on a CPU stays what the runtime says it was.
//  2. The initiator of a stop-the-world until the world starts again, whoever is runnable meanwhile, and whoever waits
//     for a ragged barrier: that path's own leaf at that instant (paths.go). What a path has on a CPU is the stop-the-world's.
//  3. Runnable, and waiting for a socket or a timer that the kernel shows ready: what the process' threads did together.
//
// All of it only cuts a piece into parts that tile it: sums stay as exact as they were.

// part is a stretch of a piece with one leaf. Times are relative to the timeline's base.
type part struct {
	Lo, Hi   int64
	leaf     leafCode
	detail   timeline.FuncID // behind whom, or asleep in what
	tid      uint32          // of codeNoCPU: who had the CPU, 0 idle; of a path's work: who was at it
	measured bool            // what held it is an event of the very thread
	on       bool            // of a path: somebody was at work on it
	named    bool            // of a path: why it went on is known
}

// joiner has what the join needs of the kernel's records.
type joiner struct {
	k    *sched.Timeline
	tl   *timeline.Timeline
	base int64 // CLOCK_MONOTONIC of the timeline's 0

	whole bool  // the trace names no threads: only what those of the process did together is known
	shift int64 // from the trace's clock to CLOCK_MONOTONIC; not 0 only with whole

	begin, end int64 // relative, of what the records cover
	paths      paths
	holders    holders
	ready      readiness
	had        enough
	sockets    lateness
	timers     lateness

	tids    map[uint32]uint32 // thread as the trace has it -> in the host's namespace; 0 not known
	behind  map[uint32]behind // by TID
	who     []account.Instead // by behind.ref
	whoAt   map[account.Instead]uint32
	sleeps  map[[2]uint32]timeline.FuncID // by stacks
	details map[string]timeline.FuncID
	own     timeline.FuncID
	idle    timeline.FuncID

	parts     []part // scratch of the segment that is explained
	held      []part // likewise, of who held the Ps
	shares    []sched.Share
	occ       []timeline.Occupant
	stretches []sched.Stretch
	tiles     []sched.ProcessTile
}

// behind is how who had the CPU is called.
type behind struct {
	detail timeline.FuncID
	ref    uint32
	own    bool
	then   sched.Span // when it was called so
}

// mostDetails bounds the names that commands and functions of other programs may add.
const mostDetails = 1 << 12

func newJoiner(k *sched.Timeline, tl *timeline.Timeline) *joiner {
	j := &joiner{k: k, tl: tl, tids: map[uint32]uint32{}, behind: map[uint32]behind{}, whoAt: map[account.Instead]uint32{},
		sleeps: map[[2]uint32]timeline.FuncID{}, details: map[string]timeline.FuncID{}}
	j.own, j.idle = tl.Name(account.OwnThreads), tl.Name(account.WakeUpLatency)
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

// detail gives an id to a name of the kernel's side.
func (j *joiner) detail(name string) timeline.FuncID {
	id, ok := j.details[name]
	if !ok {
		if len(j.details) >= mostDetails {
			return j.tl.Name("(others)")
		}
		id = j.tl.Name(name)
		j.details[name] = id
	}
	return id
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

// covered tells whether any of [lo,hi) is covered by the records.
func (j *joiner) covered(lo, hi int64) bool { return lo < j.end && hi > j.begin }

// thread appends what tid did in [lo,hi), which it tiles. on is the leaf of what it was on a CPU with. call: it was in a system call. Before and after
// the recording the runtime's word stands.
func (j *joiner) thread(dst []part, tid uint32, lo, hi int64, on leafCode, call bool) []part {
	if lo < j.begin {
		end := min(hi, j.begin)
		dst = append(dst, part{Lo: lo, Hi: end, leaf: on})
		lo = end
	}
	tail := max(lo, min(hi, j.end))
	switch {
	case lo >= tail:
	case tid == 0:
		dst = append(dst, part{Lo: lo, Hi: tail, leaf: codeMissing})
	default:
		j.stretches = j.k.Stretches(tid, j.base+lo, j.base+tail, j.stretches[:0])
		for i := range j.stretches {
			s := &j.stretches[i]
			dst = j.stretch(dst, tid, s, s.Begin-j.base, s.End-j.base, on, call)
		}
	}
	if tail < hi {
		dst = append(dst, part{Lo: tail, Hi: hi, leaf: on})
	}
	return dst
}

// stretch appends the parts of one stretch.
func (j *joiner) stretch(dst []part, tid uint32, s *sched.Stretch, b, e int64, on leafCode, call bool) []part {
	p := part{Lo: b, Hi: e, measured: true}
	switch s.Doing {
	case sched.OnCPU:
		// In the middle of a fault or a reclaim that is what it works on.
		if leaf, ok := blockLeaf(s.Block); ok && s.Block.Stalls() {
			p.leaf, p.measured = leaf, !s.Sampled
		} else if p.leaf = on; on == codeSyscall {
			p.leaf = codeOnCPU
		}
	case sched.Queued:
		j.shares = j.k.Behind(tid, j.base+b, j.base+e, j.shares[:0])
		return j.byShares(dst, j.shares, b, e)
	case sched.Throttled:
		p.leaf, p.measured = codeThrottled, !s.ByGroup
	case sched.Blocked:
		leaf, ok := blockLeaf(s.Block)
		switch {
		case s.Block == sched.BlockStopped:
			p.leaf, p.detail = codeAsleep, j.sleep(s)
		case ok && leaf == codeAsleep && call:
			p.leaf = codeLock // of C code: the runtime makes no goroutine wait for a futex in a call of its own
			p.detail = j.sleep(s)
		case ok && (call || leaf != codeNetwork && leaf != codeTimer && leaf != codePipe):
			p.leaf = leaf
			if leaf == codeAsleep {
				p.detail = j.sleep(s)
			}
		case call:
			p.leaf = codeSyscall
			p.detail = 0
		default: // the runtime itself sleeps on behalf of a running goroutine
			p.leaf, p.detail = codeAsleep, j.sleep(s)
		}
	default:
		p.leaf, p.measured = codeMissing, false
	}
	return append(dst, p)
}

// byShares cuts [b,e) by who had the CPU. The kernel's timeline tells how long each had it; the parts stand in the order of the
// shares, which matters to no sum.
func (j *joiner) byShares(dst []part, shares []sched.Share, b, e int64) []part {
	at := b
	first := len(dst)
	for _, s := range shares {
		ns := min(s.NS, e-at)
		if ns <= 0 {
			continue
		}
		if s.TID == sched.NobodyKnown {
			dst = append(dst, part{Lo: at, Hi: at + ns, leaf: codeNoCPU, tid: s.TID})
			at += ns
			continue
		}
		w := j.behindWhom(s.TID, j.base+at)
		if n := len(dst); n > first && dst[n-1].detail == w.detail && j.refOf(dst[n-1].tid) == w.ref {
			dst[n-1].Hi = at + ns
		} else {
			dst = append(dst, part{Lo: at, Hi: at + ns, leaf: codeNoCPU, detail: w.detail, tid: s.TID, measured: true})
		}
		at += ns
	}
	if at < e { // behind whom is not known
		dst = append(dst, part{Lo: at, Hi: e, leaf: codeNoCPU, tid: sched.NobodyKnown})
	}
	return dst
}

// behindWhom says how tid is called at a time: numbers of threads are used again.
func (j *joiner) behindWhom(tid uint32, at int64) behind {
	b, ok := j.behind[tid]
	if ok && b.then.Begin <= at && at < b.then.End {
		return b
	}
	b = behind{then: j.k.Named(tid, at)}
	i := account.Instead{}
	switch t, known := j.k.Name(tid, at); {
	case tid == 0:
		i, b.detail = account.Instead{Who: account.WakeUpLatency, Kind: account.InsteadIdle}, j.idle
	case known && t.Target:
		i, b.detail, b.own = account.Instead{Who: account.OwnThreads, Kind: account.InsteadOwn}, j.own, true
	case !known:
		i, b.detail = account.Instead{Who: "unknown", Kind: account.InsteadUnknown}, j.detail("unknown")
	default:
		name := sched.PlainComm(t.Comm)
		i, b.detail = account.Instead{Who: fmt.Sprintf("%s (pid %d)", name, t.PID), Kind: account.InsteadNeighbour}, j.detail(name)
		if t.Kernel {
			i.Who = name
		}
	}
	b.ref, ok = j.whoAt[i]
	if !ok {
		b.ref = uint32(len(j.who))
		j.who = append(j.who, i)
		j.whoAt[i] = b.ref
	}
	j.behind[tid] = b
	return b
}

// refOf is the number of tid's name when it was last asked for, that of nobody for who is not known.
func (j *joiner) refOf(tid uint32) uint32 {
	if b, ok := j.behind[tid]; ok {
		return b.ref
	}
	return whoUnknown
}

// woken looks at a goroutine that just became runnable: what it waited for may have been ready before.
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
	if w == nil || w.State() != timeline.Waiting || w.By() != timeline.EnderP && w.By() != timeline.EnderNobody {
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

// caller is the thread on which a goroutine was before its wait w, and since when: in its last system call, where it made one.
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
func (p *pass) ownFrame(grp *group, g *timeline.G, seq uint32, lo, cursor int64, class classCode) *frame {
	y := &p.y
	y.stack = append(y.stack[:0], frame{Lo: lo, ident: g.Ident, seg: seq})
	y.cursor, y.class = cursor, class
	p.ownGroup, p.ownRan = grp, 0
	return &y.stack[0]
}

// ownPiece books a piece of the column of all.
func (p *pass) ownPiece(q *piece) {
	ns := q.Hi - q.Lo
	detail, stack := uint32(q.detail), uint32(0)
	if !q.leaf.named() {
		detail = 0
	}
	if q.leaf.hasSite() || q.class != classOwn && q.leaf != codeSTW {
		stack = q.seg.Stack
	}
	switch q.leaf {
	case codeOnCPU, codeSTWWork, codeSweep, codeAssist:
		if q.seg.State() == timeline.Running {
			p.ownRan += ns
		}
	}
	p.ownGroup.all.book(q.class, q.leaf, stack, detail, ns)
}

// ownJoined books [lo,cursor) of a running, runnable or syscall segment in the column of all, and returns how long of a running
// one the thread was on a CPU.
func (p *pass) ownJoined(grp *group, g *timeline.G, s *timeline.Segment, seq uint32, lo int64, cursor *int64) (running int64) {
	f := p.ownFrame(grp, g, seq, lo, *cursor, classOwn)
	switch s.State() {
	case timeline.Running:
		p.y.joinRunning(f, s, lo, runningLeaf(s), false)
	case timeline.Syscall:
		p.y.joinRunning(f, s, lo, codeSyscall, true)
	default:
		p.y.joinRunnable(f, s, lo, 0)
	}
	*cursor = p.y.cursor
	return p.ownRan
}

// ownJoinedWait books of a wait in the column of all what the kernel's records tell, down to where they tell nothing. It says whether that was all.
func (p *pass) ownJoinedWait(grp *group, g *timeline.G, s *timeline.Segment, seq uint32, lo int64, cursor *int64, class classCode, leaf leafCode) bool {
	f := p.ownFrame(grp, g, seq, lo, *cursor, class)
	switch w := s.Wait(); {
	case collects(w):
		p.y.joinStoppable(f, s, lo, leaf)
	case w == timeline.WaitNetwork || w == timeline.WaitTimer || w == timeline.WaitMessage:
		if s.By() != timeline.EnderGoroutine {
			p.y.joinWait(f, s, lo)
		}
	}
	*cursor = p.y.cursor
	return *cursor <= lo
}

// lateness adds up how late readiness reached the program.
type lateness struct {
	h       histogram
	ns, max int64
}

func (l *lateness) add(ns int64) {
	ns = max(ns, 0)
	l.h.add(ns)
	l.ns += ns
	l.max = max(l.max, ns)
}

func (l *lateness) sum() account.LateSum {
	return account.LateSum{N: l.h.n, NS: l.ns, P50: l.h.quantile(0.5), P99: l.h.quantile(0.99), Max: l.max}
}
