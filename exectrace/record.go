package exectrace

import "iter"

// Op says what happened in a Record. It stands for Kind, From, To and most of what else an Event
// says, so one switch over it is all that a consumer needs.
//
// An OpCreate has most to say. The number of the new goroutine is in Batch.Born, and Stack is where
// it starts. Arg is the creator's slot, or NoSlot; Name is no string but the creator's stack.
type Op uint8

const (
	OpOther       Op = iota // anything else: Batch.Other[Arg] is the Event
	OpStart                 // Runnable to Running
	OpWake                  // Waiting to Runnable; Arg: the waker's slot or NoSlot; Stack: its
	OpBlock                 // Running to Waiting, for Reason (and Name); Stack
	OpStop                  // Running to Runnable, for Reason (and Name); Stack
	OpSyscall               // Running to Syscall; Stack
	OpSyscallEnd            // Syscall to Running, with its P
	OpCreate                // NotExist to Runnable, see below
	OpEnd                   // Running to NotExist; the slot is free then
	OpRegionBegin           // region Name of task Arg; Stack
	OpRegionEnd             // the same
	OpSweepBegin            // of the P; Slot: the goroutine there, or NoSlot; Stack
	OpSweepEnd              // the same; Arg: bytes swept; Name: bytes reclaimed
	OpHeapLive              // Slot: the goroutine there, or NoSlot; bytes are Name<<32 | Arg
	opCount
)

// Record is an Event in 32 bytes. Nearly all events fit.
//
// A Record knows its goroutine by the slot alone. The first event of a goroutine on a slot, be it
// as G or as On, is an OpCreate or an OpOther: a consumer that has seen those knows its number. The
// slot is the goroutine's until its OpEnd, or until another's first event.
type Record struct {
	Time   Time
	Slot   uint32
	Arg    uint32
	Stack  StackID
	Name   StringID
	M      uint32 // the lower 32 bits, which on Linux are all; ^0 is NoThread
	P      int16
	Op     Op
	Reason Reason
}

// Batch is a stretch of events in order. Each OpOther of Records stands for an Event of Other, and
// each OpCreate for a number in Born, in the same order.
type Batch struct {
	Records []Record
	Other   []Event
	Born    []GoID
}

// Batches gives the same events as Blocks, in the same order and a third of the bytes. A batch is
// overwritten by the next.
func (t *Trace) Batches() iter.Seq[*Batch] {
	return func(yield func(*Batch) bool) {
		t.reset()
		switch {
		case t.closed:
			t.read.fail(errClosed)
		case t.version < 22:
			t.v1Run(v1Way{packed: true}, func(b v1Block) bool { return yield(b.batch) })
		default:
			t.batchesV2(yield)
		}
		t.end()
	}
}

// Reset empties b and keeps its memory.
func (b *Batch) Reset() { b.Records, b.Other, b.Born = b.Records[:0], b.Other[:0], b.Born[:0] }

// opEvents has what all Records of an Op have in common.
var opEvents = [opCount]Event{
	OpStart:       {On: NoGoroutine, OnSlot: NoSlot, Proc: NoProc, Kind: KindGoroutine, From: Runnable, To: Running},
	OpWake:        {Proc: NoProc, Kind: KindGoroutine, From: Waiting, To: Runnable},
	OpBlock:       {Proc: NoProc, Kind: KindGoroutine, From: Running, To: Waiting},
	OpStop:        {Proc: NoProc, Kind: KindGoroutine, From: Running, To: Runnable},
	OpSyscall:     {Proc: NoProc, Kind: KindGoroutine, From: Running, To: Syscall},
	OpSyscallEnd:  {Proc: NoProc, Kind: KindGoroutine, From: Syscall, To: Running},
	OpCreate:      {Proc: NoProc, Kind: KindGoroutine, From: NotExist, To: Runnable},
	OpEnd:         {Proc: NoProc, Kind: KindGoroutine, From: Running, To: NotExist},
	OpRegionBegin: {Proc: NoProc, Kind: KindRegionBegin},
	OpRegionEnd:   {Proc: NoProc, Kind: KindRegionEnd},
	OpSweepBegin:  {Kind: KindRangeBegin, Range: RangeSweep},
	OpSweepEnd:    {Kind: KindRangeEnd, Range: RangeSweep},
	OpHeapLive:    {G: NoGoroutine, Proc: NoProc, Slot: NoSlot, Kind: KindMetric, Metric: MetricHeapLive},
}

// Event is the event that r stands for; r is no OpOther. g and on are what [Roster.Of] gives.
func (r *Record) Event(g, on GoID) Event {
	e := opEvents[r.Op]
	e.Time, e.M, e.P = r.Time, ThreadID(r.M), ProcID(r.P)
	if r.M == ^uint32(0) {
		e.M = NoThread
	}
	switch r.Op {
	case OpHeapLive:
		e.On, e.OnSlot, e.Arg[0] = g, r.Slot, uint64(r.Name)<<32|uint64(r.Arg)
		return e
	case OpStart:
		e.G, e.Slot, e.Stack, e.Name, e.Reason = g, r.Slot, r.Stack, r.Name, r.Reason
		return e
	case OpCreate:
		e.G, e.Slot, e.On, e.OnSlot, e.Stack, e.OnStack, e.Reason = g, r.Slot, on, r.Arg, r.Stack,
			StackID(r.Name), r.Reason
		return e
	case OpWake:
		e.G, e.Slot, e.On, e.OnSlot, e.OnStack, e.Name, e.Reason = g, r.Slot, on, r.Arg, r.Stack, r.Name, r.Reason
		return e
	}
	e.G, e.On, e.Slot, e.OnSlot, e.Stack = g, g, r.Slot, r.Slot, r.Stack
	switch r.Op {
	case OpSweepBegin:
		e.Proc = ProcID(r.P)
	case OpSweepEnd:
		e.Proc, e.Arg = ProcID(r.P), [2]uint64{uint64(r.Arg), uint64(r.Name)}
	case OpRegionBegin, OpRegionEnd:
		e.Arg[0] = uint64(r.Arg)
		fallthrough
	default:
		e.Name, e.Reason = r.Name, r.Reason
	}
	return e
}

// batchOther is the most whole events that a batch has.
const batchOther = 128

// whole is the Record that stands for e, which is number k of its batch's Other.
func (e *Event) whole(k int) Record {
	return Record{Time: e.Time, Slot: e.Slot, Arg: uint32(k), M: uint32(e.M), P: int16(e.P)}
}
