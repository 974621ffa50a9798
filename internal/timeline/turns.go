package timeline

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
	}
	r.at[r.n%turnsKept], r.by[r.n%turnsKept] = now, by
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
