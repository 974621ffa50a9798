package main

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExporter reads cgroups of both versions.
func TestExporter(t *testing.T) {
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	for name, text := range map[string]string{
		one + "/cpu.stat": "nr_periods 100\nnr_throttled 60\nthrottled_time 2500000000\n", one +
			"/cpu.cfs_quota_us": "10000\n", one + "/cpu.cfs_period_us": "100000\n",
		two + "/cpu.stat": "usage_usec 5\nnr_periods 7\nnr_throttled 0\nthrottled_usec 1500000\n",
		two + "/cpu.max":  "max 100000\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := httptest.NewRecorder()
	exporter{{"sick", one, os.Getpid()}, {"twin", two, os.Getpid()}}.ServeHTTP(w, nil)
	for _, want := range []string{
		`container_cpu_cfs_throttled_seconds_total{id="/one",name="sick"} 2.5`,
		`container_cpu_cfs_throttled_seconds_total{id="/two",name="twin"} 1.5`,
		`container_spec_cpu_quota{id="/one",name="sick"} 10000`,
		`container_cpu_cfs_periods_total{id="/two",name="twin"} 7`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no %s in\n%s", want, w.Body)
		}
	}
	if strings.Contains(w.Body.String(), `container_spec_cpu_quota{id="/two"`) {
		t.Error("no quota is shown as one")
	}
	if promtool, err := exec.LookPath("promtool"); err == nil {
		cmd := exec.Command(promtool, "check", "config", "/dev/stdin")
		cmd.Stdin = strings.NewReader(scrapes("127.0.0.1:1", "127.0.0.1:2"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("scrapes: %v: %s", err, out)
		}
	}
}

// TestNamed takes the first container, and not a host that stands before it.
func TestNamed(t *testing.T) {
	got, err := namedIn([]byte(`{"findings":[{"scope":"host","members":[{"labels":{"instance":"a"}}]},{"scope":"container","members":[{"labels":{"name":"x"}}]}]}`))
	if err != nil || got != "x" {
		t.Errorf("%q, %v", got, err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := lackedTools(); err == nil ||
		!strings.Contains(err.Error(), "apt-get install prometheus prometheus-node-exporter") {
		t.Errorf("%v", err)
	}
}
