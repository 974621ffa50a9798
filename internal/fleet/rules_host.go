package fleet

import "github.com/whystall/whystall/internal/finding"

// oneCPU keeps node_cpu_seconds_total to one mode: with all of them it has eight series a CPU.
func cpuMode(mode string) string { return "mode=" + quoted(mode) }

func memoryPressure(e *env) string {
	return e.rate(ByHost, "node_pressure_memory_waiting_seconds_total")
}

func reclaims(e *env) string { return e.rates(ByHost, allocstalls...) }

func cpusOf(e *env) string {
	return "count by " + e.by(ByHost) + " (" + "max by (" + joined(e.p.labels(ByHost)) + ", cpu) (" + e.sel("node_cpu_seconds_total", []string{cpuMode("idle")}, 0) + "))"
}

// eachSoftirq is each CPU's share of time at softirqs, and busiestSoftirq that of the busiest.
func eachSoftirq(e *env) string {
	return "max by (" + joined(e.p.labels(ByHost)) + ", cpu) (rate(" + e.sel("node_cpu_seconds_total", []string{cpuMode("softirq")}, e.window) + "))"
}

func busiestSoftirq(e *env) string { return e.max(ByHost, eachSoftirq(e)) }

var hostRules = []*Rule{
	{
		Name: "direct-reclaim-host", Cause: "direct-reclaim", Title: "Tasks of the host have to free memory before they get any",
		Scope: Host, Key: ByHost, Unit: WallShare, Order: 10, Least: 0.01,
		Needs: []string{"node_pressure_memory_waiting_seconds_total"}, Loss: memoryPressure,
		AndNeeds: []string{"node_vmstat_allocstall_normal"}, And: func(e *env) string { return above(reclaims(e), 1) },
		Sure: finding.Supported, Why: "memory pressure and the counter of direct reclaim agree",
		Alone: "nothing counts direct reclaim there: a cgroup at its limit, swap and thrash look the same",
		Like:  "tasks wait for memory, and the host reclaims none directly: a cgroup at its limit, swap or thrash",
		Uses:  append([]string{"node_vmstat_compact_stall"}, allocstalls...),
		Proof: []Proof{
			{"direct reclaims a second: %s", "node_vmstat_allocstall_normal", reclaims, Events},
			{"stalls for compaction a second: %s", "node_vmstat_compact_stall", func(e *env) string { return e.rate(ByHost, "node_vmstat_compact_stall") }, Events},
		},
		Hides: []string{"page-fault", "stw-pause", "sched-latency", "frequent-gc"},
	},
	{
		Name: "direct-reclaim-compaction", Cause: "direct-reclaim", Title: "Tasks of the host have to make large blocks of free memory",
		Scope: Host, Key: ByHost, Unit: WallShare, Order: 11, Least: 0.01, Instead: []string{"direct-reclaim"},
		Needs: []string{"node_pressure_memory_waiting_seconds_total", "node_vmstat_compact_stall"}, Loss: memoryPressure,
		AndNeeds: []string{"node_vmstat_compact_stall"}, AloneNot: true,
		And: func(e *env) string {
			return e.unless(ByHost, above(e.rate(ByHost, "node_vmstat_compact_stall"), 0.1), above(reclaims(e), 1))
		},
		Uses: allocstalls,
		Sure: finding.Supported, Why: "memory pressure and stalls for compaction agree",
		Proof: []Proof{{"stalls for compaction a second: %s", "node_vmstat_compact_stall", func(e *env) string { return e.rate(ByHost, "node_vmstat_compact_stall") }, Events}},
	},
	{
		Name: "swap", Cause: "swap", Instead: []string{"direct-reclaim"}, Title: "The host swaps",
		Scope: Host, Key: ByHost, Unit: WallShare, Order: 12, Least: 0.01,
		Needs: []string{"node_pressure_memory_waiting_seconds_total", "node_vmstat_pswpin"}, Loss: memoryPressure,
		AndNeeds: []string{"node_vmstat_pswpin"}, AloneNot: true,
		And:  func(e *env) string { return above(e.rates(ByHost, "node_vmstat_pswpin", "node_vmstat_pswpout"), 10) },
		Uses: []string{"node_vmstat_pswpout", "node_vmstat_pgmajfault"},
		Sure: finding.Supported, Why: "memory pressure and pages that go to swap or come from it agree",
		Proof: []Proof{
			{"pages in and out of swap a second: %s", "node_vmstat_pswpin", func(e *env) string { return e.rates(ByHost, "node_vmstat_pswpin", "node_vmstat_pswpout") }, Events},
			{"major faults a second: %s", "node_vmstat_pgmajfault", func(e *env) string { return e.rate(ByHost, "node_vmstat_pgmajfault") }, Events},
		},
	},
	{
		Name: "page-fault-huge", Cause: "page-fault", Title: "Faults for huge pages stall",
		Scope: Host, Key: ByHost, Unit: WallShare, Order: 30, Least: 0.01,
		Needs: []string{"node_pressure_memory_waiting_seconds_total", "node_vmstat_thp_fault_alloc"}, Loss: memoryPressure,
		AndNeeds: []string{"node_vmstat_thp_fault_alloc"}, AloneNot: true,
		And: func(e *env) string {
			return e.and(ByHost, above(e.rates(ByHost, "node_vmstat_thp_fault_alloc", "node_vmstat_thp_fault_fallback"), 10), above(e.rate(ByHost, "node_vmstat_compact_stall"), 0.1))
		},
		Uses: []string{"node_vmstat_thp_fault_fallback", "node_vmstat_compact_stall"},
		Sure: finding.Supported, Why: "memory pressure, faults for huge pages and stalls for compaction agree",
		Proof: []Proof{{"faults for huge pages a second: %s", "node_vmstat_thp_fault_alloc", func(e *env) string {
			return e.rates(ByHost, "node_vmstat_thp_fault_alloc", "node_vmstat_thp_fault_fallback")
		}, Events}},
	},
	{
		Name: "runqueue-saturation", Cause: "runqueue-saturation", Title: "More threads want to run than there are CPUs",
		Scope: Host, Key: ByHost, Unit: WallShare, Order: 40, Least: 0.2,
		Needs: []string{"node_pressure_cpu_waiting_seconds_total"}, Loss: func(e *env) string { return e.rate(ByHost, "node_pressure_cpu_waiting_seconds_total") },
		AndNeeds: []string{"node_procs_running"},
		And: func(e *env) string {
			return above(e.ratio(ByHost, e.gauge(ByHost, "node_procs_running"), cpusOf(e)), 2)
		},
		Uses: []string{"node_cpu_seconds_total", "node_schedstat_waiting_seconds_total", "node_schedstat_timeslices_total"},
		Sure: finding.Supported, Why: "CPU pressure and the number of runnable tasks agree",
		Alone: "CPU pressure counts tasks that are out of their quota as waiting, too: a throttled group looks the same",
		Like:  "tasks wait for a CPU, and not many want one at a time: a group out of its CPU quota looks like this, and so do short bursts",
		Proof: []Proof{
			{"runnable tasks for each CPU: %s", "node_procs_running", func(e *env) string { return e.ratio(ByHost, e.gauge(ByHost, "node_procs_running"), cpusOf(e)) }, Ratio},
			{"task-seconds a second in run queues: %s", "node_schedstat_waiting_seconds_total", func(e *env) string {
				return "sum by " + e.by(ByHost) + " (max by (" + joined(e.p.labels(ByHost)) + ", cpu) (rate(" + e.sel("node_schedstat_waiting_seconds_total", nil, e.window) + ")))"
			}, Tasks},
		},
		Hides: []string{"sched-latency", "stw-pause"},
	},
	{
		Name: "cpu-steal", Cause: "cpu-steal", Title: "The hypervisor takes CPUs while the host wants them",
		Scope: Host, Key: ByHost, Unit: CPUShare, Order: 35, Least: 0.05,
		Needs: []string{"node_cpu_seconds_total"}, Loss: func(e *env) string {
			return "avg by " + e.by(ByHost) + " (max by (" + joined(e.p.labels(ByHost)) + ", cpu) (rate(" + e.sel("node_cpu_seconds_total", []string{cpuMode("steal")}, e.window) + ")))"
		},
		Sure: finding.Supported, Why: "the counter is time that was taken",
		Hides: []string{"runqueue-saturation", "sched-latency"},
	},
	{
		Name: "softirq", Cause: "softirq", Title: "Interrupts' work stalls tasks",
		Scope: Host, Key: ByHost, Unit: WallShare, Order: 36, Least: 0.02,
		Needs: []string{"node_pressure_irq_stalled_seconds_total"}, Loss: func(e *env) string { return e.rate(ByHost, "node_pressure_irq_stalled_seconds_total") },
		AndNeeds: []string{"node_cpu_seconds_total"},
		And:      func(e *env) string { return above(busiestSoftirq(e), 0.3) },
		Uses:     []string{"node_softnet_times_squeezed_total"},
		Sure:     finding.Supported, Why: "interrupt pressure and one CPU that is busy with softirqs agree",
		Alone: "which work it is, no counter says",
		Proof: []Proof{{"the busiest CPU is at softirqs for %s of its time", "node_cpu_seconds_total", busiestSoftirq, Share}},
	},
	{
		Name: "softirq-cpu", Cause: "softirq", Title: "One CPU is busy with the work of interrupts",
		Scope: Host, Key: ByHost, Unit: CPUShare, Order: 37, Least: 0.3,
		Needs: []string{"node_cpu_seconds_total"}, Loss: func(e *env) string {
			// Where the kernel counts whom it stalls, the rule above goes by that.
			return e.unless(ByHost, busiestSoftirq(e), e.now(ByHost, "node_pressure_irq_stalled_seconds_total"))
		},
		Uses: []string{"node_pressure_irq_stalled_seconds_total", "node_softnet_processed_total", "node_softnet_times_squeezed_total"},
		Sure: finding.Possible, Why: "whether tasks wait for that CPU, nothing there counts",
		Proof: []Proof{
			{"all CPUs together: %s", "node_cpu_seconds_total", func(e *env) string {
				return "avg by " + e.by(ByHost) + " (" + eachSoftirq(e) + ")"
			}, Share},
			{"packets a second on one CPU: %s", "node_softnet_processed_total", func(e *env) string { return e.rate(ByHost, "node_softnet_processed_total") }, Events},
		},
	},
	{
		Name: "numa-balancing", Cause: "numa-balancing", Title: "The kernel moves pages between NUMA nodes",
		Scope: Host, Key: ByHost, Unit: Events, Order: 50, Least: 1000,
		Needs: []string{"node_vmstat_numa_hint_faults"}, Loss: func(e *env) string { return e.rate(ByHost, "node_vmstat_numa_hint_faults") },
		Uses: []string{"node_vmstat_numa_pages_migrated"},
		Sure: finding.Possible, Why: "faults are counted, and not their time",
		Proof: []Proof{{"pages moved a second: %s", "node_vmstat_numa_pages_migrated", func(e *env) string { return e.rate(ByHost, "node_vmstat_numa_pages_migrated") }, Events}},
	},
	{
		Name: "thread-churn", Cause: "thread-churn", Title: "Threads and processes are made all the time",
		Scope: Host, Key: ByHost, Unit: Events, Order: 51, Least: 1000,
		Needs: []string{"node_forks_total"}, Loss: func(e *env) string { return e.rate(ByHost, "node_forks_total") },
		AndNeeds: []string{"node_pressure_cpu_waiting_seconds_total"}, AloneNot: true,
		And:  func(e *env) string { return above(e.rate(ByHost, "node_pressure_cpu_waiting_seconds_total"), 0.1) },
		Sure: finding.Possible, Why: "cron, builds and shells fork as well, and no counter says who",
	},
	{
		Name: "clock", Cause: "clock", Title: "Reading the clock is a system call",
		Scope: Host, Key: ByHost, Unit: State, Order: 90, Least: 0.5, Risk: true, Levels: true,
		Needs: []string{"node_time_clocksource_current_info"},
		Loss: func(e *env) string {
			return e.now(ByHost, "node_time_clocksource_current_info", `clocksource!~"tsc|kvm-clock|hyperv.*|arch_sys_counter|s390.*|timebase"`)
		},
		Sure: finding.Possible, Why: "a setting: nothing shows what it costs",
	},
	{
		Name: "disk", Cause: "disk", Title: "Tasks wait for disks",
		Scope: Host, Key: ByHost, Unit: WallShare, Order: 60, Least: 0.2,
		Needs: []string{"node_pressure_io_waiting_seconds_total"}, Loss: func(e *env) string { return e.rate(ByHost, "node_pressure_io_waiting_seconds_total") },
		Sure: finding.Possible, Why: "which task waited, and whether a request waited for it, no counter says",
	},
	{
		Name: "network", Cause: "network", Title: "TCP sends again, or drops connections that nobody accepts",
		Scope: Host, Key: ByHost, Unit: Events, Order: 61, Least: 5,
		Needs: []string{"node_netstat_TcpExt_ListenOverflows"}, Loss: func(e *env) string {
			return e.rates(ByHost, "node_netstat_TcpExt_ListenOverflows", "node_netstat_TcpExt_TCPTimeouts")
		},
		Uses: []string{"node_netstat_TcpExt_TCPTimeouts"},
		Sure: finding.Possible, Why: "which connections, no counter says",
	},
}
