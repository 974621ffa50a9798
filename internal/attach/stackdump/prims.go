package stackdump

import "strings"

// prim is the sort of call in which a thread sleeps, or none.
type prim int

const (
	anything prim = iota
	inLock        // a mutex or rwlock
	inCond        // a condition variable, semaphore or futex
	inPoll        // epoll, select, accept
	inRead        // read or recv: a file or a socket
	inWrite       // write or send
	inDisk        // fsync, pread, a direct read
	inSleep
	inJoin
)

// prims are the library's calls, by sort. The order matters: a pthread_mutex_lock sleeps in a
// futex.
var prims = []struct {
	prim  prim
	names []string
}{
	{inLock, []string{"lll_lock_wait*", "lll_mutex_lock_wait", "lll_mutex_lock_wait_private",
		"L_lock_*", "L_mutex_lock_*", "pthread_mutex_lock*",
		"pthread_mutex_timedlock", "pthread_mutex_cond_lock*", "pthread_rwlock_rdlock*",
		"pthread_rwlock_wrlock*", "pthread_rwlock_*lock_full*",
		"pthread_spin_lock", "lll_lock_elision", "lll_timedlock_wait*", "mutex_lock_full",
		"RawMutex::lock_slow", "RawRwLock::lock_*_slow",
		"Mutex::lock_contended", "RwLock::write_contended", "RwLock::read_contended",
		"absl::*::LockSlow*", "Mutex::LockSlow*", "SpinLock::SlowLock",
		"SpinLockDelay*", "AbslInternalSpinLockDelay*", "malloc_mutex_lock_slow",
		"*je_malloc_mutex_lock_slow", "SharedMutexImpl::lock*Slow",
		"std::mutex::lock", "boost::mutex::lock", "tbb::*::acquire", "QMutex::lock*", "QBasicMutex::lockInternal",
		"psynch_mutexwait", "psynch_rw_rdlock", "psynch_rw_wrlock", "ObjectMonitor::enter", "ObjectMonitor::EnterI",
		"objc_sync_enter", "ck_spinlock_*", "Monitor::lock", "os_unfair_lock_lock_slow"}},
	{inCond, []string{"psynch_cvwait", "mach_msg_trap", "mach_msg2_trap", "semaphore_wait_trap",
		"semaphore_timedwait_trap", "ulock_wait*", "pthread_cond_wait*", "pthread_cond_timedwait*",
		"pthread_cond_clockwait*", "futex_wait_cancelable", "condition_variable::wait*",
		"sem_wait*", "sem_timedwait*", "new_sem_wait*", "sem_clockwait*", "do_futex_wait*",
		"PyCOND_TIMEDWAIT", "PyThread_acquire_lock*", "park", "Parker::park",
		"PlatformEvent::park*", "PlatformMonitor::wait", "Condvar::wait*", "eventfd_read",
		"semtimedop", "semop", "semwait", "msgrcv",
		"futex_wait", "futex_abstimed_wait*", "syscall", "native_cond_wait", "uv_cond_wait",
		"uv_cond_timedwait", "uv_sem_wait",
		"PGSemaphoreLock", "LWLockAcquire", "io_uring_wait_cqe*", "AsyncWait*", "std::thread::park"}},
	{inJoin, []string{"pthread_join*", "pthread_clockjoin*", "pthread_timedjoin*", "wait4",
		"waitpid", "waitid", "wait3"}},
	{inSleep, []string{"nanosleep*", "clock_nanosleep*", "usleep", "sleep", "sigwait*",
		"sigtimedwait*", "pause", "sigsuspend", "rt_sigtimedwait",
		"do_sigwait", "sleep_for"}},
	{inPoll, []string{"epoll_wait*", "epoll_pwait*", "poll", "ppoll", "poll_chk", "select",
		"pselect*", "accept", "accept4", "libc_accept*",
		"io_getevents*", "io_getevents_0_4", "kevent*", "workq_kernreturn", "port_getn",
		"inotify_read", "WaitEventSetWait*", "uv__io_poll", "libaio_*", "io_uring_get_cqe*", "io_uring_enter*"}},
	{inDisk, []string{"fsync", "fdatasync", "libc_fsync", "sync_file_range", "msync", "pwrite*",
		"pread*", "libc_pread*", "libc_pwrite*", "io_submit",
		"fallocate*", "posix_fallocate*", "ftruncate*", "sync", "syncfs", "openat*", "open64",
		"libc_open*", "unlink", "rename*", "xstat*", "fxstat*",
		"lxstat*", "stat64", "getdents*", "readdir*", "preadv*", "pwritev*"}},
	{inRead, []string{"read", "libc_read", "readv", "recv", "libc_recv*", "recvfrom*", "recvmsg*",
		"connect", "libc_connect", "getaddrinfo",
		"read_nocancel", "recv_nocancel", "SSL_read"}},
	{inWrite, []string{"write", "libc_write", "writev", "send", "libc_send*", "sendto", "sendmsg",
		"sendfile*", "write_nocancel"}},
}

// sleepsIn finds the call that a stack sleeps in, and its frame. Of a run of library calls the
// outermost counts, since a rwlock sleeps in a futex. A cond wait that takes its mutex back waits
// for a lock.
func sleepsIn(frames []frame) (prim, int) {
	found, at := anything, -1
	for i, f := range frames[:min(len(frames), 10)] {
		fn := short(f.fn)
		p := primOf(fn)
		switch {
		case p != anything && (found == anything || found == inCond || p == found):
			found, at = p, i
		case p == inRead && found == inPoll:
			found, at = p, i
		case p == anything && found != anything && !glue(fn), found == anything && i > 3:
			return found, at
		}
	}
	return found, at
}

func primOf(fn string) prim {
	for _, p := range prims {
		for _, name := range p.names {
			if like(fn, name) && (p.prim < inPoll || !ownMethod(fn)) {
				return p.prim
			}
		}
	}
	return anything
}

// ownMethod reports whether a function is a method of the program's, which may have the name of a
// call of the system.
func ownMethod(fn string) bool {
	if strings.Contains(fn, "::") {
		return !strings.HasPrefix(fn, "std::")
	}
	last := fn[strings.LastIndexByte(fn, '.')+1:]
	return strings.Count(fn, ".") > 1 && strings.Trim(last, "0123456789") != "" && // no part.0 of gcc's
		!strings.HasPrefix(fn, "java.") && !strings.HasPrefix(fn, "sun.") && !strings.HasPrefix(fn, "jdk.")
}

// glue are functions between a call of the library and the program's own.
func glue(fn string) bool {
	switch fn {
	case "", "??", "futex_wait_simple", "futex_abstimed_wait_common64", "internal_syscall_cancel",
		"syscall_cancel_arch", "syscall_cancel":
		return true
	}
	return strings.HasPrefix(fn, "futex_") || strings.HasPrefix(fn, "lll_") || strings.HasPrefix(fn, "gthread_") ||
		strings.HasPrefix(fn, "gthread") || strings.HasPrefix(fn, "libc_") ||
		strings.HasPrefix(fn, "syscall_cancel") || strings.HasPrefix(fn, "GI_")
}
