package request

import (
	"path/filepath"
	"testing"

	"github.com/whystall/whystall/exectrace"
)

// BenchmarkEvent times finding alone, on events copied out of a trace. ns/event is the figure to watch.
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
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				for _, blk := range blocks {
					for i := range blk {
						f.Event(&blk[i])
					}
				}
				f.Finish(0)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/event")
		})
	}
}
