package ledger

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/timeline"
)

const (
	topFutexes   = 20
	toldWaits    = 512 // the longest waits of each futex that are followed to its holders
	leastFutexNS = 1e6
)

// fillFutexes lists what the target's threads waited for by address, longest first: which lock, who held it, and what the holder did
// meanwhile, told from the longest waits.
func fillFutexes(k *timeline.Kernel, r *Kernel) {
	w := newThreadWalk(k)
	w.queues()
	type one struct {
		addr uint64
		a    *address
	}
	var l []one
	for addr, a := range w.addresses() {
		if a.ns >= leastFutexNS {
			l = append(l, one{addr, a})
		}
	}
	// Time spent in conditions is mostly idleness; locks are told first.
	lock := map[uint64]bool{}
	for _, o := range l {
		lock[o.addr] = w.lockAt(o.addr)
	}
	slices.SortFunc(l, func(a, b one) int {
		return cmp.Or(-compareBool(lock[a.addr], lock[b.addr]), cmp.Compare(b.a.ns, a.a.ns), cmp.Compare(a.addr, b.addr))
	})
	locks := 0
	for locks < len(l) && lock[l[locks].addr] {
		locks++
	}
	// at least five places for the others
	keep := append(slices.Clone(l[:min(locks, topFutexes-min(5, len(l)-locks))]), l[locks:]...)
	keep = keep[:min(len(keep), topFutexes)]
	at := map[uint64]int{}
	for i, o := range keep {
		at[o.addr] = i
		f := Futex{Address: o.addr, Waits: o.a.blocks, WaitNS: o.a.ns, MaxQueue: o.a.deepest, HolderNS: map[string]int64{}}
		f.Name, f.Kind, f.Inferred = w.nameAt(o.addr)
		r.Futexes = append(r.Futexes, f)
	}
	w.holders(r, at, lock)
	slices.SortStableFunc(r.Futexes, func(a, b Futex) int { return cmp.Compare(b.WaitNS, a.WaitNS) })
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
	tid        uint32
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
func (w *threadWalk) holders(r *Kernel, at map[uint64]int, lock map[uint64]bool) {
	lists := make([]longest, len(r.Futexes))
	sites := make([]map[string]*Site, len(r.Futexes))
	w.k.Each(r.Begin, r.End, func(tid uint32, s *timeline.Stretch) {
		if s.Doing != timeline.ThreadBlocked || s.Block != timeline.BlockFutex || s.End != s.Whole.End {
			return
		}
		n, ok := at[s.Futex]
		if !ok {
			return
		}
		if sites[n] == nil {
			sites[n] = map[string]*Site{}
		}
		if name := sleepsIn(w.k, s); name != "" {
			addSite(sites[n], Site{Func: name}, s.Whole.End-s.Whole.Begin)
		}
		if !lock[s.Futex] {
			return
		}
		heap.Push(&lists[n], longWait{tid, s.Whole.Begin, s.Whole.End})
		if len(lists[n]) > toldWaits {
			heap.Pop(&lists[n])
		}
	})
	for n := range r.Futexes {
		f := &r.Futexes[n]
		f.Sites = sitesOf(sites[n])
		who := map[string]int64{}
		slices.SortFunc(lists[n], func(a, b longWait) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.tid, b.tid)) })
		for _, l := range lists[n] {
			w.out = func(p *threadPiece) {
				ns := p.hi - p.lo
				f.HolderNS[string(leafOf[p.leaf])] += ns
				if len(p.hops) == 0 {
					return
				}
				th, _ := w.k.Name(p.hops[0].waker, p.lo)
				who[fmt.Sprintf("%s (thread %d)", th.Comm, p.hops[0].waker)] += ns
				f.Inferred = f.Inferred || p.hops[0].inferred
			}
			w.thread(l.tid, l.begin, l.end)
		}
		for name, ns := range who {
			f.Holders = append(f.Holders, Instead{Who: name, Kind: "holder", NS: ns})
		}
		sortInstead(f.Holders)
		f.Holders = f.Holders[:min(len(f.Holders), topInstead)]
	}
}

// queues counts how many waited at once at each address.
func (w *threadWalk) queues() {
	lo, hi := w.k.Span()
	type edge struct {
		at int64
		in int8
	}
	edges := map[uint64][]edge{}
	n := 0
	w.k.Each(lo, hi, func(tid uint32, s *timeline.Stretch) {
		if s.Doing != timeline.ThreadBlocked || s.Block != timeline.BlockFutex || s.End != s.Whole.End || s.Futex == 0 || n >= 1<<21 {
			return
		}
		n++
		edges[s.Futex] = append(edges[s.Futex], edge{s.Whole.Begin, 1}, edge{s.Whole.End, -1})
	})
	for addr, l := range edges {
		a := w.addresses()[addr]
		if a == nil {
			continue
		}
		slices.SortFunc(l, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.in, b.in)) })
		now := 0
		for _, e := range l {
			now += int(e.in)
			a.deepest = max(a.deepest, now)
		}
	}
}

// lockAt tells whether the futex at an address is a lock.
func (w *threadWalk) lockAt(addr uint64) bool {
	a := w.addresses()[addr]
	if a == nil {
		return false
	}
	return w.isLock(&timeline.Stretch{Futex: addr, User: a.user})
}

// libraryLocks are the C library's own locks by a function that takes them; what is below the wait's own function tells.
var libraryLocks = []struct{ lock, funcs string }{
	{"stack_cache_lock", "allocate_stack get_cached_stack __nptl_free_stacks __nptl_deallocate_stack __nptl_free_tcb __deallocate_stack __free_stacks queue_stack pthread_create ___pthread_create __pthread_create_2_1"},
	{"malloc arena", "_int_malloc _int_free malloc __libc_malloc free __libc_free cfree calloc __libc_calloc realloc __libc_realloc arena_get2 arena_get_retry tcache_init malloc_consolidate __libc_memalign sysmalloc"},
	{"dl_load_lock", "_dl_open _dl_close _dl_map_object dl_iterate_phdr __dl_iterate_phdr _dl_sym"},
	{"stdio", "_IO_fwrite fwrite _IO_puts puts fputs _IO_fputs vfprintf __vfprintf_internal fflush _IO_fflush flockfile __flockfile _IO_flockfile"},
}

// nameAt names the lock or condition at an address by the stack of its longest wait.
func (w *threadWalk) nameAt(addr uint64) (name, kind string, inferred bool) {
	a := w.addresses()[addr]
	if a == nil {
		return "", futexUnknown, true
	}
	frames := w.k.Stack(a.user)
	private := false
	for i := range frames {
		f := &frames[i]
		if kind == "" && i < 4 && !f.Inferred {
			kind = kindOfWait(f.Func)
		}
		fn, _, _ := strings.Cut(f.Func, "@")
		private = private || strings.HasPrefix(fn, "__lll_lock_wait_private")
		if name != "" || fn == "" {
			continue
		}
		for _, l := range libraryLocks {
			if slices.Contains(strings.Fields(l.funcs), fn) && systemModule(f.Module) {
				name, inferred = l.lock, f.Inferred
				break
			}
		}
		if !systemModule(f.Module) {
			break // below the program's own code nothing tells of this lock
		}
	}
	if name != "" && kind != futexCondition {
		return name, futexMutex, inferred
	}
	name = sleepsIn(w.k, &timeline.Stretch{User: a.user})
	switch {
	case kind == futexRuntime:
		name = "runtime: " + strings.TrimPrefix(name, "runtime.")
	case kind != "":
	case a.joins*2 > a.blocks:
		kind, inferred = futexJoin, true
	case w.lockAt(addr):
		kind, inferred = futexMutex, true
	case a.waits > 0 && a.libc*2 > a.seen:
		kind, inferred = futexCondition, true
	default:
		kind, inferred = futexUnknown, true
	}
	if private && name == "" {
		name = "a lock of the C library"
	}
	return name, kind, inferred
}

// lockSites are the functions that wait for a lock, or its name.
func (w *threadWalk) lockSites(addr uint64) []string {
	name, _, _ := w.nameAt(addr)
	if name == "" {
		name = fmt.Sprintf("futex 0x%x", addr)
	}
	return []string{name}
}

// frames are a stack's, for showing.
func (w *threadWalk) frames(id uint32) []Site {
	var l []Site
	for _, f := range w.k.Stack(id) {
		name := f.Func
		if name == "" && f.Module != "" {
			name = fmt.Sprintf("%s+0x%x", f.Module, f.Offset)
		}
		l = append(l, Site{Func: name, File: f.Module})
	}
	return l
}
