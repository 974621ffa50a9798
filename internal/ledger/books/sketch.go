package books

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/request"
)

// Step is a stretch of a unit's chain, as the unit's owner notes it: the numbers are the owner's.
// It is small, since each candidate has some.
type Step struct {
	NS                         int64
	Actor                      int64
	Entry, Site, Detail, Stack uint32
	Leaf                       Leaf
	Class                      Class
	Depth, Several             uint16
}

// slowUnit is a slow unit and the number of its group.
type slowUnit struct {
	*Kept
	group int
}

// slowUnits lists the slow units of all listed groups, the longest first.
func (b *Books) slowUnits(list []request.Group) (l []slowUnit) {
	for id, g := range b.listed(list) {
		for _, k := range g.candidates {
			if k.slow {
				l = append(l, slowUnit{k, id})
			}
		}
	}
	slices.SortFunc(l, func(x, y slowUnit) int { return cmp.Or(slower(x.Kept, y.Kept), cmp.Compare(x.group, y.group)) })
	return l
}

// Slow reports whether the unit turned out to be slow. Before Ledgers nobody knows.
func (k *Kept) Slow() bool { return k.slow }

// Largest is the number of the account that most of the unit's time is booked to.
func (k *Kept) Largest() (id uint32, ok bool) {
	most := int64(-1)
	for _, f := range k.facts {
		if f.kind() == FactNS && f.ns() > most {
			id, most = f.account, f.ns()
		}
	}
	return id, most >= 0
}

// mostParts is how many accounts a sketch has, each of them at least leastPart of its time.
const (
	mostParts = 8
	leastPart = 200
)

// Sketches writes down what the time of each slow unit consists of, and returns the units in the
// same order: their owner adds the chains. It is called after Ledgers, with the column that this
// returned.
func (b *Books) Sketches(list []request.Group, slow *Column) (out account.Sketches, units []*Kept) {
	w := namer{Books: b, column: slow, accounts: map[uint32]account.Named{}}
	numbers := map[account.Named]int{}
	l := b.slowUnits(list)
	out.Left = max(0, len(l)-account.MostSketches)
	for _, k := range l[:len(l)-out.Left] {
		s := account.Sketch{Begin: b.names.Time(k.Begin), End: b.names.Time(k.End), Actor: k.Number,
			Entry: list[k.group].Entry}
		if k.Name != 0 {
			s.Name = b.runtime.Request(k.Name)
		}
		for _, f := range k.facts {
			if f.kind() == FactNS && f.ns() > 0 && f.ns()*leastPart >= k.Wall() {
				s.Parts = append(s.Parts,
					account.Part{Account: number(numbers, &out.Accounts, w.named(f.account)), NS: f.ns()})
			}
		}
		slices.SortStableFunc(s.Parts, func(x, y account.Part) int { return cmp.Compare(y.NS, x.NS) })
		s.Parts = s.Parts[:min(len(s.Parts), mostParts)]
		out.List, units = append(out.List, s), append(units, k.Kept)
	}
	return out, units
}

// namer names accounts as the slow column does.
type namer struct {
	*Books
	column   *Column
	accounts map[uint32]account.Named
}

func (w *namer) named(id uint32) account.Named {
	n, ok := w.accounts[id]
	switch {
	case ok:
	case w.column.sums[id] == nil:
		n = account.Named{Leaf: account.LeafUnknown, Class: account.ClassUnknown}
	default:
		a := w.writeSum(w.column.sums[id], w.column.entries)
		n = account.Named{Class: a.Class, Leaf: a.Leaf, Actor: a.Actor, Site: a.Site,
			Detail: a.Detail, Holder: a.Holder}
		w.accounts[id] = n
	}
	return n
}
