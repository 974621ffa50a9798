package unit

import (
	"slices"
	"sort"

	"github.com/whystall/whystall/internal/sched"
)

// A program that makes a thread for a piece of work also waits until the thread is made and until
// its stack is given back. Other threads do both: the maker, and the thread that joins it. So a
// unit of work that is a thread's whole life starts with the maker's part and ends with the
// joiner's.

// mostMaking bounds how far from a life its making, and the giving back of its stack, are looked
// for.
const mostMaking = 10e9

// makingStart is when a thread's maker started to make it. What the maker waits for right before
// the birth belongs to it: a stack, the lock of the kept stacks, the address space. Its last other
// wait and the last thread that it made before end the search.
func (f *finder) makingStart(l *life) int64 {
	lo, _ := f.timeline.Span()
	lo = max(lo, l.begin-mostMaking)
	made := f.lives.Made(l.maker)
	if i, _ := slices.BinarySearch(made, l.birth); i > 0 {
		lo = max(lo, made[i-1])
	}
	for _, n := range f.set.byTID[l.tid] {
		if o := &f.set.lives[n]; o.end <= l.begin && o != l {
			lo = max(lo, o.end) // another thread had the number until then
		}
	}
	from := l.begin
	f.making = f.timeline.Stretches(l.maker, lo, l.birth, f.making[:0])
	for i := len(f.making) - 1; i >= 0; i-- {
		switch s := &f.making[i]; {
		case s.Doing == sched.OnCPU, s.Doing == sched.Queued, s.Doing == sched.Throttled:
		case s.Doing == sched.Blocked && f.inMaking(s, f.stackCalls.make):
			from = s.Begin
		default:
			return from
		}
	}
	return from
}

// stackGivenBack is the thread that joined l and when that thread had given the stack back: after
// its waits for the lock of the kept stacks and for the address space, right after the end of l and
// before its next other wait. If it did not wait for them they are 0 and the end of l.
func (f *finder) stackGivenBack(l *life) (joiner uint32, end int64) {
	joins := f.joins[l.tid]
	i := sort.Search(len(joins), func(i int) bool { return joins[i].at >= l.end-joinNS })
	if i == len(joins) || joins[i].at > l.end+joinNS {
		return 0, l.end
	}
	j, hi := joins[i], joins[i].at+int64(mostMaking)
	made := f.lives.Made(j.tid)
	if i, _ := slices.BinarySearch(made, j.at); i < len(made) {
		hi = min(hi, made[i])
	}
	for _, n := range f.set.byTID[l.tid] {
		if o := &f.set.lives[n]; o.begin >= l.end && o != l {
			hi = min(hi, o.begin)
		}
	}
	end = l.end
	for at := j.at; at < hi; {
		s := f.timeline.At(j.tid, at)
		switch {
		case s.Doing == sched.OnCPU, s.Doing == sched.Queued, s.Doing == sched.Throttled:
		case s.Doing == sched.Blocked && f.inMaking(&s, f.stackCalls.giveBack):
			end, joiner = min(s.Whole.End, hi), j.tid
		default:
			return joiner, end
		}
		at = s.Whole.End
	}
	return joiner, end
}

// joinNS is the most time between a thread's last switch and the waking of its joiner, either way.
const joinNS = 5e6

// inMaking reports whether a wait is in what makes threads or gives their stacks back. The stack of
// the wait says so if it is known. Else it is the lock that the C library takes for the stacks it
// keeps, as other waits at it show, or one of the system calls given.
func (f *finder) inMaking(s *sched.Stretch, calls []int32) bool {
	if st := f.stack(s.User); s.User != 0 && (st.making || st.sig != 0) {
		return st.making
	}
	if s.Block == sched.BlockFutex {
		u := f.timeline.FutexOf(s)
		return u != nil && u.Kind.Lock() && f.stack(u.User).making
	}
	return slices.Contains(calls, s.Syscall)
}

// stackCalls are the numbers of the system calls that map a stack or make a thread, and of those
// that take a stack back.
type stackCalls struct{ make, giveBack []int32 }

var stackCallsOf = map[string]stackCalls{
	// mmap, mprotect, clone, clone3; munmap, madvise
	"amd64": {make: []int32{9, 10, 56, 435}, giveBack: []int32{11, 28}},
	"arm64": {make: []int32{222, 226, 220, 435}, giveBack: []int32{215, 233}},
}
