package books

import (
	"math/rand/v2"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/request"
)

// plain names nothing: enough for books whose units have no facts.
type plain struct{ Names }

func (plain) Time(at int64) int64 { return 1000 + at }

func plotUnit(b *Books, id request.GroupID, begin, wall int64) {
	g := b.Group(id)
	g.All.Add(ClassOwn, LeafOnCPU, 0, wall/3)
	g.All.Add(ClassOwn, LeafNetwork, 0, wall-wall/3)
	b.Plot(g, begin, wall, 7)
}

func TestPlotWhole(t *testing.T) {
	b := New(plain{}, nil, 0, 0)
	plotUnit(b, 0, 50, 300)
	plotUnit(b, 1, 5, 900)
	plotUnit(b, 2, 5, 900) // not listed
	list := []request.Group{{Entry: "a", Listed: true}, {Entry: "b", Listed: true}, {Entry: "c"}}
	s := b.series(list, nil)
	if !s.Whole || s.Density.Cells != nil || len(s.Dots) != 2 {
		t.Fatalf("got %+v", s)
	}
	d := s.Dots[0]
	if s.Entries[d.Entry] != "b" || d.Begin != 1005 || d.NS != 900 || d.Actor != 7 ||
		s.Largest[d.Largest].Leaf != account.LeafNetwork {
		t.Errorf("got %+v of %v, %v", d, s.Entries, s.Largest)
	}
}

// However many units there are and in whichever order they come, each is counted in a cell that it
// lies in.
func TestPlotMany(t *testing.T) {
	b := New(plain{}, nil, 0, 0)
	r := rand.New(rand.NewPCG(1, 2))
	const n = account.MostDots + 5000
	for range n {
		plotUnit(b, 0, r.Int64N(20e9), 1<<r.IntN(42))
	}
	plotUnit(b, 1, 3600e9, 5)
	s := b.series([]request.Group{{Entry: "a", Listed: true}, {Entry: "b", Listed: true}}, nil)
	if s.Whole || s.Density.Cells == nil || s.NotShown != 0 {
		t.Fatalf("got %+v", s)
	}
	var sum, last int64
	for _, c := range s.Density.Cells {
		sum += c.N
		if c.Low >= c.Up {
			t.Errorf("cell %+v", c)
		}
		if end := int64(c.Column+1) * s.Density.Width; end > 3600e9 {
			last += c.N
		}
	}
	if sum != n+1 || last != 1 {
		t.Errorf("%d units are in cells, %d in the last column; want %d and 1", sum, last, n+1)
	}
}

// Thousands of groups take no more room than a few.
func TestPlotGroups(t *testing.T) {
	b := New(plain{}, nil, 0, 0)
	for i := range 300_000 {
		plotUnit(b, request.GroupID(i%3000), int64(i), 100)
	}
	if b.dots > mostDots || b.grids > mostGrids {
		t.Errorf("%d units and %d grids are kept", b.dots, b.grids)
	}
	list := make([]request.Group, 3000)
	for i := range list {
		list[i].Listed = true
	}
	if s := b.series(list, nil); s.Whole || s.NotShown == 0 {
		t.Errorf("whole %v, %d not shown", s.Whole, s.NotShown)
	}
}

func TestRow(t *testing.T) {
	for _, ns := range []int64{0, 1, 1023, 1024, 1279, 1280, 5e6, 1<<39 - 1, 1 << 39, 1 << 60} {
		r := row(ns)
		if r < 0 || r >= gridRows || ns < rowStart(r) || r < gridRows-1 && ns >= rowStart(r+1) {
			t.Errorf("%d ns is in row %d, from %d to %d", ns, r, rowStart(r), rowStart(r+1))
		}
	}
}
