package ledger

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/timeline"
	"github.com/whystall/whystall/internal/unit"
)

// The ledger of native threads. Units of work are found first (package request); each is added to the column of all by its own states,
// and explained (threadwalk.go) if it may be printed. Who is kept and how columns are added up is that of goroutines' (keep.go, columns.go).

// RunThreads accounts for a program of which nothing is known but what the kernel recorded of its threads. An error with a
// result means that a sum is wrong.
func RunThreads(ctx context.Context, k *sched.Timeline, o Options) (*account.Result, error) {
	return newThreadPass(k, o).run(ctx)
}

// threadPass is a pass whose actors are threads.
type threadPass struct {
	*pass
	k     *sched.Timeline
	walk  *threadWalk
	units *unit.Set
	turns *turns
	what  *unit.Unit // that is explained
	src   *threadSource

	picks  []*[strata][]uint64        // by group: the hashes of the sample
	actors map[uint32]timeline.FuncID // by TID
	sites  map[placeKey]*site
	usual  map[usualKey]usualPlace // nil: not asked for yet
	locks  map[uint64]uint32       // number of a lock by its address
	addrs  []uint64                // of locks, by number
	sum    int64                   // of the unit that is explained
	at     int64
	buf    []sched.Stretch
}

func newThreadPass(k *sched.Timeline, o Options) *threadPass {
	src := newThreadSource()
	o.Kernel, o.Bytes = k, 1<<16 // of goroutines, of which there are none
	t := &threadPass{k: k, src: src, walk: newThreadWalk(k), actors: map[uint32]timeline.FuncID{}, locks: map[uint64]uint32{}, sites: map[placeKey]*site{}}
	sums := kernelBeside(k, o.Set)
	t.units = unit.Find(k, request.Options{Entry: o.Entry})
	t.turns = newTurns(t.walk, t.units)
	t.pass = newPass(src, threadGroups{t.units}, o)
	t.pass.sums = sums
	t.j = newJoiner(k, t.tl)
	t.walk.out = t.tell
	return t
}

func (t *threadPass) run(ctx context.Context) (*account.Result, error) {
	begin, end := t.k.Span()
	t.tl.Advance(exectrace.Time(begin))
	t.tl.Advance(exectrace.Time(end))
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
	s := t.ledgers(r)
	if r.Requests.Count == 0 && t.units.Cause != "" {
		r.Requests.NoRequestsCause = t.units.Cause
	}
	t.lockTable(r, s)
	r.Kernel = t.sums()
	waits, on := t.lockWaits(r.Kernel)
	on = append(on, capacity.Waited(&r.All)...)
	account.SortInstead(on)
	r.CPUs = capacity.CPUs(t.k, t.o.Set, append(t.flight(), waits...).Merge(), on)
	return r, t.wrong
}

// flight is when units of the listed groups were under way.
func (t *threadPass) flight() (l capacity.Times) {
	for i := range t.units.Units {
		if u := &t.units.Units[i]; t.units.Groups[u.Group].Listed {
			l = append(l, capacity.Span{Lo: u.Begin, Hi: u.End})
		}
	}
	return l.Merge()
}

// own adds a unit to its group's column of all, by the thread's own states, and returns how long it was on a CPU.
func (t *threadPass) own(grp *group, u *unit.Unit) (on int64) {
	c := &grp.all
	c.wall += u.End - u.Begin
	t.buf = t.k.Stretches(u.TID, u.Begin, u.End, t.buf[:0])
	for i := range t.buf {
		s := &t.buf[i]
		class, leaf := t.ownLeaf(s)
		if leaf == codeOnCPU {
			on += s.End - s.Begin
		}
		place := exectrace.StackID(0)
		if s.Doing == sched.Blocked {
			place = t.place(t.siteOf(u.TID, s))
		}
		c.add(class, leaf, uint32(place), s.End-s.Begin)
	}
	return on
}

// ownLeaf is what a thread's own stretch is booked to where its waits are not followed.
func (t *threadPass) ownLeaf(s *sched.Stretch) (classCode, leafCode) {
	switch s.Doing {
	case sched.OnCPU:
		if leaf, ok := blockLeaf(s.Block); ok && s.Block.Stalls() {
			return classOwn, leaf
		}
		return classOwn, codeOnCPU
	case sched.Queued:
		return classOwn, codeNoCPU
	case sched.Throttled:
		return classOwn, codeThrottled
	case sched.Blocked:
		leaf, _ := blockLeaf(s.Block)
		if t.walk.isLock(s) {
			leaf = codeLock
		}
		return classOfLeaf(leaf), leaf
	case sched.Gone:
		return classOwn, codeBornOutside
	}
	return classOwn, codeMissing
}

// classOfLeaf is the class of a wait that was not followed.
func classOfLeaf(l leafCode) classCode {
	switch l {
	case codeNetwork, codeTimer:
		return classOutside
	case codeLock, codeLockBetween:
		return classLock
	}
	return classOwn
}

// explain fills in k's facts.
func (t *threadPass) explain(k *kept, u *unit.Unit) {
	t.cur.reset()
	t.sum, t.at, t.what = 0, u.Begin, u
	t.walk.joiner = u.Joiner
	t.walk.thread(u.TID, u.Begin, u.End)
	t.walk.joiner = 0
	k.limited = t.walk.visits > maxVisits
	if t.wrong == nil && (t.sum != u.End-u.Begin || t.at != u.End) {
		t.wrong = fmt.Errorf("account for thread %d from %d ns: internal error: pieces add up to %d ns of %d", u.TID, u.Begin, t.sum, u.End-u.Begin)
	}
	if t.told != nil {
		t.told()
	}
	k.facts = t.worth(k.wall())
}

// tell books one piece.
func (t *threadPass) tell(q *threadPiece) {
	if q.Lo == t.at {
		t.at = q.Hi
	}
	if q.leaf != codeNoCPU {
		t.book(q, 0, sched.NobodyKnown, q.Hi-q.Lo, t.measures(q))
		return
	}
	left := q.Hi - q.Lo
	for _, s := range q.by {
		ns := min(s.NS, left)
		if s.TID == sched.NobodyKnown || ns <= 0 {
			continue
		}
		left -= ns
		t.book(q, t.j.behindWhom(s.TID, q.Lo).detail, s.TID, ns, t.measures(q))
	}
	if left > 0 {
		t.book(q, 0, sched.NobodyKnown, left, false)
	}
}

// measures: both ends of the piece are events.
func (t *threadPass) measures(q *threadPiece) bool {
	for i := range q.hops {
		if q.hops[i].inferred {
			return false
		}
	}
	switch {
	case q.leaf >= codeLockBetween && q.leaf <= codeOther, q.leaf == codeMissing, q.leaf == codeLock:
		return false
	case q.leaf == codeThrottled:
		return !q.at.ByGroup
	case q.at.Sampled:
		return false
	}
	return true
}

// book books ns of a piece.
func (t *threadPass) book(q *threadPiece, behind timeline.FuncID, who uint32, ns int64, measured bool) {
	t.sum += ns
	key := accountKey{class: classOfLeaf(q.leaf), leaf: q.leaf, detail: uint32(behind)}
	wait, waiter := &q.at, q.tid
	lock := uint64(0)
	// Before its birth and after its end others do a thread's waiting: that is no hop to tell of where they wait for others themselves.
	hops := q.hops
	unborn := len(hops) > 0 && hops[0].kind == hopMaker
	if unborn && len(hops) > 1 {
		hops = hops[1:]
	}
	if len(hops) > 0 {
		h := &hops[0]
		wait, waiter = &h.wait, h.waiter
		if unborn && h.kind == hopMaker {
			wait, waiter = &q.at, q.tid
		}
		if key.class = classMessage; h.kind == hopLock {
			key.class, lock = classLock, h.wait.Futex
		}
		key.actor = t.actor(q.tid, q.Lo)
	} else if key.class == classLock {
		lock = q.at.Futex
	}
	if wait.Doing == sched.Blocked && (len(hops) > 0 || q.leaf.hasSite() || key.class == classLock) {
		key.site = t.detail(t.siteOf(waiter, wait))
	}
	if q.leaf == codeAsleep {
		key.detail = uint32(t.j.sleep(&q.at))
	}
	acct := t.acc.id(key)
	c := &t.cur
	c.add(acct, factNS, 0, ns)
	if len(hops) > 0 {
		c.add(acct, factActor, q.tid, 0)
	}
	if unborn {
		c.add(acct, factNewborn, 0, ns)
	} else if len(hops) > 0 {
		switch theirs, permit := t.turns.others(t.what, &hops[0], q.Lo, q.Hi); {
		case theirs == 0:
		case permit:
			c.add(acct, factPermit, 0, account.MulDiv(ns, theirs, q.Hi-q.Lo))
		default:
			c.add(acct, factServing, 0, account.MulDiv(ns, theirs, q.Hi-q.Lo))
		}
	}
	if q.at.Doing == sched.Blocked {
		if place := t.place(t.siteOf(q.tid, &q.at)); place != 0 {
			c.add(acct, factStack, uint32(place), ns)
			c.add(acct, factStackN, uint32(place), 1)
		}
	}
	if lock != 0 {
		c.add(acct, factLock, t.lock(lock), ns)
	}
	for i := range hops {
		if h := &hops[i]; i > 0 && h.kind == hopLock {
			c.add(acct, factThrough, uint32(t.detail(t.named(&h.wait, h.wait.User))), ns)
			break
		}
	}
	for i := range q.hops {
		if q.hops[i].inferred {
			c.add(acct, factInferred, 0, ns)
			break
		}
	}
	if q.leaf == codeNoCPU {
		c.add(acct, factBehind, t.j.refOf(who), ns)
		if !unborn && t.walk.lives().Making(q.tid, &q.at) {
			c.add(acct, factNewborn, 0, ns)
		}
	}
	if measured {
		c.add(acct, factMeasured, 0, ns)
	}
}

// actor is what a thread is called.
func (t *threadPass) actor(tid uint32, at int64) timeline.FuncID {
	id, ok := t.actors[tid]
	if !ok {
		name := t.units.Name(tid, at)
		if name == "" {
			th, _ := t.k.Name(tid, at)
			name = unit.CommPattern(th.Comm)
		}
		id = t.tl.Name(cmp.Or(name, "unknown"))
		t.actors[tid] = id
	}
	return id
}

// lock is the number of a lock.
func (t *threadPass) lock(addr uint64) uint32 {
	n, ok := t.locks[addr]
	if !ok {
		n = uint32(len(t.addrs))
		t.locks[addr] = n
		t.addrs = append(t.addrs, addr)
	}
	return n
}

// lockTable lists the locks that slow units waited for.
func (t *threadPass) lockTable(r *account.Result, slow *column) {
	for n, accounts := range slow.locks {
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
		t.acc.lockSum(&l, accounts, codeLock, t.tl.Func, nil)
		r.Locks = append(r.Locks, l)
	}
	slices.SortFunc(r.Locks, func(a, b account.Lock) int {
		return cmp.Or(cmp.Compare(b.SlowNS, a.SlowNS), cmp.Compare(b.WaitNS, a.WaitNS), cmp.Compare(b.Waits, a.Waits), slices.Compare(a.Sites, b.Sites))
	})
	r.Locks = r.Locks[:min(len(r.Locks), mostLocks)]
}

// threadGroups is the groups of threads' units, as a pass wants them.
type threadGroups struct{ t *unit.Set }

func (threadGroups) Event(*exectrace.Event) []request.Activation { return nil }
func (threadGroups) Finish(exectrace.Time) []request.Activation  { return nil }
func (g threadGroups) Groups() []request.Group                   { return g.t.Groups }
func (threadGroups) Launchers() []string                         { return nil }
func (threadGroups) Name(request.NameID) string                  { return "" }

// threadSource is a trace without an event. Its stacks are the places where threads wait.
type threadSource struct {
	byPlace map[string]exectrace.StackID
	places  []string
}

func newThreadSource() *threadSource {
	return &threadSource{byPlace: map[string]exectrace.StackID{}, places: []string{""}}
}

// place numbers a place. 0 is none.
func (s *threadSource) place(name string) exectrace.StackID {
	if name == "" {
		return 0
	}
	id, ok := s.byPlace[name]
	if !ok {
		if len(s.places) >= mostDetails {
			return 0
		}
		id = exectrace.StackID(len(s.places))
		s.byPlace[name] = id
		s.places = append(s.places, name)
	}
	return id
}

func (*threadSource) Version() exectrace.Version       { return 0 }
func (*threadSource) Lacks() []string                  { return nil }
func (*threadSource) Clock() exectrace.Clock           { return exectrace.Clock{Monotonic: true} }
func (*threadSource) Gaps() []exectrace.Gap            { return nil }
func (*threadSource) Stats() exectrace.Stats           { return exectrace.Stats{} }
func (*threadSource) Err() error                       { return nil }
func (*threadSource) String(exectrace.StringID) string { return "" }
func (*threadSource) Blocks() iter.Seq[[]exectrace.Event] {
	return func(func([]exectrace.Event) bool) {}
}

func (s *threadSource) Frames(dst []exectrace.Frame, id exectrace.StackID) []exectrace.Frame {
	if id == 0 || int(id) >= len(s.places) {
		return dst
	}
	return append(dst, exectrace.Frame{Func: s.places[id]})
}
