package sched

import (
	"math"
	"path"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// Interpreter is a runtime that has one lock for the whole of it: of its threads only the one that
// holds the lock runs the program's code.
type Interpreter uint8

const (
	NoInterpreter Interpreter = iota
	CPython                   // the GIL: a condition, at which each waiter waits for 5 ms at a time
	Ruby                      // the GVL: each thread waits at a condition of its own, in a queue

	interpreters
)

// String is the name of the runtime.
func (i Interpreter) String() string { return [...]string{"", "CPython", "Ruby"}[i] }

// The functions that take an interpreter's lock, where a binary has symbols for them.
var lockTakers = map[string]Interpreter{
	"take_gil": CPython,
	// Up to Ruby 3.1, 3.2, and from 3.3 on.
	"gvl_acquire": Ruby, "gvl_acquire_common": Ruby, "do_gvl_timer": Ruby, "gvl_yield": Ruby,
	"thread_sched_to_running": Ruby, "thread_sched_to_running_common": Ruby, "thread_sched_wait_running_turn": Ruby,
}

// rubyGives has the functions of Ruby's that give its lock away and take it back, and wait at no
// other condition meanwhile. They have symbols in each build, since extensions may call them.
var rubyGives = words(`rb_thread_io_blocking_region rb_thread_io_blocking_call rb_nogvl rb_thread_call_without_gvl rb_thread_call_without_gvl2 rb_thread_call_with_gvl
	rb_threadptr_execute_interrupts rb_thread_schedule rb_thread_check_ints rb_thread_wait_for_single_fd rb_wait_for_single_fd rb_thread_wait_fd rb_thread_fd_select`)

// mostPlain is how many frames without a name may lie between Ruby's function that gives its lock
// away and the wait for it.
const mostPlain = 3

// interpreterOf reports which interpreter's lock a thread with this stack waits for. Most builds
// have no symbol for the function that takes the lock, or have it compiled into its caller. But
// CPython waits at conditions nowhere else than there, where it has semaphores for all other locks,
// as on Linux. What Ruby's own function waits for is known by who called it. A thread that gave the
// lock away when it was asked to, waits until another has it: that counts as well. known is false
// where the stack ends too early to say anything.
func interpreterOf(frames []kernel.Frame) (which Interpreter, known bool) {
	i, mutex := waitFrame(frames)
	if i < 0 || mutex {
		return NoInterpreter, i >= 0
	}
	return lockIn(frames[i:])
}

// lockIn is interpreterOf, for the frames from the one on that called the C library.
func lockIn(frames []kernel.Frame) (which Interpreter, known bool) {
	for n := 0; n < len(frames) && n <= mostPlain; n++ {
		f := &frames[n]
		if f.Inferred || f.Func == "" && f.Module == "" {
			return NoInterpreter, false
		}
		name, _, _ := strings.Cut(f.Func, ".") // take_gil.constprop.0
		if which := lockTakers[name]; which != NoInterpreter {
			return which, true
		}
		switch moduleOf(f.Module) {
		case CPython:
			if evaluates(name) {
				return CPython, true
			}
			return NoInterpreter, true
		case Ruby:
			switch {
			case rubyGives[name]:
				return Ruby, true
			case name != "" && !rubyWaits[name]:
				return NoInterpreter, true
			}
		default:
			return NoInterpreter, true
		}
	}
	return NoInterpreter, len(frames) > mostPlain
}

// rubyWaits has Ruby's functions that wait for whatever their caller wants.
var rubyWaits = words("rb_native_cond_wait rb_native_cond_timedwait native_cond_timedwait rb_native_mutex_lock")

// evaluates reports whether a function of CPython's is of the evaluation of code, which has the
// lock, or is without a name.
func evaluates(name string) bool {
	for _, prefix := range [...]string{"PyEval_", "_PyEval_", "PyGILState_", "PyThreadState_",
		"_PyThreadState_", "drop_gil"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return name == ""
}

// waitFrame is the frame that called the C library to wait at a condition, or for a mutex; -1
// where the stack does not show one.
func waitFrame(frames []kernel.Frame) (i int, mutex bool) {
	for i := range frames {
		f := &frames[i]
		name := plainName(f.Func)
		switch {
		case f.Inferred, i >= mostFrames, f.Func == "" && f.Module == "":
			return -1, false
		case strings.HasPrefix(name, "lll_lock_wait"), strings.HasPrefix(name, "pthread_mutex_"):
			mutex = true
		case !SystemModule(f.Module):
			return i, mutex
		}
	}
	return -1, false
}

// moduleOf is the interpreter whose own code a file holds.
func moduleOf(file string) Interpreter {
	name := path.Base(file)
	switch {
	case strings.HasPrefix(name, "libpython"), strings.HasPrefix(name, "python2"),
		strings.HasPrefix(name, "python3"), name == "python":
		return CPython
	case strings.HasPrefix(name, "libruby"), strings.HasPrefix(name, "ruby"):
		return Ruby
	}
	return NoInterpreter
}

// members says of the words of futexes which of them are an interpreter's lock's. A word's two
// halves are one condition's.
type members map[uint64]*member

// member is one such word. A thread of Ruby's may wait at the same word for other things.
type member struct {
	lock      *Futex
	which     Interpreter
	yes, no   int64 // waits with a stack: for the lock, and for something else
	lockWaits bool  // waits without a stack are for the lock
}

// see counts a wait with a stack for its word.
func (m members) see(addr uint64, w *futexWords) {
	x, which := m[addr&^7], w.interpreter
	switch {
	case !w.known:
		return
	case x == nil && (which == NoInterpreter || len(m) >= mostFutexes):
		return // waits before the first that is for the lock are not missed: they change no majority for long
	case x == nil:
		x = &member{which: which}
		m[addr&^7] = x
	}
	if which == NoInterpreter {
		x.no++
		return
	}
	x.yes++
}

// FutexOf is the futex that s, a wait at a futex, is for. Unlike Futex it knows the locks of
// interpreters, of which each has many words.
func (k *Timeline) FutexOf(s *Stretch) *Futex {
	k.futexes.once.Do(k.learnFutexes)
	if x := k.futexes.members[s.Futex&^7]; x != nil && (x.no == 0 || k.futexes.forLock(k, x, s)) {
		return x.lock
	}
	return k.futexes.byAddress[s.Futex]
}

// FutexAddr is the address by which FutexOf(s) goes.
func (k *Timeline) FutexAddr(s *Stretch) uint64 {
	if f := k.FutexOf(s); f != nil {
		return f.Addr
	}
	return s.Futex
}

// InterpreterOf is the interpreter whose lock s, a wait at a futex, is for. A mutex counts that
// only guards the lock: where its holder has no CPU, waits for it are as long as for the lock.
func (k *Timeline) InterpreterOf(s *Stretch) Interpreter {
	f := k.FutexOf(s)
	switch {
	case f == nil:
		return NoInterpreter
	case f.Kind != FutexMutex:
		return f.Interpreter
	case f.User == 0 || len(k.futexes.members) == 0:
		return NoInterpreter
	}
	frames := k.Stack(f.User)
	i, mutex := waitFrame(frames)
	if i < 0 || !mutex {
		return NoInterpreter
	}
	which, _ := lockIn(frames[i:])
	return which
}

// forLock reports whether s, a wait at x, is for the interpreter's lock.
func (i *futexIndex) forLock(k *Timeline, x *member, s *Stretch) bool {
	if s.User == 0 {
		return x.lockWaits
	}
	which, known := interpreterOf(k.Stack(s.User))
	return which != NoInterpreter || !known && x.lockWaits
}

// interpreters makes one futex of all the words of each interpreter's lock. It walks all waits once
// more, and only where a stack showed such a lock.
func (l *futexLearner) interpreters() {
	if len(l.members) == 0 {
		return
	}
	var locks [interpreters]*Futex
	for addr, x := range l.members {
		x.lockWaits = x.yes > x.no
		f := locks[x.which]
		if f == nil {
			f = &Futex{Addr: math.MaxUint64, Kind: FutexInterpreter, Interpreter: x.which,
				waiters: map[uint32]bool{}, releasers: map[uint32]bool{}}
			locks[x.which] = f
		}
		if x.lockWaits {
			f.Addr = min(f.Addr, addr|1) // no futex has an odd address
		}
		x.lock = f
		if x.no == 0 {
			delete(l.found, addr)
			delete(l.found, addr|4)
		}
	}
	index := &l.k.futexes
	index.members = l.members
	lo, hi := l.k.Span()
	l.k.Each(lo, hi+1, func(tid uint32, s *Stretch) {
		if s.Doing != Blocked || s.Block != BlockFutex || s.End != s.Whole.End {
			return
		}
		if x := l.members[s.Futex&^7]; x != nil && (x.no == 0 || index.forLock(l.k, x, s)) {
			l.waitForLock(x.lock, tid, s)
		}
	})
	l.k.Events(lo, hi+1, func(e *Event) bool {
		if x := l.members[e.Arg[0]&^7]; x != nil && x.no == 0 {
			l.release(x.lock, Release{e.Begin, e.TID, e.User})
		}
		return true
	}, kernel.FutexWake)
	for _, f := range locks {
		if f != nil {
			f.sortReleases()
			f.countQueue()
			index.locks = append(index.locks, f)
		}
	}
}

// Threads lists threads that waited for the futex or released it, in order. It serves where nothing
// else says who had it.
func (f *Futex) Threads() (l []uint32) {
	for tid := range f.waiters {
		l = append(l, tid)
	}
	for tid := range f.releasers {
		if !f.waiters[tid] {
			l = append(l, tid)
		}
	}
	slices.Sort(l)
	return l
}

// waitForLock learns from one wait for an interpreter's lock. A wait whose time runs out ends by
// nobody's release: the waiter asks the holder to let go, and waits on.
func (l *futexLearner) waitForLock(f *Futex, tid uint32, s *Stretch) {
	ns := l.count(f, tid, s)
	if s.User != 0 && ns > f.longest {
		f.User, f.longest = s.User, ns
	}
	switch {
	case s.WakerSignal, s.Waker == 0 && !s.ByInterrupt:
	case s.ByInterrupt:
		f.Asked++
		f.AskedNS += ns
	case s.WakerTarget:
		addTID(f.releasers, s.Waker)
		l.release(f, Release{s.Whole.End, s.Waker, s.WakerUser})
	}
}
