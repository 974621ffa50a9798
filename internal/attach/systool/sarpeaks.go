package systool

import (
	"fmt"
	"slices"
)

// What stands out in single rows of sar, which medians hide: a sample of ten minutes is an average
// itself.

const (
	peakTasks = 1000 // on any machine
	standsOut = 4    // times the median

	noteworthy = 10 // percent of the CPUs' time
)

// most is the row with most of a figure.
func (t *table) most(figure func(row) float64) (worst row, most float64) {
	for _, r := range t.rows {
		if f := figure(r); f > most {
			worst, most = r, f
		}
	}
	return worst, most
}

// loadPeak says when the load average was far above its median, and when there were many tasks.
func (t *table) loadPeak(v *verdict) {
	worst, most := t.most(func(r row) float64 {
		return max(t.num(r, "ldavg-1"), t.num(r, "ldavg-5"), t.num(r, "ldavg-15"))
	})
	if usual := t.median("ldavg-1"); most >= manyWait && most >= standsOut*usual {
		text := fmt.Sprintf("load average %s, %s, %s at %s", fixed(t.num(worst, "ldavg-1")),
			fixed(t.num(worst, "ldavg-5")), fixed(t.num(worst, "ldavg-15")), worst.time)
		v.figure("%s", text)
		v.unsure = true
		v.means("%s, and %s at the median: so many threads ran, wanted a CPU or slept in the kernel (D) then; which of these is not in it", text, fixed(usual))
		v.next("sar -u -B -W -d -f FILE -s TIME", "what CPUs, memory and disks did at that time")
	}
	worst, most = t.most(func(r row) float64 { return t.num(r, "plist-sz") })
	if usual := t.median("plist-sz"); most >= peakTasks && most >= standsOut*usual {
		text := fmt.Sprintf("%s tasks (plist-sz) at %s, %s at the median", plain(most), worst.time, plain(usual))
		v.figure("%s", text)
		v.unsure = true
		v.means("%s: far more threads and processes than at other times", text)
	}
}

// idle is the median of all CPUs' idle time in percent; negative: not in it.
func (s *sysstatTables) idle() float64 {
	t := s.with("CPU", "%idle")
	if t == nil {
		return -1
	}
	for _, c := range t.byCPU() {
		if c.cpu == "all" {
			return c.use.id
		}
	}
	return -1
}

// ofHealth reports whether one of the tables says whether something is short. Counts of switches
// and of sockets do not, and packets do only beside the speed of the link.
func (s *sysstatTables) ofHealth() bool {
	return slices.ContainsFunc([][]string{{"CPU", "%idle"}, {"runq-sz"}, {"kbmemfree"}, {"kbswpfree"},
		{"pswpin/s"}, {"majflt/s"}, {"DEV", "await"}, {"IFACE", "rxdrop/s"}, {"IFACE", "%ifutil"},
		{"retrans/s", "isegerr/s"}, {"%scpu"}, {"%sio"}, {"%smem"}},
		func(names []string) bool { return s.with(names...) != nil })
}
