package twin

import (
	"fmt"
	"math"
	"slices"

	"github.com/whystall/whystall/exectrace"
)

// From lines to events:
//  1. The lines are put in order, with who woke whom (order.go).
//  2. Line by line an event is made. A goroutine that gets to run is given a P, whose start is an
//     event of its own.
//  3. At the end of an instant each P that was left and not taken again stops.
//  4. What the lines do not say goes around it: syncs, GOMAXPROCS, the Ps' first states.

// proc is a P while events are made.
type proc struct {
	g     *goroutine
	inSys bool
	idle  bool // it has said so
}

// generator is what is kept while events are made.
type generator struct {
	*parser
	out      []exectrace.Event
	ps       []proc
	state    map[*goroutine]exectrace.State
	proc     map[*goroutine]int // P it is on, or -1
	lastProc map[*goroutine]int // P it was on before
	slot     map[*goroutine]uint32
	free     []uint32
	slots    uint32
	gaps     []exectrace.Gap
}

func (p *parser) generate() error {
	if p.begin > p.end { // an empty twin is a trace of nothing
		p.begin, p.end = 0, 0
	}
	if err := p.resolve(); err != nil {
		return err
	}
	g := &generator{
		parser:   p,
		state:    map[*goroutine]exectrace.State{},
		proc:     map[*goroutine]int{},
		lastProc: map[*goroutine]int{},
		slot:     map[*goroutine]uint32{},
		gaps:     p.gaps,
	}
	if p.procs > 0 {
		g.ps = make([]proc, p.procs)
		for i := range g.ps {
			g.ps[i].idle = true
		}
	}
	for i, it := range p.items {
		if i > 0 && p.items[i-1].t != it.t {
			g.stops(p.items[i-1].t)
		}
		if err := g.item(it); err != nil {
			return fmt.Errorf("line %d: %w", it.line, err)
		}
	}
	g.stops(p.end)

	head := g.event(p.begin, exectrace.KindSync)
	procs := g.event(p.begin, exectrace.KindMetric)
	procs.Metric, procs.Arg[0] = exectrace.MetricGOMAXPROCS, uint64(max(len(g.ps), 1))
	if p.procs > 0 {
		procs.Arg[0] = uint64(p.procs)
	}
	events := []exectrace.Event{head, procs}
	for i := range g.ps {
		e := g.event(p.begin, exectrace.KindProc)
		e.Proc, e.From, e.To, e.Reason = exectrace.ProcID(i), exectrace.Undetermined,
			exectrace.Idle, exectrace.ReasonStatus
		events = append(events, e)
	}
	events = append(events, g.out...)
	events = append(events, g.event(p.end, exectrace.KindSync))
	p.events = slices.DeleteFunc(events, g.lost)
	p.clock.Monotonic = p.version >= 22
	return nil
}

// lost reports whether e fell into a gap. The gap's own event stays.
func (g *generator) lost(e exectrace.Event) bool {
	for _, gap := range g.gaps {
		if e.Kind != exectrace.KindGap && e.Kind != exectrace.KindSync && e.Time >= gap.Begin && e.Time < gap.End {
			return true
		}
	}
	return false
}

func (g *generator) event(t int64, k exectrace.Kind) exectrace.Event {
	return exectrace.Event{
		Time: exectrace.Time(t), Kind: k,
		G: exectrace.NoGoroutine, On: exectrace.NoGoroutine, Slot: exectrace.NoSlot, OnSlot: exectrace.NoSlot,
		M: exectrace.NoThread, P: exectrace.NoProc, Proc: exectrace.NoProc,
	}
}

// about is an event about a goroutine, made by itself.
func (g *generator) about(it item, k exectrace.Kind) exectrace.Event {
	e := g.event(it.t, k)
	e.G, e.On, e.Slot = it.g.id, it.g.id, g.slotOf(it.g)
	e.OnSlot = e.Slot
	e.Stack, e.OnStack, e.Name, e.Arg = it.stack, it.stack, it.name, it.arg
	if p, ok := g.proc[it.g]; ok && p >= 0 {
		e.P, e.M = exectrace.ProcID(p), thread(p)
	}
	return e
}

// thread is the M that always runs P p. Its number is far from the P's, so that a mix-up shows.
func thread(p int) exectrace.ThreadID { return exectrace.ThreadID(1000 + p) }

func (g *generator) slotOf(x *goroutine) uint32 {
	if s, ok := g.slot[x]; ok {
		return s
	}
	s := g.slots
	if n := len(g.free); n > 0 {
		s, g.free = g.free[n-1], g.free[:n-1]
	} else {
		g.slots++
	}
	g.slot[x] = s
	return s
}

// stops stops every P that was left at t and is not in use.
func (g *generator) stops(t int64) {
	for i := range g.ps {
		if p := &g.ps[i]; p.g == nil && !p.idle {
			p.idle = true
			e := g.event(t, exectrace.KindProc)
			e.Proc, e.P, e.M = exectrace.ProcID(i), exectrace.ProcID(i), thread(i)
			e.From, e.To = exectrace.Running, exectrace.Idle
			g.out = append(g.out, e)
		}
	}
}

// take puts x on a P.
func (g *generator) take(x *goroutine, t int64, pin int) error {
	limit := g.procs
	if limit == 0 || g.damaged {
		limit = 1 << 16
	}
	i := pin
	if i < 0 {
		if l, ok := g.lastProc[x]; ok && g.ps[l].g == nil {
			i = l
		}
	}
	if i < 0 {
		i = slices.IndexFunc(g.ps, func(p proc) bool { return p.g == nil })
	}
	if i < 0 {
		i = len(g.ps)
	}
	if i >= limit {
		return fmt.Errorf("goroutine %s: no P is free at %d ns", x.name, t)
	}
	for len(g.ps) <= i {
		g.ps = append(g.ps, proc{idle: true})
	}
	p := &g.ps[i]
	if p.g != nil {
		return fmt.Errorf("goroutine %s: P %d is held by %s at %d ns", x.name, i, p.g.name, t)
	}
	if p.idle {
		e := g.event(t, exectrace.KindProc)
		e.Proc, e.P, e.M = exectrace.ProcID(i), exectrace.ProcID(i), thread(i)
		e.From, e.To = exectrace.Idle, exectrace.Running
		g.out = append(g.out, e)
	}
	*p = proc{g: x}
	g.proc[x], g.lastProc[x] = i, i
	return nil
}

func (g *generator) leave(x *goroutine) {
	if p, ok := g.proc[x]; ok && p >= 0 {
		g.ps[p] = proc{}
	}
	g.proc[x] = -1
}

func (g *generator) item(it item) error {
	if it.g == nil {
		g.process(it)
		return nil
	}
	kind := exectrace.KindNone
	var rng exectrace.Range
	switch it.verb {
	case "assist", "assist end":
		rng = exectrace.RangeAssist
	case "sweep", "sweep end":
		rng = exectrace.RangeSweep
	case "stw", "stw end":
		rng = exectrace.RangeSTW
	case "task":
		kind = exectrace.KindTaskBegin
	case "task end":
		kind = exectrace.KindTaskEnd
		if it.actor != nil {
			it.g = it.actor
		}
	case "region":
		kind = exectrace.KindRegionBegin
	case "region end":
		kind = exectrace.KindRegionEnd
	case "log":
		kind = exectrace.KindLog
	case "label":
		kind = exectrace.KindLabel
	case "sample":
		kind = exectrace.KindSample
	default:
		return g.stateItem(it)
	}
	if rng != exectrace.RangeNone {
		ends := it.verb[len(it.verb)-1] == 'd'
		switch {
		case ends:
			kind = exectrace.KindRangeEnd
			it.stack = 0
		case it.first:
			kind = exectrace.KindRangeActive
		default:
			kind = exectrace.KindRangeBegin
		}
		if !ends {
			it.arg = [2]uint64{}
		}
	}
	e := g.about(it, kind)
	e.Range = rng
	if rng == exectrace.RangeSweep {
		e.Proc = e.P
	}
	g.out = append(g.out, e)
	return nil
}

// process makes the events of a process line.
func (g *generator) process(it item) {
	switch it.verb {
	case "gc", "gc end":
		e := g.event(it.t, exectrace.KindRangeBegin)
		if it.first {
			e.Kind = exectrace.KindRangeActive
		}
		if it.verb == "gc end" {
			e.Kind = exectrace.KindRangeEnd
		}
		e.Range = exectrace.RangeGC
		g.out = append(g.out, e)
	case "gap":
		e := g.event(it.t, exectrace.KindGap)
		e.Arg[0], e.Name = uint64(it.end), it.name
		g.out = append(g.out, e)
	case "procs":
		e := g.event(it.t, exectrace.KindMetric)
		e.Metric, e.Arg = exectrace.MetricGOMAXPROCS, it.arg
		g.out = append(g.out, e)
	case "start":
		if i := int(it.arg[0]); i < len(g.ps) && g.ps[i].g == nil && g.ps[i].idle {
			g.ps[i].idle = false
			e := g.event(it.t, exectrace.KindProc)
			e.Proc, e.P, e.M = exectrace.ProcID(i), exectrace.ProcID(i), thread(i)
			e.From, e.To = exectrace.Idle, exectrace.Running
			g.out = append(g.out, e)
		}
	case "heap live", "heap goal":
		e := g.event(it.t, exectrace.KindMetric)
		e.Metric, e.Arg = exectrace.MetricHeapLive, it.arg
		if it.verb == "heap goal" {
			e.Metric = exectrace.MetricHeapGoal
		}
		g.out = append(g.out, e)
	case "sync":
		g.out = append(g.out, g.event(it.t, exectrace.KindSync))
		for _, x := range g.gs { // statuses, as a new generation has them
			s, ok := g.state[x]
			if !ok || s == exectrace.NotExist {
				continue
			}
			e := g.about(item{t: it.t, g: x}, exectrace.KindGoroutine)
			e.From, e.To, e.Reason, e.On, e.OnSlot = s, s, exectrace.ReasonStatus,
				exectrace.NoGoroutine, exectrace.NoSlot
			g.out = append(g.out, e)
		}
	}
}

// stateItem makes the events of a goroutine's change of state.
func (g *generator) stateItem(it item) error {
	x := it.g
	from := g.state[x]
	// Nobody prompted the event.
	unprompted := func(e *exectrace.Event) {
		e.On, e.OnSlot, e.OnStack = exectrace.NoGoroutine, exectrace.NoSlot, 0
	}
	// The actor woke or made x; its P and M are the event's.
	prompted := func(e *exectrace.Event) {
		unprompted(e)
		e.P, e.M, e.Stack = exectrace.NoProc, exectrace.NoThread, 0
		switch {
		case it.actor != nil:
			e.On, e.OnSlot, e.OnStack = it.actor.id, g.slotOf(it.actor), it.stack
			if p, ok := g.proc[it.actor]; ok && p >= 0 {
				e.P, e.M = exectrace.ProcID(p), thread(p)
			}
		case it.actorName == "P":
			e.P, e.M = 0, thread(0)
		}
	}
	var e exectrace.Event
	switch it.verb {
	case "running":
		if from != exectrace.Syscall || g.proc[x] < 0 {
			if err := g.take(x, it.t, it.proc); err != nil {
				return err
			}
		}
		e = g.about(it, exectrace.KindGoroutine)
		e.To, e.Reason = exectrace.Running, exectrace.ReasonStart
		if from == exectrace.Syscall {
			e.Reason = exectrace.ReasonSyscall
			g.ps[g.proc[x]].inSys = false
		} else {
			unprompted(&e)
		}
	case "waiting":
		e = g.about(it, exectrace.KindGoroutine)
		e.To, e.Reason = exectrace.Waiting, it.reason
		g.leave(x)
	case "syscall":
		if it.first {
			if err := g.take(x, it.t, it.proc); err != nil {
				return err
			}
		}
		e = g.about(it, exectrace.KindGoroutine)
		e.To, e.Reason = exectrace.Syscall, exectrace.ReasonSyscall
		g.ps[g.proc[x]].inSys = true
	case "retaken":
		g.retake(x, it.t)
		return nil
	case "runnable":
		e = g.about(it, exectrace.KindGoroutine)
		e.To = exectrace.Runnable
		switch from {
		case exectrace.Waiting:
			prompted(&e)
			e.Reason = exectrace.ReasonUnblock
		case exectrace.Syscall:
			g.retake(x, it.t)
			e.P, e.Reason = exectrace.NoProc, exectrace.ReasonSyscallBlocked
		case exectrace.Running:
			e.Reason = exectrace.ReasonTimeslice
			if it.yield {
				e.Reason = exectrace.ReasonYield
			}
			g.leave(x)
		}
	case "created":
		e = g.about(it, exectrace.KindGoroutine)
		from = exectrace.NotExist
		e.To, e.Reason = exectrace.Runnable, exectrace.ReasonCreate
		if x.states[0].state == exectrace.Waiting {
			e.To = exectrace.Waiting
		}
		prompted(&e)
		e.Stack = g.stack("", x)
	case "end":
		e = g.about(it, exectrace.KindGoroutine)
		e.To, e.Reason = exectrace.NotExist, exectrace.ReasonEnd
		g.leave(x)
	}
	e.From = from
	if it.first && it.verb != "created" {
		unprompted(&e)
		if e.To != exectrace.Waiting || it.reason == exectrace.ReasonNone {
			e.Reason = exectrace.ReasonStatus
		}
	}
	g.state[x] = e.To
	g.out = append(g.out, e)
	if e.To == exectrace.NotExist {
		g.free = append(g.free, e.Slot)
		delete(g.slot, x)
	}
	return nil
}

// retake takes the P from a goroutine in a syscall, unless that has happened.
func (g *generator) retake(x *goroutine, t int64) {
	i := g.proc[x]
	if i < 0 {
		return
	}
	e := g.event(t, exectrace.KindProc)
	e.Proc, e.From, e.To = exectrace.ProcID(i), exectrace.Syscall, exectrace.Idle
	e.M = thread(math.MaxInt16) // sysmon
	g.out = append(g.out, e)
	g.ps[i] = proc{idle: true}
	g.proc[x] = -1
}
