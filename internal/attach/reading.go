package attach

import (
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
)

// Reading is what one part says.
type Reading struct {
	Title   string   `prose:"yes"` // what it is: "vmstat 1, 12 samples over 12 s"
	Figures []string `prose:"yes"` // with units, the one that matters most first; three are printed
	Means   string   `prose:"yes"` // what follows from them, one sentence
	Not     string   `prose:"yes"` // what they do not prove: the misreading that lies near; "" if none does
	Flaws   []string `prose:"yes"` // lines that could not be read: what, where, why

	State State
	Signs []Sign // what it says about causes
	Facts []Fact // what rules about several parts ask for
	Next  []Next // what would decide where State is CannotTell

	Who     Who
	Time    time.Time         // of the first sample; zero: it does not say
	Glance  bool              // one sample of a state that changes: R and D threads, top
	Boot    bool              // counters since boot or start, read once: no rate follows
	Records []evidence.Record // for the detectors: streams as the live collectors write them
}

// State is what a part says of the service's health. The exit status follows from it.
type State string

// States.
const (
	Healthy    State = "healthy"     // what this kind can show is shown, and is all right
	Context    State = "context"     // it says what a machine is; alone it makes nothing healthy
	CannotTell State = "cannot tell" // too little, a glance, a risk, candidates, or time outside
	Ill        State = "ill"         // a sign of grade Found
)

// Who is the process, as far as a part names it.
type Who struct {
	PID       int    // 0: not named
	TID       int    // of its one thread, where no other is in the text; 0: not named, or more
	Name      string // of the program; "": not named
	Host      string
	Cgroup    string // a path, or a container's id
	ParentPID int
}

// Sign is what a part says about one cause.
type Sign struct {
	Cause string // a detector's name; "" where Grade is Outside
	Where string `prose:"yes"` // Outside: where the time is, in a person's words
	Grade Grade
	Sure  finding.Confidence // Found: Supported or Possible; never Proven
	Share float64            // of the time, CPU or requests that the part covers, 0..1; ranks signs. 0: not known
	Proof []string           `prose:"yes"` // lines of evidence, best first
	// Remedy is what helps where the cause's own first remedy does not; "": it does.
	Remedy string `prose:"yes"`
	// BecauseOf is the cause that this one is a mechanism of; "": none is known.
	BecauseOf string
	// Counter is what the sign rests on where that was counted since boot or start: where a later
	// reading of the same place shows that it did not grow, the sign goes. "": it rests on more.
	Counter FactName
}

// Grade is how a sign bears on its cause.
type Grade string

// Grades, from the strongest on.
const (
	Found     Grade = "found"     // time, CPU or requests are lost to it in this text, by rates or shares
	Outside   Grade = "outside"   // the time is lost elsewhere: Where says where
	Candidate Grade = "candidate" // the text fits it, and at least one other cause as well
	Risk      Grade = "risk"      // a setting that is known to bite; nothing shows that it does
	Against   Grade = "against"   // the text bounds what it can cost, below any matter
)

// Fact is a number that rules about several parts ask for.
type Fact struct {
	Name  FactName
	Value float64
	Of    string // what it is about where there may be several: a lock's address, a device; "": none
}

// FactName names a fact and its unit. Rules read facts by these names; each stands with the rule
// that reads it, in rules.go, or with the kind that writes it where several kinds do.
type FactName string

// Next is a command that would decide, with what is known filled in. PID, PORT and CGROUP stand for
// what is not.
type Next struct {
	Command string `prose:"yes"`
	Why     string `prose:"yes"`
}
