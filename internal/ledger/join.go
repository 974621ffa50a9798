package ledger

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/exectrace"
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
	lo, hi   int64
	leaf     leafCode
	detail   timeline.FuncID // behind whom, or asleep in what
	tid      uint32          // of codeNoCPU: who had the CPU, 0 idle; of a path's work: who was at it
	measured bool            // what held it is an event of the very thread
	on       bool            // of a path: somebody was at work on it
	named    bool            // of a path: why it went on is known
}

// joiner has what the join needs of the kernel's records.
type joiner struct {
	k    *timeline.Kernel
	tl   *timeline.Timeline
	base int64 // CLOCK_MONOTONIC of the timeline's 0

	begin, end int64 // relative, of what the records cover
	paths      paths
	ready      readiness
	sockets    lateness
	timers     lateness

	tids    map[uint32]uint32 // thread as the trace has it -> in the host's namespace; 0 not known
	behind  map[uint32]behind // by TID
	who     []Instead         // by behind.ref
	whoAt   map[Instead]uint32
	sleeps  map[[2]uint32]timeline.FuncID // by stacks
	details map[string]timeline.FuncID
	own     timeline.FuncID
	idle    timeline.FuncID

	parts     []part // scratch of the segment that is explained
	shares    []timeline.Share
	occ       []timeline.Occupant
	stretches []timeline.Stretch
	tiles     []timeline.ProcessTile
}

// behind is how who had the CPU is called.
type behind struct {
	detail timeline.FuncID
	ref    uint32
	own    bool
}

// Words for who had a CPU while a thread was queued for it.
const (
	behindOwn  = "own threads"
	behindIdle = "wake-up latency or steal" // nobody ran there: either the thread was about to come, or the host ran something else
)

// mostDetails bounds the names that commands and functions of other programs may add.
const mostDetails = 1 << 12

func newJoiner(k *timeline.Kernel, tl *timeline.Timeline) *joiner {
	j := &joiner{k: k, tl: tl, tids: map[uint32]uint32{}, behind: map[uint32]behind{}, whoAt: map[Instead]uint32{},
		sleeps: map[[2]uint32]timeline.FuncID{}, details: map[string]timeline.FuncID{}}
	j.own, j.idle = tl.Name(behindOwn), tl.Name(behindIdle)
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
		dst = append(dst, part{lo: lo, hi: end, leaf: on})
		lo = end
	}
	tail := max(lo, min(hi, j.end))
	switch {
	case lo >= tail:
	case tid == 0:
		dst = append(dst, part{lo: lo, hi: tail, leaf: codeMissing})
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
func (j *joiner) stretch(dst []part, tid uint32, s *timeline.Stretch, b, e int64, on leafCode, call bool) []part {
	p := part{lo: b, hi: e, measured: true}
	switch s.Doing {
	case timeline.ThreadOn:
		// In the middle of a fault or a reclaim that is what it works on.
		if leaf, ok := blockLeaf(s.Block); ok && s.Block >= timeline.BlockDisk && s.Block <= timeline.BlockNUMA {
			p.leaf = leaf
		} else if p.leaf = on; on == codeSyscall {
			p.leaf = codeOnCPU
		}
	case timeline.ThreadQueued:
		j.shares = j.k.Behind(tid, j.base+b, j.base+e, j.shares[:0])
		return j.byShares(dst, j.shares, b, e)
	case timeline.ThreadThrottled:
		p.leaf, p.measured = codeThrottled, !s.ByGroup
	case timeline.ThreadBlocked:
		leaf, ok := blockLeaf(s.Block)
		switch {
		case s.Block == timeline.BlockStopped:
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
func (j *joiner) byShares(dst []part, shares []timeline.Share, b, e int64) []part {
	at := b
	first := len(dst)
	for _, s := range shares {
		ns := min(s.NS, e-at)
		if ns <= 0 {
			continue
		}
		if s.TID == timeline.NobodyKnown {
			dst = append(dst, part{lo: at, hi: at + ns, leaf: codeNoCPU, tid: s.TID})
			at += ns
			continue
		}
		w := j.behindWhom(s.TID, j.base+at)
		if n := len(dst); n > first && dst[n-1].detail == w.detail && j.refOf(dst[n-1].tid) == w.ref {
			dst[n-1].hi = at + ns
		} else {
			dst = append(dst, part{lo: at, hi: at + ns, leaf: codeNoCPU, detail: w.detail, tid: s.TID, measured: true})
		}
		at += ns
	}
	if at < e { // behind whom is not known
		dst = append(dst, part{lo: at, hi: e, leaf: codeNoCPU, tid: timeline.NobodyKnown})
	}
	return dst
}

// behindWhom says how tid is called.
func (j *joiner) behindWhom(tid uint32, at int64) behind {
	b, ok := j.behind[tid]
	if ok {
		return b
	}
	i := Instead{}
	switch t, known := j.k.Name(tid, at); {
	case tid == 0:
		i, b.detail = Instead{Who: behindIdle, Kind: "idle"}, j.idle
	case known && t.Target:
		i, b.detail, b.own = Instead{Who: behindOwn, Kind: "own"}, j.own, true
	case !known:
		i, b.detail = Instead{Who: "unknown", Kind: "unknown"}, j.detail("unknown")
	default:
		name := plainComm(t.Comm)
		i, b.detail = Instead{Who: fmt.Sprintf("%s (pid %d)", name, t.PID), Kind: "neighbour"}, j.detail(name)
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

// refOf is the number of tid's name, that of nobody for who is not known.
func (j *joiner) refOf(tid uint32) uint32 {
	if b, ok := j.behind[tid]; ok {
		return b.ref
	}
	return whoUnknown
}

// plainComm is a command's name without the number of a CPU or worker that kernel threads have: "kworker", "ksoftirqd".
func plainComm(comm string) string {
	if i := strings.IndexByte(comm, '/'); i > 0 && strings.HasPrefix(comm, "k") {
		return comm[:i]
	}
	if comm == "" {
		return "unknown"
	}
	return comm
}

// blockLeaf is the leaf of what a thread is blocked in; false where that is not known, or none that has a leaf.
func blockLeaf(b timeline.Block) (leafCode, bool) {
	switch b {
	case timeline.BlockFutex:
		return codeAsleep, true
	case timeline.BlockNetwork:
		return codeNetwork, true
	case timeline.BlockTimer:
		return codeTimer, true
	case timeline.BlockPipe:
		return codePipe, true
	case timeline.BlockDisk:
		return codeDisk, true
	case timeline.BlockFault:
		return codeFault, true
	case timeline.BlockReclaim:
		return codeReclaim, true
	case timeline.BlockMemcg:
		return codeMemcg, true
	case timeline.BlockCompaction:
		return codeCompaction, true
	case timeline.BlockMmapLock:
		return codeMmapLock, true
	case timeline.BlockTLB:
		return codeTLB, true
	case timeline.BlockNUMA:
		return codeNUMA, true
	}
	return codeAsleep, false
}

// sleep is the function that a blocked thread sleeps in: the innermost of the user stack that is no plumbing, else of the kernel's.
func (j *joiner) sleep(s *timeline.Stretch) timeline.FuncID {
	if s.Block == timeline.BlockStopped {
		return j.detail(stopped)
	}
	key := [2]uint32{s.User, s.Kernel}
	id, ok := j.sleeps[key]
	if ok {
		return id
	}
	if name := sleepsIn(j.k, s); name != "" {
		id = j.detail(name)
	}
	j.sleeps[key] = id
	return id
}

// stopped is what a thread sleeps in that SIGSTOP, a debugger or the like stopped.
const stopped = "a stop by a signal or a debugger"

// sleepsIn names the function: "" where no stack was recorded.
func sleepsIn(k *timeline.Kernel, s *timeline.Stretch) string {
	if s.Block == timeline.BlockStopped {
		return stopped
	}
	last := ""
	for _, f := range k.Stack(s.User) {
		if f.Func == "" {
			continue
		}
		last = f.Func
		if !sleepPlumbing(f.Func) {
			return f.Func
		}
	}
	if last != "" {
		return last
	}
	for _, f := range k.Stack(s.Kernel) {
		switch f.Func {
		case "", "__schedule", "schedule", "schedule_timeout", "schedule_hrtimeout_range", "schedule_hrtimeout_range_clock", "io_schedule",
			"preempt_schedule_irq", "preempt_schedule_common", "__cond_resched":
			continue
		}
		return f.Func
	}
	return ""
}

// sleepPlumbing tells of a function that it only passes on that its caller wants to sleep or to lock.
func sleepPlumbing(name string) bool {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".abi0"), ".goroutine")
	switch name {
	case "runtime.futex", "runtime.futexsleep", "runtime.lock", "runtime.lock2", "runtime.lockWithRank", "runtime.(*mLockProfile).start",
		"runtime.notesleep", "runtime.notetsleep", "runtime.notetsleep_internal", "runtime.notetsleepg", "runtime.semasleep", "runtime.mPark",
		"runtime.usleep", "runtime.osyield", "runtime.systemstack", "runtime.systemstack_switch", "runtime.mcall", "runtime.semacquire",
		"syscall", "__futex_abstimed_wait_common", "__futex_abstimed_wait_common64", "__futex_abstimed_wait_cancelable64", "futex_wait", "__lll_lock_wait", "__lll_lock_wait_private",
		"pthread_mutex_lock", "__pthread_mutex_lock", "___pthread_mutex_lock", "pthread_cond_wait", "__pthread_cond_wait", "pthread_cond_timedwait":
		return true
	}
	return false
}

// joinRunning books [lo,cursor) of a running or syscall segment by what its thread did.
func (x *explainer) joinRunning(f *frame, s *timeline.Segment, lo int64, on leafCode, call bool) {
	j := x.j
	if s.Thread() == 0 || !j.covered(lo, x.cursor) {
		x.trusted(lo, on, f.ident, s)
		return
	}
	tid := j.host(s.Thread())
	for x.cursor > lo {
		from := lo
		var p *path
		if !call && tid != 0 {
			// Whoever stops the world or waits for a barrier is on its path until the world starts again.
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
				work = codeSTWWork
			}
			x.alongPath(f, s, p, from, after, work)
		}
	}
}

// trusted books what only the runtime tells.
func (x *explainer) trusted(lo int64, on leafCode, ident uint32, s *timeline.Segment) {
	p := x.piece(lo, on, ident, s)
	x.ofSTW(p, lo)
	x.emit(p)
}

// ofSTW names the stop-the-world that a piece of its initiator is of.
func (x *explainer) ofSTW(p *piece, lo int64) {
	if p.leaf != codeSTWWork {
		return
	}
	if n, ok := x.tl.STWBefore(lo, x.cursor); ok {
		stws, base := x.tl.STWs()
		p.n, p.kind = n, stws[n-base].Kind
	}
}

// parts emits parts that tile up to the cursor, latest first.
func (x *explainer) parts(f *frame, s *timeline.Segment, l []part) {
	x.j.parts = l[:0]
	for i := len(l) - 1; i >= 0; i-- {
		q := &l[i]
		if q.lo >= x.cursor {
			continue
		}
		p := x.piece(q.lo, q.leaf, f.ident, s)
		if q.leaf == codeSTWWork {
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

// alongPath books [b,e), which ends at the cursor, by a path's own leaves. work is the leaf of what of it was on a CPU.
func (x *explainer) alongPath(f *frame, s *timeline.Segment, t *path, b, e int64, work leafCode) {
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
		if !leaf.named() {
			p.kind = t.kind
			q.detail = 0
		}
		x.emitPart(p, &q)
	}
}

// joinRunnable books [lo,cursor) of who could run or, with late, could be told to: inside a stopped world the stop's own leaves, else
// by what the threads of the process did.
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
			x.alongPath(f, s, t, b, e, codeSTW)
			x.late = 0
		}
	}
}

// free books [lo,cursor) while the world was not stopped.
func (x *explainer) free(f *frame, s *timeline.Segment, lo int64, late pieceFlags) {
	j := x.j
	leaf := codeRunnable
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
		if q.leaf == codeLatePoll && late == 0 && !x.idleP(q.lo, q.hi) {
			p.leaf = codeRunnable // behind goroutines whose threads were blocked
		}
		x.emitPart(p, &q)
	}
}

func (x *explainer) emitLate(p *piece, late pieceFlags) {
	p.flags |= late
	x.emit(p)
}

// idleP tells whether a P was free at some time of [lo,hi).
func (x *explainer) idleP(lo, hi int64) bool {
	list, total := x.tl.Occupants(lo, hi, x.j.occ[:0])
	x.j.occ = list
	for _, o := range list {
		total -= o.NS
	}
	return total > 0
}

// together appends the parts of [lo,hi) by what the threads of the process did together, section 8 (b) to (e) of the rules. It is coverage and no
// hop, so none is measured.
func (j *joiner) together(dst []part, lo, hi int64) []part {
	j.tiles = j.k.Process(j.base+lo, j.base+hi, j.tiles[:0])
	for _, t := range j.tiles {
		b, e := t.Begin-j.base, t.End-j.base
		leaf := codeMissing
		switch t.State {
		case timeline.ProcessOn:
			leaf = codeRunnable
		case timeline.ProcessThrottled:
			leaf = codeThrottled
		case timeline.ProcessNone:
			leaf = codeLatePoll
		case timeline.ProcessQueued:
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

// joinWait books the part of a wait for a socket or a timer in which that was ready.
func (x *explainer) joinWait(f *frame, s *timeline.Segment, lo int64) {
	at, late, ok := x.j.ready.of(f.seg)
	if !ok {
		return
	}
	if at = max(at, lo); at < x.cursor {
		x.joinRunnable(f, s, at, late)
	}
}

// joinBarrier books of [lo,cursor) what was spent in ragged barriers as their own leaves, the rest as leaf.
func (x *explainer) joinBarrier(f *frame, s *timeline.Segment, lo int64, leaf leafCode) {
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

// joinStoppable books [lo,cursor) of a wait of the runtime's own: a stopped world's leaves, for who waits for the end of a mark phase
// the ragged barrier's, else leaf.
func (x *explainer) joinStoppable(f *frame, s *timeline.Segment, lo int64, leaf leafCode) {
	for x.cursor > lo {
		t, b, e, ok := x.j.paths.stopped(lo, x.cursor)
		if !ok {
			b, e = lo, lo
		}
		if e < x.cursor {
			if leaf == codeMarkTermQueue {
				x.joinBarrier(f, s, e, leaf)
			} else {
				x.joinCollected(f, s, e, leaf)
			}
		}
		if b < e {
			x.alongPath(f, s, t, b, e, codeSTW)
		}
	}
}

// joinCollected books [lo,cursor) of a wait for the garbage collector, or for the next to take a lock, as leaf, but where no thread of the process was on a CPU although one wanted to be: whoever
// is waited for is of this process, and did not get on for want of quota or CPU either. That is coverage and no hop, so it is not measured.
func (x *explainer) joinCollected(f *frame, s *timeline.Segment, lo int64, leaf leafCode) {
	j := x.j
	if leaf == codeUnknown || !j.covered(lo, x.cursor) {
		x.emitTo(lo, leaf, f.ident, s)
		return
	}
	x.emitTo(max(lo, j.end), leaf, f.ident, s) // of before and after the recording nothing is known
	j.parts = j.together(j.parts[:0], max(lo, j.begin), x.cursor)
	l := j.parts
	for i := len(l) - 1; i >= 0; i-- {
		q := l[i]
		if q.lo >= x.cursor || q.leaf != codeThrottled && q.leaf != codeNoCPU {
			continue
		}
		x.emitTo(q.hi, leaf, f.ident, s)
		x.emitPart(x.piece(q.lo, q.leaf, f.ident, s), &q)
	}
	x.emitTo(lo, leaf, f.ident, s)
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
	y.stack = append(y.stack[:0], frame{lo: lo, ident: g.Ident, seg: seq})
	y.cursor, y.class = cursor, class
	p.ownGroup, p.ownRan = grp, 0
	return &y.stack[0]
}

// ownPiece books a piece of the column of all.
func (p *pass) ownPiece(q *piece) {
	ns := q.hi - q.lo
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
	switch w := s.Wait(); w {
	case timeline.WaitAssistCredit, timeline.WaitMarkTerm, timeline.WaitGCStart, timeline.WaitSTW, timeline.WaitScan:
		p.y.joinStoppable(f, s, lo, leaf)
	case timeline.WaitNetwork, timeline.WaitTimer, timeline.WaitMessage:
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

func (l *lateness) sum() LateSum {
	return LateSum{N: l.h.n, NS: l.ns, P50: l.h.quantile(0.5), P99: l.h.quantile(0.99), Max: l.max}
}
