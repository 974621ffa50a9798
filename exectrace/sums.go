package exectrace

import "iter"

// Sums without order: what the fast ways to Totals of both format families share. The decoders are
// in v2sums.go and v1sums.go.
//
// The time that a goroutine spent in a state is the sum of the times at which it left the state,
// less the sum of the times at which it entered it. A sum is the same in whatever order it is added
// up. So the events of one thread (or P, in old formats) are decoded on their own, in the order of
// the file: there is no merge by time, and no event is made.
//
//  1. A transition adds its time to the sum of the state that is left, and subtracts it from the
//     sum of the state that is entered. Each time carries a one above its 40 bits, so the same sum
//     also counts.
//  2. At the end, the state in which a goroutine still is has one entry more than exits: its sum is
//     negative. closeSums adds the end of the stretch to it.
//  3. Then each sum must be a time within the stretch, and each count must be 0. If one is not,
//     something was lost or is damaged, and the stretch is read again in order, as for events.
//
// This takes a quarter of the time of the ordered way.

// one is what a transition counts beside its time. 2^40 ticks of 64 ns are 19 hours: no stretch is
// as long.
const one = 1 << 40

// The indices of a goroutine's sums, so that a transition is two additions.
const (
	accRunnable = iota
	accRunning
	accWaiting
	accSyscall
	accCount
)

// sumG is a goroutine in a stretch. Its size is one cache line.
type sumG struct {
	acc   [accCount]uint64
	id    uint64
	first uint64 // when its status was written or it was created; noTime: neither was read yet
	end   uint64 // when it ended; 0: it lives
	stack uint32 // one of its stacks, by the file's number
	state uint8  // what its status was; 0: it was created
	start bool   // stack is where it starts
}

// noTime is the first time of a goroutine whose status or creation was not read yet.
const noTime = ^uint64(0)

// sums is one stretch of the trace, summed up without order: a generation, or a window of an old
// format. Times in it count from its start.
type sums struct {
	ids    pages
	max    uint64 // the last event's time
	n      int64  // events
	marks  []mark
	counts Counts
	bad    bool
}

// mark is the start or the end of something that the whole process does: a stop-the-world or a GC
// cycle. There are few, so these are put in order. Numbers of strings and stacks are the file's.
type mark struct {
	ts    uint64
	g     GoID
	name  StringID
	stack StackID
	rng   Range
	kind  Kind
}

// create starts the goroutine with this number in the state whose sum is acc.
func (s *sums) create(acc int, id, start, ts uint64) {
	g := s.ids.get(id)
	if g.first != noTime {
		s.bad = true
		return
	}
	g.first, g.stack, g.start = ts, uint32(start), true
	g.acc[acc] -= ts | one
}

// all gives the goroutines, in an order that depends on the trace alone.
func (s *sums) all() iter.Seq[*sumG] {
	return func(yield func(*sumG) bool) {
		for k := range s.ids.mem.n {
			p := s.ids.mem.get(k)
			for x := range p {
				if p[x].used() && !yield(&p[x]) {
					return
				}
			}
		}
	}
}

// used reports whether an event of g was read.
func (g *sumG) used() bool { return g.first != noTime || g.acc != [accCount]uint64{} }

// closeSums adds the end to those sums that were entered once more than left, and marks them with
// stillOpen. It gives their number, and reports whether each sum is one that can be.
func closeSums(acc []uint64, end uint64) (open int, ok bool) {
	for a := range acc {
		if int64(acc[a]) < 0 {
			acc[a] += end | one
			open++
			if acc[a] > end {
				return open, false
			}
			acc[a] |= stillOpen
		} else if acc[a] > end {
			return open, false
		}
	}
	return open, true
}

// stillOpen marks the sum of the state that lasts beyond the stretch.
const stillOpen = 1 << 63
