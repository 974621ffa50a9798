package unit

import (
	"cmp"
	"maps"
	"slices"

	"github.com/whystall/whystall/internal/sched"
)

// Leader and followers: the threads of a pool take turns at waiting for events. The others wait at
// a condition until the one whose turn it was has work for them, or the turn itself. Both waits are
// for work. Such a pool is recognised by its turns: its threads wait at one epoll descriptor but
// never two of them at once, though by chance they often would.

// poll is one wait at a descriptor.
type poll struct {
	tid        uint32
	begin, end int64
}

func byBegin(a, b poll) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.tid, b.tid)) }

// polls are waits by descriptor.
type polls struct {
	of map[uint64][]poll
	n  int
}

const (
	// mostPolls bounds the waits that are kept in all.
	mostPolls = 1 << 20
	// togetherNS is how long two threads must be expected to wait at once, if they did not know of
	// each other, before it means something that they do not.
	togetherNS = 10e6
	// One part in oneInOverlap of that is allowed: the switch from one to the next takes a moment.
	oneInOverlap = 10
)

// add notes a wait of tid at descriptor fd.
func (p *polls) add(tid uint32, fd uint64, s sched.Span) {
	if p.n++; p.n > mostPolls {
		return
	}
	if p.of == nil {
		p.of = map[uint64][]poll{}
	}
	p.of[fd] = append(p.of[fd], poll{tid, s.Begin, s.End})
}

// leaders finds such pools and gives their lives both waits.
func (f *finder) leaders() {
	lo, hi := f.timeline.Span()
	for _, fd := range slices.Sorted(maps.Keys(f.polls.of)) {
		members := takeTurns(f.polls.of[fd], hi-lo)
		for tid := range members {
			for _, n := range f.set.byTID[tid] {
				f.follow(&f.set.lives[n], fd, members)
			}
		}
	}
}

// takeTurns returns the threads whose waits at one descriptor exclude each other; nil if they do
// not. Two threads that wait for a and b of a span by chance wait at once for a*b/span of it;
// summed over all pairs that is (sum^2 - sum of squares) / 2 / span. What they really do together
// is counted between each wait and the longest before it, which is enough where there should be
// nothing.
func takeTurns(waits []poll, span int64) map[uint32]bool {
	waited := map[uint32]float64{} // ns by thread
	var sum, squares, together float64
	slices.SortFunc(waits, byBegin)
	last := poll{}
	for _, w := range waits {
		waited[w.tid] += float64(w.end - w.begin)
		if w.tid != last.tid {
			together += float64(max(0, min(w.end, last.end)-w.begin))
		}
		if w.end > last.end {
			last = w
		}
	}
	members := map[uint32]bool{}
	for tid, ns := range waited {
		members[tid] = true
		sum += ns
		squares += ns * ns
	}
	if expected := (sum*sum - squares) / 2 / float64(max(1, span)); len(waited) < 2 ||
		expected < togetherNS || together*oneInOverlap > expected {
		return nil
	}
	return members
}

// follow makes the wait for events the wait for work of l, and the condition beside it another.
// That is a futex whose waits are ended by other members and that is no deeper in the program than
// the wait for events: what a request waits for would be deeper.
func (f *finder) follow(l *life, fd uint64, members map[uint32]bool) {
	events, condition := int32(-1), int32(-1)
	for i := range l.sites {
		s := &l.sites[i]
		if s.key.block == sched.BlockNetwork && s.key.multi == multiMany && s.key.arg == fd &&
			(events < 0 || s.blocks > l.sites[events].blocks) {
			events = int32(i)
		}
	}
	if events < 0 {
		return
	}
	deep := f.depthOf(&l.sites[events])
	for i := range l.sites {
		s := &l.sites[i]
		if s.key.block != sched.BlockFutex || s.other == 0 || 2*s.bad > s.blocks ||
			!members[s.giver] || s.key.sig == 0 || f.depthOf(s) > deep {
			continue
		}
		if condition < 0 || f.depthOf(s) < f.depthOf(&l.sites[condition]) {
			condition = int32(i)
		}
	}
	if condition < 0 {
		return
	}
	l.best, l.unsure, l.follows = events, false, l.sites[condition].key.arg
}
