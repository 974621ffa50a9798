package account

// Leaf is what the last actor of a chain was doing: the cause to which an instant is booked.
type Leaf string

// Leaves, in the field's words. They are the JSON's account causes.
const (
	LeafOnCPU         Leaf = "on CPU" // called running by the runtime; whether it was on a CPU needs kernel evidence
	LeafRunnable      Leaf = "runnable in Go"
	LeafSTW           Leaf = "stop-the-world" // Detail: kind, the runtime's word
	LeafSTWWork       Leaf = "stop-the-world work"
	LeafAssist        Leaf = "mark assist"
	LeafAssistCredit  Leaf = "mark assist (waiting for credit)"
	LeafSweep         Leaf = "sweep"
	LeafMarkTermQueue Leaf = "mark termination, queued"
	LeafGCStartQueue  Leaf = "GC start, queued"
	LeafSTWQueue      Leaf = "stop-the-world, queued"
	LeafStackScan     Leaf = "stack scan"
	LeafNetwork       Leaf = "network"
	LeafTimer         Leaf = "timer"
	LeafSyscall       Leaf = "syscall"
	LeafLockBetween   Leaf = "lock, between holders"
	LeafLockUnseen    Leaf = "lock, holder unseen"
	LeafRuntimeIdle   Leaf = "runtime idle"
	LeafPreviousEnd   Leaf = "previous request's end"
	LeafGap           Leaf = "unexplained (gap)"
	LeafOrder         Leaf = "unexplained (order)"
	LeafLookback      Leaf = "unexplained (look-back)"
	LeafLimit         Leaf = "unexplained (limit)"
	LeafNotWoken      Leaf = "unexplained (not woken)"
	LeafBeforeTrace   Leaf = "unexplained (before trace)"
	LeafBornOutside   Leaf = "unexplained (born outside)"
	LeafUnknown       Leaf = "unexplained (state unknown)"

	// What the kernel's records show. The Detail of LeafNoCPU is who had the CPU: a command,
	// OwnThreads, WakeUpLatency or Recorder. The Detail of LeafAsleep is the function slept in.
	LeafThrottled  Leaf = "throttled"
	LeafNoCPU      Leaf = "no CPU"
	LeafAsleep     Leaf = "asleep"
	LeafLatePoll   Leaf = "late poll"
	LeafFault      Leaf = "fault"
	LeafReclaim    Leaf = "direct reclaim"
	LeafMemcg      Leaf = "memory cgroup reclaim"
	LeafCompaction Leaf = "compaction"
	LeafMmapLock   Leaf = "mmap_lock"
	LeafTLB        Leaf = "TLB flush"
	LeafDisk       Leaf = "disk"
	LeafNUMA       Leaf = "NUMA migration"
	LeafKernelLock Leaf = "kernel lock" // asleep for it; who spins is on a CPU
	LeafPipe       Leaf = "pipe"
	LeafLock       Leaf = "lock" // of native code: its holder is not known
	// Data lay in a socket, and the thread of the loop that reads it computed something else: in
	// turns of less than 2 ms, or in one of more.
	LeafUnread     Leaf = "unread in its socket"
	LeafBehindTurn Leaf = "unread in its socket, behind a long turn"
	LeafMissing    Leaf = "unexplained (kernel records missing)"

	LeafOther Leaf = "another goroutine" // column All only: a wait that was not followed
)

// Class is the kind of the request's own wait through which an account was reached.
type Class string

// Classes of waits.
const (
	ClassOwn     Class = "own"     // not through a wait: the request's own goroutine
	ClassMessage Class = "message" // channel, select, WaitGroup, Cond, coroutine
	ClassLock    Class = "lock"
	ClassOutside Class = "outside" // network, timer
	ClassRuntime Class = "runtime" // GC and the scheduler's own
	ClassUnknown Class = "unknown"
)

// Who had the CPU, in the details of [LeafNoCPU], where it was no other program.
const (
	OwnThreads    = "own threads"
	WakeUpLatency = "wake-up latency or steal" // nobody ran there: the thread was about to come, or the host ran something else
)

// Stopped reports whether the leaf is a pause of the whole program. Detail is then its kind.
func (l Leaf) Stopped() bool { return l == LeafSTW || l == LeafSTWWork }

// Unexplained reports whether the leaf says that nothing is known.
func (l Leaf) Unexplained() bool {
	switch l {
	case LeafGap, LeafOrder, LeafLookback, LeafLimit, LeafNotWoken, LeafBeforeTrace,
		LeafBornOutside, LeafUnknown, LeafMissing:
		return true
	}
	return false
}
