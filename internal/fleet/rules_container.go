package fleet

import (
	"strings"

	"github.com/whystall/whystall/internal/finding"
)

func joined(l []string) string { return strings.Join(l, ", ") }

// real leaves out what is no container of its own: pods, slices and pauses, which would count
// twice.
func (e *env) real() []string {
	if e.p.Standalone {
		return []string{`id!="/"`}
	}
	return []string{`container!=""`, `container!="POD"`}
}

func throttledTime(e *env) string {
	return e.lasting(ByContainer, e.rate(ByContainer, "container_cpu_cfs_throttled_seconds_total",
		e.real()...), "container_cpu_cfs_throttled_seconds_total", e.real()...)
}

func throttledPeriods(e *env) string {
	return e.ratio(ByContainer, e.rate(ByContainer, "container_cpu_cfs_throttled_periods_total",
		e.real()...), e.rate(ByContainer, "container_cpu_cfs_periods_total", e.real()...))
}

// memoryLimit is a container's limit; no limit is 0, or as good as none.
func memoryLimit(e *env) string {
	return "(" + e.now(ByContainer, "container_spec_memory_limit_bytes", e.real()...) + " < 1e15)"
}

// fullMemory is the working set by its limit.
func fullMemory(e *env) string {
	return e.ratio(ByContainer, e.gauge(ByContainer, "container_memory_working_set_bytes", e.real()...), memoryLimit(e))
}

// mostMemory is the largest usage by the limit. Page cache that may go belongs to it, which the
// working set leaves out: a container that thrashes by it has a small working set.
func mostMemory(e *env) string {
	return e.ratio(ByContainer,
		e.max(ByContainer, "max_over_time("+e.sel("container_memory_usage_bytes", e.real(),
			e.window)+")"), memoryLimit(e))
}

// A group at its limit frees a few pages at a time, so that it stays within a hundredth of it. One
// that the host reclaims from does not.
const atLimit = 0.98

func majorFaults(e *env) string {
	return e.rate(ByContainer, "container_memory_failures_total",
		append(e.real(), `failure_type="pgmajfault"`, `scope!="hierarchy"`)...)
}

// quota is a container's quota in CPUs.
func quota(e *env) string {
	return e.ratio(ByContainer, e.now(ByContainer, "container_spec_cpu_quota", e.real()...),
		e.now(ByContainer, "container_spec_cpu_period", e.real()...))
}

// containerPressures are constant zeros where cAdvisor meets cgroup v1.
var containerPressures = []string{"container_pressure_cpu_waiting_seconds_total",
	"container_pressure_memory_waiting_seconds_total", "container_pressure_io_waiting_seconds_total"}

var containerRules = []*Rule{
	{
		Name: "cpu-throttled", Cause: "cpu-throttled", Title: "The CPU quota of a container stops it",
		Scope: Container, Key: ByContainer, Unit: Throttled, Order: 1, Least: 0.1,
		Needs: []string{"container_cpu_cfs_throttled_seconds_total",
			"container_cpu_cfs_periods_total", "container_cpu_cfs_throttled_periods_total"},
		Loss: throttledTime,
		And:  func(e *env) string { return above(throttledPeriods(e), 0.1) },
		Uses: []string{"container_spec_cpu_quota", "container_spec_cpu_period", "container_cpu_usage_seconds_total"},
		Sure: finding.Supported, Why: "the counter is the time, and a tenth of the periods or more were throttled",
		Proof: []Proof{
			{"of its periods %s were throttled", "container_cpu_cfs_periods_total", throttledPeriods, Share},
			{"its quota is %s CPUs", "container_spec_cpu_quota", quota, Ratio},
			{"it uses %s CPUs", "container_cpu_usage_seconds_total", func(e *env) string {
				return e.rate(ByContainer, "container_cpu_usage_seconds_total", e.real()...)
			}, Ratio},
		},
		Hides: []string{"sched-latency", "stw-pause", "frequent-gc", "lock-contention"},
		// CPU pressure counts throttled tasks, the number of runnable tasks does not.
		Instead: []string{"runqueue-saturation"},
	},
	{
		Name: "gomaxprocs-over-quota", Cause: "gomaxprocs-over-quota", Title: "GOMAXPROCS is above the CPU quota",
		Scope: Container, Key: ByPod, Unit: Throttled, Order: 0, Least: 0.1, Pods: true,
		Needs: []string{"container_cpu_cfs_throttled_seconds_total", "go_sched_gomaxprocs_threads"},
		Loss: func(e *env) string {
			return e.max(ByPod, e.rate(ByContainer, "container_cpu_cfs_throttled_seconds_total", e.real()...))
		},
		AndNeeds: []string{"go_sched_gomaxprocs_threads"}, AloneNot: true,
		And: func(e *env) string {
			procs := e.max(ByPod, e.sel("go_sched_gomaxprocs_threads", []string{`pod!=""`}, 0))
			// The limit as the container has it, else as it was configured.
			limit := "(" + e.max(ByPod, quota(e)) + ") or (" +
				e.max(ByPod, e.sel("kube_pod_container_resource_limits", []string{`resource="cpu"`}, 0)) + ")"
			return above(e.ratio(ByPod, procs, "("+limit+")"), 1.5)
		},
		Uses: []string{"container_spec_cpu_quota", "container_spec_cpu_period", "kube_pod_container_resource_limits"},
		Sure: finding.Supported,
		Why:  "the container is throttled, and its Go program runs more Ps than the quota has CPUs",
		Proof: []Proof{{"its quota is %s CPUs", "container_spec_cpu_quota",
			func(e *env) string { return e.max(ByPod, quota(e)) }, Ratio},
			{"GOMAXPROCS is %s", "go_sched_gomaxprocs_threads", func(e *env) string {
				return e.max(ByPod, e.sel("go_sched_gomaxprocs_threads", nil, 0))
			}, Ratio}},
		Hides: []string{"cpu-throttled", "sched-latency", "stw-pause"},
	},
	{
		Name: "direct-reclaim-cgroup", Cause: "direct-reclaim",
		Title: "A container has to free its own memory before it gets any",
		Scope: Container, Key: ByContainer, Unit: WallShare, Order: 5, Least: 0.05,
		Needs: []string{"container_pressure_memory_waiting_seconds_total"},
		Loss: func(e *env) string {
			return e.lasting(ByContainer,
				e.rate(ByContainer, "container_pressure_memory_waiting_seconds_total", e.real()...),
				"container_pressure_memory_waiting_seconds_total", e.real()...)
		},
		Counts:   containerPressures,
		AndNeeds: []string{"container_spec_memory_limit_bytes"}, And: func(e *env) string {
			return "(" + above(mostMemory(e), atLimit) + ") or (" + above(fullMemory(e), 0.9) + ")"
		},
		Uses: append([]string{"container_memory_working_set_bytes", "container_memory_usage_bytes",
			"container_memory_failcnt"}, containerPressures...),
		Sure: finding.Supported, Why: "memory pressure in the container, and its memory at its limit, agree",
		Alone: "its limit is not known",
		Like:  "a container waits for memory, and is not at its limit: the host's reclaim, or memory.high",
		Proof: []Proof{
			{"its memory is at most %s of its limit", "container_memory_usage_bytes", mostMemory, Share},
			{"its working set, without page cache that was used once, is %s of its limit",
				"container_memory_working_set_bytes", fullMemory, Share},
		},
		Hides: []string{"page-fault", "stw-pause", "sched-latency", "swap"},
	},
	{
		Name: "direct-reclaim-cgroup-v1", Cause: "direct-reclaim",
		Title: "A container runs into its memory limit all the time",
		Scope: Container, Key: ByContainer, Unit: Events, Order: 6, Least: 1,
		Needs: []string{"container_memory_failcnt"},
		Loss: func(e *env) string {
			return e.lasting(ByContainer, e.rate(ByContainer, "container_memory_failcnt",
				e.real()...), "container_memory_failcnt", e.real()...)
		},
		AndNeeds: []string{"container_spec_memory_limit_bytes"}, AloneNot: true,
		And: func(e *env) string {
			thrash := e.and(ByContainer, above(mostMemory(e), atLimit), above(majorFaults(e), 10))
			return "(" + above(fullMemory(e), 0.9) + ") or (" + thrash + ")"
		},
		Uses: []string{"container_memory_working_set_bytes", "container_memory_usage_bytes",
			"container_memory_failures_total"},
		Sure: finding.Supported,
		Why:  "the limit is hit, and what is in use stands at it, or is read from disk again and again",
		Like: "a container hits its limit, and its working set is far below: page cache fills it, as reading or writing files once does",
		Proof: []Proof{
			{"its working set, without page cache that was used once, is %s of its limit",
				"container_memory_working_set_bytes", fullMemory, Share},
			{"major faults a second: %s", "container_memory_failures_total", majorFaults, Events},
		},
		Hides: []string{"page-fault", "stw-pause", "sched-latency", "swap"},
	},
}
