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
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

const overheadUsage = `usage: bench overhead [--pairs 20] [--window 1.5s] [--settle 2.5s] [--only NAMES] [--load=false] [--server=false]

What recording costs. A Go HTTP server under load, by wrk where it is installed, else by a generator of our own:
its CPU time (user and system) per request while a recorder is attached, over that without one in the windows
just before and after; the median of all pairs, and their middle half. perf and libbpf-tools' offcputime are
measured in the same run where they are installed. Then a program that does nothing but switch threads, 30 000
and 200 000 times a second: the recorder's own CPU time and memory, what it lost, the case and its explanation.
--settle is how long a recorder has been attached before it is measured: whystall keeps its --budget by then.

As root. --only measures some: nostacks,stacks,perf,perf-all,offcputime,trace.
`

// A recorder that may be attached to the server.
type attachable struct {
	key, name string
	goal      float64 // CPU per request at most this times that without it; 0 no goal
	args      func(pid int, file string) []string
	ready     func(file string) bool // whether it records; nil: when it has settled
	why       string                 // not measured, because
	lowered   map[string]int         // what it gave up or told in part, in how many runs
	ratios    []float64
	own       []float64 // CPUs that it took itself
}

func recorders(whystall, url string) []*attachable {
	record := func(more ...string) func(int, string) []string {
		return func(pid int, file string) []string {
			return append([]string{whystall, "record", "--pid", strconv.Itoa(pid), "--for", "10m", "--force", "-o", file}, more...)
		}
	}
	streaming := func(file string) bool {
		st, err := os.Stat(filepath.Join(file+".part", "kernel.stream"))
		return err == nil && st.Size() > 0
	}
	perf := func(whom ...string) func(int, string) []string {
		return func(pid int, file string) []string {
			a := []string{"perf", "record", "-q", "-g", "-e", "sched:sched_switch", "-o", file}
			if len(whom) > 0 {
				return append(a, whom...)
			}
			return append(a, "-p", strconv.Itoa(pid))
		}
	}
	l := []*attachable{
		{key: "nostacks", name: "whystall, without stacks", goal: 1.03, args: record("--no-probe", "--no-stacks"), ready: streaming},
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
	fmt.Fprintf(out, "%s, %s, %d CPUs, %s\n", time.Now().UTC().Format("2006-01-02"), runtime.Version(), runtime.NumCPU(), cpuModel())
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

func measureServer(ctx context.Context, out io.Writer, whystall, tmp string, pairs int, window, settle time.Duration, only string) error {
	srv, err := startHelper(ctx, "serve", "-")
	if err != nil {
		return err
	}
	defer srv.end()
	url := "http://" + srv.says["addr"] + "/"
	stop, by, err := startLoad(ctx, url)
	if err != nil {
		return err
	}
	defer stop()
	all := recorders(whystall, url)
	if only != "" {
		all = slices.DeleteFunc(all, func(a *attachable) bool { return !slices.Contains(strings.Split(only, ","), a.key) })
	}
	if err := pause(ctx, time.Second); err != nil {
		return err
	}
	var bare []float64
	measure := func() (float64, error) {
		a, err := srv.ask()
		if err != nil {
			return 0, err
		}
		if err := pause(ctx, window); err != nil {
			return 0, err
		}
		b, err := srv.ask()
		if n := b["requests"] - a["requests"]; err == nil && n > 0 {
			return float64(b["cpu"]-a["cpu"]) / float64(n), nil
		}
		return 0, errors.Join(err, errors.New("the server was asked nothing"))
	}
	before, err := measure()
	if err != nil {
		return err
	}
	switches := contextSwitches()
	begun := time.Now()
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
			with, err := a.attached(ctx, srv.pid, file, settle, measure)
			if err != nil && ctx.Err() == nil {
				a.why = err.Error()
				continue
			}
			if err == nil {
				err = pause(ctx, settle/5)
			}
			if err != nil {
				return err
			}
			after, err := measure()
			if err != nil {
				return err
			}
			bare = append(bare, after)
			a.ratios = append(a.ratios, with/((before+after)/2))
			before = after
		}
	}
	rate := float64(contextSwitches()-switches) / time.Since(begun).Seconds()
	low, mid, high := quartiles(bare)
	fmt.Fprintf(out, "\nGo HTTP server, %s; %.1f us of CPU per request (%.1f to %.1f); %.0f switches/s on the machine; pairs of %s\n", by, mid/1e3, low/1e3, high/1e3, rate, window)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, strings.Repeat(" ", nameWidth)+"\tCPU per request\tmiddle half\tpairs\town CPUs\tgoal\t")
	for _, a := range all {
		if a.why != "" && len(a.ratios) == 0 {
			fmt.Fprintf(w, "%-*s\tnot measured: %s\t\n", nameWidth, a.name, a.why)
			continue
		}
		low, mid, high := quartiles(a.ratios)
		_, own, _ := quartiles(a.own)
		goal := ""
		if a.goal > 0 {
			goal = fmt.Sprintf("%+.0f %%: %s", 100*(a.goal-1), met(mid <= a.goal))
		}
		fmt.Fprintf(w, "%-*s\t%+.1f %%\t%+.1f to %+.1f %%\t%d\t%.3f\t%s\t\n", nameWidth, a.name, 100*(mid-1), 100*(low-1), 100*(high-1), len(a.ratios), own, goal)
	}
	w.Flush()
	for _, a := range all {
		for _, what := range slices.Sorted(maps.Keys(a.lowered)) {
			n := a.lowered[what]
			fmt.Fprintf(out, "%s: detail lowered in %d of %d: %s\n", a.name, n, len(a.ratios), what)
		}
	}
	return nil
}

func met(ok bool) string {
	if ok {
		return "met"
	}
	return "MISSED"
}

// attached measures while a records.
func (a *attachable) attached(ctx context.Context, pid int, file string, settle time.Duration, measure func() (float64, error)) (float64, error) {
	args := a.args(pid, file)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var said strings.Builder
	cmd.Stderr = &said
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
			a.own = append(a.own, float64(used-cpu)/float64(time.Since(at)))
		}
	}
	select {
	case e := <-ended:
		return 0, fmt.Errorf("it ended by itself: %v %s", e, lastLine(said.String()))
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
		for what := range strings.SplitSeq(loweredBy.ReplaceAllString(k.Lowered, "$1$2"), "; ") {
			a.lowered[what]++
		}
	}
	return c, err
}

// loweredBy is what differs from run to run.
var loweredBy = regexp.MustCompile(`from [0-9.]+ s on: |(: told) [0-9]+ %( of the time)`)

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// helper is this program as a child: it tells what it did when it is asked.
type helper struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	pid  int
	says map[string]string
}

func startHelper(ctx context.Context, what, arg string) (*helper, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	h := &helper{cmd: exec.CommandContext(ctx, self, "child", what, arg)}
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
	if !h.out.Scan() {
		h.end()
		return nil, fmt.Errorf("start child %s: it said nothing", what)
	}
	h.says = parseSays(h.out.Text())
	return h, nil
}

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

// startLoad asks the server as fast as it answers, over 32 connections.
func startLoad(ctx context.Context, url string) (stop func(), by string, err error) {
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

// contextSwitches is how many the machine made since it began.
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
