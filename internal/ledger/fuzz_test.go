package ledger

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/timeline"
	"github.com/whystall/whystall/internal/timeline/twin"
)

// FuzzText: whatever the timeline, no panic, no hang, and every sum is exact.
func FuzzText(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.txtar")
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(section(string(b), "timeline"))
	}
	f.Fuzz(func(t *testing.T, s string) {
		src, err := twin.Parse(strings.NewReader(s))
		if err != nil {
			return
		}
		fuzzRun(t, src)
	})
}

// FuzzTrace: the same of traces, damaged in any way.
func FuzzTrace(f *testing.F) {
	for _, name := range traces(f) {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 24<<10)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<20 {
			return
		}
		tr, err := exectrace.FromBytes(b, exectrace.Options{Workers: 1})
		if err != nil {
			return
		}
		defer tr.Close()
		fuzzRun(t, tr)
	})
}

// watchHang panics if what it watches takes a minute of the process's CPU time: the clock's time is
// the machine's, and the fuzzer ends in peace where a target never returns.
func watchHang() (stop func()) {
	used := func() time.Duration {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano())
	}
	begin, done := used(), make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Second):
				if used()-begin > time.Minute {
					panic("ledger.Run hangs")
				}
			}
		}
	}()
	return func() { close(done) }
}

func fuzzRun(t *testing.T, src timeline.Source) {
	for _, o := range []Options{{Bytes: 1 << 17}, {Bytes: 1 << 17, SlowOver: 1}} {
		stop := watchHang()
		r, err := Run(context.Background(), src, o)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		checkSums(t, r)
		if tr, ok := src.(*exectrace.Trace); ok {
			samePass(t, tr, o, r)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	}
}
