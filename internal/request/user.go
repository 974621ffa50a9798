package request

import "github.com/whystall/whystall/exectrace"

// maxTasks bounds the tasks that never end.
const maxTasks = 1 << 18

// authorOf is the goroutine that wrote a task or region event.
func (f *Finder) authorOf(ev *exectrace.Event) *gstate {
	if ev.G == exectrace.NoGoroutine {
		return f.author(ev.On, ev.OnSlot, ev.Stack, ev.Time)
	}
	return f.author(ev.G, ev.Slot, ev.Stack, ev.Time)
}

// author is the goroutine with that number, which writes an event of its own.
func (f *Finder) author(id exectrace.GoID, slot uint32, stack exectrace.StackID, t exectrace.Time) *gstate {
	g := f.slot(id, slot)
	if g != nil && stack != 0 {
		f.see(g, f.enter(g, stack), t)
	}
	return g
}

// inside reports whether what g begins now is part of something larger. A loop that was only
// guessed at is not: its author's own marks are better.
func (f *Finder) inside(g *gstate) bool {
	switch {
	case g.flags&flagChild != 0, g.phase == phaseHijacked:
		return true
	case g.phase == phaseOpen && g.flags&flagUser == 0:
		return g.role != roleUnknown
	case g.phase == phaseMaybe && g.role == roleHTTP1:
		return g.flags&flagTail == 0
	}
	return false
}

// openUser begins the user's own activation on g.
func (f *Finder) openUser(g *gstate, t exectrace.Time, id uint64, name exectrace.StringID) {
	f.entries[g.entry].marked = true
	f.open(g, t, flagUser)
	g.task = id
	g.name = f.intern(f.src.String(name))
	f.proven(g)
}

func (f *Finder) taskBegin(ev *exectrace.Event) {
	g := f.authorOf(ev)
	id, parent := ev.Arg[0], ev.Arg[1]
	if g == nil || id == 0 {
		return
	}
	if len(f.tasks) >= maxTasks {
		f.lostTasks++
		return
	}
	tk := task{inside: f.inside(g)}
	if !tk.inside && parent != 0 {
		p, ok := f.tasks[parent]
		tk.inside = !ok || !p.givenUp // an unknown parent began before the trace
	}
	if !tk.inside && g.phase == phaseOpen && g.flags&flagUser != 0 {
		if g.task == 0 || g.flags&flagDeferred != 0 {
			tk.inside = true // in a region
		} else {
			// A second task that is no child of the open one: the goroutine hands them out and does
			// not wait.
			if prev, ok := f.tasks[g.task]; ok {
				prev.givenUp = true
				f.tasks[g.task] = prev
			}
			f.abandon(g, Elsewhere)
		}
	}
	if !tk.inside {
		f.openUser(g, ev.Time, id, ev.Name)
		tk.slot, tk.serial = g.slot, g.serial
	}
	f.tasks[id] = tk
}

func (f *Finder) taskEnd(ev *exectrace.Event) {
	ender := f.authorOf(ev)
	tk, ok := f.tasks[ev.Arg[0]]
	if !ok {
		return
	}
	delete(f.tasks, ev.Arg[0])
	if tk.inside || tk.givenUp || ender == nil || int(tk.slot) >= len(f.gs) {
		return
	}
	g := &f.gs[tk.slot]
	if g.serial != tk.serial || g.phase != phaseOpen {
		return
	}
	switch {
	case g == ender:
		f.close(g, ev.Time)
	case g.flags&flagWaiting != 0:
		// Whether it waits for this shows when it wakes, and only then can its wait be explained.
		g.flags |= flagDeferred
		g.flushed, g.ender = ev.Time, ender.slot
	default:
		f.abandon(g, Elsewhere)
	}
}

// deferredEnd: the goroutine whose task ended elsewhere wakes. It waited for that end if the
// goroutine that ended it woke it, or if it waited for several.
func (f *Finder) deferredEnd(g *gstate, waker uint32) {
	if waker == g.ender || g.class == waitGroup {
		f.close(g, g.flushed)
		return
	}
	f.abandon(g, Elsewhere)
}

func (f *Finder) regionBegin(g *gstate, task uint64, name exectrace.StringID, t exectrace.Time) {
	if g == nil {
		return
	}
	if g.phase == phaseOpen && g.flags&flagUser != 0 {
		if g.task == 0 && g.regions < 1<<15 {
			g.regions++
		}
		return
	}
	if f.inside(g) {
		return
	}
	if task != 0 {
		if tk, ok := f.tasks[task]; !ok || !tk.givenUp {
			return // its task is the activation, or began before the trace
		}
	}
	f.openUser(g, t, 0, name)
	g.regions = 1
}

func (f *Finder) regionEnd(g *gstate, t exectrace.Time) {
	if g == nil || g.phase != phaseOpen || g.flags&flagUser == 0 || g.task != 0 {
		return
	}
	if g.regions--; g.regions == 0 {
		f.close(g, t)
	}
}
