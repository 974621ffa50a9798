package format

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// procState is what all files of the kernel's say together: a quota is the least of many files, a counter of threads the sum over
// threads that come and go.
type procState struct {
	out    []evidence.Record
	page   int64 // bytes; 0 not known: what is counted in pages is then left out
	hz     int64
	seen   map[string]bool // facts and gaps that were given
	groups map[string]*groupView
	levels map[levelKey]*level
	order  []levelKey

	bareGroups map[string]string // of /proc/PID/cgroup alone

	cpuMount, cpuMountRoot string // of mountinfo
	cpuMountV1             bool

	sums      []threadSums
	delays    []delayReading
	delayOff  bool
	threads   float64 // most that were seen at once
	hasStat   bool    // a stat of the process, which status repeats
	statusRSS []evidence.Record
	each      map[string][2]*evidence.Record // per CPU: the first and the last reading
	eachOrder []string
}

func newProcState() *procState {
	return &procState{hz: 100, seen: map[string]bool{}, groups: map[string]*groupView{}, levels: map[levelKey]*level{}, each: map[string][2]*evidence.Record{}}
}

// read takes one item: a member of readings, or one file.
func (s *procState) read(kind Kind, name string, data []byte, t int64) error {
	s.page, s.hz = 0, 100
	if kind == KindReadings {
		return eachReading(data, func(page, hz int64) {
			if page > 0 {
				s.page = page
			}
			if hz > 0 {
				s.hz = hz
			}
		}, s.feed)
	}
	return procFileOf(kind).parse(s, reading{time: t, path: name, text: string(data)})
}

func (s *procState) feed(r reading) error {
	if len(s.out) > maxRecords {
		return nil // gather says so
	}
	f := byPath(r.path)
	switch {
	case r.unread != "":
		stream := ""
		if f != nil {
			stream = f.gap
		}
		if f != nil && f.kind == KindPressure {
			stream = pressureStream(r.path) + "/some:ns"
		}
		if stream != "" {
			s.gap(stream, r.time, "read "+r.path+": "+r.unread)
		}
		return nil
	case f != nil:
		return f.parse(s, r)
	}
	return s.scalar(r)
}

func (s *procState) add(stream string, shape evidence.Shape, t int64, v float64) {
	s.out = append(s.out, evidence.Record{Stream: stream, Shape: shape, Time: t, Value: v})
}

func (s *procState) addOf(stream string, shape evidence.Shape, t int64, v float64, of string) {
	s.out = append(s.out, evidence.Record{Stream: stream, Shape: shape, Time: t, Value: v, Text: printable(of)})
}

// fact gives a fact once: settings are read at begin and end.
func (s *procState) fact(stream string, t int64, v float64, text string) {
	text = printable(text)
	if key := stream + "\x00" + text; !s.seen[key] && !s.seen[stream+"\x00one"] {
		s.seen[key] = true
		if stream != "/host/sysctl:value" && stream != "/cgroup/level/cpu/quota:cpus" && stream != "/cgroup/level/memory/limit:bytes" {
			s.seen[stream+"\x00one"] = true
		}
		s.out = append(s.out, evidence.Record{Stream: stream, Shape: evidence.Fact, Time: t, Value: v, Text: text})
	}
}

func (s *procState) gap(stream string, t int64, why string) {
	if key := "gap\x00" + stream; !s.seen[key] {
		s.seen[key] = true
		s.out = append(s.out, evidence.Record{Stream: stream, Shape: evidence.GapShape, Time: t, End: t, Text: printable(why)})
	}
}

// printable bounds what a file from anywhere puts into a report.
func printable(text string) string {
	text = strings.ToValidUTF8(strings.TrimSpace(text), "?")
	if len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "")
	}
	return text
}

// finish gives all records, in the order of time.
func (s *procState) finish() []evidence.Record {
	s.finishGroups()
	s.finishThreads()
	if !s.hasStat {
		s.out = append(s.out, s.statusRSS...)
	}
	for _, k := range s.eachOrder {
		pair := s.each[k]
		s.out = append(s.out, *pair[0])
		if pair[1] != nil {
			s.out = append(s.out, *pair[1])
		}
	}
	slices.SortStableFunc(s.out, func(a, b evidence.Record) int { return cmp.Compare(a.Time, b.Time) })
	return s.out
}

// pairs goes through lines "name value", or "name: value kB". What is no such line is an error, after those that are.
func pairs(text, sep string, f func(name string, v float64)) error {
	var problem error
	n := 0
	for line := range strings.Lines(text) {
		n++
		name, value, ok := strings.Cut(strings.TrimSpace(line), sep)
		if !ok {
			if name != "" && problem == nil {
				problem = fmt.Errorf("line %d: want a name and a value, got %.40q", n, name)
			}
			continue
		}
		v, err := amount(value)
		if err != nil {
			if problem == nil {
				problem = fmt.Errorf("line %d: %w", n, err)
			}
			continue
		}
		f(name, v)
	}
	return problem
}

// amount reads "123" or "123 kB", in bytes then.
func amount(value string) (float64, error) {
	value = strings.TrimSpace(value)
	number, unit, _ := strings.Cut(value, " ")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || v != v || v > 1e300 || v < -1e300 {
		return 0, fmt.Errorf("want a number, got %.40q", number)
	}
	if strings.EqualFold(strings.TrimSpace(unit), "kB") {
		v *= 1024
	}
	return v, nil
}
