package profiler

import (
	"fmt"

	"github.com/whystall/whystall/internal/attach"
)

// schedTotal is what perf sched latency counts of all tasks, those included that it does not list.
type schedTotal struct {
	run, switches float64 // ms
	waited        float64 // ms; below 0: not said
	longest       float64 // ms
}

// totalOf reads the line TOTAL. It reports whether that counts more than the rows do: then some
// tasks are not listed. Without such a line the rows are all there is.
func totalOf(p *attach.Part, rows *schedTotal) (schedTotal, bool) {
	whole, found := *rows, 0
	for _, text := range texts(p) {
		m := latencyEnd.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		found++
		whole = schedTotal{waited: -1}
		whole.run, _ = number(m[1])
		whole.switches, _ = number(m[2])
		if m := latencySum.FindStringSubmatch(text); m != nil {
			whole.longest, _ = number(m[3])
			whole.waited, _ = number(m[4])
		}
	}
	if found != 1 || whole.switches <= 1.01*rows.switches {
		return *rows, false
	}
	return whole, true
}

// says is the line of figures of all tasks, above which only some are listed.
func (s *schedTotal) says(listed int) string {
	line := fmt.Sprintf("all tasks: ran %s ms in %s switches", trim(s.run), count(s.switches))
	if s.waited >= 0 {
		line += fmt.Sprintf(", waited %s ms for a CPU, %.3g ms in the mean", trim(s.waited), s.waited/s.switches)
	}
	return line + fmt.Sprintf("; only %d of them are listed", listed)
}

// fewListed takes back what is well where the rows listed have little of the work: the table is
// sorted, and the tasks that waited longest may be those that were cut off.
func fewListed(r *attach.Reading, run, switches float64, total *schedTotal) {
	if r.State != attach.Healthy || run >= 0.5*total.run && switches >= 0.5*total.switches {
		return
	}
	r.State = attach.CannotTell
	r.Signs = nil
	r.Means += fmt.Sprintf(" They ran %s of the %s ms that all tasks ran: how long the others waited is not in it.", pct(run/max(total.run, run)), trim(total.run))
}
