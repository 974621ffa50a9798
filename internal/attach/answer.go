package attach

import "github.com/whystall/whystall/internal/finding"

// Answer is what all parts together say.
type Answer struct {
	Told    []*Told
	Unknown []Unknown
	Causes  []Verdict // findings first, by what they cost; each followed by its mechanisms
	Notes   []string  `prose:"yes"` // which parts are before and after, which are two places, which cannot be told
	Next    []Next    // what would decide; none where nothing is open
	State   State
}

// Told is one part and what it says.
type Told struct {
	Reading
	Part  *Part
	Group int // parts of one process and moment have one number, from 1
}

// Unknown is a range of lines that no kind knows.
type Unknown struct {
	File string
	Range
	Sort  Sort   // what it is; only an output is expected to be known
	Guess string // the kind that is nearest, "" if none is near
	Why   string `prose:"yes"` // what is missing of it

	Apple  bool // it speaks of a Mac
	Groups bool // it speaks of containers, of Linux, or of what else has cgroups
}

// Verdict is what the parts say about one cause, after arbitration.
type Verdict struct {
	Sign
	Group int
	From  []*Told // the parts that it rests on
}

// worse gives the worse of two states; none is the best.
func worse(a, b State) State {
	for _, s := range []State{Ill, CannotTell} {
		if a == s || b == s {
			return s
		}
	}
	return Healthy
}

// atMost caps how sure a finding from text may be.
func atMost(c finding.Confidence) finding.Confidence {
	if c == finding.Supported || c == finding.Proven {
		return finding.Supported
	}
	return finding.Possible
}
