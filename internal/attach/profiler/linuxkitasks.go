package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

func (k *kiReport) readSched(r *attach.Reading) {
	if !k.sched {
		return
	}
	k.says("scheduler activity")
	all := k.run + k.sleep + k.queue
	if all <= 0 {
		return
	}
	if k.run+k.sleep == 0 { // a part of the report alone
		r.Figures = append(r.Figures, "waited for a CPU "+lasts(k.queue))
		r.Means = "How long it ran and slept meanwhile is not in it, so no share follows."
		return
	}
	line := fmt.Sprintf("ran %s (%s), waited for a CPU %s (%s), slept %s (%s)", lasts(k.run),
		pct(k.run/all), lasts(k.queue), pct(k.queue/all), lasts(k.sleep), pct(k.sleep/all))
	if k.policy != "" {
		line += ", " + k.policy
	}
	r.Figures = append(r.Figures, line)
	realTime := strings.Contains(k.policy, "FIFO") || strings.Contains(k.policy, "RR") ||
		strings.Contains(k.policy, "DEADLINE")
	switch {
	case realTime:
		r.Means = fmt.Sprintf("It runs with real-time priority: it waited %s for a CPU, and what shares its CPU waits as long as it runs (%s).", lasts(k.queue), lasts(k.run))
		r.Not = "That it never waits does not make it harmless: others wait for it, and their reports would show it."
		r.Next = append(r.Next,
			ask("chrt -p PID", k.pid, "its priority; then look at the run queue time of others on its CPU"))
	case k.queue/all >= 0.10:
		proof := fmt.Sprintf("it was ready and had no CPU for %s, %s of the time", lasts(k.queue), pct(k.queue/all))
		r.Means = upper(proof) + "."
		queuedSigns(r, k.name, k.queue/all, proof)
	case k.run/all >= 0.80:
		r.Means = "It computes nearly all the time and hardly waits for a CPU: what it computes is the question."
	case k.queue/all < 0.05:
		r.Means = fmt.Sprintf("It hardly waits for a CPU; %s of the time it sleeps, and in what decides.", pct(k.sleep/all))
	}
}

// starved names the task that was ready and had no CPU for most of the time in which it wanted one,
// where that is much of all time. Whether a neighbour or a quota kept it off is not in it.
func (k *kiReport) starved(r *attach.Reading) {
	var worst kiTaskRow
	share := 0.0
	for _, t := range k.tasks {
		all := t.run + t.queued + t.sleep
		if s := t.queued / max(t.run+t.queued, 1e-9); t.queued >= 0.10*all && t.queued >= 0.1 && s > share {
			worst, share = t, s
		}
	}
	if share < 0.10 {
		return
	}
	proof := fmt.Sprintf("%s (PID %d) was ready and had no CPU for %s, and ran %s", worst.command,
		worst.pid, lasts(worst.queued), lasts(worst.run))
	r.Means = "Task " + proof + "."
	queuedSigns(r, worst.command, share, proof)
}

// queuedSigns offers what keeps a task off a CPU. A thread of the kernel has no quota.
func queuedSigns(r *attach.Reading, name string, share float64, proof string) {
	r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-contention", Grade: attach.Candidate,
		Share: share, Proof: []string{proof}})
	if strings.HasPrefix(name, "[") || kernelThread(name) {
		r.Not = "It is a thread of the kernel, which no quota stops; who had the CPU meanwhile is not in it."
		return
	}
	r.Not = "A cgroup's quota that is used up counts as run queue time as well."
	r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-throttled", Grade: attach.Candidate,
		Share: share, Proof: []string{proof}})
}

// readTasks reads tables of tasks. A thread of the kernel has no quota: where one waits for a CPU,
// another has it.
func (k *kiReport) readTasks(r *attach.Reading) {
	if len(k.tasks) == 0 {
		return
	}
	k.says(attach.Plural(len(k.tasks), "task"))
	worst, longest := k.tasks[0], k.tasks[0]
	for _, t := range k.tasks {
		if t.queued > worst.queued {
			worst = t
		}
		if t.longest > longest.longest {
			longest = t
		}
	}
	all := worst.run + worst.queued + worst.sleep
	r.Figures = append(r.Figures, fmt.Sprintf("longest run queue time: %s of %s, %s (PID %d)",
		lasts(worst.queued), lasts(all), worst.command, worst.pid))
	if longest.hasLongest {
		r.Figures = append(r.Figures, fmt.Sprintf("longest single wait for a CPU: %s, %s (PID %d)",
			lasts(longest.longest), longest.command, longest.pid))
	}
	top := k.tasks[0]
	r.Figures = append(r.Figures, fmt.Sprintf("first: %s ran %s, %s of it in the kernel",
		top.command, lasts(top.run), lasts(top.sys)))
	if !longest.hasLongest || longest.longest < 0.1 {
		if !longest.hasLongest {
			k.starved(r)
		}
		return
	}
	proof := fmt.Sprintf("%s waited up to %s for a CPU", longest.command, lasts(longest.longest))
	r.Means = upper(proof) + ": something with a higher priority, or with preemption off, held it."
	if strings.HasPrefix(longest.command, "[") {
		r.State = attach.Ill
		r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-contention", Grade: attach.Found,
			Sure: finding.Possible, Proof: []string{proof + "; threads of the kernel have no quota"}})
		return
	}
	r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-contention", Grade: attach.Candidate, Proof: []string{proof}},
		attach.Sign{Cause: "cpu-throttled", Grade: attach.Candidate, Proof: []string{proof}})
}
