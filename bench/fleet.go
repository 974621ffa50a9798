package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const fleetUsage = `usage: bench fleet [--engine victoria-metrics|prometheus] [--hosts N] [--containers N] [--format text|json]

Fills an engine with the counters of a fleet (45 minutes, one sample a minute) and asks it with whystall fleet, through
a proxy which measures each question. VictoriaMetrics: 10 000 hosts and 50 000 containers. Prometheus: 2 000 and
10 000. 20 hosts reclaim memory directly and 500 containers are throttled.

Held to: all ill ones are counted and no other; coverage and first stage together take at most 30 s of the engine's CPU,
and each question of a rule at most 1 s; first-stage answers have at most 5 KB; whystall's peak memory is at most
64 MiB, also when the engine answers with 2 GB.
Exit status: 0 all held; 1 not; 2 it could not be measured.
`

// What bench fleet holds whystall fleet to.
const (
	mostEngineCPU = 30 * time.Second
	mostRuleCPU   = time.Second
	mostAnswer    = 5 << 10
	mostMemory    = 64 << 20
)

// fleetScale asks the engines.
func fleetScale(ctx context.Context, args []string, out, progress io.Writer) error {
	fs := flag.NewFlagSet("fleet", flag.ContinueOnError)
	fs.SetOutput(progress)
	fs.Usage = func() { fmt.Fprint(fs.Output(), fleetUsage) }
	engine := fs.String("engine", "", "")
	hosts := fs.Int("hosts", 0, "")
	containers := fs.Int("containers", 0, "")
	format := fs.String("format", "text", "")
	if err := fs.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "whystall-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "whystall")
	build := exec.CommandContext(ctx, "go", "build", "-C", "..", "-o", program, "./cmd/whystall")
	if b, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build whystall: %w: %s", err, b)
	}
	var rows []*fleetRow
	for _, e := range fleetEngines {
		if *engine != "" && *engine != e.name {
			continue
		}
		s := fleetSize{hosts: e.hosts, containers: e.containers, illHosts: 20, illContainers: 500}
		if *hosts > 0 {
			s.hosts = *hosts
		}
		if *containers > 0 {
			s.containers = *containers
		}
		if s.hosts < 2*s.illHosts || s.containers < s.illContainers {
			return fmt.Errorf("--hosts %d --containers %d: want at least %d and %d", s.hosts,
				s.containers, 2*s.illHosts, s.illContainers)
		}
		r, err := measureFleet(ctx, program, filepath.Join(dir, e.name), e, s, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return fmt.Errorf("--engine %s: want victoria-metrics or prometheus", *engine)
	}
	if *format == "json" {
		err = json.NewEncoder(out).Encode(rows)
	} else {
		printFleet(out, rows)
	}
	if err == nil && slices.ContainsFunc(rows, func(r *fleetRow) bool { return len(r.Broken) > 0 }) {
		return errWorse
	}
	return err
}

// fleetRow is what one engine's run took.
type fleetRow struct {
	Engine     string        `json:"engine"`
	Size       string        `json:"size"`
	Filled     time.Duration `json:"filled_ns"`
	Ill        []string      `json:"ill"` // per rule: ill of seen
	Findings   int           `json:"findings"`
	Questions  int           `json:"questions"`
	FirstCPU   time.Duration `json:"first_stage_cpu_ns"` // with coverage
	SecondCPU  time.Duration `json:"second_stage_cpu_ns"`
	Wall       time.Duration `json:"wall_ns"`
	RuleCPU    time.Duration `json:"largest_rule_cpu_ns"` // of one question
	RuleName   string        `json:"largest_rule"`
	Answer     int64         `json:"largest_first_answer_bytes"`
	Memory     int64         `json:"peak_memory_bytes"`
	MemoryHuge int64         `json:"peak_memory_bytes_with_2_gb"`
	EngineMem  int64         `json:"engine_memory_bytes"`
	Broken     []string      `json:"broken"`
	Costly     []question    `json:"costly"`
}

// measureFleet fills one engine, and asks it.
func measureFleet(ctx context.Context, program, dir string, e *fleetEngine, s fleetSize,
	progress io.Writer) (*fleetRow, error) {
	end := time.Now().Add(-2 * time.Minute).Truncate(time.Minute)
	r := &fleetRow{Engine: e.name, Size: fmt.Sprintf("%d hosts, %d containers", s.hosts, s.containers)}
	fmt.Fprintf(progress, "%s: %s\n", e.name, r.Size)
	start := time.Now()
	address, pid, stop, err := e.start(ctx, dir, &madeFleet{fleetSize: s, end: end})
	if err != nil {
		return nil, err
	}
	defer stop()
	r.Filled = time.Since(start)
	p, err := newProxy(address, pid)
	if err != nil {
		return nil, err
	}
	defer p.close()
	args := []string{"fleet", "--prom", p.address, "--at", end.UTC().Format(time.RFC3339),
		"--since", "30m", "--timeout", "60s", "--max-samples", "100000000", "--format", "json"}
	var dry fleetAnswer
	if _, err := runFleet(ctx, program, append(slices.Clone(args), "--dry-run"), &dry); err != nil {
		return nil, err
	}
	p.take()
	var a fleetAnswer
	start = time.Now()
	if r.Memory, err = runFleet(ctx, program, args, &a); err != nil {
		return nil, err
	}
	r.Wall = time.Since(start)
	r.EngineMem = residentPeak(pid)
	r.count(p.take(), &dry)
	r.hold(&a, s)
	p.huge.Store(true)
	var huge fleetAnswer
	if r.MemoryHuge, err = runFleet(ctx, program, args, &huge); err != nil {
		return nil, err
	}
	for name, m := range map[string]int64{"": r.Memory, " with an answer of 2 GB": r.MemoryHuge} {
		if m > mostMemory {
			r.Broken = append(r.Broken, fmt.Sprintf("peak memory%s: %d MiB", name, m>>20))
		}
	}
	return r, nil
}

// fleetAnswer is what is read of whystall's JSON.
type fleetAnswer struct {
	Findings []struct {
		Rule       string `json:"rule"`
		Everywhere struct {
			Ill  int `json:"ill"`
			Seen int `json:"seen"`
		} `json:"everywhere"`
	} `json:"findings"`
	NotChecked []struct {
		Rule string `json:"rule"`
		Why  string `json:"why"`
	} `json:"not_checked"`
	DryRun []struct {
		Query   string `json:"query"`
		Purpose string `json:"purpose"`
	} `json:"dry_run"`
}

// runFleet runs whystall, and gives its peak memory.
func runFleet(ctx context.Context, program string, args []string, to *fleetAnswer) (int64, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	if err := json.Unmarshal(out.Bytes(), to); err != nil {
		return 0, fmt.Errorf("read what whystall says: %w: %s", err, errs.Bytes())
	}
	return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10, nil
}

// count adds up what the questions took. Of the first stage are those that sum up members of the
// whole fleet, and those of coverage, which come before.
func (r *fleetRow) count(qs []question, dry *fleetAnswer) {
	r.Questions = len(qs)
	rule := ""
	for i := range qs {
		q := &qs[i]
		for _, d := range dry.DryRun {
			if q.Query == d.Query {
				rule = d.Purpose
			}
		}
		summed := slices.ContainsFunc([]string{"topk(", "count(", "quantile("},
			func(s string) bool { return strings.HasPrefix(q.Query, s) })
		if q.First = summed || rule == ""; !q.First {
			r.SecondCPU += q.CPU
			continue
		}
		r.FirstCPU += q.CPU
		r.Answer = max(r.Answer, q.Bytes)
		if q.Rule = rule; rule != "" && q.CPU > r.RuleCPU {
			r.RuleCPU, r.RuleName = q.CPU, rule
		}
	}
	slices.SortFunc(qs, func(a, b question) int { return int(b.CPU - a.CPU) })
	r.Costly = qs[:min(len(qs), 10)]
}

// hold compares what was found with what was made.
func (r *fleetRow) hold(a *fleetAnswer, s fleetSize) {
	broken := func(format string, args ...any) { r.Broken = append(r.Broken, fmt.Sprintf(format, args...)) }
	want := map[string]int{"direct-reclaim-host": s.illHosts, "cpu-throttled": s.illContainers}
	got := map[string]int{}
	r.Findings = len(a.Findings)
	for _, f := range a.Findings {
		if got[f.Rule] == 0 {
			r.Ill = append(r.Ill, fmt.Sprintf("%s %d of %d", f.Rule, f.Everywhere.Ill, f.Everywhere.Seen))
		}
		got[f.Rule] = f.Everywhere.Ill
	}
	for rule, n := range want {
		if got[rule] != n {
			broken("%s: %d found, %d are ill", rule, got[rule], n)
		}
	}
	for rule := range got {
		if want[rule] == 0 {
			broken("%s: found, and nobody has it", rule)
		}
	}
	if r.FirstCPU > mostEngineCPU {
		broken("coverage and first stage: %v of the engine's CPU", r.FirstCPU)
	}
	if r.RuleCPU > mostRuleCPU {
		broken("%s: %v of the engine's CPU", r.RuleName, r.RuleCPU)
	}
	if r.Answer > mostAnswer {
		broken("a first-stage answer has %d bytes", r.Answer)
	}
}

func printFleet(w io.Writer, rows []*fleetRow) {
	line := func(name string, value func(*fleetRow) string) {
		fmt.Fprintf(w, "| %-36s |", name)
		for _, r := range rows {
			fmt.Fprintf(w, " %s |", value(r))
		}
		fmt.Fprintln(w)
	}
	short := func(d time.Duration) string { return d.Round(10 * time.Millisecond).String() }
	mib := func(n int64) string { return strconv.FormatInt(n>>20, 10) + " MiB" }
	line("", func(r *fleetRow) string { return r.Engine })
	line("---", func(*fleetRow) string { return "---" })
	line("members", func(r *fleetRow) string { return r.Size })
	line("found", func(r *fleetRow) string { return strings.Join(r.Ill, "; ") })
	line("engine's CPU, coverage + first stage", func(r *fleetRow) string { return short(r.FirstCPU) })
	line("engine's CPU, the worst members", func(r *fleetRow) string { return short(r.SecondCPU) })
	line("dearest question of a rule", func(r *fleetRow) string { return short(r.RuleCPU) })
	line("questions, time of all",
		func(r *fleetRow) string { return fmt.Sprintf("%d, %s", r.Questions, short(r.Wall)) })
	line("largest first-stage answer", func(r *fleetRow) string { return fmt.Sprintf("%d bytes", r.Answer) })
	line("whystall's peak memory", func(r *fleetRow) string { return mib(r.Memory) })
	line("the same with an answer of 2 GB", func(r *fleetRow) string { return mib(r.MemoryHuge) })
	line("engine's peak memory", func(r *fleetRow) string { return mib(r.EngineMem) })
	for _, r := range rows {
		for _, b := range r.Broken {
			fmt.Fprintf(w, "BROKEN %s: %s\n", r.Engine, b)
		}
		for _, q := range r.Costly {
			fmt.Fprintf(w, "  %s %6.0f ms %5d B  %.150s\n", r.Engine, float64(q.CPU)/1e6, q.Bytes, q.Query)
		}
	}
}

// residentPeak is the peak of a process' resident memory; 0 where the kernel does not say.
func residentPeak(pid int) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := strings.Cut(string(b), "VmHWM:")
	f := strings.Fields(after)
	if len(f) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(f[0], 10, 64)
	return n << 10
}
