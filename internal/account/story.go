package account

// Story is a slow request in full: whom it waited for, and who was in which state meanwhile. It is
// for people's eyes and made only if asked for; no detector reads it. Times are on the clock of
// [Result.Begin].
type Story struct {
	Begin, End int64
	Actor      int64 // the request's goroutine, or its thread

	// Chain is where the time went, as the ledger booked it, the oldest first. It tiles the
	// request.
	Chain []Link
	// Lanes are goroutines, the request's own first and then those of the chain, the Ps, their
	// threads, and the CPUs that these ran on or were queued at.
	Lanes  []Lane
	Names  []string // by the numbers in Links and Spans; 0 is ""
	Stacks [][]Site // likewise, innermost frame first; 0 is none
	Cut    bool     // there was more than the bounds allow
}

// Link is a stretch of a request's time with one cause.
type Link struct {
	Begin, End int64
	Class      Class
	Leaf       Leaf
	Depth      int // how many waits were followed to get there
	Lane       int // of the goroutine whose time it is; -1: it has none
	Site       int // name of the place where the request's own wait stands
	Detail     int // name
	Stack      int
	Several    int // it stands for so many short ones, and is what the longest was; 0: it is one
}

// LaneKind says what a [Lane] is.
type LaneKind string

// Kinds of lanes.
const (
	LaneGoroutine LaneKind = "goroutine"
	LaneThread    LaneKind = "thread"
	LaneCPU       LaneKind = "CPU"
	LaneP         LaneKind = "P" // by the runtime's number: who held it, none where it was idle
)

// Lane is the states of one goroutine or thread, or who was on a CPU, the oldest first.
type Lane struct {
	Kind  LaneKind
	ID    int64
	Name  string
	Spans []Span
}

// Span is a stretch of a lane in one state.
type Span struct {
	Begin, End int64
	State      Leaf // [LeafOther]: it waited for another goroutine
	Detail     int  // name: who had the CPU, what was waited for
	By         int  // name of who ended the wait, or made the goroutine
	// ByKind and ByID say who By is, if it is a goroutine or a thread; ByKind is "" else. A
	// [LeafRunnable] starts with it, any other state ends with it.
	ByKind  LaneKind
	ByID    int64
	On      int // name of the thread or CPU that it was on, or queued at
	Stack   int
	Several int // as of a Link
}

// Bounds of a story.
const (
	MostStories = 10 // of each group of requests
	MostOthers  = 10 // of all groups
	MostLinks   = 1500
	MostLanes   = 14  // of each kind
	MostSpans   = 300 // of each lane
)
