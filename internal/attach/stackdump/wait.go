package stackdump

import (
	"cmp"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// doing is what a thread does at the instant of the dump.
type doing int

const (
	running   doing = iota // computes, or is in a call that no rule names
	idle                   // waits for work: no loss
	lock                   // waits for a lock of the process
	tableLock              // waits for a lock in a database's own tables
	disk                   // waits for a file
	remote                 // waits for another server's answer
	room                   // waits for room in a full queue
	pooled                 // waits for a free connection or object of a pool
	signal                 // waits for a signal, and the stack does not say of what
)

// lockKind says whose lock it is, since that decides the cause.
type lockKind int

const (
	plainLock    lockKind = iota
	stackCache            // glibc's cache of threads' stacks
	arenaLock             // the allocator's
	loaderLock            // the dynamic linker's
	interpreter           // GIL, GVL
	loggerLock            // a logger's, or stdio's
	engineLock            // a database engine's own rw-locks and mutexes
	addressSpace          // the kernel's mmap_lock
	kernelLock            // another lock of the kernel
)

// wait is what a thread does and where.
type wait struct {
	doing  doing
	kind   lockKind
	addr   string // of the lock; "": not in the dump
	sym    string // the lock's symbol, where the dump has it
	site   string // the function that waits, past the library's own
	from   int    // index of the site's frame
	call   string // the library's function that it sleeps in
	after  bool   // of disk: it waits for a thread that is in a call on a file
	child  bool   // that waits for another process to end or to stop
	socket string // the program's function that reads a socket; "": none does
	// shared is what it waits for within its work, of which others have all: a permit, what a queue
	// gives; "": nothing that the dump shows.
	shared string
}

// A rule knows what a thread does from a function in its stack. The first rule that fits counts.
type rule struct {
	doing doing
	kind  lockKind
	under prim // the thread must sleep in this sort of call; anything: it need not
	depth int  // how far from the innermost frame the function may be; 0: anywhere; nearSite
	names []string
}

// nearSite is the depth of a rule whose function waits, or calls the one that does, with at most
// one between. Words such as worker and pool stand in every stack of a pool's thread, at work or
// not.
const nearSite = -3

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
		"psynch_mutexwait", "psynch_rw_*lock", "ObjectMonitor::enter", "ObjectMonitor::EnterI",
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

// wrapper are functions that a program calls to lock or to wait, which are not its own.
func wrapper(fn string) bool {
	fn = fn[strings.IndexByte(fn, '!')+1:] // .NET puts the assembly before it
	for _, p := range []string{"std::", "boost::", "absl::", "parking_lot", "lock_api::",
		"inline_mysql_", "os_event", "sync_array_wait_event", "os_thread",
		"pfs_rw_lock", "rw_lock_", "PolicyMutex", "TTASEventMutex", "ib_mutex_t", "mtr_t::", "mtr_",
		"mutex_enter", "pfs_mutex_enter", "sux_lock",
		"ssux_lock", "srw_lock", "srw_mutex", "my_fast_mutex", "Query_cache::lock",
		"Query_cache::try_lock", "mutex_spin_wait", "my_cond_wait", "my_mutex_lock", "safe_mutex",
		"safe_cond", "native_", "mysql_mutex", "mysql_cond",
		"uv_mutex", "uv_cond", "uv_rwlock", "pthread_", "psi_", "core::", "java.", "jdk.",
		"sun.misc", "futex_", "folly::", "lock_guard", "gthread",
		"PyMutex", "PyThread", "QMutex", "rwlock::", "index_lock", "buf_page_t::", "block_lock",
		"dict_index_t::lock", "mem_", "futex", "System.Threading."} {
		if strings.HasPrefix(fn, p) {
			return true
		}
	}
	return glue(fn) || primOf(fn) != anything
}

// siteOf is the program's function nearest to the call that it sleeps in.
func siteOf(frames []frame, from int) (string, int) {
	for i := max(from, 0); i < len(frames); i++ {
		fn := short(frames[i].fn)
		if fn == "??" || fn == "" || wrapper(fn) {
			continue
		}
		if fn == "start_thread" || strings.HasPrefix(fn, "clone") || fn == "main" && i > from+3 {
			break
		}
		return fn, i
	}
	return "", -1
}

var (
	lockArg  = pattern.New(`\b(?:futex|mutex|__mutex|rwlock|__m|lock|mp|self|futex_word)=(?:\w+@entry=)?@?(0x[0-9a-f]+)(?: <([^<>+]+)(?:\+\d+)?>)?`)
	thisArg  = pattern.New(`\bthis=(?:this@entry=)?(0x[0-9a-f]+)(?: <([^<>+]+)(?:\+\d+)?>)?`)
	libLocks = []string{"std::mutex::lock", "std::shared_mutex", "boost::mutex::lock",
		"std::recursive_mutex::lock", "absl::Mutex::Lock"}
)

// lockAddress finds the address of the lock in the arguments of the frames up to the site's. An
// rwlock's futex word lies inside of it: the outer argument counts.
func lockAddress(frames []frame, to int) (addr, sym string) {
	for _, f := range frames[:min(max(to, 0), len(frames))] {
		re := lockArg
		m := re.FindStringSubmatch(f.args)
		if m == nil {
			for _, l := range libLocks {
				if strings.HasPrefix(short(f.fn), l) {
					m = thisArg.FindStringSubmatch(f.args)
				}
			}
		}
		if m != nil && m[1] != "0x0" {
			addr = m[1]
			if m[2] != "" {
				sym = m[2]
			}
		}
	}
	return addr, sym
}

// place says what a native thread does.
func place(t *thread, rules []rule) {
	if t.n == 0 {
		t.n = 1
	}
	p, at := sleepsIn(t.frames)
	t.site, t.from = siteOf(t.frames, at+1)
	if at >= 0 {
		t.call = short(t.frames[at].fn)
	}
	for _, r := range rules {
		i := r.find(t.frames, p)
		if i < 0 || r.doing == idle && (p == inLock || p == inDisk || p == inWrite) ||
			r.doing != lock && p == anything && (spins(t.frames) || ends(t.frames)) {
			continue
		}
		if r.doing != lock && r.under == anything && r.depth == 0 && p == anything && i > 1 && atWork(t.frames[0]) {
			continue // a thread's first function says nothing of what it does now
		}
		if p == inLock && (r.doing == disk || r.doing == remote) {
			continue // another thread may be at the file, or ask the server
		}
		if r.doing == remote && p == anything && i > 0 && short(t.frames[0].fn) != "??" && short(t.frames[0].fn) != "" {
			continue // the client's library computes, or is in a call that waits for no server
		}
		t.doing, t.kind = r.doing, r.kind
		if r.doing == lock && t.from <= i && r.kind != interpreter && r.kind != stackCache {
			t.site, t.from = r.caller(t.frames, i)
		}
		if r.doing == lock && r.under != inCond {
			t.addr, t.sym = lockAddress(t.frames, max(t.from, i+1))
		}
		t.after = r.doing == disk && p == inCond
		if t.after || r.doing == remote || r.doing == tableLock || r.doing == pooled || r.doing == room {
			t.call = short(t.frames[i].fn)
		}
		t.call = cmp.Or(t.call, short(t.frames[i].fn))
		return
	}
	if t.cropped && p == anything && len(t.frames) > 0 && locks(short(t.frames[0].fn)) {
		t.doing, t.site, t.from = lock, short(t.frames[0].fn), 0
		return
	}
	switch p {
	case inLock:
		t.doing = lock
		t.addr, t.sym = lockAddress(t.frames, t.from)
		if t.from < 0 {
			t.addr, t.sym = lockAddress(t.frames, at+1)
		}
	case inCond:
		t.doing = signal
	case inPoll, inSleep:
		t.doing = idle
	case inJoin:
		t.doing = idle
		t.joins = like(t.call, "pthread_*")
		t.child = !t.joins
	case inDisk:
		t.doing = disk
	}
}

// atWork reports whether a frame is of a function that computes: it has a name, and is not the
// kernel's of a task that sleeps.
func atWork(f frame) bool {
	fn := short(f.fn)
	return fn != "" && fn != "??" && !strings.HasPrefix(fn, "0x") && fn != "schedule" &&
		!strings.HasPrefix(fn, "schedule_") &&
		!strings.HasPrefix(fn, "switch_to") && fn != "context_switch" && fn != "signal handler called>"
}

// locks reports whether a function takes a lock, by its name: what it calls sleeps where the frames
// inside of it are left out.
func locks(fn string) bool {
	low := strings.ToLower(base(fn))
	if strings.Contains(low, "unlock") || strings.Contains(low, "release") {
		return false
	}
	for _, end := range []string{"lock", "lockwrite", "lockread", "lock_write", "lock_read",
		"wrlock", "rdlock", "acquire", "acquiregil", "acquire_lock", "acquirelock", "lock_wait", "lock_slow"} {
		if strings.HasSuffix(low, end) {
			return true
		}
	}
	return false
}

// find looks for a function of the rule in a stack that sleeps in p.
func (r rule) find(frames []frame, p prim) int {
	if r.under != anything && r.under != p {
		return -1
	}
	depth := len(frames)
	if r.depth > 0 {
		depth = min(depth, r.depth)
	} else if r.depth == nearSite {
		depth = near(frames, -nearSite)
	}
	for i, f := range frames[:depth] {
		fn := short(f.fn)
		for _, name := range r.names {
			if like(fn, name) {
				return i
			}
		}
	}
	return -1
}

// near is how many frames there are up to the n-th that is no library's own.
func near(frames []frame, n int) int {
	for i, f := range frames {
		if fn := short(f.fn); fn == "??" || !wrapper(fn) {
			if n--; n == 0 {
				return i + 1
			}
		}
	}
	return len(frames)
}

// caller is the function that called the rule's: the one that wants the lock.
func (r rule) caller(frames []frame, from int) (string, int) {
	for i := from + 1; i < len(frames); i++ {
		if r.find(frames[i:i+1], r.under) < 0 && !wrapper(short(frames[i].fn)) {
			return short(frames[i].fn), i
		}
	}
	return short(frames[from].fn), from
}
