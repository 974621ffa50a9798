package report

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/toll"
)

// What recording cost the service: a title with what can be said, and a table of the stages.

// costRow is a line of the table; the first one has the names of the stages.
type costRow struct {
	Name  string
	Cells []costCell
}

type costCell struct {
	Value  string
	Growth string // beside counters alone; "" for those themselves
}

func (c costCell) String() string {
	if c.Growth == "" {
		return c.Value
	}
	return c.Value + " (" + c.Growth + ")"
}

// stageWords names the stages in a table, measureWords the measures.
var (
	stageWords = map[evidence.StageName]string{evidence.StageCounters: "counters alone",
		evidence.StageKernel: "+ kernel", evidence.StageAll: "+ trace"}
	withWords = map[evidence.StageName]string{evidence.StageKernel: "with the kernel's records",
		evidence.StageAll: "with all parts"}
	measureWords = map[toll.Measure]string{
		toll.CPU: "CPU time", toll.Queued: "waiting for a CPU", toll.Held: "on CPU or waiting",
		toll.Switches: "context switches", toll.Throttled: "throttled",
	}
)

// serviceCost says what recording cost the service; "" if it was not measured.
func (r *Report) serviceCost() (title, rest string) {
	b := r.Cost.Service
	if b == nil {
		if len(r.Cost.Eased) > 0 {
			return "WHAT RECORDING COST THE SERVICE", "not measured"
		}
		return "", ""
	}
	said := []string{r.effects(b)}
	switch b.Unit {
	case toll.UnitNone:
		said = append(said, "by unit of work nothing can be said: no counter of work, such as bytes read, was there in all stages, or too little was done")
	case toll.UnitNet:
		said = append(said, "the unit of work is what the service's network namespace received, which may be others' as well")
	}
	return "WHAT RECORDING COST THE SERVICE", strings.Join(said, "; ")
}

// effects says in a sentence what changed.
func (r *Report) effects(b *toll.Bill) string {
	last := b.Stages[len(b.Stages)-1].Name
	var beyond, within, open []string
	for _, e := range b.Effects {
		words := fmt.Sprintf("%s %s %s", measureWords[e.Measure], grown(e), withWords[e.Stage])
		switch {
		case e.Said == toll.Beyond:
			beyond = append(beyond, words)
		case e.Stage != last || e.Limit == 0:
		case e.Said == toll.Within:
			within = append(within, words)
		case e.Said == toll.Untold:
			open = append(open, measureWords[e.Measure])
		}
	}
	var said []string
	if len(beyond) > 0 {
		said = append(said, "more than it should: "+strings.Join(beyond, ", "))
	}
	if len(within) > 0 {
		said = append(said, "within its limits: "+strings.Join(within, ", "))
	}
	switch {
	case b.LoadChanged:
		said = append(said, "the work a second changed meanwhile: whether the load did that or the recording cannot be told")
	case len(open) > 0:
		said = append(said, "cannot be told beside the load's own noise: "+strings.Join(open, ", "))
	}
	if len(said) == 0 {
		return "not known"
	}
	return strings.Join(said, "; ")
}

// grown prints a growth with its error.
func grown(e toll.Effect) string {
	return fmt.Sprintf("%+.1f ± %.1f %%", 100*e.Growth, 100*e.Error)
}

// serviceTable is the table of the stages, without the lines of which nothing was counted.
func (r *Report) serviceTable() []costRow {
	b := r.Cost.Service
	if b == nil {
		return nil
	}
	head, lasted, work := costRow{}, costRow{Name: "lasted"}, costRow{Name: "work a second"}
	if b.Unit != toll.UnitNone {
		head.Name = map[toll.Unit]string{toll.UnitRead: "for each KB read",
			toll.UnitNet: "for each KB received"}[b.Unit]
	}
	for _, s := range b.Stages {
		head.Cells = append(head.Cells, costCell{Value: stageWords[s.Name]})
		lasted.Cells = append(lasted.Cells, costCell{Value: finding.Duration(s.NS)})
		work.Cells = append(work.Cells, costCell{Value: quantity(s.Work.Value) + " KB"})
	}
	rows := []costRow{head, lasted}
	if b.Unit != toll.UnitNone {
		rows = append(rows, work)
	}
	for _, m := range toll.Measures {
		row := costRow{Name: measureWords[m]}
		counted := false
		for _, s := range b.Stages {
			a, ok := s.Amount(m)
			counted = counted || ok
			row.Cells = append(row.Cells, cellOf(b, s.Name, a, ok))
		}
		if counted {
			rows = append(rows, row)
		}
	}
	return rows
}

// cellOf prints a measure in a stage, and by how much it grew.
func cellOf(b *toll.Bill, stage evidence.StageName, a toll.Amount, ok bool) costCell {
	f, unit := a.ByWork, ""
	if b.Unit == toll.UnitNone || a.Measure == toll.Throttled {
		f, unit = a.BySecond, "/s"
	}
	if !ok || !f.Known && f.Value == 0 {
		return costCell{Value: "not known"}
	}
	c := costCell{Value: finding.Duration(int64(f.Value)) + unit}
	if a.Measure == toll.Switches {
		c.Value = quantity(f.Value) + unit
	}
	if e, ok := b.Of(stage, a.Measure); ok && e.Said != toll.NotKnown && a.Measure != toll.Throttled {
		c.Growth = fmt.Sprintf("%+.0f ± %.0f %%", 100*e.Growth, 100*e.Error)
	}
	return c
}

// quantity prints a number with three figures.
func quantity(f float64) string {
	switch {
	case f >= 1e6:
		return fmt.Sprintf("%.2f M", f/1e6)
	case f >= 100:
		return count(int64(f + 0.5))
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

// eased says which parts were left out, thinned or shortened, and what that cost.
func (r *Report) eased() (said []string) {
	for _, e := range r.Cost.Eased {
		s := fmt.Sprintf("%s: %s to spare the service, as %s", e.Part, e.Did, easingWords(e))
		if e.Lost != "" {
			s += "; " + e.Lost
		}
		said = append(said, s)
	}
	return said
}

func easingWords(e evidence.Easing) string {
	measured, limit := fmt.Sprintf("%.0f %%", 100*e.Measured), fmt.Sprintf("%.0f %%", 100*e.Limit)
	switch e.Why {
	case evidence.WhyCPU:
		return "it used " + measured + " more CPU time for the same work (limit " + limit + ")"
	case evidence.WhyHeld:
		return "its threads were on a CPU or waited for one for " + measured +
			" longer for the same work (limit " + limit + ")"
	case evidence.WhyThrottled:
		return "it was throttled for " + measured + " more of the time (limit " + limit + ")"
	case evidence.WhyBusy:
		return measured + " of the CPU time that it may use was in use (limit " + limit + ")"
	case evidence.WhyMemory:
		return "its memory was at " + measured + " of its limit (from " + limit + " on)"
	case evidence.WhyRefaults:
		return fmt.Sprintf("its cgroup's memory limit evicts pages that it needs again, %.0f a second (limit %.0f)",
			e.Measured, e.Limit)
	case evidence.WhyUnread:
		return "what was recorded by then answers the same questions"
	}
	return "it seemed to harm it"
}
