package capacity

import (
	"strconv"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
)

// stolen estimates what the hypervisor took of the target's time on CPUs: on each CPU its steal by
// /proc/stat, of the time in which that CPU was not idle, against the time in which the target's
// threads were on it. ran is that time by CPU, over wall. It returns nil where /proc/stat was not
// read twice. The counters were read about when the records start and end. So their rates count,
// taken for as long as the records last.
func stolen(set *evidence.Set, ran map[int]int64, wall int64) *account.Stolen {
	if set == nil {
		return nil
	}
	steal, okSteal := eachCPU(set, "/host/each/steal:ns", wall)
	idle, okIdle := eachCPU(set, "/host/each/idle:ns", wall)
	if !okSteal || !okIdle {
		return nil
	}
	s := new(account.Stolen)
	for cpu, ns := range ran {
		took, ok := steal[cpu]
		unused, known := idle[cpu]
		if !ok || !known || ns <= 0 {
			continue
		}
		busy := max(ns, took, wall-unused) // in steps of 10 ms, so that ns may be above
		s.RanNS += ns
		s.StealNS += took
		s.BusyNS += busy
		s.Low += max(0, took+ns-busy)
		s.High += min(took, ns)
		s.NS += account.MulDiv(took, ns, busy)
	}
	if s.RanNS == 0 {
		return nil
	}
	return s
}

// eachCPU is how much a counter grew on each CPU.
func eachCPU(set *evidence.Set, stream string, wall int64) (by map[int]int64, ok bool) {
	first := map[string]evidence.Record{}
	by = map[int]int64{}
	for _, r := range set.All(stream) {
		f, seen := first[r.Text]
		if !seen {
			first[r.Text] = r
			continue
		}
		cpu, err := strconv.Atoi(r.Text)
		if span := r.Time - f.Time; err == nil && span > 0 && r.Value >= f.Value {
			by[cpu] = min(wall, int64((r.Value-f.Value)/float64(span)*float64(wall)))
		}
	}
	return by, len(by) > 0
}
