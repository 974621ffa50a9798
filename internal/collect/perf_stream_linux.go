package collect

import (
	"hash/maphash"
	"slices"
	"time"
	"unsafe"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sensor/perfevent"
	"github.com/whystall/whystall/internal/sensor/symbol"
)

// perfStream turns perf_event's records into the stream's.
type perfStream struct {
	p            Process
	readers      []*perfevent.Reader
	own          *perfevent.Reader // the target's own events
	from         *perfevent.Reader // the one that is being read
	w            *kernel.Writer
	naming       *naming
	people       *people
	batch        []kernel.Record
	seen         int64 // records since the last look at the budget
	cpuAt        int64 // our own CPU time then
	cpus         map[uint32]*perfCPU
	stacks       map[uint64]uint32
	seed         maphash.Seed
	unwinder     *symbol.Table // of its own: naming holds the other while it reads symbols
	pcs          []uint64
	faults       []kernel.Record
	left         map[uint32]int64 // when the target's threads last blocked
	lost         int64
	broken       error
	stacking     bool
	looked       time.Time // at the budget, the last time
	taken        int64     // switch stacks since
	switched     int64     // switch-outs of the target
	clock        bool      // CPU samples are of single threads, and turned on and off
	clockIsOff   bool
	lookedOnce   bool
	share        float64 // of the time in which stacks are taken
	fewer        bool    // that they are not all taken was told
	stacksOn     int64   // ns of it since the last look
	stacksAreOff bool
	dutyAt       time.Time
	spent        int64 // the target's CPU time then
	lowered      string
	used         int64
	lastUsed     int64
}

// perfCPU is what is known of a CPU: who is on it, and since when.
type perfCPU struct {
	tid   uint32
	known bool
	at    int64
}

// maxPerfStacks bounds what different stacks are remembered: some 16 bytes each.
const maxPerfStacks = 1 << 18

func newPerfStream(p Process) *perfStream {
	return &perfStream{
		p: p, cpus: map[uint32]*perfCPU{}, stacks: map[uint64]uint32{}, seed: maphash.MakeSeed(), left: map[uint32]int64{},
		people: newPeople(p),
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
	s.seen++
	switch r.Kind {
	case perfevent.SwitchCPUWide:
		s.wholeSwitch(r)
	case perfevent.Switch:
		s.ownSwitch(r)
	case perfevent.Sample:
		s.sample(r)
	case perfevent.Fork:
		s.people.born(r)
		if r.PID == uint32(s.p.PID) && r.OtherPID == r.PID {
			s.add(kernel.Record{Kind: kernel.Clone, Time: r.Time, CPU: uint16(r.CPU), TID: r.TID, Other: r.OtherTID, Flags: kernel.Target | kernel.OtherTarget})
		}
	case perfevent.Exit:
		if r.PID == uint32(s.p.PID) {
			s.add(kernel.Record{Kind: kernel.Exit, Time: r.Time, CPU: uint16(r.CPU), TID: r.TID, Flags: kernel.Target})
		}
		s.people.gone(r)
	case perfevent.Comm:
		s.people.named(r)
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

// lose notes a loss. It is told by the first record that found room again, so it was since the one before.
func (s *perfStream) lose(r *perfevent.Record) {
	c := s.cpu(r.CPU)
	since := c.at
	if since == 0 || since > r.Time {
		since = r.Time
	}
	s.lost += int64(r.Count)
	lost := kernel.Record{Kind: kernel.Lost, Time: since, CPU: uint16(r.CPU), Arg: [3]uint64{r.Count, 0, uint64(r.Time - since)}}
	// Beside the whole machine's switches the target's own events are samples and stacks.
	if r.Kind == perfevent.LostSamples || len(s.readers) > 1 && s.from == s.own {
		lost.Arg[1] = r.Count
	} else {
		c.known = false
	}
	s.add(lost)
}

// wholeSwitch makes one record of the two that the kernel writes of a switch: of who leaves, and of who comes.
func (s *perfStream) wholeSwitch(r *perfevent.Record) {
	c := s.cpu(r.CPU)
	prev, next := r.TID, r.OtherTID
	prevPID, nextPID := r.PID, r.OtherPID
	if !r.Out {
		if c.known && c.tid == r.TID {
			c.at = r.Time
			return
		}
		// The record of who left is missing. Where he is the one who came last only how he left is not known, which matters of the
		// target's threads alone; else it is not known who was here, and since when.
		prev, next, prevPID, nextPID = next, prev, nextPID, prevPID
		if consistent := c.known && c.tid == prev; c.at != 0 && !(consistent && prevPID != uint32(s.p.PID)) {
			s.add(kernel.Record{Kind: kernel.Lost, Time: c.at, CPU: uint16(r.CPU), Arg: [3]uint64{1, 0, uint64(max(0, r.Time-c.at))}})
			s.lost++
		}
	}
	// A thread that has ended has no number any more in its last record.
	if prev == ^uint32(0) && c.known {
		prev = c.tid
		if s.people.isTarget(prev) {
			prevPID = uint32(s.p.PID)
		}
	}
	c.tid, c.known, c.at = next, true, r.Time
	rec := kernel.Record{Kind: kernel.Switch, Time: r.Time, CPU: uint16(r.CPU), TID: prev, Other: next}
	s.leave(&rec, r.Preempt || prev == 0)
	if prevPID == uint32(s.p.PID) {
		s.switched++
		rec.Flags |= kernel.Target
	}
	if nextPID == uint32(s.p.PID) {
		rec.Flags |= kernel.OtherTarget
	}
	s.people.seen(prevPID, prev)
	s.people.seen(nextPID, next)
	s.add(rec)
}

// leave says how a thread left: perf tells whether it could have run on, nothing else.
func (s *perfStream) leave(rec *kernel.Record, could bool) {
	if could {
		rec.Flags |= kernel.Preempted
	} else {
		rec.Arg[0] = kernel.NotRunning
	}
}

// ownSwitch is of a thread of the target. Who was on the CPU before or after it may not be looked at.
func (s *perfStream) ownSwitch(r *perfevent.Record) {
	if r.PID != uint32(s.p.PID) {
		return // a child's, which inherits the events before Linux 5.13
	}
	s.cpu(r.CPU).at = r.Time
	s.people.seen(r.PID, r.TID)
	rec := kernel.Record{Kind: kernel.Switch, Time: r.Time, CPU: uint16(r.CPU), TID: r.TID, Other: kernel.Unseen, Flags: kernel.Target}
	if r.Out {
		s.switched++
		s.leave(&rec, r.Preempt)
	} else {
		rec.TID, rec.Other, rec.Flags = kernel.Unseen, r.TID, kernel.OtherTarget
	}
	s.add(rec)
}

func (s *perfStream) sample(r *perfevent.Record) {
	if r.PID != uint32(s.p.PID) {
		return
	}
	rec := kernel.Record{Time: r.Time, CPU: uint16(r.CPU), TID: r.TID, Flags: kernel.Target, Kernel: s.stack(r.Time, r.Kernel, kernelStack), User: s.userStack(r)}
	switch r.Event {
	case perfevent.CPUClock:
		rec.Kind, rec.Arg[0] = kernel.Sample, r.Period
	case perfevent.SwitchOut:
		s.taken++
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

// userStack takes the kernel's, or where that would lack callers unwinds the copied bytes.
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

// stack gives a stack's number in the stream, and has it named when it is new.
func (s *perfStream) stack(at int64, pcs []uint64, how int) uint32 {
	if len(pcs) == 0 {
		return 0
	}
	hash := maphash.Bytes(s.seed, unsafe.Slice((*byte)(unsafe.Pointer(&pcs[0])), 8*len(pcs))) ^ uint64(how)
	id := s.stacks[hash]
	if id == 0 && len(s.stacks) < maxPerfStacks {
		id = uint32(len(s.stacks) + 1)
		s.stacks[hash] = id
		s.naming.send(unnamed{id: id, at: at, user: how != kernelStack, exact: how == unwoundStack, frames: slices.Clone(pcs)})
	}
	return id
}

// A fault's event comes when it is over. Its thread slept in it, and ran again for no longer than this.
const faultTail = 100e3

// majors finds where faults began: when their threads last blocked, if they came back just before the end.
func (s *perfStream) majors() {
	if len(s.faults) == 0 && len(s.left) == 0 {
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
		if from, back := s.left[f.TID], came[f.TID]; from != 0 && back > from && f.Time-back <= faultTail {
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
				s.left[r.TID] = r.Time
			} else {
				delete(s.left, r.TID)
			}
		case r.Kind == kernel.Exit:
			delete(s.left, r.TID)
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
