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

// spanArgs counts the varints after the time of the experimental events from evSpan on.
var spanArgs = [...]uint8{3, 3, 1, 2, 2, 1, 2, 2, 1}

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

// uvarint decodes at d[i]. Past the end, or in a varint that does not end, it gives an index
// that is past the end, so that callers check once an event.
func uvarint(d []byte, i int) (uint64, int) {
	if uint(i) < uint(len(d)) && d[i] < 0x80 {
		return uint64(d[i]), i + 1
	}
	return uvarintSlow(d, i)
}

const pastEnd = 1 << 40

func uvarintSlow(d []byte, i int) (uint64, int) {
	if uint(i)+1 < uint(len(d)) && d[i+1] < 0x80 {
		return uint64(d[i]&0x7f) | uint64(d[i+1])<<7, i + 2
	}
	var v uint64
	for s := uint(0); s < 64 && uint(i) < uint(len(d)); s += 7 {
		b := d[i]
		i++
		if b < 0x80 {
			if s == 63 && b > 1 {
				break
			}
			return v | uint64(b)<<s, i
		}
		v |= uint64(b&0x7f) << s
	}
	return 0, pastEnd
}

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
