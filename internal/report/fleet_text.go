package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/whystall/whystall/internal/fleet"
)

// fleetText prints a fleet for a person: first what cannot be seen.
func fleetText(w io.Writer, r *fleet.Result, o TextOptions) error {
	p := newPage(o)
	p.painted("whystall: ", p.paint(bold, "whystall: "), bold, 4, fleetTitle(r), shortenWords)
	p.listed("BLIND", fleetBlind(r))
	if len(r.DryRun) > 0 {
		p.dryRun(r)
		return p.flush(w)
	}
	p.line("")
	text, style := fleetHeadline(r)
	p.line("%s", p.paint(style, text))
	n := 0
	for i := range r.Findings {
		f := &r.Findings[i]
		p.fleetFinding(f, r.Coverage.Cluster, &n)
	}
	p.alike(r)
	var out []string
	for i := range r.RuledOut {
		out = append(out, fleetRuledOut(&r.RuledOut[i]))
	}
	p.listed("RULED OUT", out)
	p.listed("NOT CHECKED", fleetNotChecked(r))
	p.listed("COST", []string{fleetCost(r)})
	return p.flush(w)
}

func (p *page) flush(w io.Writer) error {
	_, err := io.WriteString(w, p.b.String())
	return err
}

func (p *page) listed(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.heading(title, "")
	for _, l := range lines {
		p.command("  ", l) // a flag that is cut helps nobody
	}
}

func (p *page) fleetFinding(f *fleet.Finding, clusters []string, n *int) {
	who, much, when := fleetSentences(f, clusters)
	if f.BecauseOf != "" {
		p.par("    seen as ", fleetSeenAs(f, who, much, when))
		return
	}
	*n++
	cause := middle(Printable(f.Cause), 26)
	p.painted(fmt.Sprintf("%2d. %s  ", *n, cause),
		fmt.Sprintf("%2d. %s  ", *n, p.paint(bold, cause)), "", 6,
		fmt.Sprintf("%s, %s", who, f.Confidence), shortenWords)
	p.par("    ", sentence(f.Title+": "+much))
	if when != "" {
		p.par("    ", when)
	}
	if all := fleetEverywhere(f); all != "" {
		p.par("    ", all)
	}
	for _, e := range f.Evidence {
		p.par("    - ", e.Text)
	}
	p.par("    ", fmt.Sprintf("%s: %s", f.Confidence, f.Why))
	var others []string
	for _, m := range f.Members[1:min(len(f.Members), 6)] {
		others = append(others, m.Name+" "+fleet.Amount(m.Value, f.Unit))
	}
	if len(others) > 0 {
		p.par("    also ", strings.Join(others, ", "))
	}
	for _, c := range f.Capture {
		p.command("    $ ", c)
	}
}

// fleetSeenAs is what a cause makes look present.
func fleetSeenAs(f *fleet.Finding, who, much, when string) string {
	s := fmt.Sprintf("%s: %s; %s", f.Cause, who, much)
	if when != "" {
		s += ", " + when
	}
	return s
}

func (p *page) alike(r *fleet.Result) {
	var lines []string
	for _, a := range r.LookAlikes {
		var names []string
		for _, m := range a.Members[:min(len(a.Members), 3)] {
			names = append(names, m.Name)
		}
		lines = append(lines, fmt.Sprintf("not %s: %s (%s: %s)", a.Cause, a.Text,
			count(int64(a.Count)), strings.Join(names, ", ")))
	}
	p.listed("LOOKS ALIKE", lines)
}

func (p *page) dryRun(r *fleet.Result) {
	p.heading("WOULD ASK", "")
	var sum int64
	for _, q := range r.DryRun {
		p.par("  ", fmt.Sprintf("%s (about %s)", q.Purpose, plural(q.Samples, "sample", "samples")))
		p.command("    ", q.Query)
		sum += q.Samples
	}
	p.par("  ", fmt.Sprintf("in all about %s; of each cause that is there some questions about its worst members follow", plural(sum, "sample", "samples")))
}
