package kernelfile

import (
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// pairs is one sample of a file of lines "name value" or "name: value kB". Sizes are in bytes.
type pairs struct {
	values map[string]float64
	order  []string
	flaws  []string
}

// get returns the value of the first of these names that is there, and 0 if none is.
func (m pairs) get(names ...string) float64 {
	for _, n := range names {
		if v, ok := m.values[n]; ok {
			return v
		}
	}
	return 0
}

func (m pairs) has(name string) bool {
	_, ok := m.values[name]
	return ok
}

// sum adds up the values whose names have a prefix.
func (m pairs) sum(prefix string) (v float64) {
	for _, n := range m.order {
		if strings.HasPrefix(n, prefix) {
			v += m.values[n]
		}
	}
	return v
}

// pair reads "name value", "name: value kB" and "name : value". A number with a comma is one of
// another locale.
func pair(line string) (name string, v float64, ok bool) {
	if len(line) > 120 {
		return "", 0, false
	}
	name, rest, cut := strings.Cut(line, ":")
	if f := strings.Fields(line); !cut || strings.ContainsAny(strings.TrimSpace(name), " \t") {
		if len(f) != 2 && !(len(f) == 3 && unitOf(f[2]) > 1024) {
			return "", 0, false
		}
		name, rest = f[0], strings.Join(f[1:], " ")
	}
	name = strings.TrimSpace(name)
	f := strings.Fields(rest)
	if name == "" || len(f) == 0 || len(f) > 2 {
		return "", 0, false
	}
	v, err := strconv.ParseFloat(strings.Replace(f[0], ",", ".", 1), 64)
	if err != nil || v != v || v > 1e300 || v < -1e300 {
		return "", 0, false
	}
	if len(f) == 2 {
		unit := unitOf(f[1])
		if unit == 0 {
			return "", 0, false
		}
		v *= unit
	}
	return name, v, true
}

// unitOf is a unit of memory in bytes; 0: it is none. The kernel prints kB; people divide by 1024
// for MB and GB.
func unitOf(s string) float64 {
	switch strings.ToLower(s) {
	case "kb", "kib":
		return 1 << 10
	case "mb", "mib":
		return 1 << 20
	case "gb", "gib":
		return 1 << 30
	}
	return 0
}

// claimPairs claims lines "name value" of which the first has a known name. It wants one name that
// no other file has, or least known ones. Names that a later kernel added are accepted where plain
// says that they may be.
func claimPairs(lines []paste.Line, known, distinct func(string) bool, plain func(string) bool, least int) int {
	name, _, ok := pair(strings.TrimSpace(lines[0].Text))
	if !ok || !known(name) {
		return 0
	}
	seen, sure := 0, false
	n := run(lines, func(text string) bool {
		name, _, ok := pair(text)
		switch {
		case !ok:
			return false
		case known(name):
			seen++
			sure = sure || distinct(name)
			return true
		}
		return plain != nil && plain(name)
	})
	if !sure && seen < least {
		return 0
	}
	return n
}

// withoutRemarks leaves out what somebody wrote between counters behind a "#", and says where each
// kept line stands; nil: there is none.
func withoutRemarks(lines []paste.Line, known func(string) bool) (kept []paste.Line, at []int) {
	remarks := false
	counter := func(l paste.Line) bool {
		name, _, ok := pair(strings.TrimSpace(l.Text))
		return ok && known(name) && l.Command == ""
	}
	for i, l := range lines {
		if isRemark(l.Text) && l.Command == "" && i > 0 && i+1 < len(lines) && counter(lines[i+1]) {
			remarks = true
			continue
		}
		if !counter(l) {
			break
		}
		kept, at = append(kept, l), append(at, i)
	}
	if !remarks {
		return nil, nil
	}
	return kept, at
}

func isRemark(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), "#") }

// oneOf makes a set of names.
func oneOf(names string) func(string) bool {
	set := map[string]bool{}
	for _, n := range strings.Fields(names) {
		set[n] = true
	}
	return func(n string) bool { return set[n] }
}

// hasPrefix makes a test for the start of a name.
func hasPrefix(prefixes string) func(string) bool {
	list := strings.Fields(prefixes)
	return func(n string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return strings.HasPrefix(n, p) })
	}
}

// pairSamples reads all samples of a part; a name that comes again starts the next one.
func pairSamples(p *attach.Part) ([]sample, []pairs) {
	seen := map[string]bool{}
	all := samples(p, func(sofar []string, line string) bool {
		if len(sofar) == 1 {
			clear(seen)
			name, _, _ := pair(sofar[0])
			seen[name] = true
		}
		name, _, ok := pair(line)
		again := ok && (seen[name] || firstOfFile(name, sofar))
		if again {
			clear(seen)
		}
		seen[name] = true
		return again
	})
	out := make([]pairs, len(all))
	for i, s := range all {
		out[i] = parsePairs(s.lines)
	}
	return all, out
}

// firstOfFile reports whether a name is the kernel's first one of its file: what stands above it is
// of another reading, whose start was cut off.
func firstOfFile(name string, sofar []string) bool {
	switch name {
	case "usage_usec", "nr_free_pages", "rchar":
		return true
	case "nr_periods": // of v1, where nothing of CPU time is above
		return !slices.ContainsFunc(sofar, func(l string) bool { return strings.Contains(l, "_usec ") || strings.HasPrefix(l, "user ") })
	}
	return false
}

func parsePairs(lines []string) pairs {
	m := pairs{values: map[string]float64{}}
	for _, line := range lines {
		name, v, ok := pair(line)
		if !ok && isRemark(line) {
			continue
		}
		if !ok {
			m.flaws = append(m.flaws, "want a name and a value, got "+printed(line))
			continue
		}
		if !m.has(name) {
			m.order = append(m.order, name)
		}
		m.values[name] = v
	}
	return m
}

// grown is how much counters grew from one sample to another.
type grown struct {
	seconds float64 // 0: not known
	fell    string  // a counter that fell: the samples are not before and after
	from    pairs
	to      pairs
}

// growth compares the first and the last sample by these counters.
func growth(all []sample, m []pairs, counters ...string) (g grown, ok bool) {
	last := len(all) - 1
	if last < 1 || all[last].other {
		return g, false
	}
	g = grown{seconds: span(all), from: m[0], to: common(m[last], m[0])}
	for _, c := range counters {
		if g.to.has(c) && g.from.has(c) && g.to.get(c) < g.from.get(c) {
			g.fell = c
		}
	}
	return g, true
}

// common is a sample without the names that another one lacks: what was cut off there did not grow
// from 0.
func common(m, other pairs) (out pairs) {
	out = pairs{values: map[string]float64{}, flaws: m.flaws}
	for _, n := range m.order {
		if other.has(n) {
			out.order = append(out.order, n)
			out.values[n] = m.values[n]
		}
	}
	return out
}

func (g grown) by(name string) float64 {
	if !g.from.has(name) || !g.to.has(name) {
		return 0
	}
	return max(0, g.to.get(name)-g.from.get(name))
}

func (g grown) byPrefix(prefix string) float64 {
	return max(0, g.to.sum(prefix)-g.from.sum(prefix))
}

// text writes growth as a rate where the time between is known.
func (g grown) text(v float64, noun string) string {
	if g.seconds > 0 {
		return number(v/g.seconds) + " " + noun + "/s"
	}
	return number(v) + " " + noun + " from the first sample to the last"
}
