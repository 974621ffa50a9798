package ledger

import (
	"strings"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/timeline"
)

// Kinds of what a futex is of, as Futex.Kind has them.
const (
	futexMutex     = "mutex"
	futexCondition = "condition"
	futexJoin      = "join"
	futexBarrier   = "barrier"
	futexSemaphore = "semaphore"
	futexRuntime   = "runtime lock"
	futexNote      = "note"
	futexUnknown   = "not known"
)

// kindOfWait tells by a function's name what its callers wait for; "" where it does not.
func kindOfWait(name string) string {
	name = strings.TrimLeft(name, "_")
	name = strings.TrimPrefix(name, "GI_")
	name = strings.TrimLeft(name, "_")
	name, _, _ = strings.Cut(name, "@")
	switch {
	case strings.HasPrefix(name, "lll_lock_wait"), strings.HasPrefix(name, "pthread_mutex_"), strings.HasPrefix(name, "pthread_rwlock_"),
		strings.HasPrefix(name, "pthread_spin_"), strings.HasPrefix(name, "lll_timedlock_wait"), strings.HasPrefix(name, "pthread_once"):
		return futexMutex
	case strings.HasPrefix(name, "pthread_cond_"), strings.HasPrefix(name, "std::condition_variable"), strings.HasPrefix(name, "cnd_"):
		return futexCondition
	case strings.HasPrefix(name, "pthread_join"), strings.HasPrefix(name, "pthread_clockjoin"), strings.HasPrefix(name, "pthread_timedjoin"),
		strings.HasPrefix(name, "pthread_tryjoin"), strings.HasPrefix(name, "thrd_join"):
		return futexJoin
	case strings.HasPrefix(name, "pthread_barrier_"):
		return futexBarrier
	case strings.HasPrefix(name, "sem_wait"), strings.HasPrefix(name, "new_sem_wait"), strings.HasPrefix(name, "sem_timedwait"), strings.HasPrefix(name, "sem_clockwait"):
		return futexSemaphore
	case strings.HasPrefix(name, "std::sys::") || strings.HasPrefix(name, "<std::sys::"): // Rust's, by any version's path
		switch {
		case strings.Contains(name, "lock_contended"), strings.Contains(name, "RwLock"), strings.Contains(name, "rwlock"):
			return futexMutex
		case strings.Contains(name, "ondvar"):
			return futexCondition
		}
	case strings.HasPrefix(name, "parking_lot::raw_mutex"), strings.HasPrefix(name, "parking_lot::raw_rwlock"):
		return futexMutex
	case strings.HasPrefix(name, "parking_lot::condvar"):
		return futexCondition
	case strings.HasPrefix(name, "runtime.lock2"), name == "runtime.lock", strings.HasPrefix(name, "runtime.lockWithRank"):
		return futexRuntime
	case strings.HasPrefix(name, "runtime.note"):
		return futexNote
	}
	return ""
}

// futexOps of the call, without its flags.
const (
	futexOpMask   = 127
	futexOpWait   = 0
	futexOpLockPI = 6
)

// isLock tells whether a futex that somebody waits for is a lock: its holder is who matters. By the names of functions where they are known, else by what is
// done with its address: who lets go of a lock waits for it as well at times, and who signals a condition does not.
func (w *threadWalk) isLock(s *timeline.Stretch) bool {
	switch st := w.stack(s.User); {
	case st.lock:
		return true
	case st.cond:
		return false
	}
	if s.Futex == 0 {
		return false
	}
	lock, ok := w.locks[s.Futex]
	if !ok {
		lock = w.looksLikeLock(s.Futex)
		w.locks[s.Futex] = lock
	}
	return lock
}

// looksLikeLock judges an address by its first calls.
func (w *threadWalk) looksLikeLock(addr uint64) bool {
	a := w.addresses()[addr]
	if a == nil {
		return false
	}
	if a.pi > 0 {
		return true
	}
	if a.named != 0 {
		return a.named > 0
	}
	// glibc's locks wait by the plain operation, its conditions, joins and semaphores by the one with a bit set; others, as Rust's,
	// use the latter for all.
	if a.waits > 0 && a.plain*2 > a.waits {
		return true
	}
	if a.libc*2 > a.seen {
		return false
	}
	both := 0
	for tid := range a.wakers {
		if a.waiters[tid] {
			both++
		}
	}
	return both > 0 && both*2 >= len(a.wakers)
}

// address is what was done with one futex.
type address struct {
	waits, plain, pi int
	named            int // by functions' names: locks less others
	seen, libc       int // waits with a stack, and of them in the C library
	waiters, wakers  map[uint32]bool
	user, kern       uint32 // stacks of the longest wait that has them
	longest          int64
	blocks, ns       int64 // waits that blocked
	joins            int64 // of them, ended by a thread's exit
	deepest          int   // most that waited at once; 0 not counted yet
}

// mostAddresses and mostWaiters bound what is kept of addresses.
const (
	mostAddresses = 1 << 15
	mostWaiters   = 64
)

// addresses looks through all waits and wake-ups once.
func (w *threadWalk) addresses() map[uint64]*address {
	if w.addrs != nil {
		return w.addrs
	}
	w.addrs = map[uint64]*address{}
	at := func(addr uint64) *address {
		a := w.addrs[addr]
		if a == nil && len(w.addrs) < mostAddresses && addr != 0 {
			a = &address{waiters: map[uint32]bool{}, wakers: map[uint32]bool{}}
			w.addrs[addr] = a
		}
		return a
	}
	lo, hi := w.k.Span()
	w.k.Each(lo, hi+1, func(tid uint32, s *timeline.Stretch) {
		if s.Doing != timeline.ThreadBlocked || s.Block != timeline.BlockFutex || s.End != s.Whole.End {
			return
		}
		a := at(s.Futex)
		if a == nil {
			return
		}
		if len(a.waiters) < mostWaiters {
			a.waiters[tid] = true
		}
		if s.WakerTarget && !s.ByInterrupt && !s.WakerSignal && len(a.wakers) < mostWaiters {
			a.wakers[s.Waker] = true
		}
		ns := s.Whole.End - s.Whole.Begin
		a.blocks++
		a.ns += ns
		if s.User != 0 && ns > a.longest {
			a.user, a.kern, a.longest = s.User, s.Kernel, ns
		}
		if s.WakerTarget && w.stack(s.WakerKernel).exit {
			a.joins++
		}
		st := w.stack(s.User)
		if s.User != 0 {
			a.seen++
		}
		if st.libc {
			a.libc++
		}
		switch {
		case st.lock:
			a.named++
		case st.cond:
			a.named--
		}
	})
	w.k.Events(lo, hi+1, func(e *timeline.Event) bool {
		a := at(e.Arg[0])
		if a == nil {
			return true
		}
		if e.Kind == kernel.FutexWake {
			if len(a.wakers) < mostWaiters {
				a.wakers[e.TID] = true
			}
			return true
		}
		a.waits++
		switch e.Arg[1] & futexOpMask {
		case futexOpWait:
			a.plain++
		case futexOpLockPI:
			a.pi++
		}
		return true
	}, kernel.FutexWait, kernel.FutexWake)
	return w.addrs
}
