package request

import (
	"math/bits"

	"github.com/whystall/whystall/exectrace"
)

// waitClass is what a wait could be ended by, as far as its reason says.
type waitClass uint8

const (
	waitOther waitClass = iota // locks, the runtime's own: never idle
	waitNet
	waitChan // receive or select
	waitTimer
	waitSend
	waitGroup // sync: WaitGroup among others
)

// own: a wait for something outside the goroutine's own doing.
func (c waitClass) own() bool { return c >= waitNet && c <= waitSend }

func classOf(r exectrace.Reason) waitClass {
	switch r {
	case exectrace.ReasonNetwork:
		return waitNet
	case exectrace.ReasonSelect, exectrace.ReasonChanRecv:
		return waitChan
	case exectrace.ReasonSleep:
		return waitTimer
	case exectrace.ReasonChanSend:
		return waitSend
	case exectrace.ReasonSync:
		return waitGroup
	}
	return waitOther
}

// site is a place where goroutines of one unknown entry function wait, and who ended those waits.
type site struct {
	entry   uint32
	depth   int32  // frames from its innermost program frame to the root
	frame   string // that frame's function
	blocks  uint32
	net     uint32
	timer   uint32
	other   uint32 // a goroutine of another entry function
	bad     uint32 // its own kind, the runtime, or a wait that cannot be idle
	replies uint32 // of other: by a goroutine that the waiter itself had woken: an answer
	members uint64 // who waited here: a bit each of 64 hashes
}

// entry is an entry function and what its goroutines are.
type entry struct {
	name     string
	role     role
	kind     *server                             // nil: unknown
	idle     func(frames []exectrace.Frame) bool // of kind
	sites    []uint32
	members  uint64
	blocks   uint32
	next     uint32 // number of blocks at which to try to decide
	idleSite uint32 // decided: where its members wait for work
	accepts  bool   // waits for connections: hands them on
	accepted bool   // created by one that does
	marked   bool   // has user tasks or regions of its own
	whole    bool   // decided: born, works, dies
	died     uint32 // members whose whole life was seen

	// of the kept activations:
	count, served, spawned, wrote int64
}

// forget drops what was counted while learning, and keeps what was decided.
func (e *entry) forget() {
	e.count, e.served, e.spawned, e.wrote = 0, 0, 0, 0
}

// entry interns an entry function.
func (f *Finder) entry(name string) uint32 {
	if id, ok := f.entryIDs[name]; ok {
		return id
	}
	id := uint32(len(f.entries))
	f.entryIDs[name] = id
	e := entry{name: name, role: roleUnknown, next: 32}
	for i := range servers {
		if s := &servers[i]; s.match(name) {
			e.role, e.kind, e.idle = s.role, s, s.idle
			break
		}
	}
	f.entries = append(f.entries, e)
	return id
}

// isIdle: a member at this stack waits for work.
func (f *Finder) isIdle(g *gstate, in *stackInfo) bool {
	switch g.role {
	case roleHTTP1:
		return in.where == whereIdle || in.where == whereHandshake
	case roleLoop:
		return in.marks&markIdle != 0
	case roleUnknown:
		e := &f.entries[g.entry]
		return in.site != 0 && in.site == e.idleSite && !e.marked && g.flags&flagChild == 0
	}
	return false
}

// loopBlock: a goroutine of a loop, known or not, waits.
func (f *Finder) loopBlock(g *gstate, in *stackInfo, t exectrace.Time) {
	if g.flags&flagUser != 0 && g.phase == phaseOpen {
		f.see(g, in, t)
		return
	}
	if f.isIdle(g, in) {
		if g.phase == phaseOpen {
			if k := f.entries[g.entry].kind; k != nil && k.needWrite && g.writes == 0 {
				g.serial++
			} else {
				f.close(g, t)
			}
		}
		g.phase = phaseIdle
	} else {
		f.see(g, in, t)
	}
	if g.role == roleUnknown {
		f.learn(g, in)
	}
}

// learn counts a wait of an unknown group until its idle wait is decided.
func (f *Finder) learn(g *gstate, in *stackInfo) {
	e := &f.entries[g.entry]
	if in.marks&markAccept != 0 {
		e.accepts = true
	}
	if e.idleSite != 0 || e.accepts || in.site == 0 || g.flags&flagChild != 0 {
		return
	}
	g.site = in.site
	bit := uint64(1) << (uint64(g.id) * 0x9e3779b97f4a7c15 >> 58)
	s := &f.sites[in.site]
	s.blocks++
	s.members |= bit
	e.members |= bit
	if e.blocks++; e.blocks >= e.next {
		e.next *= 4
		f.decide(g.entry, 8)
	}
}

// woken: who ended an unknown goroutine's wait; on is nil when no goroutine did.
func (f *Finder) woken(g, on *gstate) {
	if g.site == 0 {
		return
	}
	s := &f.sites[g.site]
	switch {
	case g.class == waitNet:
		s.net++ // whoever ended it: pollers' names lie
	case g.class == waitTimer, g.class == waitChan && on == nil:
		s.timer++
	case g.class != waitChan:
		s.bad++
	case on.role == roleNever && f.entries[on.entry].name == "runtime.timerproc":
		s.timer++
	case on.entry == g.entry, on.role == roleNever && isRuntime(f.entries[on.entry].name):
		s.bad++
	default:
		s.other++
		if on.wokenBy == g.slot {
			s.replies++
		}
	}
}

// decide picks the idle wait of an unknown group: the shallowest place that every member returns to and that is
// ended from outside the group; network before channel before timer. At a place to be chosen every
// member must have returned returns times on average.
func (f *Finder) decide(id uint32, returns uint32) {
	e := &f.entries[id]
	if e.role != roleUnknown || e.idleSite != 0 || e.accepts || e.marked {
		return
	}
	best := uint32(0)
	for _, sid := range e.sites {
		s := &f.sites[sid]
		good, all := s.net+s.timer+s.other-min(s.other, s.replies), s.net+s.timer+s.other+s.bad
		switch {
		case s.blocks < returns, int(s.blocks) <= bits.OnesCount64(s.members),
			good == 0, good*2 < all,
			bits.OnesCount64(s.members)*10 < bits.OnesCount64(e.members)*9:
			continue
		}
		if best == 0 || f.before(s, &f.sites[best], e.accepted) {
			best = sid
		}
	}
	if best != 0 {
		e.idleSite = best
	}
}

// before: a is the better idle wait.
func (f *Finder) before(a, b *site, accepted bool) bool {
	// One that was created with a connection waits for that, however deep its reader lies.
	if accepted && (a.tier() == tierNet) != (b.tier() == tierNet) {
		return a.tier() == tierNet
	}
	if a.depth != b.depth {
		return a.depth < b.depth
	}
	if a.tier() != b.tier() {
		return a.tier() < b.tier()
	}
	return a.blocks > b.blocks
}

// tier orders unknown groups by how likely they are what a user calls a request.
type tier uint8

const (
	tierKnown tier = iota
	tierNet
	tierChan
	tierLife
	tierTimer
)

func (s *site) tier() tier {
	switch {
	case s.net >= s.other && s.net >= s.timer:
		return tierNet
	case s.other >= s.timer:
		return tierChan
	}
	return tierTimer
}

// born: a goroutine of an unknown group: its whole life may be an activation.
func (f *Finder) born(g *gstate, t exectrace.Time) {
	e := &f.entries[g.entry]
	if g.flags&flagChild == 0 && e.idleSite == 0 && !e.marked {
		f.open(g, t, 0)
	}
}

// died: its end. What was busy since its idle wait saw its connection or its queue close: that is no request.
func (f *Finder) died(g *gstate, t exectrace.Time) {
	e := &f.entries[g.entry]
	if g.phase != phaseMaybe || g.flags&flagChild != 0 || e.idleSite != 0 || e.marked {
		g.phase = phaseNone
		return
	}
	if e.died++; e.died >= 3 {
		e.whole = true
	}
	if e.whole {
		f.proven(g)
		f.close(g, t)
	}
	g.phase = phaseNone
}
