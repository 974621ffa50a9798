package account

// Result is the accounts of one recording. Times are the trace's clock in nanoseconds.
type Result struct {
	Begin, End int64 // of what was read
	Monotonic  bool  // Begin and End are CLOCK_MONOTONIC
	Wall       bool  // WallOffset is known
	WallOffset int64 // add to a time for nanoseconds of the Unix epoch

	Requests Requests
	Slow     Column // explained in full
	Median   Column // explained in full: 40th to 60th percentile of their group
	All      Column // every complete request, by its own states and the class of its first wait
	Capacity Capacity

	STWs     []STW // those of at least 100 us, longest first, at most 1000, ours among them
	GC       GC
	Sweeps   []Sweep // largest first, at most 100
	Locks    []Lock  // by ns of slow requests
	Silences Silences
	Sockets  Moments // reads and writes of sockets of all goroutines, which never block their thread
	Wakes    Moments // stretches in which work waited beside an idle P
	Naps     Naps
	Gaps     []Gap
	Reader   Reader
	Lacks    []Lack // what this trace's format does not record

	Series Series // when requests were, and what else was then
	// Stories are the slowest requests in full, in the order of Requests.Slowest; nil where nobody
	// asked for them.
	Stories []*Story
	// Others are slow requests in full that are not among Requests.Slowest: one of the longest of
	// those whose largest account is the same, for each such account up to MostOthers; likewise.
	Others   []*Story
	Sketches Sketches // likewise
	Waits    Waits    // likewise
	Curves   []Curve  // likewise

	Kernel *Kernel // nil without the kernel's records
	// Profiled divides the process' CPU time by the Go CPU profile of the same moment, where the
	// kernel's records have no samples; nil without one. It cannot say what the kernel did.
	Profiled *OnCPU
	CPUs     *CPUs   // nil without them
	Memory   *Memory // nil where the target's memory was not read
	Native   bool    // requests are those of threads: there is no Go trace
	Loop     Loop
}

// Loop is a loop around many sockets whose one thread has all requests: how often one of them made
// the thread wait for something else than work, for 2 ms or more, and how often the thread then
// went on to another socket without a wait. Busy and BusyBehind are the same of requests that
// computed for 2 ms or more. Long are the thread's turns that computed for so long, LongNS in all;
// Timed of them were no requests, but what it does when a timer goes off.
type Loop struct {
	TID              uint32 // 0: the requests have no such loop, or several
	Held, Behind     int64
	Busy, BusyBehind int64
	Long, Timed      int64
	LongNS           int64
}

// Requests says which units of work were found.
type Requests struct {
	Count           int64     `json:"count"` // complete ones
	P50             int64     `json:"p50_ns"`
	P99             int64     `json:"p99_ns"`
	Max             int64     `json:"max_ns"`
	Slow            int       `json:"slow"`                   // how many are in the slow column
	Open            int64     `json:"open"`                   // under way at the start or end of the trace: counted, never explained
	NotKept         int64     `json:"not_kept"`               // slow ones that were not kept for explaining
	Limited         int64     `json:"limited"`                // whose explanation met a limit
	LeftOut         []Count   `json:"left_out"`               // why, how many: "whystall's own", "hijacked", "stream"
	NoRequestsCause string    `json:"none_cause" prose:"yes"` // why none was found; "" if some were
	None            None      `json:"-"`                      // the same for code; "" if nothing follows from it
	Groups          []Group   `json:"-"`
	Slowest         []Request `json:"-"`
}

// Group is the requests with one entry function and kind.
type Group struct {
	Entry string `json:"entry"` // entry function: "main.(*Server).serve"
	// Kind is how boundaries were found: "net/http", "http2", "task", "region", "grpc", "loop".
	Kind     string  `json:"kind"`
	Boundary string  `json:"boundary" prose:"yes"`        // in words: "from the end of the wait at main.readLoop to the next"
	Doubt    string  `json:"doubt,omitempty" prose:"yes"` // what is not in its times, or who is not among them; "" nothing
	Count    int64   `json:"count"`
	P50      int64   `json:"p50_ns"`
	P99      int64   `json:"p99_ns"`
	Max      int64   `json:"max_ns"`
	SlowOver int64   `json:"slow_over_ns"` // the threshold of slow in this group
	Slow     int     `json:"slow"`
	LeftOut  []Count `json:"left_out_why"`
	OnCPU    *OnCPU  `json:"on_cpu,omitempty"` // of all its requests' own time on CPUs; nil without samples
}

// Count is a number of things by reason.
type Count struct {
	Reason string `json:"reason" prose:"yes"`
	N      int64  `json:"count"`
}

// Request is one of the slowest.
type Request struct {
	Begin     int64     `json:"begin_ns"`
	End       int64     `json:"-"`
	Entry     string    `json:"entry"`
	Name      string    `json:"name,omitempty"` // task or region name, label, method and path where known
	Goroutine int64     `json:"goroutine"`
	Reason    string    `json:"reason" prose:"yes"` // one line: where its time went
	Accounts  []Account `json:"-"`
	OnCPU     *OnCPU    `json:"on_cpu,omitempty"` // nil with fewer than LeastSamples
}

// Column is one ledger. Its accounts add up to WallNS exactly.
type Column struct {
	Requests int
	WallNS   int64
	Accounts []Account // by ns, largest first
	OnCPU    *OnCPU    // of all accounts on CPU, whoever the actor is; nil without samples
}

// Account is time with one cause. The key is (Class, Leaf, Actor, Site).
type Account struct {
	Leaf Leaf  `json:"cause"` // what the last actor of the chain was doing
	NS   int64 `json:"ns"`
	// Class is of the request's own wait that was followed. ClassOwn: the request's goroutine
	// itself.
	Class Class  `json:"class"`
	Actor string `json:"actor,omitempty"` // entry function of the actor whose time this is; "" for ClassOwn
	// Site is the function where the request's first wait stands, or its own syscall; of a lock its
	// site.
	Site   string `json:"site,omitempty"`
	Detail string `json:"detail,omitempty"` // kind of stop-the-world; where the actor waited
	// Holder, of ClassLock, is the entry function of who had the lock, if that one waited for the
	// actor. "": the actor had it.
	Holder string `json:"holder,omitempty"`

	// ExcessNS, of the slow column only, is the matched excess over usual requests: docs/ledger.md,
	// "8. Slow against usual".
	ExcessNS int64 `json:"excess_ns,omitempty"`
	Requests int   `json:"requests,omitempty"` // in how many requests it occurs
	Largest  int   `json:"largest,omitempty"`  // in how many requests it is the largest account
	// Events is the largest number of requests that have at least half of the account's average and
	// do not overlap in time. So many separate events it stands on at least: one wait that many
	// requests share is one.
	Events int `json:"-"`
	// Actors is how many goroutines were the actor, at most 4 of each request counted; 0 for
	// ClassOwn.
	Actors int `json:"actors,omitempty"`
	// Holds is how many holds of locks were waited for, each known by who released it, at most 4 of
	// each request counted; 0: none, or not known.
	Holds    int `json:"-"`
	MaxQueue int `json:"max_queue,omitempty"` // most requests that waited through this account at one instant

	Instead []Instead `json:"instead,omitempty"` // for LeafRunnable: what ran instead; sums to NS
	Sites   []Site    `json:"sites,omitempty"`   // largest sites below: allocation sites, syscall sites, at most 5
	// Through is locks on the path below the first wait, at most 5; empty for ClassLock. Func is
	// the lock's site, NS what went through it.
	Through []Site    `json:"through,omitempty"`
	Holders []Instead `json:"holders,omitempty"` // of GC and stop-the-world queues: who ended the waits
	Tags    Tags      `json:"-"`
	// OnCPU, of LeafOnCPU, divides the account by its own samples; nil if none fell into it. See
	// [Column.OnCPUOf] for accounts with few.
	OnCPU *OnCPU `json:"-"`
}

// Tags are shares of an account's ns that have a property. They overlap.
type Tags struct {
	SilenceNS int64 `json:"silence_ns,omitempty"` // no event anywhere for 20 ms while something was runnable
	GCNS      int64 `json:"gc_ns,omitempty"`      // while the concurrent mark phase was open
	STWNS     int64 `json:"stw_ns,omitempty"`     // overlap with a stop-the-world range
	BarrierNS int64 `json:"barrier_ns,omitempty"` // joined: in a ragged barrier of the runtime; as STWNS a path, not a leaf
	// MeasuredNS, joined: who was awaited and what held it are both events of the kernel or the
	// runtime. It is not inferred, nor known by coverage ("no thread of the process ran").
	MeasuredNS int64 `json:"measured_ns,omitempty"`
	// SocketNS, joined: data was there, and the goroutine that waits for them not yet runnable; any
	// leaf.
	SocketNS   int64 `json:"socket_ready_ns,omitempty"`
	DueNS      int64 `json:"timer_due_ns,omitempty"` // joined: the timer was due, likewise
	InferredNS int64 `json:"inferred_ns,omitempty"`  // the holder is inferred by class, not by instance
	HandoffNS  int64 `json:"handoff_ns,omitempty"`   // lock: holder had been woken and was not running yet

	AssistNS int64 `json:"-"`
	SweepNS  int64 `json:"-"`
	// NewbornNS: runnable since its creation. Of a thread also: its maker, which it put off its CPU
	// then.
	NewbornNS int64 `json:"-"`
	PreemptNS int64 `json:"-"` // runnable since it was preempted
	SyscallNS int64 `json:"-"` // runnable since a syscall
	PermitNS  int64 `json:"-"` // the one waited for was at another request, and held what both need
	ServingNS int64 `json:"-"` // the one waited for worked for others, which it woke before
	AskedNS   int64 `json:"-"` // of it, on the network, for an answer that it had asked for itself
	// InterpreterNS: waiting for the one lock of an interpreter, or for a thread that did.
	InterpreterNS int64 `json:"-"`
	// SafepointNS: waiting for the end of a safepoint of a Java virtual machine; ReachingNS: of it,
	// while threads had not reached it; MonitorNS: waiting for a monitor of Java's.
	SafepointNS int64 `json:"-"`
	ReachingNS  int64 `json:"-"`
	MonitorNS   int64 `json:"-"`
	// EnoughNS, joined as a whole (Kernel.Whole): every thread of the process that wanted a CPU had
	// one, so nothing took longer for want of one.
	EnoughNS int64 `json:"-"`
	Slices   int64 `json:"-"` // number of runnable stretches
	GCSlices int64 `json:"-"` // of them, while marking
}

// Instead is what held the Ps while somebody was runnable.
type Instead struct {
	// Who is an entry function; "GC worker (dedicated)", "GC worker (idle)", "idle P", "unknown".
	Who string `json:"who"`
	// Kind says what Who is. Joined, of Ps whose threads were not at work, it is the [Leaf] of what
	// they lacked.
	Kind InsteadKind `json:"kind"`
	NS   int64       `json:"ns"`
}

// Leaf is what the thread lacked that held the P. It has a meaning only if Lacked.
func (i *Instead) Leaf() Leaf { return Leaf(i.Kind) }

// Lacked reports whether the entry stands for Ps whose threads were not running. Kind is then the
// leaf of what they lacked. Who is the thread in front (LeafNoCPU), the function slept in
// (LeafAsleep), or otherwise the holder of the P.
func (i *Instead) Lacked() bool {
	switch i.Leaf() {
	case LeafThrottled, LeafNoCPU, LeafAsleep, LeafFault, LeafReclaim, LeafMemcg, LeafCompaction,
		LeafMmapLock, LeafTLB, LeafDisk, LeafNUMA, LeafKernelLock:
		return true
	}
	return false
}

// Site is a place in the program and the time spent by it.
type Site struct {
	Func string `json:"func"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Via, of a syscall or a network wait, is the outermost function of os, net, syscall or
	// internal/poll below Func: "os.(*File).Write"; "" else.
	Via string `json:"via,omitempty"`
	NS  int64  `json:"ns"`
	N   int64  `json:"n,omitempty"` // times: calls, allocations that assisted, waits
}

// Capacity is Ps x wall, added up exactly.
type Capacity struct {
	Procs       int     `json:"procs"`          // GOMAXPROCS; the largest if it changed
	CPUs        int     `json:"cpus,omitempty"` // of the host; 0 not known
	WallNS      int64   `json:"wall_ns"`        // of the recording
	TotalNS     int64   `json:"total_ns"`       // Ps x wall
	RunningNS   int64   `json:"-"`              // goroutines of the program
	GCNS        int64   `json:"-"`              // GC workers, dedicated and idle, and assists
	SyscallNS   int64   `json:"-"`              // a P held by a goroutine in a syscall
	StoppedNS   int64   `json:"-"`              // with the world
	IdleWorkNS  int64   `json:"-"`              // idle while a goroutine was runnable
	IdleNS      int64   `json:"-"`
	UnknownNS   int64   `json:"-"`
	RunnableMax int     `json:"runnable_max"` // most goroutines runnable at once
	RunnableAvg float64 `json:"runnable_avg"`
	IdleGCNS    int64   `json:"-"` // of GCNS: idle-priority workers, which give way
	Running     []Site  `json:"-"`
}

// STW is one stop-the-world. From Begin to LastStop Ps were being stopped, until Start the world
// was stopped, and from there to End only the initiator was delayed.
type STW struct {
	Begin, LastStop, Start, End int64 // LastStop 0: no P had to be awaited, or the format does not say
	Kind                        string
	Goroutine                   int64
	Initiator                   string // entry function of the goroutine that stopped the world
	Site                        string // what it was doing: first frame outside the runtime's own stopping
	Awaited                     string // entry function of the goroutine that stopped last
	AwaitedStack                []string
	SlowNS                      int64 // of slow requests' time booked to it
	SlowRequests                int   // how many slow requests lost time to it
	Ours                        bool  // the trace's own start or end
}

// GC sums up garbage collection.
type GC struct {
	Cycles       int64
	MarkNS       int64   // time with the mark phase open
	PerSecond    float64 // cycles
	Forced       int64   // of Cycles, those that runtime.GC or debug.FreeOSMemory began
	GoalMin      int64   // bytes
	GoalMax      int64
	LiveMax      int64 // largest heap seen, dead objects not yet swept included
	Marked, Goal int64 // averages over the cycles: heap found live, and the goal that followed from it; 0 not known
	AssistNS     int64 // of all goroutines
	AssistSites  []Site
	TriggerSites []Site // who started cycles
	DedicatedNS  int64  // workers' running time
	IdleNS       int64
}

// Sweep is one sweep range.
type Sweep struct {
	Begin, End       int64
	Swept, Reclaimed int64 // bytes
	Goroutine        int64
	Site             string
	SlowNS           int64
}

// Lock is a class of lock sites.
type Lock struct {
	Sites     []string // lock and unlock sites, program names
	Stack     []Site   // frames of the most frequent waiting stack
	SlowNS    int64    // all time slow requests waited for it
	Waits     int64    // of all goroutines
	WaitNS    int64
	Handoffs  int64 // woken waiter had to wait for a P while everybody else waited: starvation mode
	MaxQueue  int
	Holders   []Instead
	HolderNS  map[string]int64 // what holders did: leaf -> ns
	Sleeping  []Site           // where holders slept or were in syscalls
	UnseenNS  int64
	BetweenNS int64
}

// Silences are stretches without an event of any thread while something was runnable.
type Silences struct {
	N      int64 `json:"count"`
	NS     int64 `json:"ns"`
	SlowNS int64 `json:"slow_ns"` // of slow requests' time inside one
	FewNS  int64 `json:"-"`       // of NS, with fewer running goroutines than Ps
	Max    int64 `json:"max_ns"`
}

// Moments sum up what takes microseconds as long as threads get a CPU when they want one. That is
// calls on sockets, without those that met a stop-the-world, and the time for which idle Ps leave
// work waiting. Formats before 1.22 do not have the length of short calls: 10 us each is assumed.
type Moments struct {
	N, NS        int64
	Long, LongNS int64 // of them those of 2 ms or more
}

// Naps are short sleeps of goroutines between two looks for something. Each follows one
// at the same place, and the goroutine waited for nothing else between.
type Naps struct {
	N     int64
	Wakes int64  // ends of waits of all goroutines, these among them
	Sites []Site // who sleeps, by number, at most 5
}

// Lack is what a trace's format does not record.
type Lack struct {
	Text   string `prose:"yes"`
	OffCPU bool   // whether running goroutines were on a CPU: the kernel's records have that
}

// Gap is what was lost.
type Gap struct {
	Begin, End int64
	Reason     string `prose:"yes"`
}

// Reader says what reading cost and met.
type Reader struct {
	Format                                             int
	Bytes, Events, Generations, Repaired, Experimental int64
	Visits                                             int64 // segments looked at to explain
	MaxHeap                                            int64 // bytes of heap objects, the most that was seen
	NS                                                 int64
}
