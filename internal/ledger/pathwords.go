package ledger

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/timeline"
)

// pausesByNotes lists the stop-the-worlds and barriers in which a thread was awaited, by the
// kernel's records alone. It serves a process without a trace, or with one on another clock.
func pausesByNotes(k *sched.Timeline) (l []account.Barrier) {
	var names books.NameList
	j := &joiner{k: k, tids: map[uint32]uint32{}, words: capacity.NewWords(k, names.Number)}
	j.name = func(id timeline.FuncID) string { return names.Name(uint32(id)) }
	begin, _ := k.Span()
	j.start(begin)
	p := &j.paths
	for _, b := range k.StopTheWorlds() {
		t := &path{}
		p.tell(t, &b)
		if t.end-t.begin >= leastSTW {
			l = append(l, t.result(j, "", false))
		}
	}
	for _, t := range p.barriers {
		if t.end-t.begin >= leastSTW {
			l = append(l, t.result(j, "", false))
		}
	}
	slices.SortStableFunc(l, func(a, b account.Barrier) int {
		return cmp.Or(cmp.Compare(b.End-b.Begin, a.End-a.Begin), cmp.Compare(a.Begin, b.Begin))
	})
	return l[:min(len(l), mostPaths)]
}

// results writes down the paths that are long or cost slow requests something, the costliest first.
func (p *paths) results(slow *books.Column, misplaced bool) (l []account.Barrier) {
	list, base := p.j.tl.STWs()
	for i := range list {
		n := base + uint32(i)
		ns := int64(0)
		if x := slow.STW[n]; x != nil {
			ns = x.NS
		}
		if list[i].End == 0 || list[i].End-list[i].Begin < leastSTW && ns == 0 {
			continue
		}
		if t := p.stw(n); t != nil && (t.kindName != "" || ns > 0) {
			b := t.result(p.j, p.j.tl.Word(t.kind), misplaced)
			b.SlowNS = ns
			l = append(l, b)
		}
	}
	for _, t := range p.barriers {
		ns := slow.Barriers[t.n]
		if t.end-t.begin < leastSTW && ns == 0 {
			continue
		}
		b := t.result(p.j, p.j.tl.Word(t.kind), misplaced)
		b.SlowNS = ns
		l = append(l, b)
	}
	slices.SortStableFunc(l, func(a, b account.Barrier) int {
		return cmp.Or(cmp.Compare(b.SlowNS, a.SlowNS), cmp.Compare(b.End-b.Begin, a.End-a.Begin),
			cmp.Compare(a.Begin, b.Begin))
	})
	return l[:min(len(l), mostPaths)]
}

// result is the path in words. kind is the trace's word for it, where the kernel's half has none.
func (t *path) result(j *joiner, kind string, misplaced bool) account.Barrier {
	b := account.Barrier{Begin: j.base + t.begin, End: j.base + t.end,
		Kind: cmp.Or(t.kindName, kind), Initiator: t.initiator, Awaited: t.awaited, ByNote: t.byNote,
		StoppedNS: t.start - t.begin, DelayedNS: t.end - t.start}
	by := map[account.Instead]int64{}
	var named, ns int64
	for i := range t.parts {
		x := &t.parts[i]
		n := x.hi - x.lo
		ns += n
		by[account.Instead{Who: j.describe(x), Kind: account.InsteadKind(x.leaf.String())}] += n
		// What the initiator does with the world stopped is the stop's own work, and the runtime
		// gives its kind.
		if x.isNamed() || x.leaf == books.LeafOnCPU && !t.barrier && t.initiator != 0 && x.tid == t.initiator {
			named += n
		}
	}
	for i, n := range by {
		i.NS = n
		b.Leaves = append(b.Leaves, i)
	}
	account.SortInstead(b.Leaves)
	hops := t.hops
	if len(hops) > maxHops {
		// The short stretches go first.
		hops = slices.Clone(hops)
		slices.SortStableFunc(hops, func(a, b hop) int {
			return cmp.Or(cmp.Compare(min(a.until-a.at, 1), min(b.until-b.at, 1)),
				cmp.Compare(b.until-b.at, a.until-a.at))
		})
		hops = hops[:maxHops]
		slices.SortStableFunc(hops, func(a, b hop) int { return cmp.Compare(a.at, b.at) })
	}
	if t.how != "" {
		b.Hops = append(b.Hops, "who was awaited: "+t.how)
	}
	for _, h := range hops {
		if h.until > h.at {
			b.Hops = append(b.Hops, fmt.Sprintf("+%.2f to +%.2f ms  %s", ms(h.at-t.begin), ms(h.until-t.begin), h.text))
		} else {
			b.Hops = append(b.Hops, fmt.Sprintf("+%.2f ms  %s", ms(h.at-t.begin), h.text))
		}
	}
	b.Grade = t.grade(named, ns, misplaced)
	return b
}

func ms(ns int64) float64 { return float64(ns) / 1e6 }

// isNamed reports whether the part says who or what held the thread: docs/join.md, "6. How sure".
func (x *part) isNamed() bool {
	switch x.leaf {
	case books.LeafOnCPU:
		return x.named
	case books.LeafThrottled, books.LeafFault, books.LeafReclaim, books.LeafMemcg,
		books.LeafCompaction, books.LeafMmapLock, books.LeafTLB, books.LeafDisk, books.LeafNUMA,
		books.LeafKernelLock:
		return true
	case books.LeafNoCPU:
		return x.tid != sched.NobodyKnown
	}
	return false
}

// describe is a part's leaf in words.
func (j *joiner) describe(x *part) string {
	s := x.leaf.String()
	d := j.name(x.detail)
	switch {
	case d == "":
		return s
	case x.leaf == books.LeafNoCPU:
		return s + " (" + d + ")"
	case x.leaf == books.LeafAsleep:
		return s + " in " + d
	}
	return d
}

// grade says how sure the path is: docs/join.md, "6. How sure".
func (t *path) grade(named, ns int64, misplaced bool) account.Grade {
	awaits := t.stop > t.await // time that depends on which thread was awaited
	switch {
	case ns <= 0 || named*100 < ns*supportPct:
		return account.GradePossible
	case named*100 < ns*namedPct, awaits && !t.byNote && (t.stop-t.await)*100 > ns*unknownPct,
		t.inferred, t.byGroup, t.missing*100 > ns*unknownPct, misplaced:
		return account.GradeSupported
	}
	return account.GradeProven
}
