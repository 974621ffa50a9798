package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// writeAccuracy writes the table of what was verified, to the file of -o or to stdout.
func writeAccuracy(rows []row, o verifyOptions, stdout io.Writer) error {
	var b strings.Builder
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	fmt.Fprintf(&b, `# Accuracy

What whystall said of every variant of the lab's cases. Each was diagnosed as a stranger's process
for %v. `+"`go run -C lab . verify`"+` makes this page; the figures are of one machine and one day.

`, o.record)
	fmt.Fprintf(&b, "Linux %s, %d CPUs, %s, %s, %d runs a variant.\n\n",
		strings.TrimSpace(string(release)), runtime.NumCPU(), runtime.Version(),
		time.Now().UTC().Format("2006-01-02"), o.times)
	fmt.Fprintf(&b, `- *Explained* is what the expected root explains of a slow request: the mean over the runs in which
  it was found. Where the root is what every request pays, it is of a usual request.
- The *witness* is what no detector reads. Single runs are in brackets.
  - "latency": the clients' mean over the slow requests, minus the mean over the same share of the
    slowest requests of all cured runs. Only requests that started and ended while whystall
    recorded count.
  - "lost": what the service itself measured of those requests, where the trouble is injected.
  - "rss": the service's memory, minus the cured one's.
- *Verdicts*: grades, and mechanisms under a root, are followed by the number of runs in which they
  were said.
- *Others* is the largest share of the CPUs that processes outside the lab used. Where it is over
  %.0f %%, cpu-contention is no false alarm of that run.

A forbidden cause that is named is a false alarm, even where the right root is first.

`, 100*busyShare)
	fmt.Fprintf(&b, "| case | variant | expected root | may be named | verdicts | explained | witness | error | others | verdict after |\n|---|---|---|---|---|---|---|---|---|---|\n")
	var ill, hit, calm, runs int
	var wrong []float64
	for i := range rows {
		r := &rows[i]
		a := amountOf(rows, r)
		explained, seen, off := a.words(r)
		if part, ok := a.error(); ok {
			wrong = append(wrong, math.Abs(part))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", r.c.Name, r.v.Name,
			dash(r.v.Root), dash(strings.Join(r.v.May, ", ")), r.verdicts(), explained, seen, off,
			r.others(), r.after())
		for _, v := range r.runs {
			runs++
			if r.v.Root != "" {
				ill++
				if !v.missed && v.err == "" {
					hit++
				}
			}
			if len(v.forbid) == 0 && v.err == "" {
				calm++
			}
		}
	}
	fmt.Fprintf(&b, "\n- Recall: the expected root was first in %d of %d runs of variants that have one.\n", hit, ill)
	fmt.Fprintf(&b, "- False alarms: a forbidden cause was named in %d of %d runs.\n", runs-calm, runs)
	if n := len(wrong); n > 0 {
		slices.Sort(wrong)
		within := 0
		for _, x := range wrong {
			if x <= 0.2 {
				within++
			}
		}
		fmt.Fprintf(&b, "- Error of the amount: within 20 %% for %d of %d variants; median %.0f %%, largest %.0f %%.\n", within, n, 100*wrong[n/2], 100*wrong[n-1])
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

// verdicts sums up the runs. Those with the same roots and the same faults are one entry.
func (r *row) verdicts() string {
	if r.skipped != "" {
		return "skipped: " + r.skipped
	}
	type same struct {
		key           string
		n             int
		grades, under []string
	}
	var all []*same
	for i := range r.runs {
		v := &r.runs[i]
		key := "nothing found"
		if len(v.causes) > 0 {
			key = strings.Join(v.causes, ", ")
		}
		if v.err != "" {
			key = "failed: " + v.err
		}
		key += v.wrong()
		at := slices.IndexFunc(all, func(s *same) bool { return s.key == key })
		if at < 0 {
			at, all = len(all), append(all, &same{key: key})
		}
		s := all[at]
		s.n++
		if len(v.causes) > 0 {
			s.grades = append(s.grades, v.grade)
		}
		s.under = append(s.under, v.under...)
	}
	var cells []string
	for _, s := range all {
		roots, wrong, isWrong := strings.Cut(s.key, "; ")
		cell := fmt.Sprintf("%d x %s", s.n, roots)
		if len(s.grades) > 0 {
			cell += " (" + counted(s.grades, s.n) + ")"
		}
		if len(s.under) > 0 {
			cell += "; under it " + counted(s.under, s.n)
		}
		if isWrong {
			cell += "; " + wrong
		}
		cells = append(cells, strings.ReplaceAll(strings.ReplaceAll(cell, "|", "/"), "\n", " "))
	}
	return strings.Join(cells, "<br>")
}

// counted lists each word once, the most frequent first. A number follows where it was not said in
// all n runs.
func counted(all []string, n int) string {
	count := map[string]int{}
	var words []string
	for _, w := range all {
		if count[w]++; count[w] == 1 {
			words = append(words, w)
		}
	}
	slices.SortStableFunc(words, func(a, b string) int { return count[b] - count[a] })
	for i, w := range words {
		if count[w] < n {
			words[i] = fmt.Sprintf("%s %d", w, count[w])
		}
	}
	return strings.Join(words, ", ")
}

func (r *row) others() string {
	worst := 0.0
	for _, v := range r.runs {
		worst = max(worst, v.others)
	}
	if len(r.runs) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*worst)
}

func (r *row) after() string {
	var worst time.Duration
	for _, v := range r.runs {
		worst = max(worst, v.after)
	}
	if len(r.runs) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f s", worst.Seconds())
}
