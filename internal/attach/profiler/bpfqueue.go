package profiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// readSlowQueue reads runqslower: only waits above a threshold are listed.
func readSlowQueue(t *bpfTable) attach.Reading {
	before := len(t.rows)
	// Old versions list the idle task, which waits for nothing.
	t.rows = slices.DeleteFunc(t.rows,
		func(row bpfRow) bool { return strings.HasPrefix(row.owner(), "swapper") || row.at("PID") == "0" })
	r := t.reading("long wait")
	if n := before - len(t.rows); n > 0 {
		r.Flaws = append(r.Flaws, attach.Plural(n, "row")+" of the idle task (swapper) left out: it waits for no CPU")
	}
	if len(t.rows) == 0 {
		if before == 0 {
			r.Means = "No row stands below its head: either no thread waited for a CPU longer than the tool's threshold, or the rows were cut off."
		}
		return r
	}
	l := t.latencies("LAT(us)", 1e-6)
	who := attach.Largest(l.by)[0]
	r.Figures = append(r.Figures, l.says("wait"), fmt.Sprintf("%s of it in %s", lasts(l.by[who]), who))
	proof := fmt.Sprintf("%s for a CPU, up to %s", attach.Plural(len(l.all), "long wait"), lasts(l.max()))
	r.Means = upper(proof) + ": the threads could run and did not."
	r.Not = "A throttled cgroup looks the same here. Only waits above the threshold are listed, so they are no share of all."
	if t.behindIdle(&r, proof) {
		return r
	}
	t.rows = slices.DeleteFunc(slices.Clone(t.rows), func(row bpfRow) bool { return kernelThread(row.owner()) })
	if l := t.latencies("LAT(us)", 1e-6); l.max() >= queuedLong || l.sum >= queuedInAll {
		r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-contention", Grade: attach.Candidate, Proof: []string{proof}})
		if t.behindThreads() {
			r.Not = "Only waits above the threshold are listed, so they are no share of all."
		} else {
			r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-throttled", Grade: attach.Candidate,
				Proof: []string{"a quota that is used up delays threads in the same way"}})
		}
	}
	r.Next = append(r.Next, ask("cat /sys/fs/cgroup/CGROUP/cpu.stat; sleep 10; cat /sys/fs/cgroup/CGROUP/cpu.stat", 0, "nr_throttled that rises says quota; else it is the CPUs"))
	return r
}

// behindThreads reports whether each row names the thread that had the CPU (-P): then a neighbour
// held it, and nothing speaks for a quota.
func (t *bpfTable) behindThreads() bool {
	return t.has("PREV-COMM") && !slices.ContainsFunc(t.rows, func(row bpfRow) bool {
		comm := row.at("PREV-COMM")
		return comm == "" || strings.HasPrefix(comm, "swapper")
	})
}

// behindIdle says who had the CPU before the thread that waited (-P), and reports whether that was
// mostly nobody. Then no thread held it: something else kept the waiting one off.
func (t *bpfTable) behindIdle(r *attach.Reading, proof string) bool {
	if !t.has("PREV-COMM") {
		return false
	}
	before, idle := map[string]float64{}, 0
	for _, row := range t.rows {
		if comm := row.at("PREV-COMM"); strings.HasPrefix(comm, "swapper") {
			idle++
		} else {
			before[comm]++
		}
	}
	n := len(t.rows)
	if len(before) > 0 {
		who := attach.Largest(before)[0]
		r.Figures = append(r.Figures, fmt.Sprintf("behind %s: %s of %d", who, count(before[who]), n))
	}
	if idle > 0 {
		r.Figures = slices.Insert(r.Figures, 1, fmt.Sprintf("%d of %d got a CPU that was idle right before", idle, n))
	}
	if float64(idle) < 0.75*float64(n) {
		return false
	}
	r.Means = fmt.Sprintf("%s, and %d of %d got a CPU that was idle right before: there no thread held it, and something else kept the waiting ones off.", upper(proof), idle, n)
	r.Not = "It is no sign of full CPUs: swapper is the idle task. A wait in another CPU's queue, from which a thread was moved, is not ruled out. Only waits above the threshold are listed."
	r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-throttled", Grade: attach.Candidate,
		Proof: []string{"a quota that is used up keeps threads off idle CPUs"}},
		attach.Sign{Cause: "cpu-steal", Grade: attach.Candidate,
			Proof: []string{"a virtual CPU that its host had stopped looks idle until it goes on"}})
	r.Next = append(r.Next, ask("cat /sys/fs/cgroup/CGROUP/cpu.stat; grep '^cpu ' /proc/stat; sleep 10; cat /sys/fs/cgroup/CGROUP/cpu.stat; grep '^cpu ' /proc/stat", 0,
		"nr_throttled that rises says quota; the eighth number of cpu that rises says steal"))
	return true
}

// Waits for a CPU in seconds that are worth a word, those of the kernel's own threads left out: one
// that is long, or so much in all.
const (
	queuedLong  = 0.002
	queuedInAll = 0.050
)
