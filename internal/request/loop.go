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
	local   uint8  // its number among the entry's sites, as far as there are bits
	blocks  uint32 // waits, and reads that did not have to
	returns uint32 // of blocks: by members that had waited here before
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
	busy     bool   // decided: never waits for work: a round is from one answer to the next
	launch   launch
	died     uint32 // members whose whole life was seen

	relayGroup GroupID // of the requests that it reads and others answer; NoGroup: none yet
	group      GroupID // of its activations that are nobody's tasks or regions; NoGroup: none yet
	groupSite  uint32  // idleSite when group was set
	lastUser   GroupID // of its last task or region

	// of the kept activations:
	count, served, spawned, wrote, tail, waits int64

	// of all that its goroutines did:
	sends  int64 // writes to connections
	gives  int64 // wakes of others that waited for work
	again  int64 // of sends and gives, those by a goroutine that had done so before
	passes int64 // of requests it was given
	unseen int64 // reads that gave nobody visible work
	conds  int64 // waits for a sync.Cond
	blind  int64 // of its requests: whose answer's write was not seen
}

// forget drops what was counted while learning, and keeps what was decided.
func (e *entry) forget() {
	e.count, e.served, e.spawned, e.wrote, e.tail, e.waits = 0, 0, 0, 0, 0, 0
	e.sends, e.gives, e.again, e.unseen, e.blind, e.conds = 0, 0, 0, 0, 0, 0
}

// entry interns an entry function.
func (f *Finder) entry(name string) uint32 {
	if id, ok := f.entryIDs[name]; ok {
		return id
	}
	id := uint32(len(f.entries))
	f.entryIDs[name] = id
	e := entry{name: name, role: roleUnknown, next: 32, group: NoGroup, relayGroup: NoGroup, lastUser: NoGroup, launch: launch{decided: isLauncher(name)}}
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
	if g.role == roleUnknown && g.class.own() && f.launched(g, in) {
		return
	}
	if f.isIdle(g, in) {
		if g.phase == phaseOpen { // else it was only looking whether there is more to do
			if k := f.entries[g.entry].kind; k != nil && k.needWrite && g.writes == 0 {
				g.serial++
			} else {
				f.close(g, t)
			}
		}
		g.phase = phaseIdle
		g.flags &^= flagFresh
	} else {
		f.again(g)
		f.see(g, in, t)
	}
	if g.role == roleUnknown {
		f.learn(g, in)
	}
}

// loopRead: a member reads where it also waits for work. After an answer was written, or on a new connection, this is the
// next request, if one is there already: what follows will tell.
func (f *Finder) loopRead(g *gstate, t exectrace.Time) {
	if g.phase == phaseOpen && g.role == roleUnknown && g.flags&flagUser == 0 {
		f.relayRead(g, t)
	}
	switch {
	case g.flags&flagUser != 0 && g.phase == phaseOpen:
	case g.phase == phaseOpen && g.writes > 0:
		f.close(g, t)
		f.open(g, t, flagTail)
	case g.phase == phaseNone && g.flags&flagWoke != 0:
		f.open(g, g.begin, flagTail)
	case g.phase != phaseOpen && g.flags&flagFresh != 0:
		f.open(g, t, flagTail)
	}
	g.flags &^= flagFresh
}

// again: a loop that read on without a wait does something: there was a next request.
func (f *Finder) again(g *gstate) {
	if g.phase == phaseMaybe && g.flags&flagTail != 0 && g.role != roleHTTP1 {
		f.proven(g)
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
	f.visit(g, in.site)
	if e.blocks++; e.blocks >= e.next {
		e.next *= 4
		f.decide(g.entry, 8)
	}
}

// visit counts that g is at the site, and whether it has been before.
func (f *Finder) visit(g *gstate, id uint32) {
	s := &f.sites[id]
	bit := uint64(1) << (uint64(g.id) * 0x9e3779b97f4a7c15 >> 58)
	s.blocks++
	s.members |= bit
	f.entries[g.entry].members |= bit
	if been := uint64(1) << (s.local & 63); g.visited&been != 0 {
		s.returns++
	} else {
		g.visited |= been
	}
	g.flags &^= flagWrote
}

// learnRead counts a read that did not have to wait, after an answer: where its loop begins again on a busy connection.
func (f *Finder) learnRead(g *gstate, in *stackInfo) {
	switch {
	case in.marks&markNetWrite != 0:
		g.flags |= flagWrote
	case g.flags&flagWrote != 0 && in.marks&markNetRead != 0 && in.site != 0 && f.entries[g.entry].idleSite == 0:
		f.visit(g, in.site)
		f.sites[in.site].net++
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
// ended from outside the group; network before channel before timer. At a place to be chosen members must have returned
// at least returns times.
func (f *Finder) decide(id uint32, returns uint32) {
	e := &f.entries[id]
	if e.role != roleUnknown || e.idleSite != 0 || e.accepts || e.marked || e.busy {
		return
	}
	var best, soon uint32 // soon: would be better, but has not been returned to often enough
	for _, sid := range e.sites {
		s := &f.sites[sid]
		good, all := s.net+s.timer+s.other-min(s.other, s.replies), s.net+s.timer+s.other+s.bad
		switch {
		case s.tier() == tierTimer && f.shallower(e, s): // sleeps in the middle of its work
		case s.returns == 0, s.returns*3 < s.blocks, good == 0, good*2 < all,
			bits.OnesCount64(s.members)*10 < bits.OnesCount64(e.members)*9:
		case s.returns < returns:
			if soon == 0 || f.before(s, &f.sites[soon], e.accepted) {
				soon = sid
			}
		case best == 0 || f.before(s, &f.sites[best], e.accepted):
			best = sid
		}
	}
	if best == 0 || f.sites[best].tier() == tierTimer {
		if f.learning {
			return // what others wait for tells more, and is known at the end of the look ahead
		}
		// Who sleeps between its answers, while what is read is given to nobody who waits, does not wait for work. A sync.Cond is how others tell
		// a writer of it [nats-server: 8 ms of its wait for the next message were each message's].
		if n := e.gives + e.sends; e.again >= busyLeast && e.again*4 >= n*3 && (best == 0 || n*8 >= int64(f.sites[best].blocks)) && e.conds*8 < n && f.neverTold(e) {
			e.busy = f.unseenReads() >= busyLeast
			if e.busy {
				return
			}
		}
	}
	if best != 0 && (soon == 0 || f.before(&f.sites[best], &f.sites[soon], e.accepted)) {
		e.idleSite = best
	}
}

// shallower: the group also waits for messages nearer its root than s.
func (f *Finder) shallower(e *entry, s *site) bool {
	for _, id := range e.sites {
		if o := &f.sites[id]; o.depth < s.depth && o.net+o.other > 0 {
			return true
		}
	}
	return false
}

// busyLeast is how many answers are looked at before one is taken for a worker that never waits.
const busyLeast = 16

// unseenReads counts the reads that gave work to nobody who waited for some.
func (f *Finder) unseenReads() (n int64) {
	for i := range f.entries {
		n += f.entries[i].unseen
	}
	return n
}

// neverTold: what members of e wait for are no messages, as far as anybody returned to the wait.
func (f *Finder) neverTold(e *entry) bool {
	for _, id := range e.sites {
		if s := &f.sites[id]; s.returns > 0 && s.net+s.other > s.replies {
			return false
		}
	}
	return true
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
	if g.flags&flagChild == 0 && e.idleSite == 0 && !e.marked && !e.busy {
		f.open(g, t, 0)
	}
}

// died: its end. What was busy since its idle wait saw its connection or its queue close: that is no request.
func (f *Finder) died(g *gstate, t exectrace.Time) {
	e := &f.entries[g.entry]
	if g.phase != phaseMaybe || g.flags&(flagChild|flagTail) != 0 || e.idleSite != 0 || e.marked {
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
