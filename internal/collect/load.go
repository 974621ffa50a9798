package collect

import (
	"maps"

	"github.com/whystall/whystall/internal/evidence"
)

// Load is what the counters of the target say while it is recorded: those of the toll, which are
// read anyway.
type Load struct {
	CPUs        float64 // in use, in the last reading
	Switches    float64 // of its threads, a second, likewise
	ThrottledNS int64   // since the recording started, all CPUs added up
	// Stalled is in how many of the readings its threads waited for a CPU, queued or throttled, for
	// longer than they had one.
	Stalled  int
	Readings int
	Seen     map[evidence.Counted]bool
}

// add adds what was counted between two readings.
func (l *Load) add(d *evidence.Slice, seen map[evidence.Counted]bool) {
	if d.NS <= 0 {
		return
	}
	l.CPUs = float64(d.CPUNS) / float64(d.NS)
	l.Switches = float64(d.Switches) / float64(d.NS) * 1e9
	l.ThrottledNS += d.ThrottledNS
	l.Readings++
	if d.QueuedNS+d.ThrottledNS > d.CPUNS {
		l.Stalled++
	}
	l.Seen = seen
}

// now is the load so far; nil where nothing is counted.
func (t *tally) now() *Load {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.load.Readings == 0 {
		return nil
	}
	l := t.load
	l.Seen = maps.Clone(l.Seen)
	return &l
}
