package goruntime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// schedtrace is GODEBUG=schedtrace=1000, with scheddetail=1 or without.
var schedtrace = &attach.Kind{
	Name:      "schedtrace",
	Hints:     []string{"SCHED ", "status=", "curg="},
	Marks:     []string{"SCHED "},
	Claim:     claimSched,
	Scattered: true,
	Read:      readSched,
}

func claimSched(lines []paste.Line) int {
	begun := false // a line above may be one that an editor broke between two fields
	return while(lines, func(s string) bool {
		begun = schedStart(s) >= 0 || detailLine(s) != "" || begun && schedRest(s)
		return begun
	})
}

// schedFields are the fields that the rest of a broken line may start with: those of a sample, of
// its Ps, Ms and Gs.
var schedFields = []string{"idleprocs", "threads", "spinningthreads", "needspinning", "idlethreads",
	"runqueue", "gcwaiting", "nmidlelocked", "stopwait", "sysmonwait",
	"syscalltick", "m", "runqsize", "gfreecnt", "timerslen", "mallocing", "throwing", "gcing",
	"preemptoff", "locks", "dying", "helpgc", "spinning", "blocked", "lockedg"}

// schedRest reports whether a line is the end of one that was broken between two fields.
func schedRest(s string) bool {
	key, _, ok := strings.Cut(firstWord(strings.TrimSpace(s)), "=")
	return ok && slices.Contains(schedFields, strings.ToLower(key))
}

// unbroken is a line together with those that are the rest of it.
func unbroken(lines []paste.Line) string {
	text := lines[0].Text
	for _, l := range lines[1:min(8, len(lines))] {
		if !schedRest(l.Text) || detailLine(l.Text) != "" {
			break
		}
		text += " " + strings.TrimSpace(l.Text)
	}
	return text
}

// schedStart returns where "SCHED 1004ms: " starts in a line, -1 if nowhere.
func schedStart(s string) int {
	i := strings.Index(s, "SCHED ")
	if i < 0 {
		return -1
	}
	rest := s[i+len("SCHED "):]
	const head = "ms: gomaxprocs="
	if d := digits(rest); d > 0 && len(rest) >= d+len(head) && strings.EqualFold(rest[d:d+len(head)], head) {
		return i
	}
	return -1
}

// detailLine returns the head of a line that scheddetail=1 adds: "P0", "M3", "G17".
func detailLine(s string) string {
	s = strings.TrimLeft(s, " \t")
	head, rest, ok := strings.Cut(s, ": ")
	if !ok || len(head) < 2 || digits(head[1:]) != len(head)-1 {
		return ""
	}
	switch {
	case head[0] == 'P' && strings.HasPrefix(rest, "status=") && strings.Contains(rest, "tick="), // "tick" until Go 1.1
		head[0] == 'M' && strings.HasPrefix(rest, "p=") && strings.Contains(rest, "curg="),
		head[0] == 'G' && strings.HasPrefix(rest, "status=") && strings.Contains(rest, "lockedm="):
		return head
	}
	return ""
}

// snapshot is one sample of the scheduler.
type snapshot struct {
	at                 float64 // s since the program started
	ps, idle, spinning int
	threads            int
	global, local      int
	locals             bool           // the queues of Ps are in it
	open               bool           // their list is cut
	shown              int            // of scheddetail: Ps whose lines are there
	states             [3]int         // of them: idle, running, in a system call
	listed             [5]int         // of scheddetail: goroutines that are idle, runnable, running, in a system call, waiting
	resting            int            // threads without work; -1: not printed
	gcWaiting          bool           // the world is being stopped, or stands still
	stopWait           int            // of scheddetail: Ps that have yet to stop
	headless           bool           // its SCHED line is cut off
	source             string         // which process a prefix names
	reasons            map[string]int // of scheddetail: goroutines that wait, by what for; the runtime's own are left out
}

func (s *snapshot) runnable() int { return s.global + s.local }

// blocked is how many threads neither rest nor have a P: in system calls, in C code, or locked to a
// goroutine that waits. One more is the runtime's monitor.
func (s *snapshot) blocked() int {
	if s.resting < 0 {
		return 0
	}
	return max(0, s.threads-s.resting-(s.ps-s.idle)-1)
}

// partial reports whether the queues of some Ps are not in a sample: its sum is then the least.
func (s *snapshot) partial() bool {
	return s.open || s.shown > 0 && s.shown < s.ps
}

func (s *snapshot) perP() float64 { return ratio(float64(s.runnable()), float64(s.ps)) }

func parseSched(line string) (s snapshot, ok bool) {
	rest := line[schedStart(line)+len("SCHED "):]
	at, rest, _ := strings.Cut(rest, "ms: ")
	msec, ok := number(at)
	s.at, s.resting = msec/1e3, -1
	if open := strings.IndexByte(rest, '['); open >= 0 { // "[4 55]", since Go 1.26 "[ 4 55 ] schedticks=[ 1 2 ]"
		list, _, closed := strings.Cut(rest[open+1:], "]")
		s.open = !closed
		for _, f := range strings.Fields(list) {
			n, isNumber := whole(f)
			if !isNumber || !closed && f == list {
				continue
			}
			s.local += n
			s.locals = true
		}
		rest = rest[:open]
	}
	seen := false
	for _, f := range strings.Fields(rest) {
		key, value, _ := strings.Cut(f, "=")
		n, isNumber := whole(value)
		key = strings.ToLower(key)
		switch {
		case key == "gcwaiting":
			s.gcWaiting = value == "true" || value == "1"
		case !isNumber:
		case key == "gomaxprocs":
			s.ps = n
		case key == "idleprocs":
			s.idle = n
		case key == "threads":
			s.threads = n
		case key == "idlethreads":
			s.resting = n
		case key == "spinningthreads":
			s.spinning = n
		case key == "stopwait":
			s.stopWait = n
		case key == "runqueue":
			s.global, seen = n, true
		}
	}
	return s, ok && seen && s.ps > 0
}

// schedSamples divides a line at each sample: a web page may have joined them.
func schedSamples(text string) (out []string) {
	for at := schedStart(text); at >= 0; {
		next := schedStart(text[at+len("SCHED "):])
		if next < 0 {
			return append(out, text[at:])
		}
		next += at + len("SCHED ")
		out = append(out, text[at:next])
		text, at = text[next:], 0
	}
	return out
}

// parseSnapshots reads the samples; with scheddetail the queues of Ps stand in lines of their own,
// or behind the sample's, where a web page joined them.
func parseSnapshots(lines []paste.Line) (out []snapshot, flaws []string) {
	for i, line := range lines {
		at := schedStart(line.Text)
		head := detailLine(line.Text)
		if at < 0 && head != "" {
			if len(out) == 0 {
				out = append(out, snapshot{resting: -1, headless: true})
			}
			out[len(out)-1].detailed(head, unbroken(lines[i:]))
		}
		if at < 0 {
			continue
		}
		for _, text := range schedSamples(unbroken(lines[i:])) {
			details := apartDetails(text)
			s, ok := parseSched(details[0])
			if !ok {
				if len(flaws) < 4 {
					flaws = append(flaws, fmt.Sprintf("line %d: a schedtrace line that is cut or damaged", line.N))
				}
				continue
			}
			s.source = fmt.Sprint(line.Source, line.PID)
			for _, text := range details[1:] {
				s.detailed(detailLine(text), text)
			}
			out = append(out, s)
		}
	}
	return out, flaws
}

// detailHead is where a line of scheddetail starts within a longer one.
var detailHead = pattern.New(`\s(?:P\d+: status=|M\d+: p=|G\d+: status=)`)

// apartDetails divides a line behind which a web page put those of scheddetail.
func apartDetails(text string) (out []string) {
	from := 0
	for _, at := range detailHead.FindAllStringIndex(text, -1) {
		out = append(out, text[from:at[0]])
		from = at[0]
	}
	return append(out, text[from:])
}

// detailed takes a line of scheddetail.
func (s *snapshot) detailed(head, text string) {
	if head == "" {
		return
	}
	_, rest, _ := strings.Cut(text, "status=")
	d := digits(rest)
	n, isNumber := whole(rest[:d])
	switch {
	case head[0] == 'G' && isNumber && n < len(s.listed):
		s.listed[n]++
		if reason, _, ok := strings.Cut(strings.TrimPrefix(rest[d:], "("), ") m="); ok && n == 4 &&
			reason != "" && stateKind(&stack{state: reason}) != waitRuntime {
			if s.reasons == nil {
				s.reasons = map[string]int{}
			}
			s.reasons[reason]++
		}
	case head[0] == 'P' && isNumber && n < len(s.states):
		s.states[n]++
	}
	if _, rest, ok := strings.Cut(text, " runqsize="); ok && head[0] == 'P' {
		if n, isNumber := whole(rest[:digits(rest)]); isNumber { // "0/128" until Go 1.2
			s.local += n
			s.locals = true
			s.shown++
		}
	}
}

// Floors of the run queue. A goroutine may run for 10 ms before the next one: with 5 in the queue
// of each P, a request may wait 50 ms for each of its turns.
const (
	queueLong   = 5.0
	queueOften  = 0.2 // of the samples
	queueCrowd  = 50  // in the queue of each P in one sample
	queueAlways = 0.9
)

// wholeOf is the samples that show the queues of all Ps; where there are none, all of them.
func wholeOf(samples []snapshot) []snapshot {
	whole := slices.DeleteFunc(slices.Clone(samples), func(s snapshot) bool { return s.partial() })
	if len(whole) == 0 {
		return samples
	}
	return whole
}

// ofWhole says of which samples a figure is, where some do not show the queues of all Ps.
func ofWhole(samples []snapshot) string {
	switch whole := wholeOf(samples); {
	case whole[0].partial():
		return " at least, since none of the samples shows all Ps"
	case len(whole) < len(samples):
		return fmt.Sprintf(" in the %s that %s all Ps", count(len(whole), "sample", "samples"),
			map[bool]string{true: "shows", false: "show"}[len(whole) == 1])
	}
	return ""
}

func readSched(p *attach.Part) attach.Reading {
	all, flaws := parseSnapshots(p.Lines)
	r := attach.Reading{Title: "schedtrace, no line of it whole", State: attach.CannotTell, Flaws: flaws}
	if len(all) == 0 {
		r.Means = "there is no whole SCHED line: nothing follows"
		return r
	}
	if all[0].headless && len(all) == 1 {
		r.Title, r.Glance = "scheddetail, without its SCHED line", true
		r.Figures = all[0].detail()
		r.Means = "in which state Ps and goroutines were at one moment; how many wait for a P stands in the line that is cut off"
		return r
	}
	if all[0].headless {
		all = all[1:]
	}
	all, rest, starts := longestRun(all)
	beside := ""
	if starts == 2 {
		beside = besideText(rest)
	} else if starts > 2 {
		r.Flaws = append(r.Flaws,
			fmt.Sprintf("the samples are of %d starts or processes; the one with most samples is read", starts))
	}
	samples := all
	if len(all) > 1 && all[0].at < firstMoment {
		samples = all[1:] // a program's first moment
	}
	ps := samples[0].ps
	over := ""
	if len(all) > 1 {
		over = " over " + seconds(all[len(all)-1].at-all[0].at)
	}
	r.Title = fmt.Sprintf("schedtrace, %s%s, GOMAXPROCS %d", count(len(all), "sample", "samples"), over, ps) + beside
	var perP []float64
	long, idle, spinning, threads := 0, 0, 0, 0
	most, whole := samples[0], wholeOf(samples)
	for _, s := range whole {
		perP = append(perP, s.perP())
	}
	for _, s := range samples {
		threads = max(threads, s.threads)
		if s.queued() {
			long++
		}
		if s.idle > 0 && s.runnable() == 0 {
			idle++
		}
		spinning += s.spinning
		if s.perP() > most.perP() {
			most = s
		}
	}
	r.Facts = []attach.Fact{{Name: FactRunnablePerP, Value: attach.Median(perP)},
		{Name: FactGOMAXPROCS, Value: float64(ps)}}
	queues := fmt.Sprintf("%d global + %d local = %d runnable goroutines on %s", most.global,
		most.local, most.runnable(), count(most.ps, "P", "Ps"))
	if most.open {
		queues = "at least " + queues + " (the list of the Ps' queues is cut)"
	}
	if !most.locals {
		queues = fmt.Sprintf("%d runnable goroutines in the global queue on %s; the Ps' own queues are cut off", most.global, count(most.ps, "P", "Ps"))
	}
	if most.shown > 0 && most.shown < most.ps {
		queues = fmt.Sprintf("at least %d global + %d local = %d runnable goroutines (%d of %d Ps are shown)", most.global, most.local, most.runnable(), most.shown, most.ps)
	}
	when := "longest queue"
	if len(samples) < len(all) {
		when += fmt.Sprintf(", without the first sample at %.3f s", all[0].at)
	}
	r.Figures = []string{
		fmt.Sprintf("%s: %s at %.3f s", when, queues, most.at),
		fmt.Sprintf("%d of %d samples have %.0f or more runnable goroutines for each P and no idle P; %d have idle Ps and nobody waiting", long, len(samples), queueLong, idle),
		fmt.Sprintf("median %s runnable for each P%s; %.2g spinning threads on average, %d threads",
			short(attach.Median(perP)), ofWhole(samples), ratio(float64(spinning), float64(len(samples))), threads),
	}
	if len(samples) == 1 {
		r.Figures = append([]string{fmt.Sprintf("queued: %s at %.3f s, idleprocs=%d, %s", queues,
			most.at, most.idle, count(threads, "thread", "threads"))}, most.detail()...)
	} else if text := waitingText(samples); text != "" {
		r.Figures = slices.Insert(r.Figures, 1, text)
	}
	if threads >= manyThreads && threads >= threadsPerP*ps {
		r.Figures = slices.Insert(r.Figures, 0, threadsText(samples, threads, ps))
	}
	if text := grows(samples); text != "" {
		r.Figures = slices.Insert(r.Figures, 1, text)
	}
	judgeSched(&r, samples, long, perP)
	judgeStopping(&r, samples)
	if len(samples) < len(all) && r.State == attach.Healthy {
		r.Means += " after the first moment"
	}
	if len(samples) == 1 && most.at < firstMoment && most.runnable() > 0 {
		r.Means += "; and it is of the program's start, when all its goroutines are new"
	}
	return r
}
