package main

import (
	"fmt"
	"io"
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
	row("server: switches, voluntary", per(before.used.voluntary, before), per(after.used.voluntary, after))
	row("server: switches, involuntary", per(before.used.inv, before), per(after.used.inv, after))
	row("server: minor faults", per(before.used.minor, before), per(after.used.minor, after))
	row("server: major faults", per(before.used.major, before), per(after.used.major, after))
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
