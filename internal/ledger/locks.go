package ledger

import (
	"sort"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/timeline"
)

// A trace has neither a lock's address nor its acquisition, only the unlock that wakes a waiter. So
// a lock is a class of sites: each wake-up joins the site of the wait with the site of the unlock.
// The holder is the unlocker, back to its last wait or system call outside the class. See
// docs/ledger.md, "6. Locks".

// release is an unlock that woke a waiter.
type release struct {
	at    int64
	ident uint32
	seg   uint32 // the unlocker's segment
}

type lockClass struct {
	sites    []timeline.FuncID
	releases []release // in order of time
	waits    int64
	waitNS   int64
	handoffs int64
	maxQueue int32
	stacks   map[exectrace.StackID]int64 // waits by stack
}

type locks struct {
	tl      *timeline.Timeline
	bySite  []uint32 // FuncID -> class + 1, to be resolved by find
	parent  []uint32
	classes []lockClass
	kept    int // releases
}

// maxReleases bounds what is remembered of all classes, 16 bytes each.
const maxReleases = 1 << 17

const maxLockStacks = 256

// class is the class of a site.
func (l *locks) class(site timeline.FuncID) uint32 {
	for int(site) >= len(l.bySite) {
		l.bySite = append(l.bySite, make([]uint32, max(256, len(l.bySite)))...)
	}
	if c := l.bySite[site]; c != 0 {
		return l.find(c - 1)
	}
	c := uint32(len(l.classes))
	l.classes = append(l.classes, lockClass{sites: []timeline.FuncID{site}})
	l.parent = append(l.parent, c)
	l.bySite[site] = c + 1
	return c
}

func (l *locks) find(c uint32) uint32 {
	for l.parent[c] != c {
		l.parent[c] = l.parent[l.parent[c]]
		c = l.parent[c]
	}
	return c
}

// union makes one class of two. The lower number stays, so that the outcome depends on the order of
// events alone.
func (l *locks) union(a, b uint32) uint32 {
	if a == b {
		return a
	}
	if b < a {
		a, b = b, a
	}
	x, y := &l.classes[a], &l.classes[b]
	l.parent[b] = a
	x.sites = append(x.sites, y.sites...)
	x.waits += y.waits
	x.waitNS += y.waitNS
	x.handoffs += y.handoffs
	x.maxQueue = max(x.maxQueue, y.maxQueue)
	for id, n := range y.stacks {
		x.countStack(id, n)
	}
	if len(y.releases) > 0 {
		x.releases = append(x.releases, y.releases...)
		sort.SliceStable(x.releases, func(i, j int) bool { return x.releases[i].at < x.releases[j].at })
	}
	*y = lockClass{}
	return a
}

func (c *lockClass) countStack(id exectrace.StackID, n int64) {
	if c.stacks == nil {
		c.stacks = map[exectrace.StackID]int64{}
	}
	if _, ok := c.stacks[id]; ok || len(c.stacks) < maxLockStacks {
		c.stacks[id] += n
	}
}

// woken takes a wake-up from a lock.
func (l *locks) woken(w *timeline.Woken) {
	c := l.class(w.Site)
	if w.EnderKind == timeline.EnderGoroutine && w.OnStack != 0 && l.tl.Unlocks(w.OnStack) {
		if site := l.tl.Get(w.OnStack).LockSite; site != 0 {
			c = l.union(c, l.class(site))
		}
	}
	x := &l.classes[c]
	x.waits++
	x.waitNS += w.End - w.Begin
	x.maxQueue = max(x.maxQueue, w.Queue)
	x.countStack(w.Stack, 1)
	if w.EnderKind != timeline.EnderGoroutine {
		return
	}
	if w.Queue > 1 {
		x.handoffs++
	}
	x.releases = append(x.releases, release{w.End, w.Waker, w.Seg})
	if l.kept++; l.kept > maxReleases {
		l.kept = 0
		for i := range l.classes {
			r := &l.classes[i].releases
			*r = (*r)[:copy(*r, (*r)[len(*r)/2:])]
			l.kept += len(*r)
		}
	}
}

// has reports whether a stack has a site of the class.
func (l *locks) has(class uint32, stack exectrace.StackID) bool {
	if stack == 0 {
		return false
	}
	for _, f := range l.tl.Funcs(stack) {
		if int(f) < len(l.bySite) && l.bySite[f] != 0 && l.find(l.bySite[f]-1) == class {
			return true
		}
	}
	return false
}

// releasedWithin reports whether anybody but ident released a lock of the class in [lo,hi) while
// somebody waited for it.
func (l *locks) releasedWithin(class uint32, lo, hi int64, ident uint32) bool {
	rels := l.classes[class].releases
	for i := sort.Search(len(rels), func(i int) bool { return rels[i].at >= lo }); i < len(rels) &&
		rels[i].at < hi; i++ {
		if rels[i].ident != ident {
			return true
		}
	}
	return false
}

// acquired is the earliest moment, from lo on, at which the unlocker can have acquired the lock:
// the end of its last wait or system call outside the class. seq is the segment in which it
// unlocked.
func (l *locks) acquired(tl *timeline.Timeline, class, ident, seq uint32, lo int64, visits *int) int64 {
	end := int64(-1) // end of the segment looked at; for the first it does not matter, as the unlocker ran
	for {
		s := tl.Seg(seq)
		if s == nil {
			return lo // the walk will meet the same limit and say so
		}
		*visits++
		if *visits > maxVisits {
			return lo
		}
		outside := false
		switch s.State() {
		case timeline.Waiting:
			switch w := s.Wait(); {
			case collects(w):
			case w == timeline.WaitLock:
				site := tl.Get(exectrace.StackID(s.Stack)).LockSite
				outside = l.class(site) != class && !l.has(class, exectrace.StackID(s.Stack))
			case s.Stack == 0 && w == timeline.WaitMessage && end >= 0:
				// This is a coroutine that was switched away from: where it stood is not known. It
				// kept the lock if nobody else released it meanwhile.
				outside = l.releasedWithin(class, tl.Start(s), end, ident)
			default:
				outside = !l.has(class, exectrace.StackID(s.Stack))
			}
		case timeline.Syscall:
			outside = !l.has(class, exectrace.StackID(s.Stack))
		case timeline.Unknown:
			return lo
		}
		if outside && end >= 0 {
			return max(end, lo)
		}
		start := tl.Start(s)
		if start <= lo {
			return lo
		}
		if s.State() == timeline.Runnable && s.Why() == timeline.WhyNewborn {
			return start
		}
		if s.Prev == 0 {
			return lo
		}
		end, seq = start, s.Prev
	}
}

// holderBefore finds the goroutine that had the lock of frame f before the cursor, and pushes a
// frame for it.
func (x *explainer) holderBefore(f *frame) {
	rels := x.locks.classes[x.locks.find(f.class)].releases
	i := f.rel - 1
	if f.rel < 0 {
		i = sort.Search(len(rels), func(i int) bool { return rels[i].at > x.cursor }) - 1
	}
	for ; i >= 0; i-- {
		r := rels[i]
		x.visits++
		if x.visits > maxVisits {
			x.limit = true
			x.emitTo(f.lo, books.LeafLimit, f.ident, nil)
			return
		}
		if r.at > x.cursor {
			continue
		}
		if r.at <= f.lo {
			break
		}
		// It waits further up on the path: the order is damaged, or this is another lock of the
		// class.
		if x.marked(r.ident) {
			continue
		}
		acquired := x.locks.acquired(x.tl, x.locks.find(f.class), r.ident, r.seg, f.lo, &x.visits)
		if acquired >= r.at {
			continue
		}
		if x.j != nil {
			x.joinCollected(f, nil, r.at, books.LeafLockBetween)
		} else {
			x.emitTo(r.at, books.LeafLockBetween, f.ident, nil)
		}
		f.rel = i
		x.push(frame{lo: acquired, ident: r.ident, seg: r.seg, holder: true, inferred: true,
			first: f.first, through: f.through, hold: r.seg})
		return
	}
	x.emitTo(f.lo, books.LeafLockUnseen, f.ident, nil)
}
