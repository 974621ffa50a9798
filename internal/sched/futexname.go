package sched

import (
	"cmp"
	"strings"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// futexWords is what a stack's functions say of a futex.
type futexWords struct {
	waits, wakes FutexKind
	libc         bool // the C library made the call, not the program itself
	timed        bool // by the function of glibc's that all but locks share
	interpreter  Interpreter
	known        bool // interpreter is
}

// mostFrames is how far out a function may be to say something of a futex: further out are its
// callers' affairs.
const mostFrames = 6

// wordsOf reads a stack from its innermost frame. Waiting and waking have a function each: the
// innermost that says something.
func wordsOf(frames []kernel.Frame) (w futexWords) {
	for i := range frames {
		f := &frames[i]
		if f.Inferred || i >= mostFrames {
			return w // an inferred frame may never have been called
		}
		if i == 0 {
			w.libc = f.Func != "syscall" && (strings.Contains(f.Module, "libc.so") ||
				strings.Contains(f.Module, "libc-") || strings.Contains(f.Module, "libpthread"))
		}
		name := plainName(f.Func)
		w.timed = w.timed || strings.HasPrefix(name, "futex_abstimed_wait")
		waits, wakes := futexOf(name)
		w.waits, w.wakes = cmp.Or(w.waits, waits), cmp.Or(w.wakes, wakes)
	}
	return w
}

// plainName is a function's name without the C library's prefixes, and without its version.
func plainName(name string) string {
	name = strings.TrimLeft(name, "_")
	name = strings.TrimLeft(strings.TrimPrefix(name, "GI_"), "_")
	name, _, _ = strings.Cut(name, "@")
	return name
}

// futexFuncs says what a futex is part of by the functions that wait for it and that wake its
// waiters. A row stands for all functions with the prefix. The first row with a kind for the side
// asked for decides.
var futexFuncs = []struct {
	prefix       string
	waits, wakes FutexKind // FutexUnknown: such a function does not do that
}{
	// glibc.
	{"lll_lock_wait", FutexMutex, FutexUnknown},
	{"lll_timedlock_wait", FutexMutex, FutexUnknown},
	{"lll_lock_wake", FutexUnknown, FutexMutex},
	{"lll_unlock_wake", FutexUnknown, FutexMutex},
	{"pthread_mutex_unlock", FutexMutex, FutexMutex},
	{"pthread_mutex_", FutexMutex, FutexUnknown},
	{"pthread_rwlock_unlock", FutexMutex, FutexMutex},
	{"pthread_rwlock_", FutexMutex, FutexUnknown},
	{"pthread_once", FutexMutex, FutexUnknown},
	// A signaller waits itself until those that were woken before have left the condition.
	{"pthread_cond_signal", FutexBarrier, FutexCondition},
	{"pthread_cond_broadcast", FutexBarrier, FutexCondition},
	{"pthread_cond_", FutexCondition, FutexCondition},
	{"cnd_", FutexCondition, FutexCondition},
	// The kernel wakes threads that join another: no function does.
	{"pthread_join", FutexJoin, FutexUnknown},
	{"pthread_clockjoin", FutexJoin, FutexUnknown},
	{"pthread_timedjoin", FutexJoin, FutexUnknown},
	{"thrd_join", FutexJoin, FutexUnknown},
	{"pthread_barrier_", FutexBarrier, FutexBarrier},
	{"sem_wait", FutexSemaphore, FutexUnknown},
	{"new_sem_wait", FutexSemaphore, FutexUnknown},
	{"sem_timedwait", FutexSemaphore, FutexUnknown},
	{"sem_clockwait", FutexSemaphore, FutexUnknown},
	{"sem_post", FutexUnknown, FutexSemaphore},
	{"new_sem_post", FutexUnknown, FutexSemaphore},
	// libstdc++.
	{"std::mutex::", FutexMutex, FutexUnknown},
	{"std::shared_mutex::", FutexMutex, FutexUnknown},
	{"std::condition_variable", FutexCondition, FutexCondition},
	{"std::thread::join", FutexJoin, FutexUnknown},
	// Go's runtime. The prefix runtime.lock is not here: it would take runtime.lockOSThread for a
	// lock. futexOf asks for that function by its whole name.
	{"runtime.lock2", FutexRuntime, FutexUnknown},
	{"runtime.lockWithRank", FutexRuntime, FutexUnknown},
	{"runtime.unlock", FutexUnknown, FutexRuntime},
	{"runtime.note", FutexNote, FutexNote},
	{"runtime.sema", FutexNote, FutexNote},
	{"runtime.stopm", FutexNote, FutexUnknown},
	{"runtime.mPark", FutexNote, FutexUnknown},
	// Rust's parking_lot.
	{"parking_lot::condvar", FutexCondition, FutexCondition},
	{"parking_lot::raw_mutex", FutexMutex, FutexMutex},
	{"parking_lot::raw_rwlock", FutexMutex, FutexMutex},
}

// futexOf says what the callers of a function wait for, and what they wake others for.
func futexOf(name string) (waits, wakes FutexKind) {
	if name == "runtime.lock" {
		return FutexRuntime, FutexUnknown
	}
	for i := range futexFuncs {
		f := &futexFuncs[i]
		if !strings.HasPrefix(name, f.prefix) {
			continue
		}
		waits, wakes = cmp.Or(waits, f.waits), cmp.Or(wakes, f.wakes)
	}
	rust := futexOfRust(name)
	return cmp.Or(waits, rust), cmp.Or(wakes, rust)
}

// futexOfRust decides by a function of Rust's standard library, whose paths differ from release to
// release: std::sys::sync::mutex::futex, std::sys::unix::locks...
func futexOfRust(name string) FutexKind {
	if !strings.Contains(name, "std::sys::") && !strings.Contains(name, "std::sync::") {
		return FutexUnknown
	}
	low := strings.ToLower(name)
	switch {
	case strings.Contains(low, "condvar"):
		return FutexCondition
	case strings.Contains(low, "mutex"), strings.Contains(low, "rwlock"), strings.Contains(low, "once"):
		return FutexMutex
	}
	return FutexUnknown
}
