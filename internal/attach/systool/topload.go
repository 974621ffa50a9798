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
