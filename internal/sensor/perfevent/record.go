package perfevent

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Kind says what a Record is. The numbers are the kernel's PERF_RECORD_*.
type Kind uint32

// Kinds.
const (
	Lost          Kind = 2  // Count records were lost since the one before
	Comm          Kind = 3  // TID is called Name; Exec: by running another program
	Exit          Kind = 4  // TID ended
	Throttle      Kind = 5  // the kernel takes no more samples of this event for now
	Unthrottle    Kind = 6  //
	Fork          Kind = 7  // OtherTID of OtherPID created TID of PID
	Sample        Kind = 9  // Event happened, with stacks
	LostSamples   Kind = 13 // Count samples were lost
	Switch        Kind = 14 // TID came to CPU, or with Out left it
	SwitchCPUWide Kind = 15 // likewise; Other came next, or was there before
)

// Event is the event that a Sample was taken at.
type Event uint8

// Events.
const (
	None         Event = iota
	CPUClock           // Period ns of CPU time passed
	MajorFault         // at address Addr; the fault's end
	MinorFault         //
	SwitchOut          // a thread is about to leave its CPU; the stacks are its
	switchRecord       // brings Switch, Comm, Fork and Exit, never a Sample
)

// Record is one record of the kernel. It and its stacks belong to the reader, and the next
// overwrites them.
type Record struct {
	Kind     Kind
	Event    Event
	Out      bool // of Switch
	Preempt  bool // of Switch with Out: it could have run on
	Exec     bool // of Comm
	Time     int64
	PID, TID uint32 // 0: idle; ^0: the thread is ending, and has no number any more
	OtherPID uint32
	OtherTID uint32
	CPU      uint32
	ID       uint64 // of the event that brought it
	Addr     uint64
	Period   uint64
	Count    uint64
	Name     string
	Kernel   []uint64 // stacks, innermost first
	User     []uint64

	// With StackBytes: the thread's registers as it entered the kernel, and a copy of its stack
	// from SP on; nil for a kernel thread.
	IP, SP, BP uint64
	Stack      []byte
}

// What all our events ask for, so that any record can be read without knowing its event.
const (
	sampleTID        = 1 << 1
	sampleTime       = 1 << 2
	sampleAddr       = 1 << 3
	sampleCallchain  = 1 << 5
	sampleCPU        = 1 << 7
	samplePeriod     = 1 << 8
	sampleRegsUser   = 1 << 12
	sampleStackUser  = 1 << 13
	sampleIdentifier = 1 << 16

	sampleType = sampleIdentifier | sampleTID | sampleTime | sampleAddr | sampleCPU | samplePeriod

	headSize  = 8
	trailSize = 4 * 8 // TID, TIME, CPU, IDENTIFIER of sample_id_all
	bodySize  = 6 * 8 // IDENTIFIER, TID, TIME, ADDR, CPU, PERIOD of a sample

	miscExec     = 1 << 13
	miscOut      = 1 << 13
	miscPreempt  = 1 << 14
	maxCallchain = 1 << 10

	// BP, SP and IP of amd64, in this order; x29, SP and PC of arm64.
	regsAMD64 = 1<<6 | 1<<7 | 1<<8
	regsARM64 = 1<<29 | 1<<31 | 1<<32

	contextKernel = ^uint64(128) + 1
	contextUser   = ^uint64(512) + 1
	contextMax    = ^uint64(4095) + 1
)

var (
	errShort = errors.New("record is too short")
	// errSkip is for a record of a kind that was not asked for.
	errSkip = errors.New("unknown kind")
)

// format says what samples have.
type format struct {
	chains bool
	stacks bool // registers and bytes of the stack
}

// decode reads one record, including its header, as the kernel wrote it.
func decode(b []byte, f format, r *Record) error {
	if len(b) < headSize {
		return errShort
	}
	le := binary.LittleEndian
	kind, misc, size := Kind(le.Uint32(b)), le.Uint16(b[4:]), int(le.Uint16(b[6:]))
	if size != len(b) {
		return fmt.Errorf("record of %d bytes says %d", len(b), size)
	}
	*r = Record{Kind: kind, Kernel: r.Kernel[:0], User: r.User[:0]}
	b = b[headSize:]
	if kind == Sample {
		return r.sample(b, f)
	}
	if len(b) < trailSize {
		return errShort
	}
	b, trail := b[:len(b)-trailSize], b[len(b)-trailSize:]
	r.PID, r.TID = le.Uint32(trail), le.Uint32(trail[4:])
	r.Time = int64(le.Uint64(trail[8:]))
	r.CPU = le.Uint32(trail[16:])
	r.ID = le.Uint64(trail[24:])
	need := 0
	switch kind {
	case Lost:
		if need = 16; len(b) >= need {
			r.Count = le.Uint64(b[8:])
		}
	case LostSamples:
		if need = 8; len(b) >= need {
			r.Count = le.Uint64(b)
		}
	case Comm:
		if need = 8; len(b) >= need {
			r.PID, r.TID, r.Exec = le.Uint32(b), le.Uint32(b[4:]), misc&miscExec != 0
			name := b[8:min(len(b), 8+64)]
			for i, c := range name {
				if c == 0 {
					name = name[:i]
					break
				}
			}
			r.Name = string(name)
		}
	case Fork, Exit:
		if need = 24; len(b) >= need {
			r.PID, r.OtherPID, r.TID, r.OtherTID = le.Uint32(b), le.Uint32(b[4:]), le.Uint32(b[8:]), le.Uint32(b[12:])
		}
	case Switch:
		r.Out, r.Preempt = misc&miscOut != 0, misc&miscPreempt != 0
	case SwitchCPUWide:
		if need = 8; len(b) >= need {
			r.Out, r.Preempt = misc&miscOut != 0, misc&miscPreempt != 0
			r.OtherPID, r.OtherTID = le.Uint32(b), le.Uint32(b[4:])
		}
	case Throttle, Unthrottle:
	default:
		return errSkip
	}
	if len(b) < need {
		return errShort
	}
	return nil
}

func (r *Record) sample(b []byte, f format) error {
	if len(b) < bodySize {
		return errShort
	}
	le := binary.LittleEndian
	r.ID = le.Uint64(b)
	r.PID, r.TID = le.Uint32(b[8:]), le.Uint32(b[12:])
	r.Time = int64(le.Uint64(b[16:]))
	r.Addr = le.Uint64(b[24:])
	r.CPU = le.Uint32(b[32:])
	r.Period = le.Uint64(b[40:])
	b = b[bodySize:]
	if f.chains {
		if len(b) < 8 {
			return errShort
		}
		n := le.Uint64(b)
		b = b[8:]
		if n > maxCallchain || uint64(len(b)) < 8*n {
			return fmt.Errorf("call chain of %d in %d bytes", n, len(b))
		}
		r.chain(b[:8*n])
		b = b[8*n:]
	}
	if !f.stacks {
		return nil
	}
	if len(b) < 8 {
		return errShort
	}
	// Without registers the sample is of a kernel thread, or of one that is ending.
	if abi := le.Uint64(b); abi == 0 {
		b = b[8:]
	} else {
		if len(b) < 4*8 {
			return errShort
		}
		r.BP, r.SP, r.IP = le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:])
		b = b[4*8:]
	}
	if len(b) < 8 {
		return errShort
	}
	n := le.Uint64(b)
	b = b[8:]
	if n == 0 {
		return nil
	}
	if n > uint64(len(b)) || uint64(len(b))-n < 8 {
		return fmt.Errorf("stack of %d bytes in %d", n, len(b))
	}
	// What follows says how many of the bytes the kernel could copy.
	r.Stack = b[:min(n, le.Uint64(b[n:]))]
	return nil
}

// chain takes a call chain apart: marks in it say whether the kernel's or the user's addresses
// follow.
func (r *Record) chain(b []byte) {
	var to *[]uint64
	for ; len(b) >= 8; b = b[8:] {
		ip := binary.LittleEndian.Uint64(b)
		switch {
		case ip == contextKernel:
			to = &r.Kernel
		case ip == contextUser:
			to = &r.User
		case ip >= contextMax:
			to = nil // addresses of a guest, or of an unknown kind
		case to != nil:
			*to = append(*to, ip)
		}
	}
}
