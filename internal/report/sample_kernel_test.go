package report

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

// throttled is the server of ill with half a CPU, recorded with the kernel's events; made by hand.
func throttled() Source {
	s := ill()
	s.Target = Target{Name: "api-server",
		Service: evidence.Service{PID: 4121, GoVersion: "go1.26.1", Runtime: "go", Container: true}, CPUs: 2}
	s.Inputs = []Input{{Name: "slow.case", Kind: "a case"}}
	l := *s.Ledger
	l.Slow = columnOf(100, []account.Account{
		{Leaf: account.LeafThrottled, Class: account.ClassOwn, NS: 710 * ms, Requests: 100,
			Largest: 91, Tags: account.Tags{STWNS: 14 * ms, MeasuredNS: 700 * ms}},
		{Leaf: account.LeafNoCPU, Class: account.ClassOwn, Detail: "own threads", NS: 190 * ms, Requests: 88},
		{Leaf: account.LeafNoCPU, Class: account.ClassMessage, Actor: "main.(*Server).batchLoop",
			Site: "main.(*Server).call", Detail: "etcd", NS: 40 * ms},
		{Leaf: account.LeafAsleep, Class: account.ClassOwn, Detail: "runtime.lock2", NS: 31 * ms},
		{Leaf: account.LeafOnCPU, Class: account.ClassOwn, NS: 20 * ms},
		{Leaf: account.LeafMissing, Class: account.ClassUnknown, NS: 9 * ms},
	})
	l.Kernel = &account.Kernel{
		Source: "bpf", Release: "6.18.44", Begin: begin - 5*ms, End: begin + 20_100*ms,
		PerTask: true, AllTasks: true,
		Missing: []kernel.Missing{{What: []kernel.Sight{kernel.SightMmapLock},
			Why: "mmap_lock waits: this kernel has no such tracepoint"}},
		Lost: 12, UnknownNS: 400 * ms, Joined: true, Align: account.Align{Transitions: 186_000,
			OffCPU: 3, Dropped: 144, MinNS: 720}, Fair: account.Fair{Pairs: 1000, Covered: 371, Edge: 340},
		OnNS: 9_800 * ms, QueuedNS: 3_000 * ms, ThrottledNS: 83_000 * ms, BlockedNS: 200_000 * ms,
		StoodNS: 13_600 * ms, Switches: 180_000, Involuntary: 12_000,
		Threads: []account.ThreadSum{{TID: 4121, Comm: "api-server", OnNS: 5_000 * ms,
			QueuedNS: 1_000 * ms, ThrottledNS: 9_000 * ms, BlockedNS: 5_000 * ms},
			{TID: 4130, Comm: "api-server", OnNS: 4_800 * ms, QueuedNS: 2_000 * ms,
				ThrottledNS: 8_000 * ms, BlockedNS: 5_200 * ms}},
		ThreadsSeen: 81, Neighbours: []account.Neighbour{{Comm: "api-server", PID: 4121, Own: true,
			NS: 2_500 * ms}, {Comm: "etcd", PID: 77, Cgroup: "/system.slice/etcd.service",
			NS: 450 * ms}, {Comm: "idle", NS: 50 * ms}},
		RunnableAvg: 12.3, RunnableMax: 78, GlanceAvg: 6.1,
		Churn: account.Churn{Created: 33, Exited: 2, FirstP50: 110_000, FirstP99: 20 * ms, FirstMax: 31 * ms},
		Memcg: account.Spans{N: 15, NS: 24 * ms, Max: 9 * ms,
			Sites: []account.Site{{Func: "main.grow", NS: 20 * ms, N: 12}}},
		Late: account.Late{Sockets: account.LateSum{N: 900, NS: 900 * ms, P50: 80_000,
			P99: 21 * ms, Max: 73 * ms}},
		Standstills: []account.Standstill{{Begin: begin + 2_926*ms, End: begin + 3_001*ms, ThrottledNS: 75 * ms}},
		Futexes: []account.Futex{{Address: 0xc000123456, Name: "runtime: heap",
			Kind: "runtime lock", Inferred: true, Waits: 50, WaitNS: 40 * ms, MaxQueue: 4,
			Holders:  []account.Instead{{Who: "api-server", Kind: "thread", NS: 30 * ms}},
			HolderNS: map[string]int64{"throttled": 30 * ms}}},
		Barriers: []account.Barrier{
			{Begin: begin + 3_000*ms, End: begin + 3_078*ms, Kind: "GC sweep termination",
				Initiator: 15242, Awaited: 15275, ByNote: true, StoppedNS: 74 * ms, DelayedNS: 4 * ms,
				Leaves: []account.Instead{{Who: "throttled", NS: 73 * ms},
					{Who: "no CPU (own threads)", NS: 4 * ms}, {Who: "on CPU", NS: ms}},
				Hops: []string{"0.00 ms: thread 15242 begins [execution trace]",
					"0.10 ms: it sleeps on sched.stopnote [futex wait]",
					"0.32 ms: awaited thread 15275 is switched out, throttled [sched_switch]",
					"73.15 ms: the quota's period timer fires on its CPU [hrtimer]",
					"73.61 ms: 15275 wakes the note [futex wake]"}, Grade: "proven", SlowNS: 14 * ms},
			{Begin: begin + 9_000*ms, End: begin + 9_116*ms, Kind: "safe-point", Initiator: 15195,
				Awaited: 15201, ByNote: true, DelayedNS: 0, StoppedNS: 0,
				Leaves: []account.Instead{{Who: "throttled", NS: 83 * ms},
					{Who: "no CPU (etcd)", NS: 33 * ms}}, Hops: []string{"0.00 ms: forEachP"}, Grade: "supported"},
		},
	}
	l.Kernel.OnCPU = sampledProcess()
	l.Slow.OnCPU = &account.OnCPU{NS: 20 * ms, Samples: 24, Works: []account.Work{
		{Kind: account.WorkOwn, Name: "main.(*Server).render", Samples: 18, NS: 15 * ms, Low: 11 * ms, High: 18 * ms},
		{Kind: account.WorkGC, Name: "assists", Samples: 6, NS: 5 * ms, Low: 2 * ms, High: 9 * ms},
	}}
	l.CPUs = &account.CPUs{Allowed: 2, WallNS: 20_000 * ms, TotalNS: 40_000 * ms,
		RunningNS: 9_800 * ms, ThrottledNS: 26_000 * ms, OthersNS: 500 * ms, UnusedNS: 2_000 * ms,
		RestNS: 1_500 * ms, UnknownNS: 200 * ms,
		Unused: []account.Instead{{Who: "runnable in Go", NS: 1_500 * ms},
			{Who: "lock", NS: 500 * ms}}, Quota: 0.5, QuotaAt: "/kubepods/pod1",
		QuotaNS: 10_000 * ms, UsedNS: 9_800 * ms, StealNS: 20 * ms}
	l.Memory = &account.Memory{RSS: 622 << 20, Live: 20 << 20, Idle: 4 << 20, Released: 3 << 20,
		Huge: 580 << 20, Stacks: 2 << 20, Runtime: 8 << 20, Files: 4 << 20, Unexplained: 1 << 20,
		AnonHuge: 600 << 20, Limit: 1 << 30, Begin: 29 << 20, End: 622 << 20}
	s.Ledger = &l
	s.Found.Findings = []finding.Finding{{Cause: "gomaxprocs-over-quota", Scope: finding.Slow,
		Title: "GOMAXPROCS is above the CPU quota", Confidence: finding.Proven,
		Explains: finding.Explains{NS: 710 * ms}, Share: 0.71,
		Summary:  "76 Ps share a quota of 0.5 CPU, and the group is throttled",
		Evidence: []finding.Evidence{{Text: "throttled 71 %", Source: "kernel: switches"}},
		Remedy:   []string{"GOMAXPROCS=1"}, Verify: "whystall diagnose --pid 4121 --for 20s"}}
	s.Tiers = []Tier{
		{Name: "trace", State: "ready"}, {Name: "mutex", State: "ready"},
		{Name: "metrics", State: "unavailable", Why: "the service has no /metrics (404)"},
		{Name: "kernel", State: "ready", Cost: &evidence.Cost{CPUNS: 300 * ms, KernelNS: 120 * ms,
			Records: 360_000, Lost: 12, Lowered: "stacks are sampled since 5.0 s"}},
		{Name: "cgroup", State: "ready"},
		{Name: "delays", State: "unavailable", Why: "task_delayacct is 0: sysctl kernel.task_delayacct=1"},
	}
	s.Cost.Recording = &evidence.Cost{CPUNS: 410 * ms, TargetNS: 9_800 * ms}
	return s
}

// native is a program without a Go runtime, seen from the kernel alone.
func native() Source {
	s := throttled()
	s.Target = Target{Name: "storage", Service: evidence.Service{PID: 99}, CPUs: 2}
	l := *s.Ledger
	k := *l.Kernel
	k.Joined, k.Align, k.Fair, k.Barriers, k.Late, k.AllTasks, k.PerTask, k.Source,
		k.GlanceAvg = false, account.Align{}, account.Fair{}, nil, account.Late{}, false, false, "perf", 0
	l.Kernel, l.Native, l.Capacity, l.Reader, l.Silences, l.Gaps, l.Lacks = &k, true,
		account.Capacity{}, account.Reader{}, account.Silences{}, nil, nil
	l.Requests.Groups = []account.Group{{Entry: "store::Worker::run", Kind: "thread",
		Boundary: "from the wake-up in epoll_wait to the next", Count: 12_345, P50: 771_000,
		P99: 8_400_000, Max: 19_300_000, Slow: 100}}
	l.Requests.LeftOut = nil
	l.Slow = columnOf(100, []account.Account{
		{Leaf: account.LeafNoCPU, Class: account.ClassOwn, Detail: "hog", NS: 500 * ms, Requests: 90, Largest: 80},
		{Leaf: account.LeafLock, Class: account.ClassLock, Site: "store::Cache::get", NS: 300 * ms},
		{Leaf: account.LeafDisk, Class: account.ClassOwn, Site: "pread64", NS: 200 * ms},
	})
	l.Median = columnOf(2000, []account.Account{{Leaf: account.LeafOnCPU, Class: account.ClassOwn, NS: 1_400 * ms}})
	l.Memory, l.CPUs = nil, nil
	s.Ledger = &l
	s.Found.Findings = nil
	s.Tiers = []Tier{{Name: "kernel", State: "unavailable",
		Why: "bpf: needs CAP_BPF and CAP_PERFMON"}, {Name: "perf", State: "ready"}, {Name: "cgroup", State: "ready"}}
	return s
}

// untraced is a Go program that serves no pprof pages. Its threads are known, and by samples what
// they ran.
func untraced() Source {
	s := native()
	s.Target = Target{Name: "batcher", Service: evidence.Service{PID: 99, Runtime: "go",
		GoVersion: "go1.26.1"}, CPUs: 2}
	l := *s.Ledger
	k := *l.Kernel
	k.Ran = []account.Instead{{Who: "main.compact", Kind: "goroutine", NS: 5_500 * ms},
		{Who: "main.list (net/http)", Kind: "goroutine", NS: 90 * ms},
		{Who: "Go's scheduler", Kind: "goroutine", NS: 60 * ms}}
	k.RanN = 1433
	l.Kernel, l.Native, l.Requests, l.Slow, l.Median = &k, false,
		account.Requests{None: account.NoneNoTrace,
			NoRequestsCause: "there is no execution trace that tells of goroutines, and a Go program's threads serve whichever of them can run"}, account.Column{}, account.Column{}
	l.CPUs = &account.CPUs{Allowed: 2, WallNS: 3_000 * ms, TotalNS: 6_000 * ms,
		RunningNS: 5_650 * ms, OthersNS: 300 * ms, RestNS: 50 * ms}
	s.Ledger = &l
	s.Tiers = append([]Tier{{Name: "pprof", State: "unavailable", Why: "nothing answers on its ports"}}, s.Tiers...)
	return s
}

// sampledProcess is what the server of throttled uses CPUs for.
func sampledProcess() *account.OnCPU {
	o := &account.OnCPU{NS: 9_800 * ms, Samples: 9_800,
		Late: []account.Site{{Func: "finish_task_switch", N: 700, NS: 700 * ms},
			{Func: "try_to_wake_up", N: 300, NS: 300 * ms}}}
	for _, w := range []account.Work{
		{Kind: account.WorkOwn, Name: "main.(*Server).render", NS: 5_000 * ms},
		{Kind: account.WorkGC, Name: "marking", NS: 2_000 * ms},
		{Kind: account.WorkSyscall, Name: "write", NS: 1_500 * ms,
			Sites: []account.Site{{Func: "main.(*Server).log", NS: 1_500 * ms, N: 1_500}}},
		{Kind: account.WorkFault, Name: "zeroing", NS: 1_280 * ms},
		{Kind: account.WorkUnknown, NS: 20 * ms},
	} {
		w.Samples, w.Low, w.High = w.NS/ms, w.NS-20*ms, w.NS+20*ms
		o.Works = append(o.Works, w)
	}
	return o
}
