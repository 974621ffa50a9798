package timeline

import (
	"math"
	"slices"

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
	since     int64  // when it began to do what it does
	held      int64  // since when who has it
	slot      uint32 // goroutine on it, or NoSlot
	who       uint32
	thread    uint32 // with which who has it
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
	ps        []proc
	spare     int32 // idle
	used      int32 // neither idle nor unknown
	gomax     int32
	gomaxMost int32
	set       bool
	gomaxNS   int64 // GOMAXPROCS x time up to gomaxAt
	gomaxAt   int64
	byCat     [categories]int64 // up to each P's since
	cap       Capacity          // the idle ones, up to idleAt
	idleAt    int64
	wakes     Moments // see Timeline.Wakes
	wakeNS    int64   // of the stretch that is open
	work      bool    // a goroutine is runnable
	stopped   bool    // the world is, or is being stopped
	whoNS     []int64 // by who, as in occupants
	threads   bool    // of each occupation its thread is kept

	blocks   []procBlock // ring
	cur      *procBlock  // the one that is filled
	room     int         // occupations that the blocks before cur have room for
	first    uint64      // number of the oldest kept
	next     uint64      // number of the one that is filled
	rotateAt int64       // when it must be closed for its length
	near     uint64      // see from
	sums     occupants   // scratch
	total    occupants   // of a block
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
	by         []uint32 // their threads, if they are kept
	sum        []Occupant
}

const (
	procBlocks   = 4096 // about 4 MB
	blockOcc     = 48
	historyOcc   = 1 << 22 // 48 MB, 64 with threads: room for all blocks of some 340 Ps; of more, and of those that damage makes up, the history is shorter
	blockNS      = 1 << 30
	maxProcs     = 1 << 16
	whoSpecialAt = whoNobody // who at or above is no FuncID
)

func (p *procs) init() {
	p.blocks = make([]procBlock, 1, procBlocks)
	p.cur = &p.blocks[0]
	p.rotateAt = math.MinInt64
}

func (p *procs) count() int32 { return max(p.gomax, p.used) }

// idle adds the time that Ps were idle up to now, of which kind it was. It comes before every change of what that depends on.
func (p *procs) idle(now int64) {
	d := now - p.idleAt
	if d <= 0 {
		return
	}
	p.idleAt = now
	n := p.spare
	if p.set {
		n = min(n, max(p.gomax-p.used, 0)) // Ps that a smaller GOMAXPROCS took away are not idle
	}
	switch {
	case n == 0:
	case p.stopped:
		p.cap.Stopped += int64(n) * d
	case p.work:
		p.cap.IdleWork += int64(n) * d
		if p.set {
			p.wakeNS += d
			return
		}
	default:
		p.cap.Idle += int64(n) * d
	}
	if p.wakeNS > 0 {
		p.wakes.add(p.wakeNS)
		p.wakeNS = 0
	}
}

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
		p.idle(now)
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
	}
	return &p.ps[i]
}

// change ends what P was doing. Who has it is the caller's.
func (p *procs) change(x *proc, cat category, now int64) {
	if x.cat <= procIdle || cat <= procIdle {
		p.idle(now)
		p.spare += one(cat == procIdle) - one(x.cat == procIdle)
		p.used += one(cat > procIdle) - one(x.cat > procIdle)
	}
	p.byCat[x.cat] += now - x.since
	x.since = now
	x.cat = cat
}

func one(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// give gives P to who, and writes down who had it until now.
func (p *procs) give(x *proc, who uint32, now int64) {
	if x.who != whoNobody && now > x.held {
		p.occupied(x, now)
		if b := p.cur; len(b.occ) >= blockOcc && len(b.occ) >= 2*len(p.ps) {
			x.who = whoNobody // not to be written again by the rotation
			p.rotate(now)
		}
	}
	x.who, x.held = who, now
}

// occupied writes down that x was held by x.who until now.
func (p *procs) occupied(x *proc, now int64) {
	i := x.who - whoSpecialAt // wraps
	for uint(i) >= uint(len(p.whoNS)) {
		p.whoNS = append(p.whoNS, make([]int64, max(64, len(p.whoNS)))...)
	}
	p.whoNS[i] += now - x.held
	b := p.cur
	b.occ = append(b.occ, occupation{uint32(x.held - b.begin), uint32(now - b.begin), x.who})
	if p.threads {
		b.by = append(b.by, x.thread)
	}
}

// rotate closes the block at now and begins the next.
func (p *procs) rotate(now int64) {
	b := p.cur
	if now == b.begin {
		return
	}
	for i := range p.ps {
		if x := &p.ps[i]; x.who != whoNobody && now > x.held {
			p.occupied(x, now)
			x.held = now
		}
	}
	p.rotateAt = min(now+blockNS, maxTime+1)
	b.end = now
	b.count = max(p.count(), 1)
	b.sum = b.sum[:0]
	p.room += cap(b.occ)
	for p.room > historyOcc {
		old := &p.blocks[p.first%procBlocks]
		p.room -= cap(old.occ)
		old.occ, old.by = nil, nil
		p.first++
	}
	p.next++
	if len(p.blocks) < procBlocks {
		n := min(len(p.ps), 1<<10) // numbers of Ps in a damaged trace may be any
		p.blocks = append(p.blocks, procBlock{begin: now, occ: make([]occupation, 0, max(blockOcc, 2*n)+n)})
		p.cur = &p.blocks[len(p.blocks)-1]
		return
	}
	p.cur = &p.blocks[p.next%procBlocks]
	p.room -= cap(p.cur.occ)
	*p.cur = procBlock{begin: now, occ: p.cur.occ[:0], by: p.cur.by[:0], sum: p.cur.sum[:0]}
	p.first = max(p.first, p.next-procBlocks+1)
}

// take puts the goroutine at slot on P i; old is who was on it.
func (p *procs) take(i int32, slot, who uint32, now int64) (old uint32, ok bool) {
	x := p.at(i)
	if x == nil {
		return 0, false
	}
	old = x.slot
	p.give(x, who, now)
	p.change(x, runs(who), now)
	x.slot, x.active = slot, true
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
	p.give(x, who, now)
	p.change(x, runs(who), now)
}

// holds tells what the goroutine on P i is at from now on, which changes nothing of what the P does.
func (p *procs) holds(i int32, who uint32, now int64) {
	if x := &p.ps[i]; x.who != who && x.who != whoNobody {
		p.give(x, who, now)
	}
}

// release takes whoever is on P i away.
func (p *procs) release(i int32, now int64, ident, stack uint32) {
	x := &p.ps[i]
	p.give(x, whoNobody, now)
	p.change(x, procIdle, now)
	x.slot = exectrace.NoSlot
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
		p.give(x, whoNobody, now)
		p.change(x, procUnknown, now)
		x.slot, x.active, x.lastIdent, x.lastStack = exectrace.NoSlot, false, 0, 0
	}
}

// Capacity is what the Ps did up to now.
func (t *Timeline) Capacity() Capacity { return t.procs.capacity(t.now) }

// Procs is the largest GOMAXPROCS there was.
func (t *Timeline) Procs() int { return int(max(t.procs.gomaxMost, t.procs.count())) }

// Runnable is the most and the average number of goroutines that were runnable at once.
func (t *Timeline) Runnable() (most int, avg float64) {
	if t.now > 0 {
		avg = float64(t.runnableNS+int64(t.runnable)*t.now) / float64(t.now)
	}
	return int(t.runnableMax), avg
}

// RunningBy lists how long the goroutines with each entry function held a P, and the GC's workers by mode.
func (t *Timeline) RunningBy() []Occupant {
	p := &t.procs
	var sums occupants
	for i, ns := range p.whoNS {
		if ns > 0 {
			sums.add(uint32(i)+whoSpecialAt, ns) // wraps
		}
	}
	for i := range p.ps {
		if x := &p.ps[i]; x.who != whoNobody && t.now > x.held {
			sums.add(x.who, t.now-x.held)
		}
	}
	return slices.DeleteFunc(sums.take(), func(o Occupant) bool { return o.Who == WhoSweep })
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
		p.give(x, whoNobody, now)
		if x.cat != procIdle {
			p.change(x, procIdle, now)
		}
		x.slot = exectrace.NoSlot
	}
	if t.ranges.phase != stwNone && ev.From != exectrace.Undetermined && was != x.active {
		t.ranges.procChanged(t, x, ev, now)
	}
}
