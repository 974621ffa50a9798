package unit

import "github.com/whystall/whystall/internal/request"

// Unit is one unit of work of a thread: it was there during [Begin, End), CLOCK_MONOTONIC, and the
// thread was busy with it from Taken on. Up to then its data lay in a socket, and the thread of a
// loop around many sockets was at something else; mostly Taken is Begin. From Taken on the units of
// one thread are disjoint. One that follows another without a wait in between is the next turn of
// such a loop.
type Unit struct {
	Begin, End int64
	Taken      int64
	TID        uint32
	Waker      uint32 // the thread of the target that gave the work; 0 none
	// Joiner is the thread of the target that waited for the end of a whole life and then waited to
	// give its stack back; 0 none.
	Joiner  uint32
	Group   request.GroupID
	LeftOut request.LeftOut
}

// Set is the units of work that a program's threads have.
type Set struct {
	Groups []request.Group // the index is the GroupID
	Units  []Unit          // by thread, each in order of time
	Cause  string          `prose:"yes"` // why no group is listed; "" when one is
	Loop   Loop

	lives []life
	byTID map[uint32][]int32 // lives in order of time
	roles []role
	of    map[uint32]unitRange // by TID
	long  map[uint32][]span    // by TID, in order of time
}

// unitRange is a thread's units, which stand side by side in the list of all: [from,to).
type unitRange struct{ from, to int32 }

// Of is the units of a thread, in order of time.
func (t *Set) Of(tid uint32) []Unit {
	r := t.of[tid]
	return t.Units[r.from:r.to]
}

// Loop is what is known of a loop around many sockets whose one thread has all units of the
// requests: how often a unit made the thread wait for something else than work, for 2 ms or more,
// and how often it then went on to another socket without a wait. That one's data lay there
// meanwhile, or came while the thread finished. Likewise how often a unit that made it wait for
// nothing computed for 2 ms or more. Long are the turns that computed for so long, LongNS in all;
// Timed of them were no units, but what the thread does when a timer goes off.
type Loop struct {
	TID              uint32 // 0: the requests have no such loop, or several
	Held, Behind     int64
	Busy, BusyBehind int64
	Long, Timed      int64
	LongNS           int64
}

// Bounds of what a stream from anywhere may make us hold.
const (
	maxLives = 1 << 17
	maxUnits = 1 << 21
)

// Name is what thread tid is called at a time: its entry function if its stacks show it, else its
// name. It is "" for a thread without a role.
func (t *Set) Name(tid uint32, at int64) string {
	l := t.life(tid, at)
	if l == nil || l.role < 0 {
		return ""
	}
	return t.roles[l.role].entry
}

// life is the life that tid has at a time; nil if it has none. A number may be used again, so one
// tid can have several.
func (t *Set) life(tid uint32, at int64) *life {
	for _, n := range t.byTID[tid] {
		if l := &t.lives[n]; at >= l.begin && at <= l.end {
			return l
		}
	}
	return nil
}

// first is tid's first life; nil if it has none.
func (t *Set) first(tid uint32) *life {
	if l := t.byTID[tid]; len(l) > 0 {
		return &t.lives[l[0]]
	}
	return nil
}

// startingAt is the life of tid that starts at a time and has a role; nil if there is none.
func (t *Set) startingAt(tid uint32, at int64) *life {
	for _, n := range t.byTID[tid] {
		if l := &t.lives[n]; l.begin == at && l.role >= 0 {
			return l
		}
	}
	return nil
}
