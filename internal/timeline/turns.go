package timeline

import "github.com/whystall/whystall/exectrace"

// A goroutine that waits for a message may wait for its turn. Two cases show in who ends the waits at a place. Goroutines of
// one kind that end each other's waits, one after another, hand something on that there is too little of: a token, a
// pooled connection. And a worker ends the waits of all that it works for. The runtime tells of no
// semaphore, pool or worker, only of these ends, so the last ones of each place are kept until a wait is explained.

const (
	turnsKept = 256
	turnSites = 512
	turnLeast = 1e6 // ns; shorter waits are no queue worth a word, and most of all
)

// turns are the latest ends of waits at a place: the last ones of at and by, n of them since the begin.
type turns struct {
	at [turnsKept]int64
	by [turnsKept]uint32 // ident of who ended it; 0: one of the waiter's own kind
	of [turnsKept]uint32 // ident of who waited
	n  int
}

// turn notes that the goroutine with ident by ended a wait of g for a message, which began at begin.
func (t *Timeline) turn(g *G, by uint32, begin, now int64) {
	if now-begin < turnLeast || g.site == 0 {
		return
	}
	r := t.turns[g.site]
	if r == nil {
		if len(t.turns) >= turnSites {
			return
		}
		if t.turns == nil {
			t.turns = map[FuncID]*turns{}
		}
		r = new(turns)
		t.turns[g.site] = r
	}
	if t.Alike(g.Ident, by) {
		by = 0
	} else {
		t.idents[g.Ident].Served = true
	}
	r.at[r.n%turnsKept], r.by[r.n%turnsKept], r.of[r.n%turnsKept] = now, by, g.Ident
	r.n++
}

// Alike tells whether two goroutines have the same entry function.
func (t *Timeline) Alike(a, b uint32) bool {
	e := t.idents[a].Entry
	return e != 0 && e == t.idents[b].Entry
}

// Turns tells of a wait [lo,hi) at site, which the goroutine with ident by ended, how many others there ended within it by the same
// goroutine, or, if own, by any of the waiter's kind; the last of them; and the longest time without one, ns.
func (t *Timeline) Turns(site FuncID, by uint32, own bool, lo, hi int64) (n int, last, longest int64) {
	if own {
		by = 0
	}
	next := hi
	if r := t.turns[site]; r != nil {
		for i := r.n - 1; i >= max(0, r.n-turnsKept); i-- {
			at := r.at[i%turnsKept]
			if at <= lo {
				break
			}
			if at >= hi || r.by[i%turnsKept] != by {
				continue
			}
			longest = max(longest, next-at)
			if next = at; n == 0 {
				last = at
			}
			n++
		}
	}
	return n, last, max(longest, next-lo)
}

// Serving is how it is known that a worker's waits were for those that waited for it, one after another.
type Serving uint8

const (
	ServingUnknown Serving = iota
	ServingHelpers         // in its turns it woke others, that are no requests, as one does that asks somebody for something
	ServingAgain           // whose turn it was waited for it once more, elsewhere: a connection that is handed on, and then used
)

// Serves tells of a wait [lo,hi) of waiter at site, which by ended, what by did in the turns that Turns counts. A reader that hands out answers as they
// come ends waits one after another as well, and does neither.
func (t *Timeline) Serves(site FuncID, waiter, by uint32, lo, hi int64) Serving {
	ends := t.turns[site]
	if ends == nil {
		return ServingUnknown
	}
	type turn struct {
		at            int64
		of            uint32
		helper, again bool
	}
	var list []turn // the latest first
	for i := ends.n - 1; i >= max(0, ends.n-turnsKept); i-- {
		at := ends.at[i%turnsKept]
		if at <= lo {
			break
		}
		if at < hi && ends.by[i%turnsKept] == by {
			list = append(list, turn{at: at, of: ends.of[i%turnsKept]})
		}
	}
	for other, r := range t.turns {
		if other == site {
			continue
		}
		k := 0
		for i := r.n - 1; i >= max(0, r.n-turnsKept) && k < len(list); i-- {
			at := r.at[i%turnsKept]
			if at <= lo {
				break
			}
			if at >= hi || r.by[i%turnsKept] != by {
				continue
			}
			for k < len(list) && list[k].at > at {
				k++
			}
			if k < len(list) {
				of := r.of[i%turnsKept]
				list[k].again = list[k].again || of == list[k].of
				list[k].helper = list[k].helper || !t.Alike(of, waiter)
			}
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

// askedBack bounds how far Asked looks back: a request in many writes, and reads that found nothing.
const askedBack = 64

// Asked tells of a wait for the network in segment seg, of the goroutine with ident who, that it had asked for what it waited for: since the wait
// before it wrote to a socket itself, and at other times it waits for others to send it work. A
// reader that hands out answers as they come writes nothing, or at most says that it had them; but it always waits for the network.
func (t *Timeline) Asked(who, seg uint32) bool {
	if !t.idents[who].Served {
		return false
	}
	s := t.Seg(seg)
	for n := 0; s != nil && s.Prev != 0 && n < askedBack; n++ {
		if s = t.Seg(s.Prev); s == nil {
			return false
		}
		switch s.State() {
		case Syscall:
			if t.Get(exectrace.StackID(s.Stack)).sends {
				return true
			}
		case Waiting:
			return false
		}
	}
	return false
}
