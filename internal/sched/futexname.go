package sched

import (
	"strings"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// futexWords is what a stack's functions say of a futex.
type futexWords struct {
	waits, wakes FutexKind
	libc         bool // the call is the C library's own, not one that a program made itself
	timed        bool // by the function that all but locks share
}

func wordsOf(frames []kernel.Frame) (w futexWords) {
	for i := range frames {
		f := &frames[i]
		if f.Inferred || i >= 6 {
			return w // what was inferred may never have been called
		}
		if i == 0 {
			w.libc = f.Func != "syscall" && (strings.Contains(f.Module, "libc.so") || strings.Contains(f.Module, "libc-") || strings.Contains(f.Module, "libpthread"))
		}
		name := plainWaits(f.Func)
		switch name {
		case "take_gil", "drop_gil":
			// Python's lock of its interpreter is made of a condition, at which each waits for 5 ms at a time.
			return futexWords{waits: FutexMutex, wakes: FutexMutex, libc: w.libc, timed: w.timed}
		}
		w.timed = w.timed || strings.HasPrefix(name, "futex_abstimed_wait")
		if w.waits == FutexUnknown {
			w.waits = waitsFor(name)
		}
		if w.wakes == FutexUnknown {
			w.wakes = letsGo(name)
		}
	}
	return w
}

// plainWaits is a function's name without what the C library puts before and after it.
func plainWaits(name string) string {
	name = strings.TrimLeft(name, "_")
	name = strings.TrimLeft(strings.TrimPrefix(name, "GI_"), "_")
	name, _, _ = strings.Cut(name, "@")
	return name
}

func hasAny(name string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// waitsFor tells by a function's name what its callers wait for.
func waitsFor(name string) FutexKind {
	switch {
	case hasAny(name, "lll_lock_wait", "lll_timedlock_wait", "pthread_mutex_", "pthread_rwlock_", "pthread_once", "std::mutex::", "std::shared_mutex::"):
		return FutexMutex
	case hasAny(name, "pthread_cond_signal", "pthread_cond_broadcast"):
		return FutexBarrier // glibc's signaller waits until those it woke before have left
	case hasAny(name, "pthread_cond_", "std::condition_variable", "cnd_"):
		return FutexCondition
	case hasAny(name, "pthread_join", "pthread_clockjoin", "pthread_timedjoin", "thrd_join", "std::thread::join"):
		return FutexJoin
	case hasAny(name, "pthread_barrier_"):
		return FutexBarrier
	case hasAny(name, "sem_wait", "new_sem_wait", "sem_timedwait", "sem_clockwait"):
		return FutexSemaphore
	case hasAny(name, "runtime.lock2", "runtime.lockWithRank"), name == "runtime.lock":
		return FutexRuntime
	case hasAny(name, "runtime.note", "runtime.sema", "runtime.stopm", "runtime.mPark"):
		return FutexNote
	case hasAny(name, "parking_lot::condvar"):
		return FutexCondition
	case hasAny(name, "parking_lot::raw_mutex", "parking_lot::raw_rwlock"):
		return FutexMutex
	}
	return ofRust(name)
}

// letsGo tells by a function's name what its callers let go of.
func letsGo(name string) FutexKind {
	switch {
	case hasAny(name, "lll_lock_wake", "lll_unlock_wake", "pthread_mutex_unlock", "pthread_rwlock_unlock"):
		return FutexMutex
	case hasAny(name, "pthread_cond_", "std::condition_variable", "cnd_"):
		return FutexCondition
	case hasAny(name, "pthread_barrier_"):
		return FutexBarrier
	case hasAny(name, "sem_post", "new_sem_post"):
		return FutexSemaphore
	case hasAny(name, "runtime.unlock"):
		return FutexRuntime
	case hasAny(name, "runtime.note", "runtime.sema"):
		return FutexNote
	case hasAny(name, "parking_lot::condvar"):
		return FutexCondition
	case hasAny(name, "parking_lot::raw_mutex", "parking_lot::raw_rwlock"):
		return FutexMutex
	}
	return ofRust(name)
}

// ofRust knows the standard library's own, whatever the path to them has been: std::sys::sync::mutex::futex, std::sys::unix::locks...
func ofRust(name string) FutexKind {
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
