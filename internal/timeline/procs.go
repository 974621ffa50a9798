package timeline

import "github.com/whystall/whystall/exectrace"

// category is what a P was doing.
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

// runs is what a P does while occupant runs on it.
func runs(occupant uint32) category {
	switch occupant {
	case HolderGCIdle:
		return procGCIdle
	case HolderGCDedicated, HolderGCFractional:
		return procGC
	}
	return procRun
}

type proc struct {
	since     int64  // start of what it does
	held      int64  // start of the occupant's hold
	slot      uint32 // goroutine on it, or NoSlot
	occupant  uint32
	thread    uint32 // with which the occupant holds it
	cat       category
	active    bool // started and not stopped
	number    uint16
	lastStack uint32
	lastIdent uint32
}

// Capacity is what the Ps did with their time, ns; it adds up to Total.
type Capacity struct {
	Running, GC, IdleGC, Syscall, Stopped, IdleWork, Idle, Unknown int64
	Total                                                          int64
}

// procs is who holds the Ps, what they do, and the history of both.
type procs struct {
	history
	ps        []proc
	spare     int32 // idle
	used      int32 // neither idle nor unknown
	gomax     int32
	gomaxMost int32
	set       bool  // gomax is known
	gomaxNS   int64 // GOMAXPROCS x time up to gomaxAt
	gomaxAt   int64
	byCat     [categories]int64 // up to each P's since
	cap       Capacity          // the idle categories, up to idleAt
	idleAt    int64
	wakes     Moments // see Timeline.Wakes
	wakeNS    int64   // of the stretch that is open
	work      bool    // a goroutine is runnable
	stopped   bool    // the world is, or is being stopped
}

// maxProcs bounds the numbers of Ps, which in a damaged trace may be any.
const maxProcs = 1 << 16

// count is how many Ps there are.
func (p *procs) count() int32 { return max(p.gomax, p.used) }

// idle adds the time up to now in which Ps were idle to its category. It comes before every change
// of what the category depends on.
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

// setWork says whether a goroutine is runnable from now on.
func (p *procs) setWork(work bool, now int64) {
	p.idle(now)
	p.work = work
}

// setStopped says whether the world is stopped from now on.
func (p *procs) setStopped(stopped bool, now int64) {
	if p.stopped != stopped {
		p.idle(now)
		p.stopped = stopped
	}
}

// capacity adds up to now. The part of GOMAXPROCS x time that no P's state covers is unknown.
func (p *procs) capacity(now int64) Capacity {
	p.idle(now)
	c := p.cap
	ns := p.byCat
	for i := range p.ps {
		x := &p.ps[i]
		ns[x.cat] += now - x.since
	}
	c.Running, c.GC, c.IdleGC, c.Syscall = ns[procRun], ns[procGC]+ns[procGCIdle], ns[procGCIdle], ns[procSyscall]
	known := c.Running + c.GC + c.Syscall + c.Stopped + c.IdleWork + c.Idle
	c.Total = max(known, p.gomaxNS+int64(p.gomax)*(now-p.gomaxAt))
	c.Unknown = c.Total - known
	return c
}

// setCount takes a new GOMAXPROCS. The first is taken to have held from the start.
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

// get is P i, made if it is not there; nil for a number that no P has.
func (p *procs) get(i int32) *proc {
	if i < 0 || i >= maxProcs {
		return nil
	}
	for int(i) >= len(p.ps) {
		p.ps = append(p.ps, proc{number: uint16(len(p.ps)), slot: exectrace.NoSlot, occupant: holderNobody})
	}
	return &p.ps[i]
}

// change ends what P x was doing. Its occupant is the caller's affair.
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

// give gives P x to occupant, and writes down who had it until now.
func (p *procs) give(x *proc, occupant uint32, now int64) {
	if x.occupant != holderNobody && now > x.held {
		p.add(x, now)
		if p.full(len(p.ps)) {
			x.occupant = holderNobody // not to be written again by the rotation
			p.rotate(now)
		}
	}
	x.occupant, x.held = occupant, now
}

// rotate closes the block of the history at now. Occupations that go on are cut there.
func (p *procs) rotate(now int64) {
	if now == p.cur.begin {
		return
	}
	for i := range p.ps {
		if x := &p.ps[i]; x.occupant != holderNobody && now > x.held {
			p.add(x, now)
			x.held = now
		}
	}
	p.history.rotate(now, max(p.count(), 1), len(p.ps))
}

// take puts the goroutine at slot on P i, and returns the slot of the goroutine that was on it.
func (p *procs) take(i int32, slot, occupant uint32, now int64) (old uint32, ok bool) {
	x := p.get(i)
	if x == nil {
		return 0, false
	}
	old = x.slot
	p.give(x, occupant, now)
	p.change(x, runs(occupant), now)
	x.slot, x.active = slot, true
	return old, true
}

// isWorker says that the goroutine on P i is a GC worker, of the kind occupant.
func (p *procs) isWorker(i int32, occupant uint32, now int64) {
	x := &p.ps[i]
	p.give(x, occupant, now)
	p.change(x, runs(occupant), now)
}

// rename gives the occupant of P i another name, and does not change what the P does.
func (p *procs) rename(i int32, occupant uint32, now int64) {
	if x := &p.ps[i]; x.occupant != occupant && x.occupant != holderNobody {
		p.give(x, occupant, now)
	}
}

// release takes the goroutine off P i: that with ident, which stood at stack.
func (p *procs) release(i int32, now int64, ident, stack uint32) {
	x := &p.ps[i]
	p.give(x, holderNobody, now)
	p.change(x, procIdle, now)
	x.slot = exectrace.NoSlot
	x.lastIdent, x.lastStack = ident, stack
}

// syscall: the goroutine on P i goes into a syscall. Back: it returns, and the P is still its own.
func (p *procs) syscall(i int32, now int64) {
	p.change(&p.ps[i], procSyscall, now)
}

func (p *procs) back(i int32, now int64) {
	x := &p.ps[i]
	p.change(x, runs(x.occupant), now)
}

// assist counts P i's time as the collector's. AssistEnd: as the program's again.
func (p *procs) assist(i int32, now int64) {
	cat := runs(p.ps[i].occupant)
	if cat == procRun {
		cat = procGC
	}
	p.turn(i, cat, now)
}

func (p *procs) assistEnd(i int32, now int64) { p.turn(i, runs(p.ps[i].occupant), now) }

// turn changes what P i does, unless it is in a syscall.
func (p *procs) turn(i int32, cat category, now int64) {
	if x := &p.ps[i]; x.cat != cat && x.cat != procSyscall {
		p.change(x, cat, now)
	}
}

// started: a thread has taken P x. InSyscall: for a goroutine in a syscall. Halted: it let go.
func (p *procs) started(x *proc, now int64) {
	x.active = true
	if x.cat == procUnknown {
		p.change(x, procIdle, now)
	}
}

func (p *procs) inSyscall(x *proc, now int64) {
	x.active = true
	if x.cat != procSyscall && x.slot == exectrace.NoSlot {
		p.change(x, procSyscall, now)
	}
}

func (p *procs) halted(x *proc, now int64) {
	x.active = false
	p.give(x, holderNobody, now)
	if x.cat != procIdle {
		p.change(x, procIdle, now)
	}
	x.slot = exectrace.NoSlot
}

// forget makes every P unknown: a gap.
func (p *procs) forget(now int64) {
	for i := range p.ps {
		x := &p.ps[i]
		p.give(x, holderNobody, now)
		p.change(x, procUnknown, now)
		x.slot, x.active, x.lastIdent, x.lastStack = exectrace.NoSlot, false, 0, 0
	}
}
