package report

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// unchecked is causes that could not be checked for the same reason.
type unchecked struct {
	causes  []string
	missing string `prose:"yes"`
}

// unchecked lists what could not be checked, with one entry for causes that lack the same.
func (r *Report) unchecked() (us []unchecked) {
	for _, n := range r.NotChecked {
		missing := strings.Join(n.Missing, "; ")
		i := slices.IndexFunc(us, func(u unchecked) bool { return u.missing == missing })
		if i < 0 {
			i = len(us)
			us = append(us, unchecked{missing: missing})
		}
		us[i].causes = append(us[i].causes, n.Cause)
	}
	return us
}

// traceSource is the source of gaps that the trace's reader reported.
const traceSource = "execution trace"

// damaged is the length of the longest stretch in which the trace itself lost something.
func (r *Report) damaged() (ns int64) {
	for _, g := range r.Gaps {
		if g.Source == traceSource {
			ns = max(ns, g.EndNS-g.BeginNS)
		}
	}
	return ns
}

// merged lists the gaps for a person: gaps of several sources for one reason become one.
func (r *Report) merged() (out []Gap) {
	var sources [][]string // of each in out
	for _, g := range r.Gaps {
		i := slices.IndexFunc(out, func(o Gap) bool {
			return o.Reason == g.Reason && o.EndNS <= o.BeginNS && g.EndNS <= g.BeginNS && o.Source != ""
		})
		if i < 0 || g.Source == "" {
			out, sources = append(out, g), append(sources, []string{g.Source})
			continue
		}
		if !slices.Contains(sources[i], g.Source) {
			sources[i] = append(sources[i], g.Source)
		}
	}
	for i := range out {
		out[i].Source = folded(sources[i])
	}
	return out
}

// folded names several streams of one folder by it: "/process/delay/*".
func folded(sources []string) string {
	folder := path.Dir(sources[0])
	if len(sources) < 3 || folder == "/" || folder == "." ||
		slices.ContainsFunc(sources, func(s string) bool { return path.Dir(s) != folder }) {
		return strings.Join(sources, ", ")
	}
	return folder + "/*"
}

func silences(s *account.Silences) string {
	return fmt.Sprintf("%s without an event of any thread although work was runnable, %s in all, the longest %s, %s of the slow requests' time: the process may have stood still (CPU quota, host)",
		plural(s.N, "stretch of 20 ms or more", "stretches of 20 ms or more"),
		finding.Duration(s.NS), finding.Duration(s.Max), finding.Duration(s.SlowNS))
}

// gap says what was lost and when.
func (r *Report) gap(g *Gap) string {
	s := g.Reason
	if g.EndNS > g.BeginNS {
		at := fmt.Sprintf("+%.3f s", float64(g.BeginNS-r.Recording.BeginNS)/1e9)
		if g.BeginUTC != nil {
			at = clock(*g.BeginUTC, len("2006-01-02T15:04:05.000")) + " UTC"
		}
		s = finding.Duration(g.EndNS-g.BeginNS) + " from " + at + ": " + s
	}
	if g.Source != "" {
		s += "  [" + g.Source + "]"
	}
	return s
}

func (r *Report) failedInputs() (n int) {
	for _, in := range r.Inputs {
		if in.Error != "" {
			n++
		}
	}
	return n
}
