package profiler

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var perfStat = &attach.Kind{Name: "perf stat", Claim: claimPerfStat, Read: readPerfStat,
	Hints: []string{"Performance counter stats", "-clock", "seconds ", "context-switches", "cycles",
		"msec", "instructions", "<not ", "unit events", "faults", "-misses"},
	Apart: func(l paste.Line) bool { return strings.Contains(l.Text, "Performance counter stats for") }}

var (
	// "  240.16 msec task-clock  #  0.240 CPUs utilized", with the time first for -I
	statRow = pattern.New(`^(?:(\d+[.,]\d{9})\s+)?(?:(?:CPU|S|N)\d[\w-]*\s+(?:\d+\s+)?|\S.{0,30}?-\d+\s+)?(<not (?:supported|counted)>|\d[\d., \x{00a0}\x{202f}]*)\s+(?:(msec|ns|Joules|MiB|Bytes|seconds)\s+)?([A-Za-z][\w./,:=-]*)(?: \(msec\))?\s*(#.*|\(.*%.*\)|\+-.*)?$`)
	// "      1.001822259 seconds time elapsed", "  0.645756000 seconds user"
	statTime = pattern.New(`^(\d+[.,]\d+)\s+(?:\+- \d+[.,]\d+ )?seconds (time elapsed|user|sys)`)
)

// statEvents are names by which a row without a comment is known.
func statEvent(name string) bool {
	base, _, _ := strings.Cut(name, ":")
	return softEvents[base] || scriptEvent(name) || strings.HasPrefix(name, "L1-") ||
		strings.HasPrefix(name, "LLC-") || strings.HasPrefix(name, "dTLB-") || strings.HasPrefix(name, "iTLB-") ||
		strings.HasPrefix(name, "cache-") || strings.HasPrefix(name, "topdown") ||
		strings.HasPrefix(name, "slots") || strings.Contains(name, "/") && strings.HasSuffix(name, "/")
}

// statLine is what a line of perf stat says; ok is false for a line of something else.
func statLine(text string) (sure, ok bool) {
	text = modernStat(text)
	if _, plain := statCSV(text); plain != "" {
		return true, true
	}
	if m := statRow.FindStringSubmatch(text); m != nil &&
		(statEvent(m[4]) || strings.HasPrefix(m[5], "#") &&
			(m[3] != "" || strings.Contains(m[5], "/sec") ||
				strings.Contains(m[5], "insn per cycle") || strings.Contains(m[5], "%"))) {
		return true, true
	} else if m != nil && (strings.HasPrefix(m[5], "(") || strings.ContainsAny(m[4], "._")) {
		return false, true // an event of some CPU's own, among others
	}
	switch {
	case strings.HasPrefix(text, "Performance counter stats for"), statTime.MatchString(text),
		strings.HasPrefix(text, "#") && strings.Contains(text, "counts unit events"):
		return true, true
	case strings.HasPrefix(text, "#") && strings.Contains(text, "stalled cycles per insn"),
		strings.HasPrefix(text, "#") && strings.Contains(text, "CPUs utilized"),
		strings.HasPrefix(text, "Some events weren't counted"), strings.HasPrefix(text, "echo ") &&
			strings.Contains(text, "nmi_watchdog"), strings.HasPrefix(text, "perf stat ..."),
		strings.HasPrefix(text, "Topdown"), statMetric.MatchString(text):
		return false, true
	}
	return false, false
}

// statMetric is what perf made of counters of the rows above: "#  23.6 %  tma_bad_speculation".
var statMetric = pattern.New(`^#\s+\d+[.,]\d+\s+(?:%\s+)?[A-Za-z_]`)

// statGoesOn reports whether a line is the unit of the comment in the row above it, which a mail
// wrapped.
func statGoesOn(text, above string) bool {
	return statUnit.MatchString(text) && statBroken.MatchString(above)
}

var (
	statUnit   = pattern.New(`^(?:CPUs utilized|insn per cycle|[KMG]?/sec|GHz|per insn)(?: +\(.*\))?$`)
	statBroken = pattern.New(`^\d.*#\s+\d+[.,]\d+$`)
)

func claimPerfStat(lines []paste.Line) int {
	if sure, _ := statLine(strings.TrimSpace(lines[0].Text)); !sure {
		return 0
	}
	rows := 0
	n := claimed(lines, func(i int, text string) bool {
		sure, ok := statLine(text)
		if sure {
			rows++
		}
		ok = ok || i > 0 && statGoesOn(text, strings.TrimSpace(lines[i-1].Text))
		return ok && !(i > 0 && strings.HasPrefix(text, "Performance counter stats for"))
	})
	return attach.ClaimIf(rows >= 2, n)
}

// stat is what perf stat counted.
type stat struct {
	counts    map[string]float64 // over all intervals; of task-clock ms
	comment   map[string]string  // of the last one
	missing   []string
	intervals int
	elapsed   float64 // s
	user, sys float64
	target    string
	utilized  []float64                  // CPUs, per interval
	wide      bool                       // it watched CPUs and no program: its clock runs while they idle
	cpus      map[string]map[string]bool // of each event the CPUs that have a row of their own
	threads   map[string]float64         // CPUs that each thread used, where they have rows of their own
}

var (
	statCPU = pattern.New(`^(?:\d+[.,]\d{9}\s+)?(CPU\d+)\s`)
	// "S0-D0-C1   2", of a socket, a core or a node
	statNode = pattern.New(`^(?:\d+[.,]\d{9}\s+)?[SN]\d[\w-]*\s+\d`)
	// "redis-server-2331", of each thread
	statThread = pattern.New(`^(?:\d+[.,]\d{9}\s+)?(\S.{0,30}?-\d+)\s+(?:<not |\d)`)
	// "-a", "-C3" and "-aA" of a command's options
	statWide = pattern.New(`\bstat\b.*\s(?:-[a-zA-Z]*[aAC]\d*|--all-cpus|--cpu|--no-aggr)(?:[\s=]|$)`)
)

func readStat(p *attach.Part) *stat {
	s := &stat{counts: map[string]float64{}, comment: map[string]string{},
		wide: statWide.MatchString(p.Command), cpus: map[string]map[string]bool{}, threads: map[string]float64{}}
	last, twice := "", map[string]bool{}
	firstAt, lastAt := 0.0, 0.0
	for _, text := range joinedBy(texts(p), statGoesOn) {
		text = modernStat(text)
		if rest, ok := strings.CutPrefix(text, "Performance counter stats for"); ok {
			s.target = strings.Trim(strings.TrimSuffix(strings.TrimSpace(rest), ":"), " ")
			if strings.HasPrefix(s.target, "process id '") || strings.HasPrefix(s.target, "thread id '") {
				s.wide = false // -p overrides -a
			}
			s.wide = s.wide || strings.HasPrefix(s.target, "'system wide'") || strings.HasPrefix(s.target, "'CPU(s) ")
			continue
		}
		if m := statTime.FindStringSubmatch(text); m != nil {
			v, _ := number(m[1])
			switch m[2] {
			case "time elapsed":
				s.elapsed = v
			case "user":
				s.user = v
			default:
				s.sys = v
			}
			continue
		}
		seconds, plain := statCSV(text)
		if plain != "" {
			text, s.elapsed = plain, max(s.elapsed, seconds)
		}
		m := statRow.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		if m[1] != "" && m[1] != last {
			last = m[1]
			s.intervals++
			at, _ := number(m[1])
			if s.intervals == 1 {
				firstAt = at
			}
			lastAt = max(lastAt, at)
		}
		name, _, _ := strings.Cut(m[4], ":u")
		v, ok := statNumber(m[2], m[3] == "" && !strings.HasSuffix(name, "-clock"))
		if !ok {
			if !slices.Contains(s.missing, name) && len(s.missing) < 64 {
				s.missing = append(s.missing, name)
			}
			continue
		}
		thread := statThread.FindStringSubmatch(text)
		// perf that is asked twice for an event counts it twice: that is not the double of it.
		alone := plain == "" && thread == nil && !statCPU.MatchString(text) && !statNode.MatchString(text)
		if row := m[1] + " " + name; alone && softEvents[name] {
			if twice[row] {
				continue
			}
			twice[row] = true
		}
		s.counts[name] += v
		if cpu := statCPU.FindStringSubmatch(text); cpu != nil {
			s.wide = true
			if s.cpus[name] == nil {
				s.cpus[name] = map[string]bool{}
			}
			s.cpus[name][cpu[1]] = true
		}
		s.wide = s.wide || statNode.MatchString(text)
		if m[5] != "" {
			s.comment[name] = m[5]
		}
		if f := strings.Fields(strings.TrimPrefix(m[5], "#")); len(f) > 1 && f[1] == "CPUs" {
			if u, ok := number(strings.ReplaceAll(f[0], ",", ".")); ok && thread != nil && !s.wide {
				s.threads[thread[1]] += u
			} else if ok && len(s.utilized) < most && (name != "cpu-clock" || !s.wide && s.target != "") {
				s.utilized = append(s.utilized, u)
			}
		}
	}
	switch {
	case s.intervals > 1: // the first interval may start long after perf did
		s.elapsed = (lastAt - firstAt) * float64(s.intervals) / float64(s.intervals-1)
	case s.intervals == 1:
		s.elapsed = 0
		if m := statEvery.FindStringSubmatch(p.Command); m != nil {
			ms, _ := number(m[1])
			s.elapsed = ms / 1000
		}
	}
	return s
}

// statEvery is the length of an interval in ms, as the command says it.
var statEvery = pattern.New(`\s(?:-I\s*|--interval-print[= ])(\d{1,9})\b`)

// statNumber reads a count with any grouping: 1,234,567 and 1.234.567 and 1 234 567.
func statNumber(text string, integer bool) (float64, bool) {
	s := strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text))
	if parts := strings.FieldsFunc(s, func(r rune) bool { return r == '.' || r == ',' }); integer && len(parts) > 1 {
		if !slices.ContainsFunc(parts[1:], func(g string) bool { return len(g) != 3 }) {
			s = strings.Join(parts, "") // counts have no fractions, so these are groups
		}
	}
	return number(s)
}

// first is the count of the first of some names that was counted.
func (s *stat) first(names ...string) (float64, bool) {
	for _, n := range names {
		if v, ok := s.counts[n]; ok {
			return v, true
		}
	}
	return 0, false
}

func readPerfStat(p *attach.Part) attach.Reading {
	s := readStat(p)
	r := attach.Reading{Title: "perf stat", State: attach.CannotTell, Who: attach.Who{PID: targetOf(p)}}
	if rest, ok := strings.CutPrefix(s.target, "process id '"); ok {
		r.Who.PID, _ = whole(strings.TrimSuffix(rest, "'"))
	}
	if s.target != "" {
		r.Title += " of " + s.target
	}
	if s.intervals > 0 {
		r.Title += fmt.Sprintf(", %s", attach.Plural(s.intervals, "interval"))
	}
	if s.elapsed > 0 {
		r.Title += ", " + lasts(s.elapsed)
	}
	clock, hasClock := s.first("task-clock")
	used := 0.0
	switch {
	case s.wide:
		hasClock = false
	case len(s.threads) > 0:
		used = s.byThread(&r)
	case len(s.utilized) > 1:
		used = attach.Median(s.utilized)
		r.Figures = append(r.Figures, fmt.Sprintf("median %.3g CPUs used, %.3g to %.3g", used,
			slices.Min(s.utilized), slices.Max(s.utilized)))
	case len(s.utilized) == 1:
		used = s.utilized[0]
		if used == 0 && hasClock && s.elapsed > 0 { // it has no more figures than perf prints
			used = clock / 1000 / s.elapsed
		}
		r.Figures = append(r.Figures, cpus(used)+" used")
	case hasClock && s.elapsed > 0:
		used = clock / 1000 / s.elapsed
		r.Figures = append(r.Figures, cpus(used)+" used")
	case s.user+s.sys > 0 && s.elapsed >= longEnough && !hasWatch(s):
		used = (s.user + s.sys) / s.elapsed
		r.Figures = append(r.Figures, cpus(used)+" used")
	}
	// Units and system-wide counts differ between versions: the tool's own ratio must agree.
	if ran := clock / 1000; hasClock && used > 0 && len(s.utilized) == 1 && s.intervals == 0 &&
		math.Abs(ran-used*s.elapsed) <= 0.2*ran {
		r.Figures[0] = fmt.Sprintf("%s of CPU time in %s: %s", lasts(ran), lasts(s.elapsed), r.Figures[0])
		// A mean of several runs ends with their number, which is no command's.
		if command := strings.Trim(s.target, "'"); len(command)+2 == len(s.target) && command != "system wide" {
			r.Facts = append(r.Facts, attach.Fact{Name: attach.RunCPU, Value: ran * 1e9,
				Of: command}, attach.Fact{Name: attach.RunElapsed, Value: s.elapsed * 1e9, Of: command})
		}
	}
	if hasClock && s.elapsed == 0 && len(s.utilized) == 1 && s.intervals == 0 && len(r.Figures) > 0 {
		r.Figures[0] = fmt.Sprintf("%s of CPU time, %s", lasts(clock/1000), r.Figures[0])
	}
	if watched := s.watched(); watched > 0 && !hasClock && used == 0 {
		r.Figures = append(r.Figures, attach.Plural(watched, "CPU")+" watched")
	}
	s.rates(&r)
	s.cycles(&r)
	if len(r.Figures) == 0 {
		s.plain(&r)
	}
	if s.user+s.sys > 0 && s.elapsed >= longEnough { // shorter, the division between them is chance
		r.Figures = append(r.Figures, fmt.Sprintf("%s user, %s system", lasts(s.user), lasts(s.sys)))
	}
	if line := s.counted(); line != "" {
		r.Figures = append(r.Figures, line)
	}
	if len(s.missing) > 0 && len(s.counts) > 0 {
		r.Figures = append(r.Figures, "not counted here: "+strings.Join(s.missing[:min(4, len(s.missing))], ", "))
	}
	r.Not = "Counts and rates say how much happened and not how long anything waited: an IPC, a rate of switches or of faults is no cause."
	switch {
	case used > 0 && s.elapsed > 0 && s.elapsed < longEnough && s.intervals == 0:
		r.Means = fmt.Sprintf("The whole run took %s, %s of it on CPUs: that is the start and the end of a program, and no rate follows.", lasts(s.elapsed), lasts(used*s.elapsed))
	case used > 0 && used < 0.5:
		r.Means = fmt.Sprintf("It used %.3g of a CPU: it mostly waited, and for what is not in it.", used)
	case used > 0:
		r.Means = fmt.Sprintf("It used %s: what it did there, and whether it waited for more, is not in it.", cpus(used))
	default:
		r.Means = "These are counts of events: they say nothing of waiting."
	}
	r.Next = append(r.Next, record(r.Who.PID, "what it waited for"))
	return r
}

// cpus writes how many CPUs something used.
func cpus(n float64) string {
	if text := fmt.Sprintf("%.3g", n); text != "1" {
		return text + " CPUs"
	}
	return "1 CPU"
}

// counted says for how much of the time counters ran, where there are more than the CPU has at
// once; "": for all.
func (s *stat) counted() string {
	low, high := 100.0, 0.0
	for _, c := range s.comment {
		if m := statRan.FindStringSubmatch(c); m != nil {
			v, _ := number(m[1])
			low, high = min(low, v), max(high, v)
		}
	}
	if high == 0 || low > 99 {
		return ""
	}
	return fmt.Sprintf("counters that took turns ran %.0f to %.0f %% of the time", low, high)
}

// statRan is the share of the time for which a counter ran.
var statRan = pattern.New(`[\[(]\s*(\d+[.,]\d+)\s?%[\])]$`)

// watched is how many CPUs a clock of the whole machine ran on, idle or not; 0: not known.
func (s *stat) watched() int {
	clock, ok := s.first("cpu-clock", "task-clock")
	if !ok || s.intervals == 0 && s.elapsed < longEnough || s.elapsed == 0 {
		return 0
	}
	n := math.Round(clock / 1000 / s.elapsed)
	if n < 1 || n > 1<<16 || math.Abs(clock/1000/s.elapsed-n) > 0.02*n {
		return 0
	}
	return int(n)
}

// hasWatch reports whether a clock counts that runs while CPUs idle.
func hasWatch(s *stat) bool { _, ok := s.first("cpu-clock"); return ok || s.wide }

// longEnough is how long a run in s must be for a rate. Shorter ones are mostly a program's start.
const longEnough = 0.1

// plain adds the counts of which nothing better is known, the largest first.
func (s *stat) plain(r *attach.Reading) {
	var out []string
	for _, name := range attach.Largest(s.counts) {
		text := fmt.Sprintf("%s %s", count(s.counts[name]), name)
		if s.elapsed >= longEnough {
			text += fmt.Sprintf(" (%s)", perSecond(s.counts[name], s.elapsed))
		}
		if out = append(out, text); len(out) == 3 {
			break
		}
	}
	if len(out) > 0 {
		r.Figures = append(r.Figures, strings.Join(out, ", "))
	}
}
