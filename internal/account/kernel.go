package account

import (
	"github.com/whystall/whystall/internal/evidence/kernel"
)

// Kernel is what the kernel's records tell of the target beside its requests. Without them a Result has none.
type Kernel struct {
	Source     string                 // "bpf", "perf"
	Release    string                 // of the kernel
	Begin, End int64                  // what the records cover, CLOCK_MONOTONIC
	Wall       bool                   // WallOffset is known
	WallOffset int64                  // add to a time of the records for nanoseconds of the Unix epoch: an older trace has a clock of its own
	PerTask    bool                   // the kernel marks each throttled thread; else throttling is supported at most
	AllTasks   bool                   // others' switches were recorded: who ran instead is known
	Missing    []string               // what this kernel or user did not permit to see
	Lost       int64                  // records that are known to be lost
	Untold     [kernel.Extras]float64 // share of the recording in which each was not told
	UnknownNS  int64                  // of the target's threads' time for which records are missing
	Joined     bool                   // a Go trace with the same clock was there, or one whose clock was found out
	Whole      bool                   // that trace names no threads: joined by what those of the process did together alone
	ShiftNS    int64                  // add to a time of that trace for CLOCK_MONOTONIC; 0 but with Whole
	Align      Align
	Fair       Fair

	OnNS, QueuedNS, ThrottledNS, BlockedNS int64        // sums over the target's threads
	StoodNS                                int64        // wall time in which no thread of the target ran, and one was throttled
	Standstills                            []Standstill // of 10 ms and more, the longest first, at most 20
	Switches, Involuntary                  int64        // of the target's threads
	Threads                                []ThreadSum  // those with most on-CPU and queued time, at most 40
	ThreadsSeen                            int64
	Neighbours                             []Neighbour // who held the CPU while the target's threads were queued there; largest first, at most 20
	RunnableAvg                            float64     // threads of the target on a CPU or queued, by time
	RunnableMax                            int
	GlanceAvg                              float64 // how many a reader of /proc that walks the threads one by one would have called running
	ShortSleeps                            int64   // sleeps below 1 ms that a timer ended: pollers
	ShortSleepers                          int     // threads that did 100 or more a second

	Churn   Churn
	Reclaim Spans // direct reclaim, global
	Memcg   Spans // of a memory cgroup
	Compact Spans
	Faults  Spans // those that took 10 us or more, and all major ones
	FaultsN int64 // all, by the process' own counters; where those were not read the ones of Faults
	Major   Spans
	Huge    Spans
	// FaultWaitNS is how long threads slept within faults for what is no disk: a page's lock, a handler of userfaultfd.
	FaultWaitNS int64
	MmapLock    Spans // waits, for reading and writing; Sites: who waits; By: who changed the address space meanwhile
	// MmapReclaimNS is how much of the waits for mmap_lock passed while a thread of the target was in reclaim or compaction. Who
	// waits for the lock is in neither, so that it is others: whoever faults in a new mapping holds the lock meanwhile.
	MmapReclaimNS int64
	// MmapLetGo is who ended waits for mmap_lock by letting go of it, "main.snapshot (fork)", by how long those took. That one held it last.
	MmapLetGo []Instead

	// Ran is what goroutines had the CPUs, by entry function and by samples, largest first; of a Go program without a trace. RanN: samples.
	Ran  []Instead
	RanN int64

	Spin       Spans // CPU time of threads that look for a lock or for work without sleeping, by samples; N samples, Sites: where
	TLB        Spans // flushes that the target caused; NS by samples, 0 not known
	NUMA       Spans // faults that NUMA balancing made, by the node of who touched the memory; NS what they took on CPUs or blocked, 0 not known
	NUMARemote int64 // of them for memory of another node
	NUMAPages  int64 // moved meanwhile
	Disk       Spans
	Late       Late
	Futexes    []Futex // by time waited, at most 20
	Barriers   []Barrier
}

// Align says how well the two clocks and records fit.
type Align struct {
	Transitions int64 // of goroutines, checked against their threads' states
	OffCPU      int64 // of them on a thread that was not on a CPU
	Dropped     int64 // not counted: pile-ups at a generation's begin, repeated states
	MinNS       int64 // least time from a thread's switch-in to its first event; 0 not known
}

// Fair is the fair control: of pairs of events of one thread, as far apart as a stop-the-world is long,
// how many look as if something had held the thread up. See docs/join.md, "9. Clocks and controls".
type Fair struct {
	Pairs, Covered, Edge int64
}

// ThreadSum is one thread's time.
type ThreadSum struct {
	TID                                    uint32
	Comm                                   string
	OnNS, QueuedNS, ThrottledNS, BlockedNS int64
}

// Neighbour is who held CPUs while the target's threads were queued there.
type Neighbour struct {
	Comm   string
	PID    uint32
	Cgroup string
	Own    bool // threads of the target
	NS     int64
}

// Churn is threads made and ended.
type Churn struct {
	Created, Exited              int64
	FirstP50, FirstP99, FirstMax int64  // ns from creation to first run
	LifeP50                      int64  // ns from creation to exit; 0 none
	CPUNS                        int64  // CPU time of making and ending them, by samples; 0 not known
	CreateNS, ExitNS             int64  // time that threads spent blocked or queued within clone, and within exit, munmap and madvise of stacks
	Makers                       []Site // who makes them
}

// Spans sums up stretches of one kind.
type Spans struct {
	N, NS, Max int64
	Order      int       // the largest that was asked for
	Flags      []Instead // by gfp flags, reason, or address space, in words
	Sites      []Site    // user functions in which they happened, at most 10
	By         []Instead // threads that did them
}

// Late is how late the kernel's readiness reached the program.
type Late struct {
	Sockets, Timers LateSum
}

// LateSum sums up latenesses in ns.
type LateSum struct {
	N, NS, P50, P99, Max int64
}

// Futex is one lock, condition or note by its address.
type Futex struct {
	Address  uint64
	Name     string // of the lock where it can be known: "stack_cache_lock", "runtime: heap", or the function that waits
	Kind     string // "mutex", "condition", "join", "barrier", "semaphore", "runtime lock", "note", "not known"
	Inferred bool   // Kind is told by how the address was used, not by functions' names
	Waits    int64
	WaitNS   int64
	MaxQueue int
	Sites    []Site
	Holders  []Instead        // threads, by name
	HolderNS map[string]int64 // what holders did meanwhile: leaf -> ns, of the longest waits
	// HolderInferred: some holders are known by who released the lock next, the one before having let go while others waited.
	HolderInferred bool
}

// Barrier is one long ragged barrier of the runtime, or one stop-the-world: whom it waited for and what kept that thread.
type Barrier struct {
	Begin, End int64
	Kind       string    // "safe-point", or of the stop-the-world
	Initiator  uint32    // TID
	Awaited    uint32    // TID; 0: nobody had to be awaited, or it is not known
	ByNote     bool      // Awaited is who woke the note; else the thread of the last P
	StoppedNS  int64     // world stopped: Begin to t2
	DelayedNS  int64     // only the initiator: t2 to End
	Leaves     []Instead // what it was spent on; sums to End - Begin
	Hops       []string  // one line an event, for the proof
	Grade      string    // "proven", "supported", "possible"
	SlowNS     int64
}

// CPUs is the capacity ledger of CPUs: allowed CPUs x wall, added up exactly.
type CPUs struct {
	Allowed       int // CPUs that the target may use
	WallNS        int64
	TotalNS       int64
	RunningNS     int64 // the target
	ThrottledNS   int64 // not running it while its group was out of quota
	OthersNS      int64 // taken by others while its threads were queued
	UnusedNS      int64 // not used while its work waited
	RestNS        int64
	UnknownNS     int64
	IdleNS        int64     // nobody ran there at all, of whatever kind above; switches of all tasks recorded
	Unused        []Instead // on what its work waited
	Quota         float64   // CPUs, least over all ancestors; 0 none
	QuotaAt       string    // the cgroup that has it
	QuotaNS       int64     // quota x wall
	GroupOwnNS    int64     // while the switches of all tasks were recorded: what the target ran
	GroupOthersNS int64     // and what others in the group that has the quota ran
	GroupOthers   []Instead // by name
	UsedNS        int64     // of it used, by the cgroup's own count, else by what its threads ran; 0 not known
	StealNS       int64     // of the host's CPUs, shown beside
}

// Memory is the memory ledger: resident bytes, added up exactly.
type Memory struct {
	RSS         int64
	Live        int64 // heap objects, by the runtime
	Idle        int64 // heap the runtime keeps and has not returned
	Released    int64 // returned, and still resident
	Huge        int64 // of what is beyond the runtime's view, held by huge pages
	LazyFree    int64 // returned by MADV_FREE, for the kernel to take when it wants
	Stacks      int64
	Runtime     int64 // the runtime's other memory
	Files       int64 // mapped files and shared memory
	Native      int64 // anonymous memory of a program without Go's runtime: its heap, stacks and mappings
	Unexplained int64
	AnonHuge    int64 // beside: AnonHugePages of the process; -1 not known
	Limit       int64 // effective memory limit of its cgroup; 0 none
	Begin, End  int64 // RSS at the recording's begin and end
}

// Held is what the runtime believes to have of the system: Sys less what it released. 0: not known.
func (m *Memory) Held() int64 { return m.Live + m.Idle + m.Stacks + m.Runtime }

// MostStandstills is how many of them a ledger keeps.
const MostStandstills = 20

// Standstill is a stretch in which no thread of the target ran though one was queued or throttled.
type Standstill struct {
	Begin, End  int64 // CLOCK_MONOTONIC, ns
	ThrottledNS int64 // of it: a thread was throttled; else one was queued
}
