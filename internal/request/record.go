package request

import "github.com/whystall/whystall/exectrace"

// Record is Event for a record that is no OpOther: id is the goroutine at its Slot, on that at its Arg where it is an
// OpWake or OpCreate, each NoGoroutine without one.
func (f *Finder) Record(r *exectrace.Record, id, on exectrace.GoID) []Activation {
	switch r.Op {
	case exectrace.OpBlock, exectrace.OpWake, exectrace.OpSyscall, exectrace.OpCreate, exectrace.OpEnd:
	case exectrace.OpSyscallEnd:
		if int(r.Slot) < len(f.gs) && f.gs[r.Slot].flags&flagWriting == 0 {
			return nil // came back from a call that was no flush
		}
	case exectrace.OpRegionBegin, exectrace.OpRegionEnd:
		f.out, f.now = f.out[:0], r.Time
		if g := f.marks(id, r.Slot, r.Stack, r.Time); r.Op == exectrace.OpRegionBegin {
			f.regionBegin(g, uint64(r.Arg), r.Name, r.Time)
		} else {
			f.regionEnd(g, r.Time)
		}
		return f.out
	default:
		return nil
	}
	f.out, f.now = f.out[:0], r.Time
	if r.Op == exectrace.OpWake || r.Op == exectrace.OpCreate {
		f.grow(r.Arg) // before pointers into the table are taken
	}
	if r.Op == exectrace.OpCreate {
		if r.Slot < maxSlots {
			f.grow(r.Slot)
			f.create(&f.gs[r.Slot], id, r.Slot, r.Stack, act{r.Time, on, r.Arg, exectrace.StackID(r.Name)})
		}
		return f.out
	}
	var g *gstate
	if uint(r.Slot) < uint(len(f.gs)) && f.gs[r.Slot].id == id {
		g = &f.gs[r.Slot]
	} else if g = f.at(id, r.Slot); g == nil {
		return f.out
	}
	switch r.Op {
	case exectrace.OpBlock:
		f.block(g, r.Stack, r.Reason, r.Time)
	case exectrace.OpWake:
		f.wake(g, act{r.Time, on, r.Arg, r.Stack})
	case exectrace.OpSyscall:
		f.call(g, r.Stack, r.Time)
	case exectrace.OpSyscallEnd:
		f.callEnd(g, r.Time)
	case exectrace.OpEnd:
		f.end(g, r.Time)
	}
	return f.out
}
