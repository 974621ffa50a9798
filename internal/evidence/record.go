package evidence

import (
	"maps"
	"slices"
)

// Shape is the form of a record. The shapes are a closed set; new streams may come.
type Shape uint8

const (
	Event    Shape = iota + 1 // something happened at Time
	Interval                  // something lasted from Time to End
	Sample                    // a value seen at Time; with Stack: an amount at a stack
	Counter                   // a value that only grows, read at Time
	Fact                      // true of the whole recording; Text or Value
	GapShape                  // nothing is known from Time to End; Text says why
)

// Record is one thing that was read, on the clock of the case.
type Record struct {
	Stream string // "/place/thing:unit", as in runtime/metrics
	Shape  Shape
	Time   int64 // ns, CLOCK_MONOTONIC; 0 if only the order of the readings is known
	End    int64 // Interval, Gap
	Value  float64
	Text   string
	Stack  []string // function names, innermost first
	N      int64    // Sample with Stack: how many times
}

// Stream describes a stream. Each source describes its streams in its own file.
type Stream struct {
	Name string
	Doc  string
}

// Set holds the records of a case by stream, for small sources: bulk ones stay in columns.
type Set struct {
	byStream map[string][]Record
}

// Add appends a record to its stream.
func (s *Set) Add(r Record) {
	if s.byStream == nil {
		s.byStream = map[string][]Record{}
	}
	s.byStream[r.Stream] = append(s.byStream[r.Stream], r)
}

// Has reports whether the stream has a record other than a gap.
func (s *Set) Has(stream string) bool {
	for _, r := range s.byStream[stream] {
		if r.Shape != GapShape {
			return true
		}
	}
	return false
}

// Gaps lists what is known to be missing, sorted by stream.
func (s *Set) Gaps() []Record {
	var out []Record
	for _, stream := range s.Names() {
		for _, r := range s.byStream[stream] {
			if r.Shape == GapShape {
				out = append(out, r)
			}
		}
	}
	return out
}

// Names lists the streams that have records, gaps included, in the order of their names.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.byStream)) }

// All returns a stream's records in the order in which they were added.
func (s *Set) All(stream string) []Record { return s.byStream[stream] }

// Fact returns the first fact of a stream.
func (s *Set) Fact(stream string) (Record, bool) {
	for _, r := range s.byStream[stream] {
		if r.Shape == Fact {
			return r, true
		}
	}
	return Record{}, false
}

// Delta is the growth of a counter between its first and last reading, and the ns between them. ok
// is false with fewer than two readings, and if the counter fell, because then it was restarted.
func (s *Set) Delta(stream string) (growth float64, ns int64, ok bool) {
	var first, last *Record
	for i := range s.byStream[stream] {
		r := &s.byStream[stream][i]
		if r.Shape != Counter {
			continue
		}
		if first == nil {
			first = r
		} else if last != nil && r.Value < last.Value {
			return 0, 0, false
		}
		last = r
	}
	if first == last || last.Value < first.Value {
		return 0, 0, false
	}
	return last.Value - first.Value, last.Time - first.Time, true
}
