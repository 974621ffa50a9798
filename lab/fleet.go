package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/whystall/whystall/lab/settings"
)

// fleetCase has the servers of run fleet, and fleetWait is for how long they are scraped.
const (
	fleetCase = "gomaxprocs-over-quota"
	fleetWait = 80 * time.Second
)

func fleetArgs(ctx context.Context, o options, args []string) int {
	fs := o.flags("run fleet")
	wait := fs.Duration("wait", fleetWait, "")
	if fs.Parse(args) != nil || fs.NArg() > 0 || *wait < 30*time.Second {
		fmt.Fprint(o.stderr, usage)
		return exitUsage
	}
	return o.ended(ctx, "fleet", runFleet(ctx, o, *wait))
}

// fleetTools are the programs that run fleet starts.
var fleetTools = []string{"prometheus", "prometheus-node-exporter"}

func lackedTools() error {
	for _, t := range fleetTools {
		if _, err := exec.LookPath(t); err != nil {
			return skip(t + " is not there: apt-get install " + strings.Join(fleetTools, " "))
		}
	}
	return nil
}

// runFleet shows a fleet of one host.
//
//  1. Two servers run, one with too little quota. A Prometheus scrapes their cgroups and the host.
//  2. whystall fleet says who is ill.
//  3. whystall diagnose proves it there.
func runFleet(ctx context.Context, o options, scraped time.Duration) (err error) {
	if err := lackedTools(); err != nil {
		return err
	}
	dir, remove, err := tempDir()
	if err != nil {
		return err
	}
	defer remove()
	b := newBuilder(dir, o.stdout, o.prebuilt)
	whystall, err := b.whystall(ctx)
	if err != nil {
		return err
	}
	c := find(o.cases, fleetCase)
	sick, twin := loaded(c.variant("healthy"), "starved", 0.1), loaded(c.variant("healthy"), "twin", 8)
	if _, err := b.all(ctx, []chosen{{c, sick}, {c, twin}}); err != nil {
		return err
	}
	var all exporter
	started := time.Now()
	for _, v := range []*Variant{sick, twin} {
		s, err := set(ctx, b, c, v)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.end()) }()
		all = append(all, contained{v.Name + "-server", filepath.Dir(s.joined["server"][0]), s.pid()})
		fmt.Fprintf(o.stdout, "  pid %-7d %s-server: %s\n", s.pid(), v.Name, v.Doc)
	}
	prometheus, stop, err := startPrometheus(ctx, dir, all)
	if err != nil {
		return err
	}
	defer stop()
	fmt.Fprintf(o.stdout, "\nA Prometheus at %s scrapes them and this host for %v.\n", prometheus, scraped)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(scraped):
	}
	named, err := askFleet(ctx, o, whystall, dir, prometheus, scraped)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.stdout, "\nFirst finding %.0f s after the servers started.\n", time.Since(started).Seconds())
	for _, x := range all {
		if x.name == named {
			args := []string{"diagnose", "--pid", strconv.Itoa(x.pid), "--for", "10s", "--no-case"}
			fmt.Fprintf(o.stdout,
				"There is no container here: the process that is called %s has the PID %d.\n\n$ whystall %s\n\n", named, x.pid, strings.Join(args, " "))
			_, err := diagnose(ctx, whystall, args, o.stdout, o.stderr)
			return err
		}
	}
	return fmt.Errorf("whystall fleet named no server; %s-server is ill", sick.Name)
}

// loaded is a variant with more requests, and this quota of CPUs.
func loaded(v *Variant, name string, quota float64) *Variant {
	t := *v
	t.Name, t.Doc = name, fmt.Sprintf("a quota of %g CPUs, 150 requests a second", quota)
	t.Start = append([]Process(nil), v.Start...)
	t.Start[0].Cgroup = settings.Limits{CPU: quota}
	t.Start[1].Args = []string{"clients", "-url", "{server.url}", "-n", "200", "-rate", "150"}
	return &t
}

// startPrometheus starts an exporter of the host, one of the cgroups, and a Prometheus, all on free
// ports of loopback.
func startPrometheus(ctx context.Context, dir string, all exporter) (address string, stop func(), err error) {
	var s servers
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", s.stop, err
	}
	server := &http.Server{Handler: all, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(l) }()
	s.stops = append(s.stops, func() { _ = server.Close() })
	node, err := s.start(ctx, "/metrics", fleetTools[1], "--web.listen-address=PORT")
	if err != nil {
		return "", s.stop, err
	}
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config,
		[]byte(scrapes(strings.TrimPrefix(node, "http://"), l.Addr().String())), 0o600); err != nil {
		return "", s.stop, err
	}
	address, err = s.start(ctx, "/-/ready", fleetTools[0], "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "tsdb"), "--web.listen-address=PORT")
	return address, s.stop, err
}

// scrapes is a configuration of Prometheus.
func scrapes(node, cgroups string) string {
	return fmt.Sprintf("global: {scrape_interval: 5s}\nscrape_configs:\n  - {job_name: node, static_configs: [{targets: [%q]}]}\n  - {job_name: cadvisor, static_configs: [{targets: [%q]}]}\n", node, cgroups)
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// answers waits until a page is there.
func answers(ctx context.Context, page string) error {
	for range 300 {
		if resp, err := http.Get(page); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return errTimeout
}

// askFleet prints what whystall fleet says, and gives the container that it names first. The
// second reading is of the answers that the first one kept.
func askFleet(ctx context.Context, o options, whystall, dir, prometheus string, scraped time.Duration) (string, error) {
	kept := filepath.Join(dir, "answers")
	args := []string{"fleet", "--prom", prometheus, "--since", scraped.Round(time.Second).String(),
		"--at", time.Now().UTC().Format(time.RFC3339)}
	fmt.Fprintf(o.stdout, "\n$ whystall %s\n\n", strings.Join(args, " "))
	if _, err := diagnose(ctx, whystall, append(args, "--record", kept), o.stdout, o.stderr); err != nil {
		return "", err
	}
	var out bytes.Buffer
	if _, err := diagnose(ctx, whystall, []string{"fleet", "--replay", kept, "--format", "json"},
		&out, o.stderr); err != nil {
		return "", err
	}
	return namedIn(out.Bytes())
}

// namedIn gives the container of the first finding about one.
func namedIn(report []byte) (string, error) {
	var r struct {
		Findings []struct {
			Scope   string `json:"scope"`
			Members []struct {
				Labels map[string]string `json:"labels"`
			} `json:"members"`
		} `json:"findings"`
	}
	if err := json.Unmarshal(report, &r); err != nil {
		return "", fmt.Errorf("read what whystall fleet says: %w", err)
	}
	for _, f := range r.Findings {
		if f.Scope == "container" && len(f.Members) > 0 {
			return f.Members[0].Labels["name"], nil
		}
	}
	return "", nil
}
