package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/compare"
	"github.com/whystall/whystall/internal/finding"
)

// PrintComparison prints what became of a service, in the output of this name.
func PrintComparison(w io.Writer, c *compare.Comparison, name string, o TextOptions) error {
	switch name {
	case "text":
		return comparisonText(w, c, o)
	case "markdown":
		return comparisonMarkdown(w, c)
	case "html":
		return comparisonHTML(w, c)
	case "json":
		return PrintJSON(w, c)
	}
	return fmt.Errorf("print comparison: no output %q", name)
}

// headline says in one sentence whether the remedy worked, and how good that is.
func headline(c *compare.Comparison) (text, style string) {
	n := map[compare.Outcome]int64{}
	for _, v := range c.Verdicts {
		n[v.Outcome]++
	}
	all := int64(len(c.Verdicts))
	switch {
	case all == 0:
		return "CANNOT TELL: nothing was found before, so nothing can be confirmed", yellow
	case n[compare.Worse] > 0:
		return fmt.Sprintf("WORSE: %s of %s", count(n[compare.Worse]), plural(all, "cause", "causes")), red
	case n[compare.NotConfirmed] > 0:
		return fmt.Sprintf("NOT CONFIRMED: %s of %s cost as much as before",
			count(n[compare.NotConfirmed]), plural(all, "cause", "causes")), red
	case n[compare.Confirmed] == all:
		return "CONFIRMED: the remedy worked", green
	case n[compare.Confirmed] > 0:
		return fmt.Sprintf("CANNOT TELL of %s of %s; the rest is confirmed",
			count(n[compare.CannotTell]), plural(all, "cause", "causes")), yellow
	}
	return "CANNOT TELL whether the remedy worked", yellow
}

// goneLine says what is gone of slow requests' time.
func goneLine(c *compare.Comparison) string {
	part, ok := c.Gone()
	if !ok {
		return ""
	}
	before, after := finding.Duration(int64(c.SlowBefore)), finding.Duration(int64(c.SlowAfter))
	if part < 0 {
		return fmt.Sprintf("slow requests take %s each, %s before: %.3g times as long", after,
			before, c.SlowAfter/c.SlowBefore)
	}
	return fmt.Sprintf("%.0f %% of the slow requests' time is gone: %s each before, %s now", 100*part, before, after)
}

// freshLine names the causes that are new.
func freshLine(c *compare.Comparison) string {
	var l []string
	for _, f := range c.New {
		l = append(l, fmt.Sprintf("%s (%s of the %s)", f.Cause, percent(f.Share), ofScope(f.Scope)))
	}
	if len(l) == 0 {
		return ""
	}
	return "found now and not before: " + strings.Join(l, ", ")
}

func ofScope(s finding.Scope) string {
	switch s {
	case finding.Slow:
		return "slow requests' time"
	case finding.Usual:
		return "usual requests' time"
	}
	return "process' time"
}

// programsLine says that the sides' programs have different names, "" if they do not.
func programsLine(c *compare.Comparison) string {
	if slices.Equal(c.Before.Programs, c.After.Programs) || len(c.Before.Programs)*len(c.After.Programs) == 0 {
		return ""
	}
	return fmt.Sprintf("the programs have different names: %s before, %s now",
		strings.Join(c.Before.Programs, ", "), strings.Join(c.After.Programs, ", "))
}

// startsLine says on how many starts of the process the comparison stands.
func startsLine(c *compare.Comparison) string {
	least := min(c.Before.Starts, c.After.Starts)
	if least >= 3 {
		return fmt.Sprintf("recorded were %s of the process before and %s after: it goes by a t test over starts, and an effect of a tenth at least", plural(int64(c.Before.Starts), "start", "starts"), count(int64(c.After.Starts)))
	}
	s := "recorded was one start of the process a side"
	if c.Before.Starts != 1 || c.After.Starts != 1 {
		s = fmt.Sprintf("recorded were %s of the process before and %s after",
			plural(int64(c.Before.Starts), "start", "starts"), count(int64(c.After.Starts)))
	}
	return s + ". So what counts is a fall of p99 by a third or more, together with the cause's own time by half; from three starts a side on a tenth does"
}

// sentenceOf says what became of one cause, without its name.
func sentenceOf(v *compare.Verdict) string {
	s := amountOf(v, v.Before) + " before, "
	switch {
	case !v.Known:
		s += "not known now"
	case v.Found:
		s += amountOf(v, v.After) + " now"
	default:
		s += "at most " + amountOf(v, v.After) + " now"
	}
	if v.Latency > 0 {
		what := "p99"
		if v.Scope == finding.Usual {
			what = "p50"
		}
		s += fmt.Sprintf("; %s is %s", what, timesOf(v.Latency))
		if v.High > 0 {
			s += fmt.Sprintf(" (95 %%: %s to %s)", times(v.Low), times(v.High))
		}
	}
	if len(v.Mechanisms) > 0 {
		s += "; it was also seen as " + strings.Join(v.Mechanisms, ", ")
	}
	return s
}

func timesOf(x float64) string {
	if x < 2 {
		return times(x) + " of what it was"
	}
	return times(x) + " what it was"
}

func times(x float64) string {
	if x < 2 {
		return fmt.Sprintf("%.0f %%", 100*x)
	}
	return fmt.Sprintf("%.3g times", x)
}

func amountOf(v *compare.Verdict, x float64) string {
	ns := int64(min(max(x, 0), math.MaxInt64/2))
	switch v.Unit {
	case compare.Bytes:
		return finding.Bytes(ns)
	case compare.NSPerSecond:
		return finding.Duration(ns) + " a second"
	}
	if v.Scope == finding.Usual {
		return finding.Duration(ns) + " of a usual request"
	}
	return finding.Duration(ns) + " of a slow request"
}

// gateWords says what keeps a verdict from being told, and what would help.
func gateWords(g compare.Gate, v *compare.Verdict, c *compare.Comparison) string {
	switch g {
	case compare.NoRequests:
		return "both sides have no entry point in common with requests; record under the same load"
	case compare.FewRequests:
		return "too few requests: fewer than 30 a side say nothing of p99; record longer"
	case compare.LoadFell:
		return "the load fell by more than a fifth, which alone makes a service faster; record under the same load"
	case compare.LoadRose:
		return "the load rose by more than a fifth, which alone makes a service slower; record under the same load"
	case compare.OthersFell, compare.OthersRose:
		return othersWords(g, v, c)
	case compare.FewEvents:
		return "it costs more, but in fewer than five stretches of time, which may be chance; record longer"
	case compare.OtherEvidence:
		return "the recordings hold different evidence, such as kernel records on one side only; record both alike"
	case compare.OtherMachine:
		return "the machines have different numbers of CPUs"
	case compare.Unbounded:
		return "nothing bounds what the cause costs now: whystall explain says what is missing"
	case compare.TooLittle:
		return "it changed by too little for so few recordings; three starts a side tell more: whystall compare BEFORE BEFORE BEFORE -- AFTER AFTER AFTER"
	case compare.Disagree:
		return "the cause's own time and the latency went different ways: something else changed too"
	}
	return string(g)
}

// othersWords says how much more or less others took: of the CPUs, and of requests' time where that
// is known.
func othersWords(g compare.Gate, v *compare.Verdict, c *compare.Comparison) string {
	how := "less"
	diff := c.Before.OthersCPUs - c.After.OthersCPUs
	if g == compare.OthersRose {
		how, diff = "more", -diff
	}
	s := ""
	if diff > 0 {
		s = fmt.Sprintf("other processes took %s %s: %s before, %s now", cpus(diff), how,
			cpus(c.Before.OthersCPUs), cpus(c.After.OthersCPUs))
	}
	if b := v.Behind; b != nil {
		if s != "" {
			s += "; "
		}
		s += fmt.Sprintf("%s waited %s for CPUs that others had, and %s now", aRequest(v.Scope),
			durationOf(b.Before), durationOf(b.After))
	}
	if s == "" {
		s = "other processes took CPUs that it wanted"
	}
	return s + "; record when they are alike"
}

func aRequest(s finding.Scope) string {
	if s == finding.Usual {
		return "a usual request"
	}
	return "a slow request"
}

// comparedRow is a line of a table of two sides.
type comparedRow struct{ name, before, after, change string }

// figureWords are the figures' names for people, and how each is printed.
var figureWords = map[compare.FigureName]struct {
	name  string
	print func(float64) string
}{
	compare.FigureP50:      {"p50", durationOf},
	compare.FigureP99:      {"p99", durationOf},
	compare.FigureMax:      {"longest", durationOf},
	compare.FigureRate:     {"requests a second", plain},
	compare.FigureCPU:      {"CPU time a request", durationOf},
	compare.FigureThreads:  {"threads", plain},
	compare.FigureSwitches: {"switches a second", plain},
	compare.FigureFaults:   {"page faults a second", plain},
	compare.FigurePauses:   {"world stopped, a second", durationOf},
	compare.FigureNUMA:     {"NUMA faults a second", plain},
	compare.FigureOthers:   {"CPUs that others took", func(x float64) string { return fmt.Sprintf("%.2f", x) }},
}

func durationOf(x float64) string {
	return finding.Duration(int64(min(max(x, 0), math.MaxInt64/2)))
}

func plain(x float64) string {
	if x < 10 {
		return fmt.Sprintf("%.2g", x)
	}
	return count(int64(min(x, 1e15)))
}

func figureRows(c *compare.Comparison) (rows []comparedRow) {
	for _, f := range c.Figures {
		w, ok := figureWords[f.Name]
		if ok {
			rows = append(rows, comparedRow{w.name, w.print(f.Before), w.print(f.After), change(f.Before, f.After)})
		}
	}
	return rows
}

func change(before, after float64) string {
	if before <= 0 {
		return ""
	}
	return times(after / before)
}

// entryRows are p99 of each entry point that both sides have; a single one is in the figures.
func entryRows(c *compare.Comparison) (rows []comparedRow) {
	if len(c.Entries) < 2 {
		return nil
	}
	for i, e := range c.Entries {
		if i == maxGroups {
			rows = append(rows, comparedRow{name: fmt.Sprintf("%d more: --format json", len(c.Entries)-i)})
			break
		}
		rows = append(rows, comparedRow{shortFunc(e.Entry), durationOf(float64(e.Before.P99)),
			durationOf(float64(e.After.P99)), change(float64(e.Before.P99), float64(e.After.P99))})
	}
	return rows
}

func timeRows(rows []compare.Row) (out []comparedRow) {
	var most float64
	for _, r := range rows {
		most = max(most, r.Before, r.After)
	}
	for _, r := range rows {
		if max(r.Before, r.After) < most/100 {
			continue
		}
		text := account.Words(r.Named, func(s string) string { return shortFunc(s) })
		out = append(out, comparedRow{text, durationOf(r.Before), durationOf(r.After), bars(r.Before, r.After, most)})
	}
	return out
}

// barWidth is how many columns the longest bar of a comparison takes.
const barWidth = 16

// bars draws two amounts over each other: what is left in full, what is gone in light, what is new
// in dark blocks.
func bars(before, after, most float64) string {
	cells := func(x float64) int { return int(math.Ceil(x / cmp.Or(most, 1) * barWidth)) }
	b, a := cells(before), cells(after)
	return strings.Repeat("█", min(a, b)) + strings.Repeat("▓", max(0, a-b)) + strings.Repeat("░", max(0, b-a))
}
