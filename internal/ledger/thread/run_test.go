package thread

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/sched/schedtest"
)

// storyOf writes down what kept thread tid during [lo,hi). It checks that the pieces tile that time
// exactly, in order.
func storyOf(t testing.TB, k *sched.Timeline, tid uint32, lo, hi int64) string {
	t.Helper()
	var b strings.Builder
	at := lo
	NewWalk(k).Thread(tid, lo, hi, func(p *Piece) {
		if p.Lo != at || p.Hi <= p.Lo {
			t.Errorf("thread %d: piece %d..%d after %d", tid, p.Lo, p.Hi, at)
		}
		at = p.Hi
		fmt.Fprintf(&b, "%d..%d %s of %d", p.Lo, p.Hi, p.Leaf, p.TID)
		for _, h := range p.Hops {
			fmt.Fprintf(&b, " < %d by %s", h.waiter, [...]string{"message", "lock", "life", "maker"}[h.kind])
			if h.Inferred {
				b.WriteString(" inferred")
			}
		}
		var sum int64
		for _, s := range p.Shares {
			fmt.Fprintf(&b, " behind %d: %d", s.TID, s.NS)
			sum += s.NS
		}
		if p.Leaf == books.LeafNoCPU && sum != p.Hi-p.Lo {
			t.Errorf("thread %d: %d..%d behind %d ns", tid, p.Lo, p.Hi, sum)
		}
		b.WriteString("\n")
	})
	if at != max(lo, hi) {
		t.Errorf("thread %d: pieces end at %d, want %d", tid, at, hi)
	}
	return b.String()
}

var update = flag.Bool("update", false, "rewrite the goldens")

// TestThreadStories reads testdata/*.txt: text twins with lines "ask TID LO HI" and, below "---",
// the stories.
func TestThreadStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text, want, _ := strings.Cut(string(raw), "\n---\n")
			var stream, got strings.Builder
			var asks []string
			for line := range strings.Lines(text) {
				if rest, ok := strings.CutPrefix(line, "ask "); ok {
					asks = append(asks, strings.TrimSpace(rest))
				} else {
					stream.WriteString(line)
				}
			}
			k := schedtest.Timeline(t, stream.String())
			for _, a := range asks {
				var tid uint32
				var lo, hi int64
				if _, err := fmt.Sscan(a, &tid, &lo, &hi); err != nil {
					t.Fatalf("ask %s: %v", a, err)
				}
				fmt.Fprintf(&got, "ask %s\n%s", a, storyOf(t, k, tid, lo, hi))
			}
			if *update {
				if err := os.WriteFile(file, []byte(text+"\n---\n"+got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got.String() != want {
				t.Errorf("got\n%s\nwant\n%s", got.String(), want)
			}
		})
	}
}

// randomRecords is a source made of any bytes, 12 a record. It has few threads and CPUs, so that
// they meet.
type randomRecords struct {
	recs   []kernel.Record
	stacks map[uint32][]kernel.Frame
	all    bool
}

func (r *randomRecords) Header() kernel.Header {
	return kernel.Header{Source: "bpf", CPUs: []int{0, 1}, AllTasks: r.all, PerTask: true}
}
func (r *randomRecords) Each(f func([]kernel.Record) error) error { return f(r.recs) }
func (r *randomRecords) Threads() []kernel.Thread {
	return []kernel.Thread{{TID: 1, Target: true, Comm: "a"}, {TID: 2, Target: true, Comm: "b-1"},
		{TID: 3, Target: true, Comm: "b-2"}}
}
func (r *randomRecords) Stack(id uint32) []kernel.Frame { return r.stacks[id] }
func (r *randomRecords) Ended() string                  { return "" }

func recordsOf(b []byte) *randomRecords {
	r := &randomRecords{all: true}
	if len(b) > 0 {
		r.all = b[0]&1 == 0
		b = b[1:]
	}
	at := int64(1000)
	for ; len(b) >= 12; b = b[12:] {
		x := kernel.Record{Kind: kernel.Kind(b[0] % 32), TID: uint32(b[1] % 6),
			Other: uint32(b[2] % 6), CPU: uint16(b[3] % 3),
			Flags: kernel.Flags(binary.LittleEndian.Uint16(b[4:])), Kernel: uint32(b[6] % 8), User: uint32(b[7] % 8)}
		if b[0] < 160 {
			x.Kind = []kernel.Kind{kernel.Switch, kernel.Switch, kernel.Waking, kernel.FutexWake,
				kernel.FutexWait, kernel.Clone, kernel.Exit, kernel.Wakeup}[b[0]%8]
			x.Flags |= kernel.Target | kernel.OtherTarget
		}
		switch b[8] {
		case 255:
			at = math.MaxInt64
		default:
			at = min(at, math.MaxInt64-300) + int64(b[8])
		}
		x.Arg = [3]uint64{uint64(b[9] % 3), uint64([]int{0, 203, 203, 233, 46, 36, 1}[b[10]%7]), uint64(b[11] % 24)}
		if x.Kind == kernel.FutexWake || x.Kind == kernel.FutexWait {
			x.Arg[1], x.Arg[2] = uint64(b[11]%24), uint64(b[10]%140)
		}
		x.Time = at
		r.recs = append(r.recs, x)
	}
	r.stacks = map[uint32][]kernel.Frame{1: {{Func: "schedule"}, {Func: "futex_wait"}},
		2: {{Func: "futex_wake"}, {Func: "do_futex"}}, 3: {{Func: "ep_poll"}},
		4: {{Func: "__lll_lock_wait", Module: "libc.so.6"}, {Func: "main", Module: "app"},
			{Func: "__libc_start_call_main"}},
		5: {{Func: "hrtimer_wakeup"}}, 6: {{Func: "pipe_write"}, {Func: "vfs_write"}},
		7: {{Func: "work"}, {Func: "start_thread"}}}
	return r
}

// checkThreads checks, of any stream, that stories tile, that sums are exact, and that nothing
// panics.
func checkThreads(t *testing.T, b []byte) {
	src := recordsOf(b)
	k, err := sched.New(src)
	if err != nil {
		t.Fatal(err)
	}
	lo, hi := k.Span()
	for tid := range uint32(7) {
		if hi < 1<<60 { // later times count as the same
			storyOf(t, k, tid, lo-10, hi+10)
		}
		if hi-lo > 4 && hi-lo < 1<<40 {
			storyOf(t, k, tid, lo+(hi-lo)/4, hi-(hi-lo)/4)
		}
	}
	r, err := Run(context.Background(), k, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*account.Column{"slow": &r.Slow, "median": &r.Median, "all": &r.All} {
		var sum int64
		for i := range c.Accounts {
			sum += c.Accounts[i].NS
		}
		if sum != c.WallNS {
			t.Errorf("%s: accounts add up to %d of %d", name, sum, c.WallNS)
		}
	}
	var n int64
	for _, g := range r.Requests.Groups {
		n += g.Count
	}
	if r.Requests.Count > n {
		t.Errorf("%d requests, in groups %d", r.Requests.Count, n)
	}
	if r.Requests.Count == 0 && r.Requests.NoRequestsCause == "" {
		t.Error("no requests, and no reason given")
	}
	if c := r.CPUs; c != nil && c.RunningNS+c.ThrottledNS+c.OthersNS+c.UnusedNS+c.RestNS+c.UnknownNS != c.TotalNS {
		t.Errorf("CPUs do not add up: %+v", *c)
	}
}

func TestThreadsRandom(t *testing.T) {
	n := 400
	if testing.Short() {
		n = 40
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range n {
		b := make([]byte, 1+12*(1+rnd.IntN(400)))
		for j := range b {
			b[j] = byte(rnd.Uint32())
		}
		if i%4 != 0 {
			for j := 9; j < len(b); j += 12 {
				b[j] %= 200
			}
		}
		checkThreads(t, b)
		if t.Failed() {
			t.Fatalf("stream %d", i)
		}
	}
}

func FuzzThreads(f *testing.F) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 8 {
		b := make([]byte, 1+12*60)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkThreads(t, b[:min(len(b), 1+12*300)]) })
}
