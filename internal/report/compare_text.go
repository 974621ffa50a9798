package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/whystall/whystall/internal/compare"
)

// comparisonText prints a comparison for a person: the verdict first.
func comparisonText(w io.Writer, c *compare.Comparison, o TextOptions) error {
	p := newPage(o)
	p.painted("whystall: ", p.paint(bold, "whystall: "), bold, 4, strings.Join(c.Before.Files, " ")+
		" -> "+strings.Join(c.After.Files, " "), shortenWords)
	p.line("")
	text, style := headline(c)
	p.painted("", "", style, 2, text, shortenWords)
	for i := range c.Verdicts {
		v := &c.Verdicts[i]
		p.painted(fmt.Sprintf("%2d. %s ", i+1, v.Cause),
			fmt.Sprintf("%2d. %s ", i+1, p.paint(bold, v.Cause)), outcomeStyle(v.Outcome), 6,
			string(v.Outcome), shortenWords)
		p.par("    ", sentence(sentenceOf(v)))
		for _, g := range v.Gates {
			p.par("    - ", gateWords(g, v, c))
		}
	}
	for _, s := range []string{goneLine(c), freshLine(c), programsLine(c), startsLine(c)} {
		if s != "" {
			p.par("  ", sentence(s))
		}
	}
	p.compared("FIGURES", "", figureRows(c))
	p.compared("ENTRY POINTS", "p99", entryRows(c))
	p.compared("WHERE SLOW REQUESTS SPEND THEIR TIME", "per request; "+legend, timeRows(c.Slow))
	p.compared("WHERE USUAL REQUESTS SPEND THEIR TIME", "per request", timeRows(c.Usual))
	_, err := io.WriteString(w, p.b.String())
	return err
}

// legend says what the bars are.
const legend = "█ stayed, ░ gone, ▓ new"

func outcomeStyle(o compare.Outcome) string {
	switch o {
	case compare.Confirmed:
		return green
	case compare.CannotTell:
		return yellow
	}
	return red
}

// compared prints a table of two sides.
func (p *page) compared(title, rest string, rows []comparedRow) {
	if len(rows) == 0 {
		return
	}
	p.heading(title, rest)
	p.line("  %10s %10s  %-*s  %s", "before", "after", barWidth, "", "")
	for _, r := range rows {
		room := p.columns - 2 - 10 - 1 - 10 - 2 - barWidth - 2
		name := wrap(Printable(r.name), room-2, shortenWords)
		p.line("  %10s %10s  %s%s  %s", r.before, r.after, r.change,
			strings.Repeat(" ", max(0, barWidth-width(r.change))), name[0])
		for _, l := range name[1:] {
			p.line("%*s%s", p.columns-room+2, "", l)
		}
	}
}
