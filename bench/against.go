package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// maxPairs keeps 2^-n a number for interval.
const maxPairs = 1000

// errWorse ends the benchmark with status 1: the comparison was made and says no.
var errWorse = errors.New("a row is slower, or a report differs")

// comparison is what --against prints, and its JSON.
type comparison struct {
	Date  string   `json:"date"`
	Go    string   `json:"go"`
	CPUs  int      `json:"cpus"`
	CPU   string   `json:"cpu"`
	Base  version  `json:"base"`
	Tree  version  `json:"tree"`
	Same  sameness `json:"same"`
	Rows  []result `json:"rows"`
	Worse bool     `json:"worse"`
}

// against compares the program of a commit with that of the present tree.
//
//  1. Both are built with the same flags: the commit in a git worktree, which is gone after that.
//  2. Both explain all recordings of the repository, and their reports are compared (sameness).
//  3. Inputs are made once. Each row measures both on the same input, in pairs (measureRow).
//  4. A row fails by the rule of result.judge.
func against(ctx context.Context, o options, out, progress io.Writer) error {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("read --only: %w", err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "whystall-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if o.dir == "" {
		o.dir = tmp
	}

	fmt.Fprintln(progress, "build both programs")
	base, tree, err := buildBoth(ctx, root, o.against, tmp)
	if err != nil {
		return err
	}
	c := comparison{
		Date: time.Now().UTC().Format(time.DateOnly), Go: runtime.Version(), CPUs: runtime.NumCPU(), CPU: cpuModel(),
		Base: base.version, Tree: tree.version, Rows: []result{},
	}
	if c.Same, err = compareReports(ctx, root, o.recordings, base, tree, progress); err != nil {
		return err
	}
	if c.Rows, err = measureRows(ctx, root, o, only, base, tree, progress); err != nil {
		return err
	}
	c.Worse = len(c.Same.Differ) > 0
	for _, r := range c.Rows {
		c.Worse = c.Worse || r.Fails != ""
	}
	if o.format == "json" {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		err = enc.Encode(c)
	} else {
		c.print(out)
	}
	if err == nil && c.Worse {
		err = errWorse
	}
	return err
}

// measureRows makes the inputs and measures each row which only matches.
func measureRows(ctx context.Context, root string, o options, only *regexp.Regexp, base, tree side,
	progress io.Writer) ([]result, error) {
	results := []result{}
	if o.pairs == 0 {
		return results, nil
	}
	traces, err := makeTraces(ctx, o.dir, o.mbs, progress)
	if err != nil {
		return nil, err
	}
	rows, err := allRows(root, traces)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if !only.MatchString(r.name) {
			continue
		}
		fmt.Fprintf(progress, "measure %s: ", r.name)
		m, err := measureRow(ctx, r, base, tree, o.pairs, progress)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(progress, " %s\n", m.short())
		results = append(results, m)
	}
	if len(results) == 0 {
		return nil, fmt.Errorf("read --only: no row's name matches %q", o.only)
	}
	return results, nil
}

func (c *comparison) print(out io.Writer) {
	fmt.Fprintf(out, "base: %s\ntree: %s\n%s, %s, %d CPUs, %s\n\n", c.Base, c.Tree, c.Date, c.Go, c.CPUs, c.CPU)
	c.Same.print(out)
	if len(c.Rows) == 0 {
		return
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, strings.Repeat(" ", rowWidth)+
		"\tbase CPU s\ttree CPU s\tratio\t95 % interval\tmax RSS\tprivate\tpairs x runs\t")
	failed := 0
	for _, r := range c.Rows {
		if r.NotMeasured != "" {
			fmt.Fprintf(w, "%-*s\t  not measured: %s\n", rowWidth, r.Name, r.NotMeasured)
			continue
		}
		state := "ok"
		if r.Fails != "" {
			failed++
			state = "FAILS: " + r.Fails
		}
		fmt.Fprintf(w, "%-*s\t%.3f\t%.3f\t%.3f\t%s\t%s\t%s\t%d x %d\t  %s\n", rowWidth, r.Name,
			r.BaseCPU, r.TreeCPU, r.Ratio, r.interval(), factor(r.RSS), factor(r.Private), len(r.Ratios), r.Runs, state)
	}
	w.Flush()
	fmt.Fprintf(out, "%d of %d rows fail; ratios are tree over base, less is better\n", failed, len(c.Rows))
}

// rowWidth aligns the names of rows to the left in a table which is aligned to the right.
const rowWidth = 48

// factor prints a ratio of memory; 0 is one that was not measured.
func factor(f float64) string {
	if f == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", f)
}
