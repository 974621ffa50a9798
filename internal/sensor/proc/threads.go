package proc

import (
	"os"
	"strconv"
)

// Threads lists the process' threads, at most max of them; all is how many there are. The main
// thread comes first.
func (f FS) Threads(pid, max int) (tids []int, all int, err error) {
	d, err := os.Open(f.Path("/proc/" + strconv.Itoa(pid) + "/task"))
	if err != nil {
		return nil, 0, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, 0, err
	}
	for _, n := range names {
		if tid, err := strconv.Atoi(n); err == nil {
			if all++; len(tids) < max {
				tids = append(tids, tid)
			}
		}
	}
	return tids, all, nil
}
