package unit

import (
	"cmp"
	"maps"
	"slices"

	"github.com/whystall/whystall/internal/sched"
)

// Leader and followers: the threads of a pool take turns at waiting for events, and those whose turn it is not wait at a condition until one of
// them has work for them. Both waits are for work. Such a pool is told by its turns: threads that wait at one epoll descriptor, and never two of them
// at once, though by chance they often would.

// poll is one wait for the events of many.
type poll struct {
	tid        uint32
	begin, end int64
}

// Bounds: of waits that are kept in all; how long two of them must be expected to wait at once before it means something that they do not, and what part
// of that is the switch from one to the next.
const (
	mostPolls    = 1 << 20
	togetherNS   = 10e6
	oneInOverlap = 10
)

func (f *finder) polled(tid uint32, fd uint64, s sched.Span) {
	if f.pollsN++; f.pollsN > mostPolls {
		return
	}
	if f.polls == nil {
		f.polls = map[uint64][]poll{}
	}
	f.polls[fd] = append(f.polls[fd], poll{tid, s.Begin, s.End})
}

// leaders finds such pools and gives their lives both waits.
func (f *finder) leaders() {
	lo, hi := f.k.Span()
	for _, fd := range slices.Sorted(maps.Keys(f.polls)) {
		members := takeTurns(f.polls[fd], hi-lo)
		for tid := range members {
			for _, n := range f.t.byTID[tid] {
				f.follow(&f.t.lives[n], fd, members)
			}
		}
	}
}

// takeTurns gives the threads whose waits exclude each other; nil if they do not.
func takeTurns(waits []poll, span int64) map[uint32]bool {
	by := map[uint32]float64{}
	var sum, squares, together float64
	slices.SortFunc(waits, func(a, b poll) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.tid, b.tid)) })
	last := poll{}
	for _, w := range waits {
		by[w.tid] += float64(w.end - w.begin)
		if w.tid != last.tid {
			together += float64(max(0, min(w.end, last.end)-w.begin))
		}
		if w.end > last.end {
			last = w
		}
	}
	members := map[uint32]bool{}
	for tid, ns := range by {
		members[tid] = true
		sum += ns
		squares += ns * ns
	}
	if expected := (sum*sum - squares) / 2 / float64(max(1, span)); len(by) < 2 || expected < togetherNS || together*oneInOverlap > expected {
		return nil
	}
	return members
}

// follow makes the wait for events the life's wait for work, and the condition beside it another: one that members end, and that is no deeper in
// the program, as what a request waits for would be.
func (f *finder) follow(l *life, fd uint64, members map[uint32]bool) {
	events, beside := int32(-1), int32(-1)
	for i := range l.sites {
		s := &l.sites[i]
		if s.key.block == sched.BlockNetwork && s.key.multi == multiMany && s.key.arg == fd && (events < 0 || s.blocks > l.sites[events].blocks) {
			events = int32(i)
		}
	}
	if events < 0 {
		return
	}
	deep := f.depthOf(&l.sites[events])
	for i := range l.sites {
		s := &l.sites[i]
		if s.key.block != sched.BlockFutex || s.other == 0 || 2*s.bad > s.blocks || !members[s.giver] || s.key.sig == 0 || f.depthOf(s) > deep {
			continue
		}
		if beside < 0 || f.depthOf(s) < f.depthOf(&l.sites[beside]) {
			beside = int32(i)
		}
	}
	if beside < 0 {
		return
	}
	l.best, l.unsure, l.follows = events, false, l.sites[beside].key.arg
}
