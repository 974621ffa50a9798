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

// Wait is the class of a wait, from its reason and the first frame of its stack that is not plumbing.
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

// Segment is a stretch of one goroutine in one state. It begins at Start and ends where the goroutine's next begins.
//
// Stack is, by State: waiting and syscall: where; runnable: of the waker, where it woke this one or, of a newborn,
// made it; running: where the assist, sweep or stop-the-world began that it is in.
//
// Ender and EnderSeg are, by State: waiting: who ended it; runnable: of a newborn its maker, else Ender is
// the number of goroutines that waited at the same place when it was woken; running: Ender is the number of the
// sweep it is in. Of running and syscall EnderSeg is the thread, see [Segment.Thread].
type Segment struct {
	w        uint64 // start, relative to the timeline's base, << 16 | meta
	Prev     uint32 // of the same goroutine; 0: none, or it is no longer kept
	Stack    uint32
	Ender    uint32
	EnderSeg uint32
}

// The bits of Segment.w: state 0-2, wait or why 3-6, ender 7-8, and the ranges that were open.
const (
	metaWait   = 3
	metaEnder  = 7
	metaAssist = 1 << 9
	metaSweep  = 1 << 10
	metaSTW    = 1 << 11
	metaFirst  = 1 << 12 // nothing is known of the goroutine before
	metaGap    = 1 << 13 // unknown because of a gap; of another state: a gap cut its end off
	metaRanges = metaAssist | metaSweep | metaSTW
)

func (s *Segment) State() State { return State(s.w & 7) }
func (s *Segment) Wait() Wait   { return Wait(s.w >> metaWait & 15) }
func (s *Segment) Why() Why     { return Why(s.w >> metaWait & 15) }
func (s *Segment) By() Ender    { return Ender(s.w >> metaEnder & 3) }
func (s *Segment) Assist() bool { return s.w&metaAssist != 0 }
func (s *Segment) Sweep() bool  { return s.w&metaSweep != 0 }
func (s *Segment) STW() bool    { return s.w&metaSTW != 0 }

// Gap tells of an unknown segment that a gap is why, of another that a gap cut it off.
func (s *Segment) Gap() bool { return s.w&metaGap != 0 }

// First tells that before it nothing is known of the goroutine: it was there when the trace, or what could be read of it, began.
func (s *Segment) First() bool { return s.w&metaFirst != 0 }

// noThread is [exectrace.NoThread] in 32 bits, which no thread id of Linux fills.
const noThread = ^uint32(0)

// Thread is the id of the thread that a running or syscall segment was on, as the traced process sees it; 0 where that
// is not known: in other states, and in formats before 1.22.
func (s *Segment) Thread() uint32 {
	if st := s.State(); st != Running && st != Syscall || s.EnderSeg == noThread {
		return 0
	}
	return s.EnderSeg
}

// start is relative to the base.
func (s *Segment) start() int64 { return int64(s.w >> 16) }

// ring keeps the last segments of all goroutines in the order in which they began, 24 bytes each. A segment is named by
// its number from 1 on; numbers go on while the oldest segments are overwritten. Links between
// segments are checked when followed: what they name may be gone.
type ring struct {
	segs   []Segment // their number is a power of two
	head   uint64    // number of the next segment
	oldest uint64    // the oldest that is kept
}

func (r *ring) init(limit int) {
	n := uint32(1 << 12)
	for int(n)*2 <= limit {
		n *= 2
	}
	r.head, r.oldest = 1, 1
	// All at once: what is not used yet is address space, not memory, and nothing has to move.
	r.segs = make([]Segment, n)
	huge(r.segs)
}

// alive tells whether segment number seq is still kept.
func (r *ring) alive(seq uint64) bool { return seq >= r.oldest && seq != 0 }

// Seg is the segment with the number, nil when it is no longer kept.
func (r *ring) Seg(seq uint32) *Segment {
	if seq == 0 || uint64(uint32(r.head)-seq) > r.head-r.oldest {
		return nil
	}
	return &r.segs[seq&uint32(len(r.segs)-1)]
}

func (r *ring) at(seq uint64) *Segment { return &r.segs[uint32(seq)&uint32(len(r.segs)-1)] }

// add makes room for the next segment.
func (r *ring) add() (*Segment, uint64) {
	if uint32(r.head) == 0 {
		r.head++ // 0 is no segment
	}
	seq := r.head
	r.head++
	if n := uint64(len(r.segs)); r.head-r.oldest > n {
		r.oldest = r.head - n
	}
	return r.at(seq), seq
}
