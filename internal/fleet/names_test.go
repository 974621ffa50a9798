package fleet

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// lackedHere are metrics that Debian 12's node_exporter 1.5 does not know, or that some kernels do
// not give: they are not looked for in a scrape.
var lackedHere = []string{
	"node_pressure_irq_stalled_seconds_total",                                 // node_exporter 1.9, Linux 6.1
	"node_schedstat_waiting_seconds_total", "node_schedstat_timeslices_total", // CONFIG_SCHEDSTATS
	"node_vmstat_allocstall_dma", "node_vmstat_allocstall_dma32", "node_vmstat_allocstall_device",
	// zones that a kernel may lack
	"node_vmstat_numa_hint_faults", "node_vmstat_numa_pages_migrated", // CONFIG_NUMA_BALANCING
	"node_vmstat_thp_fault_alloc", "node_vmstat_thp_fault_fallback", "node_vmstat_compact_stall",
	// CONFIG_TRANSPARENT_HUGEPAGE, CONFIG_COMPACTION
	"node_pressure_cpu_waiting_seconds_total", "node_pressure_memory_waiting_seconds_total",
	"node_pressure_io_waiting_seconds_total", // CONFIG_PSI
	"node_time_clocksource_current_info",
}

// TestMetricNames scrapes the real exporter: each metric of hosts that rules ask for is there with
// the flags that are printed, and those of the flag for vmstat are not there without it.
func TestMetricNames(t *testing.T) {
	flag := regexp.MustCompile(`--collector\.vmstat\.fields='([^']*)'`).FindStringSubmatch(vmstatFlag)
	with := scrape(t, "--collector.vmstat.fields="+flag[1], "--collector.buddyinfo")
	without := scrape(t)
	for _, name := range wanted() {
		if !strings.HasPrefix(name, "node_") {
			continue
		}
		if !with[name] {
			if slices.Contains(lackedHere, name) {
				t.Logf("not here: %s", name)
			} else {
				t.Errorf("no %s in a scrape with the flags that are printed", name)
			}
		}
	}
	for _, name := range wants[0].Metrics {
		if without[name] {
			t.Errorf("%s is there without the flag", name)
		}
	}
	if !with[wants[0].Metrics[0]] {
		t.Errorf("%s is not there with the flag", wants[0].Metrics[0])
	}
}

// scrape starts node_exporter and reads the names of its metrics.
func scrape(t *testing.T, args ...string) map[string]bool {
	t.Helper()
	address := exporterAt(t, args...)
	resp, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		if name := regexp.MustCompile(`^[a-z_A-Z0-9:]+`).FindString(line); name != "" {
			names[name] = true
		}
	}
	return names
}

func exporterAt(t *testing.T, args ...string) string {
	t.Helper()
	return serveUntil(t, "/metrics", "prometheus-node-exporter", append(args, "--web.listen-address=ADDRESS")...)
}

// TestDashboardExpressions runs each expression of the dashboard on all engines, with the
// variables as Grafana fills them.
func TestDashboardExpressions(t *testing.T) {
	end := samplesEnd()
	engines := filled(t, end)
	b, err := Dashboard("")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	filledIn := strings.NewReplacer("$cluster", ".*", "$job", ".*")
	ids, ran := map[int]bool{}, 0
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.W == 0 || p.Type != "row" &&
			(len(p.Targets) == 0 || p.Datasource == nil) {
			t.Errorf("panel %d %q is not whole", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, q := range p.Targets {
			ran++
			for name, e := range engines {
				if _, err := e.Instant(context.Background(), filledIn.Replace(q.Expr), end); err != nil {
					t.Errorf("%s: %s: %v\n%s", name, p.Title, err, q.Expr)
				}
			}
		}
	}
	if ran < len(rules)+len(wants) {
		t.Errorf("%d expressions, %d rules and %d wants", ran, len(rules), len(wants))
	}
}
