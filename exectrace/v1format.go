package exectrace

// The types of events of formats 1.11 to 1.21. The numbers are those of the runtime's trace.go of
// those releases.
const (
	v1None = iota // here: the P's stream has a hole
	v1Batch
	v1Frequency
	v1Stack
	v1Gomaxprocs
	v1ProcStart
	v1ProcStop
	v1GCStart
	v1GCDone
	v1STWStart
	v1STWDone
	v1SweepStart
	v1SweepDone
	v1GoCreate
	v1GoStart
	v1GoEnd
	v1GoStop
	v1GoSched
	v1GoPreempt
	v1GoSleep
	v1GoBlock
	v1GoUnblock
	v1GoBlockSend
	v1GoBlockRecv
	v1GoBlockSelect
	v1GoBlockSync
	v1GoBlockCond
	v1GoBlockNet
	v1GoSysCall
	v1GoSysExit
	v1GoSysBlock
	v1GoWaiting
	v1GoInSyscall
	v1HeapAlloc
	v1HeapGoal
	v1TimerGoroutine
	v1FutileWakeup
	v1String
	v1GoStartLocal
	v1GoUnblockLocal
	v1GoSysExitLocal
	v1GoStartLabel
	v1GoBlockGC
	v1AssistStart
	v1AssistDone
	v1TaskCreate
	v1TaskEnd
	v1Region
	v1Log
	v1CPUSample
	v1Count
)

// v1Values is how many numbers follow each type: the time first, and the stack last if there is
// one. A batch, a string and a stack have a shape of their own.
var v1Values = [v1Count]uint8{
	v1Frequency: 1, v1Gomaxprocs: 3, v1ProcStart: 2, v1ProcStop: 1,
	v1GCStart: 3, v1GCDone: 1, v1STWStart: 2, v1STWDone: 1, v1SweepStart: 2, v1SweepDone: 3,
	v1GoCreate: 4, v1GoStart: 3, v1GoEnd: 1, v1GoStop: 2, v1GoSched: 2, v1GoPreempt: 2,
	v1GoSleep: 2, v1GoBlock: 2, v1GoUnblock: 4, v1GoBlockSend: 2, v1GoBlockRecv: 2,
	v1GoBlockSelect: 2, v1GoBlockSync: 2, v1GoBlockCond: 2, v1GoBlockNet: 2,
	v1GoSysCall: 2, v1GoSysExit: 4, v1GoSysBlock: 1, v1GoWaiting: 2, v1GoInSyscall: 2,
	v1HeapAlloc: 2, v1HeapGoal: 2, v1TimerGoroutine: 1, v1FutileWakeup: 1,
	v1GoStartLocal: 2, v1GoUnblockLocal: 3, v1GoSysExitLocal: 3, v1GoStartLabel: 4,
	v1GoBlockGC: 2, v1AssistStart: 2, v1AssistDone: 1,
	v1TaskCreate: 5, v1TaskEnd: 3, v1Region: 5, v1Log: 4, v1CPUSample: 5,
}

// The shapes of a record. Its first byte says which it has.
const (
	shapeBad = iota
	shapeBatch
	shapeString
	shapeTimed    // time and up to two values
	shapeUntimed  // frequency, timer goroutine: one value
	shapePrefixed // a length in bytes, then time and three values or more; a log's string follows
	shapeStack    // the same, and no time
)

type v1Shape struct {
	shape  uint8
	values uint8
}

// v1Shapes says what follows a record's first byte. Six bits are the type. Two are the number of
// values after the first, where 3 means that a length comes first. A byte whose two parts do not
// fit each other is damage. That is what finds most damage: the format has no checksum.
func v1Shapes(v Version) *[256]v1Shape {
	var s [256]v1Shape
	for typ := range v1Values {
		n := v1Values[typ]
		switch {
		case typ == v1CPUSample && v < 19 || n == 0:
		case typ == v1Frequency || typ == v1TimerGoroutine:
			s[typ] = v1Shape{shapeUntimed, n}
		case n <= 3:
			s[typ|int(n-1)<<6] = v1Shape{shapeTimed, n}
		default:
			s[typ|3<<6] = v1Shape{shapePrefixed, n}
		}
	}
	s[v1BatchByte] = v1Shape{shape: shapeBatch}
	s[v1String] = v1Shape{shape: shapeString}
	s[v1Stack|3<<6] = v1Shape{shape: shapeStack}
	return &s
}

const (
	v1BatchByte = v1Batch | 1<<6

	// v1MaxRecord bounds a record's length: 128 frames of four numbers are 5 KB at most.
	v1MaxRecord = 8 << 10
	// v1MinFreq and v1MaxFreq are the rates that clocks can have, in ticks a second. Each machine
	// seen has some tens of millions.
	v1MinFreq = 1e5
	v1MaxFreq = 1e11
	// v1MaxString is the runtime's own limit on a log message, and far above that of a name.
	v1MaxString = 1 << 20
	// v1MaxProcs bounds how many Ps are merged: no machine has had more CPUs.
	v1MaxProcs = 2048
	// v1MaxDelta bounds the time between two events of one P: days, at any rate.
	v1MaxDelta = 1 << 46
	// v1MaxSkew is how far a P's clock may go back when its thread changes the CPU.
	v1MaxSkew = 1 << 30
	// v1Slack is how long an event waits for one that must come before it and has a later time:
	// about a millisecond. With synchronous clocks only events of the same tick wait.
	v1Slack = 1 << 16
)

// v1Uvarint reads a base-128 number at b[i:]. The second result is where it ends, 0 when it does
// not.
func v1Uvarint(b []byte, i int) (uint64, int) {
	if uint(i) >= uint(len(b)) {
		return 0, 0
	}
	v := uint64(b[i])
	if v < 0x80 {
		return v, i + 1
	}
	return v1UvarintSlow(b, i)
}

//go:noinline
func v1UvarintSlow(b []byte, i int) (uint64, int) {
	var v uint64
	for s := uint(0); s < 70 && uint(i) < uint(len(b)); s += 7 {
		c := b[i]
		i++
		if c < 0x80 {
			if s == 63 && c > 1 {
				return 0, 0
			}
			return v | uint64(c)<<s, i
		}
		v |= uint64(c&0x7f) << s
	}
	return 0, 0
}

// v1STW has the kinds of a stop-the-world. Up to 1.20 only the garbage collector's two were
// recorded, numbered from 0.
var v1STW = [...]string{
	"", "GC mark termination", "GC sweep termination", "write heap dump", "goroutine profile",
	"goroutine profile cleanup", "all goroutine stack trace", "read mem stats", "AllThreadsSyscall",
	"GOMAXPROCS", "start trace", "stop trace", "CountPagesInUse (test)", "ReadMetricsSlow (test)",
	"ReadMemStatsSlow (test)", "PageCachePagesLeaked (test)", "ResetDebugLog (test)",
}

func v1STWKind(v Version, kind uint64) uint32 {
	if v < 21 {
		if kind > 1 {
			return 0
		}
		return uint32(kind) + 1
	}
	if kind >= uint64(len(v1STW)) {
		return 0
	}
	return uint32(kind)
}
