package detect

import (
	"math/rand/v2"
	"testing"

	"github.com/whystall/whystall/internal/ledger"
)

// TestRandomAccounts holds the board to its promises on accounts nobody would write by hand: no root above an
// account, no two roots the same ns, no mechanism above its root, no detector that fails.
func TestRandomAccounts(t *testing.T) {
	found, under := 0, 0
	for seed := range uint64(3000) {
		r := randomResult(rand.New(rand.NewPCG(seed, 7)))
		b := look(detectors(), r, nil, Facts{CPUs: int(seed % 9)})
		honest(t, b)
		for _, f := range b.result().Findings {
			found++
			if f.BecauseOf != "" {
				under++
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, r)
		}
	}
	// A generator that never reaches a floor would test nothing.
	if found < 1000 || under < 100 {
		t.Errorf("%d findings, %d of them mechanisms", found, under)
	}
}

func randomResult(rnd *rand.Rand) *ledger.Result {
	pick := func(ss ...string) string { return ss[rnd.IntN(len(ss))] }
	leaves := []ledger.Leaf{ledger.LeafOnCPU, ledger.LeafRunnable, ledger.LeafRunnable, ledger.LeafSTW, ledger.LeafSTWWork, ledger.LeafAssist, ledger.LeafAssistCredit,
		ledger.LeafSweep, ledger.LeafMarkTermQueue, ledger.LeafGCStartQueue, ledger.LeafSTWQueue, ledger.LeafStackScan, ledger.LeafNetwork, ledger.LeafTimer,
		ledger.LeafSyscall, ledger.LeafLockBetween, ledger.LeafLockUnseen, ledger.LeafGap}
	classes := []ledger.Class{ledger.ClassOwn, ledger.ClassMessage, ledger.ClassLock, ledger.ClassRuntime}
	r := &ledger.Result{}
	r.Slow.Requests = 1 + rnd.IntN(100)
	part := func(n int64) int64 {
		if n <= 0 || rnd.IntN(3) == 0 {
			return 0
		}
		return rnd.Int64N(n + 1)
	}
	for range 1 + rnd.IntN(12) {
		a := ledger.Account{Leaf: leaves[rnd.IntN(len(leaves))], Class: classes[rnd.IntN(len(classes))], Actor: pick("", "main.a", "main.b"),
			Site: pick("main.x", "log.(*Logger).output", "main.y", ""), Detail: pick("", "GC mark termination", "read mem stats"),
			NS: rnd.Int64N(int64(r.Slow.Requests) * 60e6), Actors: rnd.IntN(3), MaxQueue: rnd.IntN(9)}
		a.ExcessNS = part(2*a.NS) - part(a.NS)
		a.Tags = ledger.Tags{SilenceNS: part(a.NS), InferredNS: part(a.NS), PreemptNS: part(a.NS), Slices: part(900)}
		if a.Leaf == ledger.LeafRunnable {
			gc := part(a.NS)
			a.Instead = []ledger.Instead{{Who: "GC worker (dedicated)", Kind: "gc", NS: gc}, {Who: "main.b", Kind: pick("request", "background", "idle"), NS: a.NS - gc}}
		}
		if a.Class != ledger.ClassLock {
			a.Through = []ledger.Site{{Func: pick("main.x", "log.(*Logger).output"), NS: part(a.NS)}}
		}
		if a.Leaf == ledger.LeafSyscall {
			a.Sites = []ledger.Site{{Func: "main.w", Via: pick("os.(*File).Write", "net.(*conn).Write"), NS: part(a.NS), N: 3}}
		}
		r.Slow.Accounts = append(r.Slow.Accounts, a)
		r.Slow.WallNS += a.NS
		if rnd.IntN(2) == 0 {
			a.NS = part(2 * a.NS)
			r.Median.Accounts = append(r.Median.Accounts, a)
			r.Median.WallNS += a.NS
			r.Median.Requests = 50
		}
	}
	r.STWs = []ledger.STW{{Begin: 5, LastStop: 7, Start: 9, End: 30e6, Kind: "GC mark termination", Ours: rnd.IntN(2) == 0, SlowNS: part(1e9)},
		{Begin: 1e9, Start: 2e9, End: 3e9, Kind: pick("read mem stats", ""), SlowNS: part(1e9)}}
	r.Sweeps = []ledger.Sweep{{Begin: 0, End: part(20e6), Swept: part(1 << 30), Reclaimed: part(1 << 24)}}
	r.GC = ledger.GC{Cycles: part(90), PerSecond: rnd.Float64() * 40, MarkNS: part(9e9), GoalMax: part(1 << 30), LiveMax: part(1 << 29)}
	r.Capacity = ledger.Capacity{Procs: 1 + rnd.IntN(8), WallNS: 10e9, TotalNS: 80e9, RunningNS: part(40e9), GCNS: part(20e9), IdleGCNS: part(5e9), RunnableAvg: rnd.Float64() * 20}
	r.Silences = ledger.Silences{N: 3, NS: 1e9, FewNS: part(1e9), SlowNS: part(1e9)}
	r.Locks = []ledger.Lock{{Sites: []string{"main.x", "main.y"}, Waits: 3, Handoffs: part(3)}}
	return r
}
