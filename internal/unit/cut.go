package unit

import (
	"fmt"
	"math"
	"strings"

	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/sched"
)

// units cuts each life with a role into units of work.
func (f *finder) units() {
	lo, hi := f.k.Span()
	var c cutter
	c.f = f
	f.k.Each(lo, hi, func(tid uint32, s *sched.Stretch) {
		f.tid = tid
		if c.l != nil && (c.l.tid != tid || s.Begin >= c.l.end && s.Doing == sched.Gone) {
			c.end()
		}
		if s.Doing == sched.Gone {
			return
		}
		if c.l == nil {
			c.begin(f.t.lifeAt(tid, s.Begin))
		}
		if c.l != nil {
			c.see(s)
		}
	})
	c.end()
}

// lifeAt is tid's that begins at a time.
func (t *Set) lifeAt(tid uint32, at int64) *life {
	for _, n := range t.byTID[tid] {
		if l := &t.lives[n]; l.begin == at && l.role >= 0 {
			return l
		}
	}
	return nil
}

// cutter cuts one life into units.
type cutter struct {
	f    *finder
	l    *life
	r    *role
	open bool
	u    Unit
	lost bool // records are missing within
	head bool // it was under way when the recording began
	born bool
	onNS int64 // of the open unit, on a CPU
}

func (c *cutter) begin(l *life) {
	c.l = l
	if l == nil {
		return
	}
	c.r = &c.f.t.roles[l.role]
	c.open, c.lost = true, false
	c.head, c.born = !l.born, l.born
	c.u, c.onNS = Unit{Begin: l.begin, TID: l.tid}, 0
	if l.born {
		c.u.Waker = l.maker
		c.u.Begin = c.f.madeFrom(l)
	}
}

func (c *cutter) see(s *sched.Stretch) {
	if c.r.whole {
		if s.Doing == sched.Unknown {
			c.lost = true
		}
		return
	}
	switch {
	case s.Doing == sched.Unknown:
		c.lost = true
	case s.Doing == sched.OnCPU:
		c.onNS += s.End - s.Begin
	case s.Doing != sched.Blocked || s.End != s.Whole.End || !c.idle(s):
	default:
		if c.open {
			c.close(s.Whole.Begin, request.Kept)
		}
		switch c.f.endOf(s) {
		case endSignal:
			return
		case endTimer:
			if c.r.tier != tierTimer { // it only looked whether there is more to do
				return
			}
		}
		if _, hi := c.f.k.Span(); s.End >= hi {
			return
		}
		c.open, c.lost, c.head, c.born = true, false, false, false
		c.u, c.onNS = Unit{Begin: s.End, TID: c.l.tid}, 0
		if s.WakerTarget && !s.ByInterrupt {
			c.u.Waker = s.Waker
		}
	}
}

// idle tells whether the thread waits for work.
func (c *cutter) idle(s *sched.Stretch) bool {
	k := c.f.keyOf(s)
	if k.block == sched.BlockFutex && c.r.queues[k.arg] {
		return true
	}
	own := &c.l.sites[max(c.l.best, 0)].key
	return c.l.best >= 0 && (k == *own || k.lessThan(own))
}

func (c *cutter) end() {
	if c.l == nil {
		return
	}
	if c.open {
		why, end := request.OpenEnd, c.l.end
		switch {
		case c.l.died && c.r.whole:
			why = request.Kept
			c.u.Joiner, end = c.f.givenBack(c.l)
		case c.l.died:
			// It saw its connection or its queue close: no unit of work.
			c.open = false
		case c.head:
			why = request.OpenBegin
		}
		if c.open {
			c.close(end, why)
		}
	}
	c.l, c.open = nil, false
}

func (c *cutter) close(at int64, why request.LeftOut) {
	c.open = false
	switch {
	case why != request.Kept:
	case c.head:
		why = request.OpenBegin
	case c.lost:
		why = request.Lost
	}
	u := c.u
	u.End, u.LeftOut = at, why
	u.Group = c.group()
	g := &c.f.t.Groups[u.Group]
	if c.f.o.Entry != nil && why == request.Kept && !c.f.o.Entry.MatchString(g.Entry) {
		u.LeftOut = request.Unfiltered
	}
	if u.LeftOut == request.Kept {
		g.Count++
		c.r.wallNS += u.End - u.Begin
	} else {
		g.LeftOut[u.LeftOut]++
	}
	if len(c.f.t.Units) >= maxUnits {
		c.f.tooMany++
		return
	}
	c.f.t.Units = append(c.f.t.Units, u)
	c.f.onNS = append(c.f.onNS, uint32(min(c.onNS, math.MaxUint32)))
}

// group is the one of the open unit.
func (c *cutter) group() request.GroupID {
	r := c.r
	at, kind := &r.loop, "thread loop"
	switch {
	case r.whole:
		kind = "thread"
	case c.born:
		at, kind = &r.start, "thread start"
	}
	if *at == request.NoGroup {
		*at = request.GroupID(len(c.f.t.Groups))
		g := request.Group{Entry: r.entry, Kind: kind}
		switch kind {
		case "thread":
			g.Boundary = "from the thread's creation to its end"
		case "thread start":
			g.Boundary = "from the thread's creation to its first wait in " + c.f.waitName(&r.site)
		default:
			g.Boundary = "from the end of the wait in " + c.f.waitName(&r.site) + " to the next"
		}
		c.f.t.Groups = append(c.f.t.Groups, g)
		c.f.ofGroup = append(c.f.ofGroup, c.l.role)
	}
	return *at
}

// waitName says in words where a thread waits for work.
func (f *finder) waitName(s *lifeSite) string {
	if s.key.sig != 0 {
		call := ""
		for _, fr := range f.k.Stack(s.user) {
			switch {
			case fr.Inferred, fr.Func == "":
			case call == "" && fr.Func[0] != '_':
				call = fr.Func
			}
			if call != "" && fr.Func != "" && fr.Func != call && !fr.Inferred && !strings.Contains(fr.Module, "libc.so") {
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
