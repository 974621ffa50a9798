package collect

import (
	"hash/maphash"
	"slices"
	"unsafe"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sensor/perfevent"
	"github.com/whystall/whystall/internal/sensor/symbol"
)

// perfStream turns perf_event's records into the stream's.
type perfStream struct {
	p         Process
	readers   []*perfevent.Reader
	target    *perfevent.Reader // the target's own events
	from      *perfevent.Reader // the one that is being read
	w         *kernel.Writer
	naming    *naming
	threads   *perfThreads
	batch     []kernel.Record
	cpus      map[uint32]*perfCPU
	stacks    map[uint64]uint32
	seed      maphash.Seed
	unwinder  *symbol.Table // of its own: naming holds the other while it reads symbols
	pcs       []uint64
	faults    []kernel.Record
	blocked   map[uint32]int64 // when the target's threads last blocked
	lost      int64
	broken    error
	stacking  bool  // stacks of waits are taken
	clock     bool  // CPU samples are of single threads, and turned on and off
	targetCPU int64 // the target's CPU time by the last look, ns
	cost      perfBudget
}

// perfCPU is what is known of a CPU: which thread is on it, and since when.
type perfCPU struct {
	tid   uint32
	known bool
	at    int64
}

// maxPerfStacks bounds how many different stacks are remembered: some 16 bytes each.
const maxPerfStacks = 1 << 18

func newPerfStream(p Process) *perfStream {
	return &perfStream{
		p: p, cpus: map[uint32]*perfCPU{}, stacks: map[uint64]uint32{}, seed: maphash.MakeSeed(),
		blocked: map[uint32]int64{},
		threads: newPerfThreads(p),
	}
}

func (s *perfStream) cpu(n uint32) *perfCPU {
	c := s.cpus[n]
	if c == nil {
		c = &perfCPU{}
		s.cpus[n] = c
	}
	return c
}

// record takes one record. It runs for every switch of the machine.
func (s *perfStream) record(r *perfevent.Record) {
	s.cost.records++
	switch r.Kind {
	case perfevent.SwitchCPUWide:
		s.wholeSwitch(r)
	case perfevent.Switch:
		s.ownSwitch(r)
	case perfevent.Sample:
		s.sample(r)
	case perfevent.Fork:
		s.threads.born(r)
		if r.PID == uint32(s.p.PID) && r.OtherPID == r.PID {
			s.add(kernel.Record{Kind: kernel.Clone, Time: r.Time, CPU: uint16(r.CPU), TID: r.TID,
				Other: r.OtherTID, Flags: kernel.Target | kernel.OtherTarget})
		}
	case perfevent.Exit:
		if r.PID == uint32(s.p.PID) {
			s.add(kernel.Record{Kind: kernel.Exit, Time: r.Time, CPU: uint16(r.CPU), TID: r.TID, Flags: kernel.Target})
		}
		s.threads.gone(r)
	case perfevent.Comm:
		s.threads.named(r)
		if r.Exec && r.PID == uint32(s.p.PID) {
			s.add(kernel.Record{Kind: kernel.Exec, Time: r.Time, CPU: uint16(r.CPU), TID: r.TID, Flags: kernel.Target})
			s.naming.exec(r.Time)
			if s.unwinder != nil {
				s.unwinder.Exec(r.Time)
			}
		}
	case perfevent.Lost, perfevent.LostSamples:
		s.lose(r)
	}
}

func (s *perfStream) add(r kernel.Record) { s.batch = append(s.batch, r) }

// lose notes a loss. The kernel reports it with the first record that found room again, so it lies
// between that record and the one before.
func (s *perfStream) lose(r *perfevent.Record) {
	c := s.cpu(r.CPU)
	since := c.at
	if since == 0 || since > r.Time {
		since = r.Time
	}
	s.lost += int64(r.Count)
	lost := kernel.Record{Kind: kernel.Lost, Time: since, CPU: uint16(r.CPU),
		Arg: [3]uint64{r.Count, 0, uint64(r.Time - since)}}
	// Beside a reader of the whole machine's switches, the target's own events are samples and
	// stacks.
	if r.Kind == perfevent.LostSamples || len(s.readers) > 1 && s.from == s.target {
		lost.Arg[1] = r.Count
	} else {
		c.known = false
	}
	s.add(lost)
}

// wholeSwitch makes one record of the two that the kernel writes for a switch: one for the thread
// that leaves, one for the thread that comes.
func (s *perfStream) wholeSwitch(r *perfevent.Record) {
	c := s.cpu(r.CPU)
	prev, next := r.TID, r.OtherTID
	prevPID, nextPID := r.PID, r.OtherPID
	if !r.Out {
		if c.known && c.tid == r.TID {
			c.at = r.Time
			return
		}
		// The record of the thread that left is missing. If it is the thread that came last, only
		// how it left is unknown, which matters for the target's threads alone. Otherwise it is
		// unknown which thread was here, and since when.
		prev, next, prevPID, nextPID = next, prev, nextPID, prevPID
		if consistent := c.known && c.tid == prev; c.at != 0 && !(consistent && prevPID != uint32(s.p.PID)) {
			s.add(kernel.Record{Kind: kernel.Lost, Time: c.at, CPU: uint16(r.CPU),
				Arg: [3]uint64{1, 0, uint64(max(0, r.Time-c.at))}})
			s.lost++
		}
	}
	// A thread that has ended has no number in its last record.
	if prev == ^uint32(0) && c.known {
		prev = c.tid
		if s.threads.isTarget(prev) {
			prevPID = uint32(s.p.PID)
		}
	}
	c.tid, c.known, c.at = next, true, r.Time
	rec := kernel.Record{Kind: kernel.Switch, Time: r.Time, CPU: uint16(r.CPU), TID: prev, Other: next}
	leave(&rec, r.Preempt || prev == 0)
	if prevPID == uint32(s.p.PID) {
		s.cost.switches++
		rec.Flags |= kernel.Target
	}
	if nextPID == uint32(s.p.PID) {
		rec.Flags |= kernel.OtherTarget
	}
	s.threads.seen(prevPID, prev)
	s.threads.seen(nextPID, next)
	s.add(rec)
}

// leave sets how a thread left its CPU. perf_event says whether the thread was preempted, that is,
// could have run on; it says nothing else.
func leave(rec *kernel.Record, preempted bool) {
	if preempted {
		rec.Flags |= kernel.Preempted
	} else {
		rec.Arg[0] = kernel.NotRunning
	}
}

// ownSwitch takes a switch of a thread of the target. Which thread was on the CPU before or after
// it is not permitted to see.
func (s *perfStream) ownSwitch(r *perfevent.Record) {
	if r.PID != uint32(s.p.PID) {
		return // a child's, which inherits the events before Linux 5.13
	}
	s.cpu(r.CPU).at = r.Time
	s.threads.seen(r.PID, r.TID)
	rec := kernel.Record{Kind: kernel.Switch, Time: r.Time, CPU: uint16(r.CPU), TID: r.TID,
		Other: kernel.Unseen, Flags: kernel.Target}
	if r.Out {
		s.cost.switches++
		leave(&rec, r.Preempt)
	} else {
		rec.TID, rec.Other, rec.Flags = kernel.Unseen, r.TID, kernel.OtherTarget
	}
	s.add(rec)
}

func (s *perfStream) sample(r *perfevent.Record) {
	if r.PID != uint32(s.p.PID) {
		return
	}
	rec := kernel.Record{Time: r.Time, CPU: uint16(r.CPU), TID: r.TID, Flags: kernel.Target,
		Kernel: s.stack(r.Time, r.Kernel, kernelStack), User: s.userStack(r)}
	switch r.Event {
	case perfevent.CPUClock:
		rec.Kind, rec.Arg[0] = kernel.Sample, s.cost.sampled(r.Period)
	case perfevent.SwitchOut:
		s.cost.stacks++
		rec.Kind = kernel.WaitStack
		rec.Flags |= kernel.Leaving
	case perfevent.MajorFault:
		rec.Kind, rec.Arg[1] = kernel.Fault, r.Addr
		rec.Flags |= kernel.Major
		s.faults = append(s.faults, rec)
		return
	default:
		return
	}
	s.add(rec)
}

// How a stack was taken.
const (
	kernelStack  = iota
	framePointer // follows frame pointers
	unwoundStack // by call frame information
)

// userStack takes the kernel's stack, or unwinds the copied bytes where the kernel's would lack
// callers.
func (s *perfStream) userStack(r *perfevent.Record) uint32 {
	if len(r.Stack) == 0 || s.unwinder == nil {
		return s.stack(r.Time, r.User, framePointer)
	}
	s.pcs = s.unwinder.Unwind(symbol.Regs{IP: r.IP, SP: r.SP, BP: r.BP}, r.Stack, r.Time, s.pcs[:0])
	if len(s.pcs) < 2 {
		return s.stack(r.Time, r.User, framePointer)
	}
	return s.stack(r.Time, s.pcs, unwoundStack)
}

// stack returns a stack's number in the stream, and has the stack named if it is new.
func (s *perfStream) stack(at int64, pcs []uint64, how int) uint32 {
	if len(pcs) == 0 {
		return 0
	}
	hash := maphash.Bytes(s.seed, unsafe.Slice((*byte)(unsafe.Pointer(&pcs[0])), 8*len(pcs))) ^ uint64(how)
	id := s.stacks[hash]
	if id == 0 && len(s.stacks) < maxPerfStacks {
		id = uint32(len(s.stacks) + 1)
		s.stacks[hash] = id
		s.naming.send(unnamed{id: id, time: at, user: how != kernelStack,
			exact: how == unwoundStack, frames: slices.Clone(pcs)})
	}
	return id
}

// faultTail bounds how long a thread runs between its sleep in a major fault and the fault's event,
// which comes when the fault is over.
const faultTail = 100e3

// majors finds where major faults started: when their threads last blocked, if they came back just
// before the fault's end.
func (s *perfStream) majors() {
	if len(s.faults) == 0 && len(s.blocked) == 0 {
		s.blocks(s.batch)
		return
	}
	sorted := s.batch
	if len(s.faults) > 0 {
		sorted = slices.Clone(s.batch)
		slices.SortStableFunc(sorted, func(a, b kernel.Record) int { return compareTimes(a.Time, b.Time) })
		slices.SortStableFunc(s.faults, func(a, b kernel.Record) int { return compareTimes(a.Time, b.Time) })
	}
	came := map[uint32]int64{}
	i := 0
	for _, f := range s.faults {
		for ; i < len(sorted) && sorted[i].Time < f.Time; i++ {
			s.blocks(sorted[i : i+1])
			if sorted[i].Kind == kernel.Switch && sorted[i].Flags&kernel.OtherTarget != 0 {
				came[sorted[i].Other] = sorted[i].Time
			}
		}
		if from, back := s.blocked[f.TID], came[f.TID]; from != 0 && back > from && f.Time-back <= faultTail {
			f.Arg[0] = uint64(f.Time - from)
			f.Time = from
		}
		s.batch = append(s.batch, f)
	}
	s.blocks(sorted[i:])
	s.faults = s.faults[:0]
}

// blocks remembers when threads blocked.
func (s *perfStream) blocks(recs []kernel.Record) {
	for i := range recs {
		r := &recs[i]
		switch {
		case r.Kind == kernel.Switch && r.Flags&kernel.Target != 0:
			if r.Arg[0] == kernel.NotRunning {
				s.blocked[r.TID] = r.Time
			} else {
				delete(s.blocked, r.TID)
			}
		case r.Kind == kernel.Exit:
			delete(s.blocked, r.TID)
		}
	}
}

func compareTimes(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
