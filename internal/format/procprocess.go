package format

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// pidStat reads /proc/PID/stat; proc(5) numbers its fields, the third standing behind the command, which may hold anything.
func (s *procState) pidStat(r reading) error {
	end := strings.LastIndexByte(r.text, ')')
	if end < 0 {
		return fmt.Errorf("no command in parentheses")
	}
	f := strings.Fields(r.text[end+1:])
	if len(f) < 22 {
		return fmt.Errorf("want 22 fields after the command, got %d", len(f))
	}
	at := func(field int) float64 {
		v, _ := strconv.ParseFloat(f[field-3], 64) // checked below
		return v
	}
	for _, field := range []int{10, 12, 14, 15, 20, 23, 24} {
		if _, err := strconv.ParseUint(f[field-3], 10, 64); err != nil {
			return fmt.Errorf("field %d: want a number, got %.40q", field, f[field-3])
		}
	}
	tick := 1e9 / float64(s.hz)
	s.add("/process/faults/minor:faults", evidence.Counter, r.time, at(10))
	s.add("/process/faults/major:faults", evidence.Counter, r.time, at(12))
	s.add("/process/cpu:ns", evidence.Counter, r.time, (at(14)+at(15))*tick)
	s.add("/process/cpu/user:ns", evidence.Counter, r.time, at(14)*tick)
	s.add("/process/cpu/system:ns", evidence.Counter, r.time, at(15)*tick)
	if nice, err := strconv.Atoi(f[19-3]); err == nil && nice >= -20 && nice < 20 {
		s.fact("/process/nice:nice", r.time, float64(nice), "")
	}
	s.addThreads(r.time, at(20))
	s.add("/process/vm:bytes", evidence.Sample, r.time, at(23))
	if s.page > 0 {
		s.hasStat = true
		s.add("/process/rss:bytes", evidence.Sample, r.time, at(24)*float64(s.page))
	}
	return nil
}

func (s *procState) addThreads(t int64, n float64) {
	s.threads = max(s.threads, n)
	s.add("/process/threads:threads", evidence.Sample, t, n)
}

var statusSamples = map[string]string{
	"VmHWM": "/process/rss/peak:bytes", "RssAnon": "/process/rss/anon:bytes", "RssFile": "/process/rss/file:bytes", "RssShmem": "/process/rss/shmem:bytes",
	"VmSwap": "/process/swap:bytes", "VmPTE": "/process/page-tables:bytes",
}

func (s *procState) status(r reading) error {
	for line := range strings.Lines(r.text) {
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		stream := statusSamples[name]
		var err error
		var v float64
		switch {
		case !ok:
		case stream != "":
			if v, err = amount(value); err == nil {
				s.add(stream, evidence.Sample, r.time, v)
			}
		case name == "VmRSS":
			if v, err = amount(value); err == nil {
				s.statusRSS = append(s.statusRSS, evidence.Record{Stream: "/process/rss:bytes", Shape: evidence.Sample, Time: r.time, Value: v})
			}
		case name == "Threads":
			if v, err = amount(value); err == nil && !s.hasStat {
				s.addThreads(r.time, v)
			}
		case name == "THP_enabled":
			if v, err = amount(value); err == nil {
				s.fact("/process/thp-enabled:bool", r.time, v, "")
			}
		case name == "Cpus_allowed_list":
			var n int
			if n, err = countList(value); err == nil {
				s.fact("/process/cpus-allowed:cpus", r.time, float64(n), "")
				s.fact("/process/cpus-allowed:list", r.time, 0, value)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// limits reads a table whose columns stand at fixed places: name, soft, hard, unit.
func (s *procState) limits(r reading) error {
	streams := map[string]string{"Max open files": "/process/limit/files:files", "Max processes": "/process/limit/threads:threads", "Max locked memory": "/process/limit/locked:bytes"}
	for line := range strings.Lines(r.text) {
		for name, stream := range streams {
			rest, ok := strings.CutPrefix(line, name)
			f := strings.Fields(rest)
			if !ok || len(f) < 2 {
				continue
			}
			if f[0] == "unlimited" {
				s.fact(stream, r.time, 0, "unlimited")
				continue
			}
			v, err := amount(f[0])
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			s.fact(stream, r.time, v, "")
		}
	}
	return nil
}

func (s *procState) io(r reading) error {
	return pairs(r.text, ":", func(name string, v float64) {
		switch name {
		case "read_bytes":
			s.add("/process/io/read:bytes", evidence.Counter, r.time, v)
		case "write_bytes":
			s.add("/process/io/written:bytes", evidence.Counter, r.time, v)
		}
	})
}

// goArena is where Go's heap begins on 64-bit machines, and goArenaEnd one of its address hints later.
const (
	goArena    = 0xc000000000
	goArenaEnd = goArena + 1<<40
)

// mappingStart reads the begin of "c000000000-c3ac000000 rw-p 00000000 00:00 0".
func mappingStart(line string) (uint64, bool) {
	first, rest, ok := strings.Cut(strings.TrimSpace(line), " ")
	from, to, isRange := strings.Cut(first, "-")
	if !ok || !isRange || len(rest) < 4 || strings.Trim(rest[:3], "rwx-") != "" {
		return 0, false
	}
	a, err := strconv.ParseUint(from, 16, 64)
	b, err2 := strconv.ParseUint(to, 16, 64)
	return a, err == nil && err2 == nil && b > a
}

// smaps sums over the mappings, of which smaps_rollup has one for all.
func (s *procState) smaps(r reading) error {
	type sums struct{ rss, huge, lazy, anon, pss float64 }
	var all, arena sums
	var hasHuge, hasLazy, inArena, rollup, others bool
	n, mappings := 0, 0
	for line := range strings.Lines(r.text) {
		n++
		line = strings.TrimSpace(line)
		if from, ok := mappingStart(line); ok {
			mappings++
			inArena = from >= goArena && from < goArenaEnd
			rollup = rollup || strings.HasSuffix(line, "[rollup]")
			others = others || !inArena
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		var into func(*sums) *float64
		switch name {
		case "Rss":
			into = func(m *sums) *float64 { return &m.rss }
		case "Pss":
			into = func(m *sums) *float64 { return &m.pss }
		case "Anonymous":
			into = func(m *sums) *float64 { return &m.anon }
		case "AnonHugePages":
			hasHuge = true
			into = func(m *sums) *float64 { return &m.huge }
		case "LazyFree":
			hasLazy = true
			into = func(m *sums) *float64 { return &m.lazy }
		default:
			continue
		}
		v, err := amount(value)
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		*into(&all) += v
		if inArena {
			*into(&arena) += v
		}
	}
	if mappings == 0 {
		return nil // of a process that ended meanwhile
	}
	whole := 0.0
	if rollup || others {
		whole = 1
	}
	s.fact("/process/smaps/whole:bool", r.time, whole, "")
	s.add("/process/smaps/rss:bytes", evidence.Sample, r.time, all.rss)
	s.add("/process/smaps/pss:bytes", evidence.Sample, r.time, all.pss)
	s.add("/process/smaps/anon:bytes", evidence.Sample, r.time, all.anon)
	if hasHuge {
		s.add("/process/anon-huge:bytes", evidence.Sample, r.time, all.huge)
	}
	if hasLazy {
		s.add("/process/lazyfree:bytes", evidence.Sample, r.time, all.lazy)
	}
	if arena.rss > 0 && !rollup {
		s.add("/process/smaps/go-arena:bytes", evidence.Sample, r.time, arena.rss)
		if hasHuge {
			s.add("/process/smaps/go-arena/anon-huge:bytes", evidence.Sample, r.time, arena.huge)
		}
		if hasLazy {
			s.add("/process/smaps/go-arena/lazyfree:bytes", evidence.Sample, r.time, arena.lazy)
		}
	}
	return nil
}

// threadSums is what threads had run, waited and switched at one time.
type threadSums struct {
	time int64
	all  float64 // how many threads there were; those beyond a bound were not read
	of   map[int64][4]float64
}

// threadSums reads lines "TID: run queued slices voluntary involuntary" under one with the number of threads.
func (s *procState) threadSums(r reading) error {
	t := threadSums{time: r.time, of: map[int64][4]float64{}}
	for line := range strings.Lines(r.text) {
		if n, ok := strings.CutPrefix(line, "threads "); ok {
			t.all, _ = amount(n)
			continue
		}
		id, rest, _ := strings.Cut(line, ":")
		tid, err := strconv.ParseInt(id, 10, 64)
		f := strings.Fields(rest)
		if err != nil || len(f) < 5 {
			return fmt.Errorf("want TID and five numbers, got %.60q", line)
		}
		var v [4]float64
		for i, k := range []int{0, 1, 3, 4} {
			if v[i], err = amount(f[k]); err != nil {
				return err
			}
		}
		t.of[tid] = v
	}
	s.sums = append(s.sums, t)
	return nil
}

// glance counts the states in lines "TID (comm) S".
func (s *procState) glance(r reading) error {
	var read, running, disk, all float64
	for line := range strings.Lines(r.text) {
		if n, ok := strings.CutPrefix(line, "threads "); ok {
			all, _ = amount(n)
			continue
		}
		end := strings.LastIndexByte(line, ')')
		if end < 0 || end+2 >= len(line) {
			return fmt.Errorf("want TID (name) state, got %.60q", line)
		}
		read++
		switch line[end+2] {
		case 'R':
			running++
		case 'D':
			disk++
		}
	}
	if read == 0 {
		return nil
	}
	s.threads = max(s.threads, all)
	s.add("/process/threads/running:threads", evidence.Sample, r.time, running)
	s.add("/process/threads/disk:threads", evidence.Sample, r.time, disk)
	s.add("/process/threads/read:threads", evidence.Sample, r.time, read)
	return nil
}

// delayReading is one of taskstats.
type delayReading struct {
	time int64
	of   map[string]float64
}

func (s *procState) taskstats(r reading) error {
	d := delayReading{time: r.time, of: map[string]float64{}}
	err := pairs(r.text, " ", func(name string, v float64) { d.of[name] = v })
	s.delays = append(s.delays, d)
	return err
}

// delayStreams: the counter of each delay, and of how many there were.
var delayStreams = []struct {
	field, stream string
	always        bool // counted with task_delayacct off as well
}{
	{"cpu_delay_total", "/process/delay/cpu:ns", true}, {"blkio_delay_total", "/process/delay/blkio:ns", false}, {"swapin_delay_total", "/process/delay/swapin:ns", false},
	{"freepages_delay_total", "/process/delay/reclaim:ns", false}, {"thrashing_delay_total", "/process/delay/thrashing:ns", false},
	{"compact_delay_total", "/process/delay/compact:ns", false}, {"wpcopy_delay_total", "/process/delay/wpcopy:ns", false},
	{"freepages_count", "/process/delay/reclaim:stalls", false}, {"compact_count", "/process/delay/compact:stalls", false},
}

// finishThreads sums over threads, and bounds delays by what threads x wall can hold: a delay that was begun before the accounting was on
// comes out as hours.
func (s *procState) finishThreads() {
	for _, d := range delayStreams {
		if s.delayOff && !d.always {
			if len(s.delays) > 0 {
				s.gap(d.stream, s.delays[0].time, "not counted: sysctl kernel.task_delayacct is 0")
			}
			continue
		}
		value, last := 0.0, -1
		for i, r := range s.delays {
			v, ok := r.of[d.field]
			if !ok {
				continue
			}
			if last < 0 {
				value = v
			} else {
				grown := max(0, v-s.delays[last].of[d.field])
				if strings.HasSuffix(d.stream, ":ns") {
					grown = min(grown, float64(r.time-s.delays[last].time)*max(1, s.threads))
				}
				value += max(0, grown)
			}
			last = i
			s.add(d.stream, evidence.Counter, r.time, value)
		}
	}
	switches := false
	for _, r := range s.delays {
		if v, ok := r.of["nvcsw"]; ok {
			switches = true
			s.add("/process/switches/voluntary:switches", evidence.Counter, r.time, v)
			s.add("/process/switches/involuntary:switches", evidence.Counter, r.time, r.of["nivcsw"])
		}
	}
	// A thread that is new since the last reading brings all it has; but where not all are read it may merely not have been read before.
	var sum [4]float64
	for i, t := range s.sums {
		for tid, v := range t.of {
			var before [4]float64
			if i > 0 {
				b, ok := s.sums[i-1].of[tid]
				if !ok && t.all > float64(len(t.of)) {
					continue
				}
				before = b
			}
			for k := range v {
				sum[k] += max(0, v[k]-before[k])
			}
		}
		s.add("/process/run:ns", evidence.Counter, t.time, sum[0])
		s.add("/process/queued:ns", evidence.Counter, t.time, sum[1])
		if !switches {
			s.add("/process/switches/voluntary:switches", evidence.Counter, t.time, sum[2])
			s.add("/process/switches/involuntary:switches", evidence.Counter, t.time, sum[3])
		}
	}
}

// Env gives the records of a target's environment; what is not of the list is left out.
func Env(env map[string]string) (out []evidence.Record) {
	fact := func(stream string, v float64, text string) {
		out = append(out, evidence.Record{Stream: stream, Shape: evidence.Fact, Value: v, Text: printable(text)})
	}
	for _, name := range []string{"GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "GLIBC_TUNABLES"} {
		text, ok := env[name]
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || v != v {
			v = 0
		}
		switch name {
		case "GOMAXPROCS":
			fact("/env/GOMAXPROCS:procs", v, text)
		case "GOGC":
			if text == "off" {
				v = -1
			}
			fact("/env/GOGC:percent", v, text)
		case "GOMEMLIMIT":
			fact("/env/GOMEMLIMIT:bytes", memLimit(text), text)
		default:
			fact("/env/"+name+":text", 0, text)
		}
	}
	var names []string
	for name := range env {
		if strings.HasPrefix(name, "MALLOC_") {
			names = append(names, name+"="+env[name])
		}
	}
	slices.Sort(names)
	for _, n := range names[:min(len(names), 50)] {
		fact("/env/MALLOC:text", 0, n)
	}
	return out
}

// memLimit reads GOMEMLIMIT as the runtime does: bytes with an optional unit B, KiB, MiB, GiB, TiB. 0: off, or none.
func memLimit(text string) float64 {
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if n, ok := strings.CutSuffix(text, unit); ok {
			v, err := strconv.ParseUint(n, 10, 40)
			if err != nil {
				return 0
			}
			return float64(v) * float64(int64(1)<<(10*(i+1)))
		}
	}
	v, err := strconv.ParseUint(strings.TrimSuffix(text, "B"), 10, 63)
	if err != nil {
		return 0
	}
	return float64(v)
}
