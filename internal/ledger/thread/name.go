package thread

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/sched"
)

// What a wait, a lock and a futex are called, by their stacks.

// libraryLocks are the C library's own locks, by the functions that take them. Such a function is a
// caller of the one that waits.
var libraryLocks = []struct{ lock, funcs string }{
	{"stack_cache_lock", "allocate_stack get_cached_stack __nptl_free_stacks __nptl_deallocate_stack __nptl_free_tcb __deallocate_stack __free_stacks queue_stack pthread_create ___pthread_create __pthread_create_2_1"},
	{"malloc arena", "_int_malloc _int_free malloc __libc_malloc free __libc_free cfree calloc __libc_calloc realloc __libc_realloc arena_get2 arena_get_retry tcache_init malloc_consolidate __libc_memalign sysmalloc"},
	{"dl_load_lock", "_dl_open _dl_close _dl_map_object dl_iterate_phdr __dl_iterate_phdr _dl_sym"},
	{"stdio", "_IO_fwrite fwrite _IO_puts puts fputs _IO_fputs vfprintf __vfprintf_internal fflush _IO_fflush flockfile __flockfile _IO_flockfile"},
}

// lockName names what is waited for by the stack of its longest wait: the C library's own lock, or
// the program's function that waits; "" where the stack ends in the C library.
func lockName(k *sched.Timeline, u *sched.Futex) string {
	if u.Interpreter != sched.NoInterpreter {
		return interpreterOf[u.Interpreter].Lock()
	}
	library := ""
	for _, f := range k.Stack(u.User) {
		fn, _, _ := strings.Cut(f.Func, "@")
		if fn == "" {
			continue
		}
		if !sched.SystemModule(f.Module) {
			if u.Kind == sched.FutexRuntime && sched.Plumbing(fn) {
				continue
			}
			if u.Kind == sched.FutexRuntime {
				return "runtime: " + strings.TrimPrefix(fn, "runtime.")
			}
			if !sched.Plumbing(fn) {
				return fn // its callers have nothing to do with this lock
			}
			if library == "" {
				library = fn
			}
			continue
		}
		if u.Kind.Lock() {
			for _, l := range libraryLocks {
				if slices.Contains(strings.Fields(l.funcs), fn) {
					return l.lock
				}
			}
		}
	}
	return library
}

var futexKinds = map[sched.FutexKind]account.FutexKind{
	sched.FutexUnknown: account.FutexUnknown, sched.FutexMutex: account.FutexMutex,
	sched.FutexCondition: account.FutexCondition,
	sched.FutexJoin:      account.FutexJoin, sched.FutexBarrier: account.FutexBarrier,
	sched.FutexSemaphore: account.FutexSemaphore,
	sched.FutexRuntime:   account.FutexRuntime, sched.FutexNote: account.FutexNote,
	sched.FutexInterpreter: account.FutexInterpreter,
}

// futexSite names a futex by its address. It serves where no function of the program is known that
// waits for the futex.
func futexSite(kind sched.FutexKind, addr uint64) string {
	word := "futex"
	switch kind {
	case sched.FutexUnknown:
	case sched.FutexCondition:
		addr &^= 7 // its two words are one
		fallthrough
	default:
		word = string(futexKinds[kind])
	}
	return fmt.Sprintf("the %s at 0x%x", word, addr)
}

// threadMakers are the C library's functions that make a thread. Whatever they call and wait in,
// the wait is for making a thread.
var threadMakers = map[string]bool{"pthread_create": true, "__pthread_create_2_1": true,
	"pthread_create@@GLIBC_2.34": true, "allocate_stack": true, "thrd_create": true}

// waitSite is what a wait is called: the program's function that waits. Without one it is the
// library's function, else the futex's address or what the kernel was asked for.
func waitSite(k *sched.Timeline, s *sched.Stretch) string {
	if s.Block == sched.BlockStopped {
		return sched.Stopped
	}
	if s.Block == sched.BlockFutex {
		if f := k.FutexOf(s); f != nil && f.Interpreter != sched.NoInterpreter {
			return interpreterOf[f.Interpreter].Lock()
		}
	}
	switch k.JVMWaitOf(s) {
	case sched.JVMMonitor:
		return "a Java monitor (synchronized)"
	case sched.JVMSafepoint:
		return "a safepoint of the Java virtual machine"
	}
	name, maker, library := "", "", ""
	for _, f := range k.Stack(s.User) {
		switch {
		case f.Func == "":
		case sched.Plumbing(f.Func):
			if library == "" && !sched.SystemModule(f.Module) {
				library = f.Func
			}
		case sched.ThreadRoot(f.Func) && (name != "" || library != ""):
		default:
			name = f.Func
			if threadMakers[name] && sched.SystemModule(f.Module) {
				maker = name
			}
			if !sched.SystemModule(f.Module) {
				if maker != "" {
					return maker + ", called by " + name
				}
				return name
			}
		}
	}
	if maker != "" {
		return maker
	}
	if library != "" {
		return library
	}
	if s.Block == sched.BlockFutex && s.Futex != 0 {
		kind := sched.FutexUnknown
		if f := k.Futex(s.Futex); f != nil {
			kind = f.Kind
		}
		return futexSite(kind, s.Futex)
	}
	if name != "" {
		return name
	}
	return sched.SleptFunc(k, s)
}

// framesOf is the frames of a stack as they are printed.
func framesOf(k *sched.Timeline, id uint32) []account.Site {
	var l []account.Site
	for _, f := range k.Stack(id) {
		name := f.Func
		if name == "" && f.Module != "" {
			name = fmt.Sprintf("%s+0x%x", f.Module, f.Offset)
		}
		l = append(l, account.Site{Func: name, File: f.Module})
	}
	return l
}
