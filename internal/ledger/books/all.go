package books

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/oncpu"
	"github.com/whystall/whystall/internal/request"
)

// All adds up every unit of a group by the states of its own goroutine or thread, without following
// its waits: the column of all. It is written for each segment of each unit. So it is a flat list
// of sums, and accounts without a stack skip even the table. Names come in when it is written down.
type All struct {
	Wall int64 // of all units
	// Works is what the samples met that fell into the units' own time on CPUs.
	Works oncpu.Sum

	ids   table // of class, leaf, detail and stack
	ns    []int64
	plain [leaves]uint32 // for the unit's own time without a stack, by leaf: index in ns, plus one
	unit  *unitStates    // of the unit in hand; nil: nobody asks
}

// unitStates is how long one unit was in each state of its own.
type unitStates [leaves]int64

// mostly is the leaf of most of the unit's time. It starts the next unit.
func (u *unitStates) mostly() (most Leaf) {
	for leaf, ns := range u {
		if ns > u[most] {
			most = Leaf(leaf)
		}
	}
	*u = unitStates{}
	return most
}

// Add adds time of a leaf. Stack is where the unit's wait or call stands.
func (a *All) Add(class Class, leaf Leaf, stack uint32, ns int64) {
	a.Book(class, leaf, stack, 0, ns)
}

// Book is Add for a leaf that has a detail, as in [Key].
func (a *All) Book(class Class, leaf Leaf, stack, detail uint32, ns int64) {
	if a.unit != nil {
		a.unit[leaf] += ns
	}
	isPlain := class == ClassOwn && stack == 0 && detail == 0
	if isPlain && a.plain[leaf] != 0 {
		a.ns[a.plain[leaf]-1] += ns
		return
	}
	n, isNew := a.ids.number(uint64(class)<<8|uint64(leaf), uint64(detail)<<32|uint64(stack))
	if isNew {
		a.ns = append(a.ns, 0)
	}
	a.ns[n] += ns
	if isPlain {
		a.plain[leaf] = n + 1
	}
}

// Sampled adds samples that fell into a unit's own time on CPUs.
func (a *All) Sampled(l []oncpu.Sample) {
	for i := range l {
		a.Works.Add(l[i].Work, l[i].NS)
	}
}

// onCPU is the units' own time on CPUs.
func (a *All) onCPU() (ns int64) {
	for n, words := range a.ids.keys {
		if Leaf(words[0]) == LeafOnCPU {
			ns += a.ns[n]
		}
	}
	return ns
}

// columnAll adds up every unit of the listed groups. Stacks that stand at one place become one
// account.
func (b *Books) columnAll(list []request.Group) account.Column {
	var out account.Column
	sums := map[Key]int64{}
	for _, g := range b.listed(list) {
		out.Requests += int(g.count)
		out.WallNS += g.All.Wall
		for n, words := range g.All.ids.keys {
			key := Key{Class: Class(words[0] >> 8), Leaf: Leaf(words[0]), Detail: uint32(words[1] >> 32)}
			if stack := uint32(words[1]); stack != 0 {
				key.Site = b.names.SiteOf(stack, key.Class == ClassLock)
			}
			sums[key] += g.All.ns[n]
		}
	}
	for key, ns := range sums {
		if ns > 0 {
			a := b.account(key)
			a.NS = ns
			out.Accounts = append(out.Accounts, a)
		}
	}
	sortAccounts(out.Accounts)
	return out
}
