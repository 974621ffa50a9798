package stackdump

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// safepoint reads what the JVM logs of stops of all its threads: -XX:+PrintGCApplicationStoppedTime
// until JDK 8, -Xlog:safepoint since 9, in the form of 14 as well.
var safepoint = &attach.Kind{
	Name: "JVM safepoint log",
	Hints: []string{"application threads were stopped", "Safepoint \"", "Application time: ",
		"wait_to_block", "  [ ", "SafepointSynchronize::begin"},
	Marks:     []string{"application threads were stopped", "Safepoint \"", "SafepointSynchronize::begin: "},
	Single:    true,
	Scattered: true,
	Claim: func(lines []paste.Line) int {
		n := 0
		for n < len(lines) && lines[n].Command == "" && (isStop(lines[n].Text) || isHalf(lines, n)) {
			n++
		}
		return n
	},
	Read: readSafepoint,
}

var (
	stopOld = pattern.New(`Total time for which application threads were stopped: (\d+[.,]\d+) seconds(?:, Stopping threads took: (\d+[.,]\d+) seconds)?`)
	stopNew = pattern.New(`Safepoint "(\w+)", .*\bReaching safepoint: (\d+) ns\b.*\bTotal: (\d+) ns`)
	// stopTable is a row of -XX:+PrintSafepointStatistics: sync has spin and block in it; whole
	// milliseconds.
	stopTable = pattern.New(`^\s*[\d.]+: ([A-Za-z][\w ]*?) *\[ *\d+ +\d+ +\d+ *\] +\[ *\d+ +\d+ +(\d+) +(\d+) +(\d+) *\] +\d+`)
	stopHead  = pattern.New(`^\s*vmop +\[threads: total initially_running wait_to_block\]`)
	// stopCounts and stopTimes are the two halves of a row that a page has broken.
	stopCounts = pattern.New(`^\s*[\d.]+: [A-Za-z][\w ]*? *\[ *\d+ +\d+ +\d+ *\]$`)
	stopTimes  = pattern.New(`^\s*\[ *\d+ +\d+ +\d+ +\d+ +\d+ *\] +\d+$|^\s*\[time: spin block sync cleanup vmop\]`)
	// stopLate is what -XX:+SafepointTimeout prints, and stopThread a late thread below it.
	stopLate   = pattern.New(`^(?:\[[^\]]*\])* ?# SafepointSynchronize::begin: `)
	stopThread = pattern.New(`^(?:\[[^\]]*\])* ?# ("[^"]{1,200}")`)
	ran        = pattern.New(`Application time: (\d+[.,]\d+) seconds`)
	since      = pattern.New(`Time since last: (\d+) ns`)
)

func isStop(text string) bool {
	return stopTable.MatchString(text) || stopLate.MatchString(text) ||
		stopHead.MatchString(text) || stopOld.MatchString(text) || stopNew.MatchString(text) || ran.MatchString(text)
}

// isHalf reports whether a line is a piece of a broken row, or a thread below the words that it was
// late.
func isHalf(lines []paste.Line, at int) bool {
	text := lines[at].Text
	if at == 0 {
		return len(lines) > 1 && stopCounts.MatchString(text) && stopTimes.MatchString(lines[1].Text)
	}
	return stopCounts.MatchString(text) || stopTimes.MatchString(text) ||
		stopLate.MatchString(lines[at-1].Text) && stopThread.MatchString(text)
}

// stops is what the lines say, in seconds.
type stops struct {
	took, reach []float64
	between     float64  // time that the program ran between stops; 0: not said
	most        float64  // the longest one
	longest     string   // why that was; "": not said
	half        string   // the first half of a broken row; "": none
	late        []string // threads that the JVM names as late
}

// stop takes one stop of all threads, and why it was; "": its line does not say.
func (s *stops) stop(took float64, why string) {
	if len(s.took) == 0 || took > s.most {
		s.most, s.longest = took, why
	}
	s.took = append(s.took, took)
}

func (s *stops) line(text string) {
	num := func(t string, unit float64) float64 {
		v, _ := strconv.ParseFloat(strings.Replace(t, ",", ".", 1), 64)
		return v * unit
	}
	switch {
	case stopCounts.MatchString(text):
		s.half = text
		return
	case s.half != "" && stopTimes.MatchString(text) && !strings.Contains(text, "time:"):
		text, s.half = s.half+" "+strings.TrimSpace(text), ""
	}
	if m := stopThread.FindStringSubmatch(text); m != nil && len(s.late) < 3 {
		s.late = append(s.late, m[1])
		return
	}
	if m := ran.FindStringSubmatch(text); m != nil {
		s.between += num(m[1], 1)
		return
	}
	if m := stopTable.FindStringSubmatch(text); m != nil {
		s.stop(num(m[2], 1e-3)+num(m[3], 1e-3)+num(m[4], 1e-3), strings.TrimSpace(m[1]))
		s.reach = append(s.reach, num(m[2], 1e-3))
		return
	}
	if m := stopOld.FindStringSubmatch(text); m != nil {
		s.stop(num(m[1], 1), "")
		if m[2] != "" {
			s.reach = append(s.reach, num(m[2], 1))
		}
		return
	}
	m := stopNew.FindStringSubmatch(text)
	if m == nil {
		return
	}
	s.stop(num(m[3], 1e-9), m[1])
	s.reach = append(s.reach, num(m[2], 1e-9))
	if b := since.FindStringSubmatch(text); b != nil {
		s.between += num(b[1], 1e-9)
	}
}

// longStop is a stop that requests feel, in seconds; muchStopped is a share of time that they do.
const (
	longStop    = 0.1
	muchStopped = 0.05
	enoughStops = 2 // for a share of time
)

func readSafepoint(p *attach.Part) attach.Reading {
	var s stops
	for _, l := range p.Lines {
		s.line(l.Text)
	}
	r := attach.Reading{Title: "JVM safepoints, " + attach.Plural(len(s.took), "stop") +
		" of all threads", State: attach.CannotTell,
		Not: "Garbage collection is only one reason of a stop: a line of the collector beside it would say so."}
	if len(s.late) > 0 {
		r.Figures = append(r.Figures, "late to stop, as the JVM says: "+strings.Join(s.late, ", "))
	}
	if len(s.took) == 0 && slices.ContainsFunc(p.Lines,
		func(l paste.Line) bool { return stopLate.MatchString(l.Text) }) {
		r.Title = "JVM safepoints, a thread that stopped late"
		r.Means = "The other threads stood still until it stopped as well, for longer than -XX:SafepointTimeoutDelay."
		r.Not = "How long they stood still in the end: a line of the stop itself says so."
		return r
	}
	if len(s.took) == 0 {
		r.Means = "It has the head of a table of stops, and none of its rows."
		if s.between > 0 {
			r.Means = "It says how long the program ran, and of no stop."
		}
		return r
	}
	total, reach := attach.Sum(s.took), attach.Sum(s.reach)
	line := fmt.Sprintf("%s in all, median %s, longest %s", span(total), span(attach.Median(s.took)), span(s.most))
	if len(s.took) == 1 {
		line = "1 stop, " + span(s.most)
	}
	if s.longest != "" {
		line += " (" + s.longest + ")"
	}
	r.Figures = append(r.Figures, line)
	if len(s.reach) > 0 {
		r.Figures = append(r.Figures,
			fmt.Sprintf("of it until all threads had stopped: %s in all, longest %s", span(reach),
				span(slices.Max(s.reach))))
	}
	stopped := 0.0
	if s.between > 0 && len(s.took) >= enoughStops {
		stopped = total / (total + s.between)
		r.Figures = append(r.Figures,
			fmt.Sprintf("stopped for %.1f %% of the time between the first line and the last", 100*stopped))
	}
	switch {
	case s.most < longStop && s.between == 0 && total >= longStop:
		r.Means = "No stop is long enough for requests to feel it. What share of the time all of them take is not in it."
		r.Next = append(r.Next, attach.Next{Command: "java -Xlog:gc*,safepoint ...",
			Why: "has the time of each stop, and what it was for"})
		return r
	case s.most < longStop && len(s.took) == 1:
		r.Means = "It is no long stop, and one says nothing of the others."
		return r
	case s.most < longStop && stopped < muchStopped:
		r.State, r.Means = attach.Healthy, "No stop is long enough for requests to feel it."
		return r
	case reach > total/2:
		r.Means = "Most of it is the wait for a thread that did not stop: a long loop, a page fault, or a thread without a CPU."
		r.Next = append(r.Next,
			attach.Next{Command: "java -XX:+SafepointTimeout -XX:SafepointTimeoutDelay=500 ...",
				Why: "names the threads that the others wait for"})
		r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-contention", Grade: attach.Candidate, Proof: []string{line}})
	case len(s.reach) < len(s.took):
		r.Means = "All threads stood still. How long it took until all had stopped is not in these lines, so what the time went into they do not say."
		r.Next = append(r.Next, attach.Next{Command: "java -Xlog:gc*,safepoint ...",
			Why: "says what each stop was for, and how long it took until all threads had stopped"})
	default:
		r.Means = "All threads stood still, and stopped at once: the time is in what the JVM did then, or the whole process had no CPU."
		r.Next = append(r.Next, attach.Next{Command: "java -Xlog:gc*,safepoint ...",
			Why: "says what each stop was for"})
	}
	r.Signs = append(r.Signs, attach.Sign{Cause: "jvm-safepoint", Grade: attach.Candidate, Proof: []string{line}})
	return r
}

// span prints seconds with three digits.
func span(s float64) string {
	switch {
	case s >= 1000:
		return fmt.Sprintf("%.0f s", s)
	case s >= 1:
		return fmt.Sprintf("%.3g s", s)
	case s >= 1e-3:
		return fmt.Sprintf("%.3g ms", s*1e3)
	}
	return fmt.Sprintf("%.3g us", s*1e6)
}
