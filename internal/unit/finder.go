package unit

import (
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/sched"
)

// finder is the state of one search.
type finder struct {
	timeline *sched.Timeline
	options  request.Options
	set      Set

	// What is known of the machine that was recorded.
	multiplexes map[int32]multiplex // by number of the system call
	stackCalls  stackCalls

	// Names and stacks, each with a small number that can be compared.
	names  map[nameKey]int32
	nameOf []nameKey
	stacks map[uint32]*stackFacts // by StackID
	sigs   map[string]uint32      // by the names of a whole user stack

	// Collected while waits are counted.
	tid      uint32 // whose stretch is being looked at
	waits    int64
	unknown  int64           // waits of which nobody knows what they were in
	goFrames bool            // a stack has functions of Go's scheduler
	polls    polls           // waits for the events of many, by descriptor
	reads    polls           // waits for the bytes of one socket
	handed   map[uint64]bool // descriptors of reads that go from thread to thread
	lives    *sched.Lives
	joins    map[uint32][]joined // by thread that ended

	// Collected while lives are cut.
	groupRole []int32  // role by group
	unitCPU   []uint32 // by unit: ns on a CPU, 4 s at most
	tooMany   int64    // units beyond maxUnits

	// Scratch, to ask the timeline without a new slice each time.
	wakings []sched.Waking
	making  []sched.Stretch
	between []sched.Stretch
}

// joined is the end of a thread as the thread that waited for it saw it.
type joined struct {
	at  int64
	tid uint32
}
