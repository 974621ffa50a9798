package exectrace

import (
	"bytes"
	"io"
	"testing"

	ref "golang.org/x/exp/trace"
)

// The three loops whose ratios count, on each fixture: states of all actors, all events, and the
// reference's empty loop. The bench module compares larger traces.

func BenchmarkTotals(b *testing.B) {
	each(b, func(b *testing.B, data []byte) int64 {
		tr, err := FromBytes(data, Options{})
		if err != nil {
			b.Fatal(err)
		}
		tr.Totals(nil)
		return tr.Stats().Events
	})
}

func BenchmarkBlocks(b *testing.B) {
	each(b, func(b *testing.B, data []byte) int64 {
		tr, err := FromBytes(data, Options{})
		if err != nil {
			b.Fatal(err)
		}
		for range tr.Blocks() {
		}
		return tr.Stats().Events
	})
}

func BenchmarkReference(b *testing.B) {
	each(b, func(b *testing.B, data []byte) (n int64) {
		r, err := ref.NewReader(bytes.NewReader(data))
		if err != nil {
			b.Fatal(err)
		}
		for ; ; n++ {
			if _, err := r.ReadEvent(); err == io.EOF {
				return n
			} else if err != nil {
				b.Fatal(err)
			}
		}
	})
}

func each(b *testing.B, read func(*testing.B, []byte) int64) {
	for _, name := range fixtures(b) {
		b.Run(name, func(b *testing.B) {
			data := readFixture(b, name)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			var n int64
			for b.Loop() {
				n += read(b, data)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/event")
		})
	}
}
