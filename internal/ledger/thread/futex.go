package thread

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/sched"
)

const (
	topFutexes   = 20
	toldWaits    = 512 // the longest waits of each futex that are followed to its holders
	leastFutexNS = 1e6
)

// kernelBeside begins to add up on another core what depends on nobody's requests. What it gives waits for it.
func Beside(k *sched.Timeline, set *evidence.Set) func() *account.Kernel {
	done := make(chan *account.Kernel, 1)
	go func() {
		r := capacity.Sums(k, set)
		fillFutexes(k, r)
		done <- r
	}()
	return sync.OnceValue(func() *account.Kernel { return <-done })
}

// fillFutexes lists what the target's threads waited for by address, longest first: which lock, who held it, and what the holder did
// meanwhile, told from the longest waits.
func fillFutexes(k *sched.Timeline, r *account.Kernel) {
	w := NewWalk(k)
	l := foldConditions(k.Futexes())
	l = slices.DeleteFunc(l, func(f *sched.Futex) bool { return f.NS < leastFutexNS })
	// Time spent in conditions is mostly idleness: locks are told first, with room left for five others.
	slices.SortFunc(l, func(a, b *sched.Futex) int {
		return cmp.Or(-compareBool(a.Kind.Lock(), b.Kind.Lock()), cmp.Compare(b.NS, a.NS), cmp.Compare(a.Addr, b.Addr))
	})
	locks := 0
	for locks < len(l) && l[locks].Kind.Lock() {
		locks++
	}
	keep := append(slices.Clone(l[:min(locks, topFutexes-min(5, len(l)-locks))]), l[locks:]...)
	keep = keep[:min(len(keep), topFutexes)]
	at := map[uint64]int{}
	for i, u := range keep {
		at[u.Addr] = i
		if u.Kind == sched.FutexCondition {
			at[u.Addr^4] = i
		}
		f := account.Futex{Address: u.Addr, Waits: u.Waits, WaitNS: u.NS, MaxQueue: u.Queue, HolderNS: map[string]int64{}, Kind: futexKinds[u.Kind], Site: futexSite(u.Kind, u.Addr), Inferred: u.Inferred}
		f.Name = w.lockName(u)
		r.Futexes = append(r.Futexes, f)
	}
	w.holders(r, at)
	slices.SortStableFunc(r.Futexes, func(a, b account.Futex) int { return cmp.Compare(b.WaitNS, a.WaitNS) })
}

// foldConditions joins the two words of a condition, which take turns.
func foldConditions(l []*sched.Futex) []*sched.Futex {
	out := l[:0]
	for _, f := range l {
		if n := len(out); n > 0 && out[n-1].Kind == sched.FutexCondition && f.Kind == sched.FutexCondition && out[n-1].Addr|4 == f.Addr {
			both := *out[n-1]
			both.Waits += f.Waits
			both.NS += f.NS
			both.Queue = max(both.Queue, f.Queue)
			if both.User == 0 {
				both.User = f.User
			}
			out[n-1] = &both
			continue
		}
		out = append(out, f)
	}
	return out
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// longWait is one wait of a futex.
type longWait struct {
	thread     uint32
	begin, end int64
}

// longest is a heap of waits, the shortest first.
type longest []longWait

func (l longest) Len() int { return len(l) }
func (l longest) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(l[i].end-l[i].begin, l[j].end-l[j].begin), cmp.Compare(l[j].begin, l[i].begin)) < 0
}
func (l longest) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *longest) Push(x any)   { *l = append(*l, x.(longWait)) }
func (l *longest) Pop() any {
	x := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return x
}

// holders fills in sites, holders and what they did.
func (w *Walk) holders(r *account.Kernel, at map[uint64]int) {
	lists := make([]longest, len(r.Futexes))
	sites := make([]capacity.Sites, len(r.Futexes))
	w.k.Each(r.Begin, r.End, func(tid uint32, s *sched.Stretch) {
		if s.Doing != sched.Blocked || s.Block != sched.BlockFutex || s.End != s.Whole.End {
			return
		}
		n, ok := at[s.Futex]
		if !ok {
			return
		}
		if sites[n] == nil {
			sites[n] = capacity.Sites{}
		}
		if name := sched.SleptFunc(w.k, s); name != "" {
			sites[n].Add(account.Site{Func: name}, s.Whole.End-s.Whole.Begin)
		}
		if !w.isLock(s) {
			return
		}
		heap.Push(&lists[n], longWait{tid, s.Whole.Begin, s.Whole.End})
		if len(lists[n]) > toldWaits {
			heap.Pop(&lists[n])
		}
	})
	for n := range r.Futexes {
		f := &r.Futexes[n]
		f.Sites = sites[n].List()
		who := map[string]int64{}
		slices.SortFunc(lists[n], func(a, b longWait) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.thread, b.thread)) })
		for _, l := range lists[n] {
			take := func(p *Piece) {
				ns := p.Hi - p.Lo
				f.HolderNS[p.Leaf.String()] += ns
				if len(p.Hops) == 0 {
					return
				}
				th, _ := w.k.Name(p.Hops[0].waker, p.Lo)
				who[fmt.Sprintf("%s (thread %d)", th.Comm, p.Hops[0].waker)] += ns
				f.HolderInferred = f.HolderInferred || p.Hops[0].Inferred
			}
			w.Thread(l.thread, l.begin, l.end, take)
		}
		for name, ns := range who {
			f.Holders = append(f.Holders, account.Instead{Who: name, Kind: account.InsteadHolder, NS: ns})
		}
		account.SortInstead(f.Holders)
		f.Holders = f.Holders[:min(len(f.Holders), account.MostInstead)]
	}
}

// libraryLocks are the C library's own locks by a function that takes them; what is below the wait's own function tells.
var libraryLocks = []struct{ lock, funcs string }{
	{"stack_cache_lock", "allocate_stack get_cached_stack __nptl_free_stacks __nptl_deallocate_stack __nptl_free_tcb __deallocate_stack __free_stacks queue_stack pthread_create ___pthread_create __pthread_create_2_1"},
	{"malloc arena", "_int_malloc _int_free malloc __libc_malloc free __libc_free cfree calloc __libc_calloc realloc __libc_realloc arena_get2 arena_get_retry tcache_init malloc_consolidate __libc_memalign sysmalloc"},
	{"dl_load_lock", "_dl_open _dl_close _dl_map_object dl_iterate_phdr __dl_iterate_phdr _dl_sym"},
	{"stdio", "_IO_fwrite fwrite _IO_puts puts fputs _IO_fputs vfprintf __vfprintf_internal fflush _IO_fflush flockfile __flockfile _IO_flockfile"},
}

// lockName names what is waited for by the stack of its longest wait: the C library's own lock, or the program's function that waits; "" where the
// stack ends in the C library.
func (w *Walk) lockName(u *sched.Futex) string {
	library := ""
	for _, f := range w.k.Stack(u.User) {
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
				return fn // below the program's own code nothing tells of this lock
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
	sched.FutexUnknown: account.FutexUnknown, sched.FutexMutex: account.FutexMutex, sched.FutexCondition: account.FutexCondition,
	sched.FutexJoin: account.FutexJoin, sched.FutexBarrier: account.FutexBarrier, sched.FutexSemaphore: account.FutexSemaphore,
	sched.FutexRuntime: account.FutexRuntime, sched.FutexNote: account.FutexNote,
}

// futexSite names a futex by its address, where no function of the program is known that waits for it.
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

// waitSite is what a request's wait is called: the program's function that waits, else the lock's address or what the kernel was asked.
func waitSite(k *sched.Timeline, s *sched.Stretch) string {
	if s.Block == sched.BlockStopped {
		return sched.Stopped
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

// frames are a stack's, for showing.
func (w *Walk) frames(id uint32) []account.Site {
	var l []account.Site
	for _, f := range w.k.Stack(id) {
		name := f.Func
		if name == "" && f.Module != "" {
			name = fmt.Sprintf("%s+0x%x", f.Module, f.Offset)
		}
		l = append(l, account.Site{Func: name, File: f.Module})
	}
	return l
}
