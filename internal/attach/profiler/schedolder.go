package profiler

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/attach"
)

// latencyUncounted reads a table of perf sched latency without a column of switches, and reports
// whether it is one. A mean over an unknown number of switches is no share of time, but a task
// waited at least as long as its longest wait.
func latencyUncounted(r *attach.Reading, tasks []taskDelay, switches float64) bool {
	if len(tasks) == 0 || switches > 0 ||
		!slices.ContainsFunc(tasks, func(t taskDelay) bool { return t.uncounted }) {
		return false
	}
	run, waited, longest := 0.0, 0.0, 0.0
	for _, t := range tasks {
		run, waited, longest = run+t.run, waited+t.longest, max(longest, t.longest)
	}
	r.Title = fmt.Sprintf("perf sched latency, %s, %s ms on CPUs, switches not counted",
		attach.Plural(len(tasks), "task"), trim(run))
	slices.SortStableFunc(tasks, func(a, b taskDelay) int { return cmp.Compare(b.longest, a.longest) })
	for _, t := range tasks[:min(3, len(tasks))] {
		name := t.name
		if !t.bare && !t.merged {
			name = fmt.Sprintf("%s:%d", t.name, t.threads)
		}
		r.Figures = append(r.Figures, fmt.Sprintf("%s: mean delay %s ms, longest %s ms, ran %s ms",
			name, trim(t.avg), trim(t.longest), trim(t.run)))
	}
	r.Not = "A longest delay is one of many. A throttled cgroup counts as delay too."
	proof := fmt.Sprintf("of the tasks here, one waited %s ms for a CPU; together they waited at least %s ms and ran %s ms",
		trim(longest), trim(waited), trim(run))
	r.Means = upper(proof) + "."
	if longest < fewLong || waited < run {
		return true
	}
	r.Signs = append(r.Signs,
		attach.Sign{Cause: "runqueue-saturation", Grade: attach.Candidate, Proof: []string{proof}},
		attach.Sign{Cause: "cpu-throttled", Grade: attach.Candidate,
			Proof: []string{"a quota that is used up delays tasks in the same way"}})
	r.Next = append(r.Next, ask("perf sched record -- sleep 10; perf sched latency -s max", 0,
		"how long all tasks waited, and how often"))
	unordered(r, tasks)
	return true
}

// unordered takes back what follows from long delays where rows name no thread. That version of
// perf took events of several CPUs in the order in which they stood, and not by their times.
func unordered(r *attach.Reading, tasks []taskDelay) bool {
	if len(r.Signs) == 0 || r.State == attach.Healthy ||
		slices.ContainsFunc(tasks, func(t taskDelay) bool { return !t.bare }) {
		return false
	}
	r.Signs, r.Facts = nil, nil
	r.Means = "Rows without a thread's number are of the first perf, which read events of several CPUs out of order: delays as long as these may be its own error."
	r.Next = []attach.Next{ask("perf sched record -- sleep 10; perf sched latency", 0,
		"the same by a perf that sorts events by their time")}
	return true
}

// readSchedOld reads the first version's table, whose sums are waits for a CPU in ns. How long
// tasks ran is not in it.
func readSchedOld(p *attach.Part) attach.Reading {
	r := attach.Reading{State: attach.CannotTell}
	var worst taskDelay
	n, tasks, waited := 0.0, 0, 0.0
	for _, text := range texts(p) {
		m := latencyOld.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		t := taskDelay{name: m[1]}
		t.switches, _ = number(m[2])
		ns, _ := number(m[3])
		t.avg, _ = number(m[4])
		t.longest, _ = number(m[5])
		tasks, n, waited = tasks+1, n+t.switches, waited+ns/1e6
		if t.longest > worst.longest {
			worst = t
		}
	}
	r.Title = fmt.Sprintf("perf sched's first table of delays, %s, %s switches, in nanoseconds",
		attach.Plural(tasks, "task"), count(n))
	r.Figures = []string{fmt.Sprintf("longest of all: %s ms, %s, whose mean is %s ms",
		trim(worst.longest/1e6), worst.name, trim(worst.avg/1e6)),
		fmt.Sprintf("%s ms of waiting for a CPU in all", trim(waited))}
	r.Means = "It has no time on CPUs, so nothing tells what share of their time tasks waited."
	r.Not = "A longest delay is one of many. A throttled cgroup counts as delay too."
	r.Next = append(r.Next, ask("perf sched record -- sleep 10; perf sched latency", 0,
		"the same with the time on CPUs"))
	return r
}
