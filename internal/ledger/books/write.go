package books

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/request"
)

// done writes the column down.
func (p *Books) done(c *Column) account.Column {
	out := account.Column{Requests: c.requests, WallNS: c.wall}
	for _, s := range c.sums {
		if s == nil || s.time == 0 {
			continue
		}
		a := p.account(s.key)
		a.NS, a.ExcessNS, a.Requests, a.Largest, a.MaxQueue, a.Tags = s.time, int64(s.excess), s.requests, s.largest, int(s.queue), s.tags
		a.Actors, a.Holds = len(s.actors), len(s.holds)
		a.Sites = SitesBy(s.stacks, p.names.Place)
		if len(a.Sites) > 0 && a.Detail == "" && a.Class != account.ClassOwn && !s.key.Leaf.OffCPU() {
			a.Detail = a.Sites[0].Func
		}
		for site, ns := range s.through {
			a.Through = append(a.Through, account.Site{Func: p.names.Func(site), NS: ns})
		}
		if s.key.Class == ClassLock {
			a.Through = nil
		}
		a.Through = top(a.Through)
		a.Instead = p.insteadOf(s.who, s.lacked, c.entries, s.time)
		if s.key.Leaf == LeafNoCPU {
			a.Instead = p.behindOf(s.behind, s.time)
		}
		if s.key.Class != ClassLock {
			a.Holders = p.insteadOf(s.holders, nil, c.entries, 0)
		} else {
			a.Holder = p.heldBy(s.holders, s.time)
		}
		out.Accounts = append(out.Accounts, a)
	}
	sortAccounts(out.Accounts)
	return out
}

func sortAccounts(l []account.Account) {
	slices.SortFunc(l, func(a, b account.Account) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Leaf, b.Leaf), cmp.Compare(a.Class, b.Class),
			cmp.Compare(a.Actor, b.Actor), cmp.Compare(a.Site, b.Site), cmp.Compare(a.Detail, b.Detail))
	})
}

func top(l []account.Site) []account.Site {
	slices.SortFunc(l, func(a, b account.Site) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Func, b.Func), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Via, b.Via))
	})
	return l[:min(len(l), topSites)]
}

// heldBy names who had a lock for most of ns, of those that were not the actor themselves.
func (p *Books) heldBy(holders map[uint32]int64, ns int64) string {
	for who, n := range holders {
		if 2*n > ns {
			return p.names.Func(who)
		}
	}
	return ""
}

// account is the key in words.
func (p *Books) account(k Key) account.Account {
	a := account.Account{Leaf: leafOf[k.Leaf], Class: classOf[k.Class], Actor: p.names.Func(k.Actor), Site: p.names.Func(k.Site)}
	if k.Leaf.Named() {
		a.Detail = p.names.Func(k.Detail)
	} else {
		a.Detail = p.runtime.Word(k.Detail)
	}
	return a
}

// sitesBy adds stacks up by place.
func SitesBy(stacks map[uint32]*Amount, place func(stack uint32) account.Site) []account.Site {
	byPlace := map[account.Site]*Amount{}
	for id, x := range stacks {
		s := place(id)
		y := byPlace[s]
		if y == nil {
			y = &Amount{}
			byPlace[s] = y
		}
		y.NS += x.NS
		y.N += x.N
	}
	var l []account.Site
	for s, x := range byPlace {
		if s.Func == "" {
			continue
		}
		s.NS, s.N = x.NS, x.N
		l = append(l, s)
	}
	return top(l)
}

// insteadOf names who held the Ps, and what lacked those whose threads were not at work. The smallest beyond topInstead are added up as others of their
// kind, so that it sums to ns.
func (p *Books) insteadOf(who, lacked map[uint32]int64, entries map[string]bool, ns int64) []account.Instead {
	if len(who)+len(lacked) == 0 {
		return nil
	}
	byName := map[account.Instead]int64{}
	left := ns
	for w, n := range who {
		byName[p.runtime.Occupant(w, entries)] += n
		left -= n
	}
	for ref, n := range lacked {
		byName[p.runtime.Lacked(ref, entries)] += n
		left -= n
	}
	if left > 0 { // of requests that were not known to be slow when they ended
		byName[account.Instead{Who: "unknown", Kind: account.InsteadUnknown}] += left
	}
	var l []account.Instead
	for i, n := range byName {
		i.NS = n
		l = append(l, i)
	}
	slices.SortFunc(l, func(a, b account.Instead) int { return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Who, b.Who)) })
	if len(l) > account.MostInstead {
		var rest []account.Instead
		for _, i := range l[account.MostInstead:] {
			kind := i.Kind
			if len(lacked) == 0 || !i.Lacked() {
				kind = "background"
			}
			rest = account.AddInstead(rest, account.Instead{Who: "others", Kind: kind, NS: i.NS})
		}
		account.SortInstead(rest)
		l = append(l[:account.MostInstead], rest...)
	}
	return l
}

// behindOf names who had the CPU that was waited for.
func (p *Books) behindOf(who map[uint32]int64, ns int64) []account.Instead {
	var l []account.Instead
	for ref, n := range who {
		i := p.names.Behind(ref)
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

// columnAll adds up every activation of the listed groups.
func (p *Books) columnAll(list []request.Group) account.Column {
	out := account.Column{}
	by := map[Key]*account.Account{}
	for id, g := range p.Groups {
		if g == nil || id >= len(list) || !list[id].Listed {
			continue
		}
		out.Requests += int(g.count)
		out.WallNS += g.All.Wall
		for n, k := range g.All.t.keys {
			a := Key{Class: Class(k[0] >> 8), Leaf: Leaf(k[0]), Detail: uint32(k[1] >> 32)}
			if stack := uint32(k[1]); stack != 0 {
				a.Site = p.names.SiteOf(stack, a.Class == ClassLock)
			}
			x := by[a]
			if x == nil {
				v := p.account(a)
				x = &v
				by[a] = x
			}
			x.NS += g.All.times[n]
		}
	}
	for _, a := range by {
		if a.NS > 0 {
			out.Accounts = append(out.Accounts, *a)
		}
	}
	sortAccounts(out.Accounts)
	return out
}

// slowest lists the ten slowest of all groups with a line of reason each.
func (p *Books) slowest(r *account.Result, list []request.Group) {
	type one struct {
		k  *Kept
		id int
	}
	var l []one
	for id, g := range p.Groups {
		if g == nil || id >= len(list) || !list[id].Listed {
			continue
		}
		for _, k := range g.cands {
			if k.slow {
				l = append(l, one{k, id})
			}
		}
	}
	slices.SortFunc(l, func(a, b one) int { return cmp.Or(slower(a.k, b.k), cmp.Compare(a.id, b.id)) })
	for _, o := range l[:min(len(l), slowestN)] {
		q := account.Request{
			Begin: p.names.Time(o.k.Begin), End: p.names.Time(o.k.End), Goroutine: o.k.Number, Entry: list[o.id].Entry,
		}
		if o.k.Name != 0 {
			q.Name = p.runtime.Request(o.k.Name)
		}
		for _, f := range o.k.facts {
			if f.kind() == FactNS {
				a := p.account(p.acc.list[f.account])
				a.NS = f.ns()
				q.Accounts = append(q.Accounts, a)
			}
		}
		sortAccounts(q.Accounts)
		q.Reason = reason(q.Accounts, o.k.Wall())
		r.Requests.Slowest = append(r.Requests.Slowest, q)
	}
}

// reason says in a line where most of the time went.
func reason(l []account.Account, wall int64) string {
	var parts []string
	l = grouped(l)
	for _, a := range l[:min(len(l), 2)] {
		if len(parts) > 0 && a.NS*5 < wall {
			break
		}
		parts = append(parts, fmt.Sprintf("%s %s", milli(a.NS), Describe(a)))
	}
	return strings.Join(parts, "; ")
}

// grouped adds up the accounts of a request that differ only in who had the CPU, or in which wait it was that had none.
func grouped(l []account.Account) []account.Account {
	var off, rest []account.Account
	var total, whose int64
	by := map[string]int64{}
	for _, a := range l {
		if a.Leaf != account.LeafNoCPU {
			rest = append(rest, a)
			continue
		}
		off = append(off, a)
		total += a.NS
		by[a.Detail] += a.NS
	}
	if len(off) < 2 {
		return l
	}
	one := account.Account{Leaf: account.LeafNoCPU, Class: account.ClassOwn, NS: total}
	for who, ns := range by {
		if who != "" && (ns > whose || ns == whose && who < one.Detail) {
			one.Detail, whose = who, ns
		}
	}
	if one.Detail != "" && whose*10 < total*9 {
		mostly := one.Detail
		one.Detail = "mostly " + mostly
		if whose*2 < total {
			one.Detail = fmt.Sprintf("%d programs, most of it %s", len(by), mostly)
		}
	}
	l = append(rest, one)
	sortAccounts(l)
	return l
}

func milli(ns int64) string { return fmt.Sprintf("%.1f ms", float64(ns)/1e6) }

// Describe says in words what an account is.
func Describe(a account.Account) string {
	s := string(a.Leaf)
	switch {
	case a.Detail == "":
	case a.Leaf == account.LeafSTW, a.Leaf == account.LeafNoCPU:
		s += " (" + a.Detail + ")"
	case a.Leaf == account.LeafAsleep:
		s += " in " + a.Detail
	}
	if a.Actor != "" {
		s += " of " + a.Actor
	}
	if a.Site != "" {
		switch a.Class {
		case account.ClassOwn:
			s += " in " + a.Site
		case account.ClassLock:
			s += ", for the lock in " + a.Site
		default:
			s += ", waited for in " + a.Site
		}
	}
	return s
}
