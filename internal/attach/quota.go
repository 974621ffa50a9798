package attach

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/finding"
)

// atQuota is how near the use of CPUs is to the quota of who is at it.
const atQuota = 0.05

// quotaExplains decides between a quota and a queue for CPUs. Threads of a group that is out of
// quota are ready and get no CPU, which looks like a queue to whatever measures their wait. So the
// wait is no sign of a queue where the quota is known to stop them, or is known and used up, unless
// the host's CPUs are full.
func quotaExplains(told []*Told, all []*Verdict) []*Verdict {
	quota, from := fact(told, Quota)
	cpus, _ := fact(told, HostCPUs)
	idle, host := fact(told, IdleShare)
	known := from != nil && quota.Value > 0 && (cpus.Value == 0 || quota.Value < cpus.Value)
	v := of(all, "cpu-throttled")
	if v == nil || bounded(all, v.Cause) || host != nil && idle.Value < hostIdle {
		return all
	}
	switch {
	case v.Grade == Found:
		return withoutQueue(all)
	case v.Grade != Candidate || !known:
		return all
	}
	waits := of(all, "cpu-contention") != nil || of(all, "runqueue-saturation") != nil
	if use, user := usedUp(told, quota.Value); user != nil && waits {
		all = find(all, Sign{Cause: v.Cause, Sure: finding.Possible, Proof: []string{
			fmt.Sprintf("%s uses %.3g CPUs of a quota of %.3g while threads wait for one", use.Of,
				use.Value, quota.Value)}}, user, from)
		return withoutQueue(all)
	}
	v.Proof = append(v.Proof, fmt.Sprintf("the quota is %.3g CPUs", quota.Value))
	return withoutQueue(all)
}

// withoutQueue withdraws a queue for CPUs that nothing but waits for a CPU speaks for.
func withoutQueue(all []*Verdict) (out []*Verdict) {
	for _, v := range all {
		if v.Grade != Candidate || v.Cause != "cpu-contention" && v.Cause != "runqueue-saturation" {
			out = append(out, v)
		}
	}
	return out
}

// usedUp is the process or container that uses as many CPUs as the quota gives.
func usedUp(told []*Told, quota float64) (Fact, *Told) {
	for _, t := range told {
		for _, f := range t.Facts {
			if (f.Name == ProcessCPU || f.Name == ContainerCPU) && f.Value > (1-atQuota)*quota &&
				f.Value < (1+atQuota)*quota {
				return f, t
			}
		}
	}
	return Fact{}, nil
}

// bounded reports whether a part bounds what a cause can cost.
func bounded(all []*Verdict, cause string) bool {
	for _, v := range all {
		if v.Grade == Against && v.Cause == cause {
			return true
		}
	}
	return false
}

// quotaOf is how many CPUs a command gives to a group; 0: it says nothing of that. A setting of
// systemd is known by its name, and a container's option by its tool.
func quotaOf(command string) float64 {
	words := strings.Fields(command)
	container := false
	quota, period := 0.0, 100000.0
	for i, w := range words {
		w = strings.Trim(w, `"'`)
		name, value, joined := strings.Cut(w, "=")
		if !joined && i+1 < len(words) {
			value = words[i+1]
		}
		if rest, ok := strings.CutPrefix(w, "--property="); ok {
			name, value, _ = strings.Cut(rest, "=")
		}
		value = strings.Trim(value, `"'`)
		switch container = container || w == "docker" || w == "podman" || w == "nerdctl"; {
		case name == "CPUQuota" || name == "-pCPUQuota":
			if percent, ok := strings.CutSuffix(value, "%"); ok {
				return amount(percent) / 100
			}
		case container && name == "--cpus":
			return amount(value)
		case container && name == "--cpu-quota":
			quota = amount(value)
		case container && name == "--cpu-period" && amount(value) > 0:
			period = amount(value)
		case strings.HasSuffix(w, "/cpu.max") && strings.Contains(command, ">"):
			return written(words)
		}
	}
	return quota / period
}

// written is the quota of "echo 50000 100000 > FOLDER/cpu.max".
func written(words []string) float64 {
	var numbers []float64
	for _, w := range words {
		if v := amount(strings.Trim(w, `"'`)); v > 0 {
			numbers = append(numbers, v)
		}
	}
	switch len(numbers) {
	case 1:
		return numbers[0] / 100000 // the kernel's default period
	case 2:
		return numbers[0] / numbers[1]
	}
	return 0
}

// amount is a number of at most 1e9; 0 where it is none.
func amount(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0 && v <= 1e9) {
		return 0
	}
	return v
}
