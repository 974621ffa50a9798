package oldclock

import "testing"

// BenchmarkFind is a busy process: 8 threads, 20 s, as much as is kept of a trace of any size.
func BenchmarkFind(b *testing.B) {
	l := newLife(1)
	l.wall = 20e9
	l.on = func() int64 { return 20e3 + int64(l.rnd.ExpFloat64()*80e3) }
	l.off = func() int64 { return 20e3 + int64(l.rnd.ExpFloat64()*200e3) }
	l.threads(8, 9e12)
	x := l.trace(5e12, 1e-6)
	for len(x.quiets) > quietsMost {
		x.thin()
	}
	b.ReportMetric(float64(len(x.quiets)), "quiets")
	b.ReportMetric(float64(len(l.k.list)), "stays")
	for b.Loop() {
		if m := find(x, l.k, same); m.Why != "" {
			b.Fatalf("refused: %+v", m)
		}
	}
}
