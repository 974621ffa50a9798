package timeline

// State of a segment.
type State uint8

const (
	Unknown State = iota
	Running
	Runnable
	Waiting
	Syscall
)

// Wait is the class of a wait. It follows from the wait's reason and from the first frame of its
// stack that is not plumbing: see [Stacks.class].
type Wait uint8

const (
	WaitUnknown      Wait = iota // a status without a stack: the ender decides
	WaitNetwork                  // outside; ended by a goroutine only through a deadline or Close
	WaitTimer                    // sleep
	WaitMessage                  // channel, select, WaitGroup, Cond, coroutine: follow the ender
	WaitLock                     // mutexes of all kinds
	WaitAssistCredit             // of the GC
	WaitMarkTerm                 // queued for mark termination
	WaitGCStart                  // queued for the GC's start
	WaitSTW                      // queued for stopping the world
	WaitScan                     // suspended for a stack scan
	WaitIdle                     // the runtime's own goroutines; for ever
)

// Why a goroutine was runnable.
type Why uint8

const (
	WhyWoken Why = iota
	WhyNewborn
	WhyPreempted
	WhyYielded
	WhySyscall
	WhyStatus
)

// Ender is who ended a wait or made a goroutine.
type Ender uint8

const (
	EnderNone      Ender = iota // not seen
	EnderGoroutine              // Segment.Ender, which was in Segment.EnderSeg
	EnderP                      // a P without goroutine: network, timers
	EnderNobody                 // a thread without P: sysmon
)

// Segment is a stretch of one goroutine in one state. It begins at Start and ends where the next
// segment of the goroutine begins.
//
// The meaning of Stack depends on the state:
//   - waiting, syscall: where the goroutine stands;
//   - runnable: where its waker stood or, for a newborn, its maker;
//   - running: where the assist, sweep or stop-the-world began that it is in.
//
// So does that of Ender and EnderSeg:
//   - waiting: who ended the wait;
//   - runnable: the maker of a newborn; else Ender is the number of goroutines that waited at the
//     same place at the wake-up;
//   - running: Ender is the number of the sweep it is in;
//   - running, syscall: EnderSeg is the thread, see [Segment.Thread].
type Segment struct {
	w        uint64 // start, relative to the timeline's base, << 16 | meta
	Prev     uint32 // of the same goroutine; 0: none, or it is no longer kept
	Stack    uint32
	Ender    uint32
	EnderSeg uint32
}

// maxTime keeps times within the 48 bits that a segment has: three days. What comes later happens
// then.
const maxTime = 1<<47 - 1

// The bits of Segment.w: state 0-2, wait or why 3-6, ender 7-8, and the ranges that were open.
const (
	metaWait   = 3
	metaEnder  = 7
	metaAssist = 1 << 9
	metaSweep  = 1 << 10
	metaSTW    = 1 << 11
	metaFirst  = 1 << 12 // nothing is known of the goroutine before
	metaGap    = 1 << 13 // unknown because of a gap; of another state: a gap cut its end off
)

// bits are those of a segment's state, of its class of wait, and so on.
func (s State) bits() uint64 { return uint64(s) }
func (w Wait) bits() uint64  { return uint64(w) << metaWait }
func (w Why) bits() uint64   { return uint64(w) << metaWait }
func (e Ender) bits() uint64 { return uint64(e) << metaEnder }

func stateOf(meta uint64) State { return State(meta & 7) }
func waitOf(meta uint64) Wait   { return Wait(meta >> metaWait & 15) }

func (s *Segment) State() State     { return stateOf(s.w) }
func (s *Segment) Wait() Wait       { return waitOf(s.w) }
func (s *Segment) Why() Why         { return Why(s.w >> metaWait & 15) }
func (s *Segment) EnderKind() Ender { return Ender(s.w >> metaEnder & 3) }
func (s *Segment) Assist() bool     { return s.w&metaAssist != 0 }
func (s *Segment) Sweep() bool      { return s.w&metaSweep != 0 }
func (s *Segment) STW() bool        { return s.w&metaSTW != 0 }

// Gap reports, for an unknown segment, that a gap is the reason; for any other, that a gap cut it
// short.
func (s *Segment) Gap() bool { return s.w&metaGap != 0 }

// First reports whether nothing is known of the goroutine before the segment: it was there when the
// trace began, or the part of it that could be read.
func (s *Segment) First() bool { return s.w&metaFirst != 0 }

// noThread is [exectrace.NoThread] in 32 bits, which no thread id of Linux fills.
const noThread = ^uint32(0)

// Thread is the id of the thread that a running or syscall segment was on, as the traced process
// sees it. It is 0 where that is not known: in other states, and in formats before 1.22.
func (s *Segment) Thread() uint32 {
	if st := s.State(); st != Running && st != Syscall || s.EnderSeg == noThread {
		return 0
	}
	return s.EnderSeg
}

// start is relative to the timeline's base.
func (s *Segment) start() int64 { return int64(s.w >> 16) }
