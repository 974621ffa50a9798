package collect

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
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

// What things cost the thread that is switched, measured on a virtual machine of 2026 with Linux 6.18, the least of many runs beside
// 2.3 us of the switch itself: a switch record with both its halves, a stack of kernel and user, 2 KiB of bytes beside it, and the timer of a thread's CPU
// clock, which is set and cleared each time. On a crowded machine that last one went up to 6 us.
const (
	switchNS = 1100
	stackNS  = 3600
	copyNS   = 500
	clockNS  = 1000
)

// budgetGap is over how long the cost is taken: of less a burst would decide. The first look is early: until then no CPU is sampled.
const (
	budgetGap   = time.Second
	budgetFirst = 200 * time.Millisecond
)

// budget takes the stacks of waits less often where they would cost the target more than it was allowed to, and samples its threads' CPU
// clocks only while that is cheap.
func (s *perfStream) budget() {
	passed := time.Since(s.looked)
	if passed < budgetFirst || s.lookedOnce && passed < budgetGap {
		return
	}
	s.lookedOnce = true
	taken, switched, spent := s.taken, s.switched, s.lastUsed-s.spent
	s.taken, s.switched, s.spent, s.looked = 0, 0, s.lastUsed, time.Now()
	// Of a target that hardly runs any cost is a large share, and none is much: a hundredth of a CPU is always allowed.
	may := int64(max(s.p.Budget*float64(max(spent, 0)), float64(passed)/100))
	if s.p.Budget <= 0 {
		may = 1 << 62
	}
	may -= switched * switchNS
	if s.stacking {
		// What they would have cost, had they been on all the time.
		full := max(taken, 1) * s.stackCost() * int64(passed) / max(s.stacksOn, int64(passed)/100)
		share := min(1, max(float64(may)/float64(full), leastShare))
		if share < 1 && s.share == 1 {
			s.lower("stacks of waits are taken part of the time since %s: they would be %d in %s", full/s.stackCost(), passed)
			s.w.Records([]kernel.Record{{Kind: kernel.Detail, Time: monotonic(), Arg: [3]uint64{1}}})
		}
		s.share, s.stacksOn = share, 0
		may -= int64(share * float64(full))
	}
	switch dear := switched*clockNS > may; {
	case !s.clock || dear == s.clockIsOff:
	case !dear:
		if s.own.Start(perfevent.CPUClock) == nil {
			s.clockIsOff = false
		}
	default:
		if s.clockOff() == nil {
			s.lower("CPU samples were left out at %s: %d switches in %s", switched, passed)
		}
	}
}

// Stacks that would cost too much are taken in a part of each dutyCycle: that keeps what they are of in proportion.
const (
	dutyCycle  = 500 * time.Millisecond
	leastShare = 0.02
)

// duty turns stacks on and off as their share asks.
func (s *perfStream) duty() {
	if !s.stacking {
		return
	}
	now := time.Now()
	if !s.stacksAreOff {
		s.stacksOn += int64(now.Sub(s.dutyAt))
	}
	s.dutyAt = now
	off := s.share < 1 && time.Duration(now.UnixNano())%dutyCycle > time.Duration(s.share*float64(dutyCycle))
	switch {
	case off == s.stacksAreOff:
	case off && s.own.Stop(perfevent.SwitchOut) == nil, !off && s.own.Start(perfevent.SwitchOut) == nil:
		s.stacksAreOff = off
	}
}

// stackCost is what a stack costs the thread whose it is.
func (s *perfStream) stackCost() int64 {
	if s.unwinder != nil {
		return stackNS + copyNS
	}
	return stackNS
}

func (s *perfStream) clockOff() error {
	if err := s.own.Stop(perfevent.CPUClock); err != nil {
		return err
	}
	s.clockIsOff = true
	return nil
}

// lower notes what was given up, each thing once.
func (s *perfStream) lower(format string, n int64, passed time.Duration) {
	what, _, _ := strings.Cut(format, "%s")
	if strings.Contains(s.lowered, what) {
		return
	}
	if s.lowered != "" {
		s.lowered += "; "
	}
	s.lowered += fmt.Sprintf(format, time.Now().UTC().Format("15:04:05 UTC"), n, passed.Round(time.Millisecond))
}
