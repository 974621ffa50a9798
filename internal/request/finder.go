package request

import (
	"iter"

	"github.com/whystall/whystall/exectrace"
)

// learnEvents and learnTime bound the look ahead: a few per cent of the pass over a trace of 50 MB.
const (
	learnEvents = 300_000
	learnTime   = 5e9
)

// Learn looks at a bounded first part of the trace for the loops of unknown programs. The pass over
// the whole then finds them from their first event, and not only once they have repeated
// themselves.
func (f *Finder) Learn(blocks iter.Seq[[]exectrace.Event]) {
	f.learning = true
	n, first := 0, exectrace.Time(0)
	for b := range blocks {
		if n == 0 && len(b) > 0 {
			first = b[0].Time
		}
		for i := range b {
			f.Event(&b[i])
		}
		n += len(b)
		if n > learnEvents || f.now-first > learnTime {
			break
		}
	}
	f.learning = false
	for i := 1; i < len(f.entries); i++ {
		f.decide(uint32(i), 3)
	}
	// What was learned about stacks and entries stays; what happened has not happened yet.
	clear(f.gs)
	f.gs, f.ended, f.now, f.gapEnd, f.lostTasks = f.gs[:0], nil, 0, 0, 0
	f.forgetRelays()
	clear(f.tasks)
	for i := range f.entries {
		f.entries[i].forget()
	}
	for i := range f.groups {
		f.groups[i].Count, f.groups[i].LeftOut = 0, [leftOutCount]int64{}
	}
}

// Event takes the next event, before anybody applies it to the states of goroutines. It returns the
// activations that it closes: nearly always none. The slice is overwritten by the next call. An
// activation's End may be earlier than the event: the proof of an end can come after it.
func (f *Finder) Event(ev *exectrace.Event) []Activation {
	if !Telling(ev) {
		return nil
	}
	if ev.Kind != exectrace.KindGoroutine {
		return f.other(ev)
	}
	if ev.From == exectrace.Syscall && ev.To != exectrace.NotExist && int(ev.Slot) < len(f.gs) &&
		f.gs[ev.Slot].flags&(flagWriting|flagPolling) == 0 {
		return nil // came back from a call that was no flush, and no wait for events
	}
	if len(f.ended) != 0 {
		f.ended = f.ended[:0]
	}
	f.now = ev.Time
	f.goroutine(ev)
	return f.ended
}

// Record is Event for a record that is no OpOther; id and actor are what [exectrace.Roster] says.
// It calls the same steps without making an event: nearly all events are such records. Both are
// there because neither alone will do: only an event can say everything, and events alone cost
// explain 10 % of its CPU time: see Record of package timeline.
func (f *Finder) Record(r *exectrace.Record, id, actor exectrace.GoID) []Activation {
	switch r.Op {
	case exectrace.OpBlock, exectrace.OpWake, exectrace.OpSyscall, exectrace.OpCreate, exectrace.OpEnd:
	case exectrace.OpSyscallEnd:
		if int(r.Slot) < len(f.gs) && f.gs[r.Slot].flags&(flagWriting|flagPolling) == 0 {
			return nil // came back from a call that was no flush, and no wait for events
		}
	case exectrace.OpRegionBegin, exectrace.OpRegionEnd:
		f.ended, f.now = f.ended[:0], r.Time
		if g := f.author(id, r.Slot, r.Stack, r.Time); r.Op == exectrace.OpRegionBegin {
			f.regionBegin(g, uint64(r.Arg), r.Name, r.Time)
		} else {
			f.regionEnd(g, r.Time)
		}
		return f.ended
	default:
		return nil
	}
	f.ended, f.now = f.ended[:0], r.Time
	if r.Op == exectrace.OpWake || r.Op == exectrace.OpCreate {
		f.grow(r.Arg) // before pointers into the table are taken
	}
	if r.Op == exectrace.OpCreate {
		if r.Slot < maxSlots {
			f.grow(r.Slot)
			f.create(&f.gs[r.Slot], id, r.Slot, r.Stack, act{r.Time, actor, r.Arg, exectrace.StackID(r.Name)})
		}
		return f.ended
	}
	var g *gstate
	if uint(r.Slot) < uint(len(f.gs)) && f.gs[r.Slot].id == id {
		g = &f.gs[r.Slot]
	} else if g = f.slot(id, r.Slot); g == nil {
		return f.ended
	}
	switch r.Op {
	case exectrace.OpBlock:
		f.block(g, r.Stack, r.Reason, r.Time)
	case exectrace.OpWake:
		f.wake(g, act{r.Time, actor, r.Arg, r.Stack})
	case exectrace.OpSyscall:
		f.call(g, r.Stack, r.Time)
	case exectrace.OpSyscallEnd:
		f.callEnd(g, r.Time)
	case exectrace.OpEnd:
		f.end(g, r.Time)
	}
	return f.ended
}

// Telling reports whether an event may say something about requests. Many do not: other kinds, and
// who got or left a P. Event does nothing with those.
func Telling(ev *exectrace.Event) bool {
	if ev.Kind == exectrace.KindGoroutine {
		return silent>>(uint(ev.From)<<3|uint(ev.To))&1 == 0
	}
	return telling>>ev.Kind&1 != 0 && (ev.Kind != exectrace.KindRangeBegin || ev.Range == exectrace.RangeSTW)
}

// silent are the transitions that say nothing: Runnable to Running and back.
const silent = uint64(1)<<(exectrace.Runnable<<3|exectrace.Running) | uint64(1)<<(exectrace.Running<<3|exectrace.Runnable)

// telling are the kinds besides KindGoroutine that may say something.
const telling = 1<<exectrace.KindTaskBegin | 1<<exectrace.KindTaskEnd | 1<<exectrace.KindRegionBegin |
	1<<exectrace.KindRegionEnd | 1<<exectrace.KindRangeBegin | 1<<exectrace.KindGap

// other takes an event of another kind.
func (f *Finder) other(ev *exectrace.Event) []Activation {
	if len(f.ended) != 0 {
		f.ended = f.ended[:0]
	}
	f.now = ev.Time
	switch ev.Kind {
	case exectrace.KindTaskBegin:
		f.taskBegin(ev)
	case exectrace.KindTaskEnd:
		f.taskEnd(ev)
	case exectrace.KindRegionBegin:
		f.regionBegin(f.authorOf(ev), ev.Arg[0], ev.Name, ev.Time)
	case exectrace.KindRegionEnd:
		f.regionEnd(f.authorOf(ev), ev.Time)
	case exectrace.KindRangeBegin:
		if g := f.slot(ev.G, ev.Slot); g != nil && ev.Stack != 0 {
			f.see(g, f.stack(ev.Stack), ev.Time)
		}
	case exectrace.KindGap:
		f.gap(exectrace.Time(ev.Arg[0]))
	}
	return f.ended
}

// gap: events are missing until end, so ends and starts may be.
func (f *Finder) gap(end exectrace.Time) {
	f.gapEnd = max(f.gapEnd, end)
	f.forgetRelays()
	for i := range f.gs {
		g := &f.gs[i]
		f.abandon(g, Lost)
		if g.phase != phaseHijacked {
			g.phase = phaseNone
		}
		g.flags &= flagChild
		g.regions = 0
	}
	clear(f.tasks)
}

// Finish returns the activations that are still open when the trace ends at end, as left out.
func (f *Finder) Finish(end exectrace.Time) []Activation {
	f.ended, f.now = f.ended[:0], end
	f.finishRelays()
	for i := range f.gs {
		f.abandon(&f.gs[i], OpenEnd)
	}
	f.list()
	return f.ended
}
