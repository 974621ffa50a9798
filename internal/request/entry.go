package request

import (
	"strings"

	"github.com/whystall/whystall/exectrace"
)

// entry is an entry function and what its goroutines are.
type entry struct {
	name     string
	role     role
	server   *server // nil: unknown
	launch   launch
	sites    []uint32
	members  uint64 // who waits: a bit each of 64 hashes
	blocks   uint32
	decideAt uint32 // number of blocks at which to try to decide next
	died     uint32 // members whose whole life was seen

	// Found out:
	idleSite uint32 // decided: where its members wait for work
	lifelong bool   // decided: born, works, dies
	busy     bool   // decided: never waits for work; a round is from one answer to the next
	accepts  bool   // waits for connections, and hands them on
	accepted bool   // created by one that does
	marked   bool   // has user tasks or regions of its own

	group      GroupID // of its activations that are nobody's tasks or regions; NoGroup: none yet
	groupSite  uint32  // idleSite when group was set
	relayGroup GroupID // of the requests that it reads and others answer; NoGroup: none yet
	lastUser   GroupID // of its last task or region

	// Of the kept activations, how many there are, and how many:
	count   int64
	served  int64 // woke a goroutine that was inside an activation of another group
	spawned int64 // created a goroutine
	wrote   int64
	tail    int64 // were there before they were read
	waits   int64 // had a wait of their own that was no write

	// Of all that its goroutines did:
	sends   int64 // writes to connections
	gives   int64 // wakes of others that waited for work
	repeats int64 // of sends and gives, those by a goroutine that had done so before
	passes  int64 // requests it was given and handed on
	unseen  int64 // reads that gave nobody visible work
	conds   int64 // waits for a sync.Cond
	blind   int64 // its requests whose answer's write was not seen
}

// forget drops the counts of the look ahead, and keeps what was decided.
func (e *entry) forget() {
	e.count, e.served, e.spawned, e.wrote, e.tail, e.waits = 0, 0, 0, 0, 0, 0
	e.sends, e.gives, e.repeats, e.unseen, e.blind, e.conds = 0, 0, 0, 0, 0, 0
}

// site is a place where goroutines of one unknown entry function wait, and who ended those waits.
type site struct {
	entry   uint32
	depth   int32   // frames from its innermost program frame to the root
	frame   string  // that frame's function
	path    []place // the outermost frames, from the entry function on
	local   uint8   // its number among the entry's sites, as far as there are bits
	blocks  uint32  // waits, and reads that did not have to wait
	returns uint32  // of blocks: by members that had waited here before
	members uint64  // who waited here: a bit each of 64 hashes

	// How many of the waits were ended
	net     uint32 // from the network
	timer   uint32 // by a timer
	other   uint32 // by a goroutine of another entry function
	replies uint32 // of other: by a goroutine that the waiter itself had woken: an answer
	unfit   uint32 // by its own kind or the runtime, or are waits that cannot be idle
}

// place is a line of a function.
type place struct {
	fn   string
	line int
}

// mostPlaces bounds a path.
const mostPlaces = 12

// before reports whether s stands in the program's text before o: where their paths part, in one
// function, it is called from an earlier line.
func (s *site) before(o *site) (earlier, known bool) {
	for i := range min(len(s.path), len(o.path)) {
		a, b := s.path[i], o.path[i]
		switch {
		case a.fn != b.fn:
			return false, false
		case a.line != b.line:
			return a.line < b.line, true
		}
	}
	return false, false
}

// tier orders unknown groups by how likely they are what a user calls a request.
type tier uint8

const (
	tierKnown tier = iota
	tierNet
	tierChan
	tierLife
	tierTimer
)

// tier is that of a group whose members wait for work at s.
func (s *site) tier() tier {
	switch {
	case s.net >= s.other && s.net >= s.timer:
		return tierNet
	case s.other >= s.timer:
		return tierChan
	}
	return tierTimer
}

// waitClass is what a wait could be ended by, as far as its reason says.
type waitClass uint8

const (
	waitOther waitClass = iota // locks, the runtime's own: never idle
	waitNet
	waitChan // receive or select
	waitTimer
	waitSend
	waitGroup // sync: WaitGroup among others
)

// foreign reports whether the wait is for something outside the goroutine's own doing.
func (c waitClass) foreign() bool { return c >= waitNet && c <= waitSend }

func classOf(r exectrace.Reason) waitClass {
	switch r {
	case exectrace.ReasonNetwork:
		return waitNet
	case exectrace.ReasonSelect, exectrace.ReasonChanRecv:
		return waitChan
	case exectrace.ReasonSleep:
		return waitTimer
	case exectrace.ReasonChanSend:
		return waitSend
	case exectrace.ReasonSync:
		return waitGroup
	}
	return waitOther
}

// launch is what is known about whether an entry function only calls what it was given: see
// launch.go.
type launch struct {
	call     uint32 // the first call seen
	waits    uint32
	indirect bool // the same line called another function
	works    bool // it waits itself, or in several calls
	decided  bool // it is one: the function that it calls is the entry
}

// call is one call by an entry function.
type call struct {
	entry, line uint32
	fn          string
}

// isLauncher reports whether a launcher is known by its name. There may be one kind of goroutine
// only.
func isLauncher(name string) bool {
	return strings.HasPrefix(name, "sync.(*WaitGroup).Go.func") ||
		pkgBase(name) == "errgroup" && strings.HasPrefix(methodOf(name), "(*Group).") &&
			strings.Contains(name, "Go.func")
}
