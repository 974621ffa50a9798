package report

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/finding"
)

// What the one screen and the short markdown say, each in a sentence or a list of names.

const (
	briefRoots   = 3
	briefProofs  = 3
	briefSlowest = 3
)

// traffic says how many requests there were and how long they took. Where most are of one entry, it
// is of these: a few of another, such as a thread's that works in the background, would else make
// the slowest hundredth.
func (r *Report) traffic() string {
	q := &r.Requests
	if q.Count == 0 {
		return ""
	}
	if g := q.main(); g != nil {
		return fmt.Sprintf("%s: p50 %s, p99 %s, max %s; of %s, beside %s of others; %s slow",
			plural(g.Count, "request", "requests"), finding.Duration(g.P50), finding.Duration(g.P99),
			finding.Duration(g.Max), g.Entry, count(q.Count-g.Count), count(int64(q.Slow)))
	}
	s := fmt.Sprintf("%s: p50 %s, p99 %s, max %s", plural(q.Count, "request", "requests"),
		finding.Duration(q.P50), finding.Duration(q.P99), finding.Duration(q.Max))
	if n := len(q.counted()); n > 1 {
		s += fmt.Sprintf(", of %d entries", n)
	}
	return s + fmt.Sprintf("; %s slow", count(int64(q.Slow)))
}

// main is the entry that has nearly all requests, nil where there is none, or only one entry.
func (q *Requests) main() *Group {
	groups := q.counted()
	for i := range groups {
		if g := &groups[i]; len(groups) > 1 && float64(g.Count) >= nearlyAll*float64(q.Count) {
			return g
		}
	}
	return nil
}

// nearlyAll is the share of requests from which on one entry's stand for all.
const nearlyAll = 0.8

// ruledOut names the causes that were ruled out.
func (r *Report) ruledOut() (names []string) {
	for _, o := range r.RuledOut {
		names = append(names, o.Cause)
	}
	return names
}

// notChecked names the causes that could not be checked, those that were checked in part last.
func (r *Report) notChecked() (names []string) {
	var part []string
	for _, n := range r.NotChecked {
		known := slices.ContainsFunc(r.RuledOut, func(o finding.RuledOut) bool { return o.Cause == n.Cause }) ||
			slices.ContainsFunc(r.Findings, func(f finding.Finding) bool { return f.Cause == n.Cause })
		if known {
			part = append(part, n.Cause+" (in part)")
		} else {
			names = append(names, n.Cause)
		}
	}
	return append(names, part...)
}

// blanks lists what was not seen: files that could not be read first, then what was lost, then what
// was not recorded at all.
func (r *Report) blanks() (l []string) {
	for _, in := range r.Inputs {
		if in.Error != "" {
			l = append(l, path.Base(in.Name)+" was not read: "+in.Error)
		}
	}
	var missing []string
	for _, g := range r.merged() {
		if g.EndNS > g.BeginNS {
			l = append(l, r.gap(&g))
		} else {
			missing = append(missing, r.gap(&g))
		}
	}
	l = append(l, r.Unseen...)
	if s := &r.NotLookedAt.Silences; s.N > 0 && !r.joined() {
		l = append(l, silences(s))
	}
	if s := r.notLookedInto(); s != "" {
		l = append(l, s)
	}
	l = append(l, missing...)
	return append(l, r.Lacks...)
}

// names fits a list of names into a width: those that fit, and how many more there are.
func names(l []string, wide int) string {
	for n := len(l); n > 0; n-- {
		s := strings.Join(l[:n], ", ")
		if n < len(l) {
			s += fmt.Sprintf(", %d more", len(l)-n)
		}
		if width(s) <= wide {
			return s
		}
	}
	return fmt.Sprintf("%d", len(l))
}

// head is the start of a text that fits into a width, cut between words.
func head(s string, wide int) string {
	s = Printable(s)
	if width(s) <= wide {
		return s
	}
	lines := wrap(s, wide-2, shortenWords)
	return strings.TrimRight(lines[0], " ,;:") + " …"
}

// lines wraps a text into n lines at most.
func lines(s string, wide, n int) []string {
	l := wrap(Printable(s), wide, shortenWords)
	if len(l) <= n {
		return l
	}
	return append(l[:n-1:n-1], head(strings.Join(l[n-1:], " "), wide))
}
