package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// program is one row of the table.
type program struct {
	name  string
	args  []string
	page  string  // instead of args: the trace which go tool trace shows; run once
	goal  float64 // the CPU time may be that of the first program, divided by goal; 0: no goal
	found bool    // exit status 1 means that causes were found, and is no error
}

// cost is what one run of a program took.
type cost struct {
	cpu, wall time.Duration
	rss       int64 // peak in bytes, with mapped parts of the file
	private   int64 // peak in bytes without these, sampled; 0: not known
	heap      int64 // bytes of Go heap; 0: not known
}

// pageGoal is how many times less CPU time a printed ledger takes than go tool trace's first page.
const pageGoal = 100

// nameWidth aligns names to the left in a table which is aligned to the right.
const nameWidth = 34

// compare runs the programs by turns on one trace, and prints a table of their costs.
func compare(ctx context.Context, out io.Writer, tr traceFile, programs []program, runs int) error {
	costs := make([][]cost, len(programs))
	skipped := make([]string, len(programs))
	events := ""
	if err := warm(tr.name); err != nil {
		return err
	}
	for r := range runs {
		for i, p := range programs {
			if p.page != "" {
				if r > 0 {
					continue
				}
				c, why, err := runPage(ctx, p.page, tr.size)
				if err != nil {
					return err
				}
				if skipped[i] = why; why == "" {
					costs[i] = append(costs[i], c)
				}
				continue
			}
			c, says, err := runProgram(ctx, p)
			if err != nil {
				return err
			}
			if n, ok := says["events"]; ok && i == 0 {
				events = n
			}
			costs[i] = append(costs[i], c)
		}
	}

	fmt.Fprintf(out, "\n%s: %.1f MB, %s events as x/exp/trace counts them; medians of %d\n",
		tr.title, float64(tr.size)/1e6, events, runs)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, strings.Repeat(" ", nameWidth)+
		"\tCPU s\twall s\tmax RSS MB\tprivate MB\tGo heap MB\tCPU of x/exp's\t")
	first := median(costs[0])
	var ledger, page cost
	for i, p := range programs {
		if len(costs[i]) == 0 {
			fmt.Fprintf(w, "%-*s\tnot run: %s\t\n", nameWidth, p.name, skipped[i])
			continue
		}
		c := median(costs[i])
		ratio := first.cpu.Seconds() / c.cpu.Seconds()
		share := "1"
		if i > 0 {
			share = fraction(ratio)
		}
		if p.goal > 0 {
			share += verdict(ratio, p.goal)
		}
		fmt.Fprintf(w, "%-*s\t%.2f\t%.2f\t%s\t%s\t%s\t%s\t\n", nameWidth, p.name, c.cpu.Seconds(),
			c.wall.Seconds(), mb(c.rss), mb(c.private), mb(c.heap), share)
		if p.page != "" {
			page = c
		} else {
			ledger = c // the last of them
		}
	}
	w.Flush()
	if page.cpu > 0 {
		ratio := page.cpu.Seconds() / ledger.cpu.Seconds()
		fmt.Fprintf(out, "the printed ledger takes %s of the CPU time of go tool trace's first page%s\n", fraction(ratio), verdict(ratio, pageGoal))
	}
	return nil
}

func verdict(ratio, goal float64) string {
	if ratio >= goal {
		return fmt.Sprintf(" (goal 1/%.0f: met)", goal)
	}
	return fmt.Sprintf(" (goal 1/%.0f: MISSED)", goal)
}

// fraction writes 1/ratio in the way people do.
func fraction(ratio float64) string {
	if ratio < 1 {
		return fmt.Sprintf("%.1f times", 1/ratio)
	}
	return fmt.Sprintf("1/%.1f", ratio)
}

func mb(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", float64(bytes)/1e6)
}

// median gives the median of each time, and the largest of each amount of memory, as it is a bound.
func median(costs []cost) cost {
	mid := func(d func(cost) time.Duration) time.Duration {
		var all []time.Duration
		for _, c := range costs {
			all = append(all, d(c))
		}
		slices.Sort(all)
		return all[(len(all)-1)/2]
	}
	m := cost{cpu: mid(func(c cost) time.Duration { return c.cpu }),
		wall: mid(func(c cost) time.Duration { return c.wall })}
	for _, c := range costs {
		m.rss, m.private, m.heap = max(m.rss, c.rss), max(m.private, c.private), max(m.heap, c.heap)
	}
	return m
}

// parseSays reads key=value words.
func parseSays(text string) map[string]string {
	m := map[string]string{}
	for _, f := range strings.Fields(text) {
		if k, v, ok := strings.Cut(f, "="); ok {
			m[k] = v
		}
	}
	return m
}
