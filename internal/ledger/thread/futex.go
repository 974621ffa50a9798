package thread

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"sync"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/oncpu"
	"github.com/whystall/whystall/internal/sched"
)

const (
	topFutexes    = 20
	followedWaits = 512 // the longest waits of each futex, which are followed to its holders
	leastFutexNS  = 1e6 // shorter sums are not listed
)

// Beside starts to add up, on another core, what does not depend on requests. The function that it
// returns waits for the result.
func Beside(k *sched.Timeline, works *oncpu.Works, set *evidence.Set) func() *account.Kernel {
	done := make(chan *account.Kernel, 1)
	go func() {
		r := capacity.Sums(k, works, set)
		fillFutexes(k, r)
		done <- r
	}()
	return sync.OnceValue(func() *account.Kernel { return <-done })
}

// fillFutexes lists the futexes that the target's threads waited for, the longest waits first:
// which lock it is, who held it, and what the holder did meanwhile. The last two come from the
// longest waits only.
func fillFutexes(k *sched.Timeline, r *account.Kernel) {
	w := NewWalk(k)
	l := foldConditions(k.Futexes())
	l = slices.DeleteFunc(l, func(f *sched.Futex) bool { return f.NS < leastFutexNS })
	// Time spent in conditions is mostly idleness. So locks come first, with room for five others.
	slices.SortFunc(l, func(a, b *sched.Futex) int {
		return cmp.Or(-compareBool(a.Kind.Lock(), b.Kind.Lock()), cmp.Compare(b.NS, a.NS), cmp.Compare(a.Addr, b.Addr))
	})
	locks := 0
	for locks < len(l) && l[locks].Kind.Lock() {
		locks++
	}
	keep := append(slices.Clone(l[:min(locks, topFutexes-min(5, len(l)-locks))]), l[locks:]...)
	keep = keep[:min(len(keep), topFutexes)]
	index := map[uint64]int{} // in r.Futexes, by address
	for i, u := range keep {
		index[u.Addr] = i
		if u.Kind == sched.FutexCondition {
			index[u.Addr^4] = i
		}
		f := account.Futex{Address: u.Addr, Waits: u.Waits, WaitNS: u.NS, MaxQueue: u.Queue,
			HolderNS: map[string]int64{}, Kind: futexKinds[u.Kind], Site: futexSite(u.Kind, u.Addr),
			Inferred: u.Inferred}
		f.Name = lockName(k, u)
		f.Interpreter, f.Asked, f.AskedNS = interpreterOf[u.Interpreter], u.Asked, u.AskedNS
		r.Futexes = append(r.Futexes, f)
	}
	w.fillHolders(r, index)
	slices.SortStableFunc(r.Futexes, func(a, b account.Futex) int { return cmp.Compare(b.WaitNS, a.WaitNS) })
}

// foldConditions joins the two words of a condition, which take turns. l is in order of address.
func foldConditions(l []*sched.Futex) []*sched.Futex {
	folded := l[:0]
	for _, f := range l {
		if n := len(folded); n > 0 && folded[n-1].Kind == sched.FutexCondition &&
			f.Kind == sched.FutexCondition && folded[n-1].Addr|4 == f.Addr {
			both := *folded[n-1]
			both.Waits += f.Waits
			both.NS += f.NS
			both.Queue = max(both.Queue, f.Queue)
			if both.User == 0 {
				both.User = f.User
			}
			folded[n-1] = &both
			continue
		}
		folded = append(folded, f)
	}
	return folded
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

// fillHolders fills in, for each futex, the sites of its waits, its holders and what they did.
func (w *Walk) fillHolders(r *account.Kernel, index map[uint64]int) {
	lists := make([]longest, len(r.Futexes))
	sites := make([]capacity.Sites, len(r.Futexes))
	w.k.Each(r.Begin, r.End, func(tid uint32, s *sched.Stretch) {
		if s.Doing != sched.Blocked || s.Block != sched.BlockFutex || s.End != s.Whole.End {
			return
		}
		n, ok := index[w.k.FutexAddr(s)]
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
		if len(lists[n]) > followedWaits {
			heap.Pop(&lists[n])
		}
	})
	for n := range r.Futexes {
		f := &r.Futexes[n]
		f.Sites = sites[n].List()
		holders := map[string]int64{}
		slices.SortFunc(lists[n],
			func(a, b longWait) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.thread, b.thread)) })
		for _, l := range lists[n] {
			take := func(p *Piece) {
				ns := p.Hi - p.Lo
				f.HolderNS[p.Leaf.String()] += ns
				if len(p.Hops) == 0 {
					return
				}
				th, _ := w.k.Name(p.Hops[0].waker, p.Lo)
				holders[fmt.Sprintf("%s (thread %d)", th.Comm, p.Hops[0].waker)] += ns
				f.HolderInferred = f.HolderInferred || p.Hops[0].Inferred
			}
			w.Thread(l.thread, l.begin, l.end, take)
		}
		for name, ns := range holders {
			f.Holders = append(f.Holders, account.Instead{Who: name, Kind: account.InsteadHolder, NS: ns})
		}
		account.SortInstead(f.Holders)
		f.Holders = f.Holders[:min(len(f.Holders), account.MostInstead)]
	}
}
