package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/whystall/whystall/internal/finding"
)

// What the channel of an incident gets: the one screen in markdown, without pictures.

func (r *Report) printMarkdown(w io.Writer, o TextOptions) error {
	if o.All || r.AttachedOnly() {
		return r.Markdown(w)
	}
	m := &markdown{}
	m.line("**whystall: %s**\n", escape(r.title()))
	for _, e := range r.Errors {
		m.line("> **%s**\n", escape(e))
	}
	m.answer(r)
	m.roots(r)
	if a := r.Attached; a != nil {
		title, _ := a.headline()
		m.line("\nAttached: %s. %s", escape(a.title()), short(title))
	}
	m.bars(r)
	m.slowestFew(r)
	m.foot(r, o.More)
	_, err := io.WriteString(w, m.b.String())
	return err
}

// briefText is how long a sentence of somebody else's may be.
const briefText = 300

// short is a sentence that is cut where it is long.
func short(s string) string { return escape(head(s, briefText)) }

func (m *markdown) answer(r *Report) {
	if title, rest := r.halted(); title != "" {
		m.line("**%s.** %s\n", sentenceCase(title), short(rest))
	}
	if why := r.unrequested(); why != "" {
		m.line("**%s.** %s\n", sentenceCase(noRequest), short(why))
	}
	word, text, _ := r.verdict()
	m.line("**%s.** %s", sentenceCase(word), short(text))
	for _, s := range r.without() {
		m.line("%s", short(s))
	}
}

func (m *markdown) roots(r *Report) {
	l := r.stories()
	if len(l) > 0 {
		m.line("")
	}
	for i := range l {
		s := &l[i]
		m.line("%d. **%s** %s: %s", s.n, escape(head(s.root.Cause, 60)),
			escape(string(s.root.Confidence)), escape(r.size(s.root)))
		if i >= briefRoots {
			continue
		}
		m.line("   - %s", short(strings.TrimSpace(sentence(s.root.Summary)+" "+s.tells())))
		if i+1 < len(l) {
			if t := before(s, &l[i+1]); t != "" {
				m.line("   - %s", short(sentence(t)))
			}
		}
		for j, e := range s.root.Evidence {
			if j < briefProofs {
				m.line("   - proof: %s", short(e.Text))
			}
		}
		if len(s.root.Remedy) > 0 {
			m.line("   - do: %s", short(s.root.Remedy[0]))
		}
	}
}

func (m *markdown) bars(r *Report) {
	if r.Ledger.Slow.Requests == 0 || r.Ledger.Slow.WallNS == 0 {
		return
	}
	t := newTable(&r.Ledger)
	m.line("\n%s\n", escape(sentenceCase(t.brief())+"."))
	m.line("| slow | usual | where the time goes |\n|--:|--:|---|")
	for _, w := range briefRows(t, 6) {
		usual := "-"
		if t.medianReq > 0 {
			usual = t.scale.print(w.usual)
		}
		m.line("| %s | %s | %s |", t.scale.print(w.slow), usual, escape(w.fitted(90)))
	}
}

func (m *markdown) slowestFew(r *Report) {
	if s := r.traffic(); s != "" {
		m.line("\n%s.", escape(s))
	}
	var l []string
	for i := range r.Requests.Slowest {
		if i == briefSlowest {
			break
		}
		s := &r.Requests.Slowest[i]
		at := s.when("")
		if s.UTC != nil {
			at += " UTC"
		}
		l = append(l, fmt.Sprintf("%s %s", at, finding.Duration(s.WallNS)))
	}
	if len(l) > 0 {
		m.line("Slowest: %s.", escape(strings.Join(l, "; ")))
	}
}

func (m *markdown) foot(r *Report, more string) {
	m.line("")
	if l := r.ruledOut(); len(l) > 0 {
		m.line("- ruled out (%d): %s", len(l), escape(names(printable(l), 200)))
	}
	if l := r.notChecked(); len(l) > 0 {
		m.line("- not checked (%d): %s", len(l), escape(names(printable(l), 200)))
	}
	if l := r.blanks(); len(l) > 0 {
		m.line("- not seen (%d): %s", len(l), short(l[0]))
	}
	for i := range r.Findings {
		if v := r.Findings[i].Verify; v != "" {
			m.line("- verify: %s", code(v))
			break
		}
	}
	if more != "" {
		m.line("- more: %s", code(more))
	}
}
