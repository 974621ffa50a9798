package report

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// bars shows where the time of slow requests goes beside that of usual ones; without requests, what
// the CPUs were used for.
func (p *page) bars(r *Report, d detail) {
	if r.Ledger.Slow.Requests == 0 || r.Ledger.Slow.WallNS == 0 {
		p.processBars(r, d)
		return
	}
	t := newTable(&r.Ledger)
	rows := briefRows(t, d.rows)
	p.gap(d)
	p.line("%s", p.paint(bold, "WHERE THE TIME GOES")+"  "+p.paint(dim, head(t.brief(), p.columns-21)))
	var most int64 = 1
	for _, w := range rows {
		most = max(most, w.slow, w.usual)
	}
	numbers := max(len(t.scale.print(most)), 5)
	name := p.columns / 2
	bar := (p.columns - name - 2*numbers - 8) / 2
	labels := fittedRows(rows, name)
	for i, w := range rows {
		usual := "-"
		if t.medianReq > 0 {
			usual = t.scale.print(w.usual)
		}
		label := labels[i]
		p.line("  %s%s  %*s %s  %*s %s", label, strings.Repeat(" ", max(0, name-width(label))),
			numbers, t.scale.print(w.slow), p.paint(red, filled(w.slow, most, bar)),
			numbers, usual, p.paint(dim, strings.TrimRight(filled(w.usual, most, bar), " ")))
	}
}

// brief says what the bars are of.
func (t *table) brief() string {
	s := fmt.Sprintf("%s a request: %s slow, %s each", t.scale.name, count(int64(t.slowRequests)),
		t.scale.print(t.slowTotal))
	if t.medianReq > 0 {
		s += fmt.Sprintf("; beside %s usual, %s", count(int64(t.medianReq)), t.scale.print(t.medianTotal))
	}
	return s
}

// briefRow is a row with its digits.
type briefRow struct {
	label       func(name func(string) string) string
	short       func(name func(string) string) string // without where the request stood; nil: there is none
	slow, usual int64
}

// fitted is the label in a width. Where the request stood is left out before names are cut.
func (w *briefRow) fitted(wide int) string {
	short := func(n string) string { return Printable(shortFunc(n)) }
	if w.short != nil && width(w.label(short)) > wide {
		return fitted(wide, w.short)
	}
	return fitted(wide, w.label)
}

// withoutSite names a row by who waited for whom alone; nil where that would say too little.
func (w *row) withoutSite() func(name func(string) string) string {
	if w.account == nil || w.other || w.unexplained || w.folded > 1 || w.account.Actor == "" {
		return nil
	}
	a := *w.account
	if a.Class == account.ClassLock && a.Site != "" { // which lock says more than what its holder did
		return func(name func(string) string) string { return "lock at " + name(a.Site) }
	}
	a.Site, a.Detail = "", ""
	return func(name func(string) string) string {
		return describe(&a, name)
	}
}

// briefRows are the largest n rows. What they leave out is one more, so that they still add up;
// nothing unexplained is in it.
func briefRows(t *table, n int) (out []briefRow) {
	rest := briefRow{}
	var left, folded int
	unexplained := briefRow{label: func(func(string) string) string { return "unexplained" }}
	for i := range t.rows {
		w := &t.rows[i]
		switch {
		case w.unexplained:
			unexplained.slow, unexplained.usual = w.slowDigits, w.medianDigits
		case w.other || len(out) == n:
			rest.slow += w.slowDigits
			rest.usual += w.medianDigits
			folded += max(1, w.folded)
			left++
		default:
			out = append(out, briefRow{w.label, w.withoutSite(), w.slowDigits, w.medianDigits})
		}
	}
	if left > 0 && rest.slow+rest.usual > 0 {
		rest.label = func(func(string) string) string {
			return "other (" + plural(int64(folded), "account", "accounts") + ")"
		}
		out = append(out, rest)
	}
	if unexplained.slow+unexplained.usual > 0 {
		out = append(out, unexplained)
	}
	return out
}

// filled draws a part of a whole as a bar of that many columns, with blanks after it. What is not
// zero has at least a thin one.
func filled(part, whole int64, columns int) string {
	if part <= 0 || whole <= 0 || columns <= 0 {
		return strings.Repeat(" ", max(0, columns))
	}
	eighths := int(float64(part) / float64(whole) * float64(columns*8))
	eighths = min(max(eighths, 1), columns*8)
	s := strings.Repeat("█", eighths/8)
	if e := eighths % 8; e > 0 {
		s += string([]rune("▏▎▍▌▋▊▉")[e-1])
	}
	return s + strings.Repeat(" ", columns-width(s))
}

// processBars shows what the CPUs did, and what they were used for.
func (p *page) processBars(r *Report, d detail) {
	var rows []CapacityRow
	var title, rest string
	var whole int64
	switch c, o := r.Ledger.CPUs, &r.Ledger.Capacity; {
	case c != nil:
		title, rows, whole = "CPUS", c.Accounts, c.TotalNS
		rest = fmt.Sprintf("%s that it may use x %s; %s", plural(int64(c.Allowed), "CPU", "CPUs"),
			finding.Duration(c.WallNS), c.beside())
	case o.TotalNS > 0:
		title, rows, whole = "CAPACITY", o.Accounts, o.TotalNS
		rest = fmt.Sprintf("%s x %s", plural(int64(o.Procs), "P", "Ps"), finding.Duration(o.WallNS))
	default:
		return
	}
	p.gap(d)
	p.line("%s", p.paint(bold, title)+"  "+p.paint(dim, head(rest, p.columns-width(title)-2)))
	const name = 32
	for i := range rows {
		if a := &rows[i]; a.NS > 0 {
			p.line("  %-*s %8s %9s %s", name, a.Cause, percent(a.Share), finding.Duration(a.NS),
				p.paint(red, strings.TrimRight(filled(a.NS, whole, p.columns-name-25), " ")))
		}
	}
	t := r.works()
	if t == nil || t.process == nil {
		return
	}
	p.line("%s", p.paint(bold, "ON CPU")+"  "+p.paint(dim, head(t.heading(), p.columns-8)))
	for i := range t.rows {
		if i == d.rows-2 {
			break
		}
		w := &t.rows[i]
		p.line("  %7s  %s", t.cell(t.process, w.process), shortLabel(w.label, p.columns-11))
	}
}
