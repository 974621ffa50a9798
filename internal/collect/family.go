package collect

import (
	"fmt"
	"slices"
	"strings"
)

// member is a process that the target has made, or one of those has.
type member struct {
	pid   int
	comm  string
	cpuNS int64 // that it has used so far
	start int64 // tells it from another with its pid
}

// family is who descends from the target. None of them is recorded with it: the one that works may be among them, as under a shell, a supervisor or a
// master of workers.
type family []member

// mostKin bounds what looking at a family costs.
const mostKin = 512

func familyOf(pid int) (f family) {
	for next := []int{pid}; len(next) > 0 && len(f) < mostKin; next = next[1:] {
		for _, kid := range children(next[0]) {
			if s, ok := readProcStat(kid); ok && len(f) < mostKin {
				f = append(f, member{kid, s.comm, s.cpuNS, s.start})
				next = append(next, kid)
			}
		}
	}
	return f
}

// note says that there are others, "" if there are none.
func (f family) note(pid int) string {
	if len(f) == 0 {
		return ""
	}
	var names []string
	for i, m := range f {
		if i == 3 {
			names = append(names, fmt.Sprintf("%d more", len(f)-i))
			break
		}
		names = append(names, fmt.Sprintf("%d (%s)", m.pid, m.comm))
	}
	return fmt.Sprintf("pid %d has processes of its own, which are not recorded with it: %s; if one of these does the work, name it", pid, strings.Join(names, ", "))
}

// leastKinNS is the least CPU time, which is counted in steps of 10 ms, that makes one of them worth a word.
const leastKinNS = 2e7

// story names the one of now that has worked most since f was read, if it was more than the target, which used ownNS; "" if none did.
func (f family) story(now family, ownNS int64) string {
	best, most, all, others := member{}, int64(0), int64(0), 0
	for _, m := range now {
		ns := m.cpuNS
		if i := slices.IndexFunc(f, func(o member) bool { return o.pid == m.pid && o.start == m.start }); i >= 0 {
			ns -= f[i].cpuNS
		}
		if ns >= leastKinNS {
			others++
		}
		if all += ns; ns > most {
			best, most = m, ns
		}
	}
	if most < leastKinNS || most <= ownNS {
		return ""
	}
	t := fmt.Sprintf("the work was done by a process that it has made and that is not in this recording: %d (%s) used %s of CPU, this one %s; look at that one: whystall diagnose --pid %d",
		best.pid, best.comm, seconds(most), seconds(ownNS), best.pid)
	if others > 1 {
		t += fmt.Sprintf(" (the busiest of %d, which used %s together)", others, seconds(all))
	}
	return t
}

// seconds prints CPU time, which the kernel gives in steps of 10 ms.
func seconds(ns int64) string { return fmt.Sprintf("%.2f s", float64(ns)/1e9) }
