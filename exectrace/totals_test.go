package exectrace

import (
	"cmp"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestTotals holds the way without order to the one that adds up event by event, whose times
// TestReference holds to the reference's. They differ in one thing. Generations overlap by some
// microseconds, and an event that is handed out later than one that it precedes gets that one's
// time, as in the reference. Totals needs no order and keeps each event's own time; so do the
// events here.
func TestTotals(t *testing.T) {
	for _, name := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			tr := openFixture(t, name)
			tr.ownTimes = true
			type pair struct {
				t *Totals
				g []GoroutineTotal
			}
			var want, got pair
			a := newSummer(tr, func(g *GoroutineTotal) { want.g = append(want.g, *g) })
			for b := range tr.Blocks() {
				a.events(b)
			}
			want.t = a.finish()
			wantStats := tr.Stats()
			got.t = tr.Totals(func(g *GoroutineTotal) { got.g = append(got.g, *g) })
			if err := tr.Err(); err != nil {
				t.Fatal(err)
			}
			for _, p := range []*pair{&want, &got} {
				slices.SortFunc(p.g, func(a, b GoroutineTotal) int { return int(a.G - b.G) })
			}
			if len(want.g) == 0 || len(want.g) != len(got.g) {
				t.Fatalf("want %d goroutines, got %d", len(want.g), len(got.g))
			}
			bad := 0
			for i := range want.g {
				w, g := want.g[i], got.g[i]
				if w.Entry != g.Entry && w.Older {
					g.Entry = w.Entry // any of its stacks: they begin alike but where they are cut
				}
				if w != g {
					if bad++; bad < 4 {
						t.Errorf("goroutine %d:\nwant %+v\ngot  %+v", w.G, w, g)
					}
				}
			}
			if !reflect.DeepEqual(want.t, got.t) {
				t.Errorf("want %+v\ngot  %+v", brief(want.t), brief(got.t))
			}
			wantStats.Repaired = 0
			if s := tr.Stats(); s != wantStats {
				t.Errorf("stats: want %+v, got %+v", wantStats, s)
			}
		})
	}
}

// TestV1TotalsWithoutOrder: whole traces of old formats need not be read again, and those that lack
// a batch are.
func TestV1TotalsWithoutOrder(t *testing.T) {
	for _, name := range v1Fixtures[:often(len(v1Fixtures), 4)] {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := FromBytes(data, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := whole.totalsV1(newSummer(whole, nil)); !ok {
			t.Errorf("%s: read in order", name)
		}
		spans := whole.v1.procs[0].spans
		sp := spans[len(spans)/2]
		tr, err := FromBytes(slices.Delete(data, int(sp.off), int(sp.off)+int(sp.n)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		a := newSummer(tr, nil)
		var want, got []GoroutineTotal
		a.each = func(g *GoroutineTotal) { want = append(want, *g) }
		for b := range tr.Blocks() {
			a.events(b)
		}
		a.finish()
		gaps := len(tr.Gaps())
		tr.Totals(func(g *GoroutineTotal) { got = append(got, *g) })
		// A goroutine whose end was lost may be handed out twice.
		byNumber := func(a, b GoroutineTotal) int { return cmp.Or(int(a.G-b.G), cmp.Compare(a.Ended, b.Ended)) }
		slices.SortFunc(want, byNumber)
		slices.SortFunc(got, byNumber)
		if gaps == 0 || len(tr.Gaps()) != gaps || !slices.Equal(want, got) {
			t.Errorf("%s without a batch: %d gaps and %d goroutines in order, %d and %d, or others, in Totals", name, gaps, len(want), len(tr.Gaps()), len(got))
		}
	}
}

// TestV2TotalsWithoutOrder: no generation of a whole trace need be read in order. One would be if
// one of its events had no case in v2Sums.
func TestV2TotalsWithoutOrder(t *testing.T) {
	for _, name := range fixtures(t) {
		tr := openFixture(t, name)
		if tr.version < 22 {
			continue
		}
		p := tr.pipeline()
		p.totals, p.spare = true, make(chan *v2Sums, 1)
		p.spare <- new(v2Sums)
		c := &consumer{t: tr}
		summed := 0
		p.drain(c, func(b block) bool {
			if b.sum != nil {
				summed++
				p.spare <- b.sum.s
			} else {
				c.block(b.ev)
			}
			return true
		})
		if n := int(tr.Stats().Generations); summed == 0 || summed != n {
			t.Errorf("%s: %d of %d generations are summed up without order", name, summed, n)
		}
	}
}

// brief leaves the long lists out.
func brief(t *Totals) Totals {
	b := *t
	b.Entries, b.Pauses, b.GCs = b.Entries[:min(3, len(b.Entries))],
		b.Pauses[:min(3, len(b.Pauses))], b.GCs[:min(3, len(b.GCs))]
	return b
}

// shortBytes is the largest trace that is read with -short: the race detector makes reading ten
// times slower.
const shortBytes = 3 << 20

// often is n or, with -short, so few that the race detector's run stays short.
func often(n, short int) int {
	if testing.Short() {
		return short
	}
	return n
}

func fixtures(tb testing.TB) []string {
	tb.Helper()
	names, err := filepath.Glob("testdata/*.trace")
	if err != nil || len(names) == 0 {
		tb.Fatal("no traces in testdata")
	}
	if testing.Short() {
		names = slices.DeleteFunc(names, func(n string) bool {
			i, err := os.Stat(n)
			return err != nil || i.Size() > shortBytes
		})
	}
	for i, n := range names {
		names[i] = strings.TrimSuffix(filepath.Base(n), ".trace")
	}
	return names
}

func openFixture(tb testing.TB, name string) *Trace {
	tb.Helper()
	tr, err := Open("testdata/"+name+".trace", Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { tr.Close() })
	return tr
}

func readFixture(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile("testdata/" + name + ".trace")
	if err != nil {
		tb.Fatal(err)
	}
	return b
}
