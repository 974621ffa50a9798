package exectrace

// The wire format of 1.22 and later, as far as this reader needs it: event types, how many varints follow
// the time of each, and batch headers. Source: internal/trace/tracev2 of Go 1.26.

const (
	evEventBatch = 1 + iota
	evStacks
	evStack
	evStrings
	evString
	evCPUSamples
	evCPUSample
	evFrequency
	evProcsChange
	evProcStart
	evProcStop
	evProcSteal
	evProcStatus
	evGoCreate
	evGoCreateSyscall
	evGoStart
	evGoDestroy
	evGoDestroySyscall
	evGoStop
	evGoBlock
	evGoUnblock
	evGoSyscallBegin
	evGoSyscallEnd
	evGoSyscallEndBlocked
	evGoStatus
	evSTWBegin
	evSTWEnd
	evGCActive
	evGCBegin
	evGCEnd
	evGCSweepActive
	evGCSweepBegin
	evGCSweepEnd
	evGCMarkAssistActive
	evGCMarkAssistBegin
	evGCMarkAssistEnd
	evHeapAlloc
	evHeapGoal
	evGoLabel
	evUserTaskBegin
	evUserTaskEnd
	evUserRegionBegin
	evUserRegionEnd
	evUserLog
	evGoSwitch        // 1.23
	evGoSwitchDestroy // 1.23
	evGoCreateBlocked // 1.23
	evGoStatusStack   // 1.23
	evExperimental    // 1.23: a batch of an experiment
	evSync            // 1.25
	evClockSnapshot   // 1.25
	evEndOfGeneration // 1.26
)

// evSpan is the first of the alloc-free experiment's events, which appear among the others.
const (
	evSpan           = 128
	evGoroutineFree  = 136
	maxBatch         = 64 << 10
	maxString        = 1 << 10
	maxTicks         = 1 << 56 // times above this are damage: a hundred years at 20 MHz; no sum overflows
	maxGo            = 1 << 62 // a goroutine number above this, or 0, is damage
	maxProc          = 1 << 16 // a P number above this is damage
	maxStackDepthRaw = 1 << 10 // frames of one stack that are skipped over rather than believed
)

// v2Args counts the varints after the time of each event.
var v2Args = [256]uint8{
	evProcsChange: 2, evProcStart: 2, evProcStop: 0, evProcSteal: 3, evProcStatus: 2,
	evGoCreate: 3, evGoCreateSyscall: 1, evGoStart: 2, evGoDestroy: 0, evGoDestroySyscall: 0,
	evGoStop: 2, evGoBlock: 2, evGoUnblock: 3, evGoSyscallBegin: 2, evGoSyscallEnd: 0, evGoSyscallEndBlocked: 0, evGoStatus: 3,
	evSTWBegin: 2, evSTWEnd: 0, evGCActive: 1, evGCBegin: 2, evGCEnd: 1,
	evGCSweepActive: 1, evGCSweepBegin: 1, evGCSweepEnd: 2,
	evGCMarkAssistActive: 1, evGCMarkAssistBegin: 1, evGCMarkAssistEnd: 0,
	evHeapAlloc: 1, evHeapGoal: 1, evGoLabel: 1,
	evUserTaskBegin: 4, evUserTaskEnd: 2, evUserRegionBegin: 3, evUserRegionEnd: 3, evUserLog: 4,
	evGoSwitch: 2, evGoSwitchDestroy: 2, evGoCreateBlocked: 3, evGoStatusStack: 4,
}

// spanArgs counts the varints after the time of the experimental events from evSpan on.
var spanArgs = [...]uint8{3, 3, 1, 2, 2, 1, 2, 2, 1}

func argCount(typ byte) uint8 {
	if typ >= evSpan && typ <= evGoroutineFree {
		return spanArgs[typ-evSpan]
	}
	return v2Args[typ]
}

// skipArgs gives the index behind the arguments of an event.
func skipArgs(d []byte, typ byte, i int) int {
	n := argCount(typ)
	for ; n > 0; n-- {
		_, i = uvarint(d, i)
	}
	return i
}

// statuses of goroutines and Ps on the wire.
const (
	goRunnable = 1 + iota
	goRunning
	goSyscall
	goWaiting
)

const (
	procRunning = 1 + iota
	procIdle
	procSyscall
	procAbandoned // it was in a syscall whose begin this generation does not have
)

var goStates = [...]State{Undetermined, Runnable, Running, Syscall, Waiting}

var procStates = [...]State{Undetermined, Running, Idle, Syscall, Idle}

// header is a batch's.
type header struct {
	kind byte // evEventBatch, evExperimental, evEndOfGeneration
	gen  uint64
	m    uint64
	ts   uint64
	size int
	n    int // length of the header itself
}

// parseHeader reads the header that d begins with. It fails on what no runtime writes.
func parseHeader(d []byte) (h header, ok bool) {
	if len(d) == 0 {
		return h, false
	}
	h.kind = d[0]
	i := 1
	switch h.kind {
	case evEndOfGeneration:
		h.n = 1
		return h, true
	case evEventBatch:
	case evExperimental:
		i++ // the experiment
	default:
		return h, false
	}
	// A header is at most 2+4*10 bytes: do not let the varints look at all of d.
	d = d[:min(len(d), 48)]
	var size uint64
	h.gen, i = uvarint(d, i)
	h.m, i = uvarint(d, i)
	h.ts, i = uvarint(d, i)
	size, i = uvarint(d, i)
	if i > len(d) || h.gen == 0 || size > maxBatch || h.ts >= maxTicks {
		return h, false
	}
	h.size, h.n = int(size), i
	return h, true
}
