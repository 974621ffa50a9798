package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

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
	proof := fmt.Sprintf("%s (PID %d) was ready and had no CPU for %s, and ran %s", worst.command, worst.pid, lasts(worst.queued), lasts(worst.run))
	r.Means = "Task " + proof + "."
	r.Not = "A cgroup's quota that is used up counts as run queue time as well."
	r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-contention", Grade: attach.Candidate, Share: share, Proof: []string{proof}},
		attach.Sign{Cause: "cpu-throttled", Grade: attach.Candidate, Share: share, Proof: []string{proof}})
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
	r.Figures = append(r.Figures, fmt.Sprintf("longest run queue time: %s of %s, %s (PID %d)", lasts(worst.queued), lasts(all), worst.command, worst.pid))
	if longest.hasLongest {
		r.Figures = append(r.Figures, fmt.Sprintf("longest single wait for a CPU: %s, %s (PID %d)", lasts(longest.longest), longest.command, longest.pid))
	}
	top := k.tasks[0]
	r.Figures = append(r.Figures, fmt.Sprintf("first: %s ran %s, %s of it in the kernel", top.command, lasts(top.run), lasts(top.sys)))
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
		r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-contention", Grade: attach.Found, Sure: finding.Possible, Proof: []string{proof + "; threads of the kernel have no quota"}})
		return
	}
	r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-contention", Grade: attach.Candidate, Proof: []string{proof}},
		attach.Sign{Cause: "cpu-throttled", Grade: attach.Candidate, Proof: []string{proof}})
}
