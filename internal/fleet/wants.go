package fleet

// Want is metrics that rules want and exporters may not have: of those targets that have the
// anchor, which lack the first of the metrics. Each is a row of what node_exporter 1.12, cAdvisor
// 0.56, kube-state-metrics and client_golang 1.25 export, by their sources and by scrapes.
type Want struct {
	What    string `prose:"yes"`
	Anchor  string // what a target of this kind always has
	Metrics []string
	Key     Key
	Remedy  string `prose:"yes"`
}

const vmstatFlag = `node_exporter --collector.vmstat.fields='^(oom_kill|pgpg|pswp|pg.*fault|allocstall|compact_(stall|fail|success)|pg(scan|steal)_(kswapd|direct)|workingset_refault|numa_(pte_updates|hint_faults|pages_migrated)|thp_(fault|collapse|split)).*'`

const richGo = `collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)) in the service`

var wants = []Want{
	{"direct reclaim, compaction, huge page faults and NUMA balancing", "node_vmstat_pgfault",
		[]string{"node_vmstat_allocstall_normal", "node_vmstat_allocstall_movable",
			"node_vmstat_allocstall_dma32", "node_vmstat_allocstall_dma",
			"node_vmstat_allocstall_device"}, ByHost, vmstatFlag},
	{"pressure of CPU, memory and disks", "node_boot_time_seconds",
		[]string{"node_pressure_memory_waiting_seconds_total"}, ByHost,
		"node_exporter's collector pressure, on by default; the kernel needs CONFIG_PSI, some distributions boot with psi=1"},
	{"how long threads wait for a CPU", "node_boot_time_seconds",
		[]string{"node_schedstat_waiting_seconds_total"}, ByHost,
		"node_exporter's collector schedstat, on by default; the kernel needs CONFIG_SCHEDSTATS"},
	{"interrupts' work: its pressure", "node_boot_time_seconds",
		[]string{"node_pressure_irq_stalled_seconds_total"}, ByHost,
		"Linux 6.1 with CONFIG_IRQ_TIME_ACCOUNTING, and a node_exporter from 1.9 on"},
	{"free memory in large blocks", "node_boot_time_seconds", []string{"node_buddyinfo_blocks"},
		ByHost, "node_exporter --collector.buddyinfo"},
	{"throttling of containers", "container_cpu_usage_seconds_total",
		[]string{"container_cpu_cfs_periods_total"}, ByContainer,
		"a container without a CPU quota has none to see; else let the scrape configuration keep container_cpu_cfs_.*"},
	{"pressure in containers", "container_cpu_usage_seconds_total",
		[]string{"container_pressure_memory_waiting_seconds_total"}, ByContainer,
		"kubelet with the feature KubeletPSI (on from Kubernetes 1.34) and cgroup v2"},
	{"limits of containers", "container_cpu_usage_seconds_total",
		[]string{"container_spec_memory_limit_bytes"}, ByContainer,
		"let the scrape configuration keep container_spec_.*"},
	{"which pod runs where", "container_cpu_usage_seconds_total", []string{"kube_pod_info"}, ByPod,
		"kube-state-metrics"},
	{"Go's scheduler, pauses, assists and mutexes", "go_goroutines",
		[]string{"go_sched_latencies_seconds_count"}, ByService, richGo},
}

// wanted lists every metric that is asked about in names.
func wanted() (names []string) {
	seen := map[string]bool{}
	add := func(n string) {
		if !seen[n] {
			seen[n] = true
			names = append(names, n)
		}
	}
	for _, w := range wants {
		add(w.Anchor)
		for _, m := range w.Metrics {
			add(m)
		}
	}
	for _, r := range rules {
		for _, list := range [][]string{r.Needs, r.AndNeeds, r.Uses} {
			for _, m := range list {
				add(m)
			}
		}
		for _, p := range r.Proof {
			add(p.Needs)
		}
	}
	return names
}
