package exectrace

// What the merge of formats 1.11 to 1.21 knows of goroutines, and what it does when an event
// contradicts that.

// Where an event may find a goroutine. It differs from State: a syscall that blocked is a wait.
const (
	v1Dead = iota
	v1Runnable
	v1Running
	v1Waiting
)

// v1G is what the merge knows of a goroutine, by slot.
type v1G struct {
	last       uint64 // ticks of its last event
	epoch      uint32 // what is known is void when this is not the merge's
	seq        uint32 // the number that its next event must have
	entry      uint32 // the stack that it was created with
	p          int32  // index of the cursor that it runs on
	introduced bool   // an event or a creation in the batches said whose slot it is
	where      uint8
	state      State
	free       bool // its number is not known: any will do
}

// v1Turn says what an event may do when it does not fit.
type v1Turn uint8

const (
	v1InTurn v1Turn = iota // it may wait; no other P has an event at this very time
	v1Tied                 // it may wait; another P has one, which may make it fit
	v1Forced               // it must be merged now: nothing that others do can make it fit
)

// v1Seq is the sequence number that an event has for its goroutine.
type v1Seq struct {
	n   uint32
	any bool // it has none, as it follows its predecessor on the same P
}

func (r *v1Rec) seq() v1Seq { return v1Seq{uint32(r.a[1]), r.local} }

// find gives a goroutine's slot and what is known of it, nil if nothing is.
func (m *v1Merge) find(g uint64) (uint32, *v1G) {
	slot, ok := m.slots.ids.get(g)
	if !ok {
		return NoSlot, nil
	}
	if s := &m.gs[slot]; s.epoch == m.epoch {
		return slot, s
	}
	return slot, nil
}

// learn gives a goroutine's slot and its state, which is a new one if nothing was known.
func (m *v1Merge) learn(g uint64) (uint32, *v1G) {
	slot, isNew := m.slots.get(GoID(g))
	if int(slot) >= len(m.gs) {
		m.gs = append(m.gs, v1G{})
	}
	s := &m.gs[slot]
	if isNew {
		*s = v1G{epoch: m.epoch, p: -1, free: true}
	} else if s.epoch != m.epoch {
		s.epoch, s.state, s.free, s.where = m.epoch, Undetermined, true, v1Dead
	}
	return slot, s
}

// claim checks that goroutine g is where an event with this number must find it. When it is not, it
// gives nil and the event must wait; a forced event gets the goroutine all the same, after a gap.
func (m *v1Merge) claim(g uint64, where uint8, seq v1Seq, turn v1Turn) (uint32, *v1G) {
	slot, s := m.find(g)
	if s != nil {
		if s.where == where && (seq.any || s.free || s.seq == seq.n) {
			return slot, s
		}
	} else if where == v1Dead || m.lossy && turn != v1Tied {
		return m.learn(g)
	}
	if turn != v1Forced {
		return slot, nil
	}
	if s != nil || !m.lossy {
		m.broken(g, s)
	}
	return m.learn(g)
}

// count goes on to the sequence number that the goroutine's next event must have.
func (s *v1G) count(r *v1Rec) {
	if r.local {
		s.seq++
		return
	}
	s.seq, s.free = uint32(r.a[1])+1, false
}

// v1Quiet is how long after a gap what does not fit is still put down to that gap.
const v1Quiet = 10_000_000

// broken is called when an event contradicts what is known of its goroutine and no other event can
// mend it: some events are missing, and where some are, others may be.
func (m *v1Merge) broken(g uint64, s *v1G) {
	if m.holeEnd != 0 || m.quiet && m.now < m.lastGap+v1Quiet {
		// A gap covers it already. Only this goroutine's state is made void.
		if s != nil {
			s.epoch--
		}
		return
	}
	start := m.now
	if s != nil {
		start = min(start, m.clock.time(s.last))
	}
	m.quiet, m.lastGap = true, m.now
	e := m.emit(KindGap)
	e.Arg[0], e.Arg[1] = uint64(m.now), uint64(start)
	why := "events are missing: a goroutine runs that no event started"
	if g != 0 {
		why = "events of goroutine " + utoa(g) + " are missing"
	}
	m.block.gaps = append(m.block.gaps, Gap{Begin: start, End: m.now, Reason: why})
	m.epoch++
	m.lossy = true
	m.gcKnown = false
}

// current gives the goroutine that runs on c. It gives nil if the event must wait or, when forced,
// is to be dropped.
func (m *v1Merge) current(c *v1Cursor, turn v1Turn) *v1G {
	if c.g != 0 && m.slots.goid[c.slot] == c.g {
		s := &m.gs[c.slot]
		if s.epoch == m.epoch {
			if s.where == v1Running && s.p == c.idx {
				return s
			}
		} else if m.lossy {
			c.slot, s = m.learn(uint64(c.g))
			s.where, s.p = v1Running, c.idx
			return s
		}
		if turn == v1Forced {
			m.broken(uint64(c.g), s)
		}
	} else if turn == v1Forced && !m.lossy {
		m.broken(0, nil)
	}
	if turn == v1Forced {
		c.g, c.slot = 0, NoSlot
	}
	return nil
}

// drop leaves out an event of a P on which no goroutine is known to run. It reports whether the
// event is done with: it may have to wait instead.
func (m *v1Merge) drop(c *v1Cursor, r *v1Rec, turn v1Turn) bool {
	if turn != v1Forced && !(c.g == 0 && m.lossy) {
		return false
	}
	m.tick(r.ts)
	m.dropped++
	return true
}
