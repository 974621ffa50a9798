package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

const overheadUsage = `usage: bench overhead [--pairs 20] [--window 1.5s] [--settle 2.5s] [--only NAMES] [--load=false] [--server=false]

Measures what recording costs; needs root.

First a Go HTTP server runs under load, by wrk where it is installed, else by a generator of our own. Measured is
its CPU time (user and system) per request while a recorder is attached, over that without one in the windows
just before and after. The table has the median of all pairs, and their middle half. perf and libbpf-tools'
offcputime are measured in the same run where they are installed.
Then a program does nothing but switch threads, 30 000 and 200 000 times a second. Measured are the recorder's
own CPU time and memory, what it lost, the case and its explanation.

--settle is how long a recorder is attached before it is measured: whystall keeps its --budget by then.
--only measures some of the recorders: nostacks,stacks,perf,perf-all,offcputime,trace.
`

// attachable is a recorder which can be attached to the server.
type attachable struct {
	key, name string
	goal      float64 // limit of the CPU time per request, over that without it; 0: no goal
	args      func(pid int, file string) []string
	ready     func(file string) bool // reports whether it records; nil: when it has settled
	why       string                 // why it was not measured; "": it was
	lowered   map[string]int         // detail which it gave up, numbers aside, and in how many runs
	ratios    []float64
	cpus      []float64 // how many CPUs it used itself
}

func recorders(whystall, url string) []*attachable {
	record := func(more ...string) func(int, string) []string {
		return func(pid int, file string) []string {
			return append([]string{whystall, "record", "--pid", strconv.Itoa(pid), "--for", "10m",
				"--force", "-o", file}, more...)
		}
	}
	streaming := func(file string) bool {
		st, err := os.Stat(filepath.Join(file+".part", "kernel.stream"))
		return err == nil && st.Size() > 0
	}
	perf := func(target ...string) func(int, string) []string {
		return func(pid int, file string) []string {
			a := []string{"perf", "record", "-q", "-g", "-e", "sched:sched_switch", "-o", file}
			if len(target) > 0 {
				return append(a, target...)
			}
			return append(a, "-p", strconv.Itoa(pid))
		}
	}
	l := []*attachable{
		{key: "nostacks", name: "whystall, without stacks", goal: 1.03,
			args: record("--no-probe", "--no-stacks"), ready: streaming},
		{key: "stacks", name: "whystall, with stacks", goal: 1.06, args: record("--no-probe"), ready: streaming},
		{key: "trace", name: "whystall, with the Go trace", args: record("--pprof", url), ready: streaming},
		{key: "perf", name: "perf record -g, sched_switch, -p", args: perf()},
		{key: "perf-all", name: "perf record -g, sched_switch, -a", args: perf("-a")},
		{key: "offcputime", name: "offcputime -p", args: func(pid int, _ string) []string {
			return []string{"offcputime", "-p", strconv.Itoa(pid), "600"}
		}},
	}
	for _, a := range l {
		a.lowered = map[string]int{}
		if _, err := exec.LookPath(a.args(1, "x")[0]); err != nil {
			a.why = "it is not installed"
		}
	}
	return l
}

func overhead(ctx context.Context, args []string, out, _ io.Writer) error {
	fs := flag.NewFlagSet("overhead", flag.ContinueOnError)
	fs.Usage = func() { fmt.Fprint(fs.Output(), overheadUsage) }
	pairs := fs.Int("pairs", 20, "")
	window := fs.Duration("window", 1500*time.Millisecond, "")
	settle := fs.Duration("settle", 2500*time.Millisecond, "")
	only := fs.String("only", "", "")
	load := fs.Bool("load", true, "")
	server := fs.Bool("server", true, "")
	if err := fs.Parse(args); err != nil || fs.NArg() > 0 || *pairs < 1 {
		return errors.New("wrong usage")
	}
	tmp, err := os.MkdirTemp("", "whystall-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	whystall, err := buildWhystall(ctx, tmp)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, %s, %d CPUs, %s\n", time.Now().UTC().Format("2006-01-02"),
		runtime.Version(), runtime.NumCPU(), cpuModel())
	if *server {
		if err := measureServer(ctx, out, whystall, tmp, *pairs, *window, *settle, *only); err != nil {
			return err
		}
	}
	if *load {
		for _, rate := range []int{30_000, 200_000} {
			if err := measureSwitches(ctx, out, whystall, tmp, rate); err != nil {
				return err
			}
		}
	}
	return nil
}

// measureServer measures the server with and without each recorder, and prints the table.
func measureServer(ctx context.Context, out io.Writer, whystall, tmp string, pairs int, window,
	settle time.Duration, only string) error {
	srv, err := startHelper(ctx, "serve", "-")
	if err != nil {
		return err
	}
	defer srv.end()
	url := "http://" + srv.says["addr"] + "/"
	stop, sender, err := startLoad(ctx, url)
	if err != nil {
		return err
	}
	defer stop()
	all := recorders(whystall, url)
	if only != "" {
		all = slices.DeleteFunc(all,
			func(a *attachable) bool { return !slices.Contains(strings.Split(only, ","), a.key) })
	}
	if err := pause(ctx, time.Second); err != nil {
		return err
	}
	switches, started := contextSwitches(), time.Now()
	measure := func() (float64, error) { return srv.perRequest(ctx, window) }
	bare, err := attachEach(ctx, all, srv.pid, tmp, pairs, settle, measure)
	if err != nil {
		return err
	}
	rate := float64(contextSwitches()-switches) / time.Since(started).Seconds()
	low, mid, high := quartiles(bare)
	fmt.Fprintf(out, "\nGo HTTP server, %s; %.1f us of CPU per request (%.1f to %.1f); %.0f switches/s on the machine; pairs of %s\n", sender, mid/1e3, low/1e3, high/1e3, rate, window)
	printRecorders(out, all)
	return nil
}

// perRequest is the CPU time in ns that the server took for each request of a window.
func (h *helper) perRequest(ctx context.Context, window time.Duration) (float64, error) {
	a, err := h.ask()
	if err != nil {
		return 0, err
	}
	if err := pause(ctx, window); err != nil {
		return 0, err
	}
	b, err := h.ask()
	if n := b["requests"] - a["requests"]; err == nil && n > 0 {
		return float64(b["cpu"]-a["cpu"]) / float64(n), nil
	}
	return 0, errors.Join(err, errors.New("the server answered no request"))
}

// attachEach attaches one recorder after the other, in turning order, and fills their ratios. It
// gives what was measured without any.
func attachEach(ctx context.Context, all []*attachable, pid int, tmp string, pairs int,
	settle time.Duration, measure func() (float64, error)) (bare []float64, err error) {
	before, err := measure()
	if err != nil {
		return nil, err
	}
	for i := range pairs {
		order := slices.Clone(all)
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, a := range order {
			if a.why != "" {
				continue
			}
			file := filepath.Join(tmp, a.key+".out")
			with, err := a.attached(ctx, pid, file, settle, measure)
			if err != nil && ctx.Err() == nil {
				a.why = err.Error()
				continue
			}
			if err == nil {
				err = pause(ctx, settle/5)
			}
			if err != nil {
				return nil, err
			}
			after, err := measure()
			if err != nil {
				return nil, err
			}
			bare = append(bare, after)
			a.ratios = append(a.ratios, with/((before+after)/2))
			before = after
		}
	}
	return bare, nil
}

func printRecorders(out io.Writer, all []*attachable) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, strings.Repeat(" ", nameWidth)+"\tCPU per request\tmiddle half\tpairs\town CPUs\tgoal\t")
	for _, a := range all {
		if a.why != "" && len(a.ratios) == 0 {
			fmt.Fprintf(w, "%-*s\tnot measured: %s\t\n", nameWidth, a.name, a.why)
			continue
		}
		low, mid, high := quartiles(a.ratios)
		_, cpus, _ := quartiles(a.cpus)
		goal := ""
		if a.goal > 0 {
			goal = fmt.Sprintf("%+.0f %%: %s", 100*(a.goal-1), met(mid <= a.goal))
		}
		fmt.Fprintf(w, "%-*s\t%+.1f %%\t%+.1f to %+.1f %%\t%d\t%.3f\t%s\t\n", nameWidth, a.name,
			100*(mid-1), 100*(low-1), 100*(high-1), len(a.ratios), cpus, goal)
	}
	w.Flush()
	for _, a := range all {
		for _, what := range slices.Sorted(maps.Keys(a.lowered)) {
			n := a.lowered[what]
			fmt.Fprintf(out, "%s: detail lowered in %d of %d: %s\n", a.name, n, len(a.ratios), what)
		}
	}
}

func met(ok bool) string {
	if ok {
		return "met"
	}
	return "MISSED"
}

// attached measures while the recorder is attached to the server.
func (a *attachable) attached(ctx context.Context, pid int, file string, settle time.Duration,
	measure func() (float64, error)) (float64, error) {
	args := a.args(pid, file)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var output strings.Builder
	cmd.Stderr = &output
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for t := time.Now(); a.ready != nil && !a.ready(file) && time.Since(t) < 10*time.Second; {
		time.Sleep(20 * time.Millisecond)
	}
	err := pause(ctx, settle)
	var c float64
	if err == nil {
		cpu, at := processCPU(cmd.Process.Pid), time.Now()
		c, err = measure()
		if used := processCPU(cmd.Process.Pid); used >= cpu && cpu >= 0 {
			a.cpus = append(a.cpus, float64(used-cpu)/float64(time.Since(at)))
		}
	}
	select {
	case e := <-ended:
		return 0, fmt.Errorf("it ended early: %v %s", e, lastLine(output.String()))
	default:
	}
	cmd.Process.Signal(os.Interrupt)
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		cmd.Process.Kill()
		<-ended
	}
	if k, e := kernelCost(file); e == nil && k.Lowered != "" {
		for what := range strings.SplitSeq(number.ReplaceAllString(k.Lowered, "N"), "; ") {
			a.lowered[what]++
		}
	}
	return c, err
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// helper is this program as a child, which says what it did when it is asked.
type helper struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	pid  int
	says map[string]string // what it printed when it was ready
}

func startHelper(ctx context.Context, what, arg string) (*helper, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	h, err := startCommand(exec.CommandContext(ctx, self, "child", what, arg))
	if err != nil {
		return nil, err
	}
	return h, h.hear()
}

// startCommand starts a program that ends when its standard input does.
func startCommand(cmd *exec.Cmd) (h *helper, err error) {
	h = &helper{cmd: cmd}
	h.cmd.Stderr = os.Stderr
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	h.out, h.pid = bufio.NewScanner(p), h.cmd.Process.Pid
	return h, nil
}

// hear waits for what the program says when it is ready.
func (h *helper) hear() error {
	if !h.out.Scan() {
		h.end()
		return fmt.Errorf("start %s: it said nothing", strings.Join(h.cmd.Args, " "))
	}
	h.says = parseSays(h.out.Text())
	return nil
}

// ask gives the child's numbers of now.
func (h *helper) ask() (map[string]int64, error) {
	if _, err := io.WriteString(h.in, "\n"); err != nil {
		return nil, err
	}
	if !h.out.Scan() {
		return nil, errors.New("the child has ended")
	}
	m := map[string]int64{}
	for k, v := range parseSays(h.out.Text()) {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return nil, err
		}
		m[k] = n
	}
	return m, nil
}

func (h *helper) end() {
	h.in.Close()
	h.cmd.Process.Kill()
	h.cmd.Wait()
}

// startLoad sends requests over 32 connections as fast as the server answers them, and names their
// sender.
func startLoad(ctx context.Context, url string) (stop func(), sender string, err error) {
	if _, err := exec.LookPath("wrk"); err != nil {
		h, err := startHelper(ctx, "load", url)
		if err != nil {
			return nil, "", err
		}
		return h.end, "32 connections of our own generator", nil
	}
	cmd := exec.CommandContext(ctx, "wrk", "-t1", "-c32", "-d2h", url)
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	return func() { cmd.Process.Kill(); cmd.Wait() }, "wrk -t1 -c32", nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// contextSwitches is how many switches the machine made since its start.
func contextSwitches() int64 {
	b, _ := os.ReadFile("/proc/stat")
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "ctxt "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
			return n
		}
	}
	return 0
}

func ownCPU() int64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}
