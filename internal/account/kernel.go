package account

import (
	"github.com/whystall/whystall/internal/evidence/kernel"
)

// Kernel is what the kernel's records say of the target beside its requests. A Result without such
// records has none. Its JSON is the report's; a field that the report shows in another shape has
// "-".
type Kernel struct {
	Source  string `json:"source"`            // "bpf", "perf"
	Release string `json:"release,omitempty"` // of the kernel
	// Begin and End are what the records cover, CLOCK_MONOTONIC.
	Begin int64 `json:"begin_ns"`
	End   int64 `json:"end_ns"`
	// WallOffset is what to add to a time of the records for nanoseconds of the Unix epoch, if
	// Wall. It is not the trace's: an older trace has a clock of its own.
	Wall       bool  `json:"-"`
	WallOffset int64 `json:"-"`
	// PerTask: the kernel marks each throttled thread. Without that throttling is supported at
	// most.
	PerTask bool `json:"per_task"`
	// AllTasks: the switches of other processes were recorded too, so who ran instead is known.
	AllTasks  bool                   `json:"all_tasks"`
	Missing   []kernel.Missing       `json:"-"`          // what this kernel or user did not permit to see
	Lost      int64                  `json:"lost"`       // records that are known to be lost
	Untold    [kernel.Extras]float64 `json:"-"`          // the part of the recording without each
	Turns     bool                   `json:"-"`          // the turns of loops around many sockets are told apart
	Unread    bool                   `json:"-"`          // it is seen since when data lay in a socket that a loop came to later
	UnknownNS int64                  `json:"unknown_ns"` // of the target's threads' time for which records are missing
	// Joined: a Go trace was there, with the same clock or with one whose clock was found out.
	Joined bool `json:"joined"`
	// Whole: that trace names no threads. Only what all threads of the process did together joins
	// it.
	Whole   bool  `json:"-"`
	ShiftNS int64 `json:"-"` // add to a time of that trace for CLOCK_MONOTONIC; 0 unless Whole
	// OldClock is how a trace before Go 1.22 was put on the kernel's clock; nil for any other.
	OldClock *OldClock `json:"old_clock,omitempty"`
	Align    Align     `json:"alignment"`
	Fair     Fair      `json:"fair_control"`

	// The times are sums over the target's threads, but for WorkNS and StoodNS.
	OnNS        int64 `json:"on_ns"`
	QueuedNS    int64 `json:"queued_ns"`
	ThrottledNS int64 `json:"throttled_ns"`
	BlockedNS   int64 `json:"blocked_ns"`
	WorkNS      int64 `json:"-"`        // wall time in which some thread was on a CPU, throttled or queued
	StoodNS     int64 `json:"stood_ns"` // wall time in which no thread of the target ran, and one was throttled
	// StoodQueuedNS is the same where none was throttled and one was queued. Where throttling looks
	// like preemption, it is in here.
	StoodQueuedNS int64 `json:"-"`
	// HaltedNS is for how long no thread could run, as a signal or a tracer had stopped them.
	HaltedNS int64 `json:"halted_ns,omitempty"`
	// Standstills are those of 10 ms and more, the longest first, at most MostStandstills.
	Standstills []Standstill `json:"-"`
	Switches    int64        `json:"switches"` // of the target's threads
	Involuntary int64        `json:"involuntary"`
	ThreadsSeen int64        `json:"threads_seen"`
	Threads     []ThreadSum  `json:"threads"`      // those with most on-CPU and queued time, at most 40
	Neighbours  []Neighbour  `json:"neighbours"`   // largest first, at most 20
	RunnableAvg float64      `json:"runnable_avg"` // threads of the target on a CPU or queued, by time
	RunnableMax int          `json:"runnable_max"`
	// GlanceAvg is how many threads a reader of /proc that walks them one by one would have called
	// running.
	GlanceAvg float64 `json:"glance_avg"`

	// Ran is which goroutines had the CPUs, by entry function and by samples, the largest first. It
	// is there for a Go program without a trace. RanN is the number of samples.
	Ran  []Instead `json:"ran,omitempty"`
	RanN int64     `json:"ran_samples,omitempty"`

	// OnCPU is what all threads of the process used CPUs for; nil without samples.
	OnCPU *OnCPU `json:"on_cpu,omitempty"`

	ShortSleeps   int64 `json:"short_sleeps"`   // sleeps below 1 ms that a timer ended: pollers
	ShortSleepers int   `json:"short_sleepers"` // threads that did 100 or more a second

	Churn   Churn `json:"churn"`
	Reclaim Spans `json:"-"` // direct reclaim, global
	Memcg   Spans `json:"-"` // of a memory cgroup
	Compact Spans `json:"-"`
	Faults  Spans `json:"-"` // those that took 10 us or more, and all major ones
	FaultsN int64 `json:"-"` // all, by the process' own counters; where those were not read the ones of Faults
	Major   Spans `json:"-"`
	Huge    Spans `json:"-"`
	// FaultWaitNS is how long threads slept within faults for something other than the disk: a
	// page's lock, a handler of userfaultfd.
	FaultWaitNS int64 `json:"-"`
	// MmapLock is waits, for reading and writing. Sites are who waits, By who changed the address
	// space meanwhile.
	MmapLock Spans `json:"-"`
	// MmapReclaimNS is how much of the waits for mmap_lock passed while another thread of the
	// target was in reclaim or compaction. A thread that faults in a new mapping holds the lock
	// meanwhile.
	MmapReclaimNS int64 `json:"-"`
	// Bands are when threads of the target were throttled or in reclaim, on the clock of Begin.
	Bands []Band `json:"-"`
	// MmapLetGo lists the last holders: who ended waits for mmap_lock by releasing it, ordered by
	// the length of those waits.
	MmapLetGo []LetGo `json:"-"`

	// Spin is CPU time of threads that look for a lock or for work without sleeping, by samples. N
	// is samples, Sites is where.
	Spin Spans `json:"-"`
	TLB  Spans `json:"-"` // flushes that the target caused; NS by samples, 0 not known
	// NUMA is faults that NUMA balancing made, by the node of who touched the memory. NS is what
	// they took on CPUs or blocked, 0 not known.
	NUMA       Spans     `json:"-"`
	NUMARemote int64     `json:"-"` // of them for memory of another node
	NUMAPages  int64     `json:"-"` // moved meanwhile
	Disk       Spans     `json:"-"`
	Late       Late      `json:"-"`
	Futexes    []Futex   `json:"futexes"` // by time waited, at most 20
	Barriers   []Barrier `json:"-"`
}

// Align says how well the two clocks and records fit.
type Align struct {
	Transitions int64 `json:"transitions"` // of goroutines, checked against their threads' states
	OffCPU      int64 `json:"off_cpu"`     // of them on a thread that was not on a CPU
	Dropped     int64 `json:"dropped"`     // not counted: pile-ups at a generation's start, repeated states
	MinNS       int64 `json:"min_ns"`      // least time from a thread's switch-in to its first event; 0 not known
}

// OldClock is what was found of the clock of a trace before Go 1.22. See docs/join.md, "9. Clocks
// and controls".
type OldClock struct {
	Refused  string  `json:"refused,omitempty"` // why it was not found; "" it was
	ErrorNS  int64   `json:"error_ns"`          // how far off a time may be
	DriftPPM float64 `json:"drift_ppm"`         // of the trace's clock against the kernel's
	Marks    int64   `json:"marks"`             // moments at which a thread had to be on a CPU
	Missed   int64   `json:"missed"`            // of them those at which it was not
	// RandomMissed is the least share missed at any of some random offsets.
	RandomMissed float64 `json:"random_missed"`
	Threads      int     `json:"threads"` // of the runtime that were found among the kernel's
}

// Found reports whether the trace was put on the kernel's clock.
func (c *OldClock) Found() bool { return c != nil && c.Refused == "" }

// Fair is the fair control: of pairs of events of one thread, as far apart as a stop-the-world is
// long, how many look as if something had held the thread up. See docs/join.md, "9. Clocks and
// controls".
type Fair struct {
	Pairs   int64 `json:"pairs"`
	Covered int64 `json:"covered"`
	Edge    int64 `json:"edge"`
}

// ThreadSum is one thread's time.
type ThreadSum struct {
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
	Own    bool   `json:"own,omitempty"` // threads of the target
	NS     int64  `json:"ns"`
}

// Churn is threads made and ended.
type Churn struct {
	Created  int64 `json:"created"`
	Exited   int64 `json:"exited"`
	FirstP50 int64 `json:"first_run_p50_ns"` // ns from creation to first run
	FirstP99 int64 `json:"first_run_p99_ns"`
	FirstMax int64 `json:"first_run_max_ns"`
	LifeP50  int64 `json:"life_p50_ns"` // ns from creation to exit; 0 none
	CPUNS    int64 `json:"-"`           // CPU time of making and ending them, by samples; 0 not known
	// CreateNS and ExitNS are time that threads spent blocked or queued within clone, and within
	// exit, munmap and madvise of stacks.
	CreateNS int64  `json:"create_ns"`
	ExitNS   int64  `json:"exit_ns"`
	Makers   []Site `json:"makers"` // who makes them
}

// Spans sums up stretches of one kind.
type Spans struct {
	N     int64     `json:"n"`
	NS    int64     `json:"ns"`
	Max   int64     `json:"max_ns"`
	Order int       `json:"order,omitempty"` // the largest that was asked for
	Flags []Instead `json:"flags,omitempty"` // by gfp flags, reason, or address space, in words
	Sites []Site    `json:"sites,omitempty"` // user functions in which they happened, at most 10
	By    []Instead `json:"by,omitempty"`    // threads that did them
}

// LetGo is who released a lock of the kernel.
type LetGo struct {
	Who  string // function of the program, or a thread's name
	Call string // in which system call: "fork"
	NS   int64  // others waited for it
}

// Late is how late the kernel's readiness reached the program.
type Late struct {
	Sockets, Timers LateSum
}

// LateSum sums up latenesses in ns.
type LateSum struct {
	N   int64 `json:"n"`
	NS  int64 `json:"ns"`
	P50 int64 `json:"p50_ns"`
	P99 int64 `json:"p99_ns"`
	Max int64 `json:"max_ns"`
}

// Futex is one lock, condition or note by its address.
type Futex struct {
	Address uint64 `json:"address"`
	// Name is of the lock where it can be known: "stack_cache_lock", "runtime: heap", or the
	// function that waits.
	Name     string    `json:"name,omitempty"`
	Kind     FutexKind `json:"kind,omitempty"`
	Site     string    `json:"-"`                  // what accounts call it where no function that waits for it is known
	Inferred bool      `json:"inferred,omitempty"` // Kind is known by how the address was used, not by functions' names
	Waits    int64     `json:"waits"`
	WaitNS   int64     `json:"wait_ns"`
	MaxQueue int       `json:"max_queue"`
	// Interpreter is whose lock it is, if its kind says so. Asked is how many of its waits ran out
	// of time: their threads asked the holder to let go, and waited on.
	Interpreter Interpreter      `json:"interpreter,omitempty"`
	Asked       int64            `json:"asked,omitempty"`
	AskedNS     int64            `json:"asked_ns,omitempty"`
	Sites       []Site           `json:"sites,omitempty"`
	Holders     []Instead        `json:"holders,omitempty"`   // threads, by name
	HolderNS    map[string]int64 `json:"holder_ns,omitempty"` // what holders did meanwhile: leaf -> ns, of the longest waits
	// HolderInferred: some holders are known by who released the lock next, since the one before
	// had let go while others waited.
	HolderInferred bool `json:"-"`
}

// Barrier is one long ragged barrier of the runtime, or one stop-the-world: whom it waited for and
// what kept that thread.
type Barrier struct {
	Begin     int64     `json:"begin_ns"`
	End       int64     `json:"end_ns"`
	Kind      string    `json:"kind"`             // [SafePoint], or of the stop-the-world
	Initiator uint32    `json:"initiator"`        // TID
	Awaited   uint32    `json:"awaited"`          // TID; 0: nobody had to be awaited, or it is not known
	ByNote    bool      `json:"by_note"`          // Awaited is who woke the note; else the thread of the last P
	StoppedNS int64     `json:"stopped_ns"`       // world stopped: Begin to t2
	DelayedNS int64     `json:"delayed_ns"`       // only the initiator: t2 to End
	Leaves    []Instead `json:"leaves"`           // what it was spent on; sums to End - Begin
	Hops      []string  `json:"hops" prose:"yes"` // one line an event, for the proof
	Grade     Grade     `json:"grade"`
	SlowNS    int64     `json:"slow_ns"`
}

// CPUs is the capacity ledger of CPUs: allowed CPUs x wall, added up exactly.
type CPUs struct {
	Allowed       int       `json:"allowed"` // CPUs that the target may use
	WallNS        int64     `json:"wall_ns"`
	TotalNS       int64     `json:"total_ns"`
	RunningNS     int64     `json:"-"` // the target
	ThrottledNS   int64     `json:"-"` // not running it while its group was out of quota
	OthersNS      int64     `json:"-"` // taken by others while its threads were queued
	UnusedNS      int64     `json:"-"` // not used while its work waited
	RestNS        int64     `json:"-"`
	UnknownNS     int64     `json:"-"`
	IdleNS        int64     `json:"-"`                  // nobody ran there at all, of whatever kind above; switches of all tasks recorded
	Unused        []Instead `json:"unused"`             // on what its work waited
	Quota         float64   `json:"quota"`              // CPUs, least over all ancestors; 0 none
	QuotaAt       string    `json:"quota_at,omitempty"` // the cgroup that has it
	QuotaNS       int64     `json:"quota_ns"`           // quota x wall
	GroupOwnNS    int64     `json:"-"`                  // while the switches of all tasks were recorded: what the target ran
	GroupOthersNS int64     `json:"-"`                  // and what others in the group that has the quota ran
	GroupOthers   []Instead `json:"-"`                  // by name
	UsedNS        int64     `json:"used_ns"`            // of it used, by the cgroup's own count, else by what its threads ran; 0 not known
	StealNS       int64     `json:"steal_ns"`           // of the host's CPUs, shown beside
	Stolen        *Stolen   `json:"-"`                  // of the target's time on CPUs; nil where it was not read
}

// Stolen is what the hypervisor took of the target's time on CPUs. Nothing says which thread was
// on a CPU when it was stolen, so it has bounds.
type Stolen struct {
	RanNS   int64 // the target was on CPUs
	StealNS int64 // stolen from these CPUs, whoever was on them
	BusyNS  int64 // these CPUs were not idle, stolen time included
	NS      int64 // estimate: the target's part of BusyNS
	Low     int64 // at least: what others on these CPUs cannot have lost
	High    int64 // at most
}

// Memory is the memory ledger: resident bytes, added up exactly.
type Memory struct {
	RSS         int64 `json:"rss_bytes"`
	Live        int64 `json:"-"` // heap objects, by the runtime
	Idle        int64 `json:"-"` // heap the runtime keeps and has not returned
	Released    int64 `json:"-"` // returned, and still resident
	Huge        int64 `json:"-"` // of what is beyond the runtime's view, held by huge pages
	LazyFree    int64 `json:"-"` // returned by MADV_FREE, for the kernel to take when it wants
	Stacks      int64 `json:"-"`
	Runtime     int64 `json:"-"` // the runtime's other memory
	Files       int64 `json:"-"` // mapped files and shared memory
	Native      int64 `json:"-"` // anonymous memory of a program without Go's runtime: its heap, stacks and mappings
	Unexplained int64 `json:"-"`
	AnonHuge    int64 `json:"anon_huge_bytes"` // beside: AnonHugePages of the process; -1 not known
	Limit       int64 `json:"limit_bytes"`     // effective memory limit of its cgroup; 0 none
	Begin       int64 `json:"begin_bytes"`     // RSS at the recording's start
	End         int64 `json:"end_bytes"`
}

// Held is what the runtime believes to have of the system: Sys less what it released. 0: not known.
func (m *Memory) Held() int64 { return m.Live + m.Idle + m.Stacks + m.Runtime }

// MostStandstills is how many of them a ledger keeps.
const MostStandstills = 20

// Standstill is a stretch in which no thread of the target ran though one was queued or throttled.
type Standstill struct {
	Begin       int64 `json:"begin_ns"` // CLOCK_MONOTONIC
	End         int64 `json:"end_ns"`
	ThrottledNS int64 `json:"throttled_ns"` // of it: a thread was throttled; else one was queued
}
