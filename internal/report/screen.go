package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/finding"
)

// The one screen: what a person on call needs, in at most mostLines lines. Everything is on it in
// short, and -v has it whole. How much of each part is shown depends on how much there is: the page
// is made with ever less detail until it fits.

// mostLines is how many lines the one screen has at most.
const mostLines = 45

// Widths of the text. A terminal that is narrower breaks the lines itself.
const (
	leastColumns = 72
	mostColumns  = 120
)

// detail is how many lines the parts get.
type detail struct {
	verdict                        int
	proofs, summary, proof, remedy int // of each root; a summary of 0 is left out where a chain is told
	rows                           int // of the ledger
	marks                          int // below the latency
	verify, blanks                 int // blanks: of what was not seen
	tight                          bool
}

// detailLevels is what is tried, the most generous first. The last one always fits.
var detailLevels = []detail{
	{verdict: 3, proofs: 3, summary: 4, proof: 3, remedy: 3, rows: 8, marks: 4, verify: 2, blanks: 2},
	{verdict: 3, proofs: 3, summary: 3, proof: 2, remedy: 2, rows: 7, marks: 4, verify: 2, blanks: 2},
	{verdict: 3, proofs: 3, summary: 3, proof: 1, remedy: 2, rows: 6, marks: 3, verify: 2, blanks: 1},
	{verdict: 2, proofs: 3, summary: 2, proof: 1, remedy: 1, rows: 5, marks: 2, verify: 2, blanks: 1},
	{verdict: 2, proofs: 3, summary: 1, proof: 1, remedy: 1, rows: 4, marks: 2, verify: 1, blanks: 1},
	{verdict: 2, proofs: 3, summary: 1, proof: 1, remedy: 1, rows: 3, marks: 1, verify: 1, blanks: 1, tight: true},
	{verdict: 2, proofs: 2, proof: 1, remedy: 1, rows: 3, verify: 1, blanks: 1, tight: true},
}

// screen prints the one screen.
func (r *Report) screen(w io.Writer, o TextOptions) error {
	var p *page
	for _, d := range detailLevels {
		p = newPage(o)
		p.screen(r, d, o.More)
		if strings.Count(p.b.String(), "\n") <= mostLines {
			break
		}
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

func (p *page) screen(r *Report, d detail, more string) {
	p.labelled("whystall: ", bold, r.title(), 2)
	for _, s := range []string{r.Target.Ended, strings.Join(r.Errors, "; ")} {
		if s != "" {
			p.limited("  ", s, d.verdict-1)
		}
	}
	p.answer(r, d)
	p.roots(r, d)
	p.attachedBrief(r, d)
	p.bars(r, d)
	p.overTime(r, d)
	p.slowestFew(r)
	p.foot(r, d, more)
}

// attachedBrief says what text says that was given beside the recording.
func (p *page) attachedBrief(r *Report, d detail) {
	a := r.Attached
	if a == nil {
		return
	}
	p.gap(d)
	p.line("%s", p.paint(bold, "ATTACHED")+"  "+p.paint(dim, head(a.title(), p.columns-10)))
	title, style := a.headline()
	p.line("  %s", p.paint(style, head(title, p.columns-2)))
	for i := range a.Causes {
		if i < 2 {
			c := &a.Causes[i]
			p.line("  %s", head(c.label()+c.says(), p.columns-2))
		}
	}
}

// limited is par in n lines at most.
func (p *page) limited(label, text string, n int) {
	for i, l := range lines(text, p.columns-width(label), n) {
		if i > 0 {
			label = strings.Repeat(" ", width(label))
		}
		p.line("%s%s", label, l)
	}
}

// labelled prints a text in n lines at most behind a label, under which the next lines are not
// indented.
func (p *page) labelled(label, style, text string, n int) {
	const hang = 2
	// The label takes part in the breaks as a word of its width.
	l := wrap(strings.Repeat("\x00", max(1, width(label)-hang-1))+" "+Printable(text), p.columns-hang, shortenWords)
	if len(l) > n {
		l = append(l[:n-1:n-1], head(strings.Join(l[n-1:], " "), p.columns-hang))
	}
	for i, s := range l {
		if i == 0 {
			p.line("%s%s", p.paint(style, label), strings.TrimLeft(strings.ReplaceAll(s, "\x00", ""), " "))
		} else {
			p.line("%*s%s", hang, "", s)
		}
	}
}

// answer is the verdict.
func (p *page) answer(r *Report, d detail) {
	p.line("")
	if title, rest := r.halted(); title != "" {
		p.labelled(title+"  ", yellow, rest, d.verdict-1)
	}
	if why := r.unrequested(); why != "" {
		p.labelled(noRequest+"  ", yellow, why, d.verdict)
	}
	word, text, style := r.verdict()
	p.labelled(word+"  ", style, text, d.verdict)
	for _, s := range r.without() {
		p.limited("  ", s, max(1, min(3, d.summary)))
	}
}

// roots shows the first causes with their proofs and remedies, and names the others.
func (p *page) roots(r *Report, d detail) {
	l := r.stories()
	if len(l) == 0 {
		return
	}
	p.line("")
	for i := range l {
		s := &l[i]
		f := s.root
		cause := middle(Printable(f.Cause), 26)
		label := fmt.Sprintf("%2d. ", s.n)
		size := head(fmt.Sprintf("%s: %s", f.Confidence, r.size(f)), p.columns-width(label)-width(cause)-2)
		if i >= briefRoots {
			p.line("%s%s  %s", label, cause, size)
			continue
		}
		p.line("%s%s  %s", label, p.paint(bold, cause), p.paint(dim, size))
		told := s.tells()
		first := ""
		if i+1 < len(l) {
			first = sentence(before(s, &l[i+1]))
		}
		if d.summary > 0 || told == "" && first == "" {
			p.limited("    ", sentence(f.Summary), max(1, d.summary))
		}
		if told != "" {
			p.limited("    ", told, max(1, min(2, d.summary)))
		}
		if first != "" {
			p.limited("    ", first, 1)
		}
		for j, e := range f.Evidence {
			if j < d.proofs {
				p.limited("    - ", e.Text, d.proof)
			}
		}
		if len(f.Remedy) > 0 {
			p.remedy(f.Remedy[0], d.remedy)
		}
	}
}

// remedy prints what to do. A command is not cut.
func (p *page) remedy(text string, n int) {
	const label = "    do: "
	l := wrap(Printable(text), p.columns-width(label), keepWords)
	for i, s := range l {
		if i == n-1 && len(l) > n {
			s = head(strings.Join(l[i:], " "), p.columns-width(label))
		}
		if i >= n {
			break
		}
		if i == 0 {
			p.line("%s%s", p.paint(green, label), s)
		} else {
			p.line("%s%s", strings.Repeat(" ", width(label)), s)
		}
	}
}

// gap parts two sections, where there is room.
func (p *page) gap(d detail) {
	if !d.tight {
		p.line("")
	}
}

// overTime shows when requests were slow, and what was then.
func (p *page) overTime(r *Report, d detail) {
	traffic := r.traffic()
	if traffic == "" {
		return
	}
	p.gap(d)
	p.line("%s", p.paint(bold, "LATENCY")+"  "+p.paint(dim, head(traffic, p.columns-9)))
	const label = 11
	l := r.latency(p.columns - label - 2)
	if l == nil {
		return
	}
	p.line("%*s  %s", label, finding.Duration(l.top), p.paint(red, l.spark))
	for i, m := range l.marks {
		if i < d.marks {
			p.line("%*s  %s", label, m.name, p.paint(yellow, m.line))
		}
	}
	if d.tight {
		return
	}
	p.line("%*s  %s", label, "", p.paint(dim, head(r.axis(l, d.marks), p.columns-label-2)))
}

// axis says what the columns of the latency are, and what the marks below it add up to.
func (r *Report) axis(l *latencyLine, marks int) string {
	s := finding.Duration(l.width) + " a column"
	if u := r.Recording.BeginUTC; u != nil {
		s = "from " + clock(*u, len("2006-01-02T15:04:05"))[len("2006-01-02 "):] + " UTC, " + s
	}
	for i, m := range l.marks {
		if i < marks {
			s += "; " + m.name + " " + m.said
		}
	}
	return s
}

// slowestFew shows the slowest requests, a line each.
func (p *page) slowestFew(r *Report) {
	q := &r.Requests
	if len(q.Slowest) == 0 {
		return
	}
	unit, day := "start after that of the recording", ""
	if u := q.Slowest[0].UTC; u != nil {
		day = clock(*u, len("2006-01-02"))
		unit = "start in UTC"
	}
	p.line("%s", p.paint(bold, "SLOWEST")+"  "+p.paint(dim, unit))
	few := q.Slowest[:min(len(q.Slowest), briefSlowest)]
	wide := 0
	for i := range few {
		wide = max(wide, width(few[i].called()))
	}
	if !slices.ContainsFunc(few, func(o Request) bool { return o.called() != few[0].called() }) {
		wide = 0 // all are alike
	}
	for i := range few {
		s := &few[i]
		label := fmt.Sprintf("  %12s %9s  ", s.when(day), finding.Duration(s.WallNS))
		if wide > 0 {
			label += s.called() + strings.Repeat(" ", wide-width(s.called())+2)
		}
		p.line("%s%s", label, s.most(p.columns-width(label)))
	}
}

// called is the request's name, or that of its entry function.
func (s *Request) called() string {
	name := s.Name
	if name == "" {
		name = s.Entry
	}
	return middle(Printable(shortFunc(name)), maxName)
}

// most is why in the words of its largest account alone, in a width.
func (s *Request) most(wide int) string {
	if len(s.Accounts) == 0 {
		return head(s.Reason, wide)
	}
	a := &s.Accounts[0]
	took := finding.Duration(a.NS) + " "
	w := row{account: a}
	b := briefRow{label: w.label, short: w.withoutSite()}
	return took + b.fitted(wide-width(took))
}

// foot has what was looked for, what was not seen, and how to go on.
func (p *page) foot(r *Report, d detail, more string) {
	p.line("")
	if l := r.ruledOut(); len(l) > 0 {
		label := fmt.Sprintf("ruled out (%d): ", len(l))
		p.line("%s%s", p.paint(dim, label), names(printable(l), p.columns-width(label)))
	}
	if l := r.notChecked(); len(l) > 0 {
		label := fmt.Sprintf("not checked (%d): ", len(l))
		p.line("%s%s", p.paint(dim, label), names(printable(l), p.columns-width(label)))
	}
	if l := r.blanks(); len(l) > 0 {
		label := fmt.Sprintf("not seen (%d): ", len(l))
		text := l[0]
		if len(l) > 1 {
			text = head(text, p.columns*d.blanks-width(label)-14) + fmt.Sprintf(" (and %d more)", len(l)-1)
		}
		shown := lines(text, p.columns-width(label), d.blanks)
		for i, s := range shown {
			if i == 0 {
				p.line("%s%s", p.paint(dim, label), s)
			} else {
				p.line("%s%s", strings.Repeat(" ", width(label)), s)
			}
		}
	}
	if title, rest := r.serviceCost(); title != "" {
		label := "recording cost the service: "
		p.line("%s%s", p.paint(dim, label), head(rest, p.columns-width(label)))
	}
	if more != "" {
		p.remedyLine("more: ", more, 2)
	}
	for i := range r.Findings {
		if v := r.Findings[i].Verify; v != "" {
			p.remedyLine("verify: ", v, d.verify)
			break
		}
	}
}

// remedyLine prints a command whole, and what the comment after it says in n lines at most.
func (p *page) remedyLine(label, text string, n int) {
	l := wrap(Printable(text), p.columns-width(label), keepWords)
	if len(l) > n {
		l = append(l[:n-1:n-1], head(strings.Join(l[n-1:], " "), p.columns-width(label)))
	}
	for i, s := range l {
		if i == 0 {
			p.line("%s%s", p.paint(dim, label), s)
		} else {
			p.line("%s%s", strings.Repeat(" ", width(label)), s)
		}
	}
}

func printable(l []string) (out []string) {
	for _, s := range l {
		out = append(out, middle(Printable(s), 40))
	}
	return out
}
