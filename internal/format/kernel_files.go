package format

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// fileParser reads one of the kernel's files, or one reading of it, into what they all say
// together.
type fileParser func(*kernelFiles, reading) error

// registerFile registers a row for one of the kernel's files, which has file and no parse. These
// files are read together and have one rank: a quota, for one, is the least value in many files. So
// two rows that give the same stream are both taken. Their parsers must see to it that no reading
// counts twice, as finish does for statusRSS.
func registerFile(r *row) *row {
	r.rank = rankKernel
	r.parse = func(g *gatherer, it Item) ([]evidence.Record, error) {
		s := jointOf(g, rankKernel, newKernelFiles)
		s.page, s.hz = 0, 100 // a file that stands alone states neither
		return nil, s.bounded(r, r.file(s, reading{time: it.Time, path: it.Name, text: string(it.Data)}))
	}
	return register(r)
}

// base returns a function that reports whether a reading's path has this last element. Paths such
// as /proc/stat and /proc/PID/stat have the same. Readings of a process' threads are left out.
func base(name string) func(string) bool {
	return func(p string) bool { return path.Base(p) == name && !strings.Contains(p, "/task/*/") }
}

// rowAt finds the row that reads a path in a recorder's member; nil: the file is kept for people to
// read.
func rowAt(p string) *row {
	for _, r := range rows() {
		if r.at != nil && r.at(p) {
			return r
		}
	}
	return nil
}

// kernelFiles is what all of the kernel's files say together: a quota is the least value in many
// files, a counter of threads is the sum over threads that come and go.
type kernelFiles struct {
	out    []evidence.Record
	page   int64 // bytes; 0: not known, and what is counted in pages is left out
	hz     int64
	given  map[string]bool // the facts and gaps in out
	groups map[string]*groupView
	levels map[levelKey]*level
	order  []levelKey

	bareGroups map[string]string // by controller, from /proc/PID/cgroup alone

	cpuMount, cpuMountRoot string // from mountinfo
	cpuMountV1             bool

	sums      []threadSums
	delays    []delayReading
	delayOff  bool
	threads   float64 // the most that were seen at once
	hasStat   bool    // the process' stat was read; status repeats a part of it
	statusRSS []evidence.Record
	each      map[string][2]*evidence.Record // per CPU: the first and the last reading
	eachOrder []string
}

func newKernelFiles() *kernelFiles {
	return &kernelFiles{hz: 100, given: map[string]bool{}, groups: map[string]*groupView{},
		levels: map[levelKey]*level{}, each: map[string][2]*evidence.Record{}}
}

// bounded returns the error of reading a file: err, or that there are too many records.
func (s *kernelFiles) bounded(r *row, err error) error {
	if len(s.out) > maxRecords {
		return errTooMany
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", r.kind, err)
	}
	return nil
}

// member reads one reading of a recorder's member.
func (s *kernelFiles) member(r reading) error {
	if len(s.out) > maxRecords {
		return nil // bounded says so
	}
	f := rowAt(r.path)
	switch {
	case f == nil:
		return nil
	case r.unread == "":
		return f.file(s, r)
	}
	stream := f.gap
	if f.kind == KindPressure {
		stream = pressureStream(r.path) + "/some:ns"
	}
	if stream != "" {
		s.gap(stream, r.time, "read "+r.path+": "+r.unread)
	}
	return nil
}

func (s *kernelFiles) add(stream string, shape evidence.Shape, t int64, v float64) {
	s.out = append(s.out, evidence.Record{Stream: stream, Shape: shape, Time: t, Value: v})
}

// addFor adds a record of one of several: a zone, a node, a CPU.
func (s *kernelFiles) addFor(stream string, shape evidence.Shape, t int64, v float64, subject string) {
	s.out = append(s.out, evidence.Record{Stream: stream, Shape: shape, Time: t, Value: v, Text: printable(subject)})
}

// fact adds a fact once: settings are read both at the start and at the end.
func (s *kernelFiles) fact(stream string, t int64, v float64, text string) {
	if s.first(stream) {
		s.out = append(s.out, evidence.Record{Stream: stream, Shape: evidence.Fact, Time: t,
			Value: v, Text: printable(text)})
	}
}

// factFor adds a fact once for each text: there are several levels, and several settings.
func (s *kernelFiles) factFor(stream string, t int64, v float64, text string) {
	if s.first(stream + "\x00" + printable(text)) {
		s.out = append(s.out, evidence.Record{Stream: stream, Shape: evidence.Fact, Time: t,
			Value: v, Text: printable(text)})
	}
}

func (s *kernelFiles) gap(stream string, t int64, why string) {
	if s.first("gap\x00" + stream) {
		s.out = append(s.out, evidence.Record{Stream: stream, Shape: evidence.GapShape, Time: t,
			End: t, Text: printable(why)})
	}
}

// first reports whether key is new, and remembers it.
func (s *kernelFiles) first(key string) bool {
	seen := s.given[key]
	s.given[key] = true
	return !seen
}

// printable bounds what a file from anywhere puts into a report.
func printable(text string) string {
	text = strings.ToValidUTF8(strings.TrimSpace(text), "?")
	if len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "")
	}
	return text
}

// finish returns all records, sorted by time.
func (s *kernelFiles) finish() ([]evidence.Record, map[int]error) {
	s.finishGroups()
	s.finishDelays()
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
	return s.out, nil
}

// pairs calls f for each line "name value", or "name: value kB". The first line that has another
// form is an error, which is returned after all lines were read.
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

// sums adds up the pairs whose names belong to the same stream. It calls f with each stream's sum,
// in the order of the file.
func sums(text, sep string, streams map[string]string, f func(stream string, v float64)) error {
	sum, order := map[string]float64{}, []string(nil)
	err := pairs(text, sep, func(name string, v float64) {
		if stream, ok := streams[name]; ok {
			if _, seen := sum[stream]; !seen {
				order = append(order, stream)
			}
			sum[stream] += v
		}
	})
	for _, stream := range order {
		f(stream, sum[stream])
	}
	return err
}

// amount reads "123" or "123 kB", the latter in bytes.
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
