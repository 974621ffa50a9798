package collect

import (
	"fmt"
	"slices"
	"strings"
)

// member is a child of the target, or a child of one of those.
type member struct {
	pid   int
	comm  string
	cpuNS int64 // CPU time it has used so far
	start int64 // distinguishes it from another process with its pid
}

// family lists the target's descendants. None of them is recorded with it, and the process that
// does the work may be among them: under a shell, a supervisor or a master of workers.
type family []member

// maxKin bounds what looking at a family costs.
const maxKin = 512

func familyOf(pid int) (f family) {
	for next := []int{pid}; len(next) > 0 && len(f) < maxKin; next = next[1:] {
		for _, child := range children(next[0]) {
			if s, ok := readProcStat(child); ok && len(f) < maxKin {
				f = append(f, member{child, s.comm, s.cpuNS, s.start})
				next = append(next, child)
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
	return fmt.Sprintf("pid %d has child processes, which are not recorded with it: %s; if one of these does the work, name that one", pid, strings.Join(names, ", "))
}

// minKinNS is the least CPU time that makes a descendant worth a word. The kernel counts it in
// steps of 10 ms.
const minKinNS = 2e7

// story names the descendant that has worked most since f was read, if it worked more than the
// target, which used ownNS; "" if none did.
func (f family) story(now family, ownNS int64) string {
	busiest, most, all, others := member{}, int64(0), int64(0), 0
	for _, m := range now {
		ns := m.cpuNS
		if i := slices.IndexFunc(f, func(o member) bool { return o.pid == m.pid && o.start == m.start }); i >= 0 {
			ns -= f[i].cpuNS
		}
		if ns >= minKinNS {
			others++
		}
		if all += ns; ns > most {
			busiest, most = m, ns
		}
	}
	if most < minKinNS || most <= ownNS {
		return ""
	}
	t := fmt.Sprintf("a child process that is not in this recording did the work: %d (%s) used %s of CPU, this one %s; look at that one: whystall diagnose --pid %d",
		busiest.pid, busiest.comm, seconds(most), seconds(ownNS), busiest.pid)
	if others > 1 {
		t += fmt.Sprintf(" (the busiest of %d, which used %s together)", others, seconds(all))
	}
	return t
}

// seconds prints CPU time, which the kernel gives in steps of 10 ms.
func seconds(ns int64) string { return fmt.Sprintf("%.2f s", float64(ns)/1e9) }
