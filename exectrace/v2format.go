package exectrace

// The wire format of 1.22 and later, as far as this reader needs it: types of events, how many
// varints follow the time of each, and headers of batches. The source is internal/trace/tracev2 of
// Go 1.26.

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
	evCount
)

// evSpan is the first event of the alloc-free experiment.
const evSpan = 128

// Bounds of what a runtime writes. What is beyond them is damage.
const (
	maxBatch         = 64 << 10
	maxString        = 1 << 10
	maxTicks         = 1 << 56 // of a time: a hundred years at 20 MHz; no sum overflows
	maxProc          = 1 << 16 // of a P's number
	maxStackDepthRaw = 1 << 10 // frames of one stack that are skipped over rather than believed
)

// v2Shape is what follows an event's type: a time, and so many varints.
type v2Shape struct {
	timed bool // it is an event of a thread; what is not stands in batches of its own
	args  uint8
}

// v2Shapes are the shapes by type. A type that has no row is damage.
var v2Shapes = [256]v2Shape{
	evProcsChange: {true, 2}, evProcStart: {true, 2}, evProcStop: {true, 0}, evProcSteal: {true, 3},
	evProcStatus: {true, 2},
	evGoCreate:   {true, 3}, evGoCreateSyscall: {true, 1}, evGoStart: {true, 2},
	evGoDestroy: {true, 0}, evGoDestroySyscall: {true, 0},
	evGoStop: {true, 2}, evGoBlock: {true, 2}, evGoUnblock: {true, 3},
	evGoSyscallBegin: {true, 2}, evGoSyscallEnd: {true, 0}, evGoSyscallEndBlocked: {true, 0}, evGoStatus: {true, 3},
	evSTWBegin: {true, 2}, evSTWEnd: {true, 0}, evGCActive: {true, 1}, evGCBegin: {true, 2}, evGCEnd: {true, 1},
	evGCSweepActive: {true, 1}, evGCSweepBegin: {true, 1}, evGCSweepEnd: {true, 2},
	evGCMarkAssistActive: {true, 1}, evGCMarkAssistBegin: {true, 1}, evGCMarkAssistEnd: {true, 0},
	evHeapAlloc: {true, 1}, evHeapGoal: {true, 1}, evGoLabel: {true, 1},
	evUserTaskBegin: {true, 4}, evUserTaskEnd: {true, 2}, evUserRegionBegin: {true, 3},
	evUserRegionEnd: {true, 3}, evUserLog: {true, 4},
	evGoSwitch: {true, 2}, evGoSwitchDestroy: {true, 2}, evGoCreateBlocked: {true, 3}, evGoStatusStack: {true, 4},

	// Of the alloc-free experiment, whose events stand among the others.
	evSpan: {true, 3}, evSpan + 1: {true, 3}, evSpan + 2: {true, 1},
	evSpan + 3: {true, 2}, evSpan + 4: {true, 2}, evSpan + 5: {true, 1},
	evSpan + 6: {true, 2}, evSpan + 7: {true, 2}, evSpan + 8: {true, 1},
}

// timed reports whether typ is an event of a thread.
func timed(typ byte) bool { return v2Shapes[typ].timed }

// skipArgs gives the index behind the arguments of an event.
func skipArgs(d []byte, typ byte, i int) int {
	n := v2Shapes[typ].args
	for ; n > 0; n-- {
		_, i = uvarint(d, i)
	}
	return i
}

// Statuses of a P on the wire.
const (
	procRunning = 1 + iota
	procIdle
	procSyscall
	procAbandoned // it was in a syscall that started before this generation
)

var procStates = [...]State{Undetermined, Running, Idle, Syscall, Idle}

// header is the header of a batch.
type header struct {
	kind byte // evEventBatch, evExperimental, evEndOfGeneration
	gen  uint64
	m    uint64
	ts   uint64
	size int
	n    int // length of the header itself
}

// parseHeader reads the header at the start of d. It fails on what no runtime writes.
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
		i++ // which experiment
	default:
		return h, false
	}
	// A header has at most 2+4*10 bytes: the varints need not look at all of d.
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
