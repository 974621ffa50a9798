package books

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/account"
)

// mostSites is how many places of an account are listed.
const mostSites = 5

// write writes a column down as plain data, in words.
func (b *Books) write(c *Column) account.Column {
	out := account.Column{Requests: c.requests, WallNS: c.wall}
	for _, s := range c.sums {
		if s != nil && s.ns != 0 {
			out.Accounts = append(out.Accounts, b.writeSum(s, c.entries))
		}
	}
	sortAccounts(out.Accounts)
	return out
}

// writeSum writes one account down. Which lists it has depends on its leaf and class:
//
//   - Where nothing else says what the actor waited in, the largest place does. Off the CPU its
//     place says nothing.
//   - What was waited for instead of a CPU is who had it. Otherwise it is who held the Ps.
//   - Of a lock the holder is one name. What is on the path below is part of the lock's own story.
func (b *Books) writeSum(s *sum, entries map[string]bool) account.Account {
	a := b.account(s.key)
	a.NS, a.ExcessNS, a.Requests, a.Largest, a.MaxQueue, a.Tags = s.ns, int64(s.excess), s.requests, s.largest, int(s.queue), s.tags
	a.Actors, a.Holds, a.Events = len(s.actors), len(s.holds), s.events
	a.Sites = SitesBy(s.stacks, b.names.Place)
	if len(s.works) > 0 {
		a.OnCPU = sumOf(s.works).Write(b.works, s.ns)
	}
	if len(a.Sites) > 0 && a.Detail == "" && a.Class != account.ClassOwn && !s.key.Leaf.OffCPU() {
		a.Detail = a.Sites[0].Func
	}
	if s.key.Leaf == LeafNoCPU {
		a.Instead = b.insteadOfCPU(s.behind, s.ns)
	} else {
		a.Instead = b.insteadOfP(s.occupants, s.lacked, entries, s.ns)
	}
	if s.key.Class == ClassLock {
		a.Holder = b.lockHolder(s.holders, s.ns)
		return a
	}
	a.Holders = b.insteadOfP(s.holders, nil, entries, 0)
	for site, ns := range s.through {
		a.Through = append(a.Through, account.Site{Func: b.names.Func(site), NS: ns})
	}
	a.Through = largestSites(a.Through)
	return a
}

// account is a key in words.
func (b *Books) account(k Key) account.Account {
	a := account.Account{Leaf: leafNames[k.Leaf], Class: classNames[k.Class], Actor: b.names.Func(k.Actor), Site: b.names.Func(k.Site)}
	if k.Leaf.Named() {
		a.Detail = b.names.Func(k.Detail)
	} else {
		a.Detail = b.runtime.Word(k.Detail)
	}
	return a
}

// sortAccounts orders by time, largest first, and by all that an account is known by: the order
// must not depend on that of a map.
func sortAccounts(l []account.Account) {
	slices.SortFunc(l, func(x, y account.Account) int {
		return cmp.Or(cmp.Compare(y.NS, x.NS), cmp.Compare(x.Leaf, y.Leaf), cmp.Compare(x.Class, y.Class),
			cmp.Compare(x.Actor, y.Actor), cmp.Compare(x.Site, y.Site), cmp.Compare(x.Detail, y.Detail))
	})
}

// largestSites orders by time, largest first, and cuts.
func largestSites(l []account.Site) []account.Site {
	slices.SortFunc(l, func(x, y account.Site) int {
		return cmp.Or(cmp.Compare(y.NS, x.NS), cmp.Compare(x.Func, y.Func), cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Via, y.Via))
	})
	return l[:min(len(l), mostSites)]
}

// lockHolder names who had a lock for more than half of ns, of those that were not the actor
// themselves. Nobody is named if no single one did.
func (b *Books) lockHolder(holders map[uint32]int64, ns int64) string {
	for holder, n := range holders {
		if 2*n > ns {
			return b.names.Func(holder)
		}
	}
	return ""
}

// SitesBy adds stacks up by place, largest first. Stacks without a place are left out.
func SitesBy(stacks map[uint32]*Amount, place func(stack uint32) account.Site) []account.Site {
	sums := map[account.Site]Amount{}
	for stack, x := range stacks {
		s := place(stack)
		y := sums[s]
		sums[s] = Amount{y.NS + x.NS, y.N + x.N}
	}
	var l []account.Site
	for s, x := range sums {
		if s.Func == "" {
			continue
		}
		s.NS, s.N = x.NS, x.N
		l = append(l, s)
	}
	return largestSites(l)
}

// insteadOfP names who held the Ps, and what those Ps lacked whose threads were not running. What
// is missing to ns is unknown: it is of requests that were not hot when they ended ([Group.IsHot]).
// The smallest beyond account.MostInstead are added up as others of their kind, so it still sums to
// ns.
func (b *Books) insteadOfP(occupants, lacked map[uint32]int64, entries map[string]bool, ns int64) []account.Instead {
	if len(occupants)+len(lacked) == 0 {
		return nil
	}
	sums := map[account.Instead]int64{}
	left := ns
	for ref, n := range occupants {
		sums[b.runtime.Occupant(ref, entries)] += n
		left -= n
	}
	for ref, n := range lacked {
		sums[b.runtime.Lacked(ref, entries)] += n
		left -= n
	}
	if left > 0 {
		sums[account.Instead{Who: "unknown", Kind: account.InsteadUnknown}] += left
	}
	var l []account.Instead
	for i, n := range sums {
		i.NS = n
		l = append(l, i)
	}
	slices.SortFunc(l, func(x, y account.Instead) int { return cmp.Or(cmp.Compare(y.NS, x.NS), cmp.Compare(x.Who, y.Who)) })
	if len(l) <= account.MostInstead {
		return l
	}
	var rest []account.Instead
	for _, i := range l[account.MostInstead:] {
		kind := i.Kind
		if len(lacked) == 0 || !i.Lacked() {
			kind = account.InsteadBackground
		}
		rest = account.AddInstead(rest, account.Instead{Who: "others", Kind: kind, NS: i.NS})
	}
	account.SortInstead(rest)
	return append(l[:account.MostInstead], rest...)
}

// insteadOfCPU names who had the CPU that was waited for. What is missing to ns is unknown.
func (b *Books) insteadOfCPU(behind map[uint32]int64, ns int64) []account.Instead {
	var l []account.Instead
	for ref, n := range behind {
		i := b.names.Behind(ref)
		i.NS = n
		l = account.AddInstead(l, i)
		ns -= n
	}
	if ns > 0 {
		l = account.AddInstead(l, account.Instead{Who: "unknown", Kind: account.InsteadUnknown, NS: ns})
	}
	account.SortInstead(l)
	if len(l) > account.MostInstead {
		rest := account.Instead{Who: "others", Kind: account.InsteadNeighbour}
		for _, i := range l[account.MostInstead:] {
			rest.NS += i.NS
		}
		l = append(l[:account.MostInstead], rest)
	}
	return l
}
