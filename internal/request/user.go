package request

import "github.com/whystall/whystall/exectrace"

// task is what is known of a user task that has begun.
type task struct {
	slot, serial uint32 // of the goroutine and activation it is; only if neither of the below
	inside       bool   // part of another activation
	given        bool   // given up: its goroutine went on to the next one, so regions elsewhere stand for themselves
}

// maxTasks bounds the tasks that never end.
const maxTasks = 1 << 18

// doer is the goroutine that wrote a task or region event.
func (f *Finder) doer(ev *exectrace.Event) *gstate {
	if ev.G == exectrace.NoGoroutine {
		return f.marks(ev.On, ev.OnSlot, ev.Stack, ev.Time)
	}
	return f.marks(ev.G, ev.Slot, ev.Stack, ev.Time)
}

// marks is the goroutine with that number, which writes an event of its own.
func (f *Finder) marks(id exectrace.GoID, slot uint32, stack exectrace.StackID, t exectrace.Time) *gstate {
	g := f.at(id, slot)
	if g != nil && stack != 0 {
		f.see(g, f.enter(g, stack), t)
	}
	return g
}

// inside: what g begins now is part of something larger. A loop that was only guessed at is not: its author's own
// marks are better.
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

// mark begins the user's own activation on g.
func (f *Finder) mark(g *gstate, t exectrace.Time, id uint64, name exectrace.StringID) {
	f.entries[g.entry].marked = true
	f.open(g, t, flagUser)
	g.task = id
	g.name = f.intern(f.src.String(name))
	f.proven(g)
}

func (f *Finder) taskBegin(ev *exectrace.Event) {
	g := f.doer(ev)
	id, parent := ev.Arg[0], ev.Arg[1]
	if g == nil || id == 0 {
		return
	}
	if len(f.tasks) >= maxTasks {
		f.lost++
		return
	}
	tk := task{inside: f.inside(g)}
	if !tk.inside && parent != 0 {
		p, ok := f.tasks[parent]
		tk.inside = !ok || !p.given // an unknown parent began before the trace
	}
	if !tk.inside && g.phase == phaseOpen && g.flags&flagUser != 0 {
		if g.task == 0 || g.flags&flagDeferred != 0 {
			tk.inside = true // in a region
		} else {
			// A second task that is no child of the open one: the goroutine hands them out and does not wait.
			if prev, ok := f.tasks[g.task]; ok {
				prev.given = true
				f.tasks[g.task] = prev
			}
			f.abandon(g, Elsewhere)
		}
	}
	if !tk.inside {
		f.mark(g, ev.Time, id, ev.Name)
		tk.slot, tk.serial = g.slot, g.serial
	}
	f.tasks[id] = tk
}

func (f *Finder) taskEnd(ev *exectrace.Event) {
	on := f.doer(ev)
	tk, ok := f.tasks[ev.Arg[0]]
	if !ok {
		return
	}
	delete(f.tasks, ev.Arg[0])
	if tk.inside || tk.given || on == nil || int(tk.slot) >= len(f.gs) {
		return
	}
	g := &f.gs[tk.slot]
	if g.serial != tk.serial || g.phase != phaseOpen {
		return
	}
	switch {
	case g == on:
		f.close(g, ev.Time)
	case g.flags&flagWaiting != 0:
		// Whether it waits for this shows when it wakes, and only then can its wait be explained.
		g.flags |= flagDeferred
		g.flushed, g.ender = ev.Time, on.slot
	default:
		f.abandon(g, Elsewhere)
	}
}

// deferredEnd: the goroutine whose task ended elsewhere wakes. It waited for that end if the one who ended it woke it,
// or if it waited for several.
func (f *Finder) deferredEnd(g *gstate, by uint32) {
	if by == g.ender || g.class == waitGroup {
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
		if tk, ok := f.tasks[task]; !ok || !tk.given {
			return // its task is the activation, or began before the trace
		}
	}
	f.mark(g, t, 0, name)
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
