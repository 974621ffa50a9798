package report

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/finding"
)

func (p *page) details(r *Report) {
	n := 0
	for i := range r.Findings {
		f := &r.Findings[i]
		title, under := "", ""
		if f.BecauseOf == "" {
			n++
			title = fmt.Sprintf("%d. %s", n, f.Cause)
		} else {
			title = "   " + f.Cause
			under = "because of " + f.BecauseOf + ": "
		}
		p.heading(Printable(title), under+f.Title)
		if f.BecauseOf != "" {
			p.par("   ", sentence(f.Summary))
		}
		grade := fmt.Sprintf("%s, %s", f.Confidence, sure(f.Confidence))
		if i == 0 {
			grade += "; see whystall causes how-sure"
		}
		p.par("   how sure: ", grade)
		for j, e := range f.Evidence {
			label := "   evidence: "
			if j > 0 {
				label = "             "
			}
			text := e.Text
			if e.Source != "" && (j == len(f.Evidence)-1 || f.Evidence[j+1].Source != e.Source) {
				text += "  [" + e.Source + "]" // where it and those before it were read
			}
			p.par(label+"- ", text)
		}
		for j, m := range f.Remedy {
			label := "   remedy:   "
			if j > 0 {
				label = "             "
			}
			p.command(label+"- ", m)
		}
		if f.Verify != "" {
			p.command("   verify:   ", f.Verify)
		}
	}
}

// maxName is how wide the name of a request may be beside its reason.
const maxName = 28

func (p *page) slowest(r *Report) {
	q := &r.Requests
	if len(q.Slowest) == 0 {
		return
	}
	unit, day := "start: offset from the recording's start", ""
	if u := q.Slowest[0].UTC; u != nil {
		day = clock(*u, len("2006-01-02"))
		unit = "start: UTC, " + day
	}
	names, same := make([]string, len(q.Slowest)), true
	for i := range q.Slowest {
		s := &q.Slowest[i]
		names[i] = Printable(s.Name)
		if s.Name == "" {
			names[i] = Printable(s.Entry)
		}
		if width(names[i]) > maxName {
			names[i] = middle(Printable(shortFunc(names[i])), maxName)
		}
		same = same && names[i] == names[0]
	}
	if same && len(names) > 1 {
		name := q.Slowest[0].Name
		if name == "" {
			name = q.Slowest[0].Entry
		}
		unit += "; all of " + shortFunc(name)
	}
	p.heading("SLOWEST REQUESTS", unit)
	wide := 0
	for _, n := range names {
		wide = max(wide, width(n))
	}
	last, alike := "", 0
	more := func() {
		if alike > 0 {
			p.line("  %12s %9s  and %d more like it", "", "", alike)
		}
		alike = 0
	}
	for i := range q.Slowest {
		s := &q.Slowest[i]
		label := fmt.Sprintf("  %12s %9s  ", s.when(day), finding.Duration(s.WallNS))
		if !same || len(names) == 1 {
			label += names[i] + strings.Repeat(" ", wide-width(names[i])+2)
		}
		why := s.why()
		if label+why == last { // one event held them up together
			alike++
			continue
		}
		more()
		last = label + why
		p.par(label, why)
	}
	more()
}

func (p *page) lookedFor(r *Report) {
	if len(r.RuledOut) > 0 {
		p.heading("RULED OUT", "")
		for _, o := range r.RuledOut {
			p.item(o.Cause, o.Why+bounds(o.Bounds))
		}
	}
	if len(r.NotChecked) > 0 {
		p.heading("NOT CHECKED", "what could not be checked, and what is missing")
		for _, u := range r.unchecked() {
			if len(u.causes) == 1 {
				p.item(u.causes[0], u.missing)
				continue
			}
			p.par("  ", strings.Join(u.causes, ", ")+":")
			p.par(strings.Repeat(" ", 24), u.missing)
		}
	}
}

func (p *page) item(name, text string) {
	name = middle(Printable(name), 22)
	p.par("  "+name+strings.Repeat(" ", max(21-width(name), 0)+1), text)
}

const maxGaps = 5

func (p *page) lost(r *Report) {
	if len(r.Gaps) == 0 && len(r.Lacks) == 0 && r.failedInputs() == 0 && (r.NotLookedAt.Silences.N == 0 || r.joined()) {
		return
	}
	p.heading("WHAT THE RECORDING LACKS", "")
	for _, in := range r.Inputs {
		if in.Error != "" {
			p.note("not read: ", in.Name+": "+in.Error)
		}
	}
	gaps := r.merged()
	for i := range gaps {
		if i == maxGaps && len(gaps) > maxGaps+1 {
			p.line("  lost: %d more gaps (all of them: --format json)", len(gaps)-i)
			break
		}
		if g := &gaps[i]; g.EndNS > g.BeginNS {
			p.note("lost: ", r.gap(g))
		} else {
			p.note("missing: ", r.gap(g))
		}
	}
	if s := &r.NotLookedAt.Silences; s.N > 0 && !r.joined() {
		p.note("silences: ", silences(s))
	}
	if len(r.Lacks) > 0 {
		p.note("not recorded by this trace format: ", strings.Join(r.Lacks, "; "))
	}
}

func (p *page) cost(r *Report) {
	if title, rest := r.serviceCost(); title != "" {
		p.heading(title, rest)
		p.serviceTable(r.serviceTable())
		for _, s := range r.eased() {
			p.note("", s)
		}
	}
	if s := r.cost(); s != "" {
		p.line("")
		p.wrapped("whystall itself: ", 4, s, shortenWords)
	}
}

// serviceTable prints what each stage of the recording cost. A narrow page has no growth in it.
func (p *page) serviceTable(rows []costRow) {
	const names = 22
	for i, row := range rows {
		text := fmt.Sprintf("   %-*s", names, row.Name)
		for _, c := range row.Cells {
			wide := (p.columns - names - 3) / 3
			shown := c.String()
			if width(shown) >= wide {
				shown = c.Value
			}
			text += fmt.Sprintf("%*s", wide, shown)
		}
		style := ""
		if i == 0 {
			style = dim
		}
		p.line("%s", p.paint(style, text))
	}
}
