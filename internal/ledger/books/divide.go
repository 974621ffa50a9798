package books

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/oncpu"
	"github.com/whystall/whystall/internal/request"
)

// Time on CPUs is exact, and its division is an estimate by the samples that fell into it. What is
// divided is the leaf "on CPU": docs/join.md, "12. Time on CPUs".

// divide divides the columns' time on CPUs.
func (b *Books) divide(r *account.Result, slow, median *Column, list []request.Group) {
	if b.works == nil {
		return
	}
	r.Slow.OnCPU = slow.sampled().Write(b.works, slow.running())
	r.Median.OnCPU = median.sampled().Write(b.works, median.running())
	var all oncpu.Sum
	var ns int64
	for _, g := range b.listed(list) {
		all.Merge(&g.All.Works)
		ns += g.All.onCPU()
	}
	r.All.OnCPU = all.Write(b.works, ns)
	if o := r.Median.OnCPU; o == nil || o.Samples < account.LeastSamples {
		if o = b.likeAll(median); o != nil {
			o.OfAll = true
			r.Median.OnCPU = o
		}
	}
}

// likeAll divides a column's time on CPUs as that of all units of its groups is divided; nil where
// these have too few samples as well.
func (b *Books) likeAll(c *Column) *account.OnCPU {
	var sum oncpu.Sum
	for g, ns := range c.onCPU {
		sum.MergeAs(&g.All.Works, g.All.onCPU(), ns)
	}
	if sum.Samples() < account.LeastSamples {
		return nil
	}
	return sum.Write(b.works, c.running())
}

// running is the column's time on CPUs.
func (c *Column) running() (ns int64) {
	for _, n := range c.onCPU {
		ns += n
	}
	return ns
}

// sampled adds up the samples of all accounts.
func (c *Column) sampled() *oncpu.Sum {
	all := &oncpu.Sum{}
	for _, s := range c.sums {
		if s != nil && len(s.works) > 0 {
			all.Merge(sumOf(s.works))
		}
	}
	return all
}

// works lists a unit's samples by account.
func (k *Kept) works() map[uint32]map[uint32]*Amount {
	by := map[uint32]map[uint32]*Amount{}
	for _, f := range k.facts {
		if f.kind() != FactWork && f.kind() != FactWorkN {
			continue
		}
		if by[f.account] == nil {
			by[f.account] = map[uint32]*Amount{}
		}
		addWork(by[f.account], f)
	}
	return by
}

// addWork adds a fact about samples to those of its account.
func addWork(works map[uint32]*Amount, f fact) {
	if x := amountOf(works, f.ref); f.kind() == FactWork {
		x.NS += f.ns()
	} else {
		x.N += f.ns()
	}
}

// sumOf is samples as a sum that can be written down.
func sumOf(works map[uint32]*Amount) *oncpu.Sum {
	sum := &oncpu.Sum{}
	for work, x := range works {
		sum.AddMany(work, x.N, x.NS)
	}
	return sum
}
