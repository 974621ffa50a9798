package sched

import (
	"sort"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// Event is one of the rarer records. End is Begin if it is a moment, or if only its start is known.
type Event struct {
	Begin, End int64
	TID, Other uint32
	Kernel     uint32 // StackIDs
	User       uint32
	Arg        [2]uint64 // the record's Arg[1] and [2]; of Unthrottle and Sample [0] is the record's Arg[0]
	CPU        int16
	Flags      kernel.Flags
	Kind       kernel.Kind
}

// Events calls f with the events that overlap [lo,hi), in the order in which they start, until f
// returns false. Only those of the kinds given, if any are. It looks at all events up to hi.
func (k *Timeline) Events(lo, hi int64, f func(*Event) bool, kinds ...kernel.Kind) {
	want := kindSet(kinds)
	for i := range k.events {
		e := &k.events[i]
		if e.Begin >= hi {
			break
		}
		if e.Begin < lo && e.End <= lo || want>>e.Kind&1 == 0 {
			continue
		}
		if !f(e) {
			return
		}
	}
}

// EventsOf is Events for one thread of the target. It looks only where there can be one.
func (k *Timeline) EventsOf(tid uint32, lo, hi int64, f func(*Event) bool, kinds ...kernel.Kind) {
	th := k.find(tid)
	if th == nil {
		return
	}
	want := kindSet(kinds)
	i := sort.Search(len(th.until), func(i int) bool { return th.until[i] >= lo })
	for ; i < len(th.events); i++ {
		e := &k.events[th.events[i]]
		if e.Begin >= hi {
			break
		}
		if e.Begin < lo && e.End <= lo || want>>e.Kind&1 == 0 {
			continue
		}
		if !f(e) {
			return
		}
	}
}

// kindSet has a bit for each kind; all of them if none is given.
func kindSet(kinds []kernel.Kind) uint64 {
	if len(kinds) == 0 {
		return ^uint64(0)
	}
	s := uint64(0)
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}
