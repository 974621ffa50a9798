package request

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/whystall/whystall/exectrace"
)

// BenchmarkEvent times the finder alone, on events copied out of a trace. ns/event is the figure to
// watch.
func BenchmarkEvent(b *testing.B) {
	for _, name := range []string{"caddy-go1.26", "srv-go1.26", "srv-go1.16.15"} {
		b.Run(name, func(b *testing.B) {
			tr, err := exectrace.Open(filepath.Join("../../exectrace/testdata", name+".trace"), exectrace.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer tr.Close()
			var blocks [][]exectrace.Event
			n := 0
			for blk := range tr.Blocks() {
				blocks = append(blocks, append([]exectrace.Event(nil), blk...))
				n += len(blk)
			}
			f := NewFinder(tr, Options{})
			f.Learn(tr.Blocks())
			// As in life, the events are in the cache when they are looked at: a few blocks at a
			// time are copied there. The machine may be busy, so the fastest pass of each block
			// counts.
			best := make([]time.Duration, len(blocks))
			warm := make([]exectrace.Event, 0, 8192)
			b.ReportAllocs()
			b.ResetTimer()
			for pass := range b.N {
				f := NewFinder(tr, Options{})
				f.Learn(slices.Values(blocks))
				for k, blk := range blocks {
					warm = append(warm[:0], blk...)
					begin := time.Now()
					for i := range warm {
						f.Event(&warm[i])
					}
					if d := time.Since(begin); pass == 0 || d < best[k] {
						best[k] = d
					}
				}
				f.Finish(0)
			}
			var spent time.Duration
			for _, d := range best {
				spent += d
			}
			b.ReportMetric(float64(spent)/float64(n), "ns/event")
		})
	}
}
