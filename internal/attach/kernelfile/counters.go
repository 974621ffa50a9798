package kernelfile

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// A counted file has several counters in a line, and a word before them says whose they are: a
// device, an interface, a protocol. One that is known by its lines needs no more than this.
type counted struct {
	name  string
	hints []string
	line  func(text string) (key string, values pairs, ok bool) // key is empty in a line of names
	least int                                                   // lines with a key, at least
	read  func(p *attach.Part, c counts) attach.Reading
}

// counts is all samples of a counted file.
type counts struct {
	when   []sample
	values []pairs  // names are "KEY COLUMN"
	keys   []string // in the order of the first sample
}

// kind makes the kind of a counted file.
func (c counted) kind() *attach.Kind {
	one := func(lines []paste.Line) int {
		seen := map[string]bool{}
		rows := 0
		n := run(lines, func(text string) bool {
			key, _, ok := c.line(text)
			if !ok || key != "" && seen[key] || key == "" && rows > 0 && strings.HasPrefix(text, "Inter-|") {
				return false
			}
			if key != "" {
				seen[key] = true
				rows++
			}
			return true
		})
		if rows < c.least {
			return 0
		}
		return n
	}
	return &attach.Kind{Name: c.name, Hints: c.hints, Joins: true, Claim: starting("A-Za-z0-9|", 2000, repeated(one)),
		Read: func(p *attach.Part) attach.Reading { return c.read(p, c.parse(p)) }}
}

// parse reads all samples; a key that comes again starts the next one.
func (c counted) parse(p *attach.Part) (out counts) {
	seen := map[string]bool{}
	out.when = samples(p, func(sofar []string, line string) bool {
		if len(sofar) == 1 { // a time may have started it
			clear(seen)
			key, _, _ := c.line(sofar[0])
			seen[key] = true
		}
		key, _, ok := c.line(line)
		again := ok && key != "" && seen[key]
		seen[key] = true
		return again
	})
	for i, s := range out.when {
		m := pairs{values: map[string]float64{}}
		for _, line := range s.lines {
			key, values, ok := c.line(line)
			if !ok || key == "" {
				continue
			}
			if i == 0 {
				out.keys = append(out.keys, key)
			}
			for _, name := range values.order {
				m.values[key+" "+name] = values.values[name]
				m.order = append(m.order, key+" "+name)
			}
		}
		out.values = append(out.values, m)
	}
	return out
}

// last is the last sample.
func (c counts) last() pairs { return c.values[len(c.values)-1] }

// since gives what was counted: between the samples if they are before and after, else since boot.
// seconds is 0 where it is not known.
func (c counts) since() (by func(name string) float64, when string, boot bool, seconds float64) {
	if len(c.values) > 1 {
		g, ok := growth(c.when, c.values, c.values[0].order...)
		if ok && (g.fell == "" || !monotone(g.fell)) {
			return g.by, "between the samples" + over(g.seconds), false, g.seconds
		}
	}
	last := c.last()
	return func(n string) float64 { return last.get(n) }, "since boot", true, 0
}

// monotone reports whether a column only grows: those of a state do not.
func monotone(name string) bool {
	_, column, _ := strings.Cut(name, " ")
	return column != "in flight" && column != "CurrEstab"
}

// columns reads numbers in the order of their names; more numbers than names may follow.
func columns(fields []string, names ...string) (m pairs, ok bool) {
	m.values = map[string]float64{}
	for i, f := range fields {
		v, good := count(f)
		if !good {
			return m, false
		}
		if i < len(names) {
			m.values[names[i]] = v
			m.order = append(m.order, names[i])
		}
	}
	return m, len(m.order) > 0
}

// count reads a whole number, negative ones included.
func count(s string) (float64, bool) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || len(digits) > 20 {
		return 0, false
	}
	v := 0.0
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
		v = v*10 + float64(digits[i]-'0')
	}
	if len(digits) < len(s) {
		v = -v
	}
	return v, true
}
