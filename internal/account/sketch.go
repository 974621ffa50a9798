package account

// Sketches are slow requests in short, the longest first: what the time of each consists of, and
// the chain of those it waited for, without anybody's states meanwhile. Every slow request has one
// where stories are asked for, so what they share is numbered, and each is small. No detector reads
// them.
type Sketches struct {
	Accounts []Named  // by the number in a Part
	Lanes    []Lane   // those whose time a Link is, without spans
	Names    []string // by the numbers in Links; 0 is ""
	Stacks   [][]Site // likewise, innermost frame first; 0 is none
	List     []Sketch
	Left     int // slow requests beyond MostSketches
}

// Sketch is one slow request.
type Sketch struct {
	Begin, End int64
	Actor      int64 // its goroutine, or its thread
	Entry      string
	Name       string // as of a Request
	Parts      []Part // the largest first
	Chain      []Link // the oldest first; it tiles the request. Lane is in Sketches.Lanes
}

// Part is an account and its time.
type Part struct {
	Account int // in Sketches.Accounts
	NS      int64
}

// Bounds of sketches.
const (
	MostSketches     = MostDots
	MostSketchLinks  = 20     // of each; fewer where there are many
	LeastSketchLinks = 3      // likewise
	AllSketchLinks   = 25_000 // of all together
	MostStacks       = 1500   // that they share; of a story too
)
