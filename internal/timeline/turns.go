package timeline

import "iter"

// A goroutine that waits for a message may wait for its turn. Two cases show in who ends the waits
// at a place:
//   - Goroutines of one kind that end each other's waits, one after another, hand something on that
//     is scarce: a token, a pooled connection.
//   - A worker ends the waits of all that it works for.
//
// The runtime records no semaphore, pool or worker, only these ends. So the latest ends at each
// place are kept until a wait is explained.

const (
	turnsKept = 256
	turnSites = 512
	turnLeast = 1e6 // ns; shorter waits are most of all, and no queue worth a word
)

// ownKind stands for any goroutine with the waiter's entry function, instead of one ender.
const ownKind uint32 = 0

// turn is the end of one wait.
type turn struct {
	end    int64
	ender  uint32 // ident, or ownKind
	waiter uint32 // ident
}

// site keeps the latest turns at one place.
type site struct {
	last [turnsKept]turn
	n    int // turns since the start
}

// latest gives the turns that ender ended in (lo,hi), from the latest back.
func (s *site) latest(ender uint32, lo, hi int64) iter.Seq[*turn] {
	return func(yield func(*turn) bool) {
		for i := s.n - 1; i >= max(0, s.n-turnsKept); i-- {
			x := &s.last[i%turnsKept]
			if x.end <= lo {
				return
			}
			if x.end < hi && x.ender == ender && !yield(x) {
				return
			}
		}
	}
}

// turns are the turns at all places where goroutines wait for messages.
type turns map[FuncID]*site

// add notes that ender ended a wait of waiter at place, which lasted from begin until now. Ids has
// the goroutines' kinds.
func (t *turns) add(place FuncID, waiter, ender uint32, begin, now int64, ids *identities) {
	if now-begin < turnLeast || place == 0 {
		return
	}
	s := (*t)[place]
	if s == nil {
		if len(*t) >= turnSites {
			return
		}
		if *t == nil {
			*t = turns{}
		}
		s = new(site)
		(*t)[place] = s
	}
	if ids.Alike(waiter, ender) {
		ender = ownKind
	} else {
		ids.idents[waiter].Served = true
	}
	s.last[s.n%turnsKept] = turn{now, ender, waiter}
	s.n++
}

// Serving is how it is known that a worker's waits were for those that waited for it, one after
// another.
type Serving uint8

const (
	ServingUnknown Serving = iota
	// In its turns it woke others, which are no requests: it asked somebody for something.
	ServingHelpers
	// Those whose turn it was waited for it once more, elsewhere: a connection that is handed on,
	// and then used.
	ServingAgain
)

// serves is [Timeline.Serves], with the goroutines' kinds from ids. In steps:
//  1. List the turns at place, the latest first.
//  2. For each wait elsewhere that the same goroutine ended, find the turn that this end followed:
//     the latest that did not end after it.
//  3. A turn after which its own waiter was woken again speaks for ServingAgain. One after which a
//     goroutine of another kind was woken speaks for ServingHelpers.
//  4. Three quarters of the turns decide.
func (t turns) serves(place FuncID, waiter, ender uint32, lo, hi int64, ids *identities) Serving {
	ends := t[place]
	if ends == nil {
		return ServingUnknown
	}
	type served struct {
		turn
		helper, again bool
	}
	var list []served
	for x := range ends.latest(ender, lo, hi) {
		list = append(list, served{turn: *x})
	}
	for other, s := range t {
		if other == place {
			continue
		}
		k := 0
		for x := range s.latest(ender, lo, hi) {
			for k < len(list) && list[k].end > x.end {
				k++
			}
			if k == len(list) {
				break
			}
			list[k].again = list[k].again || x.waiter == list[k].waiter
			list[k].helper = list[k].helper || !ids.Alike(x.waiter, waiter)
		}
	}
	helped, again := 0, 0
	for i := range list {
		if list[i].helper {
			helped++
		}
		if list[i].again {
			again++
		}
	}
	switch {
	case len(list) == 0:
	case 4*again >= 3*len(list):
		return ServingAgain
	case 4*helped >= 3*len(list):
		return ServingHelpers
	}
	return ServingUnknown
}

// count is [Timeline.Turns].
func (t turns) count(place FuncID, ender uint32, lo, hi int64) (n int, last, longest int64) {
	next := hi
	if s := t[place]; s != nil {
		for x := range s.latest(ender, lo, hi) {
			longest = max(longest, next-x.end)
			if next = x.end; n == 0 {
				last = x.end
			}
			n++
		}
	}
	return n, last, max(longest, next-lo)
}
