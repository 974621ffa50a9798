package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// harmReport is what `bench harm` prints.
type harmReport struct {
	Date    string       `json:"date"`
	Go      string       `json:"go"`
	Kernel  string       `json:"kernel"`
	CPUs    int          `json:"cpus"`
	CPU     string       `json:"cpu"`
	Window  float64      `json:"window_s"`
	Notes   []string     `json:"notes"`
	Targets []harmTarget `json:"targets"`
}

// missed reports whether a row does not reach a goal.
func (r *harmReport) missed() bool {
	return slices.ContainsFunc(r.Targets, func(t harmTarget) bool {
		return slices.ContainsFunc(t.Rows, func(r harmRow) bool { return len(r.Misses) > 0 })
	})
}

func (r *harmReport) write(out io.Writer, format string) error {
	if format == "json" {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	fmt.Fprintf(out, "%s, %s, Linux %s, %d CPUs, %s; windows of %.3g s\n", r.Date, r.Go, r.Kernel,
		r.CPUs, r.CPU, r.Window)
	fmt.Fprintf(out, "Medians of the ratios recorded / undisturbed of pairs of windows, with their 95 %% intervals.\n")
	fmt.Fprintf(out, "Goals: p99 at most %.2f, throughput at least %.2f.\n", p99Goal, throughputGoal)
	for _, n := range r.Notes {
		fmt.Fprintln(out, n)
	}
	for _, t := range r.Targets {
		t.write(out)
	}
	return nil
}

func (t *harmTarget) write(out io.Writer) {
	fmt.Fprintf(out, "\n%s: %s\n", t.Target, t.Title)
	if t.NotMeasured != "" {
		fmt.Fprintf(out, "  not measured: %s\n", t.NotMeasured)
	}
	for _, n := range t.Notes {
		fmt.Fprintf(out, "  %s\n", n)
	}
	if len(t.bare) > 0 {
		u := t.Undisturbed
		fmt.Fprintf(out, "  undisturbed: %.0f requests/s, %.0f %% busy, p50 %.2f ms, p99 %.1f ms, %.0f switches/s\n", u.PerS, 100*u.Busy, u.P50, u.P99, u.Switches)
	}
	if len(t.Rows) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  \tp50\tp99\tthroughput\tCPU per answer\trecorder\tpairs\t")
	for _, r := range t.Rows {
		if r.Pairs > 0 {
			fmt.Fprintf(w, "  %s\t%v\t%v\t%v\t%v\t%.3f CPUs\t%d\t%s\n", r.Title, r.P50, r.P99,
				r.Throughput, r.CPU, r.Own, r.Pairs, r.mark())
		}
		if r.NotMeasured != "" {
			fmt.Fprintf(w, "  %s\tnot measured: %s\n", r.Title, r.NotMeasured)
		}
	}
	w.Flush()
}
