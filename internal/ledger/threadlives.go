package ledger

import (
	"sort"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/timeline"
)

// threadLives knows when threads were made, by whom, and when they ended.
type threadLives struct {
	of   map[uint32][]sched.Life // by thread, in order
	made map[uint32][]int64      // by maker: when it made one, in order
}

func newThreadLives(k *sched.Timeline) *threadLives {
	l := &threadLives{of: map[uint32][]sched.Life{}, made: map[uint32][]int64{}}
	for _, t := range k.Threads() {
		if t.Birth == 0 && t.Exit == 0 {
			continue
		}
		l.of[t.TID] = append(l.of[t.TID], t)
		if t.Maker != 0 {
			l.made[t.Maker] = append(l.made[t.Maker], t.Birth)
		}
	}
	for _, m := range l.made {
		sort.Slice(m, func(i, j int) bool { return m[i] < m[j] })
	}
	return l
}

// madeNS is how long after it made a thread, with its CPU, a maker is still in the call.
const madeNS = 20e3

// making tells of a time in the run queue that it belongs to the making of a thread: the new one's, until it first runs, or that of its maker, which the
// new one put off its CPU before it was back from the call.
func (l *threadLives) making(tid uint32, s *sched.Stretch) bool {
	if s.Doing != sched.Queued {
		return false
	}
	begin := s.Whole.Begin
	for _, t := range l.of[tid] {
		if t.Birth != 0 && begin >= t.Birth && (t.First == 0 || begin < t.First) {
			return true
		}
	}
	m := l.made[tid]
	i := sort.Search(len(m), func(i int) bool { return m[i] > begin }) - 1
	return s.Preempted && i >= 0 && begin-m[i] < madeNS
}

// endsNS is the most CPU time that the end of a thread takes after it has given its stack back.
const endsNS = 200e3

// ends tells whether all that tid did after at was to end.
func (l *threadLives) ends(k *sched.Timeline, tid uint32, at int64) bool {
	for _, t := range l.of[tid] {
		if t.Exit < at || t.Exit-at > 1e9 {
			continue
		}
		var on int64
		for _, s := range k.Stretches(tid, at, t.Exit, nil) {
			if s.Doing == sched.OnCPU {
				on += s.End - s.Begin
			}
		}
		return on <= endsNS
	}
	return false
}

// threadMakers are the C library's functions that make a thread: what waits below them waits to make one, whoever called.
var threadMakers = map[string]bool{"pthread_create": true, "__pthread_create_2_1": true, "pthread_create@@GLIBC_2.34": true, "allocate_stack": true, "thrd_create": true}

// placeKey is all that the name of a place where a thread waited is made of.
type placeKey struct {
	block        sched.Block
	syscall      int32
	kernel, user uint32
	futex        uint64
}

// site is the name of such a place, and its numbers once they were asked for.
type site struct {
	name   string
	detail timeline.FuncID
	place  exectrace.StackID
}

func (t *threadPass) detail(s *site) timeline.FuncID {
	if s.detail == 0 {
		s.detail = t.j.detail(s.name)
	}
	return s.detail
}

func (t *threadPass) place(s *site) exectrace.StackID {
	if s.place == 0 {
		s.place = t.src.place(s.name)
	}
	return s.place
}

// named is where a thread waited, with that stack.
func (t *threadPass) named(s *sched.Stretch, user uint32) *site {
	at := placeKey{s.Block, s.Syscall, s.Kernel, user, s.Futex}
	x, ok := t.sites[at]
	if !ok {
		told := *s
		told.User = user
		x = &site{name: waitSite(t.k, &told)}
		if len(t.sites) < mostDetails {
			t.sites[at] = x
		}
	}
	return x
}

// siteOf is where a thread waited. One that gives its stack back as it ends is known by what follows, as its stack ends in the C library.
func (t *threadPass) siteOf(tid uint32, s *sched.Stretch) *site {
	user := s.User
	if s.User == 0 && s.Kernel == 0 {
		user = t.usualStack(tid, s)
	}
	x := t.named(s, user)
	if (x.name == "madvise" || x.name == "munmap") && t.walk.lives().ends(t.k, tid, s.Whole.End) {
		return &site{name: x.name + " of its stack, as the thread ends"}
	}
	return x
}
