package ledger

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/request"
)

// BenchmarkRun is the whole of it, file to ledger; the two below are what of it is the reader's and the finder's.
func BenchmarkRun(b *testing.B) {
	each(b, func(tr *exectrace.Trace) {
		if _, err := Run(context.Background(), tr, Options{}); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	each(b, func(tr *exectrace.Trace) {
		for range tr.Blocks() {
		}
	})
}

func BenchmarkFinder(b *testing.B) {
	each(b, func(tr *exectrace.Trace) {
		f := request.NewFinder(tr, request.Options{})
		for block := range tr.Blocks() {
			for i := range block {
				f.Event(&block[i])
			}
		}
	})
}

func each(b *testing.B, f func(*exectrace.Trace)) {
	for _, name := range traces(b) {
		b.Run(filepath.Base(name), func(b *testing.B) {
			b.ReportAllocs()
			var events int64
			for b.Loop() {
				tr, err := exectrace.Open(name, exectrace.Options{Workers: 1})
				if err != nil {
					b.Fatal(err)
				}
				f(tr)
				events = tr.Stats().Events
				tr.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(max(events, 1)), "ns/event")
		})
	}
}
