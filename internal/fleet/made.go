package fleet

import (
	"fmt"
	"strconv"
	"strings"
)

// Made is a series as a unit test of rules makes it: a metric that grows by so much a minute, or
// stays at a level.
type Made struct {
	Metric string
	Labels string  // beside those of the member: `mode="idle",cpu="0"`
	Grow   float64 // a minute
	Level  float64
}

// cases are the series of one member that has the cause, and of one that looks alike and has not.
// A rule without a look-alike cannot be told from one that finds everything.
type cases struct{ Ill, Alike []Made }

// made has the cases of each rule.
var made = map[string]cases{
	"direct-reclaim-host": {
		Ill: []Made{grows("node_pressure_memory_waiting_seconds_total", 18),
			grows("node_vmstat_allocstall_normal", 600)},
		Alike: []Made{grows("node_pressure_memory_waiting_seconds_total", 18),
			grows("node_vmstat_allocstall_normal", 0)}, // a cgroup at its limit
	},
	"direct-reclaim-compaction": {
		Ill: []Made{grows("node_pressure_memory_waiting_seconds_total", 18),
			grows("node_vmstat_compact_stall", 60), grows("node_vmstat_allocstall_normal", 0)},
		Alike: []Made{grows("node_pressure_memory_waiting_seconds_total", 18),
			grows("node_vmstat_compact_stall", 0), grows("node_vmstat_allocstall_normal", 0)},
	},
	"swap": {
		Ill: []Made{grows("node_pressure_memory_waiting_seconds_total", 18),
			grows("node_vmstat_pswpin", 6000), grows("node_vmstat_pswpout", 6000),
			grows("node_vmstat_allocstall_normal", 0)},
		Alike: []Made{grows("node_pressure_memory_waiting_seconds_total", 18),
			grows("node_vmstat_pswpin", 0), grows("node_vmstat_pswpout", 0), grows("node_vmstat_allocstall_normal", 0)},
	},
	"page-fault-huge": {
		Ill: []Made{grows("node_pressure_memory_waiting_seconds_total", 18),
			grows("node_vmstat_thp_fault_alloc", 6000), grows("node_vmstat_thp_fault_fallback", 0),
			grows("node_vmstat_compact_stall", 60), grows("node_vmstat_allocstall_normal", 0)},
		Alike: []Made{grows("node_pressure_memory_waiting_seconds_total", 0),
			grows("node_vmstat_thp_fault_alloc", 6000), grows("node_vmstat_thp_fault_fallback", 0),
			grows("node_vmstat_compact_stall", 0), grows("node_vmstat_allocstall_normal", 0)},
	},
	"runqueue-saturation": {
		Ill: []Made{grows("node_pressure_cpu_waiting_seconds_total", 40),
			level("node_procs_running", "", 12), {"node_cpu_seconds_total", `cpu="0",mode="idle"`,
				1, 0}, {"node_cpu_seconds_total", `cpu="1",mode="idle"`, 1, 0}},
		Alike: []Made{grows("node_pressure_cpu_waiting_seconds_total", 40),
			level("node_procs_running", "", 2), {"node_cpu_seconds_total", `cpu="0",mode="idle"`,
				40, 0}, {"node_cpu_seconds_total", `cpu="1",mode="idle"`, 40, 0}}, // a group out of its quota
	},
	"cpu-steal": {
		Ill: []Made{{"node_cpu_seconds_total", `cpu="0",mode="steal"`, 12, 0},
			{"node_cpu_seconds_total", `cpu="1",mode="steal"`, 12, 0}},
		Alike: []Made{{"node_cpu_seconds_total", `cpu="0",mode="steal"`, 3, 0},
			{"node_cpu_seconds_total", `cpu="1",mode="steal"`, 0, 0},
			{"node_cpu_seconds_total", `cpu="0",mode="user"`, 50, 0}},
	},
	"softirq": {
		Ill: []Made{grows("node_pressure_irq_stalled_seconds_total", 6),
			{"node_cpu_seconds_total", `cpu="0",mode="softirq"`, 50, 0},
			{"node_cpu_seconds_total", `cpu="1",mode="softirq"`, 0, 0}},
		Alike: []Made{grows("node_pressure_irq_stalled_seconds_total", 0),
			{"node_cpu_seconds_total", `cpu="0",mode="softirq"`, 50, 0},
			{"node_cpu_seconds_total", `cpu="1",mode="softirq"`, 0, 0}},
	},
	"softirq-cpu": {
		Ill: []Made{{"node_cpu_seconds_total", `cpu="0",mode="softirq"`, 50, 0},
			{"node_cpu_seconds_total", `cpu="1",mode="softirq"`, 0, 0}},
		Alike: []Made{{"node_cpu_seconds_total", `cpu="0",mode="softirq"`, 8, 0},
			{"node_cpu_seconds_total", `cpu="1",mode="softirq"`, 6, 0},
			{"node_cpu_seconds_total", `cpu="0",mode="user"`, 50, 0}}, // a packet flood that two CPUs share
	},
	"numa-balancing": {
		Ill:   []Made{grows("node_vmstat_numa_hint_faults", 600000)},
		Alike: []Made{grows("node_vmstat_numa_hint_faults", 6000), grows("node_vmstat_pgfault", 1e7)},
	},
	"thread-churn": {
		Ill:   []Made{grows("node_forks_total", 120000), grows("node_pressure_cpu_waiting_seconds_total", 12)},
		Alike: []Made{grows("node_forks_total", 120000), grows("node_pressure_cpu_waiting_seconds_total", 0)},
	},
	"clock": {
		Ill:   []Made{level("node_time_clocksource_current_info", `clocksource="hpet"`, 1)},
		Alike: []Made{level("node_time_clocksource_current_info", `clocksource="tsc"`, 1)},
	},
	"disk": {
		Ill:   []Made{grows("node_pressure_io_waiting_seconds_total", 30)},
		Alike: []Made{grows("node_pressure_io_waiting_seconds_total", 3)},
	},
	"network": {
		Ill:   []Made{grows("node_netstat_TcpExt_ListenOverflows", 600), grows("node_netstat_TcpExt_TCPTimeouts", 0)},
		Alike: []Made{grows("node_netstat_TcpExt_ListenOverflows", 6), grows("node_netstat_TcpExt_TCPTimeouts", 6)},
	},
	"cpu-throttled": {
		Ill: []Made{grows("container_cpu_cfs_throttled_seconds_total", 30),
			grows("container_cpu_cfs_throttled_periods_total", 360), grows("container_cpu_cfs_periods_total", 600)},
		Alike: []Made{grows("container_cpu_cfs_throttled_seconds_total", 1),
			grows("container_cpu_cfs_throttled_periods_total", 12), grows("container_cpu_cfs_periods_total", 600)},
	},
	"gomaxprocs-over-quota": {
		Ill: []Made{grows("container_cpu_cfs_throttled_seconds_total", 30),
			level("container_spec_cpu_quota", "", 50000),
			level("container_spec_cpu_period", "", 100000), level("go_sched_gomaxprocs_threads", podOnly, 8)},
		Alike: []Made{grows("container_cpu_cfs_throttled_seconds_total", 30),
			level("container_spec_cpu_quota", "", 800000),
			level("container_spec_cpu_period", "", 100000), level("go_sched_gomaxprocs_threads", podOnly, 8)},
	},
	"direct-reclaim-cgroup": {
		Ill: []Made{grows("container_pressure_memory_waiting_seconds_total", 12),
			level("container_memory_working_set_bytes", "", 400),
			level("container_memory_usage_bytes", "", 1000),
			level("container_spec_memory_limit_bytes", "", 1000)}, // page cache thrashes
		Alike: []Made{grows("container_pressure_memory_waiting_seconds_total", 12),
			level("container_memory_working_set_bytes", "", 100),
			level("container_memory_usage_bytes", "", 900),
			level("container_spec_memory_limit_bytes", "", 1000)}, // the host's reclaim
	},
	"direct-reclaim-cgroup-v1": {
		Ill: []Made{grows("container_memory_failcnt", 6000),
			level("container_memory_working_set_bytes", "", 990),
			level("container_memory_usage_bytes", "", 1000), level("container_spec_memory_limit_bytes", "", 1000)},
		Alike: []Made{grows("container_memory_failcnt", 6000),
			level("container_memory_working_set_bytes", "", 500),
			level("container_memory_usage_bytes", "", 1000),
			level("container_spec_memory_limit_bytes", "", 1000),
			{"container_memory_failures_total", `failure_type="pgmajfault",scope="container"`, 6,
				0}}, // files are read once
	},
	"sched-latency": {
		Ill: []Made{grows("go_sched_latencies_seconds_sum", 6),
			grows("go_sched_latencies_seconds_count", 6000),
			{"go_sched_latencies_seconds_bucket", `le="0.010485759999999998"`, 5400, 0}},
		Alike: []Made{grows("go_sched_latencies_seconds_sum", 6),
			grows("go_sched_latencies_seconds_count", 600000),
			{"go_sched_latencies_seconds_bucket", `le="0.010485759999999998"`, 599990, 0}}, // many short waits
	},
	"stw-pause": {
		Ill:   []Made{grows("go_gc_duration_seconds_sum", 3), grows("go_gc_duration_seconds_count", 60)},
		Alike: []Made{grows("go_gc_duration_seconds_sum", 0.06), grows("go_gc_duration_seconds_count", 120)},
	},
	"frequent-gc-share": {
		Ill: []Made{grows("go_cpu_classes_gc_total_cpu_seconds_total", 60),
			grows("go_cpu_classes_gc_mark_idle_cpu_seconds_total", 1),
			grows("go_cpu_classes_total_cpu_seconds_total", 120),
			grows("go_cpu_classes_idle_cpu_seconds_total", 20), grows("go_gc_duration_seconds_count", 600)},
		Alike: []Made{grows("go_cpu_classes_gc_total_cpu_seconds_total", 60),
			grows("go_cpu_classes_gc_mark_idle_cpu_seconds_total", 55),
			grows("go_cpu_classes_total_cpu_seconds_total", 120),
			grows("go_cpu_classes_idle_cpu_seconds_total", 20),
			grows("go_gc_duration_seconds_count", 600)}, // on idle Ps
	},
	"frequent-gc": {
		Ill: []Made{grows("go_gc_duration_seconds_count", 600)},
		Alike: []Made{grows("go_gc_duration_seconds_count", 600),
			grows("go_cpu_classes_gc_total_cpu_seconds_total", 3),
			grows("go_cpu_classes_gc_mark_idle_cpu_seconds_total", 0),
			grows("go_cpu_classes_total_cpu_seconds_total", 120),
			grows("go_cpu_classes_idle_cpu_seconds_total", 20)}, // cheap ones
	},
	"lock-contention": {
		Ill:   []Made{grows("go_sync_mutex_wait_total_seconds_total", 12)},
		Alike: []Made{grows("go_sync_mutex_wait_total_seconds_total", 1)},
	},
	"thp-bloat": {
		Ill: []Made{level("process_resident_memory_bytes", "", 2e9),
			level("go_memstats_sys_bytes", "", 1.5e9), level("go_memstats_heap_released_bytes", "", 5e8)},
		Alike: []Made{level("process_resident_memory_bytes", "", 2e9),
			level("go_memstats_sys_bytes", "", 2e9), level("go_memstats_heap_released_bytes", "", 1e7)},
	},
}

// podOnly marks a series of the pod's own metrics, which have no container.
const podOnly = "pod"

func grows(metric string, perMinute float64) Made { return Made{Metric: metric, Grow: perMinute} }

func level(metric, labels string, v float64) Made {
	return Made{Metric: metric, Labels: labels, Level: v}
}

// member is the labels of a made member as this fleet names it.
func (p *Profile) member(k Key, cluster, name string) string {
	if !p.Standalone || k != ByContainer && k != ByPod {
		return member(k, cluster, name)
	}
	l := `instance="` + name + `:8080",id="/` + name + `",name="` + name + `"`
	if cluster != "" {
		l = `cluster="` + cluster + `",` + l
	}
	return l
}

// member is the labels of a made member, in Kubernetes.
func member(k Key, cluster, name string) string {
	c := ""
	if cluster != "" {
		c = `cluster="` + cluster + `",`
	}
	switch k {
	case ByHost:
		return c + `job="node",instance="` + name + `:9100"`
	case ByContainer, ByPod:
		return c + `namespace="ns",pod="` + name + `",container="app"`
	}
	return c + `job="app",namespace="ns",pod="` + name + `",instance="` + name + `:8080"`
}

// series writes a made series as promtool takes it: minutes of values.
func (m *Made) series(labels, shape string, minutes int) (name, values string) {
	l := labels
	if m.Labels == podOnly {
		l = strings.Replace(l, `,container="app"`, `,job="app"`, 1)
	} else if m.Labels != "" {
		l += "," + m.Labels
	}
	if shape == "copy" {
		l += `,replica="b"`
	}
	num := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	switch {
	case m.Grow == 0 && m.Level != 0 && shape == "short":
		values = num(m.Level) + "x1"
	case m.Grow == 0:
		values = num(m.Level) + "x" + strconv.Itoa(minutes)
	case shape == "short":
		values = "0+" + num(m.Grow) + "x1"
	case shape == "reset":
		values = fmt.Sprintf("%s+%sx%d 0+%sx%d", num(1000*m.Grow), num(m.Grow), minutes/2, num(m.Grow), minutes/2)
	default:
		values = "0+" + num(m.Grow) + "x" + strconv.Itoa(minutes)
	}
	return m.Metric + "{" + l + "}", values
}
