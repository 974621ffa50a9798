package report

import "github.com/whystall/whystall/internal/account"

// Tier is what one collector of the recording came to.
type Tier struct {
	Name  string    `json:"name"`  // of the collector: "trace", "kernel", "cgroup"
	State string    `json:"state"` // "ready", "unavailable", "broken"
	Why   string    `json:"why,omitempty"`
	Cost  *TierCost `json:"cost,omitempty"`
}

// TierCost is what recording took of the machine, as far as it is known.
type TierCost struct {
	CPUNS    int64  `json:"cpu_ns"`              // the recorder's own threads
	OnceNS   int64  `json:"once_ns,omitempty"`   // of CPUNS, what it took to begin and to end, however long it recorded
	KernelNS int64  `json:"kernel_ns,omitempty"` // its programs in the kernel, in the time of whoever they watch
	TargetNS int64  `json:"target_ns,omitempty"` // CPU time of the target meanwhile
	Records  int64  `json:"records,omitempty"`
	Lost     int64  `json:"lost,omitempty"`
	Lowered  string `json:"lowered,omitempty"` // which detail was given up, and when

	SharedQuota string  `json:"shared_quota,omitempty"` // the cgroup whose quota bound the recorder and the target together; "" none did
	QuotaCPUs   float64 `json:"quota_cpus,omitempty"`
}

// Kernel is what the kernel's records tell of the target beside its requests.
type Kernel struct {
	Source    string   `json:"source"` // "bpf", "perf"
	Release   string   `json:"release,omitempty"`
	BeginNS   int64    `json:"begin_ns"`
	EndNS     int64    `json:"end_ns"`
	PerTask   bool     `json:"per_task"`  // throttled threads are marked each
	AllTasks  bool     `json:"all_tasks"` // who ran instead is known
	Missing   []string `json:"missing"`
	Lost      int64    `json:"lost"`
	UnknownNS int64    `json:"unknown_ns"`
	Joined    bool     `json:"joined"` // with a Go trace, on one clock
	Whole     bool     `json:"-"`      // the trace names no threads: only what those of the process did together is joined
	Alignment Align    `json:"alignment"`
	Fair      Fair     `json:"fair_control"`

	OnNS        int64        `json:"on_ns"` // sums over threads
	QueuedNS    int64        `json:"queued_ns"`
	ThrottledNS int64        `json:"throttled_ns"`
	BlockedNS   int64        `json:"blocked_ns"`
	StoodNS     int64        `json:"stood_ns"`    // wall time in which no thread ran and one was throttled
	Standstills []Standstill `json:"standstills"` // of 10 ms and more in which no thread ran and one was queued or throttled; the longest first, at most 20
	Switches    int64        `json:"switches"`
	Involuntary int64        `json:"involuntary"`
	ThreadsSeen int64        `json:"threads_seen"`
	Threads     []Thread     `json:"threads"`
	Neighbours  []Neighbour  `json:"neighbours"`
	RunnableAvg float64      `json:"runnable_avg"`
	RunnableMax int          `json:"runnable_max"`
	GlanceAvg   float64      `json:"glance_avg"` // running threads as a reader of /proc sees them, one by one

	Ran           []Instead   `json:"ran,omitempty"` // of a Go program without a trace: what had the CPUs, by entry function and samples
	RanSamples    int64       `json:"ran_samples,omitempty"`
	ShortSleeps   int64       `json:"short_sleeps"`
	ShortSleepers int         `json:"short_sleepers"`
	Churn         Churn       `json:"churn"`
	Stretches     []Stretches `json:"stretches"`
	SocketsLate   Late        `json:"sockets_late"`
	TimersLate    Late        `json:"timers_late"`
	Futexes       []Futex     `json:"futexes"`
	Barriers      []Barrier   `json:"barriers"`
}

// Align says how well the clocks of trace and kernel fit.
type Align struct {
	Transitions int64 `json:"transitions"`
	OffCPU      int64 `json:"off_cpu"`
	Dropped     int64 `json:"dropped"`
	MinNS       int64 `json:"min_ns"`
}

// Fair is the control: of pairs of events of one thread as far apart as a pause is long, how many look as if something had
// held the thread up.
type Fair struct {
	Pairs   int64 `json:"pairs"`
	Covered int64 `json:"covered"`
	Edge    int64 `json:"edge"`
}

// Thread is one thread's time.
type Thread struct {
	TID         uint32 `json:"tid"`
	Comm        string `json:"comm"`
	OnNS        int64  `json:"on_ns"`
	QueuedNS    int64  `json:"queued_ns"`
	ThrottledNS int64  `json:"throttled_ns"`
	BlockedNS   int64  `json:"blocked_ns"`
}

// Neighbour is who held CPUs while the target's threads were queued there.
type Neighbour struct {
	Comm   string `json:"comm"`
	PID    uint32 `json:"pid"`
	Cgroup string `json:"cgroup,omitempty"`
	Own    bool   `json:"own,omitempty"`
	NS     int64  `json:"ns"`
}

// Churn is threads made and ended.
type Churn struct {
	Created    int64  `json:"created"`
	Exited     int64  `json:"exited"`
	FirstP50NS int64  `json:"first_run_p50_ns"` // from creation to first run
	FirstP99NS int64  `json:"first_run_p99_ns"`
	FirstMaxNS int64  `json:"first_run_max_ns"`
	LifeP50NS  int64  `json:"life_p50_ns"`
	CreateNS   int64  `json:"create_ns"`
	ExitNS     int64  `json:"exit_ns"`
	Makers     []Site `json:"makers"`
}

// Stretches sums up one kind of what the kernel did in threads of the target.
type Stretches struct {
	Kind  string    `json:"kind"`
	N     int64     `json:"n"`
	NS    int64     `json:"ns"` // 0: not known
	MaxNS int64     `json:"max_ns"`
	Order int       `json:"order,omitempty"` // the largest that was asked for
	Flags []Instead `json:"flags,omitempty"`
	Sites []Site    `json:"sites,omitempty"`
	By    []Instead `json:"by,omitempty"`
}

// Standstill is a stretch in which no thread ran though one was queued or throttled.
type Standstill struct {
	BeginNS     int64   `json:"begin_ns"`
	EndNS       int64   `json:"end_ns"`
	UTC         *string `json:"utc"`
	ThrottledNS int64   `json:"throttled_ns"` // of it
}

// Late sums up how late the kernel's readiness reached the program.
type Late struct {
	N     int64 `json:"n"`
	NS    int64 `json:"ns"`
	P50NS int64 `json:"p50_ns"`
	P99NS int64 `json:"p99_ns"`
	MaxNS int64 `json:"max_ns"`
}

// Futex is one lock, condition or note.
type Futex struct {
	Address  uint64           `json:"address"`
	Name     string           `json:"name,omitempty"`
	Kind     string           `json:"kind,omitempty"`
	Inferred bool             `json:"inferred,omitempty"`
	Waits    int64            `json:"waits"`
	WaitNS   int64            `json:"wait_ns"`
	MaxQueue int              `json:"max_queue"`
	Sites    []Site           `json:"sites,omitempty"`
	Holders  []Instead        `json:"holders,omitempty"`
	HolderNS map[string]int64 `json:"holder_ns,omitempty"` // what holders did meanwhile
}

// Barrier is a long stop-the-world, or a long ragged barrier.
type Barrier struct {
	BeginNS   int64     `json:"begin_ns"`
	EndNS     int64     `json:"end_ns"`
	UTC       *string   `json:"utc"`
	Kind      string    `json:"kind"`
	Initiator uint32    `json:"initiator"` // TID
	Awaited   uint32    `json:"awaited"`   // TID; 0: nobody, or not known
	ByNote    bool      `json:"by_note"`
	StoppedNS int64     `json:"stopped_ns"` // the world was stopped
	DelayedNS int64     `json:"delayed_ns"` // only the initiator was
	Leaves    []Instead `json:"leaves"`
	Hops      []string  `json:"hops"`
	Grade     string    `json:"grade"`
	SlowNS    int64     `json:"slow_ns"`
}

// CPUs is the capacity ledger of CPUs; its accounts add up to TotalNS exactly.
type CPUs struct {
	Allowed  int           `json:"allowed"`
	WallNS   int64         `json:"wall_ns"`
	TotalNS  int64         `json:"total_ns"`
	Accounts []CapacityRow `json:"accounts"`
	Unused   []Instead     `json:"unused"` // on what the target's work waited
	Quota    float64       `json:"quota"`  // CPUs; 0 none
	QuotaAt  string        `json:"quota_at,omitempty"`
	QuotaNS  int64         `json:"quota_ns"`
	UsedNS   int64         `json:"used_ns"`
	StealNS  int64         `json:"steal_ns"`
}

// Memory is the memory ledger; its accounts add up to RSS exactly.
type Memory struct {
	RSS      int64       `json:"rss_bytes"`
	Accounts []MemoryRow `json:"accounts"`
	AnonHuge int64       `json:"anon_huge_bytes"` // beside; -1 not known
	Limit    int64       `json:"limit_bytes"`     // 0 none
	Begin    int64       `json:"begin_bytes"`
	End      int64       `json:"end_bytes"`
}

// MemoryRow is one account of the memory.
type MemoryRow struct {
	Account string  `json:"account"`
	Bytes   int64   `json:"bytes"`
	Share   float64 `json:"share"`
}

func (r *Report) fromKernel(l *account.Result) {
	if k := l.Kernel; k != nil {
		r.Kernel = kernelOf(k, l)
	}
	if c := l.CPUs; c != nil && c.TotalNS > 0 {
		r.Ledger.CPUs = cpusOf(c)
		r.sum("CPU ledger", c.TotalNS, func(yield func(int64)) {
			for _, a := range r.Ledger.CPUs.Accounts {
				yield(a.NS)
			}
		})
	}
	if m := l.Memory; m != nil && m.RSS > 0 {
		r.Ledger.Memory = memoryOf(m)
		r.sum("memory ledger", m.RSS, func(yield func(int64)) {
			for _, a := range r.Ledger.Memory.Accounts {
				yield(a.Bytes)
			}
		})
	}
}

func kernelOf(k *account.Kernel, l *account.Result) *Kernel {
	out := &Kernel{
		Source: k.Source, Release: k.Release, BeginNS: k.Begin, EndNS: k.End, PerTask: k.PerTask, AllTasks: k.AllTasks,
		Missing: append([]string{}, k.Missing...), Lost: k.Lost, UnknownNS: k.UnknownNS, Joined: k.Joined,
		Whole:     k.Whole,
		Alignment: Align{Transitions: k.Align.Transitions, OffCPU: k.Align.OffCPU, Dropped: k.Align.Dropped, MinNS: k.Align.MinNS},
		Fair:      Fair{Pairs: k.Fair.Pairs, Covered: k.Fair.Covered, Edge: k.Fair.Edge},
		OnNS:      k.OnNS, QueuedNS: k.QueuedNS, ThrottledNS: k.ThrottledNS, BlockedNS: k.BlockedNS, StoodNS: k.StoodNS,
		Switches: k.Switches, Involuntary: k.Involuntary, ThreadsSeen: k.ThreadsSeen, Threads: []Thread{}, Neighbours: []Neighbour{},
		RunnableAvg: k.RunnableAvg, RunnableMax: k.RunnableMax, GlanceAvg: k.GlanceAvg, ShortSleeps: k.ShortSleeps, ShortSleepers: k.ShortSleepers,
		Churn: Churn{
			Created: k.Churn.Created, Exited: k.Churn.Exited, FirstP50NS: k.Churn.FirstP50, FirstP99NS: k.Churn.FirstP99, FirstMaxNS: k.Churn.FirstMax,
			LifeP50NS: k.Churn.LifeP50, CreateNS: k.Churn.CreateNS, ExitNS: k.Churn.ExitNS, Makers: append([]Site{}, sites(k.Churn.Makers)...),
		},
		SocketsLate: lateOf(k.Late.Sockets), TimersLate: lateOf(k.Late.Timers),
		Standstills: []Standstill{}, Stretches: []Stretches{}, Futexes: []Futex{}, Barriers: []Barrier{},
	}
	// The kernel's times are not those of an older trace, which has a clock of its own.
	wall, offset := l.Wall && l.Monotonic, l.WallOffset
	if k.Wall {
		wall, offset = true, k.WallOffset
	}
	for _, s := range k.Standstills {
		out.Standstills = append(out.Standstills, Standstill{BeginNS: s.Begin, EndNS: s.End, UTC: stamp(s.Begin, wall, offset), ThrottledNS: s.ThrottledNS})
	}
	for _, t := range k.Threads {
		out.Threads = append(out.Threads, Thread{TID: t.TID, Comm: t.Comm, OnNS: t.OnNS, QueuedNS: t.QueuedNS, ThrottledNS: t.ThrottledNS, BlockedNS: t.BlockedNS})
	}
	out.Ran, out.RanSamples = insteads(k.Ran), k.RanN
	for _, n := range k.Neighbours {
		out.Neighbours = append(out.Neighbours, Neighbour{Comm: n.Comm, PID: n.PID, Cgroup: n.Cgroup, Own: n.Own, NS: n.NS})
	}
	for _, s := range []struct {
		kind string
		s    *account.Spans
	}{
		{"direct reclaim", &k.Reclaim}, {"memory cgroup reclaim", &k.Memcg}, {"compaction", &k.Compact}, {"major fault", &k.Major},
		{"huge page fault", &k.Huge}, {"fault", &k.Faults}, {"mmap_lock", &k.MmapLock}, {"TLB flush", &k.TLB}, {"NUMA migration", &k.NUMA}, {"disk", &k.Disk},
	} {
		if s.s.N > 0 {
			out.Stretches = append(out.Stretches, Stretches{
				Kind: s.kind, N: s.s.N, NS: s.s.NS, MaxNS: s.s.Max, Order: s.s.Order, Flags: insteads(s.s.Flags), Sites: sites(s.s.Sites), By: insteads(s.s.By),
			})
		}
	}
	for i := range k.Futexes {
		f := &k.Futexes[i]
		out.Futexes = append(out.Futexes, Futex{
			Address: f.Address, Name: f.Name, Kind: f.Kind, Inferred: f.Inferred, Waits: f.Waits, WaitNS: f.WaitNS, MaxQueue: f.MaxQueue,
			Sites: sites(f.Sites), Holders: insteads(f.Holders), HolderNS: f.HolderNS,
		})
	}
	for i := range k.Barriers {
		b := &k.Barriers[i]
		out.Barriers = append(out.Barriers, Barrier{
			BeginNS: b.Begin, EndNS: b.End, UTC: stamp(b.Begin, wall, offset), Kind: b.Kind, Initiator: b.Initiator, Awaited: b.Awaited, ByNote: b.ByNote,
			StoppedNS: b.StoppedNS, DelayedNS: b.DelayedNS, Leaves: append([]Instead{}, insteads(b.Leaves)...), Hops: append([]string{}, b.Hops...),
			Grade: b.Grade, SlowNS: b.SlowNS,
		})
	}
	return out
}

func lateOf(l account.LateSum) Late {
	return Late{N: l.N, NS: l.NS, P50NS: l.P50, P99NS: l.P99, MaxNS: l.Max}
}

func cpusOf(c *account.CPUs) *CPUs {
	out := &CPUs{
		Allowed: c.Allowed, WallNS: c.WallNS, TotalNS: c.TotalNS, Quota: c.Quota, QuotaAt: c.QuotaAt, QuotaNS: c.QuotaNS,
		UsedNS: c.UsedNS, StealNS: c.StealNS, Unused: append([]Instead{}, insteads(c.Unused)...), Accounts: []CapacityRow{},
	}
	for _, a := range []CapacityRow{
		{Cause: "running the target", NS: c.RunningNS}, {Cause: "throttled", NS: c.ThrottledNS}, {Cause: "taken by others", NS: c.OthersNS},
		{Cause: "unused while its work waited", NS: c.UnusedNS}, {Cause: "the rest", NS: c.RestNS}, {Cause: "unexplained", NS: c.UnknownNS},
	} {
		a.Share = share(a.NS, c.TotalNS)
		out.Accounts = append(out.Accounts, a)
	}
	return out
}

func memoryOf(m *account.Memory) *Memory {
	out := &Memory{RSS: m.RSS, AnonHuge: m.AnonHuge, Limit: m.Limit, Begin: m.Begin, End: m.End, Accounts: []MemoryRow{}}
	for _, a := range []MemoryRow{
		{Account: "live heap", Bytes: m.Live}, {Account: "idle heap", Bytes: m.Idle}, {Account: "released, still resident", Bytes: m.Released},
		{Account: "huge pages beyond the runtime's view", Bytes: m.Huge}, {Account: "lazily freed", Bytes: m.LazyFree}, {Account: "stacks", Bytes: m.Stacks},
		{Account: "the runtime's own", Bytes: m.Runtime}, {Account: "mapped files, shared memory", Bytes: m.Files},
		{Account: "the program's own heap, stacks and mappings", Bytes: m.Native}, {Account: "unexplained", Bytes: m.Unexplained},
	} {
		a.Share = share(a.Bytes, m.RSS)
		out.Accounts = append(out.Accounts, a)
	}
	return out
}
