package bpf

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Kind says what an Event is. c/record.h has the same list.
type Kind uint8

// Kinds. The comment of each says what TID, Other, Arg and the stacks mean; what it does not
// mention is zero.
const (
	// Switch: TID left a CPU in state Arg[0], Other came. For a blocked thread of the target,
	// Arg[1] and Arg[2] are its system call plus one and its first argument.
	Switch Kind = iota + 1
	// Waking: TID of the target is being woken by Other, whose stacks these are. For a waker of the
	// target Arg is as for Switch.
	Waking
	Wakeup     // TID of the target was queued on CPU Arg[0]
	Fork       // Other of the target created TID, in process Arg[0]
	Exit       // TID of the target ended
	Exec       // TID of the target runs another program; it had the number Arg[0] before
	Named      // a Thread
	Defined    // a stack, for the first time
	WaitStack  // the stacks of TID's wait
	Unthrottle // Arg[0]: 0 a quota's period timer, 1 its slack timer, 2 the call to a CPU
	Signal     // SIGURG from TID to Other
	Delivered  // SIGURG to TID
	Sample     // TID was on CPU; stacks
	Fault
	Reclaim
	Compaction
	MmapLock
	TLBFlush
	KernelLock
	NUMAMove
	// SocketReady: since Time socket number Arg[1] had data, which TID read Arg[0] ns later. Other
	// had found it empty at Arg[2].
	SocketReady
	TimerDue
	Held
	// Copied: a copy of the innermost bytes of a thread's user stack, to which a later event of the
	// thread refers by its hash.
	Copied
	Turn // TID, which did not wait meanwhile, reads another socket than before

	kinds
)

// Flags of an Event.
type Flags uint16

// Flags.
const (
	Preempted      Flags = 1 << iota
	Throttled            // task_struct.throttled
	GroupThrottled       // its cfs_rq's throttle_count is not 0; of Switch, Wakeup
	Target               // TID is of the target
	OtherTarget          // Other is
	Interrupt            // it happened in an interrupt: Other is a bystander
	New
	Migrate
	Memcg
	Write
	KernelThread
	Leaving
	Major
	Reads // of Waking: Other, which is not of the target, is in a call that reads
)

// Event is one thing that the kernel reported. Time is CLOCK_MONOTONIC, ns; thread numbers are
// those of the first pid namespace. Kernel and User identify stacks by a hash; 0 is none.
type Event struct {
	Time   int64
	TID    uint32
	Other  uint32
	CPU    uint16
	Flags  Flags
	Kind   Kind
	Arg    [3]uint64
	Kernel uint64
	User   uint64

	Thread Thread   // of Named
	Stack  []uint64 // of Defined: addresses, innermost first; valid until the next event
	IsUser bool     // of Defined
	ID     uint64   // of Defined and Copied: its hash
	Bytes  []byte   // of Copied: from SP on; valid until the next event
	IP     uint64   // of Copied: registers
	SP     uint64
	BP     uint64
}

// Thread identifies a thread.
type Thread struct {
	TID, PID   uint32
	NSTID      uint32 // TID in its innermost pid namespace
	SelfTID    uint32 // in the recorder's; 0: it has none there
	Cgroup     uint64 // inode number of its folder in the hierarchy of the cpu controller
	Comm       string
	Kernel     bool
	FromTarget bool
}

const (
	smallSize  = 24
	middleSize = 48
	largeSize  = 64
	nameSize   = 56
	copySize   = 56 // and the bytes
	maxDepth   = 127
)

// decode reads one record of a ring into e. It allocates nothing but a thread's name and, once,
// room for a stack.
func decode(b []byte, e *Event) error {
	if len(b) < smallSize {
		return fmt.Errorf("decode event: %d bytes, want at least %d", len(b), smallSize)
	}
	le := binary.LittleEndian
	e.Time = int64(le.Uint64(b))
	e.TID = le.Uint32(b[8:])
	e.Other = le.Uint32(b[12:])
	e.Arg = [3]uint64{uint64(le.Uint32(b[16:]))}
	e.Flags = Flags(le.Uint16(b[20:]))
	e.Kind = Kind(b[22])
	e.Kernel, e.User = 0, 0
	switch {
	case e.Kind == 0 || e.Kind >= kinds:
		return fmt.Errorf("decode event: kind %d is not known", e.Kind)
	case e.Kind == Named:
		if len(b) < nameSize {
			return fmt.Errorf("decode event: thread of %d bytes, want %d", len(b), nameSize)
		}
		e.Thread = decodeThread(b)
	case e.Kind == Defined:
		if len(b) < smallSize+8 || (len(b)-smallSize)%8 != 0 {
			return fmt.Errorf("decode event: stack of %d bytes", len(b))
		}
		e.ID = le.Uint64(b[smallSize:])
		e.IsUser = e.Arg[0] != 0
		e.Stack = e.Stack[:0]
		for b = b[smallSize+8:]; len(b) > 0 && len(e.Stack) < maxDepth; b = b[8:] {
			e.Stack = append(e.Stack, le.Uint64(b))
		}
	case e.Kind == Copied:
		if len(b) < copySize {
			return fmt.Errorf("decode event: copy of %d bytes", len(b))
		}
		e.ID, e.IP, e.SP, e.BP = le.Uint64(b[24:]), le.Uint64(b[32:]), le.Uint64(b[40:]), le.Uint64(b[48:])
		e.Bytes = b[copySize:]
	case len(b) >= middleSize:
		for i := range e.Arg {
			e.Arg[i] = le.Uint64(b[smallSize+8*i:])
		}
		if len(b) >= largeSize {
			e.Kernel = le.Uint64(b[middleSize:])
			e.User = le.Uint64(b[middleSize+8:])
		}
	}
	return nil
}

// decodeThread reads a struct name of at least nameSize bytes.
func decodeThread(b []byte) Thread {
	le := binary.LittleEndian
	flags := Flags(le.Uint16(b[20:]))
	comm, _, _ := bytes.Cut(b[40:nameSize], []byte{0})
	return Thread{
		TID:        le.Uint32(b[8:]),
		PID:        le.Uint32(b[12:]),
		NSTID:      le.Uint32(b[16:]),
		SelfTID:    le.Uint32(b[24:]),
		Cgroup:     le.Uint64(b[32:]),
		Comm:       string(comm),
		Kernel:     flags&KernelThread != 0,
		FromTarget: flags&Target != 0,
	}
}
