package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// writeAccuracy writes the table of what was verified to the file of -o, or to stdout.
func writeAccuracy(rows []row, o verifyOptions, stdout io.Writer) error {
	var b strings.Builder
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	fmt.Fprintf(&b, "# Accuracy\n\nWhat whystall said of every variant of the lab's cases, each diagnosed as a stranger's process for %v. Made by\n"+
		"`go run -C lab . verify`; the figures are of one machine and one day.\n\n", o.record)
	fmt.Fprintf(&b, "Linux %s, %d CPUs, %s, %s, %d runs a variant.\n\n", strings.TrimSpace(string(release)), runtime.NumCPU(), runtime.Version(), time.Now().UTC().Format("2006-01-02"), o.times)
	fmt.Fprintf(&b, "The amount is what the first root explains of a slow request, against what the witness saw: the clients' mean over the slowest 1 %% (at least 10), ill\n"+
		"minus cured. No detector reads the witness. A forbidden cause that is named is a false alarm even where the right root is first. Where processes that are not the\n"+
		"lab's used more than %.0f %% of the CPUs, cpu-contention is no false alarm, and the verdict tells how much they used.\n\n", 100*busyShare)
	fmt.Fprintf(&b, "| case | variant | expected root | may be named | verdicts | explained | witness | verdict after |\n|---|---|---|---|---|---|---|---|\n")
	var ill, hit, quiet, calm, runs int
	var errors []float64
	for i := range rows {
		r := &rows[i]
		explained, seenBy := amount(rows, r)
		if explained > 0 && seenBy > 0 {
			errors = append(errors, math.Abs(explained-seenBy)/seenBy)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", r.c.Name, r.v.Name, dash(r.v.Root), dash(strings.Join(r.v.May, ", ")), r.verdicts(),
			millis(explained), r.witnessWords(seenBy), r.after())
		for _, v := range r.runs {
			runs++
			if r.v.Root != "" {
				ill++
				if !v.missed && v.err == "" {
					hit++
				}
			}
			quiet++
			if len(v.forbid) == 0 && v.err == "" {
				calm++
			}
		}
	}
	fmt.Fprintf(&b, "\n- Recall: the expected root was first in %d of %d runs of variants that have one.\n", hit, ill)
	fmt.Fprintf(&b, "- False alarms: a forbidden cause was named in %d of %d runs.\n", quiet-calm, quiet)
	if len(errors) > 0 {
		slices.Sort(errors)
		fmt.Fprintf(&b, "- Error of the amount: median %.0f %%, largest %.0f %%, over %d variants.\n", 100*errors[len(errors)/2], 100*errors[len(errors)-1], len(errors))
	}
	if o.output == "" {
		_, err := io.WriteString(stdout, b.String())
		return err
	}
	return os.WriteFile(o.output, []byte(b.String()), 0o644)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func millis(ns float64) string {
	if ns <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", ns/1e6)
}

// verdicts sums equal ones up.
func (r *row) verdicts() string {
	if r.skipped != "" {
		return "skipped: " + r.skipped
	}
	var words []string
	count := map[string]int{}
	for _, v := range r.runs {
		w := v.words()
		if count[w]++; count[w] == 1 {
			words = append(words, w)
		}
	}
	for i, w := range words {
		words[i] = strings.ReplaceAll(strings.ReplaceAll(fmt.Sprintf("%d x %s", count[w], w), "|", "/"), "\n", " ")
	}
	return strings.Join(words, "<br>")
}

func (r *row) witnessWords(ns float64) string {
	if r.v.Root == "" {
		return "-"
	}
	if r.c.Amount == "" {
		return "amount unknown"
	}
	return millis(ns)
}

func (r *row) after() string {
	var worst time.Duration
	for _, v := range r.runs {
		worst = max(worst, v.after)
	}
	return fmt.Sprintf("%.1f s", worst.Seconds())
}

// amount is the mean over the runs of what the first root explains of a slow request, and the witness' own.
func amount(rows []row, r *row) (explained, seenBy float64) {
	if r.v.Root == "" || r.c.Amount != "latency" {
		return 0, 0
	}
	n := 0
	for _, v := range r.runs {
		if !v.missed && v.err == "" {
			explained += v.explains
			n++
		}
	}
	if n > 0 {
		explained /= float64(n)
	}
	ill, ok := slowMean(r)
	for i := range rows {
		if rows[i].c == r.c && rows[i].v.Name == cmp.Or(r.v.Cured, "cured") && ok {
			if cured, ok := slowMean(&rows[i]); ok {
				seenBy = ill - cured
			}
		}
	}
	return explained, seenBy
}

func slowMean(r *row) (float64, bool) {
	sum, n := 0.0, 0
	for _, v := range r.runs {
		if len(v.witness) > 0 && v.witness[0].N > 0 {
			sum += float64(v.witness[0].Slow)
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}
