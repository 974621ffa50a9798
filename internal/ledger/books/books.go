package books

import (
	"iter"

	"github.com/whystall/whystall/internal/oncpu"
	"github.com/whystall/whystall/internal/request"
)

// Books are the accounts of one recording while they are added up. Their owner walks the units of
// work, one after another. For each unit that is worth explaining it
//
//  1. resets [Books.Facts],
//  2. adds what it finds, each account numbered by [Books.Number],
//  3. hands the facts to the unit with [Books.TakeFacts], and
//  4. keeps the unit with [Books.Keep].
//
// When all units have ended, [Books.Ledgers] makes the columns of what was kept.
type Books struct {
	names    Names
	runtime  Runtime      // nil where the actors are threads
	slowOver int64        // ns: what took at least as long is slow; 0: the slowest 1 % of each group is
	others   uint32       // the number of the name that stands for actors of very short accounts
	works    *oncpu.Works // nil without samples

	accounts accounts
	groups   []*Group // by request.GroupID; nil: no unit of it has ended
	bytes    int      // of facts that are kept

	// Of the plots: units kept one by one, grids, and the states of the unit in hand.
	dots, grids int
	unit        unitStates

	// Of the unit in hand, and what condense needs for it.
	facts  Facts
	ns     []int64 // time, by account number
	counts []uint8 // actors kept, and holds kept << 4, by account number
	small  Facts   // of accounts that are too short to keep whole
}

// New makes the books. A slowOver of 0 makes the slowest 1 % of each group slow. Others is the
// number of the name that stands for actors whose accounts are too short to be kept apart.
func New(names Names, runtime Runtime, slowOver int64, others uint32) *Books {
	return &Books{names: names, runtime: runtime, slowOver: slowOver, others: others}
}

// Sampled says what the numbers of works mean. Without it no time on CPUs is divided.
func (b *Books) Sampled(works *oncpu.Works) { b.works = works }

// Facts holds the facts of the unit that is explained. Its owner resets it before each unit.
func (b *Books) Facts() *Facts { return &b.facts }

// Number is the number of an account.
func (b *Books) Number(k Key) uint32 { return b.accounts.number(k) }

// TakeFacts takes the facts in hand as those of k. It returns the sum of their time, which is k's
// wall time: if it is anything else, the walk was wrong.
func (b *Books) TakeFacts(k *Kept) (ns int64) {
	for _, f := range b.facts.list {
		if f.kind() == FactNS {
			ns += f.ns()
		}
	}
	k.facts = b.condense(k.Wall())
	return ns
}

// Keep keeps a unit: slow as one that may turn out to be slow, usual as one of its group's sample,
// or both. It calls groups only when the memory for facts is used up.
func (b *Books) Keep(k *Kept, slow, usual bool, groups func() []request.Group) {
	if slow {
		b.bytes += k.Group.keep(k)
	}
	if usual {
		b.bytes += k.Group.sample(k)
	}
	if b.bytes > maxKept {
		b.shrink(groups())
	}
}

// mostOfAccount is how many actors, and how many holds of a lock, are kept of one account of one
// unit. That there are many is known from a few.
const mostOfAccount = 4

// condense copies the facts in hand, without what is too small to matter. A slow request has
// hundreds of facts, and most are about microseconds. What is kept of an account depends on its
// part of the wall time:
//
//   - from 1/200 on all facts, but only a few actors and holds;
//   - below that its time, and what adds up over many units: locks, pauses, sweeps, samples;
//   - below 1/500 the same, without the actor: short accounts of many actors become one.
func (b *Books) condense(wall int64) []fact {
	for len(b.ns) < len(b.accounts.keys) {
		b.ns = append(b.ns, 0)
		b.counts = append(b.counts, 0)
	}
	for _, f := range b.facts.list {
		if f.kind() == FactNS {
			b.ns[f.account], b.counts[f.account] = f.ns(), 0
		}
	}
	b.small.Reset()
	all := b.facts.list
	n := 0
	for _, f := range all {
		ns := b.ns[f.account]
		if ns*200 >= wall {
			switch f.kind() {
			case FactActor:
				if b.counts[f.account]&15 == mostOfAccount {
					continue
				}
				b.counts[f.account]++
			case FactHold:
				if b.counts[f.account]>>4 == mostOfAccount {
					continue
				}
				b.counts[f.account] += 1 << 4
			}
			all[n] = f
			n++
			continue
		}
		switch f.kind() {
		case FactNS, FactSTW, FactSweep, FactLock, FactThrough, FactBarrier, FactWork, FactWorkN:
		default:
			continue
		}
		id := f.account
		if key := b.accounts.keys[id]; ns*500 < wall && key.Actor != 0 {
			key.Actor = b.others
			id = b.accounts.number(key)
		}
		b.small.Add(id, f.kind(), f.ref, f.ns())
	}
	facts := make([]fact, 0, n+len(b.small.list))
	return append(append(facts, all[:n]...), b.small.list...)
}

// Group is the group with that number, which it makes at the first call. It is nil where there are
// too many groups: a damaged trace may name as many as it likes.
func (b *Books) Group(id request.GroupID) *Group {
	if id >= maxGroups {
		return nil
	}
	for int(id) >= len(b.groups) {
		b.groups = append(b.groups, nil)
	}
	if b.groups[id] == nil {
		b.groups[id] = &Group{All: All{unit: &b.unit}}
	}
	return b.groups[id]
}

// Settle is for an owner that counts all units before it explains any. It returns, by group, the
// wall time from which on a unit may be slow, and how many such units there are at most. Both are 0
// for a group without units.
func (b *Books) Settle() (least, most []int64) {
	least, most = make([]int64, len(b.groups)), make([]int64, len(b.groups))
	for id, g := range b.groups {
		if g != nil {
			least[id], most[id] = g.settle(b.slowOver)
		}
	}
	return least, most
}

// listed goes through the groups that are shown, by number.
func (b *Books) listed(list []request.Group) iter.Seq2[int, *Group] {
	return func(yield func(int, *Group) bool) {
		for id, g := range b.groups {
			if g == nil || id >= len(list) || !list[id].Listed {
				continue
			}
			if !yield(id, g) {
				return
			}
		}
	}
}

// shrink makes room for facts, down to three quarters of maxKept.
//
//  1. What every group holds is added up.
//  2. The group that holds most drops the faster half of its candidates, until it is enough. While
//     groups of unknown loops hold more than a quarter of the room, only they are asked: which of
//     them are shown is known only at the end, and most are not.
//  3. Where there are so many groups that none has candidates to spare, the samples are thinned
//     out.
func (b *Books) shrink(list []request.Group) {
	const enough = maxKept * 3 / 4
	sizes := make([]int, len(b.groups)) // of candidates
	unknown := 0                        // of sizes, those of unknown loops
	b.bytes = 0
	for id, g := range b.groups {
		if g == nil {
			continue
		}
		var usual int
		sizes[id], usual = g.size()
		b.bytes += sizes[id] + usual
		if isUnknown(list, id) {
			unknown += sizes[id]
		}
	}
	for b.bytes > enough {
		most := -1
		for id, size := range sizes {
			if size > 0 && len(b.groups[id].candidates) >= leastHalved &&
				(unknown <= maxKept/4 || isUnknown(list, id)) && (most < 0 || size > sizes[most]) {
				most = id
			}
		}
		if most < 0 {
			break
		}
		freed := b.groups[most].halve()
		b.bytes -= freed
		sizes[most] -= freed
		if isUnknown(list, most) {
			unknown -= freed
		}
	}
	if b.bytes <= enough {
		return
	}
	for _, g := range b.groups {
		if g != nil {
			b.bytes -= g.thinSample()
		}
	}
}

// isUnknown reports whether the finder had to guess that the group's units are requests.
func isUnknown(list []request.Group, id int) bool {
	return id < len(list) && (list[id].Kind == request.KindLoop || list[id].Kind == request.KindGoroutine)
}
