package profiler

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// statDelay is an event with a delay that the kernel itself measured:
// "sched_stat_iowait: comm=mailerd pid=7 delay=905187613 [ns]".
var statDelay = pattern.New(
	`^sched_stat_(wait|sleep|iowait|blocked): comm=(.{1,32}?) pid=(\d+) delay=(\d{1,18}) \[ns\]`)

// statMeans says what such a delay is of.
var statMeans = map[string]string{"wait": "ready to run and without a CPU", "sleep": "asleep",
	"iowait": "asleep for I/O", "blocked": "asleep so that nothing could interrupt it (D)"}

// statDelays are the delays of a trace, by the event.
type statDelays map[string]*taskDelay

func (d statDelays) add(event string) {
	m := statDelay.FindStringSubmatch(event)
	if m == nil {
		return
	}
	ns, ok := number(m[4])
	if !ok {
		return
	}
	t := d[m[1]]
	if t == nil {
		t = &taskDelay{longest: -1}
		d[m[1]] = t
	}
	t.switches++
	t.avg += ns / 1e6
	if ms := ns / 1e6; ms > t.longest {
		t.longest, t.name = ms, fmt.Sprintf("%s (pid %s)", m[2], m[3])
	}
}

// says puts the delays in front of a reading's figures; false: there are none.
func (d statDelays) says(r *attach.Reading) bool {
	var out []string
	for _, event := range slices.Sorted(mapNames(d)) {
		t := d[event]
		line := fmt.Sprintf("%s was %s for %s", t.name, statMeans[event], lasts(t.longest/1e3))
		if t.switches > 1 {
			line += fmt.Sprintf(", the longest of %s; %s in all", count(t.switches), lasts(t.avg/1e3))
		}
		out = append(out, line)
	}
	if len(out) == 0 {
		return false
	}
	r.Figures = append(out, r.Figures...)
	r.Means = "The kernel measured these delays, each when it had ended: for what a thread slept is not in it."
	r.Not = "Threads that wait for work sleep as well; most sleeps are nobody's loss."
	return true
}
