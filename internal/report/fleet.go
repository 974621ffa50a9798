package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/fleet"
)

// PrintFleet prints what was seen of a fleet, in the output of this name.
func PrintFleet(w io.Writer, r *fleet.Result, name string, o TextOptions) error {
	switch name {
	case "text":
		return fleetText(w, r, o)
	case "markdown":
		return fleetMarkdown(w, r)
	case "json":
		return PrintJSON(w, r)
	}
	return fmt.Errorf("print fleet: no output %q", name)
}

// fleetTitle is the first line.
func fleetTitle(r *fleet.Result) string {
	targets := 0
	for _, j := range r.Coverage.Jobs {
		targets += j.Targets
	}
	name := r.Engine.Name
	if r.Engine.Version != "" {
		name += " " + r.Engine.Version
	}
	return fmt.Sprintf("%s at %s, %s, %s until %s", name, r.Engine.URL,
		plural(int64(targets), "target", "targets"), span(r.SinceNS), r.At.Format("2006-01-02 15:04:05 UTC"))
}

// span writes a time that was asked for, without the units that are zero.
func span(ns int64) string {
	s := time.Duration(ns).Round(time.Second).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// fleetBlind lists what cannot be seen.
func fleetBlind(r *fleet.Result) (lines []string) {
	if o := r.Coverage.Oldest; o != nil {
		lines = append(lines, fmt.Sprintf("time: there are no samples before about %s, so %s are looked at and not %s", o.Format("2006-01-02 15:04:05 UTC"), span(r.SinceNS), span(r.Coverage.AskedNS)))
	}
	for _, b := range r.Coverage.Blind {
		var where []string
		for i, c := range b.Where {
			if i == 3 {
				where = append(where, "...")
				break
			}
			where = append(where, c.Labels.String()+" "+count(int64(c.N)))
		}
		some := " (" + strings.Join(where, "; ") + ")"
		if b.Lack >= b.Of {
			some = ""
		}
		lines = append(lines, fmt.Sprintf("%s: %s of %s do not show it%s; %s", b.What,
			count(int64(b.Lack)), count(int64(b.Of)), some, b.Remedy))
	}
	for _, f := range r.Coverage.Failing {
		lines = append(lines, fmt.Sprintf("the collector %s fails on %s", f.Labels.String(),
			plural(int64(f.N), "target", "targets")))
	}
	for _, j := range r.Coverage.Jobs {
		if j.Down > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s of %s are down", j.Labels.String(),
				count(int64(j.Down)), plural(int64(j.Targets), "target", "targets")))
		}
		if j.Missed > 0.01 && j.Missed < 1 {
			lines = append(lines,
				fmt.Sprintf("%s: %.1f %% of all scrapes failed: a host that stalls misses scrapes, and looks quiet then", j.Labels.String(), 100*j.Missed))
		}
	}
	for _, w := range r.Engine.Warnings {
		lines = append(lines, "the engine warns: "+w)
	}
	if r.Engine.Insecure {
		lines = append(lines, "the engine's certificate was not checked")
	}
	return lines
}

// fleetSentences say of one finding who has it, how much, and since when.
func fleetSentences(f *fleet.Finding, clusters []string) (who, much, when string) {
	who = fmt.Sprintf("%s, %s", f.Workload, plural(int64(f.Ill), string(f.Scope), string(f.Scope)+"s"))
	if f.Seen > 0 {
		who = fmt.Sprintf("%s, %s of %s", f.Workload, count(int64(f.Ill)),
			plural(int64(f.Seen), string(f.Scope), string(f.Scope)+"s"))
	}
	if in := clustersOf(f, clusters); in != "" {
		who += " in " + in
	}
	much = fmt.Sprintf("on average %s at the worst (%s)", fleet.Amount(f.Worst, f.Unit), f.Members[0].Name)
	if f.Peak > 1.5*f.Worst { // a bout: the mean of a long time hides it
		much = fmt.Sprintf("up to %s at a time and %s on average at the worst (%s)",
			fleet.Amount(f.Peak, f.Unit), fleet.Amount(f.Worst, f.Unit), f.Members[0].Name)
	}
	if len(f.Members) > 1 {
		much += fmt.Sprintf(", %s in their middle", fleet.Amount(f.Median, f.Unit))
	}
	if f.Peers.Known && f.Everywhere.Seen > 3 {
		much += fmt.Sprintf("; all of this kind: %s in the middle, %s at p99",
			fleet.Amount(f.Peers.Median, f.Unit), fleet.Amount(f.Peers.P99, f.Unit))
	}
	if y := f.Members[0].Yesterday; y >= 0 {
		much += fmt.Sprintf("; the worst a day before: %s", fleet.Amount(y, f.Unit))
	}
	if f.Since != nil {
		when = fmt.Sprintf("since %s (+-%s)", f.Since.Format("2006-01-02 15:04:05 UTC"),
			time.Duration(f.SinceErrNS).Round(time.Second))
		if f.Earlier {
			when = fmt.Sprintf("since %s or earlier", f.Since.Format("2006-01-02 15:04:05 UTC"))
		}
		if f.Bouts > 1 {
			when += fmt.Sprintf(", the last of %d bouts", f.Bouts)
		}
		if f.Gaps {
			when += "; the series has gaps, of which nothing is known"
		}
	}
	return who, much, when
}

// clustersOf lists the clusters of a finding's members.
func clustersOf(f *fleet.Finding, names []string) string {
	var in []string
	for _, m := range f.Members {
		var c []string
		for _, n := range names {
			if v := m.Labels[n]; v != "" {
				c = append(c, v)
			}
		}
		if s := strings.Join(c, "/"); s != "" && !slices.Contains(in, s) {
			in = append(in, s)
		}
	}
	slices.Sort(in)
	if len(in) > 5 {
		in = append(in[:5], "...")
	}
	return strings.Join(in, ", ")
}

// fleetHeadline is the verdict in one line.
func fleetHeadline(r *fleet.Result) (text, style string) {
	roots, risks := 0, 0
	for _, f := range r.Findings {
		switch {
		case f.BecauseOf != "":
		case f.Unit == fleet.State:
			risks++
		default:
			roots++
		}
	}
	targets := 0
	for _, j := range r.Coverage.Jobs {
		targets += j.Targets
	}
	switch {
	case len(r.RuledOut) == 0 && roots == 0 && targets == 0:
		return "COULD NOT LOOK: no target was scraped then (no series up): check --at, --match and --tenant", yellow
	case roots > 0:
		return "FOUND " + plural(int64(roots), "cause", "causes"), red
	case r.Refused() > 0:
		return fmt.Sprintf("NOTHING FOUND IN WHAT WAS ANSWERED: %s of %s got no answer",
			count(int64(r.Refused())), plural(int64(len(r.RuledOut)+len(r.NotChecked)), "cause", "causes")), yellow
	case len(r.RuledOut) == 0:
		return "COULD NOT LOOK: no target has what any cause is known by", yellow
	case risks > 0:
		return "NOTHING FOUND but settings that may bite", yellow
	}
	return nothingFound, green
}

// fleetCost is what asking took.
func fleetCost(r *fleet.Result) string {
	c := &r.Cost
	return fmt.Sprintf("%s took the engine %s in all, answers of %s, the largest %s; it read about %s by estimate",
		plural(int64(c.Questions), "question", "questions"), finding.Duration(c.EngineNS),
		finding.Bytes(c.Bytes), finding.Bytes(c.Largest), plural(c.Samples, "sample", "samples"))
}

// fleetRuledOut says what was asked for and is not there.
func fleetRuledOut(o *fleet.RuledOut) string {
	s := fmt.Sprintf("%s: at most %s", o.Rule, fleet.Amount(o.Worst, o.Unit))
	if o.Seen > 0 {
		s += " of " + count(int64(o.Seen))
	}
	if o.Unit == fleet.State {
		return o.Rule + ": no target has it"
	}
	switch o.Against {
	case fleet.Disagrees:
		return s + ", and the other counter that shows this cause does not agree"
	case fleet.Brief:
		return s + ", and not for long enough"
	}
	return s + ", found from " + fleet.Amount(o.Least, o.Unit)
}

// fleetNotChecked lists what could not be asked. Causes with the same reason stand on one line.
func fleetNotChecked(r *fleet.Result) (lines []string) {
	var (
		lack  []string
		order []string
		why   = map[string][]string{}
	)
	for _, c := range r.NotChecked {
		if len(c.Lacks) > 0 {
			lack = append(lack, c.Rule)
			continue
		}
		if why[c.Why] == nil {
			order = append(order, c.Why)
		}
		why[c.Why] = append(why[c.Why], c.Rule)
	}
	for _, w := range order {
		lines = append(lines, strings.Join(why[w], ", ")+": "+w)
	}
	if len(lack) > 0 {
		lines = append(lines, "no target has their metrics: "+strings.Join(lack, ", "))
	}
	return lines
}

// fleetEverywhere says how many more are ill than are listed, and where; "" no more are.
func fleetEverywhere(f *fleet.Finding) string {
	if f.Everywhere.Ill <= f.Ill {
		return ""
	}
	var where []string
	for i, c := range f.Everywhere.Where {
		if i == 5 {
			where = append(where, "...")
			break
		}
		where = append(where, c.Labels.String()+" "+count(int64(c.N)))
	}
	s := fmt.Sprintf("in all %s of %s", count(int64(f.Everywhere.Ill)),
		plural(int64(f.Everywhere.Seen), string(f.Scope), string(f.Scope)+"s"))
	if len(where) > 0 {
		s += ": " + strings.Join(where, "; ")
	}
	return s
}
