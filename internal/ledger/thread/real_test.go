package thread

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

func fromRecording(t testing.TB, file string) *sched.Timeline {
	t.Helper()
	src, err := kernel.NewReader(func() (io.ReadCloser, error) { return os.Open(file) })
	if err != nil {
		t.Fatal(err)
	}
	k, err := sched.New(src)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestThreadRecordings compares what is found in testdata/*.stream with *.want. The streams were
// recorded of real programs on Linux 6.18:
//
//	epoll        one thread, epoll, 4 connections, a request every ms: some cost 60 times as much
//	perunit      a thread for each unit of work, eight at once
//	pool-sleep   4 workers at a condition; every 100th unit holds a mutex while it sleeps 20 ms
//	pool-hogs    the same, but it computes, beside 4 other programs that never sleep: holders lose
//	             their CPU
//	rust-pool    Rust's Mutex and Condvar, every 50th unit sleeps 15 ms with the Mutex
//	tokio-mutex  tokio with 2 workers, 16 connections; every 40th request sleeps 30 ms with std's
//	             Mutex
//	mariadb-*    4 clients that connect, ask and disconnect; with and without a thread cache
func TestThreadRecordings(t *testing.T) {
	files, err := filepath.Glob("testdata/*.stream")
	if err != nil || len(files) < 5 {
		t.Fatalf("recordings: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r, err := Run(context.Background(), fromRecording(t, file), Options{})
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, g := range r.Requests.Groups {
				fmt.Fprintf(&b, "%s, %s: %d, p50 %d us, max %d us\n\t%s\n", g.Entry, g.Kind,
					g.Count, g.P50/1000, g.Max/1000, g.Boundary)
			}
			if r.Requests.Count == 0 {
				fmt.Fprintf(&b, "none: %s\n", r.Requests.NoRequestsCause)
			}
			fmt.Fprintf(&b, "slow: %d requests, %d us\n", r.Slow.Requests, r.Slow.WallNS/1000)
			for _, a := range r.Slow.Accounts[:min(len(r.Slow.Accounts), 8)] {
				fmt.Fprintf(&b, "\t%.1f %% %s, %s\n", 100*float64(a.NS)/float64(r.Slow.WallNS),
					account.Phrase(&a), a.Class)
			}
			for _, f := range r.Kernel.Futexes {
				if f.Kind != "mutex" {
					continue
				}
				fmt.Fprintf(&b, "%s %q: %d waits, %d us, queue %d\n", f.Kind, f.Name, f.Waits,
					f.WaitNS/1000, f.MaxQueue)
				var leaves []string
				for leaf, ns := range f.HolderNS {
					leaves = append(leaves, fmt.Sprintf("\t%s %d us\n", leaf, ns/1000))
				}
				slices.Sort(leaves)
				b.WriteString(strings.Join(leaves, ""))
			}
			c := r.Kernel.Churn
			fmt.Fprintf(&b, "threads: %d made, %d ended, first run after %d us, at most %d us\n",
				c.Created, c.Exited, c.FirstP50/1000, c.FirstMax/1000)
			want := strings.TrimSuffix(file, ".stream") + ".want"
			if *update {
				if err := os.WriteFile(want, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			w, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			if b.String() != string(w) {
				t.Errorf("got\n%s\nwant\n%s", b.String(), w)
			}
		})
	}
}
