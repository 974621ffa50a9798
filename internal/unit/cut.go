package unit

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/sched"
)

// units cuts each life with a role into units of work.
func (f *finder) units() {
	lo, hi := f.timeline.Span()
	var c cutter
	c.f = f
	f.timeline.Each(lo, hi, func(tid uint32, s *sched.Stretch) {
		f.tid = tid
		if c.life != nil && (c.life.tid != tid || s.Begin >= c.life.end && s.Doing == sched.Gone) {
			c.end()
		}
		if s.Doing == sched.Gone {
			return
		}
		if c.life == nil {
			c.start(f.set.startingAt(tid, s.Begin))
		}
		if c.life != nil {
			c.see(s)
		}
	})
	c.end()
}

// cutter cuts one life after the other into units. A unit opens with the life and with each end of
// a wait for work, and closes with the start of the next and with the life.
type cutter struct {
	f     *finder
	life  *life
	role  *role
	unit  Unit
	open  bool  // unit is under way, and:
	lost  bool  // records are missing within
	timed bool  // none is open, but the thread works since a timer went off
	head  bool  // it was under way when the recording started
	born  bool  // it starts with the thread
	held  bool  // its thread waited for something else than work, for long
	onNS  int64 // on a CPU
}

// start takes up a life; nil for one without a role, which has no units.
func (c *cutter) start(l *life) {
	c.life = l
	if l == nil {
		return
	}
	c.role = &c.f.set.roles[l.role]
	c.open, c.lost, c.held, c.timed = true, false, false, false
	c.head, c.born = !l.born, l.born
	c.unit, c.onNS = Unit{Begin: l.begin, TID: l.tid}, 0
	if l.born {
		c.unit.Waker = l.maker
		c.unit.Begin = c.f.makingStart(l)
	}
}

// see takes the life's next stretch.
func (c *cutter) see(s *sched.Stretch) {
	if c.role.whole {
		if s.Doing == sched.Unknown {
			c.lost = true
		}
		return
	}
	switch {
	case s.Doing == sched.Unknown:
		c.lost = true
	case s.Doing == sched.OnCPU:
		c.run(s)
	case s.Doing != sched.Blocked || s.End != s.Whole.End:
	case !c.idle(s):
		c.held = c.held || s.Whole.End-s.Whole.Begin >= leastHeldNS
	default:
		if c.open {
			c.close(s.Whole.Begin, request.Kept)
		}
		c.endTimed(s.Whole.Begin)
		switch c.f.endOf(s) {
		case endSignal: // it goes back to its wait
			return
		case endTimer:
			if c.role.tier != tierTimer { // a timeout: it works for no request, or only looks for more to do
				c.timed, c.unit.Begin, c.onNS = true, s.End, 0
				return
			}
		}
		if _, hi := c.f.timeline.Span(); s.End >= hi {
			return
		}
		c.begin(s.End)
		if s.WakerTarget && !s.ByInterrupt {
			c.unit.Waker = s.Waker
		}
	}
}

// begin opens a unit of the life's, which was not under way before.
func (c *cutter) begin(at int64) {
	c.open, c.lost, c.head, c.born, c.held = true, false, false, false, false
	c.unit, c.onNS = Unit{Begin: at, TID: c.life.tid}, 0
}

// loops reports whether the life is a loop around many sockets.
func (c *cutter) loops() bool { return c.life.aroundSockets() && c.role.tier == tierNet }

// run takes a stretch on a CPU. A loop around many sockets that has much to do answers one request
// after the other, and does not come to wait in between: what it does for each socket is a unit.
// The first has the wait for the CPU, which the others had as well before the loop came to them:
// since when they lay in their sockets is found later (unread.go).
func (c *cutter) run(s *sched.Stretch) {
	at := s.Begin
	if c.loops() {
		if c.timed {
			at = c.untime(s)
		}
		c.f.timeline.EventsOf(c.life.tid, s.Begin, s.End, func(e *sched.Event) bool {
			if !c.open || e.Begin-c.unit.Begin < leastTurnNS {
				return true
			}
			c.onNS += e.Begin - at
			at = e.Begin
			switch {
			case c.held:
				c.f.set.Loop.Behind++
			case c.onNS >= leastHeldNS:
				c.f.set.Loop.BusyBehind++
			}
			c.close(at, request.Kept)
			c.begin(at)
			return true
		}, kernel.Turn)
	}
	c.onNS += s.End - at
}

// untime ends what the thread does since a timer went off where it reads data that lay in a socket
// meanwhile: a unit starts there. It returns from when on the stretch s belongs to that unit.
func (c *cutter) untime(s *sched.Stretch) int64 {
	read := int64(-1)
	c.f.timeline.EventsOf(c.life.tid, s.Begin, s.End, func(e *sched.Event) bool {
		if e.End >= s.Begin && e.End < s.End && (read < 0 || e.End < read) {
			read = e.End
		}
		return true
	}, kernel.SocketReady)
	if read < 0 {
		return s.Begin
	}
	c.onNS += read - s.Begin
	c.endTimed(read)
	c.begin(read)
	return read
}

// endTimed ends what the thread did since a timer went off.
func (c *cutter) endTimed(at int64) {
	if c.timed && c.onNS >= leastHeldNS && c.loops() {
		c.f.longTurn(c.life.tid, span{c.unit.Begin, at}, c.onNS)
		c.f.set.Loop.Timed++
	}
	c.timed = false
}

// leastHeldNS is as long as a wait within a unit, or its computing, must be to count as one that
// holds a loop up.
const leastHeldNS = 2e6

// leastTurnNS is as short as a turn may be. The recorder tells none apart that are shorter.
const leastTurnNS = 50e3

// idle reports whether s is a wait for work of the life.
func (c *cutter) idle(s *sched.Stretch) bool {
	k := c.f.keyOf(s)
	return k.block == sched.BlockFutex && c.role.queues[k.arg] || c.life.waitsForWorkAt(&k)
}

// end ends the life and closes its last unit.
func (c *cutter) end() {
	if c.life == nil {
		return
	}
	if c.open {
		why, end := request.OpenEnd, c.life.end
		switch {
		case c.life.died && c.role.whole:
			why = request.Kept
			c.unit.Joiner, end = c.f.stackGivenBack(c.life)
		case c.life.died:
			// It saw its connection or its queue close: no unit of work.
			c.open = false
		case c.head:
			why = request.OpenBegin
		}
		if c.open {
			c.close(end, why)
		}
	}
	c.life, c.open = nil, false
}

// close closes the open unit at a time. If why is Kept the unit may still have to be left out.
func (c *cutter) close(at int64, why request.LeftOut) {
	switch {
	case c.held:
		c.f.set.Loop.Held++
	case c.onNS >= leastHeldNS:
		c.f.set.Loop.Busy++
	}
	if c.onNS >= leastHeldNS && c.loops() {
		c.f.longTurn(c.unit.TID, span{c.unit.Begin, at}, c.onNS)
	}
	c.open, c.held = false, false
	switch {
	case why != request.Kept:
	case c.head:
		why = request.OpenBegin
	case c.lost:
		why = request.Lost
	}
	u := c.unit
	u.Taken, u.End, u.LeftOut = u.Begin, at, why
	u.Group = c.group()
	g := &c.f.set.Groups[u.Group]
	if c.f.options.Entry != nil && why == request.Kept && !c.f.options.Entry.MatchString(g.Entry) {
		u.LeftOut = request.Unfiltered
	}
	if u.LeftOut == request.Kept {
		g.Count++
		c.role.wallNS += u.End - u.Begin
	} else {
		g.LeftOut[u.LeftOut]++
	}
	if len(c.f.set.Units) >= maxUnits {
		c.f.tooMany++
		return
	}
	c.f.set.Units = append(c.f.set.Units, u)
	c.f.unitCPU = append(c.f.unitCPU, uint32(min(c.onNS, math.MaxUint32)))
}

// group is the open unit's group, which is made at its first unit.
func (c *cutter) group() request.GroupID {
	r := c.role
	at, kind := &r.loop, request.KindThreadLoop
	switch {
	case r.whole:
		kind = request.KindThread
	case c.born:
		at, kind = &r.start, request.KindThreadStart
	}
	if *at == request.NoGroup {
		*at = request.GroupID(len(c.f.set.Groups))
		g := request.Group{Entry: r.entry, Kind: kind}
		switch kind {
		case request.KindThread:
			g.Boundary = "from the thread's creation to its end"
		case request.KindThreadStart:
			g.Boundary = "from the thread's creation to its first wait in " + c.f.waitName(&r.site)
		default:
			g.Boundary = "from the end of the wait in " + c.f.waitName(&r.site) + " to the next"
			if r.tier == tierNet && r.site.key.multi == multiMany &&
				slices.Contains(c.f.timeline.Header().Recorded, kernel.SightTurns) {
				g.Boundary += ", or to the read of another socket"
			}
		}
		c.f.set.Groups = append(c.f.set.Groups, g)
		c.f.groupRole = append(c.f.groupRole, c.life.role)
	}
	return *at
}

// waitName says in words where a thread waits for work: the innermost function with a name that is
// not internal to its library, and the program's function that called it.
func (f *finder) waitName(s *site) string {
	if s.key.sig != 0 {
		call := ""
		for _, fr := range f.timeline.Stack(s.user) {
			switch {
			case fr.Inferred, fr.Func == "":
			case call == "" && fr.Func[0] != '_':
				call = fr.Func
			}
			if call != "" && fr.Func != "" && fr.Func != call && !fr.Inferred &&
				!strings.Contains(fr.Module, "libc.so") {
				return call + ", called by " + fr.Func
			}
		}
		if call != "" {
			return call
		}
	}
	switch s.key.block {
	case sched.BlockFutex:
		return fmt.Sprintf("futex 0x%x", s.key.arg)
	case sched.BlockTimer:
		return "a sleep"
	case sched.BlockPipe:
		return fmt.Sprintf("a read of the pipe at descriptor %d", s.key.arg)
	}
	switch s.key.multi {
	case multiMany:
		return "poll, select or epoll"
	case multiAccept:
		return "accept"
	}
	return fmt.Sprintf("a read of the socket at descriptor %d", s.key.arg)
}
