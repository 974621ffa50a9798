package unit

import (
	"slices"
	"sort"

	"github.com/whystall/whystall/internal/sched"
)

// Who waits for a thread also waits for it to be made and for its stack to be given back. Both are done by others, its maker and who
// joins it, so that a unit of work that is a thread's whole life begins and ends with theirs.

// mostMaking bounds how long before its birth the making of a thread is looked for, and after its end that of its stack.
const mostMaking = 10e9

// madeFrom is when the making of a thread began: its maker's waits for a stack, for the lock of those that are kept and for the
// address space, right before the birth and after the maker's last other wait and last other thread.
func (f *finder) madeFrom(l *life) int64 {
	lo, _ := f.k.Span()
	lo = max(lo, l.begin-mostMaking)
	made := f.made[l.maker]
	if i, _ := slices.BinarySearch(made, l.birth); i > 0 {
		lo = max(lo, made[i-1])
	}
	for _, n := range f.t.byTID[l.tid] {
		if o := &f.t.lives[n]; o.end <= l.begin && o != l {
			lo = max(lo, o.end) // its number was another's
		}
	}
	from := l.begin
	f.making = f.k.Stretches(l.maker, lo, l.birth, f.making[:0])
	for i := len(f.making) - 1; i >= 0; i-- {
		switch s := &f.making[i]; {
		case s.Doing == sched.OnCPU, s.Doing == sched.Queued, s.Doing == sched.Throttled:
		case s.Doing == sched.Blocked && f.inStacks(s, true):
			from = s.Begin
		default:
			return from
		}
	}
	return from
}

// givenBack is who joined a thread that ended, and when its stack was given back: after that thread's waits for the lock of those that are
// kept and for the address space, right after the end and before its next other wait. It is 0 and the end where it did not wait.
func (f *finder) givenBack(l *life) (joiner uint32, end int64) {
	js := f.joins[l.tid]
	i := sort.Search(len(js), func(i int) bool { return js[i].at >= l.end-joinNS })
	if i == len(js) || js[i].at > l.end+joinNS {
		return 0, l.end
	}
	j, hi := js[i], js[i].at+int64(mostMaking)
	made := f.made[j.tid]
	if i, _ := slices.BinarySearch(made, j.at); i < len(made) {
		hi = min(hi, made[i])
	}
	for _, n := range f.t.byTID[l.tid] {
		if o := &f.t.lives[n]; o.begin >= l.end && o != l {
			hi = min(hi, o.begin)
		}
	}
	end = l.end
	for at := j.at; at < hi; {
		s := f.k.At(j.tid, at)
		switch {
		case s.Doing == sched.OnCPU, s.Doing == sched.Queued, s.Doing == sched.Throttled:
		case s.Doing == sched.Blocked && f.inStacks(&s, false):
			end, joiner = min(s.Whole.End, hi), j.tid
		default:
			return joiner, end
		}
		at = s.Whole.End
	}
	return joiner, end
}

// joinNS is how far a thread's last switch and its joiner's waking are apart.
const joinNS = 5e6

// inStacks: a wait in the C library's functions that make threads and keep their stacks, for the lock that these take, or for the kernel
// to map a stack, to take it back or to make a thread.
func (f *finder) inStacks(s *sched.Stretch, making bool) bool {
	if st := f.stack(s.User); s.User != 0 && (st.stacks || st.sig != 0) {
		return st.stacks
	}
	if s.Block == sched.BlockFutex {
		u := f.k.Futex(s.Futex)
		return u != nil && u.Kind.Lock() && f.stack(u.User).stacks
	}
	calls := f.stackCalls.gives
	if making {
		calls = f.stackCalls.makes
	}
	return slices.Contains(calls, s.Syscall)
}

// stackCalls are the system calls that map a stack or make a thread, and those that take a stack back, by their numbers.
type stackCalls struct{ makes, gives []int32 }

var stackCallsOf = map[string]stackCalls{
	"amd64": {makes: []int32{9, 10, 56, 435}, gives: []int32{11, 28}},
	"arm64": {makes: []int32{222, 226, 220, 435}, gives: []int32{215, 233}},
}
