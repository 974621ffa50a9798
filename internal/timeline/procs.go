package timeline

import (
	"github.com/whystall/whystall/exectrace"
)

// Who held a P, besides a goroutine by its entry function ([FuncID]).
const (
	WhoUnknown uint32 = 0 // a goroutine whose entry is not known, or nothing known

	WhoGCDedicated = ^uint32(0) - iota // GC workers, by mode
	WhoGCIdle
	WhoGCFractional
	WhoSweep // a goroutine whose allocation sweeps
	whoNobody
)

// What a P was doing.
type category uint8

const (
	procUnknown category = iota
	procIdle             // without a goroutine
	procRun
	procGC
	procGCIdle
	procSyscall
	categories
)

type proc struct {
	since     int64
	slot      uint32 // goroutine on it, or NoSlot
	who       uint32
	cat       category
	active    bool // started and not stopped
	lastStack uint32
	lastIdent uint32
}

// Capacity is what the Ps did with their time, ns; it adds up to Total.
type Capacity struct {
	Running, GC, IdleGC, Syscall, Stopped, IdleWork, Idle, Unknown int64
	Total                                                          int64
}

// procs is who holds the Ps, and a bounded history of it.
//
// The history is a ring of blocks. A block is a stretch of time with every occupation that lies in it, long ones cut
// at its borders, so a block's sums by who are exact and a question for a long stretch adds
// blocks instead of occupations.
type procs struct {
	ps         []proc
	n          [categories]int32
	gomax      int32
	gomaxMost  int32
	set        bool
	gomaxNS    int64 // GOMAXPROCS x time up to gomaxAt
	gomaxAt    int64
	byCat      [categories]int64 // up to each P's since
	cap        Capacity          // the idle ones, up to idleAt
	idleAt     int64
	work       bool // a goroutine is runnable
	stopped    bool // the world is, or is being stopped
	runnableNS int64
	whoNS      []int64  // by FuncID
	specialNS  [8]int64 // of those that are no entry functions

	blocks   []procBlock // ring
	cur      *procBlock  // the one that is filled
	first    uint64      // number of the oldest kept
	next     uint64      // number of the one that is filled
	rotateAt int64       // when it must be closed for its length
	near     uint64      // see from
}

type occupation struct{ begin, end, who uint32 } // relative to the block

// Occupant is a share of the Ps' time.
type Occupant struct {
	Who uint32
	NS  int64
}

type procBlock struct {
	begin, end int64
	count      int32
	occ        []occupation
	sum        []Occupant
}

const (
	procBlocks   = 4096 // about 4 MB
	blockOcc     = 48
	blockNS      = 1 << 30
	maxProcs     = 1 << 16
	whoSpecialAt = whoNobody // who at or above is no FuncID
)

func (p *procs) init() {
	p.blocks = make([]procBlock, 1, procBlocks)
	p.cur = &p.blocks[0]
	p.rotateAt = blockNS
}

func (p *procs) count() int32 { return max(p.gomax, p.busy()) }

func (p *procs) busy() int32 { return p.n[procRun] + p.n[procGC] + p.n[procGCIdle] + p.n[procSyscall] }

// idle adds the time that Ps were idle up to now, of which kind it was.
func (p *procs) idle(now int64) {
	d := now - p.idleAt
	p.idleAt = now
	n := p.n[procIdle]
	if d <= 0 || n == 0 {
		return
	}
	if p.set {
		n = min(n, max(p.gomax-p.busy(), 0)) // Ps that a smaller GOMAXPROCS took away are not idle
	}
	switch {
	case p.stopped:
		p.cap.Stopped += int64(n) * d
	case p.work:
		p.cap.IdleWork += int64(n) * d
	default:
		p.cap.Idle += int64(n) * d
	}
}

// free tells whether a P is idle that could run something.
func (p *procs) free() bool { return p.n[procIdle] > 0 && p.set && p.busy() < p.gomax && !p.stopped }

// setWork tells whether a goroutine is runnable, setStopped whether the world is.
func (p *procs) setWork(on bool, now int64) {
	p.idle(now)
	p.work = on
}

func (p *procs) setStopped(on bool, now int64) {
	if p.stopped != on {
		p.idle(now)
		p.stopped = on
	}
}

// capacity adds up to now. What the Ps' states do not tell of GOMAXPROCS x time is unknown.
func (p *procs) capacity(now int64) Capacity {
	p.idle(now)
	c := p.cap
	by := p.byCat
	for i := range p.ps {
		x := &p.ps[i]
		by[x.cat] += now - x.since
	}
	c.Running, c.GC, c.IdleGC, c.Syscall = by[procRun], by[procGC]+by[procGCIdle], by[procGCIdle], by[procSyscall]
	known := c.Running + c.GC + c.Syscall + c.Stopped + c.IdleWork + c.Idle
	c.Total = max(known, p.gomaxNS+int64(p.gomax)*(now-p.gomaxAt))
	c.Unknown = c.Total - known
	return c
}

// setCount takes a new GOMAXPROCS. The first is taken to have held from the beginning.
func (p *procs) setCount(n uint64, now int64) {
	c := int32(min(n, maxProcs))
	switch {
	case !p.set:
		p.set = true
	case c != p.gomax:
		p.idle(now)
		p.gomaxNS += int64(p.gomax) * (now - p.gomaxAt)
		p.gomaxAt = now
		p.rotate(now)
	}
	p.gomax = c
	p.gomaxMost = max(p.gomaxMost, c)
}

// at is P i, made if it is not there; nil for a number that no P has.
func (p *procs) at(i int32) *proc {
	if i < 0 || i >= maxProcs {
		return nil
	}
	for int(i) >= len(p.ps) {
		p.ps = append(p.ps, proc{slot: exectrace.NoSlot, who: whoNobody})
		p.n[procUnknown]++
	}
	return &p.ps[i]
}

// change ends what P was doing.
func (p *procs) change(x *proc, cat category, now int64) {
	if x.cat == procIdle || cat == procIdle {
		p.idle(now)
	}
	if x.who != whoNobody {
		p.occupied(x, now)
	}
	p.byCat[x.cat] += now - x.since
	x.since = now
	p.n[x.cat]--
	p.n[cat]++
	x.cat = cat
}

// occupied writes down that x was held by x.who until now.
func (p *procs) occupied(x *proc, now int64) {
	d := now - x.since
	if d <= 0 {
		return
	}
	if x.who < whoSpecialAt {
		for int(x.who) >= len(p.whoNS) {
			p.whoNS = append(p.whoNS, make([]int64, max(64, len(p.whoNS)))...)
		}
		p.whoNS[x.who] += d
	} else {
		p.specialNS[^x.who&7] += d
	}
	b := p.block()
	b.occ = append(b.occ, occupation{uint32(x.since - b.begin), uint32(now - b.begin), x.who})
	if len(b.occ) >= blockOcc && len(b.occ) >= 2*len(p.ps) {
		// x itself must not be written again by the rotation
		who := x.who
		x.who = whoNobody
		p.rotate(now)
		x.who = who
	}
}

func (p *procs) block() *procBlock { return p.cur }

// rotate closes the block at now and begins the next.
func (p *procs) rotate(now int64) {
	b := p.block()
	if now == b.begin {
		return
	}
	for i := range p.ps {
		if x := &p.ps[i]; x.who != whoNobody && now > x.since {
			b.occ = append(b.occ, occupation{uint32(x.since - b.begin), uint32(now - b.begin), x.who})
			if x.who < whoSpecialAt {
				for int(x.who) >= len(p.whoNS) {
					p.whoNS = append(p.whoNS, make([]int64, max(64, len(p.whoNS)))...)
				}
				p.whoNS[x.who] += now - x.since
			} else {
				p.specialNS[^x.who&7] += now - x.since
			}
			p.byCat[x.cat] += now - x.since
			x.since = now
		}
	}
	p.rotateAt = now + blockNS
	b.end = now
	b.count = max(p.count(), 1)
	b.sum = b.sum[:0]
	p.next++
	if len(p.blocks) < procBlocks {
		p.blocks = append(p.blocks, procBlock{begin: now, occ: make([]occupation, 0, max(blockOcc, 2*len(p.ps))+len(p.ps))})
		p.cur = &p.blocks[len(p.blocks)-1]
		return
	}
	p.cur = &p.blocks[p.next%procBlocks]
	*p.cur = procBlock{begin: now, occ: p.cur.occ[:0], sum: p.cur.sum[:0]}
	p.first = p.next - procBlocks + 1
}

// total adds up a block by who, once it is asked for.
func (b *procBlock) total() []Occupant {
	if len(b.sum) > 0 {
		return b.sum
	}
	for _, o := range b.occ {
		i := 0
		for i < len(b.sum) && b.sum[i].Who != o.who {
			i++
		}
		if i == len(b.sum) {
			b.sum = append(b.sum, Occupant{Who: o.who})
		}
		b.sum[i].NS += int64(o.end - o.begin)
	}
	return b.sum
}

// take puts the goroutine at slot on P i; old is who was on it.
func (p *procs) take(i int32, slot, who uint32, now int64) (old uint32, ok bool) {
	x := p.at(i)
	if x == nil {
		return 0, false
	}
	old = x.slot
	p.change(x, runs(who), now)
	x.slot, x.who, x.active = slot, who, true
	return old, true
}

func runs(who uint32) category {
	switch who {
	case WhoGCIdle:
		return procGCIdle
	case WhoGCDedicated, WhoGCFractional:
		return procGC
	}
	return procRun
}

// rename tells that it is a GC worker that is on P i.
func (p *procs) rename(i int32, who uint32, now int64) {
	x := &p.ps[i]
	p.change(x, runs(who), now)
	x.who = who
}

// holds tells what the goroutine on P i is at from now on, which changes nothing of what the P does.
func (p *procs) holds(i int32, who uint32, now int64) {
	if x := &p.ps[i]; x.who != who && x.who != whoNobody {
		p.change(x, x.cat, now)
		x.who = who
	}
}

// release takes whoever is on P i away.
func (p *procs) release(i int32, now int64, ident, stack uint32) {
	x := &p.ps[i]
	p.change(x, procIdle, now)
	x.slot, x.who = exectrace.NoSlot, whoNobody
	x.lastIdent, x.lastStack = ident, stack
}

func (p *procs) syscall(i int32, now int64) {
	p.change(&p.ps[i], procSyscall, now)
}

func (p *procs) back(i int32, now int64) {
	x := &p.ps[i]
	p.change(x, runs(x.who), now)
}

// assist counts the P's time as the collector's, or the program's again.
func (p *procs) assist(i int32, on bool, now int64) {
	x := &p.ps[i]
	cat := runs(x.who)
	if on && cat == procRun {
		cat = procGC
	}
	if x.cat != cat && x.cat != procSyscall {
		p.change(x, cat, now)
	}
}

// forget makes every P unknown: a gap.
func (p *procs) forget(now int64) {
	for i := range p.ps {
		x := &p.ps[i]
		p.change(x, procUnknown, now)
		x.slot, x.who, x.active, x.lastIdent, x.lastStack = exectrace.NoSlot, whoNobody, false, 0, 0
	}
}

// Capacity is what the Ps did up to now.
func (t *Timeline) Capacity() Capacity { return t.procs.capacity(t.now) }

// Procs is the largest GOMAXPROCS there was.
func (t *Timeline) Procs() int { return int(max(t.procs.gomaxMost, t.procs.count())) }

// Runnable is the most and the average number of goroutines that were runnable at once.
func (t *Timeline) Runnable() (most int, avg float64) {
	if t.now > 0 {
		avg = float64(t.procs.runnableNS) / float64(t.now)
	}
	return int(t.runnableMax), avg
}

// RunningBy lists how long the goroutines with each entry function held a P, and the GC's workers by mode.
func (t *Timeline) RunningBy() []Occupant {
	var l []Occupant
	p := &t.procs
	for who, ns := range p.whoNS {
		if ns > 0 {
			l = append(l, Occupant{uint32(who), ns})
		}
	}
	for _, who := range []uint32{WhoGCDedicated, WhoGCIdle, WhoGCFractional} {
		if ns := p.specialNS[^who&7]; ns > 0 {
			l = append(l, Occupant{who, ns})
		}
	}
	return l
}

// proc takes a P from one state to another.
func (t *Timeline) proc(ev *exectrace.Event, now int64) {
	p := &t.procs
	x := p.at(int32(ev.Proc))
	if x == nil {
		return
	}
	was := x.active
	switch ev.To {
	case exectrace.Running:
		x.active = true
		if x.cat == procUnknown {
			p.change(x, procIdle, now)
		}
	case exectrace.Syscall:
		x.active = true
		if x.cat != procSyscall && x.slot == exectrace.NoSlot {
			p.change(x, procSyscall, now)
		}
	default:
		x.active = false
		if x.slot != exectrace.NoSlot {
			if g := t.Slot(x.slot); g != nil && g.proc == int32(ev.Proc) {
				x.lastIdent, x.lastStack = g.Ident, g.stack
				g.proc = -1
			}
		}
		if x.cat != procIdle || x.who != whoNobody {
			p.change(x, procIdle, now)
		}
		x.slot, x.who = exectrace.NoSlot, whoNobody
	}
	if t.ranges.phase != stwNone && ev.From != exectrace.Undetermined && was != x.active {
		t.ranges.procChanged(t, x, ev, now)
	}
}
