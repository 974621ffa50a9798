//go:build unix

package ledger

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/timeline"
)

// BenchmarkRun is the whole of it, file to ledger; the two below are what of it is the reader's and
// the finder's.
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

// BenchmarkTimeline is reader and timeline without finder and ledger.
func BenchmarkTimeline(b *testing.B) {
	each(b, func(tr *exectrace.Trace) {
		tl := timeline.New(tr, timeline.Options{})
		for block := range tr.Blocks() {
			for i := range block {
				tl.Apply(&block[i])
			}
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

// cpu is the process' CPU time so far, ns: what a busy machine disturbs least.
func cpu(b *testing.B) int64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return r.Utime.Nano() + r.Stime.Nano()
}

func each(b *testing.B, f func(*exectrace.Trace)) {
	for _, name := range traces(b) {
		b.Run(filepath.Base(name), func(b *testing.B) {
			b.ReportAllocs()
			var events int64
			began := cpu(b)
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
			b.ReportMetric(float64(cpu(b)-began)/float64(b.N)/float64(max(events, 1)), "cpu-ns/event")
		})
	}
}
