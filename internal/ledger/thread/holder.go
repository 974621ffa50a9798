package thread

import (
	"sort"

	"github.com/whystall/whystall/internal/sched"
)

// Who held a lock during a wait for it. No record says who takes a lock, but while a thread waits
// for it each release shows: it wakes a waiter.
//
//  1. The first thread to release after the wait started held the lock until then. It had it when
//     the wait started.
//  2. The next one to release got the lock after that release, and held it until its own.
//  3. So on, to the release that ended the wait.
//  4. When a later holder got the lock, is inferred: at the end of its own wait for the lock. One
//     that never waited for it got it after its last wait for something from outside.

// hold is a part of a wait during which another thread held the lock, or was the next to get it.
type hold struct {
	holder uint32
	lo, hi int64 // the part of the wait; hi is the holder's release, or the end of what was asked for
	since  int64 // the release before, after which the holder got the lock
	// inferred: who ran meanwhile is taken for the holder, since no release shows it.
	inferred bool
	first    bool // no release before is seen: the holder had the lock when the wait started

	// memo remembers the answer of acquired for this hold; nil: there is no place for it.
	memo *acquisition
}

// holds lists the holds during one wait, in order of time. It is a cursor, and not a list, since
// the walk goes deeper between two of them.
type holds struct {
	waiter    uint32
	wait, end *sched.Stretch
	releases  []sched.Release
	memos     []acquisition // parallel to releases
	index     int           // of the next release
	lo        int64         // the wait is explained up to here
	since     int64
	first     bool
}

// mostReleases bounds the holders of one wait that are looked at; the last stands for those beyond.
const mostReleases = 4096

// holdsDuring lists who held the lock that s of tid waits for, up to its end.
func (w *Walk) holdsDuring(tid uint32, s, end *sched.Stretch) holds {
	l := holds{waiter: tid, wait: s, end: end, lo: s.Begin, since: s.Whole.Begin, first: true}
	if f := w.k.FutexOf(s); f != nil {
		i := sort.Search(len(f.Releases), func(i int) bool { return f.Releases[i].Time >= l.since })
		n := sort.Search(len(f.Releases)-i, func(n int) bool { return f.Releases[i+n].Time > end.Whole.End })
		l.releases = f.Releases[i : i+min(n, mostReleases)]
		l.memos = w.memos(f)[i:]
	}
	return l
}

// next is the next hold; false: the wait is explained.
func (l *holds) next() (h hold, ok bool) {
	for l.index < len(l.releases) {
		i := l.index
		l.index++
		r := &l.releases[i]
		if r.TID == l.waiter {
			continue
		}
		hi := min(r.Time, l.wait.End)
		if i == len(l.releases)-1 && r.TID == l.end.Waker {
			hi = l.wait.End // it is in the call that ends the wait
		}
		h = hold{holder: r.TID, lo: l.lo, hi: hi, since: l.since, first: l.first, memo: &l.memos[i]}
		l.since, l.first = r.Time, false
		if h.lo < h.hi {
			l.lo = h.hi
			return h, true
		}
	}
	h = hold{holder: l.end.Waker, lo: l.lo, hi: l.wait.End, since: l.since, first: l.first}
	l.lo = l.wait.End
	return h, h.lo < h.hi
}

// acquisition is a remembered answer of acquired. Many threads wait for the same lock, and the
// holder of each release is asked about once for each of them.
type acquisition struct{ since, hi, start int64 }

// memos has room for one answer a release of f.
func (w *Walk) memos(f *sched.Futex) []acquisition {
	l := w.acquisitions[f.Addr]
	if l == nil {
		l = make([]acquisition, len(f.Releases))
		w.acquisitions[f.Addr] = l
	}
	return l
}

// acquired is the earliest moment at which the holder can have got the lock at futex, which another
// thread released at h.since.
func (w *Walk) acquired(h *hold, futex uint64) int64 {
	if h.memo == nil {
		return w.findAcquired(h, futex)
	}
	if h.memo.since != h.since || h.memo.hi != h.hi {
		*h.memo = acquisition{h.since, h.hi, w.findAcquired(h, futex)}
	}
	return h.memo.start
}

func (w *Walk) findAcquired(h *hold, futex uint64) int64 {
	start := h.since
	w.holding = w.k.Stretches(h.holder, h.since-1, h.hi, w.holding[:0]) // its own wait may end at that very moment
	for i := len(w.holding) - 1; i >= 0; i-- {
		x := &w.holding[i]
		if x.Doing != sched.Blocked {
			continue
		}
		switch x.Block {
		case sched.BlockFutex:
			if w.k.FutexAddr(x) == futex {
				return x.End
			}
		case sched.BlockNetwork, sched.BlockPipe, sched.BlockTimer:
			start = max(start, x.End)
		}
	}
	return start
}
