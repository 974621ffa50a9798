package attach

import (
	"fmt"

	"github.com/whystall/whystall/internal/finding"
)

// What counts as a queue for CPUs: half as many threads again as there are CPUs, at the median, and
// CPUs that are all but never idle. From many times as many on it may be one program's own threads.
const (
	QueueShort = 1.5
	QueueLong  = 8
	QueueIdle  = 0.10
)

// queueOnCPUs decides what vmstat cannot: it says how many threads are runnable, and another part
// says on how many CPUs.
func queueOnCPUs(told []*Told, all []*Verdict) []*Verdict {
	runnable, queue := fact(told, Runnable)
	cpus, count := fact(told, HostCPUs)
	if queue == nil || count == nil || cpus.Value < 1 || queue.Glance || queue.Boot {
		return all
	}
	idle, full := fact([]*Told{queue}, IdleShare)
	candidate := of(all, "cpu-contention")
	if full == nil || candidate == nil || candidate.Grade != Candidate || idle.Value > QueueIdle {
		return all
	}
	if runnable.Value < QueueShort*cpus.Value {
		return without(all, "cpu-contention", "runqueue-saturation")
	}
	if runnable.Value < QueueLong*cpus.Value {
		all = without(all, "runqueue-saturation")
	}
	proof := fmt.Sprintf("%.3g runnable threads on %.0f CPUs, which are %.0f %% idle",
		runnable.Value, cpus.Value, 100*idle.Value)
	share := (runnable.Value - cpus.Value) / runnable.Value
	return find(all, Sign{Cause: "cpu-contention", Sure: finding.Possible, Share: share,
		Proof: []string{proof}}, queue, count)
}
