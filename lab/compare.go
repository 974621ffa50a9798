package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// compare prints a table of before and after the remedy.
func compare(w io.Writer, before, after *seen) {
	fmt.Fprintf(w, "  %-34s %14s %14s\n", "", "before", "after")
	row := func(name, before, after string) { fmt.Fprintf(w, "  %-34s %14s %14s\n", name, before, after) }
	for i, f := range before.figures {
		if i >= len(after.figures) {
			break
		}
		g := after.figures[i]
		rate := func(n int, wall time.Duration) string { return fmt.Sprintf("%.0f /s", float64(n)/wall.Seconds()) }
		row(f.Name, rate(f.N, f.Wall), rate(g.N, g.Wall))
		row("  p50", short(f.P50), short(g.P50))
		row("  p99", short(f.P99), short(g.P99))
		row("  max", short(f.Max), short(g.Max))
	}
	per := func(n int64, x *seen) string { return fmt.Sprintf("%.0f /s", float64(n)/x.wall.Seconds()) }
	cores := func(x *seen) string { return fmt.Sprintf("%.2f CPUs", x.used.cpu.Seconds()/x.wall.Seconds()) }
	row("server: CPU", cores(before), cores(after))
	row("server: threads", fmt.Sprint(before.used.threads), fmt.Sprint(after.used.threads))
	switches := func(n int64, x *seen) string {
		if x.used.ended {
			return "over " + per(n, x)
		}
		return per(n, x)
	}
	row("server: switches, voluntary", switches(before.used.voluntary, before), switches(after.used.voluntary, after))
	row("server: switches, involuntary", switches(before.used.involuntary, before),
		switches(after.used.involuntary, after))
	mib := func(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }
	row("server: memory", mib(before.resident), mib(after.resident))
	row("server: minor faults", per(before.used.minor, before), per(after.used.minor, after))
	row("server: major faults", per(before.used.major, before), per(after.used.major, after))
	row("others' CPU", fmt.Sprintf("%.0f %%", 100*before.others), fmt.Sprintf("%.0f %%", 100*after.others))
	if before.report == nil || after.report == nil {
		return
	}
	// As whystall reports them: nobody outside the process sees its pauses.
	if len(before.report.pauses()) > 0 {
		p, q := before.report.pauses(), after.report.pauses()
		row("pauses: long ones", fmt.Sprintf("%.1f /s", float64(len(p))/before.report.seconds()),
			fmt.Sprintf("%.1f /s", float64(len(q))/after.report.seconds()))
		row("  longest", longest(p), longest(q))
	}
	fmt.Fprintf(w, "\n  whystall found before: %s; after: %s\n", before.report.roots(), after.report.roots())
	if max(before.others, after.others) > busyShare {
		fmt.Fprintf(w, "\n  Processes which do not belong to this case used a good part of the CPUs meanwhile. They show in the figures\n  and in what whystall found. On a machine that does nothing else the case stands out.\n")
	}
}

// pauses are the long stop-the-worlds and barriers: for how long each kept everything else from
// running.
func (r *report) pauses() (all []time.Duration) {
	if r.Kernel != nil {
		for _, b := range r.Kernel.Barriers {
			all = append(all, time.Duration(b.StoppedNS+b.DelayedNS))
		}
	}
	return all
}

func (r *report) seconds() float64 {
	if r.Kernel == nil || r.Kernel.EndNS <= r.Kernel.BeginNS {
		return math.Inf(1)
	}
	return float64(r.Kernel.EndNS-r.Kernel.BeginNS) / 1e9
}

func longest(all []time.Duration) string {
	if len(all) == 0 {
		return "none"
	}
	return short(slices.Max(all))
}

func (r *report) roots() string {
	var names []string
	for _, f := range r.Findings {
		if f.BecauseOf == "" {
			names = append(names, f.Cause)
		}
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.0f ms", float64(d)/1e6)
	case d >= 10*time.Microsecond:
		return fmt.Sprintf("%.2f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.2f us", float64(d)/1e3)
}
