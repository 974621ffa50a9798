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
	Gaps     []Gap
	Reader   Reader
	Lacks    []string // what this trace's format does not record

	Kernel *Kernel // nil without the kernel's records
	CPUs   *CPUs   // nil without them
	Memory *Memory // nil where the target's memory was not read
	Native bool    // requests are those of threads: there is no Go trace
}

// Requests tells which units of work were found.
type Requests struct {
	Count           int64 // complete ones
	Open            int64 // open at the begin or end of the trace: counted, never explained
	P50, P99, Max   int64 // ns
	Slow            int   // how many are in the slow column
	NotKept         int64 // slow ones that were not kept for explaining
	Limited         int64 // whose explanation met a limit
	Groups          []Group
	LeftOut         []Count // why, how many: "whystall's own", "hijacked", "stream"
	Slowest         []Request
	NoRequestsCause string // why none was found, if none was
}

// Group is the requests with one entry function and kind.
type Group struct {
	Entry         string // entry function: "main.(*Server).serve"
	Kind          string // "net/http", "http2", "task", "region", "grpc", "loop": how boundaries were found
	Boundary      string // in words: "from the end of the wait at main.readLoop to the next"
	Doubt         string // what is not in its times, or who is not among them; "" nothing
	Count         int64
	P50, P99, Max int64
	SlowOver      int64 // the threshold of slow in this group
	Slow          int
	LeftOut       []Count
}

// Count is a number of things by reason.
type Count struct {
	Reason string
	N      int64
}

// Request is one of the slowest.
type Request struct {
	Begin, End int64
	Goroutine  int64
	Entry      string
	Name       string // task or region name, label, method and path where known
	Reason     string // one line: where its time went
	Accounts   []Account
}

// Column is one ledger. Its accounts add up to WallNS exactly.
type Column struct {
	Requests int
	WallNS   int64
	Accounts []Account // by ns, largest first
}

// Account is time with one cause. The key is (Class, Leaf, Actor, Site).
type Account struct {
	Leaf   Leaf   // what the last actor of the chain was doing
	Class  Class  // class of the request's own wait that was followed; ClassOwn: the request's goroutine itself
	Actor  string // entry function of the actor whose time this is; "" for ClassOwn
	Site   string // function where the request's first wait, or its own syscall, stands; of a lock its site
	Detail string // kind of stop-the-world; where the actor waited
	Holder string // of ClassLock: entry function of who had the lock, if that one waited for the actor; "": the actor had it
	NS     int64

	ExcessNS int64 // slow column only: matched excess over usual requests, docs/ledger.md, "8. Slow against usual"
	Requests int   // in how many requests it occurs
	Largest  int   // of how many requests it is the largest account
	Actors   int   // how many goroutines were the actor, at most 4 of each request counted; 0 for ClassOwn
	Holds    int   // how many holds of locks were waited for, each told by who released it, at most 4 of each request counted; 0: none, or not known
	MaxQueue int   // most requests that waited through this account at one instant

	Instead []Instead // for LeafRunnable: what ran instead; sums to NS
	Sites   []Site    // largest sites below: allocation sites, syscall sites, at most 5
	Through []Site    // locks on the path below the first wait: Func is the lock's site, NS what went through it; at most 5; empty for ClassLock
	Holders []Instead // of GC and stop-the-world queues: who ended the waits
	Tags    Tags
}

// Tags are shares of an account's ns that have a property. They overlap.
type Tags struct {
	SilenceNS  int64 // no event anywhere for 20 ms while something was runnable
	GCNS       int64 // while the concurrent mark phase was open
	STWNS      int64 // overlap with a stop-the-world range
	AssistNS   int64
	SweepNS    int64
	NewbornNS  int64 // runnable since its creation; of a thread also: its maker, put off its CPU by it at that moment
	PreemptNS  int64 // runnable since it was preempted
	SyscallNS  int64 // runnable since a syscall
	HandoffNS  int64 // lock: holder had been woken and was not running yet
	InferredNS int64 // the holder is inferred by class, not by instance
	MeasuredNS int64 // joined: who was awaited and what held it are both events of the kernel or the runtime; not by coverage ("no thread of the process ran"), nor inferred
	SocketNS   int64 // joined: data was there, and the goroutine that waits for them not yet runnable; any leaf
	DueNS      int64 // joined: the timer was due, likewise
	BarrierNS  int64 // joined: in a ragged barrier of the runtime; as STWNS a path, not a leaf
	PermitNS   int64 // the one waited for was at another request, and held what both need
	ServingNS  int64 // the one waited for worked for others, which it woke before
	AskedNS    int64 // of it, on the network, for an answer that it had asked for itself
	EnoughNS   int64 // joined as a whole (Kernel.Whole): every thread of the process that wanted a CPU had one, so that nothing took longer for want of one
	Slices     int64 // number of runnable stretches
	GCSlices   int64 // of them, while marking
}

// Instead is what held the Ps while somebody was runnable.
type Instead struct {
	Who  string // entry function; "GC worker (dedicated)", "GC worker (idle)", "idle P", "unknown"
	Kind string // "request", "background", "gc", "sweep", "runtime", "idle", "unknown"; joined, of Ps whose threads were not at work: the [Leaf] of what they lacked
	NS   int64
}

// Lacked tells of Ps that were held by threads which were not at work: Kind is the leaf of what they lacked, of [LeafNoCPU] and [LeafAsleep] Who is behind
// whom and in what, else it is who held the P.
func (i *Instead) Lacked() bool {
	switch Leaf(i.Kind) {
	case LeafThrottled, LeafNoCPU, LeafAsleep, LeafFault, LeafReclaim, LeafMemcg, LeafCompaction, LeafMmapLock, LeafTLB, LeafDisk, LeafNUMA:
		return true
	}
	return false
}

// Site is a place in the program and the time spent by it.
type Site struct {
	Func string
	File string
	Line int
	Via  string // of a syscall or a network wait: the outermost function of os, net, syscall or internal/poll below Func: "os.(*File).Write"; "" else
	NS   int64
	N    int64 // times: calls, allocations that assisted, waits
}

// Capacity is Ps x wall, added up exactly.
type Capacity struct {
	Procs       int   // GOMAXPROCS; the largest if it changed
	WallNS      int64 // of the recording
	TotalNS     int64 // Ps x wall
	RunningNS   int64 // goroutines of the program
	GCNS        int64 // GC workers, dedicated and idle, and assists
	SyscallNS   int64 // a P held by a goroutine in a syscall
	StoppedNS   int64 // with the world
	IdleWorkNS  int64 // idle while a goroutine was runnable
	IdleNS      int64
	UnknownNS   int64
	RunnableMax int // most goroutines runnable at once
	RunnableAvg float64
	IdleGCNS    int64 // of GCNS: idle-priority workers, which give way
	CPUs        int   // of the host, when known; 0
	Running     []Site
}

// STW is one stop-the-world. From the range's begin to LastStop Ps were being stopped, until Start
// the world was stopped, from there to End only the initiator was delayed.
type STW struct {
	Begin, LastStop, Start, End int64 // LastStop 0: no P had to be awaited or the format does not tell
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
	N      int64
	NS     int64
	SlowNS int64 // of slow requests' time inside one
	FewNS  int64 // of NS, with fewer running goroutines than Ps
	Max    int64
}

// Moments are what takes microseconds where threads get a CPU when they want one: socket calls, without those that met a
// stop-the-world (formats before 1.22 do not tell how long the short ones are: 10 us each is assumed), and how long
// idle Ps leave work waiting.
type Moments struct {
	N, NS        int64
	Long, LongNS int64 // of them those of 2 ms or more
}

// Gap is what was lost.
type Gap struct {
	Begin, End int64
	Reason     string
}

// Reader says what reading cost and met.
type Reader struct {
	Format                                             int
	Bytes, Events, Generations, Repaired, Experimental int64
	Visits                                             int64 // segments looked at to explain
	MaxHeap                                            int64 // bytes of heap objects, the most that was seen
	NS                                                 int64
}

// NoGoTrace is why a Go program without a trace has no requests.
const NoGoTrace = "there is no execution trace that tells of goroutines, and a Go program's threads serve whichever of them can run"
