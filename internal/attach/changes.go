package attach

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
)

// What is said of several readings of one kind.
const (
	mostChanges  = 3   // figures
	mostReadings = 5   // whose values are all said
	mostSequels  = 3   // of one kind: an archive may have two readings of each process
	changed      = 0.1 // of the larger of two values: less is the usual up and down
)

// A sequel is readings of one kind, and how they stand to each other: two, or more in order.
type sequel struct {
	link
	told []*Told
}

// compare says of each kind that was read more than once what changed, or that nothing tells
// whether it is one place: which says of two places what they differ by. A kind that puts two
// readings into one part has said it itself.
func (a *Answer) compare(links []link) {
	told := map[*Part]*Told{}
	for _, t := range a.Told {
		told[t.Part] = t
	}
	var all []*sequel
	ends := map[*Part]*sequel{}
	noted, n := map[*Kind]bool{}, map[*Kind]int{}
	for _, l := range links {
		first, later := told[l.first], told[l.later]
		l = l.asRead(first, later)
		switch on := ends[l.first]; {
		case l.order == sequent && on != nil:
			on.told, on.later = append(on.told, later), l.later
			ends[l.later] = on
			continue
		case l.order != sequent && noted[l.later.Kind]: // of many places one note is enough
			continue
		}
		s := &sequel{link: l, told: []*Told{first, later}}
		all = append(all, s)
		if l.order == sequent {
			ends[l.later] = s
		} else {
			noted[l.later.Kind] = true
		}
	}
	for _, s := range all {
		if s.printedTwice() {
			continue
		}
		s.settle()
		text := s.text()
		if text == "" {
			continue
		}
		if n[s.later.Kind]++; n[s.later.Kind] > mostSequels {
			continue
		}
		a.Notes = append(a.Notes, text)
	}
	for _, s := range all {
		if more := n[s.later.Kind] - mostSequels; more > 0 {
			a.Notes = append(a.Notes, fmt.Sprintf("%s: %d more readings are not compared", s.later.Kind.Name, more))
			n[s.later.Kind] = 0
		}
	}
}

// asRead takes into account what only reading shows: whose the parts are, and when they were taken.
func (l link) asRead(first, later *Told) link {
	a, b := first.Who, later.Who
	switch {
	case l.order == places:
	case otherHost(a.Host, b.Host):
		l.order, l.why = places, "hosts "+a.Host+" and "+b.Host
	case a.PID != 0 && b.PID != 0 && a.PID != b.PID:
		l.order, l.why = places, fmt.Sprintf("pids %d and %d", a.PID, b.PID)
	case a.TID != 0 && b.TID != 0 && a.TID != b.TID:
		l.order, l.why = places, fmt.Sprintf("threads %d and %d", a.TID, b.TID)
	case differ(a.Cgroup, b.Cgroup):
		l.order, l.why = places, "cgroups "+a.Cgroup+" and "+b.Cgroup
	case differ(a.Name, b.Name):
		l.order, l.why = places, a.Name+" and "+b.Name
	case otherMemory(first, later):
		l.order, l.why = places, "machines with different amounts of memory"
	case l.order == sequent && otherBoot(first, later):
		l.order = untold
	}
	return l
}

// settle takes back signs that rest on a counter which did not grow from the first reading to the
// last: what it counts is over.
func (s *sequel) settle() {
	if s.order != sequent || slices.ContainsFunc(s.rows(), row.fell) {
		return
	}
	first, last := s.told[0], s.told[len(s.told)-1]
	still := func(g Sign) bool {
		before, has := fact([]*Told{first}, g.Counter)
		after, later := fact([]*Told{last}, g.Counter)
		return g.Counter != "" && has != nil && later != nil && before.Value == after.Value
	}
	for _, t := range s.told {
		t.Signs = slices.DeleteFunc(slices.Clone(t.Signs), still)
	}
}

// both are the values of a fact that each of two readings has.
func both(first, later *Told, name FactName) (a, b float64, ok bool) {
	x, from := fact([]*Told{first}, name)
	y, to := fact([]*Told{later}, name)
	return x.Value, y.Value, from != nil && to != nil
}

// otherMemory reports whether two readings are of machines that have not the same memory.
func otherMemory(first, later *Told) bool {
	a, b, ok := both(first, later, MemoryTotal)
	return ok && math.Abs(a-b) > changed*max(a, b)
}

// sameBoot is how far apart two times of one boot may be, in seconds: an uptime is in minutes, and
// a clock may be set right.
const sameBoot = 300

// otherBoot reports whether two readings are not of one machine since it was last started: by the
// clock and the uptime, each was started at another time of the day. Sleep looks the same.
func otherBoot(first, later *Told) bool {
	const day = 24 * 60 * 60
	a, b, ok := both(first, later, HostBoot)
	gap := math.Abs(a - b)
	return ok && min(gap, day-gap) > sameBoot
}

// text says of the readings what is known; "": nothing is to be said.
func (s *sequel) text() string {
	kind, first, last := s.first.Kind, s.told[0].Part.where(), s.told[len(s.told)-1].Part.where()
	rows := s.rows()
	fell := slices.IndexFunc(rows, row.fell)
	said := ""
	switch {
	case s.order == sequent && fell < 0:
		if len(rows) == 0 {
			return ""
		}
		took := s.took()
		text := fmt.Sprintf("%s: %s and then %s", kind.Name, first, last)
		if n := len(s.told); n > 2 {
			text = fmt.Sprintf("%s: %s to %s, %d readings in order", kind.Name, first, last, n)
		}
		if took > 0 {
			text += ", " + spell(took) + " apart"
		}
		return text + s.doubt() + ": " + changes(rows, took)
	case s.order == sequent:
		text := fmt.Sprintf("%s: %s and then %s are no before and after, as a counter fell (%s %s): another place, or started again in between, so no rate is made of them",
			kind.Name, first, last, rows[fell].of(rows[fell].whom), rows[fell].fromTo())
		return text + sideBySide(rows)
	case len(rows) == 0 && (kind.Scattered || s.order == untold && !kind.Joins):
		return "" // nothing is to be compared
	case s.order == places:
		said = fmt.Sprintf("%s: %s and %s are two places (%s): side by side, without rates", kind.Name, first, last, s.why)
	case kind.Scattered:
		said = fmt.Sprintf("%s: %s and %s, side by side and without rates", kind.Name, first, last)
	case len(rows) == 0 && s.apples():
		return ""
	case fell >= 0:
		said = fmt.Sprintf("%s: %s and %s are no before and after in this order, as a counter fell (%s %s), so no rate is made of them",
			kind.Name, first, last, rows[fell].of(rows[fell].whom), rows[fell].fromTo())
	default:
		said = fmt.Sprintf("%s: nothing tells whether %s and %s are one place before and after, so no rate is made of them", kind.Name, first, last)
	}
	return said + sideBySide(rows)
}

// leastTwice is how many lines are not the same by chance.
const leastTwice = 2

// printedTwice reports whether all lines of the later readings stand in the first: one output that
// a person attached again, or quoted from, is no before and after.
func (s *sequel) printedTwice() bool {
	first := map[string]bool{}
	for _, l := range s.told[0].Part.Lines {
		first[strings.TrimSpace(l.Text)] = true
	}
	return !slices.ContainsFunc(s.told[1:], func(t *Told) bool {
		return len(t.Part.Lines) < leastTwice || slices.ContainsFunc(t.Part.Lines,
			func(l paste.Line) bool { return !first[strings.TrimSpace(l.Text)] })
	})
}

// spell writes the time between two readings, of minutes and more as a clock does.
func spell(took time.Duration) string {
	if took < 10*time.Minute {
		return finding.Duration(int64(took))
	}
	return strings.TrimSuffix(took.Round(time.Minute).String(), "0s")
}

// apples reports whether the readings have figures that are compared, and none of them in common:
// they are of different things.
func (s *sequel) apples() bool {
	return !slices.ContainsFunc(s.told, func(t *Told) bool {
		return !slices.ContainsFunc(t.Facts, func(f Fact) bool {
			return slices.ContainsFunc(measures, func(m measure) bool { return m.name == f.Name })
		})
	})
}

// doubt is a word of caution where the readings are of two files and neither says whose it is.
func (s *sequel) doubt() string {
	p, t := s.told[0].Part, s.told[0]
	if p.File == s.later.File || t.Who != (Who{}) || p.Path != "" || p.Lines[0].Source != "" {
		return ""
	}
	return " (if they are of one place)"
}

// row is one figure of all readings.
type row struct {
	measure
	whom   string
	values []float64
}

// rows are the figures that all readings have, those first that changed.
func (s *sequel) rows() (out []row) {
	if slices.ContainsFunc(s.told, func(t *Told) bool { return t.Part.Left != 0 }) {
		return nil // of a part of it
	}
	for _, m := range measures {
		start := len(out)
		for _, f := range s.told[0].Facts {
			if f.Name != m.name || slices.ContainsFunc(out[start:], func(r row) bool { return r.whom == f.Of }) {
				continue
			}
			r := row{measure: m, whom: f.Of}
			for _, t := range s.told {
				i := slices.IndexFunc(t.Facts, func(o Fact) bool { return o.Name == f.Name && o.Of == f.Of })
				if i >= 0 {
					r.values = append(r.values, t.Facts[i].Value)
				}
			}
			if len(r.values) == len(s.told) {
				out = append(out, r)
			}
		}
		slices.SortStableFunc(out[start:], func(a, b row) int { return cmp.Compare(b.step(), a.step()) })
	}
	slices.SortStableFunc(out, func(a, b row) int {
		switch {
		case a.moved() == b.moved():
			return 0
		case a.moved():
			return -1
		}
		return 1
	})
	return out
}

func (r row) first() float64 { return r.values[0] }
func (r row) last() float64  { return r.values[len(r.values)-1] }
func (r row) step() float64  { return math.Abs(r.last() - r.first()) }

// moved reports whether the values differ by more than they do at any time.
func (r row) moved() bool {
	low, high := slices.Min(r.values), slices.Max(r.values)
	return high-low > changed*max(math.Abs(low), math.Abs(high))
}

// fell reports whether a counter fell, which no counter does.
func (r row) fell() bool {
	return r.counter && !slices.IsSorted(r.values)
}

func (r row) fromTo() string {
	return "from " + r.written(r.first()) + " to " + r.written(r.last())
}

// changes says what changed from reading to reading.
func changes(rows []row, took time.Duration) string {
	var out []string
	for _, r := range rows {
		if len(out) == mostChanges || len(out) > 0 && !r.moved() {
			break
		}
		out = append(out, r.change(took))
	}
	return strings.Join(out, "; ")
}

func (r row) change(took time.Duration) string {
	noun, grown := r.of(r.whom), r.last()-r.first()
	switch {
	case r.counter && took > 0:
		m := measure{name: r.name + "/s"}
		return fmt.Sprintf("%s grew by %s, %s", noun, r.written(grown), m.written(grown/took.Seconds()))
	case r.counter:
		return fmt.Sprintf("%s grew by %s", noun, r.written(grown))
	case len(r.values) > 2 && len(r.values) <= mostReadings:
		var all []string
		for _, v := range r.values {
			all = append(all, r.written(v))
		}
		return noun + " " + strings.Join(all, ", ")
	case len(r.values) == 2 && r.written(r.first()) == r.written(r.last()):
		return noun + " stays at " + r.written(r.last())
	}
	return noun + " " + r.fromTo()
}

// sideBySide lists states of two readings. Counters of two places say nothing beside each other.
func sideBySide(rows []row) string {
	var out []string
	for _, r := range rows {
		if !r.counter && len(out) < mostChanges && (len(out) == 0 || r.moved()) {
			out = append(out, fmt.Sprintf("%s %s and %s", r.of(r.whom), r.written(r.first()), r.written(r.last())))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return ": " + strings.Join(out, "; ")
}

// took is the time from the first reading to the last; 0: not known.
func (s *sequel) took() time.Duration {
	first, last := s.told[0], s.told[len(s.told)-1]
	for _, t := range [][2]time.Time{{first.Part.taken(), last.Part.taken()}, {first.Time, last.Time}} {
		if !t[0].IsZero() && t[1].After(t[0]) {
			return t[1].Sub(t[0])
		}
	}
	if len(s.told) > 2 { // of the last step alone
		return 0
	}
	if every := last.Part.Every; every > 0 {
		return time.Duration(every * float64(time.Second))
	}
	for _, command := range []string{last.Part.Slept, last.Part.Command} {
		command, _, _ = strings.Cut(command, ";")
		if slept := Slept(command); slept > 0 {
			return time.Duration(slept * float64(time.Second))
		}
	}
	return 0
}
