package request

import "github.com/whystall/whystall/exectrace"

// phase is how far a goroutine is with an activation.
type phase uint8

const (
	phaseNone     phase = iota // in none that is known
	phaseIdle                  // waits for work
	phaseMaybe                 // in one since begin, if what comes proves to be a request
	phaseOpen                  // in one since begin
	phaseHijacked              // never again
)

// flags of a gstate. All but flagsKept belong to the activation and go with it.
type flags uint32

const (
	flagChild     flags = 1 << iota // created inside an activation: what it does is part of that
	flagWaiting                     // blocked now
	flagTail                        // still finishing the request before
	flagAborting                    // waits in abortPendingRead
	flagWriting                     // in a system call of finishRequest
	flagUser                        // open is a user's task or region
	flagOpenBegin                   // begin was not seen
	flagOurs                        // made by whoever records
	flagWaited                      // had a wait of its own since its last write
	flagPassing                     // had a wait for the body of an answer it asked for
	flagServed                      // woke a goroutine inside an activation of another group
	flagSpawned                     // created a goroutine
	flagRPC                         // streaming
	flagClosing                     // closes its connection
	flagDeferred                    // its task has ended, but it waits for that to reach it
	flagWrote                       // unknown loops: wrote to a connection since it last read
	flagFresh                       // its creation was seen, no wait for work since
	flagLost                        // begun inside a gap
	flagBusy                        // had a wait of its own that was no write
	flagRead                        // read since begin
	flagGave                        // gave somebody work since it last read
	flagWoke                        // woke at begin from a wait older than the trace, did nothing since
	flagGiver                       // wrote to a connection or gave work before
	flagHolds                       // has a request that it did not read itself: see holder
	flagPolling                     // in a system call that waits for the events of many descriptors
	flagActed                       // called, woke or waited since begin
	flagByStart                     // its entry is where its life began: no stack of its own was seen
	flagsKept     = flagPolling | flagByStart | flagChild | flagWaiting | flagWrote | flagFresh | flagHolds | flagGiver
)

// gstate is what a goroutine is in the middle of. There is one a slot.
type gstate struct {
	begin, prevEnd exectrace.Time
	flushed        exectrace.Time // net/http: finishRequest's last write; deferred task: its end
	id             exectrace.GoID
	task           uint64 // of the open user activation
	visited        uint64 // unknown loops: sites where it has waited, a bit each
	slot           uint32 // its own
	serial         uint32 // of the activation
	entry          uint32
	site           uint32 // unknown loops: where it blocked
	call           uint32 // entry functions that may be launchers: where it waited
	waker          uint32 // slot of the goroutine that woke it last; NoSlot: none did
	ender          uint32 // deferred task: slot of the goroutine that ended it
	name           NameID
	writes         uint32
	group          GroupID
	regions        uint16 // depth of open regions
	streamed       uint8
	role           role
	phase          phase
	class          waitClass // of its present wait
	flags          flags
}

func (g *gstate) flushedOr(t exectrace.Time) exectrace.Time {
	if g.flushed > g.begin {
		return g.flushed
	}
	return t
}

// task is what is known about a user task that has begun.
type task struct {
	slot, serial uint32 // of the goroutine and activation it is; only if neither of the below
	inside       bool   // part of another activation
	givenUp      bool   // its goroutine went on to the next: regions elsewhere stand for themselves
}

// relay is a request that is under way on goroutines that it was handed to.
type relay struct {
	begin  exectrace.Time // its reader had it
	end    exectrace.Time // of the last write; 0: none yet
	hops   Hops           // to the goroutine that wrote
	id     exectrace.GoID // of that goroutine
	slot   uint32         // of that goroutine
	reader uint32         // entry
	refs   int32          // goroutines that have it
	lost   bool           // begun inside a gap
}

// holder is what a goroutine has to do with requests that are handed on. There is one a slot, where
// flagRead or flagHolds is set.
type holder struct {
	read  exectrace.Time // a reader: when it last read on without a wait
	hops  Hops
	n     uint8  // of hops
	done  bool   // wrote or handed on
	relay uint32 // index into Finder.relays
}

type groupKey struct {
	entry uint32
	kind  string
	name  NameID
}

// Finder finds activations. Use: NewFinder, Learn on the first part of the stream, Event for every
// event of a fresh pass in order, Finish. It is for one goroutine.
type Finder struct {
	program
	options Options
	ended   []Activation // by the present event

	gs      []gstate // by slot
	tasks   map[uint64]task
	groups  []Group
	groupID map[groupKey]GroupID

	holders    []holder // by slot, as far as needed
	relays     []relay
	freeRelays []uint32 // of them nobody has

	now       exectrace.Time
	gapEnd    exectrace.Time // events are missing until then
	lostTasks int64          // beyond maxTasks
}

// NewFinder makes a Finder for the trace whose stacks src resolves.
func NewFinder(src Source, o Options) *Finder {
	return &Finder{program: newProgram(src), options: o, tasks: map[uint64]task{}, groupID: map[groupKey]GroupID{}}
}

// maxSlots bounds the table against a damaged trace.
const maxSlots = 1 << 22

func (f *Finder) grow(slot uint32) {
	if int(slot) >= len(f.gs) && slot < maxSlots {
		f.gs = append(f.gs, make([]gstate, int(slot)+1-len(f.gs)+len(f.gs)/4)...)
	}
}

func (f *Finder) reset(g *gstate, id exectrace.GoID, slot uint32) {
	*g = gstate{id: id, slot: slot, serial: g.serial + 1, waker: exectrace.NoSlot, group: NoGroup}
}
