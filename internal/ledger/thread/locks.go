package thread

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/sched"
)

// lock is the number of the lock at an address.
func (t *pass) lock(addr uint64) uint32 {
	n, ok := t.locks[addr]
	if !ok {
		n = uint32(len(t.addrs))
		t.locks[addr] = n
		t.addrs = append(t.addrs, addr)
	}
	return n
}

// lockTable lists the locks that slow units waited for.
func (t *pass) lockTable(r *account.Result, slow *books.Column) {
	for n, accounts := range slow.Locks {
		if int(n) >= len(t.addrs) {
			continue
		}
		addr := t.addrs[n]
		l := account.Lock{}
		if f := t.k.Futex(addr); f != nil {
			l.Waits, l.WaitNS, l.MaxQueue = f.Waits, f.NS, f.Queue
			l.Stack = framesOf(t.k, f.User)
			if name := lockName(t.k, f); name != "" {
				l.Sites = []string{name}
			}
		}
		if l.Sites == nil {
			l.Sites = []string{waitSite(t.k, &sched.Stretch{Block: sched.BlockFutex, Futex: addr})}
		}
		t.books.SumLock(&l, accounts, books.LeafLock, nil)
		r.Locks = append(r.Locks, l)
	}
	slices.SortFunc(r.Locks, func(a, b account.Lock) int {
		return cmp.Or(cmp.Compare(b.SlowNS, a.SlowNS), cmp.Compare(b.WaitNS, a.WaitNS),
			cmp.Compare(b.Waits, a.Waits), slices.Compare(a.Sites, b.Sites))
	})
	r.Locks = r.Locks[:min(len(r.Locks), books.MostLocks)]
}
