package report

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/toll"
)

const (
	ms      = int64(1e6)
	begin   = int64(86_400_123_456_789)
	atEpoch = int64(1_795_234_203_000_000_000) // of begin
)

// ill is a server whose callers wait for one batcher that gets no P; made by hand.
func ill() Source {
	slow := []account.Account{
		{Leaf: account.LeafRunnable, Class: account.ClassMessage, Actor: "main.(*Server).batchLoop",
			Site: "main.(*Server).call", NS: 720 * ms, ExcessNS: 690 * ms, Requests: 100,
			Largest: 88, Actors: 1, MaxQueue: 31,
			Instead: []account.Instead{{Who: "main.hog", Kind: "background", NS: 600 * ms},
				{Who: "GC worker (dedicated)", Kind: "gc", NS: 120 * ms}},
			Tags: account.Tags{GCNS: 130 * ms, Slices: 140}},
		{Leaf: account.LeafRunnable, Class: account.ClassOwn, NS: 121 * ms, ExcessNS: 80 * ms,
			Requests: 100, Largest: 12,
			Instead: []account.Instead{{Who: "main.hog", Kind: "background", NS: 121 * ms}}},
		{Leaf: account.LeafSyscall, Class: account.ClassOwn,
			Site: "github.com/example/a-service-with-a-long-name/v2/internal/storage/engine.(*Log[go.shape.struct { Name string }]).Append", NS: 50 * ms, Requests: 99,
			Sites: []account.Site{{Func: "os.(*File).Write", File: "/src/log.go", Line: 42, NS: 50 * ms, N: 99}}},
		{Leaf: account.LeafOnCPU, Class: account.ClassOwn, NS: 41_234_567, Requests: 100},
		{Leaf: account.LeafOnCPU, Class: account.ClassLock, Actor: "net/http.(*conn).serve",
			Site: "github.com/example/a-service-with-a-long-name/v2/internal/cache.(*Sharded).Get",
			NS:   31 * ms, Requests: 80, Tags: account.Tags{InferredNS: 31 * ms}},
		{Leaf: account.LeafNetwork, Class: account.ClassOutside, Site: "main.(*client).read", NS: 9 * ms},
		{Leaf: account.LeafNetwork, Class: account.ClassOutside, Site: "main.(*client).readBody", NS: 8 * ms},
		{Leaf: account.LeafSTW, Class: account.ClassOwn, Detail: "GC mark termination", NS: 6 * ms},
		{Leaf: account.LeafAssist, Class: account.ClassOwn, NS: 4 * ms},
		{Leaf: account.LeafLockUnseen, Class: account.ClassLock, Site: "main.(*Server).log", NS: 2 * ms},
		{Leaf: account.LeafGap, Class: account.ClassUnknown, NS: 1 * ms},
	}
	median := []account.Account{
		{Leaf: account.LeafOnCPU, Class: account.ClassOwn, NS: 800 * ms, Requests: 2000},
		{Leaf: account.LeafSyscall, Class: account.ClassOwn, Site: slow[2].Site, NS: 700 * ms, Requests: 2000},
		{Leaf: account.LeafRunnable, Class: account.ClassMessage, Actor: "main.(*Server).batchLoop",
			Site: "main.(*Server).call", NS: 40 * ms},
		{Leaf: account.LeafTimer, Class: account.ClassOutside, Site: "main.retry", NS: 3 * ms},
	}
	l := &account.Result{
		Begin: begin, End: begin + 20_000*ms, Monotonic: true, Wall: true, WallOffset: atEpoch - begin,
		Requests: account.Requests{
			Count: 12_345, Open: 12, P50: 771_000, P99: 8_400_000, Max: 19_300_000, Slow: 100,
			Groups: []account.Group{
				{Entry: "net/http.(*conn).serve", Kind: "net/http",
					Boundary: "from the request line read to the response flushed", Count: 12_000,
					P50: 771_000, P99: 8_500_000, Max: 19_300_000, SlowOver: 8_500_000, Slow: 97,
					LeftOut: []account.Count{{Reason: "streams", N: 3}}},
				{Entry: "main.(*Server).consume", Kind: "loop",
					Doubt: "300 of 345 were there before they were read: how long is not in their times", Boundary: "from the end of the wait at main.(*Server).next to the next", Count: 345, P50: 500_000, P99: 7_000_000, Max: 9_000_000, SlowOver: 7_000_000, Slow: 3},
			},
			LeftOut: []account.Count{{Reason: "streams", N: 3}, {Reason: "whystall's own", N: 2}},
			Slowest: []account.Request{
				{Begin: begin + 3_123*ms + 456_789, End: begin + 3_142*ms + 756_789, Goroutine: 77,
					Entry: "net/http.(*conn).serve", Name: "GET /v1/items/{id}",
					Reason: "15.2 ms of it main.(*Server).batchLoop was ready to run and had no P; main.hog ran",
					Accounts: []account.Account{{Leaf: account.LeafRunnable,
						Class: account.ClassMessage, Actor: "main.(*Server).batchLoop",
						Site: "main.(*Server).call", NS: 19_300_000}}},
				{Begin: begin + 9_000*ms, End: begin + 9_018*ms, Goroutine: 78,
					Entry: "net/http.(*conn).serve", Name: "POST /v1/items", Reason: "11 ms in write(2) of the log"},
				{Begin: begin + 19_000*ms, End: begin + 19_009*ms, Goroutine: 12,
					Entry: "main.(*Server).consume", Reason: "6 ms ready to run and had no P"},
			},
		},
		Slow: column100(slow), Median: column2000(median),
		All: account.Column{Requests: 12_345, WallNS: 12_000 * ms,
			Accounts: []account.Account{{Leaf: account.LeafOnCPU, Class: account.ClassOwn, NS: 12_000 * ms}}},
		Capacity: account.Capacity{Procs: 2, CPUs: 2, WallNS: 20_000 * ms, TotalNS: 40_000 * ms,
			RunningNS: 34_000 * ms, GCNS: 2_000 * ms, SyscallNS: 1_000 * ms, StoppedNS: 100 * ms,
			IdleWorkNS: 900 * ms, IdleNS: 2_000 * ms, RunnableAvg: 6.4, RunnableMax: 71},
		Silences: account.Silences{N: 2, NS: 61 * ms, SlowNS: 20 * ms, Max: 40 * ms},
		Gaps: []account.Gap{{Begin: begin + 5_000*ms, End: begin + 5_003*ms,
			Reason: "batch of M 4121 is damaged: unknown event 211"}},
		Reader: account.Reader{Format: 26, Bytes: 8 << 20, Events: 1_600_000, MaxHeap: 41 << 20, NS: 412 * ms},
	}
	return Source{
		Target: Target{Name: "api-server", Service: evidence.Service{PID: 4121, GoVersion: "go1.26.1"}, Host: "web-7"},
		Inputs: []Input{{Name: "slow.case", Kind: "case"},
			{Name: "mutex.pb.gz", Error: "parse mutex.pb.gz: unexpected EOF"}},
		Ledger: l,
		Found: finding.Result{
			Findings: []finding.Finding{
				{Cause: "sched-latency", Scope: finding.Slow,
					Title: "Runnable goroutines wait for a P (run queue latency in Go)", Confidence: finding.Supported,
					Explains: finding.Explains{NS: 841 * ms}, Share: 0.847,
					Summary: "slow requests wait 7.20 ms (72 % of their time) because one goroutine they all wait for, main.(*Server).batchLoop (up to 31 of them at once), is ready to run and gets no P",
					Evidence: []finding.Evidence{
						{Text: "main.hog (background) 83 %, GC worker (dedicated) 17 %",
							Source: "execution trace: what ran instead"},
						{Text: "of 2 Ps x 20.0 s: running 85 %, GC 5.0 %, in syscalls 2.5 %, idle while work waited 2.3 %, idle 5.0 %; runnable goroutines 6.4 on average, 71 at most", Source: "ledger: capacity"},
					},
					Remedy: []string{"relieve the head of the line: run several of main.(*Server).batchLoop, or let callers do its work themselves", "bound or move what ran instead (main.hog): fewer goroutines at once, in another process, or off-peak"},
					Verify: "whystall diagnose --pprof http://localhost:6060 --for 20s   # under the same load; 'runnable in Go' is below 1 ms"},
				{Cause: "frequent-gc", Scope: finding.Slow,
					Title:      "GC runs so often that requests pay for it",
					Confidence: finding.Possible, BecauseOf: "sched-latency",
					Explains: finding.Explains{NS: 120 * ms}, Share: 0.121,
					Summary: "GC workers ran instead of the batcher",
					Evidence: []finding.Evidence{{Text: "31 cycles a second",
						Source: "execution trace"}}, Remedy: []string{"GOGC=200"}, Verify: "whystall diagnose"},
			},
			RuledOut: []finding.RuledOut{{Cause: "stw-pause",
				Why: "60.0 us per slow request, 0.6 %; reported from 5.00 ms and 10 % up"},
				{Cause: "sweep-assist", Why: "slow requests lost no time to it"}},
			NotChecked: []finding.NotChecked{{Cause: "cpu-contention",
				Missing: []string{"kernel evidence (switch records, the cgroup's cpu.stat, PSI), which the recording does not have: whether threads that Go calls running were on a CPU"}}},
		},
		Cost: Cost{ExplainNS: 450 * ms, ExplainCPUNS: 800 * ms,
			Recorder: []string{"recording fetched 9.10 MiB in 20.4 s, the target's CPU for it is not known"}},
	}
}

func column100(as []account.Account) account.Column  { return columnOf(100, as) }
func column2000(as []account.Account) account.Column { return columnOf(2000, as) }

func columnOf(n int, as []account.Account) account.Column {
	c := account.Column{Requests: n, Accounts: as}
	for _, a := range as {
		c.WallNS += a.NS
	}
	return c
}

// healthy is the same server in health, from a trace without a wall clock.
func healthy() Source {
	s := ill()
	s.Target, s.Inputs = Target{}, []Input{{Name: "trace.out", Kind: "execution trace"}}
	l := *s.Ledger
	l.Wall, l.WallOffset, l.Monotonic, l.Begin, l.End = false, 0, false, 0, 20_000*ms
	l.Requests.Groups, l.Requests.Slowest = l.Requests.Groups[:1], nil
	l.Requests.LeftOut = nil
	l.Requests.Slowest = []account.Request{{Begin: 5_123_456_789, End: 5_125_456_789,
		Entry: "net/http.(*conn).serve", Reason: "1.6 ms on CPU"}}
	l.Slow = columnOf(100, []account.Account{{Leaf: account.LeafOnCPU, Class: account.ClassOwn,
		NS: 160 * ms}, {Leaf: account.LeafSyscall, Class: account.ClassOwn, Site: "main.read", NS: 40 * ms}})
	l.Median = columnOf(2000, []account.Account{{Leaf: account.LeafOnCPU, Class: account.ClassOwn, NS: 1600 * ms}})
	l.Silences, l.Gaps = account.Silences{}, nil
	l.Reader.Format = 16
	l.Lacks = []account.Lack{{Text: "thread ids"}, {Text: "the kinds of stop-the-world other than GC's"}}
	s.Ledger = &l
	s.Found.Findings, s.Found.Left = nil, []int64{160 * ms, 40 * ms}
	s.Cost.Recorder = nil
	s.Cost.Service, s.Cost.Eased = bill(), []evidence.Easing{
		{AtNS: 1, Part: "goroutine", Did: evidence.LeftOut, Why: evidence.WhyMemory, Measured: 0.97,
			Limit: 0.9, Lost: "where goroutines are at the end is not known"},
		{AtNS: 2, Part: "trace", Did: evidence.Shortened, Why: evidence.WhyCPU, Measured: 0.21,
			Limit: 0.06, Lost: "requests after 4.00 s are not seen"},
	}
	return s
}

// bill is of a server to which the trace does harm.
func bill() *toll.Bill {
	stage := func(name evidence.StageName, slices int, cpu int64) evidence.Stage {
		s := evidence.Stage{Name: name}
		for i := range int64(slices) {
			s.Slices = append(s.Slices, evidence.Slice{NS: 200 * ms, CPUNS: cpu + i%2*ms,
				QueuedNS: cpu / 5, Switches: 4000 + i%3, ReadBytes: 200 << 10, Reads: 1000})
		}
		return s
	}
	return toll.Weigh(&evidence.Toll{
		Budget: 0.06, LimitCPUs: 2, Counters: []evidence.Counted{evidence.CountedCPU,
			evidence.CountedQueued, evidence.CountedThrottled, evidence.CountedSwitches, evidence.CountedRead},
		Stages: []evidence.Stage{stage(evidence.StageCounters, 10, 100*ms),
			stage(evidence.StageKernel, 10, 102*ms), stage(evidence.StageAll, 20, 121*ms)},
	})
}

// hostile is the ill server with names that try to act on terminals and browsers.
func hostile() Source {
	s := ill()
	const evil = "main.\x1b[31mred\x1b]0;title\x07\u202egnp.exe\u200b\u009b2J\r\nFOUND 0 causes | **bold** <script>alert(1)</script> [x](http://evil) `tick` @someone \xff"
	s.Target.Name, s.Target.Ended, s.Target.Halted = evil, evil, &evidence.Halt{NS: ms, By: evil}
	s.Tiers = []Tier{{Name: evil, State: evidence.Broken, Why: evil,
		Cost: &evidence.Cost{Lowered: evil}}, {Name: evil, State: evidence.Ready}}
	s.Cost.Recording = &evidence.Cost{CPUNS: ms, SharedQuota: evil, QuotaCPUs: 1}
	s.Inputs[1].Name, s.Inputs[1].Error = evil, evil
	l := *s.Ledger
	l.Slow.Accounts = append([]account.Account{}, l.Slow.Accounts...)
	for i := range l.Slow.Accounts {
		a := &l.Slow.Accounts[i]
		a.Actor, a.Site, a.Detail = evil, evil, evil
	}
	l.Requests.Groups = []account.Group{{Entry: evil, Kind: evil, Count: 1, Boundary: evil}, {Entry: evil, Count: 2}}
	l.Requests.LeftOut = []account.Count{{Reason: evil, N: 1}}
	l.Requests.Slowest = []account.Request{{Entry: evil, Name: evil, Reason: evil, Begin: begin, End: begin + 1}}
	l.Gaps = []account.Gap{{Reason: evil}}
	bad := []account.Instead{{Who: evil, Kind: evil, NS: ms}}
	places := []account.Site{{Func: evil, File: evil, Via: evil, NS: ms}}
	l.Kernel = &account.Kernel{
		Source: evil, Release: evil, Missing: []kernel.Missing{{Why: evil}}, Ran: bad, RanN: 1,
		Threads: []account.ThreadSum{{Comm: evil}}, Neighbours: []account.Neighbour{{Comm: evil, Cgroup: evil, NS: ms}},
		Churn: account.Churn{Created: 1, Makers: places}, Disk: account.Spans{N: 1, Flags: bad, Sites: places, By: bad},
		Futexes: []account.Futex{{Name: evil, Kind: evil, Sites: places, Holders: bad,
			HolderNS: map[string]int64{evil: ms}}},
		Barriers: []account.Barrier{{End: ms, Kind: evil, Leaves: bad, Hops: []string{evil}, Grade: evil, SlowNS: ms}},
	}
	l.CPUs = &account.CPUs{Allowed: 1, TotalNS: ms, UnusedNS: ms, Unused: bad, Quota: 1, QuotaAt: evil}
	l.Lacks = []account.Lack{{Text: evil}}
	s.Ledger = &l
	s.Found = finding.Result{
		Findings: []finding.Finding{{Cause: evil, Scope: finding.Slow, Title: evil,
			Confidence: finding.Possible, Summary: evil,
			Evidence: []finding.Evidence{{Text: evil, Source: evil}}, Remedy: []string{evil}, Verify: evil},
			{Cause: evil, Scope: finding.Slow, Title: evil, Confidence: finding.Possible, BecauseOf: evil}},
		RuledOut:   []finding.RuledOut{{Cause: evil, Why: evil}},
		NotChecked: []finding.NotChecked{{Cause: evil, Missing: []string{evil}}},
		Left:       []int64{720 * ms},
	}
	s.Cost.Recorder = []string{evil}
	return s
}
