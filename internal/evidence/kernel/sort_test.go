package kernel

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSortRecords: as a stable sort does, however many runs there are.
func TestSortRecords(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var room []Record
	for range 500 {
		var l []Record
		for range 1 + rnd.IntN(9) {
			at := rnd.Int64N(100)
			for range rnd.IntN(60) {
				at += rnd.Int64N(4) - int64(rnd.IntN(20)/19)
				l = append(l, Record{Time: at, TID: uint32(len(l))})
			}
		}
		want := slices.Clone(l)
		slices.SortStableFunc(want, func(a, b Record) int { return cmp.Compare(a.Time, b.Time) })
		var got []Record
		if got, room = sortRecords(l, room); !slices.Equal(got, want) {
			t.Fatalf("got %v\nwant %v", got, want)
		}
	}
}
