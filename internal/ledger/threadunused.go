package ledger

import (
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/sched"
)

// lockWaits is when threads waited for locks outside of any unit of work that was seen: a pool's worker that never runs out of work never waits for some, so
// that none of its work is a unit. on is what they waited for. Left out are locks whose holders mostly wait for the network: such a lock passes the wait for
// work on, as where idle workers take turns to accept.
func (t *threadPass) lockWaits(r *account.Kernel) (l spans, on []account.Instead) {
	names := map[uint64]string{}
	for i := range r.Futexes {
		f := &r.Futexes[i]
		if f.Kind != sched.FutexMutex.String() {
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
	within := map[uint32]spans{}
	for i := range t.units.Units {
		if u := &t.units.Units[i]; u.LeftOut == request.Kept && t.units.Groups[u.Group].Listed {
			within[u.TID] = append(within[u.TID], span{u.Begin, u.End})
		}
	}
	for tid, s := range within {
		within[tid] = s.merge()
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
		for _, w := range within[tid].without(s.Begin, s.End) {
			by[name] += w.hi - w.lo
			if len(l) >= maxSpans {
				l = l.merge()
			}
			if len(l) < maxSpans {
				l = append(l, w)
			}
		}
	})
	for name, ns := range by {
		on = append(on, account.Instead{Who: name, Kind: "lock", NS: ns})
	}
	sortInstead(on)
	return l.merge(), on[:min(len(on), topInstead)]
}

// without is what of [lo,hi) l leaves.
func (l spans) without(lo, hi int64) (out spans) {
	i, _ := slices.BinarySearchFunc(l, lo, func(s span, at int64) int {
		if s.hi <= at {
			return -1
		}
		return 1
	})
	for ; i < len(l) && l[i].lo < hi; i++ {
		if l[i].lo > lo {
			out = append(out, span{lo, l[i].lo})
		}
		lo = l[i].hi
	}
	if lo < hi {
		out = append(out, span{lo, hi})
	}
	return out
}
