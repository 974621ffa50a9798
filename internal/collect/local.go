package collect

import (
	"context"
	"errors"
	"io"
	"sort"

	"github.com/whystall/whystall/internal/evidence"
)

// Process is the target of local collectors.
type Process struct {
	PID   int    // in our own pid namespace
	NSPID int    // in its own
	Root  string // where its machine's /proc and /sys are: "" or, in tests, a folder
	For   int64  // ns that the recording lasts

	WithArgs bool
	Budget   float64 // share of the target's CPU time that recording it may cost
	Stacks   bool
	Ease     func() int // how many steps of detail to give up, for the service's sake; nil: none
	Limit    float64    // CPUs that a quota gives the target, and whoever is in its cgroup; 0: none does
	Quota    float64    // CPUs that a quota gives the target and us together; 0: none does
	Start    float64    // CPUs that the start of recording may take; 0: as many as it needs

	// MaxSize is how many bytes the member may have: a Write beyond it writes what fits and returns
	// ErrCut. A collector may look at it beforehand, and lower its detail.
	MaxSize int64

	// Recording is called by Record once it records, so that what must lie within its time can
	// start; nil in tests. Where Record never calls it, its first write counts. The runner waits
	// for either, and for toStart at most. So Record calls it if it writes only at the end.
	Recording func()
}

// ErrCut is what a Write beyond --max-size returns: Record ends then, and what came is kept.
var ErrCut = errors.New("cut at --max-size")

// Local is a collector of a process on this machine. All Locals run side by side. But of those with
// the same Member only the first by Order that is ready runs; if it breaks before its first byte,
// the next.
type Local struct {
	Name   string
	Doc    string // for people; doctor prints the first sentence: what it reads, and how often
	Order  int    // place in doctor's list, and among those with the same Member
	Tier   string // the heading that doctor lists it under: TierSystem, ...
	Member string // file of the case that Record writes

	// Probe returns nil if Record would work, or why it would not and what would permit it. It
	// changes nothing.
	Probe func(Process) error
	Tries bool // Record finds out itself, and says so by an unavailable error: probing costs

	// Record writes the member until ctx ends. It leaves nothing behind, whatever happens.
	Record func(ctx context.Context, p Process, w io.Writer) (*evidence.Cost, error)
}

// unavailable is what Record returns where this machine or user does not permit it.
type unavailable struct{ error }

var locals []*Local

func registerLocal(c *Local) *Local {
	locals = append(locals, c)
	return c
}

// Locals lists the collectors of local processes in the order they are tried.
func Locals() []*Local {
	s := append([]*Local(nil), locals...)
	sort.SliceStable(s, func(i, j int) bool { return s[i].Order < s[j].Order })
	return s
}
