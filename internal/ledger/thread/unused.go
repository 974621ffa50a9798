package thread

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/sched"
)

// lockWaits is when threads waited for locks outside of any unit of work that was seen: a pool's worker that never runs out of work never waits for some, so
// that none of its work is a unit. on is what they waited for. Left out are locks whose holders mostly wait for the network: such a lock passes the wait for
// work on, as where idle workers take turns to accept.
func (t *pass) lockWaits(r *account.Kernel) (l capacity.Times, on []account.Instead) {
	names := map[uint64]string{}
	for i := range r.Futexes {
		f := &r.Futexes[i]
		if f.Kind != account.FutexMutex {
			continue
		}
		var all int64
		for _, ns := range f.HolderNS {
			all += ns
		}
		if outside := f.HolderNS[string(account.LeafNetwork)] + f.HolderNS[string(account.LeafPipe)]; 2*outside > all {
			continue
		}
		names[f.Address] = "lock"
		if f.Name != "" {
			names[f.Address] = "lock in " + f.Name
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	within := map[uint32]capacity.Times{}
	for i := range t.units.Units {
		if u := &t.units.Units[i]; u.LeftOut == request.Kept && t.units.Groups[u.Group].Listed {
			within[u.TID] = append(within[u.TID], capacity.Span{Lo: u.Begin, Hi: u.End})
		}
	}
	for tid, s := range within {
		within[tid] = s.Merge()
	}
	by := map[string]int64{}
	t.k.Each(r.Begin, r.End, func(tid uint32, s *sched.Stretch) {
		if s.Doing != sched.Blocked || s.Block != sched.BlockFutex || !t.walk.isLock(s) {
			return
		}
		name, ok := names[s.Futex]
		if !ok {
			return
		}
		for _, w := range within[tid].Without(s.Begin, s.End) {
			by[name] += w.Hi - w.Lo
			if len(l) >= capacity.MaxSpans {
				l = l.Merge()
			}
			if len(l) < capacity.MaxSpans {
				l = append(l, w)
			}
		}
	})
	for name, ns := range by {
		on = append(on, account.Instead{Who: name, Kind: account.InsteadLock, NS: ns})
	}
	account.SortInstead(on)
	return l.Merge(), on[:min(len(on), account.MostInstead)]
}
