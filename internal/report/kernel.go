package report

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
)

// Tier is what one collector of the recording came to.
type Tier struct {
	Name  string         `json:"name"` // of the collector: "trace", "kernel", "cgroup"
	State evidence.State `json:"state"`
	Why   string         `json:"why,omitempty" prose:"yes"`
	Cost  *evidence.Cost `json:"cost,omitempty"`
}

// Kernel is what the kernel's records say of the target beside its requests.
type Kernel struct {
	account.Kernel
	Missing     []string        `json:"missing"`
	Standstills []Standstill    `json:"standstills"`
	Stretches   []Stretches     `json:"stretches"`
	SocketsLate account.LateSum `json:"sockets_late"`
	TimersLate  account.LateSum `json:"timers_late"`
	Barriers    []Barrier       `json:"barriers"`
}

// Stretches sums up one kind of what the kernel did in threads of the target.
type Stretches struct {
	Kind string `json:"kind"`
	account.Spans
}

// Standstill is a stretch in which no thread ran though one was queued or throttled.
type Standstill struct {
	UTC *string `json:"utc"`
	account.Standstill
}

// Barrier is a long stop-the-world, or a long ragged barrier.
type Barrier struct {
	UTC *string `json:"utc"`
	account.Barrier
}

// CPUs is the capacity ledger of CPUs; its accounts add up to TotalNS exactly.
type CPUs struct {
	account.CPUs
	Accounts []CapacityRow `json:"accounts"`
}

// Memory is the memory ledger; its accounts add up to RSS exactly.
type Memory struct {
	account.Memory
	Accounts []MemoryRow `json:"accounts"`
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
		checkSum(r, "CPU ledger", c.TotalNS, r.Ledger.CPUs.Accounts, capacityNS)
	}
	if m := l.Memory; m != nil && m.RSS > 0 {
		r.Ledger.Memory = memoryOf(m)
		checkSum(r, "memory ledger", m.RSS, r.Ledger.Memory.Accounts, func(a MemoryRow) int64 { return a.Bytes })
	}
}

// kernelOf adds UTC times to what the ledger says, and lists the kinds of stretches that there
// were.
func kernelOf(k *account.Kernel, l *account.Result) *Kernel {
	out := &Kernel{
		Kernel: *k, Missing: []string{}, SocketsLate: k.Late.Sockets, TimersLate: k.Late.Timers,
		Standstills: []Standstill{}, Stretches: []Stretches{}, Barriers: []Barrier{},
	}
	for _, m := range k.Missing {
		out.Missing = append(out.Missing, m.Why)
	}
	list(&out.Threads)
	list(&out.Neighbours)
	list(&out.Futexes)
	list(&out.Churn.Makers)
	// The kernel's times are not those of an older trace, which has a clock of its own.
	clock := wallClock{l.Wall && l.Monotonic, l.WallOffset}
	if k.Wall {
		clock = wallClock{true, k.WallOffset}
	}
	for _, s := range k.Standstills {
		out.Standstills = append(out.Standstills, Standstill{clock.utc(s.Begin), s})
	}
	for _, s := range []Stretches{
		{"direct reclaim", k.Reclaim}, {"memory cgroup reclaim", k.Memcg},
		{"compaction", k.Compact}, {"major fault", k.Major},
		{"huge page fault", k.Huge}, {"fault", k.Faults}, {"mmap_lock", k.MmapLock},
		{"TLB flush", k.TLB}, {"NUMA migration", k.NUMA}, {"disk", k.Disk},
	} {
		if s.N > 0 {
			out.Stretches = append(out.Stretches, s)
		}
	}
	for _, b := range k.Barriers {
		list(&b.Leaves)
		list(&b.Hops)
		out.Barriers = append(out.Barriers, Barrier{clock.utc(b.Begin), b})
	}
	return out
}

func cpusOf(c *account.CPUs) *CPUs {
	out := &CPUs{CPUs: *c, Accounts: []CapacityRow{
		{Cause: "running the target", NS: c.RunningNS}, {Cause: "throttled", NS: c.ThrottledNS},
		{Cause: "taken by others", NS: c.OthersNS},
		{Cause: "unused while its work waited", NS: c.UnusedNS}, {Cause: "the rest", NS: c.RestNS},
		{Cause: "unexplained", NS: c.UnknownNS},
	}}
	list(&out.Unused)
	shares(out.Accounts, c.TotalNS)
	return out
}

func memoryOf(m *account.Memory) *Memory {
	out := &Memory{Memory: *m, Accounts: []MemoryRow{
		{Account: "live heap", Bytes: m.Live}, {Account: "idle heap", Bytes: m.Idle},
		{Account: "released, still resident", Bytes: m.Released},
		{Account: "huge pages beyond the runtime's view", Bytes: m.Huge},
		{Account: "lazily freed", Bytes: m.LazyFree}, {Account: "stacks", Bytes: m.Stacks},
		{Account: "the runtime's own", Bytes: m.Runtime}, {Account: "mapped files, shared memory", Bytes: m.Files},
		{Account: "the program's own heap, stacks and mappings", Bytes: m.Native},
		{Account: "unexplained", Bytes: m.Unexplained},
	}}
	for i := range out.Accounts {
		out.Accounts[i].Share = share(out.Accounts[i].Bytes, m.RSS)
	}
	return out
}
