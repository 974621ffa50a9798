package thread

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/unit"
)

// The ledger of native threads. Units of work are found first (package request); each is added to the column of all by its own states,
// and explained (threadwalk.go) if it may be printed. Who is kept and how columns are added up is that of goroutines' (keep.go, columns.go).

// threadOptions of RunThreads. The zero value is right for most.
type Options struct {
	Entry    *regexp.Regexp // only groups whose entry function, or units whose name, matches
	SlowOver int64          // ns: slow is what took at least as long; 0: the slowest 1 % of each group, at least 10 in all
	Set      *evidence.Set  // small readings beside the kernel's records: quota, allowed CPUs; nil without them
}

// RunThreads accounts for a program of which nothing is known but what the kernel recorded of its threads. An error with a
// result means that a sum is wrong.
func Run(ctx context.Context, k *sched.Timeline, o Options) (*account.Result, error) {
	return newPass(k, o).run(ctx)
}

// threadPass is the state of one pass over threads.
type pass struct {
	o     Options
	k     *sched.Timeline
	base  int64 // CLOCK_MONOTONIC of the books' 0
	books *books.Books
	walk  *Walk
	units *unit.Set
	turns *turns
	words *capacity.Words
	names books.NameList // of actors, sites and details
	what  *unit.Unit     // that is explained

	actors map[uint32]uint32 // by TID
	sites  map[placeKey]*site
	usual  map[usualKey]usualPlace // nil: not asked for yet
	locks  map[uint64]uint32       // number of a lock by its address
	addrs  []uint64                // of locks, by number
	sum    int64                   // of the unit that is explained
	cursor int64                   // up to where it is told
	buf    []sched.Stretch

	wrong error  // the first sum that was wrong
	told  func() // tests: a unit was explained
}

func newPass(k *sched.Timeline, o Options) *pass {
	t := &pass{
		o: o, k: k, walk: NewWalk(k), actors: map[uint32]uint32{}, locks: map[uint64]uint32{}, sites: map[placeKey]*site{},
	}
	t.base, _ = k.Span()
	t.books = books.New(t, nil, o.SlowOver, t.names.Number("(others)"))
	t.words = capacity.NewWords(k, t.names.Number)
	t.units = unit.Find(k, request.Options{Entry: o.Entry})
	t.turns = newTurns(t.walk, t.units)
	return t
}

func (t *pass) run(ctx context.Context) (*account.Result, error) {
	sums := Beside(t.k, t.o.Set)
	begin, end := t.k.Span()
	own := make([]int64, len(t.units.Units))
	for i := range t.units.Units {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, fmt.Errorf("account for threads: %w", ctx.Err())
		}
		own[i] = t.unit(&t.units.Units[i])
	}
	for n, c := range t.pick(own) {
		if n%64 == 0 && ctx.Err() != nil {
			return nil, fmt.Errorf("account for threads: %w", ctx.Err())
		}
		t.keep(&t.units.Units[c.unit], own[c.unit], c)
	}
	r := &account.Result{Native: true, Monotonic: true, Begin: begin, End: end}
	s := t.books.Ledgers(r, t.units.Groups)
	if r.Requests.Count == 0 && t.units.Cause != "" {
		r.Requests.NoRequestsCause = t.units.Cause
	}
	t.lockTable(r, s)
	r.Kernel = sums()
	waits, on := t.lockWaits(r.Kernel)
	on = append(on, capacity.Waited(&r.All)...)
	account.SortInstead(on)
	r.CPUs = capacity.CPUs(t.k, t.o.Set, append(t.flight(), waits...).Merge(), on)
	return r, t.wrong
}

// Func is the name with a number. It and the next four are what the books ask: see books.Names.
func (t *pass) Func(id uint32) string { return t.names.Name(id) }

// Place is a place in the program. Places are names here.
func (t *pass) Place(stack uint32) account.Site { return account.Site{Func: t.names.Name(stack)} }

// SiteOf is the place itself.
func (t *pass) SiteOf(stack uint32, _ bool) uint32 { return stack }

// Behind is who had a CPU.
func (t *pass) Behind(ref uint32) account.Instead { return t.words.Instead(ref) }

// Time is CLOCK_MONOTONIC.
func (t *pass) Time(at int64) int64 { return t.base + at }

// flight is when units of the listed groups were under way.
func (t *pass) flight() (l capacity.Times) {
	for i := range t.units.Units {
		if u := &t.units.Units[i]; t.units.Groups[u.Group].Listed {
			l = append(l, capacity.Span{Lo: u.Begin, Hi: u.End})
		}
	}
	return l.Merge()
}

// own adds a unit to its group's column of all, by the thread's own states, and returns how long it was on a CPU.
func (t *pass) own(grp *books.Group, u *unit.Unit) (on int64) {
	c := &grp.All
	c.Wall += u.End - u.Begin
	t.buf = t.k.Stretches(u.TID, u.Begin, u.End, t.buf[:0])
	for i := range t.buf {
		s := &t.buf[i]
		class, leaf := t.ownLeaf(s)
		if leaf == books.LeafOnCPU {
			on += s.End - s.Begin
		}
		place := uint32(0)
		if s.Doing == sched.Blocked {
			place = t.detail(t.siteOf(u.TID, s))
		}
		c.Add(class, leaf, place, s.End-s.Begin)
	}
	return on
}

// ownLeaf is what a thread's own stretch is booked to where its waits are not followed.
func (t *pass) ownLeaf(s *sched.Stretch) (books.Class, books.Leaf) {
	leaf, _ := LeafOf(s)
	if s.Doing != sched.Blocked {
		return books.ClassOwn, leaf
	}
	if t.walk.isLock(s) {
		leaf = books.LeafLock
	}
	return classOfLeaf(leaf), leaf
}

// classOfLeaf is the class of a wait that was not followed.
func classOfLeaf(l books.Leaf) books.Class {
	switch l {
	case books.LeafNetwork, books.LeafTimer:
		return books.ClassOutside
	case books.LeafLock, books.LeafLockBetween:
		return books.ClassLock
	}
	return books.ClassOwn
}

// explain fills in k's facts.
func (t *pass) explain(k *books.Kept, u *unit.Unit) {
	t.books.Facts().Reset()
	t.sum, t.cursor, t.what = 0, u.Begin, u
	t.walk.joiner = u.Joiner
	t.walk.Thread(u.TID, u.Begin, u.End, t.tell)
	t.walk.joiner = 0
	k.Limited = t.walk.limited()
	t.books.TakeFacts(k)
	if t.wrong == nil && (t.sum != u.End-u.Begin || t.cursor != u.End) {
		t.wrong = fmt.Errorf("account for thread %d from %d ns: internal error: pieces add up to %d ns of %d", u.TID, u.Begin, t.sum, u.End-u.Begin)
	}
	if t.told != nil {
		t.told()
	}
}

// tell books one piece.
func (t *pass) tell(q *Piece) {
	if q.Lo == t.cursor {
		t.cursor = q.Hi
	}
	if q.Leaf != books.LeafNoCPU {
		t.book(q, 0, sched.NobodyKnown, q.Hi-q.Lo, t.measures(q))
		return
	}
	left := q.Hi - q.Lo
	for _, s := range q.Shares {
		ns := min(s.NS, left)
		if s.TID == sched.NobodyKnown || ns <= 0 {
			continue
		}
		left -= ns
		t.book(q, t.words.Behind(s.TID, q.Lo).Detail, s.TID, ns, t.measures(q))
	}
	if left > 0 {
		t.book(q, 0, sched.NobodyKnown, left, false)
	}
}

// measures: both ends of the piece are events.
func (t *pass) measures(q *Piece) bool {
	for i := range q.Hops {
		if q.Hops[i].Inferred {
			return false
		}
	}
	switch {
	case q.Leaf >= books.LeafLockBetween && q.Leaf <= books.LeafOther, q.Leaf == books.LeafMissing, q.Leaf == books.LeafLock:
		return false
	case q.Leaf == books.LeafThrottled:
		return !q.State.ByGroup
	case q.State.Sampled:
		return false
	}
	return true
}

// book books ns of a piece.
func (t *pass) book(q *Piece, behind, who uint32, ns int64, measured bool) {
	t.sum += ns
	key := books.Key{Class: classOfLeaf(q.Leaf), Leaf: q.Leaf, Detail: behind}
	wait, waiter := &q.State, q.TID
	lock := uint64(0)
	// Before its birth and after its end others do a thread's waiting: that is no hop to tell of where they wait for others themselves.
	hops := q.Hops
	unborn := len(hops) > 0 && hops[0].kind == hopMaker
	if unborn && len(hops) > 1 {
		hops = hops[1:]
	}
	if len(hops) > 0 {
		h := &hops[0]
		wait, waiter = &h.wait, h.waiter
		if unborn && h.kind == hopMaker {
			wait, waiter = &q.State, q.TID
		}
		if key.Class = books.ClassMessage; h.kind == hopLock {
			key.Class, lock = books.ClassLock, h.wait.Futex
		}
		key.Actor = t.actor(q.TID, q.Lo)
	} else if key.Class == books.ClassLock {
		lock = q.State.Futex
	}
	if wait.Doing == sched.Blocked && (len(hops) > 0 || q.Leaf.HasSite() || key.Class == books.ClassLock) {
		key.Site = t.detail(t.siteOf(waiter, wait))
	}
	if q.Leaf == books.LeafAsleep {
		key.Detail = t.words.Slept(&q.State)
	}
	acct := t.books.Number(key)
	c := t.books.Facts()
	c.Add(acct, books.FactNS, 0, ns)
	if len(hops) > 0 {
		c.Add(acct, books.FactActor, q.TID, 0)
	}
	if unborn {
		c.Add(acct, books.FactNewborn, 0, ns)
	} else if len(hops) > 0 {
		switch theirs, permit := t.turns.others(t.what, &hops[0], q.Lo, q.Hi); {
		case theirs == 0:
		case permit:
			c.Add(acct, books.FactPermit, 0, account.MulDiv(ns, theirs, q.Hi-q.Lo))
		default:
			c.Add(acct, books.FactServing, 0, account.MulDiv(ns, theirs, q.Hi-q.Lo))
		}
	}
	if q.State.Doing == sched.Blocked {
		if place := t.detail(t.siteOf(q.TID, &q.State)); place != 0 {
			c.Add(acct, books.FactStack, place, ns)
			c.Add(acct, books.FactStackN, place, 1)
		}
	}
	if lock != 0 {
		c.Add(acct, books.FactLock, t.lock(lock), ns)
	}
	for i := range hops {
		if h := &hops[i]; i > 0 && h.kind == hopLock {
			c.Add(acct, books.FactThrough, t.detail(t.named(&h.wait, h.wait.User)), ns)
			break
		}
	}
	for i := range q.Hops {
		if q.Hops[i].Inferred {
			c.Add(acct, books.FactInferred, 0, ns)
			break
		}
	}
	if q.Leaf == books.LeafNoCPU {
		c.Add(acct, books.FactBehind, t.words.Ref(who), ns)
		if !unborn && t.walk.lives().Making(q.TID, &q.State) {
			c.Add(acct, books.FactNewborn, 0, ns)
		}
	}
	if measured {
		c.Add(acct, books.FactMeasured, 0, ns)
	}
}

// actor is what a thread is called.
func (t *pass) actor(tid uint32, at int64) uint32 {
	id, ok := t.actors[tid]
	if !ok {
		name := t.units.Name(tid, at)
		if name == "" {
			th, _ := t.k.Name(tid, at)
			name = unit.CommPattern(th.Comm)
		}
		id = t.names.Number(cmp.Or(name, "unknown"))
		t.actors[tid] = id
	}
	return id
}

// lock is the number of a lock.
func (t *pass) lock(addr uint64) uint32 {
	n, ok := t.locks[addr]
	if !ok {
		n = uint32(len(t.addrs))
		t.locks[addr] = n
		t.addrs = append(t.addrs, addr)
	}
	return n
}

// lockTable lists the locks that slow units waited for.
func (t *pass) lockTable(r *account.Result, slow *books.Column) {
	for n, accounts := range slow.Locks {
		if int(n) >= len(t.addrs) {
			continue
		}
		addr := t.addrs[n]
		l := account.Lock{}
		if f := t.k.Futex(addr); f != nil {
			l.Waits, l.WaitNS, l.MaxQueue = f.Waits, f.NS, f.Queue
			l.Stack = t.walk.frames(f.User)
			if name := t.walk.lockName(f); name != "" {
				l.Sites = []string{name}
			}
		}
		if l.Sites == nil {
			l.Sites = []string{waitSite(t.k, &sched.Stretch{Block: sched.BlockFutex, Futex: addr})}
		}
		t.books.SumLock(&l, accounts, books.LeafLock, nil)
		r.Locks = append(r.Locks, l)
	}
	slices.SortFunc(r.Locks, func(a, b account.Lock) int {
		return cmp.Or(cmp.Compare(b.SlowNS, a.SlowNS), cmp.Compare(b.WaitNS, a.WaitNS), cmp.Compare(b.Waits, a.Waits), slices.Compare(a.Sites, b.Sites))
	})
	r.Locks = r.Locks[:min(len(r.Locks), books.MostLocks)]
}
