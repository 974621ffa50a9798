package books

import (
	"testing"

	"github.com/whystall/whystall/internal/oncpu"
)

// TestShortAccountsKeepSamples: the samples of accounts that are too short to be kept whole still
// count in the column, under the name for such accounts.
func TestShortAccountsKeepSamples(t *testing.T) {
	const others = 7
	b := New(nil, nil, 0, others)
	g := &Group{}
	own := b.Number(Key{Leaf: LeafOnCPU})
	b.Facts().Add(own, FactNS, 0, 10_000_000)
	b.Facts().Sampled(own, []oncpu.Sample{{NS: 1e6, Work: 1}, {NS: 1e6, Work: 2}})
	for actor := range uint32(5) {
		a := b.Number(Key{Class: ClassMessage, Leaf: LeafOnCPU, Actor: 100 + actor})
		b.Facts().Add(a, FactNS, 0, 1000)
		b.Facts().Sampled(a, []oncpu.Sample{{NS: 2e6, Work: 1}})
	}
	k := &Kept{End: 10_005_000, Group: g}
	b.TakeFacts(k)
	c := b.column([]*Kept{k}, nil)
	if n := c.sampled().Samples(); n != 7 {
		t.Errorf("%d samples, want 7", n)
	}
	if ns := c.running(); ns != 10_005_000 {
		t.Errorf("%d ns on CPUs", ns)
	}
	short := c.sums[b.Number(Key{Class: ClassMessage, Leaf: LeafOnCPU, Actor: others})]
	if short == nil || short.works[1].N != 5 || short.works[1].NS != 10e6 {
		t.Errorf("short accounts together: %+v", short)
	}
}
