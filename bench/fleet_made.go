package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// fleetSize is how many members a made fleet has, and how many of them are ill.
type fleetSize struct{ hosts, containers, illHosts, illContainers int }

// madeFleet writes the counters of a fleet: 45 minutes, a sample a minute.
type madeFleet struct {
	fleetSize
	end time.Time
}

const madeSteps = 45

// madeMetric is a metric of hosts or containers. A member's value grows by so much a minute; a
// level stays.
type madeMetric struct {
	name   string
	labels string
	grow   func(f *madeFleet, i int) (perMinute float64, ok bool)
	level  float64
}

func steady(v float64) func(*madeFleet, int) (float64, bool) {
	// Members differ by up to a fifth.
	return func(_ *madeFleet, i int) (float64, bool) { return v * (0.9 + 0.2*float64(i*7919%1000)/1000), true }
}

// illHost reports whether a host is ill: they are spread over the clusters. Every other host's
// exporter lacks the counters of direct reclaim; the ill ones have them.
func (f *madeFleet) illHost(i int) bool {
	every := f.hosts / f.illHosts &^ 1
	return i%every == 0 && i/every < f.illHosts
}

// illContainer reports whether a container is ill: all of some workloads, two in five namespaces.
func (f *madeFleet) illContainer(i int) bool { return i < f.illContainers }

func hostMetrics() []madeMetric {
	m := []madeMetric{
		{name: "up", level: 1}, {name: "node_boot_time_seconds", level: 1.7e9},
		{name: "node_vmstat_pgfault", grow: steady(5e5)},
		{name: "node_pressure_memory_waiting_seconds_total", grow: func(f *madeFleet, i int) (float64, bool) {
			if f.illHost(i) {
				return 18 + float64(i%7), true
			}
			return 0.01, true
		}},
		{name: "node_vmstat_allocstall_normal", grow: func(f *madeFleet, i int) (float64, bool) {
			if f.illHost(i) {
				return 600, true
			}
			return 0.5, i%2 == 0
		}},
		{name: "node_pressure_cpu_waiting_seconds_total", grow: steady(2)},
		{name: "node_pressure_io_waiting_seconds_total", grow: steady(1)},
		{name: "node_procs_running", level: 2},
		{name: "node_forks_total", grow: steady(300)},
		{name: "node_vmstat_pswpin", grow: steady(0.1)},
		{name: "node_netstat_TcpExt_ListenOverflows", grow: steady(0.1)},
		{name: "node_time_clocksource_current_info", labels: `clocksource="tsc"`, level: 1},
	}
	for cpu := range 4 {
		m = append(m, madeMetric{name: "node_cpu_seconds_total",
			labels: fmt.Sprintf(`cpu="%d",mode="idle"`, cpu), grow: steady(40)},
			madeMetric{name: "node_cpu_seconds_total", labels: fmt.Sprintf(`cpu="%d",mode="steal"`,
				cpu), grow: steady(0.2)})
	}
	return m
}

func containerMetrics() []madeMetric {
	ill := func(sick, well float64) func(f *madeFleet, i int) (float64, bool) {
		return func(f *madeFleet, i int) (float64, bool) {
			if f.illContainer(i) {
				return sick * (1 + float64(i)/1000), true
			}
			return well, true
		}
	}
	return []madeMetric{
		{name: "container_cpu_cfs_throttled_seconds_total", grow: ill(20, 0.05)},
		{name: "container_cpu_cfs_throttled_periods_total", grow: ill(360, 2)},
		{name: "container_cpu_cfs_periods_total", grow: steady(600)},
		{name: "container_cpu_usage_seconds_total", grow: steady(12)},
	}
}

func hostLabels(f *madeFleet, i int) string {
	return fmt.Sprintf(`cluster="c%d",job="node",instance="host-%d:9100"`, i*10/f.hosts, i)
}

func containerLabels(_ *madeFleet, i int) string {
	ns := i / 100 % 50 // a workload has 100 pods
	return fmt.Sprintf(`cluster="c%d",namespace="ns%d",pod="app%d-7d9f%06x-%05d",container="app"`,
		i/100%10, ns, i/100, 0xabc000+i/100, i)
}

// each gives all series, metric by metric.
func (f *madeFleet) each(do func(name, labels string, value func(step int) float64) error) error {
	for _, kind := range []struct {
		n       int
		labels  func(*madeFleet, int) string
		metrics []madeMetric
	}{{f.hosts, hostLabels, hostMetrics()}, {f.containers, containerLabels, containerMetrics()}} {
		for k := range kind.metrics {
			m := &kind.metrics[k]
			for i := range kind.n {
				grow, ok := 0.0, true
				if m.grow != nil {
					grow, ok = m.grow(f, i)
				}
				if !ok {
					continue
				}
				l := kind.labels(f, i)
				if m.labels != "" {
					l += "," + m.labels
				}
				if err := do(m.name, l, func(step int) float64 { return m.level + grow*float64(step) }); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// importLines writes the series as VictoriaMetrics imports them, a line of JSON each.
func (f *madeFleet) importLines(w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<20)
	var times []byte
	for i := range madeSteps + 1 {
		if i > 0 {
			times = append(times, ',')
		}
		times = strconv.AppendInt(times, f.end.Add(time.Duration(i-madeSteps)*time.Minute).UnixMilli(), 10)
	}
	var line []byte
	err := f.each(func(name, labels string, value func(int) float64) error {
		line = append(append(line[:0], `{"metric":{"__name__":"`...), name...)
		line = append(line, '"')
		line = append(line, jsonLabels(labels)...)
		line = append(line, `},"values":[`...)
		for i := range madeSteps + 1 {
			if i > 0 {
				line = append(line, ',')
			}
			line = strconv.AppendFloat(line, value(i), 'g', 10, 64)
		}
		line = append(append(append(line, `],"timestamps":[`...), times...), "]}\n"...)
		_, err := b.Write(line)
		return err
	})
	return errors.Join(err, b.Flush())
}

// jsonLabels turns a="b" into ,"a":"b".
func jsonLabels(labels string) []byte {
	out := []byte{',', '"'}
	quoted := false
	for i := range len(labels) {
		switch c := labels[i]; {
		case c == '=' && !quoted:
			out = append(out, '"', ':')
		case c == ',' && !quoted:
			out = append(out, ',', '"')
		case c == '"':
			quoted = !quoted
			out = append(out, c)
		default:
			out = append(out, c)
		}
	}
	return out
}

// openMetrics writes the series as promtool takes them.
func (f *madeFleet) openMetrics(w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<20)
	last := ""
	var line []byte
	err := f.each(func(name, labels string, value func(int) float64) error {
		if name != last {
			last = name
			fmt.Fprintf(b, "# TYPE %s unknown\n", name)
		}
		for i := range madeSteps + 1 {
			line = append(append(append(append(line[:0], name...), '{'), labels...), "} "...)
			line = append(strconv.AppendFloat(line, value(i), 'g', 10, 64), ' ')
			line = append(strconv.AppendInt(line, f.end.Add(time.Duration(i-madeSteps)*time.Minute).Unix(), 10), '\n')
			if _, err := b.Write(line); err != nil {
				return err
			}
		}
		return nil
	})
	_, _ = b.WriteString("# EOF\n")
	return errors.Join(err, b.Flush())
}

// fleetEngine is an engine, and how it is filled.
type fleetEngine struct {
	name              string
	hosts, containers int
	start             func(ctx context.Context, dir string, f *madeFleet) (address string, pid int,
		stop func(), err error)
}

var fleetEngines = []*fleetEngine{
	{"victoria-metrics", 10000, 50000, startVictoria},
	{"prometheus", 2000, 10000, startPrometheus},
}

func startVictoria(ctx context.Context, dir string, f *madeFleet) (string, int, func(), error) {
	address, pid, stop, err := startEngine(ctx, "victoria-metrics", "-storageDataPath="+dir,
		"-httpListenAddr=ADDRESS", "-search.latencyOffset=1s", "-retentionPeriod=1y")
	if err != nil {
		return "", 0, nil, err
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(f.importLines(w)) }()
	resp, err := http.Post("http://"+address+"/api/v1/import", "application/json", r)
	if err == nil && resp.StatusCode/100 != 2 {
		err = errors.New("import: " + resp.Status)
	}
	if err == nil {
		resp.Body.Close()
		resp, err = http.Get("http://" + address + "/internal/force_flush")
	}
	if err != nil {
		stop()
		return "", 0, nil, err
	}
	resp.Body.Close()
	time.Sleep(5 * time.Second) // it merges what was imported; that is no question's CPU
	return address, pid, stop, nil
}

func startPrometheus(ctx context.Context, dir string, f *madeFleet) (string, int, func(), error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", 0, nil, err
	}
	om, config, tsdb := filepath.Join(dir, "samples.om"), filepath.Join(dir, "prometheus.yml"),
		filepath.Join(dir, "tsdb")
	file, err := os.Create(om)
	if err == nil {
		err = errors.Join(f.openMetrics(file), file.Close(), os.WriteFile(config, nil, 0o600))
	}
	if err != nil {
		return "", 0, nil, err
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "promtool", "tsdb", "create-blocks-from", "openmetrics", om, tsdb)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return "", 0, nil, fmt.Errorf("promtool: %w: %.500s", err, out.String())
	}
	os.Remove(om)
	return startEngine(ctx, "prometheus", "--config.file="+config, "--storage.tsdb.path="+tsdb,
		"--storage.tsdb.retention.time=100y", "--web.listen-address=ADDRESS")
}

// startEngine starts an engine on loopback, and waits until it answers.
func startEngine(ctx context.Context, name string, args ...string) (address string, pid int, stop func(), err error) {
	if _, err := exec.LookPath(name); err != nil {
		return "", 0, nil, fmt.Errorf("%s is not there: apt-get install prometheus victoria-metrics: %w", name, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", 0, nil, err
	}
	address = l.Addr().String()
	l.Close()
	for i, a := range args {
		args[i] = string(bytes.ReplaceAll([]byte(a), []byte("ADDRESS"), []byte(address)))
	}
	cmd := exec.CommandContext(ctx, name, args...)
	if err := cmd.Start(); err != nil {
		return "", 0, nil, err
	}
	stop = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	for range 600 {
		if resp, err := http.Get("http://" + address + "/api/v1/query?query=1"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return address, cmd.Process.Pid, stop, nil
			}
		}
		select {
		case <-ctx.Done():
			stop()
			return "", 0, nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	stop()
	return "", 0, nil, fmt.Errorf("%s does not answer", name)
}
