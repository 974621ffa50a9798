package systool

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/attach"
)

// ownUse is the CPU time of a row in percent of a CPU. Some rows' %CPU is less than the parts which
// it is the sum of: pidstat -I divides it by the number of CPUs, and some versions cut it at 100.
func (run *pidstatRun) ownUse(t *table, r row) float64 {
	use := t.num(r, "%CPU")
	if !t.has("%usr") || !t.has("%system") {
		return use
	}
	parts := t.num(r, "%usr") + t.num(r, "%system") + t.num(r, "%guest")
	if parts < 1.04*use+1 || use < 0 {
		return use
	}
	if use == 100 {
		run.capped = true
	} else if use > 0 && len(run.divided) < maxTasks {
		run.divided = append(run.divided, parts/use)
	}
	return parts
}

// ownSums says why shares are not those of the column %CPU.
func (run *pidstatRun) ownSums(v *verdict) {
	switch {
	case len(run.divided) > 1 && slices.Max(run.divided) < 1.25*slices.Min(run.divided):
		v.figure("its column %%CPU is divided by the number of CPUs (pidstat -I), which is about %.0f: the shares here are of one CPU", attach.Median(run.divided))
	case len(run.divided) > 0:
		v.figure("its column %%CPU is less than %%usr and %%system together: their sum counts here")
	case run.capped && !run.threads:
		v.figure("this version cuts %%CPU and its parts at 100 %% each: a process with several threads may use more")
		v.not("how many CPUs a process with 100 % uses: rows of its threads (pidstat -t) say it")
	}
}

// crowds says what the threads of one process use together, where they use more than a CPU. The
// rows of threads stand below that of their process.
func (run *pidstatRun) crowds(v *verdict) {
	var owner, most *task
	sums, busy, counts := map[*task]float64{}, map[*task]int{}, map[*task]int{}
	for _, one := range run.tasks {
		if one.tid == 0 {
			owner = one
			continue
		}
		if owner == nil {
			continue
		}
		sums[owner] += one.use
		counts[owner]++
		if one.use >= 90 {
			busy[owner]++
		}
		if most == nil || sums[owner] > sums[most] {
			most = owner
		}
	}
	if most == nil {
		run.alike(v)
		return
	}
	if counts[most] < 2 || sums[most] <= oneThread {
		return
	}
	text := fmt.Sprintf("%s: its %d threads listed use %s %% CPU together", most, counts[most], plain(sums[most]))
	if busy[most] > 0 {
		text += fmt.Sprintf(", and %d of them 90 %% or more each", busy[most])
	}
	if most.use >= 0.8*sums[most] && most.sys > 0 {
		text += fmt.Sprintf(" (%s user, %s system)", plain(most.usr), plain(most.sys))
	}
	if most.use < 0.8*sums[most] {
		text += "; its own row says less, and is wrong"
	}
	v.figure("%s", text)
}

// alike says what processes or threads of one name use together, where that is more than a CPU.
func (run *pidstatRun) alike(v *verdict) {
	sums, counts, most := map[string]float64{}, map[string]int{}, ""
	for _, one := range run.tasks {
		sums[one.name] += one.use
		counts[one.name]++
		if sums[one.name] > sums[most] {
			most = one.name
		}
	}
	if most != "" && counts[most] > 1 && sums[most] > oneThread {
		kind := "processes"
		if run.threads {
			kind = "threads"
		}
		v.figure("%d %s %s use %s %% CPU together", counts[most], kind, most, plain(sums[most]))
	}
}
