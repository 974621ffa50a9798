package thread

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/sched/schedtest"
	"github.com/whystall/whystall/internal/unit"
)

// TestPick compares the picked units with those that sorting all units names: the slowest hundredth
// of each group and ten more, and of each octave of running time those with the smallest hashes.
// Many durations are the same.
func TestPick(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, slowOver := range []int64{0, 700} {
		p := newPass(schedtest.Timeline(t, "header source=bpf pid=10 cpus=0\nswitch t=1 tid=10 other=11 flags=target\nswitch t=100000 tid=11 other=10 flags=target\n"), Options{SlowOver: slowOver})
		p.units = &unit.Set{}
		var byGroup [3][]int32
		for i := range 6000 {
			g := r.IntN(r.IntN(3) + 1)
			begin := r.Int64N(50_000)
			u := unit.Unit{TID: uint32(100 + i/50), Begin: begin, End: begin + r.Int64N(1<<r.IntN(11)), Group: request.GroupID(g)}
			if i%40 == 0 {
				u.LeftOut = request.OpenEnd
			} else {
				byGroup[g] = append(byGroup[g], int32(i))
			}
			p.units.Units = append(p.units.Units, u)
		}
		running := make([]int64, len(p.units.Units))
		for i := range running {
			running[i] = p.addUnit(&p.units.Units[i])
		}
		want := map[int32]picked{}
		units := p.units.Units
		wall := func(i int32) int64 { return units[i].End - units[i].Begin }
		for _, l := range byGroup {
			hash := func(i int32) uint64 { b, _ := p.rel(&units[i]); return books.Hash(uint64(units[i].TID), uint64(b)) }
			slices.SortStableFunc(l, func(a, b int32) int {
				return cmp.Or(cmp.Compare(units[b].End-units[b].Begin, units[a].End-units[a].Begin), cmp.Compare(units[a].Begin, units[b].Begin), cmp.Compare(units[a].TID, units[b].TID))
			})
			for n, i := range l {
				if slowOver > 0 && wall(i) >= slowOver || slowOver == 0 && n < (len(l)+50)/100+10 {
					want[i] = picked{unit: i, slow: true}
				}
			}
			slices.SortFunc(l, func(a, b int32) int {
				if hash(a) < hash(b) {
					return -1
				}
				return 1
			})
			for _, i := range l[:min(len(l), books.PerOctave)] { // no unit is known to have run, so all are of one octave
				c := want[i]
				c.unit, c.sample = i, true
				want[i] = c
			}
		}
		got := p.pick(running)
		if len(got) != len(want) || !slices.IsSortedFunc(got, func(a, b picked) int { return int(a.unit - b.unit) }) {
			t.Errorf("slow over %d: %d are picked, want %d in order", slowOver, len(got), len(want))
		}
		for _, c := range got {
			if want[c.unit] != c {
				t.Errorf("slow over %d: unit %d of %d ns is %+v, want %+v", slowOver, c.unit, wall(c.unit), c, want[c.unit])
			}
		}
	}
}
