package report

import (
	"io"
	"strings"

	"github.com/whystall/whystall/internal/compare"
)

// comparisonMarkdown prints a comparison for a ticket: at most one screen.
func comparisonMarkdown(w io.Writer, c *compare.Comparison) error {
	m := &markdown{}
	text, _ := headline(c)
	m.line("## whystall: %s", escape(text))
	m.line("\n%s\n", escape(strings.Join(c.Before.Files, " ")+" -> "+strings.Join(c.After.Files, " ")))
	for i := range c.Verdicts {
		v := &c.Verdicts[i]
		m.line("%d. **%s: %s.** %s", i+1, escape(v.Cause), escape(string(v.Outcome)), escape(sentence(sentenceOf(v))))
		for _, g := range v.Gates {
			m.line("   - %s", escape(gateWords(g, v, c)))
		}
	}
	for _, s := range []string{goneLine(c), freshLine(c), programsLine(c), startsLine(c)} {
		if s != "" {
			m.line("\n%s", escape(sentence(s)))
		}
	}
	m.compared("figure", figureRows(c))
	m.compared("p99 of", entryRows(c))
	m.compared("a slow request's time", timeRows(c.Slow))
	_, err := io.WriteString(w, m.b.String())
	return err
}

func (m *markdown) compared(what string, rows []comparedRow) {
	if len(rows) == 0 {
		return
	}
	m.line("\n| %s | before | after | |\n|---|--:|--:|---|", what)
	for _, r := range rows {
		m.line("| %s | %s | %s | %s |", escape(r.name), escape(r.before), escape(r.after), escape(r.change))
	}
}
