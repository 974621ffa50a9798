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
	events bool   // it is in a poll, and no rule says whose events it waits for
	// shared is what it waits for within its work, of which others have all: a permit, what a queue
	// gives; "": nothing that the dump shows.
	shared string
}

// A rule knows what a thread does from a function in its stack. The first rule that fits counts.
type rule struct {
	doing doing
	kind  lockKind
	under prim // the thread must sleep in this sort of call; anything: it need not
	depth int  // how far from the innermost frame the function may be; 0: anywhere; nearSite...
	names []string
}

// Depths by functions that are no library's own: what stands further out says nothing of the wait.
const (
	// atSite: the function waits itself.
	atSite = -1
	// nearSite: the function waits, or calls the one that does, with at most one between.
	nearSite = -3
	// nearLoop is of a server's loops, whose names nothing else has.
	nearLoop = -4
	// nearWord is of words such as worker and pool. They stand in every stack of a pool's thread,
	// at work or not, so that they count only in a thread which is in its own loop.
	nearWord = -2
)

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
	if p == inLock && accepts.find(t.frames[:min(len(t.frames), 6)], anything) >= 0 {
		t.doing = idle // it waits for its turn to accept a connection
		return
	}
	for _, r := range rules {
		i := r.find(t.frames, p)
		if i < 0 || r.doing == idle && (p == inLock || p == inDisk || p == inWrite) ||
			r.doing != lock && p == anything && (spins(t.frames) || ends(t.frames)) {
			continue
		}
		if r.doing != lock && r.under == anything && r.depth <= 0 && p == anything && i > 1 && atWork(t.frames[0]) {
			continue // a thread's first function says nothing of what it does now
		}
		if p == inLock && (r.doing == disk || r.doing == remote) {
			continue // another thread may be at the file, or ask the server
		}
		if r.depth == nearWord && t.deep() ||
			(r.doing == tableLock || r.doing == disk) && anyProgram.find(t.frames[i:i+1], anything) >= 0 &&
				engines.find(t.frames[i+1:], anything) < 0 {
			continue
		}
		if r.doing == remote && p == anything && i > 0 && short(t.frames[0].fn) != "??" && short(t.frames[0].fn) != "" {
			continue // the client's library computes, or is in a call that waits for no server
		}
		if r.doing == lock && r.under == inCond && rubyCode.find(t.frames[:i], anything) >= 0 {
			continue // it waits with the mutex, in a block of synchronize
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
	case inPoll:
		t.doing, t.events = idle, accepts.find(t.frames[at:at+1], anything) < 0
	case inSleep:
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
	} else if r.depth < 0 {
		depth = near(frames, -r.depth)
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
