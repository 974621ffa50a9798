package report

import (
	"fmt"
	"io"

	"github.com/whystall/whystall/internal/fleet"
)

// fleetMarkdown prints a fleet for a ticket.
func fleetMarkdown(w io.Writer, r *fleet.Result) error {
	m := &markdown{}
	text, _ := fleetHeadline(r)
	m.line("## whystall fleet: %s\n\n%s", escape(text), escape(fleetTitle(r)))
	for i := range r.Findings {
		f := &r.Findings[i]
		who, much, when := fleetSentences(f, r.Coverage.Cluster)
		if f.BecauseOf != "" {
			m.line("   - seen as %s", escape(fleetSeenAs(f, who, much, when)))
			continue
		}
		m.line("\n1. **%s**: %s, %s. %s", escape(f.Cause), escape(who),
			escape(string(f.Confidence)), escape(sentence(f.Title+": "+much)))
		if when != "" {
			m.line("   - %s", escape(when))
		}
		if all := fleetEverywhere(f); all != "" {
			m.line("   - %s", escape(all))
		}
		for _, e := range f.Evidence {
			m.line("   - %s", escape(e.Text))
		}
		m.line("   - %s", escape(fmt.Sprintf("%s: %s", f.Confidence, f.Why)))
		for _, c := range f.Capture {
			m.line("   - capture: %s", escape(c))
		}
	}
	section := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		m.line("\n### %s\n", title)
		for _, l := range lines {
			m.line("- %s", escape(l))
		}
	}
	section("Blind", fleetBlind(r))
	var out []string
	for i := range r.RuledOut {
		out = append(out, fleetRuledOut(&r.RuledOut[i]))
	}
	section("Ruled out", out)
	section("Not checked", fleetNotChecked(r))
	m.line("\n<sub>%s</sub>", escape(fleetCost(r)))
	_, err := io.WriteString(w, m.b.String())
	return err
}
