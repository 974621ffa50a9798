package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// contained is a process in a cgroup of its own.
type contained struct {
	name string
	dir  string // of the cgroup with the CPU quota
	pid  int
}

// exporter shows the counters of cgroups under the names and labels that cAdvisor gives containers
// outside Kubernetes.
type exporter []contained

func (e exporter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	kinds := map[string]string{}
	lines := map[string][]string{}
	add := func(c *contained, name, kind string, v float64) {
		kinds[name] = kind
		lines[name] = append(lines[name], fmt.Sprintf("%s{id=%q,name=%q} %s\n", name, "/"+
			filepath.Base(c.dir), c.name, strconv.FormatFloat(v, 'g', -1, 64)))
	}
	for i := range e {
		c := &e[i]
		stat := fields(filepath.Join(c.dir, "cpu.stat"))
		add(c, "container_cpu_usage_seconds_total", "counter", float64(usedBy(c.pid).cpu)/1e9)
		add(c, "container_cpu_cfs_periods_total", "counter", stat["nr_periods"])
		add(c, "container_cpu_cfs_throttled_periods_total", "counter", stat["nr_throttled"])
		add(c, "container_cpu_cfs_throttled_seconds_total", "counter", stat["throttled_time"]/1e9+
			stat["throttled_usec"]/1e6)
		if quota, period, ok := quotaOf(c.dir); ok {
			add(c, "container_spec_cpu_quota", "gauge", quota)
			add(c, "container_spec_cpu_period", "gauge", period)
		}
	}
	for name, kind := range kinds {
		fmt.Fprintf(w, "# TYPE %s %s\n%s", name, kind, strings.Join(lines[name], ""))
	}
}

// fields reads a file of names and numbers.
func fields(name string) map[string]float64 {
	out := map[string]float64{}
	b, _ := os.ReadFile(name)
	for l := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(l), " "); ok {
			out[k], _ = strconv.ParseFloat(v, 64)
		}
	}
	return out
}

// quotaOf reads a cgroup's quota and period, in microseconds, of either version.
func quotaOf(dir string) (quota, period float64, ok bool) {
	if b, err := os.ReadFile(filepath.Join(dir, "cpu.max")); err == nil {
		n, _ := fmt.Sscan(string(b), &quota, &period)
		return quota, period, n == 2 // "max": none
	}
	number := func(name string) float64 {
		b, _ := os.ReadFile(filepath.Join(dir, name))
		v, _ := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
		return v
	}
	quota, period = number("cpu.cfs_quota_us"), number("cpu.cfs_period_us")
	return quota, period, quota > 0 && period > 0
}
