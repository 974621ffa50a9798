package thread

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/sched"
)

// lockWaits is when threads waited for locks outside of any unit of work, and what they waited for.
// A pool's worker that never runs out of work never waits for some, so none of its work is a unit.
//
// Locks are left out if their holders mostly wait for the network. Such a lock passes on the wait
// for work, as where idle workers take turns to accept.
func (t *pass) lockWaits(r *account.Kernel) (l capacity.Times, instead []account.Instead) {
	names := map[uint64]string{}      // by address
	interpreters := map[string]bool{} // names of interpreters' locks
	for i := range r.Futexes {
		f := &r.Futexes[i]
		if f.Kind != account.FutexMutex && f.Kind != account.FutexInterpreter {
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
		switch {
		case f.Kind == account.FutexInterpreter:
			names[f.Address], interpreters[f.Name] = f.Name, true
		case f.Name != "":

			names[f.Address] = "lock in " + f.Name
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	within := map[uint32]capacity.Times{} // units, by thread
	for i := range t.units.Units {
		if u := &t.units.Units[i]; u.LeftOut == request.Kept && t.units.Groups[u.Group].Listed {
			within[u.TID] = append(within[u.TID], capacity.Span{Lo: u.Taken, Hi: u.End})
		}
	}
	for tid, times := range within {
		within[tid] = times.Merge()
	}
	waited := map[string]int64{} // ns, by name
	t.k.Each(r.Begin, r.End, func(tid uint32, s *sched.Stretch) {
		if s.Doing != sched.Blocked || s.Block != sched.BlockFutex || !t.walk.isLock(s) {
			return
		}
		name, ok := names[t.k.FutexAddr(s)]
		if !ok {
			return
		}
		for _, w := range within[tid].Without(s.Begin, s.End) {
			waited[name] += w.Hi - w.Lo
			if len(l) >= capacity.MaxSpans {
				l = l.Merge()
			}
			if len(l) < capacity.MaxSpans {
				l = append(l, w)
			}
		}
	})
	for name, ns := range waited {
		kind := account.InsteadLock
		if interpreters[name] {
			kind = account.InsteadInterpreter
		}
		instead = append(instead, account.Instead{Who: name, Kind: kind, NS: ns})
	}
	account.SortInstead(instead)
	return l.Merge(), instead[:min(len(instead), account.MostInstead)]
}
