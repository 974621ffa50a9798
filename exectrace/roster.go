package exectrace

// Roster knows which goroutine a slot stands for, which is all that most records have. It must be
// given each batch of one stream, and each record of each, in order. The zero value is ready.
type Roster struct {
	ids  []GoID // by slot
	born []GoID // of this batch, those that no OpCreate has taken yet
}

// Begin takes the next batch.
func (s *Roster) Begin(b *Batch) { s.born = b.Born }

// Other takes the event that an OpOther stands for.
func (s *Roster) Other(e *Event) {
	s.set(e.Slot, e.G)
	s.set(e.OnSlot, e.On)
}

// Of gives the goroutine at r's Slot and, of an OpWake or OpCreate, the goroutine that made it
// happen. Either may be NoGoroutine. r is no OpOther.
func (s *Roster) Of(r *Record) (g, on GoID) {
	g, on = NoGoroutine, NoGoroutine
	if r.Op == OpCreate && len(s.born) > 0 {
		s.set(r.Slot, s.born[0])
		s.born = s.born[1:]
	}
	if uint(r.Slot) < uint(len(s.ids)) {
		g = s.ids[r.Slot]
	}
	if (r.Op == OpWake || r.Op == OpCreate) && uint(r.Arg) < uint(len(s.ids)) {
		on = s.ids[r.Arg]
	}
	return g, on
}

// maxRoster bounds the memory that a damaged trace's slots can ask for.
const maxRoster = 1 << 22

func (s *Roster) set(slot uint32, g GoID) {
	if slot >= maxRoster {
		return
	}
	for uint(slot) >= uint(len(s.ids)) {
		s.ids = append(s.ids, NoGoroutine)
	}
	s.ids[slot] = g
}
