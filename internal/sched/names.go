package sched

import (
	"cmp"
	"strings"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// SleptFunc names the function that a blocked thread sleeps in: the innermost of its user stack
// that is no plumbing (asksToSleep). If that has no names it is the innermost of the kernel stack
// that is not the scheduler's. It is "" if no stack was recorded, and [Stopped] for a stopped
// thread.
func SleptFunc(k *Timeline, s *Stretch) string {
	if s.Block == BlockStopped {
		return Stopped
	}
	if name := asksToSleep(k.Stack(s.User)); name != "" {
		return name
	}
	for _, f := range k.Stack(s.Kernel) {
		switch f.Func {
		case "", "__schedule", "schedule", "schedule_timeout", "schedule_hrtimeout_range",
			"schedule_hrtimeout_range_clock", "io_schedule",
			"preempt_schedule_irq", "preempt_schedule_common", "__cond_resched":
			continue
		}
		return f.Func
	}
	return ""
}

// Stopped stands for the function that a thread sleeps in which SIGSTOP, a debugger or the like
// stopped.
const Stopped = "a stop by a signal or a debugger"

// asksToSleep is the innermost function of a user stack that is no plumbing. If all of the thread's
// own functions are plumbing it is the innermost of a language's or a lock's library, and without
// any the outermost function.
func asksToSleep(frames []kernel.Frame) string {
	last, library := "", ""
	for _, f := range frames {
		if f.Func == "" {
			continue
		}
		if library != "" && ThreadRoot(f.Func) {
			return library
		}
		last = f.Func
		if !Plumbing(f.Func) {
			return f.Func
		}
		if library == "" && (LanguageFunc(f.Func) || LockFunc(f.Func)) {
			library = f.Func
		}
	}
	return cmp.Or(library, last)
}

// Plumbing reports whether a function only passes on that its caller wants to sleep or to lock.
func Plumbing(name string) bool {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".abi0"), ".goroutine")
	switch name {
	case "runtime.futex", "runtime.futexsleep", "runtime.lock", "runtime.lock2",
		"runtime.lockWithRank", "runtime.(*mLockProfile).start",
		"runtime.notesleep", "runtime.notetsleep", "runtime.notetsleep_internal",
		"runtime.notetsleepg", "runtime.semasleep", "runtime.mPark",
		"runtime.usleep", "runtime.osyield", "runtime.systemstack", "runtime.systemstack_switch",
		"runtime.mcall", "runtime.semacquire",
		"syscall", "__futex_abstimed_wait_common", "__futex_abstimed_wait_common64",
		"__futex_abstimed_wait_cancelable64", "futex_wait", "__lll_lock_wait", "__lll_lock_wait_private",
		"pthread_mutex_lock", "__pthread_mutex_lock", "___pthread_mutex_lock", "pthread_cond_wait",
		"__pthread_cond_wait", "pthread_cond_timedwait":
		return true
	}
	return LanguageFunc(name) || LockFunc(name)
}

// PlaceOf is the program's function on a user stack: the innermost with a name that is neither
// plumbing nor the system's. Without one it is the innermost that is not the system's, and else the
// outermost.
func PlaceOf(k *Timeline, stack uint32) kernel.Frame {
	var last, library kernel.Frame
	for _, f := range k.Stack(stack) {
		if f.Func == "" {
			continue
		}
		last = f
		switch {
		case SystemModule(f.Module):
		case !Plumbing(f.Func):
			return last
		case library.Func == "":
			library = last
		}
	}
	if library.Func != "" {
		return library
	}
	return last
}

// SystemModule reports whether a module is the kernel, the C library or the loader.
func SystemModule(module string) bool {
	name := module[strings.LastIndexByte(module, '/')+1:]
	return name == "kernel" || strings.HasPrefix(name, "libc.so") ||
		strings.HasPrefix(name, "libc-") || strings.HasPrefix(name, "libpthread") ||
		strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") || name == "[vdso]"
}

// PlainComm is a command's name without the number of a CPU or worker that kernel threads have:
// "kworker", "ksoftirqd".
func PlainComm(comm string) string {
	if i := strings.IndexByte(comm, '/'); i > 0 && strings.HasPrefix(comm, "k") {
		return comm[:i]
	}
	if comm == "" {
		return "unknown"
	}
	return comm
}
