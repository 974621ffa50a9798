package profiler

import (
	"fmt"
	"time"

	"github.com/whystall/whystall/internal/attach"
)

// readKernelLocks reads klockstat: times of mutexes and semaphores of the kernel, in ns.
func readKernelLocks(t *bpfTable) attach.Reading {
	r := t.reading("caller")
	wait := ""
	by := map[string]float64{}
	for _, row := range t.rows {
		for _, c := range []string{"TotalSpin", "TotalWait"} {
			if row.at(c) != "" {
				wait = c
				by[row.at("Caller")+row.at("Comm")] += waited(row.at(c))
			}
		}
	}
	if wait == "" {
		r.Means = "It says how long locks of the kernel were held; how long anybody waited is in its other table."
		return r
	}
	total := 0.0
	for _, v := range by {
		total += v
	}
	for _, name := range attach.Largest(by)[:min(3, len(by))] {
		r.Figures = append(r.Figures, fmt.Sprintf("%s: waited %s in all", name, lasts(by[name])))
	}
	r.Means = fmt.Sprintf("Callers waited %s for locks of the kernel; over how long is not in the table.", lasts(total))
	if total >= 0.1 {
		r.Signs = append(r.Signs, attach.Sign{Cause: "kernel-lock", Grade: attach.Candidate,
			Proof: []string{r.Figures[0]}})
		r.Next = append(r.Next, record(0, "whose requests waited for it"))
	}
	return r
}

// waited reads a time of klockstat in seconds: with its unit, or a number of nanoseconds.
func waited(text string) float64 {
	if d, err := time.ParseDuration(text); err == nil {
		return d.Seconds()
	}
	ns, _ := number(text)
	return ns * 1e-9
}
