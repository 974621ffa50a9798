package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/ledger"
)

// blind lists the causes that only the kernel can show and that no detector looks for yet. Without this list
// "nothing found" would say more than was looked at.
func blind(r *ledger.Result) []finding.NotChecked {
	cpu := []string{"kernel evidence (switch records, the cgroup's cpu.stat, PSI), which this version does not record: whether threads that Go calls running were on a CPU, waited behind other processes, or were throttled by a quota"}
	// A host that others use as well stands still now and then; a twentieth of the slow requests' time is no accident.
	if r != nil && 20*r.Silences.SlowNS >= r.Slow.WallNS && r.Silences.SlowNS > 0 {
		cpu = append(cpu, fmt.Sprintf("a reason to look: %s with no event of any thread for 20 ms or more while work was runnable, %s in all, %s of the slow requests' time; on the host see cat /proc/pressure/cpu, the cgroup's cpu.stat (nr_throttled) and top",
			times(r.Silences.N, "silence", "silences"), finding.Duration(r.Silences.NS), finding.Duration(r.Silences.SlowNS)))
	}
	if why := shortOfCPU(r); why != "" {
		cpu = append(cpu, "a reason to look: "+why+"; on the host see cat /proc/pressure/cpu, the cgroup's cpu.stat (nr_throttled) and top")
	}
	return []finding.NotChecked{
		{Cause: "cpu-contention", Missing: cpu},
		{Cause: "direct-reclaim", Missing: []string{"kernel evidence of memory stalls (reclaim, compaction, page faults), which this version does not record"}},
	}
}
