package detect

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/ledger"
)

// fixtureCauses lists what is found in each real trace, in order. The servers have more to do than
// their Ps can. The programs named odd make unusual events and nothing is slow in them: nothing may
// be found.
var fixtureCauses = map[string]string{
	"caddy-go1.26":  "logger-lock sched-latency",
	"odd-go1.13.15": "",
	"odd-go1.20.14": "",
	"odd-go1.21.13": "",
	"srv-go1.13.15": "sched-latency",
	"srv-go1.16.15": "sched-latency lock-contention gc-queue",
	"srv-go1.20.14": "sched-latency lock-contention",
	"srv-go1.21.13": "gc-queue sched-latency",
	"srv-go1.22.12": "sched-latency",
	"srv-go1.26":    "sched-latency",
}

// TestFixtures runs all detectors on real traces: none fails, none claims too much, and what they
// find is what is known.
func TestFixtures(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 29 MB of traces")
	}
	names, err := filepath.Glob("../../exectrace/testdata/*.trace")
	if err != nil || len(names) < 7 {
		t.Fatalf("%d traces, %v", len(names), err)
	}
	for _, name := range names {
		trace := strings.TrimSuffix(filepath.Base(name), ".trace")
		t.Run(trace, func(t *testing.T) {
			tr, err := exectrace.Open(name, exectrace.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			r, err := ledger.Run(context.Background(), tr, ledger.Options{})
			if err != nil {
				t.Fatal(err)
			}
			b := look(detectors(), r, nil, Facts{})
			honest(t, b)
			var causes []string
			for _, f := range b.result().Findings {
				causes = append(causes, f.Cause)
			}
			want, known := fixtureCauses[trace]
			if got := strings.Join(causes, " "); got != want || !known {
				t.Errorf("found %q, want %q\n%s", got, want, verdict(b, ""))
			}
		})
	}
}
