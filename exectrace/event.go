package exectrace

// Time is a moment in nanoseconds. The clock that it is read from depends on the trace: see
// [Clock].
type Time int64

// GoID is the runtime's number of a goroutine.
type GoID int64

// ProcID is the number of a P, a slot of GOMAXPROCS.
type ProcID int32

// ThreadID is the number of an M. On Linux, and from format 1.22 on, it is the operating system's
// thread id as the traced process sees it (in its own pid namespace). Earlier formats have none.
type ThreadID int64

// The values of what an event has none of.
const (
	NoGoroutine GoID     = -1
	NoProc      ProcID   = -1
	NoThread    ThreadID = -1
)

// StackID and StringID name a stack and a string of one [Trace]. They are interned by content over
// the whole trace: equal ids mean equal content, and equal content means equal ids. Zero is "no
// stack" and "".
type (
	StackID  uint32
	StringID uint32
)

// Kind says what happened in an Event.
type Kind uint8

const (
	KindNone Kind = iota

	// KindSync starts a generation, and ends the trace. Formats before 1.22 have one at each end.
	KindSync

	// KindGap: events are missing from Time until Time(Arg[0]); [Trace.Gaps] has the reason. What
	// was known of any actor's state does not hold in between: restart each actor at its first
	// event or status from there on. The loss started at Time(Arg[1]). That is earlier than Time
	// where the loss showed only in what came after: what actors are said to have done since then
	// is not sure either.
	KindGap

	// KindGoroutine: G went From one state To another. A status that only repeats what is known
	// (each generation starts with some) has From == To.
	KindGoroutine

	// KindProc: Proc went From one state To another: running, idle, or in a syscall. A P that
	// enters a syscall with its goroutine, and leaves it with the goroutine, has no event of its
	// own for that: the goroutine's event has the P's number in P. Only a theft or a stop is an
	// event of the P, From Syscall To Idle. Of a theft, Arg[0] is the thread that lost the P, and M
	// is the thief. Of a start in formats before 1.22, Arg[0] is the runtime's own number of the
	// thread that took the P, which is not the operating system's. As with goroutines, a status
	// (Reason is ReasonStatus) only repeats what is known.
	KindProc

	// KindRangeBegin and KindRangeEnd enclose what Range says. KindRangeActive says that the range
	// was open already when the generation started.
	KindRangeBegin
	KindRangeActive
	KindRangeEnd

	// KindMetric: Metric has the value Arg[0] from now on.
	KindMetric

	// KindLabel: G gets the label Name.
	KindLabel

	// KindSample is a CPU profile sample: Stack was on G, P and M.
	KindSample

	// KindTaskBegin: task Arg[0], child of task Arg[1] (0 none), type Name.
	KindTaskBegin
	KindTaskEnd

	// KindRegionBegin and KindRegionEnd: region Name of task Arg[0] (0 the background task) on G.
	KindRegionBegin
	KindRegionEnd

	// KindLog: in task Arg[0], category Name, message StringID(Arg[1]).
	KindLog

	kindCount
)

// State of a goroutine or of a P.
type State uint8

const (
	Undetermined State = iota // before its first event
	NotExist                  // before its creation, after its end
	Runnable
	Running
	Waiting
	Syscall
	Idle // a P without work
)

// Reason says why a goroutine left a state, as far as the trace has it.
type Reason uint8

const (
	ReasonNone  Reason = iota
	ReasonOther        // not in this list: Name has the runtime's word

	// Why it waits.
	ReasonForever
	ReasonNetwork
	ReasonSelect
	ReasonSync // sync.Mutex, RWMutex, WaitGroup, and the runtime's own semaphores
	ReasonCond
	ReasonSleep
	ReasonChanSend
	ReasonChanRecv
	ReasonAssistCredit // GC mark assist wait for work
	ReasonSweeperIdle
	ReasonSystem // system goroutine wait
	ReasonPreempted
	ReasonDebugCall
	ReasonUntilGCEnds
	ReasonCoroutine // a coroutine switch: iter.Pull
	ReasonGCWorkerIdle
	ReasonSynctest

	// Why it stopped running and is runnable.
	ReasonYield     // runtime.Gosched
	ReasonTimeslice // preempted

	// Why it became runnable.
	ReasonUnblock
	ReasonCreate
	ReasonSyscallBlocked // came back from a syscall without its P
	ReasonSyscall        // entered or left a syscall
	ReasonStatus         // first seen
	ReasonStart
	ReasonEnd
	reasonCount
)

// Range is what a range encloses.
type Range uint8

const (
	RangeNone   Range = iota
	RangeSTW          // on G: stop-the-world; Name has its kind ("GC mark termination")
	RangeGC           // whole process: concurrent mark
	RangeAssist       // on G: mark assist
	RangeSweep        // on P: sweep; its end has the bytes swept in Arg[0], reclaimed in Arg[1]
	rangeCount
)

// Metric is a quantity of the runtime.
type Metric uint8

const (
	MetricNone       Metric = iota
	MetricHeapLive          // bytes
	MetricHeapGoal          // bytes
	MetricGOMAXPROCS        // Ps
	metricCount
)

// Event is one event. The fields that its Kind does not use have their zero or No... value.
//
// Time never decreases. An event that had to wait for another, whose number comes before its own,
// has that one's time. P and On are those before the event: of a KindProc start P is NoProc, of a
// goroutine's start On is NoGoroutine.
//
// G, P and M are the actors that the event is about; On is the goroutine that made it happen. For a
// goroutine that blocks the two are the same. For a goroutine that is made runnable, G is the one
// woken, On the waker (NoGoroutine when a P or a thread without a goroutine did it), P and M the
// waker's.
type Event struct {
	Time    Time
	G       GoID
	On      GoID
	M       ThreadID
	Arg     [2]uint64
	P       ProcID   // the P the event happened on
	Proc    ProcID   // KindProc, RangeSweep: the P the event is about
	Stack   StackID  // of G: where it blocked or, of a creation, starts; else where this happened
	OnStack StackID  // of On, where it woke or created G
	Name    StringID // task, region, label, log category, stop-the-world kind, unknown reason
	Slot    uint32   // dense number of G, from 0; reused after its end; NoSlot without G
	OnSlot  uint32   // the same of On
	Kind    Kind
	From    State
	To      State
	Reason  Reason
	Range   Range
	Metric  Metric
}

// NoSlot is the Slot of NoGoroutine.
const NoSlot = ^uint32(0)

// Frame is one call of a stack, innermost first.
type Frame struct {
	PC   uint64
	Func string
	File string
	Line int
}

// Gap is a stretch of time for which the trace lost something. What no Gap covers is there.
type Gap struct {
	Begin, End Time
	Reason     string // "a batch of thread 4121 is cut off at offset 81920"
	Bytes      int64  // of the file that could not be used, when known
}

// Clock says what the trace's Time is.
type Clock struct {
	// Monotonic: Time is the machine's CLOCK_MONOTONIC (format 1.22 and later, Linux). Otherwise it
	// counts from the trace's first event.
	Monotonic bool
	// WallNS - MonoNS is what to add to a Time to get nanoseconds of the Unix epoch. Only with Wall
	// (format 1.25 and later).
	Wall           bool
	MonoNS, WallNS int64
}

// Stats counts what was read.
type Stats struct {
	Bytes        int64
	Events       int64 // those handed out
	Batches      int64
	Generations  int64
	Repaired     int64 // events held back as their sequence number, not their time, was not due
	Experimental int64 // batches and events of experiments, skipped
	Dropped      int64 // events that could be decoded but not placed
}
