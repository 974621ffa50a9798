package account

import "github.com/whystall/whystall/internal/evidence/kernel"

// What rooms decide by. The values are in the JSON of reports, so that they stay as they are. All
// other text of a Result is a name of somebody else's, or is marked as prose: no code reads it.

// InsteadKind says what an [Instead] is.
type InsteadKind string

// Kinds of who held a P or a CPU. Beside them a kind may be a [Leaf]: see [Instead.Lacked].
const (
	InsteadRequest    InsteadKind = "request"    // another request
	InsteadBackground InsteadKind = "background" // a goroutine of the program that serves no request
	InsteadGC         InsteadKind = "gc"         // a worker of the collector
	InsteadSweep      InsteadKind = "sweep"      // an allocation that sweeps
	InsteadRuntime    InsteadKind = "runtime"    // the runtime's own goroutines
	InsteadIdle       InsteadKind = "idle"       // nobody
	InsteadUnknown    InsteadKind = "unknown"
	InsteadOwn        InsteadKind = "own"       // other threads of the target
	InsteadNeighbour  InsteadKind = "neighbour" // another program

	// Kinds of what lists are of that have one kind each.
	InsteadThread    InsteadKind = "thread"    // by thread
	InsteadGoroutine InsteadKind = "goroutine" // by entry function
	InsteadFlag      InsteadKind = "flag"      // by gfp flags, reason, address space or file
	InsteadHolder    InsteadKind = "holder"    // by who had a lock
	InsteadLock      InsteadKind = "lock"      // by lock
	// InsteadInterpreter is the lock of an interpreter.
	InsteadInterpreter InsteadKind = "interpreter's lock"
	InsteadWait        InsteadKind = "wait" // by what is waited for
)

// FutexKind says what a futex is of.
type FutexKind string

// Kinds of futexes.
const (
	FutexMutex     FutexKind = "mutex" // a lock: who held it is who matters
	FutexCondition FutexKind = "condition"
	FutexJoin      FutexKind = "join" // the end of a thread
	FutexBarrier   FutexKind = "barrier"
	FutexSemaphore FutexKind = "semaphore"
	FutexRuntime   FutexKind = "runtime lock" // of Go's runtime
	FutexNote      FutexKind = "note"         // of Go's runtime: a note or a semaphore
	FutexUnknown   FutexKind = "not known"
	// FutexInterpreter is the one lock of an interpreter, all of whose futexes are one here.
	FutexInterpreter FutexKind = "interpreter's lock"
)

// Lock reports whether the futex is a lock.
func (k FutexKind) Lock() bool {
	return k == FutexMutex || k == FutexRuntime || k == FutexInterpreter
}

// Interpreter is a runtime of which one thread at a time runs the program's code.
type Interpreter string

// Interpreters.
const (
	CPython Interpreter = "CPython"
	Ruby    Interpreter = "Ruby"
)

// Lock is the name of its lock.
func (i Interpreter) Lock() string {
	switch i {
	case CPython:
		return "Python's GIL"
	case Ruby:
		return "Ruby's GVL"
	}
	return "the interpreter's lock"
}

// SafePoint is the kind of a [Barrier] at which each P runs a function in turn. The others stop the
// world; their kind is the runtime's word for why.
const SafePoint = "safe-point"

// Grade says how sure the reason of a pause is.
type Grade string

// Grades, the surest first.
const (
	GradeProven    Grade = "proven"
	GradeSupported Grade = "supported"
	GradePossible  Grade = "possible"
)

// GroupLoop is the kind of groups of which no server is known: requests are what a goroutine does
// between two waits at the same place.
const GroupLoop = "loop"

// None says why there are no requests, where code must know: the sentence is for people.
type None string

// NoneNoTrace is of a Go program without an execution trace: its threads serve whichever goroutine
// can run, so that no thread's work is a request.
const NoneNoTrace None = "no Go trace"

// Recorder is the name that records give to the recorder's own threads.
const Recorder = kernel.Recorder

// Words of Go's runtime for why it stops the world (stwReasonStrings), as traces of all formats
// have them.
const (
	StopMarkTermination  = "GC mark termination"
	StopSweepTermination = "GC sweep termination"
	StopGoroutineProfile = "goroutine profile"
	StopProfileCleanup   = "goroutine profile cleanup"
	StopAllStacks        = "all goroutines stack trace"
	StopAllStacks1       = "all goroutine stack trace" // the same in formats before 1.22
	StopReadMemStats     = "read mem stats"
	StopGOMAXPROCS       = "GOMAXPROCS"
	StopStartTrace       = "start trace"
	StopStopTrace        = "stop trace"
)

// StopsForGC reports whether a stop-the-world of the kind is part of a GC cycle.
func StopsForGC(kind string) bool { return kind == StopMarkTermination || kind == StopSweepTermination }

// OfItsStack ends the name of a site at which a thread that ends returns its own stack: "munmap of
// its stack, as the thread ends".
const OfItsStack = " of its stack, as the thread ends"
