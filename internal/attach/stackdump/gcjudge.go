package stackdump

import (
	"fmt"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// muchOfBurst is the share of pauses from which on a short log is not said to be healthy.
const muchOfBurst = 0.3

// longLog is how many seconds a log covers that is more than a look at a start or at a bad moment.
const longLog = 10.0

// burst is the share of pauses in a log that is too short for a share of time.
func (c collections) burst() float64 {
	time := c.last - c.begun
	if time <= 0 || time >= enoughLog || len(c.pauses) < enoughPauses {
		return 0
	}
	return min(1, attach.Sum(c.pauses)/time)
}

// judge says what follows from pauses.
func (c collections) judge(r *attach.Reading, line string, share float64) {
	short := c.heap > 0 && c.after >= 0.85*c.heap
	why := "what the program allocates"
	if short {
		why = "a heap that was nearly full after the last of them"
	}
	r.Next = []attach.Next{{Command: "java -Xlog:gc*,safepoint ...",
		Why: "the phases of a pause, and the time until threads had stopped"}}
	switch {
	case c.real >= 0.1 && c.cpu < c.real/2:
		proof := fmt.Sprintf("pauses of %s by the clock used %s of CPU time", span(c.real), span(c.cpu))
		r.Figures = append([]string{proof}, r.Figures...)
		r.Means = "The collector's threads did not run for much of the pauses: they had no CPU, or waited for memory from swap."
		for _, cause := range []string{"cpu-contention", "cpu-throttled", "disk-wait"} {
			r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Candidate,
				Share: share, Proof: []string{proof}})
		}
		r.Next = []attach.Next{{Command: "cat /sys/fs/cgroup/CGROUP/cpu.stat; vmstat 1 10",
			Why: "nr_throttled says quota, r says CPUs, si says swap"}}
	case share >= 0.1:
		r.State = attach.Ill
		r.Means = fmt.Sprintf("All threads stood still for %.0f %% of the time, for collections: of %s.", 100*share, why)
		sure := finding.Supported
		if c.covers() < longLog {
			sure = finding.Possible
		}
		r.Signs = append(r.Signs, attach.Sign{Cause: "jvm-safepoint", Grade: attach.Found,
			Sure: sure, Share: share, Proof: []string{line}})
	case c.burst() >= muchOfBurst:
		proof := fmt.Sprintf("%s of the %s from the first pause to the last were pauses (%.0f %%)",
			span(attach.Sum(c.pauses)), span(c.last-c.begun), 100*c.burst())
		r.Figures = append(r.Figures, proof)
		r.Means = "Much of this short time went into collections: the log is too short to say whether that goes on, as after a start."
		r.Signs = append(r.Signs, attach.Sign{Cause: "jvm-safepoint", Grade: attach.Candidate, Proof: []string{proof}})
	case len(c.stalls) > 0 && share < muchStopped && c.most < longStop:
		r.Means = "Threads had to wait until the collector had freed memory: it did not keep up with what is allocated. Those who allocate nothing ran on."
		if c.cycles > 0 && c.left < 50 {
			r.Means = "Threads had to wait until the collector had freed memory, though half of the heap or more was free after the last cycle that says so: why, these lines do not show."
		}
		r.Not = "Stalls of several threads at one moment are one wait: they do not add up. It is no pause of all threads."
	case c.vain >= 2 && share < muchStopped && c.most < longStop:
		r.Means = fmt.Sprintf("No pause is long enough to feel; cycles run and free next to nothing, with %.0f %% of the heap in use: they cost CPU. Whether threads will have to wait for memory, these lines do not show.", c.left)
		r.Next = []attach.Next{{Command: "jcmd PID GC.heap_info; the whole GC log",
			Why: "whether the heap is too small for what is kept, and whether threads stall"}}
	case share >= muchStopped, c.most >= longStop:
		r.Means = "Some pauses are long enough for requests to feel them; how many requests met one is not in it."
		if line == "" {
			line = r.Figures[0]
		}
		r.Signs = append(r.Signs, attach.Sign{Cause: "jvm-safepoint", Grade: attach.Candidate,
			Share: share, Proof: []string{line}})
	case len(c.pauses) < enoughPauses:
		r.Means = "No pause is long, but these are few."
	case share == 0:
		r.Means = "No pause is long enough for requests to feel it. What share of the time all of them take is not in it."
	default:
		r.State, r.Means = attach.Healthy, "No pause is long enough for requests to feel it."
		r.Next = nil
	}
}
