package detect

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/evidence/kernel"
)

// TestRandomAccounts holds the board to its promises on accounts nobody would write by hand: no
// root above an account, no two roots the same ns, no mechanism above its root, no detector that
// fails.
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

// TestRandomKernel does the same with the kernel's leaves, and with the capacity ledger where no
// request is visible.
func TestRandomKernel(t *testing.T) {
	by, proven := map[string]int{}, 0
	for seed := range uint64(6000) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		r := randomResult(rnd)
		randomKernel(rnd, r)
		b := look(detectors(), r, nil,
			Facts{CPUs: int(seed % 9),
				Service: evidence.Service{Runtime: []string{"", "go", "jvm", "python", "node"}[seed%5]}})
		honest(t, b)
		for _, f := range b.result().Findings {
			by[f.Cause]++
			if f.Confidence == "proven" {
				proven++
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for _, d := range table {
		if by[d.Name] == 0 && slices.Contains(d.Needs, KernelRecords) &&
			d.Name != "lock-contention" && d.Name != "event-loop" {
			t.Errorf("%s was never found", d.Name)
		}
	}
	if proven == 0 {
		t.Error("nothing was ever proven")
	}
}

func randomKernel(rnd *rand.Rand, r *account.Result) {
	pick := func(ss ...string) string { return ss[rnd.IntN(len(ss))] }
	part := func(n int64) int64 {
		if n <= 0 || rnd.IntN(3) == 0 {
			return 0
		}
		return rnd.Int64N(n + 1)
	}
	leaves := []account.Leaf{account.LeafThrottled, account.LeafNoCPU, account.LeafNoCPU,
		account.LeafAsleep, account.LeafLatePoll, account.LeafFault, account.LeafReclaim,
		account.LeafMemcg, account.LeafCompaction, account.LeafMmapLock, account.LeafTLB,
		account.LeafDisk, account.LeafNUMA, account.LeafPipe, account.LeafLock, account.LeafMissing}
	spans := func() account.Spans {
		s := account.Spans{N: part(500000), NS: part(40e9), Max: part(1e9), Order: rnd.IntN(80)}
		if rnd.IntN(2) == 0 {
			s.By = []account.Instead{{Who: "a", NS: part(1e9)}}
			s.Sites = []account.Site{{Func: pick("munmap", "start_thread"), NS: part(1e9)}}
		}
		return s
	}
	for i := range r.Slow.Accounts {
		a := &r.Slow.Accounts[i]
		if rnd.IntN(2) == 0 {
			a.Leaf = leaves[rnd.IntN(len(leaves))]
			a.Detail = pick("own threads", "hog", "wake-up latency or steal", "page fault",
				"runtime.findRunnable", "pthread_create", "")
			a.Instead = nil
		}
		if n := len(a.Instead); n > 0 && rnd.IntN(2) == 0 { // Ps whose threads were not at work
			last := &a.Instead[n-1]
			for range rnd.IntN(4) {
				lacked := account.Instead{Who: pick("own threads", "hog",
					"wake-up latency or steal", "kswapd0", recorder, "main.b",
					"runtime.findRunnable"),
					Kind: account.InsteadKind(leaves[rnd.IntN(len(leaves))]), NS: part(last.NS)}
				if last.NS -= lacked.NS; lacked.Lacked() {
					a.Instead = append(a.Instead, lacked)
					last = &a.Instead[n-1]
				}
			}
		}
		a.Tags.MeasuredNS, a.Tags.STWNS, a.Tags.BarrierNS = part(a.NS), part(a.NS), part(a.NS)
		a.Tags.SocketNS, a.Tags.DueNS, a.Tags.NewbornNS = part(a.NS), part(a.NS), part(a.NS)
		a.Tags.PermitNS, a.Tags.ServingNS, a.Tags.InterpreterNS = part(a.NS), part(a.NS), part(a.NS)
		a.Tags.SafepointNS, a.Tags.MonitorNS = part(a.NS-a.Tags.InterpreterNS), part(a.NS)
	}
	k := &account.Kernel{Source: "bpf", End: 20e9, PerTask: rnd.IntN(2) == 0,
		AllTasks: rnd.IntN(4) > 0, UnknownNS: part(1e9), Joined: rnd.IntN(4) > 0,
		OnNS: part(40e9), QueuedNS: part(40e9), ThrottledNS: part(200e9), BlockedNS: part(90e9),
		StoodNS: part(20e9), ThreadsSeen: 9,
		RunnableAvg: rnd.Float64() * 30, RunnableMax: rnd.IntN(60), Switches: part(1e6),
		Reclaim: spans(), Memcg: spans(), Compact: spans(), Faults: spans(), Major: spans(),
		Huge: spans(), MmapLock: spans(), TLB: spans(), NUMA: spans(), Disk: spans(), FaultsN: part(1e6)}
	k.Threads = []account.ThreadSum{{TID: 4, Comm: "node", OnNS: part(20e9)}}
	k.Late.Sockets = account.LateSum{N: part(900), NS: part(1e9), Max: part(1e9)}
	k.Late.Timers = account.LateSum{N: part(900), NS: part(1e9), Max: part(1e9)}
	k.Churn = account.Churn{Created: part(90000), Exited: part(90000), CreateNS: part(90e9), ExitNS: part(90e9)}
	k.Neighbours = []account.Neighbour{{Comm: "web", PID: 4, Own: true, NS: part(20e9)},
		{Comm: "hog", PID: 5, Cgroup: "/x", NS: part(20e9)}, {NS: part(1e9)}}
	k.Futexes = []account.Futex{{Name: "f",
		Kind:  account.FutexKind(pick("mutex", "condition", "runtime lock", "interpreter's lock")),
		Waits: part(90), WaitNS: part(90e9), Sites: []account.Site{{Func: "runtime.findRunnable"}}}}
	if rnd.IntN(5) == 0 {
		k.Missing = []kernel.Missing{{What: []kernel.Sight{kernel.Sight(pick(string(kernel.SightMmapLock), string(kernel.SightReclaim), string(kernel.SightThrottling)))}, Why: "not permitted"}}
	}
	// Samples mostly meet one kind of work, so that each is found now and then.
	on := func(ns int64) *account.OnCPU {
		o := &account.OnCPU{NS: ns, Samples: part(900)}
		kinds := []account.WorkKind{account.WorkOwn, account.WorkSpin, account.WorkKernelLock,
			account.WorkSoftirq, account.WorkFault, account.WorkGC, account.WorkNetwork}
		most := kinds[rnd.IntN(len(kinds))]
		for i, left := 0, ns; i < 3 && o.Samples >= account.LeastSamples && ns > 0; i++ {
			w := account.Work{Kind: most, Name: pick("", "device", "x"), Samples: o.Samples / 3, NS: part(left)}
			w.Low, w.High, most = part(w.NS), min(ns, 2*w.NS), kinds[rnd.IntN(len(kinds))]
			left -= w.NS
			o.Works = append(o.Works, w)
		}
		return o
	}
	for _, c := range []*account.Column{&r.Slow, &r.Median} {
		var ns int64
		for i := range c.Accounts {
			if c.Accounts[i].Leaf == account.LeafOnCPU {
				ns += c.Accounts[i].NS
			}
		}
		if rnd.IntN(4) > 0 {
			c.OnCPU = on(ns)
		}
	}
	if rnd.IntN(4) > 0 {
		k.OnCPU = on(k.OnNS)
	}
	r.Kernel = k
	if rnd.IntN(6) > 0 {
		c := &account.CPUs{Allowed: 1 + rnd.IntN(8), WallNS: 20e9, RunningNS: part(40e9),
			ThrottledNS: part(40e9), OthersNS: part(40e9), UnusedNS: part(40e9), RestNS: part(40e9)}
		c.TotalNS = c.RunningNS + c.ThrottledNS + c.OthersNS + c.UnusedNS + c.RestNS
		if rnd.IntN(2) == 0 {
			c.Quota, c.QuotaAt, c.QuotaNS, c.UsedNS = 0.25*float64(1+rnd.IntN(9)), "/a", 10e9, part(10e9)
		}
		c.Unused = []account.Instead{{Who: "lock", NS: part(c.UnusedNS)}}
		if ran := part(10e9); ran > 0 {
			c.Stolen = &account.Stolen{RanNS: ran, StealNS: ran, BusyNS: ran, NS: part(ran)}
			c.Stolen.Low, c.Stolen.High = part(c.Stolen.NS), ran
		}
		r.CPUs = c
	}
	switch rnd.IntN(6) {
	case 0:
		r.Native = true
	case 1: // no request is visible
		r.Slow, r.Median = account.Column{}, account.Column{}
	}
}

func randomResult(rnd *rand.Rand) *account.Result {
	pick := func(ss ...string) string { return ss[rnd.IntN(len(ss))] }
	leaves := []account.Leaf{account.LeafOnCPU, account.LeafRunnable, account.LeafRunnable,
		account.LeafSTW, account.LeafSTWWork, account.LeafAssist, account.LeafAssistCredit,
		account.LeafSweep, account.LeafMarkTermQueue, account.LeafGCStartQueue,
		account.LeafSTWQueue, account.LeafStackScan, account.LeafNetwork, account.LeafTimer,
		account.LeafSyscall, account.LeafLockBetween, account.LeafLockUnseen, account.LeafGap}
	classes := []account.Class{account.ClassOwn, account.ClassMessage, account.ClassLock, account.ClassRuntime}
	r := &account.Result{}
	r.Slow.Requests = 1 + rnd.IntN(100)
	part := func(n int64) int64 {
		if n <= 0 || rnd.IntN(3) == 0 {
			return 0
		}
		return rnd.Int64N(n + 1)
	}
	for range 1 + rnd.IntN(12) {
		a := account.Account{Leaf: leaves[rnd.IntN(len(leaves))],
			Class: classes[rnd.IntN(len(classes))], Actor: pick("", "main.a", "main.b"),
			Site:   pick("main.x", "log.(*Logger).output", "main.y", ""),
			Detail: pick("", "GC mark termination", "read mem stats"),
			NS:     rnd.Int64N(int64(r.Slow.Requests) * 60e6), Actors: rnd.IntN(3), MaxQueue: rnd.IntN(9)}
		a.ExcessNS = part(2*a.NS) - part(a.NS)
		a.Tags = account.Tags{SilenceNS: part(a.NS), InferredNS: part(a.NS), PreemptNS: part(a.NS), Slices: part(900)}
		if a.Leaf == account.LeafRunnable {
			gc := part(a.NS)
			a.Instead = []account.Instead{{Who: "GC worker (dedicated)", Kind: "gc", NS: gc},
				{Who: "main.b", Kind: account.InsteadKind(pick("request", "background", "idle")), NS: a.NS - gc}}
		}
		if a.Class != account.ClassLock {
			a.Through = []account.Site{{Func: pick("main.x", "log.(*Logger).output"), NS: part(a.NS)}}
		}
		if a.Leaf == account.LeafSyscall {
			a.Sites = []account.Site{{Func: "main.w",
				Via: pick("os.(*File).Write", "net.(*conn).Write"), NS: part(a.NS), N: 3}}
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
	r.STWs = []account.STW{{Begin: 5, LastStop: 7, Start: 9, End: 30e6, Kind: "GC mark termination",
		Ours: rnd.IntN(2) == 0, SlowNS: part(1e9)},
		{Begin: 1e9, Start: 2e9, End: 3e9, Kind: pick("read mem stats", ""), SlowNS: part(1e9)}}
	r.Sweeps = []account.Sweep{{Begin: 0, End: part(20e6), Swept: part(1 << 30), Reclaimed: part(1 << 24)}}
	r.GC = account.GC{Cycles: part(90), PerSecond: rnd.Float64() * 40, MarkNS: part(9e9),
		GoalMax: part(1 << 30), LiveMax: part(1 << 29)}
	r.Capacity = account.Capacity{Procs: 1 + rnd.IntN(8), WallNS: 10e9, TotalNS: 80e9,
		RunningNS: part(40e9), GCNS: part(20e9), IdleGCNS: part(5e9), RunnableAvg: rnd.Float64() * 20}
	r.Silences = account.Silences{N: 3, NS: 1e9, FewNS: part(1e9), SlowNS: part(1e9)}
	r.Locks = []account.Lock{{Sites: []string{"main.x", "main.y"}, Waits: 3, Handoffs: part(3)}}
	return r
}
