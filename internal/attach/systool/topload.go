package systool

import (
	"fmt"
	"slices"
)

// manyWait is a load average that few machines have without threads in D, where few threads run.
const manyWait = 8

// asleep says that most of what the load average counts did not run: it counts threads in D as
// well. Beside iowait that is said first.
func (s *screen) asleep(v *verdict, c cpuUse) {
	if len(s.load) < 3 || s.running == 0 {
		return
	}
	least := slices.Min(s.load)
	if least < manyWait || float64(s.running) > least/4 || c.id+c.wa < 50 {
		return
	}
	v.Figures[0] += fmt.Sprintf("; %d running at that moment", s.running)
	if c.wa < iowaitMatters || c.passed {
		return
	}
	v.means("a load average of %s, of which %d run, and CPUs idle %s %% of the time while threads wait for I/O: most of the threads that it counts sleep in the kernel (D)",
		fixed(s.load[0]), s.running, plain(c.wa))
}

// fullCPUs says that some CPUs are full, which the mean over all of them hides.
func (s *screen) fullCPUs(v *verdict, c cpuUse) {
	if len(s.cpu) < 2 || len(s.cpu) != s.cpus || c.id < 30 { // some lines are left out
		return
	}
	var full []int
	for at, one := range s.cpu {
		if one.id+one.wa <= idleNone {
			full = append(full, at)
		}
	}
	if len(full) == 0 {
		return
	}
	text := fmt.Sprintf("CPU %d is full (%s), and %d others are not", full[0], s.cpu[full[0]], s.cpus-1)
	if len(full) > 1 {
		text = fmt.Sprintf("%d of %d CPUs are full, CPU %d among them (%s)", len(full), s.cpus, full[0], s.cpu[full[0]])
	}
	v.unsure = true
	v.means("%s: threads that compute alone, or interrupts that only this CPU serves", text)
	v.not("whether the service waits for such a thread: the mean of all CPUs hides it, and one screen is a glance")
	v.next("pidstat -u -t 1 10", "which threads fill a CPU")
}
