package profiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var (
	schedLatency = &attach.Kind{Name: "perf sched latency", Claim: claimSchedLatency,
		Read: readSchedLatency, Hints: []string{"| avg:", "Runtime ms", "-----", "TOTAL:", "Tasks "},
		Apart: func(l paste.Line) bool { return latencyHead(strings.TrimSpace(l.Text)) }}
	schedHist = &attach.Kind{Name: "perf sched timehist", Claim: claimSchedHist,
		Read: readSchedHist, Hints: []string{"] ", "sch delay", "Runtime summary", "sched-in", "-----"}}
	schedMap = &attach.Kind{Name: "perf sched map", Claim: claimSchedMap, Read: readSchedMap,
		Hints: []string{" secs"}}
)

var (
	// "  target:(5)  |  828.076 ms |  3556 | avg:   0.888 ms | max: 492.233 ms | max at: 12374.3 s"
	// The thread's number, and later the column of switches, are not in all versions.
	latencyRow = pattern.New(`^(\S.*?)(?::\(?(\d+)\)?)?\s*\|\s*(\d+[.,]\d+) ms\s*\|(?:\s*(\d+)\s*\|)?\s*avg:\s*(\d+[.,]\d+) ms\s*\|\s*max:\s*(\d+[.,]\d+) ms\s*\|?.*$`)
	latencyEnd = pattern.New(`^TOTAL:\s*\|\s*(\d+[.,]\d+) ms\s*\|\s*(\d+)\s*\|`)
	// "  TOTAL:  | 4104.1 ms | 8106 |      | 12.4 ms |  978.6 ms |": with a column of sums
	latencySum = pattern.New(`^TOTAL:\s*\|\s*(\d+[.,]\d+) ms\s*\|\s*(\d+)\s*\|\s*\|\s*(\d+[.,]\d+) ms\s*\|\s*(\d+[.,]\d+) ms\s*\|?$`)
	// "kblockd/0     42     37805097     900121     5077684": the first version, in ns
	latencyOld = pattern.New(`^(\S+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)$`)
	// " 12372.765083 [0000]  migration/0[18]   0.000  0.004  0.013", in some with a state
	histRow = pattern.New(`^(\d+[.,]\d+) \[(\d+)\]\s+(?:[smi.|-]+\s+)?(\S.*?)\s+(\d+[.,]\d{3})\s+(\d+[.,]\d{3})\s+(\d+[.,]\d{3})(?:\s.*)?$`)
	// "  975758.720111 [0001]   perf[14569]   awakened: perf[14570]", and of tasks that were moved
	histEvent = pattern.New(`^\d+[.,]\d+ \[\d+\]\s.*\s(?:awakened|migrated|next): `)
	// "  benchbin[13569/13564]   13564   337   14.259   0.005   0.042   0.348   4.38   0"
	summaryRow = pattern.New(`^(\S.*?\[\d+(?:/\d+)?\])\s+(-?\d+)\s+(\d+)\s+(\d+[.,]\d{3})\s+(\d+[.,]\d{3})\s+(\d+[.,]\d{3})\s+(\d+[.,]\d{3})\s+(\d+[.,]\d+)\s+(\d+)$`)
	// "  *A0       12372.765069 secs A0 => migration/0:18"
	mapRow = pattern.New(`^(?:\s*(?:\*?[A-Z.][\w.]?|\.|-)\s+)+(\d+\.\d{6}) secs(?: .*)?$`)
)

func claimSchedLatency(lines []paste.Line) int {
	if header(strings.TrimSpace(lines[0].Text), "Tasks", "count", "total", "avg", "max") {
		rows := 0
		n := claimed(lines, func(i int, text string) bool {
			if latencyOld.MatchString(text) {
				rows++
				return true
			}
			return i == 0 || text == ""
		})
		return attach.ClaimIf(rows > 0, n)
	}
	sure, ended := false, false
	n := claimed(lines, func(_ int, text string) bool {
		switch {
		case ended && latencyHead(text): // of another run
			return false
		case latencyRow.MatchString(text), latencyEnd.MatchString(text):
			sure, ended = true, ended || latencyEnd.MatchString(text)
		case strings.HasPrefix(text, "Task ") && strings.Contains(text, "Runtime ms"), sure && text == "...",
			strings.Trim(text, "-=* ") == "", strings.HasPrefix(text, "INFO: ") && strings.Contains(text, "%"):
		default:
			return false
		}
		return true
	})
	return attach.ClaimIf(sure, n)
}

// latencyHead reports whether a line names the columns of perf sched latency.
func latencyHead(text string) bool {
	return strings.HasPrefix(text, "Task ") && strings.Contains(text, "Runtime ms")
}

// taskDelay is a task's row of perf sched latency.
type taskDelay struct {
	name         string
	threads      int     // of the row, or the number of its one thread
	merged       bool    // the row is of several threads
	bare         bool    // the row names no thread, as the first versions do
	uncounted    bool    // the table has no column of switches
	run          float64 // ms
	switches     float64
	avg, longest float64 // ms
}

// SchedDelay is the mean wait for a CPU of tasks that ran, in ns.
const SchedDelay attach.FactName = "/sched/delay/mean:ns"

func readSchedLatency(p *attach.Part) attach.Reading {
	if header(strings.TrimSpace(p.Lines[0].Text), "Tasks", "count", "total", "avg", "max") {
		return readSchedOld(p)
	}
	var tasks []taskDelay
	run, switches, waited := 0.0, 0.0, 0.0
	ended := false
	for _, text := range texts(p) {
		ended = ended || latencyEnd.MatchString(text)
		m := latencyRow.FindStringSubmatch(text)
		if m == nil || len(tasks) >= most {
			continue
		}
		t := taskDelay{name: m[1]}
		t.threads, _ = whole(m[2])
		t.merged = strings.Contains(text, ":("+m[2]+")")
		t.run, _ = number(m[3])
		t.switches, _ = number(m[4])
		t.avg, _ = number(m[5])
		t.longest, _ = number(m[6])
		t.bare, t.uncounted = m[2] == "", m[4] == ""
		tasks = append(tasks, t)
		run += t.run
		switches += t.switches
		waited += t.avg * t.switches
	}
	r := attach.Reading{Title: fmt.Sprintf("perf sched latency, %s, %s ms on CPUs, %s switches",
		attach.Plural(len(tasks), "task"), trim(run), count(switches)), State: attach.CannotTell}
	if latencyUncounted(&r, tasks, switches) {
		return r
	}
	if len(tasks) == 0 || switches == 0 {
		r.Means = "It has no task that ran."
		return r
	}
	byWait := slices.SortedFunc(slices.Values(tasks),
		func(a, b taskDelay) int { return cmp.Compare(b.avg*b.switches, a.avg*a.switches) })
	for _, t := range byWait[:min(2, len(byWait))] {
		name := t.name
		if t.merged {
			name += fmt.Sprintf(" (%s)", attach.Plural(t.threads, "thread"))
		}
		r.Figures = append(r.Figures,
			fmt.Sprintf("%s: mean delay %s ms over %s switches, longest %s ms, ran %s ms", name,
				trim(t.avg), count(t.switches), trim(t.longest), trim(t.run)))
	}
	longest := slices.MaxFunc(tasks, func(a, b taskDelay) int { return cmp.Compare(a.longest, b.longest) })
	all := "all"
	rows := schedTotal{run: run, switches: switches, waited: waited}
	whole, more := totalOf(p, &rows)
	total := whole
	switch {
	case more:
		r.Figures = append(r.Figures, whole.says(len(tasks)))
		fallthrough
	case !ended:
		all = "these"
	}
	if !ended {
		r.Flaws = append(r.Flaws,
			"its line TOTAL is not in it, so rows may have been cut off: sums are of those that are here")
	}
	r.Figures = append(r.Figures, fmt.Sprintf("longest of %s: %s ms, %s; mean of %s %.3g ms", all,
		trim(longest.longest), longest.name, all, waited/switches))
	if more {
		r.Title = fmt.Sprintf("perf sched latency, %s listed of more", attach.Plural(len(tasks), "task"))
	}
	r.Not = "A longest delay is one of many. A throttled cgroup counts as delay too."
	if whole.waited < 0 { // how long all waited is not in it
		whole = rows
	}
	r.Facts = append(r.Facts, attach.Fact{Name: SchedDelay, Value: whole.waited / whole.switches * 1e6})
	delayMeaning(&r, whole.waited, whole.run, whole.switches, max(longest.longest, whole.longest))
	if !ended && r.State == attach.Healthy {
		r.State, r.Signs = attach.CannotTell, nil
		r.Means = "Of the tasks that are here: " + lower(r.Means)
	}
	if unordered(&r, tasks) {
		return r
	}
	ownQueue(&r, &byWait[0], whole.waited, whole.run)
	if more && whole == rows {
		r.Means = "Of the tasks listed: " + lower(r.Means)
		fewListed(&r, run, switches, &total)
	}
	return r
}

// ownQueue says where threads of one program have nearly all of the waiting and of the CPUs: then
// they wait for each other and not for a neighbour.
func ownQueue(r *attach.Reading, t *taskDelay, waited, run float64) {
	if t.threads < 2 || !t.merged || len(r.Signs) == 0 || r.State == attach.Healthy || waited <= 0 || run <= 0 {
		return
	}
	ofWaits, ofRun := t.avg*t.switches/waited, t.run/run
	if ofWaits < 0.9 || ofRun < 0.9 {
		return
	}
	r.Means += fmt.Sprintf(" %s of this waiting, and %s of the time on CPUs, is of the %d threads of %s: they mostly wait for each other.", pct(ofWaits), pct(ofRun), t.threads, t.name)
}

// delayMeaning judges waits for a CPU: by what they are of the time that tasks ran or waited.
func delayMeaning(r *attach.Reading, waited, run, n, longest float64) {
	share := waited / max(waited+run, 1e-9)
	switch {
	case n < 50 && longest >= fewLong:
		proof := fmt.Sprintf("of %s switches one waited %s ms for a CPU", count(n), trim(longest))
		r.Means = fmt.Sprintf("%s: how often that is, so few do not say. In all they waited %s ms for a CPU and had one for %s ms.", upper(proof), trim(waited), trim(run))
		r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-contention", Grade: attach.Candidate, Proof: []string{proof}},
			attach.Sign{Cause: "cpu-throttled", Grade: attach.Candidate,
				Proof: []string{"a quota that is used up delays tasks in the same way"}})
		r.Next = append(r.Next, ask("perf sched record -- sleep 10; perf sched latency -s max", 0,
			"how long all tasks waited"))
	case n < 50 && longest < 1:
		r.Means = fmt.Sprintf("Of %s none waited a millisecond for a CPU: so few say no more.", attach.Plural(int(n), "switch"))
	case n < 50:
		r.Means = fmt.Sprintf("No mean follows from %s.", attach.Plural(int(n), "switch"))
	case waited+run < 100 && longest < 20: // the recorder's own start is most of so little
		r.Means = fmt.Sprintf("%s ms on CPUs and %s ms of waiting for one are too little to judge: the recording's own work may be most of it.", trim(run), trim(waited))
	case share < 0.05 && longest < 20, waited/n < 0.1 &&
		longest < 5: // a thread that runs for microseconds waits as long
		r.State = attach.Healthy
		r.Means = fmt.Sprintf("Tasks got a CPU at once: they waited %s ms in the mean and %s ms at most.", trim(waited/n), trim(longest))
		r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-contention", Grade: attach.Against, Share: share})
	case share < 0.10, waited/n < 0.5 && longest < fewLong && (longest < 5 || waited+run < 1000): // short, or of little
		r.Means = fmt.Sprintf("Tasks waited %s of the time in which they wanted a CPU, and at most %s ms.", pct(share), trim(longest))
	default:
		proof := fmt.Sprintf("tasks waited %s of the time in which they wanted a CPU, %s ms in the mean and %s ms at most", pct(share), trim(waited/n), trim(longest))
		r.Means = upper(proof) + "."
		cause := "cpu-contention"
		if share >= 0.4 {
			cause = "runqueue-saturation"
		}
		r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Candidate, Share: share,
			Proof: []string{proof}},
			attach.Sign{Cause: "cpu-throttled", Grade: attach.Candidate, Share: share,
				Proof: []string{"a quota that is used up delays tasks in the same way"}})
		r.Next = append(r.Next,
			ask("cat /sys/fs/cgroup/CGROUP/cpu.stat; sleep 10; cat /sys/fs/cgroup/CGROUP/cpu.stat",
				0, "nr_throttled that rises says quota; else it is the CPUs"))
	}
}

// fewLong is a wait for a CPU in ms that is worth a word although the switches are few.
const fewLong = 20

// trim writes a number with three figures.
func trim(f float64) string {
	if f >= 1e4 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.4g", f)
}

func claimSchedHist(lines []paste.Line) int {
	rows := 0
	if first := strings.TrimSpace(lines[0].Text); strings.Contains(first, "] ") &&
		!strings.Contains(first, " [0") && !summaryRow.MatchString(first) {
		return 0
	}
	n := claimed(lines, func(_ int, text string) bool {
		switch {
		case histRow.MatchString(text), summaryRow.MatchString(text):
			rows++
		case histEvent.MatchString(text), header(text, "time", "cpu"),
			strings.HasPrefix(text, "[tid/pid]"), strings.Trim(text, "-= ") == "",
			text == "Runtime summary", header(text, "comm", "parent", "sched-in"),
			strings.HasPrefix(text, "(count)"), strings.HasPrefix(text, "Samples ") &&
				strings.HasSuffix(text, "do not have callchains."),
			strings.HasPrefix(text, "Terminated tasks:"), strings.HasPrefix(text, "Idle stats:"),
			strings.HasPrefix(text, "CPU ") && strings.Contains(text, "idle for"),
			strings.HasPrefix(text, "Total number of"), strings.HasPrefix(text, "Total run time"),
			strings.HasPrefix(text, "Total scheduling time"), strings.HasPrefix(text, "<idle>"):
		default:
			return false
		}
		return true
	})
	return attach.ClaimIf(rows > 0, n)
}

func readSchedHist(p *attach.Part) attach.Reading {
	r := attach.Reading{State: attach.CannotTell}
	var delays []float64
	byTask := map[string]*taskDelay{}
	waited, run, summary := 0.0, 0.0, 0
	moved, moveOf, moveMS := false, 0.0, 0.0
	last, again, idled, idlest := 0.0, false, 0, 0.0
	for _, text := range texts(p) {
		moved = moved || strings.Contains(text, "pre-mig time")
		if m := summaryRow.FindStringSubmatch(text); m != nil {
			summary++
			ms, _ := number(m[4])
			if t := byTask[m[1]]; t == nil {
				byTask[m[1]] = &taskDelay{name: m[1], run: ms}
			}
			run += ms
			continue
		}
		m := histRow.FindStringSubmatch(text)
		if m == nil || len(delays) >= most {
			continue
		}
		if at, _ := number(m[1]); at < last-1 { // s: rows of CPUs may change places
			again = true
		} else {
			last = at
		}
		if strings.HasPrefix(m[3], "<idle>") {
			ms, _ := number(m[6])
			idled, idlest = idled+1, max(idlest, ms)
			continue
		}
		delay, _ := number(m[5])
		ran, _ := number(m[6])
		delays = append(delays, delay)
		if moves, ok := number(lastField(text)); moved && ok && delay > moveOf {
			moveOf, moveMS = delay, moves
		}
		t := byTask[m[3]]
		if t == nil {
			t = &taskDelay{name: m[3]}
			byTask[m[3]] = t
		}
		t.switches++
		t.avg += delay
		t.longest = max(t.longest, delay)
		t.run += ran
		waited += delay
		run += ran
	}
	if len(delays) == 0 {
		return schedSummary(r, byTask, summary, run)
	}
	slices.Sort(delays)
	worst := longestTask(byTask, func(t *taskDelay) float64 { return t.avg })
	longest := delays[len(delays)-1]
	r.Title = fmt.Sprintf("perf sched timehist, %s of %s", attach.Plural(len(delays), "switch"),
		attach.Plural(len(byTask), "task"))
	r.Figures = append(r.Figures, "sch delay: "+spread(delays))
	if worst.avg > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%s waited longest for a CPU: %s ms in %s",
			worst.name, trim(worst.avg), attach.Plural(int(worst.switches), "switch")))
	}
	sums := fmt.Sprintf("%s ms waited for a CPU and %s ms on one, in these rows", trim(waited), trim(run))
	if idlest >= 1 { // ms: less is between two wakeups
		sums += fmt.Sprintf("; CPUs idled up to %s ms at once in %s of <idle>", trim(idlest),
			attach.Plural(idled, "row"))
	}
	r.Figures = append(r.Figures, sums)
	if moveMS > 0 {
		r.Figures[0] += fmt.Sprintf(", of which %s ms before it was moved to another CPU", trim(moveMS))
	}
	if again {
		r.Flaws = append(r.Flaws, "its times go back: these are rows of more than one recording, added up here")
	}
	r.Not = "Wait time is all time off CPU: sleep, and the sch delay in it, which alone is waiting for a CPU. A throttled cgroup counts as delay too."
	delayMeaning(&r, waited, run, float64(len(delays)), longest)
	return r
}

// enoughForP99 is how many values have one that a hundredth of them exceed.
const enoughForP99 = 100

// spread says where sorted delays in ms lie. Of few, the longest is all that is known of the far
// end.
func spread(delays []float64) string {
	last := len(delays) - 1
	far := ""
	if len(delays) >= enoughForP99 {
		far = "p99 " + trim(delays[last*99/100]) + " ms, "
	}
	return fmt.Sprintf("median %s ms, %slongest %s ms", trim(attach.Median(delays)), far, trim(delays[last]))
}

// lastField is the last word of a line.
func lastField(text string) string { return text[strings.LastIndexAny(text, " \t")+1:] }

func longestTask(tasks map[string]*taskDelay, of func(*taskDelay) float64) taskDelay {
	var best taskDelay
	for _, name := range slices.Sorted(mapNames(tasks)) {
		if t := tasks[name]; best.name == "" || of(t) > of(&best) {
			best = *t
		}
	}
	return best
}

// schedSummary is the reading of timehist's summary, which has no delays.
func schedSummary(r attach.Reading, tasks map[string]*taskDelay, n int, run float64) attach.Reading {
	top := longestTask(tasks, func(t *taskDelay) float64 { return t.run })
	r.Title = fmt.Sprintf("perf sched timehist, summary of %s", attach.Plural(n, "task"))
	r.Figures = append(r.Figures, fmt.Sprintf("%s ran longest: %s ms of %s ms", top.name, trim(top.run), trim(run)))
	r.Means = "It says who ran how long. How long tasks waited for a CPU is not in the summary."
	r.Next = append(r.Next, attach.Next{Command: "perf sched latency",
		Why: "the same recording, with the delay of each task"})
	return r
}

func claimSchedMap(lines []paste.Line) int {
	rows := 0
	n := claimed(lines, func(_ int, text string) bool {
		ok := mapRow.MatchString(text)
		if ok {
			rows++
		}
		return ok
	})
	return attach.ClaimIf(rows >= 3, n)
}

func readSchedMap(p *attach.Part) attach.Reading {
	rows, idle := 0, 0
	for _, text := range texts(p) {
		before, _, _ := strings.Cut(text, " secs")
		fields := strings.Fields(before)
		if len(fields) == 0 {
			continue
		}
		rows++
		if slices.ContainsFunc(fields[:len(fields)-1],
			func(f string) bool { return strings.TrimPrefix(f, "*") == "." }) {
			idle++
		}
	}
	return attach.Reading{Title: fmt.Sprintf("perf sched map, %s", attach.Plural(rows, "switch")),
		State:   attach.CannotTell,
		Figures: []string{fmt.Sprintf("an idle CPU at %d of %d switches", idle, rows)},
		Means:   "It shows who ran on which CPU. How long tasks waited is not in it.",
		Not:     "Many switches are no cause by themselves.",
		Next:    []attach.Next{{Command: "perf sched latency", Why: "the same recording, with the delay of each task"}}}
}
