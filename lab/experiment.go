package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// experiment runs a case's program in several ways, one after the other. The published case has a
// figure for each.
type experiment struct {
	intro   string
	program string
	unit    string
	creates bool // the program says how long the creation of threads took
	rows    []experimentRow
}

type experimentRow struct {
	name string
	args []string
}

var experiments = map[string]experiment{
	"thread-churn": {
		intro:   "A unit of work copies 1 000 000 bytes 20 times. The workers do as many as they can.",
		program: "churn.cc", unit: "units", creates: true,
		rows: []experimentRow{
			{"40 workers", []string{"pool", "40"}},
			{"40 workers, 1 000 threads wait", []string{"pool", "40", "1000"}},
			{"40 workers, a new thread a unit", []string{"spawn", "40"}},
			{"120 workers, a new thread a unit", []string{"spawn", "120"}},
			{"500 workers, a new thread a unit", []string{"spawn", "500"}},
			{"bursts of 200 new threads", []string{"burst", "200"}},
		},
	},
	"runqueue-saturation": {
		intro:   "A thread a CPU counts to 50 000 000 again and again, beside others.",
		program: "count.cc", unit: "counts",
		rows: []experimentRow{
			{"alone", []string{"{cpus}", "waiting", "0"}},
			{"beside 5 000 that wait", []string{"{cpus}", "waiting", "5000"}},
			{"beside 500 that yield", []string{"{cpus}", "yielding", "500"}},
			{"beside 500: look 60 us, yield", []string{"{cpus}", "yielding", "500", "60"}},
			{"beside 60: look 40 us, sleep", []string{"{cpus}", "polling", "60", "40"}},
		},
	},
}

func experimentArgs(ctx context.Context, o options, args []string) int {
	fs := o.flags("experiment")
	d := fs.Duration("for", 2*time.Second, "")
	c := find(o.cases, args[0])
	if fs.Parse(args[1:]) != nil {
		return exitUsage
	}
	if c == nil || len(experiments[c.Name].rows) == 0 || fs.NArg() > 0 || *d < 100*time.Millisecond {
		fmt.Fprintf(o.stderr, "lab: want thread-churn or runqueue-saturation, and --for of at least 100ms\n%s", usage)
		return exitUsage
	}
	dir, remove, err := tempDir()
	if err == nil {
		defer remove()
		err = tryAll(ctx, newBuilder(dir, o.stderr, o.prebuilt), c, experiments[c.Name], *d, o.stdout)
	}
	return o.ended(ctx, c.Name, err)
}

// measured is the result of one way.
type measured struct {
	seen
	glance   float64 // threads in state R, read one after another as top does; the mean of the glances
	runnable float64 // threads of the machine which run or could, at one instant; the mean
}

// tryAll runs the ways, each for d, and prints their table and plots.
func tryAll(ctx context.Context, b *builder, c *Case, e experiment, d time.Duration, w io.Writer) error {
	program, err := b.program(ctx, c, e.program)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nthe published experiment, %v each, on %d CPUs:\n%s\n\n", d, runtime.NumCPU(), wrap(e.intro, 98))
	row := func(name, cpus, rate, p50, p99, created50, created99, glance, fact string) {
		fmt.Fprintf(w, "  %-33s %5s %7s %8s %8s ", name, cpus, rate, p50, p99)
		if e.creates {
			fmt.Fprintf(w, "%8s %8s ", created50, created99)
		}
		fmt.Fprintf(w, "%8s %8s\n", glance, fact)
	}
	row("", "CPUs", e.unit, e.unit, "", "created", "", "running,", "running,")
	row("", "used", "/s", "p50", "p99", "p50", "p99", "a glance", "in fact")
	all := make([]*measured, len(e.rows))
	for i, r := range e.rows {
		m, err := tryOne(ctx, program, r, d)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		all[i] = m
		f := m.figures[0]
		p50, p99 := "-", "-"
		if f.N > 0 {
			p50, p99 = short(f.P50), short(f.P99)
		}
		created50, created99 := "-", "-"
		if len(m.figures) > 1 && m.figures[1].N > 0 {
			created50, created99 = short(m.figures[1].P50), short(m.figures[1].P99)
		}
		row(r.name, fmt.Sprintf("%.2f", cores(m)), fmt.Sprintf("%.0f", rate(m)), p50, p99,
			created50, created99, fmt.Sprintf("%.0f", m.glance), fmt.Sprintf("%.0f", m.runnable))
	}
	fmt.Fprintf(w, "\n  running, a glance: threads of the process in state R, read one after another as top does; in fact: threads\n"+
		"  of the whole machine that run or want to run at one instant (/proc/loadavg).\n")
	plot(w, "CPUs used", e.rows, all, cores, "%.2f")
	plot(w, e.unit+"/s", e.rows, all, rate, "%.0f")
	if !e.creates {
		plot(w, "ms a count, p50", e.rows, all,
			func(m *measured) float64 { return float64(m.figures[0].P50) / 1e6 }, "%.1f")
		return nil
	}
	plot(w, "ms to create a thread until it runs, p99", e.rows, all, func(m *measured) float64 {
		if len(m.figures) < 2 {
			return 0
		}
		return float64(m.figures[1].P99) / 1e6
	}, "%.1f")
	return nil
}

func cores(m *measured) float64 { return m.used.cpu.Seconds() / m.wall.Seconds() }

func rate(m *measured) float64 { return float64(m.figures[0].N) / m.figures[0].Wall.Seconds() }

func tryOne(ctx context.Context, program string, r experimentRow, d time.Duration) (*measured, error) {
	args, err := fill(r.args, map[string]string{"cpus": strconv.Itoa(runtime.NumCPU())})
	if err != nil {
		return nil, err
	}
	c, err := start(ctx, &Process{Name: r.name}, program, args, nil)
	if err != nil {
		return nil, err
	}
	defer c.stop()
	if err := wait(ctx, c, d/4); err != nil {
		return nil, err
	}
	s := &stage{child: map[string]*child{"server": c}, order: []*child{c}}
	stop, done := make(chan struct{}), make(chan struct{})
	var m measured
	go func() {
		defer close(done)
		m.glance, m.runnable = glances(c.pid, stop)
	}()
	x, err := s.watch(ctx, d)
	close(stop)
	<-done
	if err != nil {
		return nil, err
	}
	if len(x.figures) == 0 {
		return nil, errors.New("it gave no figures")
	}
	m.seen = *x
	return &m, nil
}

// glances reads the states of a process' threads five times a second, as top does, until stop is
// closed. In between it reads what the kernel counts.
func glances(pid int, stop <-chan struct{}) (glance, runnable float64) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var looks, instants int
	for n := 0; ; n++ {
		select {
		case <-stop:
			return glance / max(1, float64(looks)), runnable / max(1, float64(instants))
		case <-tick.C:
		}
		if n%10 == 0 {
			glance += float64(runningNow(pid))
			looks++
		}
		if b, err := os.ReadFile("/proc/loadavg"); err == nil {
			if f := strings.Fields(string(b)); len(f) > 3 {
				running, _, _ := strings.Cut(f[3], "/")
				k, _ := strconv.Atoi(running)
				runnable += float64(max(0, k-1)) // without this thread
				instants++
			}
		}
	}
}

func runningNow(pid int) (n int) {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	tasks, _ := os.ReadDir(dir)
	for _, t := range tasks {
		b, _ := os.ReadFile(filepath.Join(dir, t.Name(), "stat"))
		if i := strings.LastIndex(string(b), ") "); i >= 0 && i+2 < len(b) && b[i+2] == 'R' {
			n++
		}
	}
	return n
}

// plot draws one bar for each row. The largest has the whole width.
func plot(w io.Writer, title string, rows []experimentRow, all []*measured,
	value func(*measured) float64, format string) {
	const width = 48
	top := 0.0
	for _, m := range all {
		top = max(top, value(m))
	}
	if top == 0 {
		return
	}
	fmt.Fprintf(w, "\n  %s\n", title)
	for i, m := range all {
		if v := value(m); v > 0 {
			fmt.Fprintf(w, "  %-33s %-*s "+format+"\n", rows[i].name, width,
				strings.Repeat("#", max(1, int(v/top*width+0.5))), v)
		}
	}
}
