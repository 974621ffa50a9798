package ledger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/timeline"
)

// randomKernel makes records that fit the times and threads of a trace and are otherwise made up:
// threads come and go, are throttled, sleep in all sorts of things, wake one another; some records
// are missing.
type randomKernel struct {
	header  kernel.Header
	recs    []kernel.Record
	threads []kernel.Thread
}

func (r *randomKernel) Header() kernel.Header { return r.header }
func (r *randomKernel) Each(f func([]kernel.Record) error) error {
	for c := range slices.Chunk(r.recs, 512) {
		if err := f(slices.Clone(c)); err != nil {
			return err
		}
	}
	return nil
}
func (r *randomKernel) Threads() []kernel.Thread { return r.threads }
func (r *randomKernel) Ended() string            { return "" }

func (r *randomKernel) Stack(id uint32) []kernel.Frame {
	stacks := [][]string{nil, {"futex_wait"}, {"do_swap_page", "handle_mm_fault"},
		{"shrink_node", "try_to_free_pages"}, {"unix_stream_read_generic"},
		{"runtime.futex", "runtime.notetsleep", "runtime.stopTheWorldWithSema"},
		{"runtime.futex", "runtime.notetsleep", "runtime.forEachP"},
		{"runtime.futex", "runtime.lock2", "runtime.(*mheap).allocSpan"},
		{"runtime.futex", "runtime.notewakeup", "runtime.unlock2"}}
	if int(id) >= len(stacks) {
		return nil
	}
	var l []kernel.Frame
	for _, f := range stacks[id] {
		l = append(l, kernel.Frame{Func: f, Module: "x"})
	}
	return l
}

func newRandomKernel(seed uint64, begin, end int64, tids []uint32) *randomKernel {
	rnd := rand.New(rand.NewPCG(seed, 7))
	r := &randomKernel{header: kernel.Header{Source: "bpf", CPUs: []int{0, 1}, PerTask: seed%2 == 0,
		AllTasks: seed%3 != 0}}
	for _, t := range tids {
		r.threads = append(r.threads, kernel.Thread{TID: t, PID: tids[0], Comm: "app", Target: true})
	}
	r.threads = append(r.threads, kernel.Thread{TID: 1 << 20, PID: 1 << 20, Comm: "hog"})
	cpu := [2]uint32{}
	step := max(1, (end-begin)/20_000)
	for at := begin - 5*step; at < end+5*step; at += 1 + rnd.Int64N(2*step) {
		x := kernel.Record{Time: at, CPU: uint16(rnd.IntN(2))}
		target := tids[rnd.IntN(len(tids))]
		switch n := rnd.IntN(20); {
		case n < 12:
			x.Kind = kernel.Switch
			x.TID = cpu[x.CPU]
			x.Other = target
			switch rnd.IntN(8) {
			case 0:
				x.Other = 0
			case 1:
				x.Other = 1 << 20
			}
			if x.Other == cpu[1-x.CPU] && x.Other != 0 {
				continue
			}
			cpu[x.CPU] = x.Other
			if x.TID != 0 && x.TID != 1<<20 {
				x.Flags |= kernel.Target
				switch rnd.IntN(3) {
				case 0:
					x.Flags |= kernel.Preempted
				case 1:
					x.Flags |= kernel.Preempted | kernel.Throttled | kernel.GroupThrottled
				default:
					x.Arg = [3]uint64{1 + rnd.Uint64N(2), rnd.Uint64N(300), 4096 * (1 + rnd.Uint64N(3))}
					x.Kernel, x.User = uint32(rnd.IntN(5)), uint32(rnd.IntN(9))
					if x.Kernel == 1 {
						x.Arg[1] = 203
					}
				}
			}
			if x.Other != 0 && x.Other != 1<<20 {
				x.Flags |= kernel.OtherTarget
			}
			if rnd.IntN(200) == 0 {
				continue // lost
			}
		case n < 16:
			x.Kind, x.TID, x.Other, x.Flags = kernel.Waking, target, tids[rnd.IntN(len(tids))],
				kernel.Target|kernel.OtherTarget
			x.User = 8
			if rnd.IntN(3) == 0 {
				x.Flags |= kernel.Interrupt
			}
		case n < 17:
			x.Kind, x.TID, x.Arg = kernel.FutexWake, target, [3]uint64{0, 4096 * (1 + rnd.Uint64N(3)), 1}
		case n < 18:
			x.Kind = kernel.Unthrottle
		case n < 19:
			x.Kind, x.TID, x.Arg = []kernel.Kind{kernel.SocketReady, kernel.TimerDue}[rnd.IntN(2)],
				target, [3]uint64{0, uint64(max(at-step, 0)), 0}
			if x.Kind == kernel.SocketReady {
				x.Other, x.Arg = tids[rnd.IntN(len(tids))], [3]uint64{rnd.Uint64N(uint64(3 * step)),
					rnd.Uint64N(4), uint64(max(at-rnd.Int64N(3*step), 0))}
			}
		default:
			x.Kind, x.TID = []kernel.Kind{kernel.Fault, kernel.Reclaim, kernel.MmapLock,
				kernel.Disk, kernel.Signal, kernel.Delivered, kernel.Sample}[rnd.IntN(7)], target
			x.Arg[0] = rnd.Uint64N(uint64(3 * step))
		}
		r.recs = append(r.recs, x)
	}
	return r
}

// threadsOf are the threads and times of a trace.
func threadsOf(t testing.TB, src timeline.Source) (tids []uint32, begin, end int64) {
	seen := map[exectrace.ThreadID]bool{}
	for block := range src.Blocks() {
		for i := range block {
			if begin == 0 {
				begin = int64(block[i].Time)
			}
			end = int64(block[i].Time)
			if m := block[i].M; m > 0 && m < 1<<19 && !seen[m] {
				seen[m] = true
				tids = append(tids, uint32(m))
			}
		}
	}
	return tids, begin, end
}

// TestJoinedSums: whatever the kernel's records say, every column adds up, and so do CPUs and every
// pause.
func TestJoinedSums(t *testing.T) {
	open := map[string]func() timeline.Source{}
	for _, name := range traces(t) {
		if strings.Contains(name, "srv-go1.22") || strings.Contains(name, "srv-go1.26") ||
			strings.Contains(name, "caddy") && !testing.Short() {
			open[filepath.Base(name)] = func() timeline.Source {
				tr, err := exectrace.Open(name, exectrace.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { tr.Close() })
				return tr
			}
		}
	}
	if len(open) == 0 {
		t.Skip("no trace that can be joined")
	}
	for name, src := range open {
		tids, begin, end := threadsOf(t, src())
		if len(tids) == 0 {
			t.Fatalf("%s: no threads", name)
		}
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				from, to := begin, end
				if seed == 2 { // the records cover a part
					from, to = begin+(end-begin)/4, end-(end-begin)/4
				}
				k, err := sched.New(newRandomKernel(seed, from, to, tids))
				if err != nil {
					t.Fatal(err)
				}
				set := &evidence.Set{}
				set.Add(evidence.Record{Stream: "/process/cpus-allowed:list", Shape: evidence.Fact, Text: "0-1,7"})
				r, err := Run(context.Background(), src(), Options{Kernel: k, Set: set})
				if err != nil {
					t.Fatal(err)
				}
				checkSums(t, r)
				if r.Kernel == nil || !r.Kernel.Joined || r.CPUs == nil {
					t.Fatal("not joined")
				}
				var joined int64
				for _, a := range r.All.Accounts {
					switch a.Leaf {
					case account.LeafThrottled, account.LeafNoCPU, account.LeafAsleep,
						account.LeafFault, account.LeafMissing:
						joined += a.NS
					}
				}
				if joined == 0 {
					t.Error("nothing was split")
				}
				var lacked, runnable int64
				for _, a := range r.Slow.Accounts {
					for _, i := range a.Instead {
						if a.Leaf == account.LeafRunnable {
							runnable += i.NS
							if i.Lacked() {
								lacked += i.NS
							}
						}
					}
				}
				if runnable > 0 && (lacked == 0 || lacked >= runnable) {
					t.Errorf("of %d ns in Go's run queue the Ps' threads lacked something for %d", runnable, lacked)
				}
				if seed == 0 {
					t.Logf("%d pauses, slow: %s", len(r.Kernel.Barriers), rows(r.Slow))
				}
			})
		}
	}
}

func rows(c account.Column) string {
	var l []string
	for _, a := range c.Accounts[:min(len(c.Accounts), 12)] {
		l = append(l, fmt.Sprintf("%.1f %% %s", 100*float64(a.NS)/float64(max(c.WallNS, 1)), account.Phrase(&a)))
	}
	return strings.Join(l, "; ")
}

// TestRunKernel: a process of which there is no trace has pauses, CPUs and sums, and says why there
// are no requests.
func TestRunKernel(t *testing.T) {
	k, err := sched.New(newRandomKernel(4, 1e9, 2e9, []uint32{10, 11, 12, 13}))
	if err != nil {
		t.Fatal(err)
	}
	r, err := RunKernel(context.Background(), k, Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkSums(t, r)
	if r.Requests.NoRequestsCause == "" || r.CPUs == nil || r.Kernel == nil || r.Kernel.Joined ||
		len(r.Kernel.Threads) != 4 {
		t.Errorf("got %+v", r.Kernel)
	}
}
