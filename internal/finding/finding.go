// Package finding is what a detector may say, as plain data, and how an amount and a word of a
// command are written.
package finding

// Confidence grades a finding. The rule is the manual's chapter "how-sure", which whystall causes
// how-sure prints (internal/detect/chapters.go).
type Confidence string

const (
	Proven    Confidence = "proven"    // who was awaited and what held it are both measured, for at least 80 % of the claim
	Supported Confidence = "supported" // one of the two is measured, or two independent counters agree
	Possible  Confidence = "possible"  // the evidence is compatible with it, no more
)

// Scope says of whom a finding speaks: whose time the cause takes.
type Scope string

// Scopes. A cause is reported in the first of them in which it is found.
const (
	Slow    Scope = "slow"    // why slow requests are slow
	Usual   Scope = "usual"   // what every request pays
	Process Scope = "process" // what the process pays as a whole, whoever its requests are
)

// Bound is the most that a cause which was ruled out can cost, in one scope. One of NS and Share is
// the figure that the evidence bounds.
type Bound struct {
	Scope Scope   `json:"scope"`
	NS    int64   `json:"ns"`    // Slow, Usual: of a request; Process: a second
	Share float64 `json:"share"` // of a request's time, of the process' CPU time, or of wall time
	Of    Whole   `json:"of"`
}

// Whole says of what a bound's share is.
type Whole string

// Wholes.
const (
	OfRequest Whole = "request"
	OfCPU     Whole = "CPU time"
	OfWall    Whole = "wall time"
	OfMemory  Whole = "memory"
)

// Explains is the amount of an account that a finding claims. Exactly one of the three is set.
type Explains struct {
	NS    int64 `json:"ns,omitempty"`     // of the time of slow requests, or of usual ones: of the scope's column
	CPUNS int64 `json:"cpu_ns,omitempty"` // of the capacity ledger
	Bytes int64 `json:"bytes,omitempty"`  // of the memory ledger
	// WaitedNS is of the time in which goroutines or threads had work or waited, where no request's
	// is meant.
	WaitedNS int64 `json:"waited_ns,omitempty"`
}

// Evidence is one line of proof and its source.
type Evidence struct {
	Text   string `json:"text" prose:"yes"`
	Source string `json:"source" prose:"yes"`
}

// Finding is one cause that explains part of an account.
type Finding struct {
	Cause      string     `json:"cause"` // the detector's name
	Scope      Scope      `json:"scope"`
	Title      string     `json:"title" prose:"yes"`
	Confidence Confidence `json:"confidence"`
	Explains   Explains   `json:"explains"`
	Share      float64    `json:"share"` // of that ledger's total, 0..1
	// BeyondUsual, of the scope slow, is the share that usual requests do not lose as well.
	// Findings are ranked by it, unless one likely follows from another.
	BeyondUsual float64    `json:"beyond_usual,omitempty"`
	BecauseOf   string     `json:"because_of"` // the cause it is a mechanism of; "" for a root
	Summary     string     `json:"summary" prose:"yes"`
	Evidence    []Evidence `json:"evidence"`
	Remedy      []string   `json:"remedy" prose:"yes"` // commands or changes, one a line
	Verify      string     `json:"verify" prose:"yes"` // the command that checks the remedy
	// Claims are the kinds of accounts of the scope's column that it explains in part; nil where
	// Explains.NS is 0. Recordings are compared by them.
	Claims []Claim `json:"-"`
}

// Claim is what a finding explains of all accounts with one leaf, which is an account.Leaf.
type Claim struct {
	Leaf string
	NS   int64
}

// RuledOut is a cause that was checked and is not there.
type RuledOut struct {
	Cause  string  `json:"cause"`
	Why    string  `json:"why" prose:"yes"`
	Bounds []Bound `json:"bounds,omitempty"` // by scope; a scope that has none is not looked at for this cause
}

// NotChecked is a cause that could not be checked.
type NotChecked struct {
	Cause   string   `json:"cause"`
	Missing []string `json:"missing" prose:"yes"` // what was not there, and what would bring it
}

// Result is the outcome of all detectors.
type Result struct {
	Findings   []Finding    `json:"findings"` // roots ranked first, each followed by its mechanisms
	RuledOut   []RuledOut   `json:"ruled_out"`
	NotChecked []NotChecked `json:"not_checked"`
	Left       []int64      `json:"-"` // ns of each account of the slow column that no finding explains; nil without a ledger
}
