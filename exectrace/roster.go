package exectrace

// Roster tells who a batch's records are about: they name goroutines by their slots alone. It is given every batch of one
// stream, and every record of each, in order. The zero value is ready.
type Roster struct {
	who  []GoID // by slot
	born []GoID // of this batch, those to come
}

// Begin takes the next batch.
func (s *Roster) Begin(b *Batch) { s.born = b.Born }

// Other takes what an OpOther stands for.
func (s *Roster) Other(e *Event) {
	s.tell(e.Slot, e.G)
	s.tell(e.OnSlot, e.On)
}

// Of gives the goroutine at r's Slot and, of an OpWake or OpCreate, the one that did it; NoGoroutine for none. R is no OpOther.
func (s *Roster) Of(r *Record) (g, on GoID) {
	g, on = NoGoroutine, NoGoroutine
	if r.Op == OpCreate && len(s.born) > 0 {
		s.tell(r.Slot, s.born[0])
		s.born = s.born[1:]
	}
	if uint(r.Slot) < uint(len(s.who)) {
		g = s.who[r.Slot]
	}
	if (r.Op == OpWake || r.Op == OpCreate) && uint(r.Arg) < uint(len(s.who)) {
		on = s.who[r.Arg]
	}
	return g, on
}

// maxRoster bounds what damaged slots can ask for.
const maxRoster = 1 << 22

func (s *Roster) tell(slot uint32, g GoID) {
	if slot >= maxRoster {
		return
	}
	for uint(slot) >= uint(len(s.who)) {
		s.who = append(s.who, NoGoroutine)
	}
	s.who[slot] = g
}
