package profiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var (
	kernelTrace = &attach.Kind{Name: "kernel trace", Claim: claimTrace, Read: readKernelTrace,
		Hints:  []string{"# tracer: ", "] ", "entries-in-buffer", "# latency:", "cpus="},
		Yields: []string{"function_graph"}}
	functionGraph = &attach.Kind{Name: "function_graph", Claim: claimGraph, Read: readGraph,
		Hints: []string{") ", "# tracer: function_graph"}}
)

var (
	// "   link-9631    [000] d..2. 15614.134982: sched_switch: prev_comm=link ..."
	traceLine = pattern.New(`^(\S.{0,30}?)-(\d+)\s+(?:\([- \d]+\)\s+)?\[(\d+)\]\s+(?:[a-zA-Z.\d]{4,6}\s+)?(\d+\.\d+): +(#?[\w.]+:?.*)$`)
	// "      ps-6143    2d..1  259us+: trace_hardirqs_on <-_raw_spin_unlock_irqrestore"
	latencyLine = pattern.New(`^\S.{0,30}?-\d+\s+\d+[a-zA-Z.\d]{3,6}\s+\d+us[!+#*@$]?\s*: \S`)
	latencyEnds = pattern.New(`^#?\s*=> (started|ended) at:\s+(\S+)`)
	wakeupPID   = pattern.New(`(?:^|[ :\]])(?:comm=\S.*? )?pid=(\d+)|(\S+):(\d+) \[\d+\]`)
	nextPID     = pattern.New(`next_comm=(.*?) next_pid=(\d+)|==> (\S.*?):(\d+) \[\d+\]`)
	prevPID     = pattern.New(`prev_pid=(\d+) prev_prio=-?\d+ prev_state=(\S+)|:(\d+) \[-?\d+\] (\S+) ==> `)
	latency     = pattern.New(`^(?:# )?latency: (\d+) us, #\d+`)
	hwlatLine   = pattern.New(`inner/outer\(us\):\s*(\d+)/(\d+)`)
	timerlat    = pattern.New(`context\s+(irq|thread) timer_latency\s+(\d+) ns`)
	// "81.637220: 1000000  190  99.98100  9  18  0  1007  18  1"
	osnoise = pattern.New(`^(\d{4,9})\s+(\d+)\s+(\d+\.\d+)\s+(\d+)\s+\d+`)
	// " 0)   1.234 us    |  func();", " 1) ! 123.4 us |  } /* func */", " 0)       |  do_fork() {"
	graphLineOf = pattern.New(`^(?:\d+\.\d+ \|\s+)?(\d+)\)\s+(?:\S.*? \|\s+)?(?:([+!#*@$]) )?(?:(\d+\.\d+) us)?\s*\|\s{0,}(\S.*)$`)
)

func claimTrace(lines []paste.Line) int {
	rows := 0
	n := claimed(lines, func(_ int, text string) bool {
		switch {
		case traceLine.MatchString(text), latencyLine.MatchString(text):
			rows++
		case strings.HasPrefix(text, "# tracer: function_graph"):
			return false
		case strings.HasPrefix(text, "# tracer: "), latency.MatchString(text):
			rows++
		case strings.HasPrefix(text, "cpus="), strings.HasPrefix(text, "#"),
			strings.HasPrefix(text, "CPU ") && strings.HasSuffix(text, "EVENTS]"), strings.HasPrefix(text, "=> "),
			rows > 0 && (strings.HasPrefix(text, "<stack trace") || oldTraceHead(text)):
		default:
			return false
		}
		return true
	})
	if rows == 0 || rows == 1 && n < 2 && !strings.HasPrefix(lines[0].Text, "#") &&
		!traceLine.MatchString(strings.TrimSpace(lines[0].Text)) {
		return 0
	}
	return n
}

// oldTraceHead reports whether a line is of the head of a latency trace before 3.9, whose lines
// were no comments.
func oldTraceHead(text string) bool {
	return strings.Contains(text, " latency trace v") || strings.HasPrefix(text, "| ") ||
		strings.HasPrefix(text, "=> ") || len(text) > 8 && strings.Trim(text, "-") == ""
}

// switchTrace pairs wake-ups and switches of a trace: how long threads waited for a CPU.
type switchTrace struct {
	ready    map[string]float64 // PID: since when
	on       map[string]float64 // PID: since when it has a CPU
	ran      float64            // ms, of threads that are seen to come and to leave
	tasks    map[string]*taskDelay
	delays   []float64 // ms
	waited   float64
	switches int
	stats    statDelays
}

func (s *switchTrace) add(at float64, event string) {
	name, rest, _ := strings.Cut(event, ":")
	switch name {
	case "sched_wakeup", "sched_wakeup_new", "sched_waking":
		if m := wakeupPID.FindStringSubmatch(rest); m != nil && len(s.ready) < most {
			pid := m[1] + m[3]
			if _, ok := s.ready[pid]; !ok {
				s.ready[pid] = at
			}
		}
	case "sched_switch":
		s.switches++
		if m := prevPID.FindStringSubmatch(rest); m != nil {
			pid, state := m[1]+m[3], m[2]+m[4]
			delete(s.ready, pid)
			if strings.HasPrefix(state, "R") && pid != "0" {
				s.ready[pid] = at
			}
			if since, ok := s.on[pid]; ok && pid != "0" {
				s.ran += max(at-since, 0) * 1000
			}
			delete(s.on, pid)
		}
		m := nextPID.FindStringSubmatch(rest)
		if m == nil {
			return
		}
		pid, comm := m[2]+m[4], m[1]+m[3]
		if len(s.on) < most {
			s.on[pid] = at
		}
		since, ok := s.ready[pid]
		if !ok || pid == "0" || len(s.delays) >= most {
			return
		}
		delete(s.ready, pid)
		ms := max(at-since, 0) * 1000
		s.delays = append(s.delays, ms)
		s.waited += ms
		t := s.tasks[comm]
		if t == nil {
			t = &taskDelay{name: comm}
			s.tasks[comm] = t
		}
		t.avg += ms
		t.switches++
		t.longest = max(t.longest, ms)
	}
}

func readKernelTrace(p *attach.Part) attach.Reading {
	s := &switchTrace{ready: map[string]float64{}, on: map[string]float64{}, tasks: map[string]*taskDelay{},
		stats: statDelays{}}
	tracer, events, first, last := "", map[string]float64{}, 0.0, 0.0
	worst, noise, ends := 0.0, []float64{}, ""
	for _, text := range texts(p) {
		if rest, ok := strings.CutPrefix(text, "# tracer: "); ok {
			tracer = rest
		}
		if m := latency.FindStringSubmatch(text); m != nil {
			us, _ := number(m[1])
			worst = max(worst, us)
		}
		if m := latencyEnds.FindStringSubmatch(text); m != nil && len(ends) < 400 {
			ends += fmt.Sprintf(", %s in %s", m[1], m[2])
		}
		if latencyLine.MatchString(text) {
			events["line"]++
		}
		m := traceLine.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		at, _ := number(m[4])
		if first == 0 {
			first = at
		}
		last = at
		for _, re := range []*pattern.Regexp{hwlatLine, timerlat} {
			if h := re.FindStringSubmatch(m[5]); h != nil {
				a, _ := number(h[1])
				b, _ := number(h[2])
				if re == timerlat {
					a, b = 0, b/1000
				}
				worst = max(worst, a, b)
			}
		}
		if o := osnoise.FindStringSubmatch(m[5]); o != nil && len(noise) < most {
			pct, _ := number(o[3])
			us, _ := number(o[4])
			noise = append(noise, 100-pct)
			worst = max(worst, us)
		}
		s.add(at, m[5])
		s.stats.add(m[5])
		name, _, _ := strings.Cut(m[5], ":")
		events[strings.Fields(name + " ")[0]]++
	}
	r := attach.Reading{State: attach.CannotTell, Title: "kernel trace"}
	if tracer != "" && tracer != "nop" {
		r.Title += ", tracer " + tracer
	}
	n := 0.0
	for _, v := range events {
		n += v
	}
	if n > 0 {
		r.Title += ", " + attach.Plural(int(n), "event")
	}
	if last > first {
		r.Title += " in " + lasts(last-first)
	}
	if worst > 0 {
		r = traceLatency(r, tracer, worst, noise)
		r.Figures[0] += ends
		return r
	}
	return traceEvents(r, s, events, n)
}

// traceLatency reads the tracers that measure a latency themselves.
func traceLatency(r attach.Reading, tracer string, worst float64, noise []float64) attach.Reading {
	r.Figures = append(r.Figures, fmt.Sprintf("longest: %s", lasts(worst/1e6)))
	r.Not = "It is the longest of what was traced: no rate."
	switch {
	case strings.HasPrefix(tracer, "hwlat"):
		r.Means = "The hardware, firmware or hypervisor took the CPU away with interrupts off: the time is outside of what the kernel or a program does."
		if worst >= 1000 {
			r.Signs = append(r.Signs,
				attach.Sign{Grade: attach.Outside,
					Where: fmt.Sprintf("the hardware, firmware or hypervisor: up to %s", lasts(worst/1e6))})
		}
	case len(noise) > 0:
		r.Figures = append(r.Figures, fmt.Sprintf("median noise %.3g %% of the time", attach.Median(noise)))
		r.Means = "It is what the kernel, interrupts and other threads took from a thread that only wants to run."
	default:
		r.Means = fmt.Sprintf("The longest latency that the tracer saw is %s.", lasts(worst/1e6))
	}
	if worst < 1000 {
		r.Means += " Of a request of milliseconds that is little."
	}
	return r
}

func traceEvents(r attach.Reading, s *switchTrace, events map[string]float64, n float64) attach.Reading {
	names := attach.Largest(events)
	for _, name := range names[:min(2, len(names))] {
		r.Figures = append(r.Figures, fmt.Sprintf("%s: %s (%s)", strings.TrimSuffix(name, ":"),
			count(events[name]), pct(events[name]/max(n, 1))))
	}
	if len(s.delays) == 0 && s.stats.says(&r) {
		r.Next = append(r.Next, record(0, "what threads waited for"))
		return r
	}
	if len(s.delays) == 0 {
		r.Means = "These are events of the kernel: how long anybody waited does not follow from them alone."
		r.Not = "Many events are no cause."
		r.Next = append(r.Next, record(0, "what threads waited for"))
		return r
	}
	slices.Sort(s.delays)
	longest := s.delays[len(s.delays)-1]
	who := longestTask(s.tasks, func(t *taskDelay) float64 { return t.avg })
	r.Figures = append([]string{fmt.Sprintf("from ready to running: %s, by %s pairs",
		spread(s.delays), count(float64(len(s.delays)))),
		fmt.Sprintf("%s waited longest: %s ms in %s switches", who.name, trim(who.avg),
			count(who.switches))}, r.Figures...)
	r.Not = "A throttled cgroup delays threads in the same way."
	if s.ran <= 0 { // no thread is seen to come and to leave
		r.Means = fmt.Sprintf("Threads that were ready waited up to %s ms for a CPU; how long any ran is not in it.", trim(longest))
		return r
	}
	delayMeaning(&r, s.waited, s.ran, float64(len(s.delays)), longest)
	return r
}

func claimGraph(lines []paste.Line) int {
	rows := 0
	n := claimed(lines, func(_ int, text string) bool {
		switch {
		case graphLineOf.MatchString(text):
			rows++
		case strings.HasPrefix(text, "#"), strings.Trim(text, "-") == "",
			strings.Contains(text, "=>") && strings.Contains(text, ") "):
		default:
			return false
		}
		return true
	})
	return attach.ClaimIf(rows >= 2, n)
}

func readGraph(p *attach.Part) attach.Reading {
	r := attach.Reading{State: attach.CannotTell}
	rows, worst, name := 0, 0.0, ""
	by := map[string]float64{}
	var open []string
	for _, text := range texts(p) {
		m := graphLineOf.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		rows++
		f := strings.TrimSpace(m[4])
		switch {
		case strings.HasSuffix(f, "{") && len(open) < 512:
			open = append(open, strings.TrimSuffix(strings.TrimSpace(strings.TrimSuffix(f, "{")), "()"))
		case strings.HasPrefix(f, "}") && len(open) > 0:
			f, open = open[len(open)-1], open[:len(open)-1]
		}
		us, ok := number(m[3])
		if !ok || m[3] == "" {
			continue
		}
		f = strings.TrimSuffix(strings.Trim(f, " {};/*"), "()")
		if f == "" {
			f = "a function whose start was cut off"
		}
		by[f] += us
		if us > worst {
			worst, name = us, f
		}
	}
	r.Title = fmt.Sprintf("function_graph, %s", attach.Plural(rows, "line"))
	if len(by) == 0 {
		r.Means = "No line has a time: which functions of the kernel call which is all that is in it."
		return r
	}
	r.Figures = append(r.Figures, fmt.Sprintf("longest: %s in %s", lasts(worst/1e6), name))
	for _, f := range attach.Largest(by)[:min(2, len(by))] {
		r.Figures = append(r.Figures, fmt.Sprintf("%s in %s, with what it calls and waits for", lasts(by[f]/1e6), f))
	}
	r.Means = "It says how long functions of the kernel took, waiting included."
	r.Not = "The tracer itself costs more than short functions do."
	r.Next = append(r.Next, record(0, "which of these waits requests had"))
	return r
}
