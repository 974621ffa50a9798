package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// Columns is the width of the text report where there is no terminal.
const Columns = 100

var _ = registerOutput(&Output{Name: "text", Order: 10, Ext: "txt", Print: (*Report).print})

// TextOptions say how much is printed for a person, and how it looks.
type TextOptions struct {
	Colour  bool
	Columns int    // of the terminal; 0: there is none
	All     bool   // all that there is, instead of the one screen
	Only    string // one part of it: see Parts; "" all
	More    string // the command that prints all, "" not known
}

// print prints as much as is asked for.
func (r *Report) print(w io.Writer, o TextOptions) error {
	switch {
	case o.Only != "":
		return r.only(w, o)
	case o.All || r.AttachedOnly(): // what was attached is told on one screen
		return r.Text(w, o)
	}
	return r.screen(w, o)
}

func newPage(o TextOptions) *page {
	p := &page{colour: o.Colour, columns: Columns, all: o.All}
	if o.Columns > 0 {
		p.columns = min(max(o.Columns, leastColumns), mostColumns)
	}
	return p
}

// page collects the text. Every string that may come from the input passes Printable before it
// reaches the page.
type page struct {
	b       strings.Builder
	colour  bool
	columns int
	all     bool // nothing is left out to fit one screen
}

const (
	bold   = "1"
	red    = "1;31"
	green  = "1;32"
	yellow = "33"
	dim    = "2"
)

func (p *page) paint(style, s string) string {
	if !p.colour || s == "" || style == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

func (p *page) line(format string, args ...any) {
	p.b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " "))
	p.b.WriteByte('\n')
}

// heading starts a section.
func (p *page) heading(title, rest string) {
	p.line("")
	title = middle(title, p.columns*2/3)
	if rest == "" {
		p.line("%s", p.paint(bold, title))
		return
	}
	p.painted(title+"  ", p.paint(bold, title)+"  ", dim, 4, rest, shortenWords)
}

// par prints text after a label, wrapped, with the following lines under the first one's text.
func (p *page) par(label, text string) { p.wrapped(label, width(label), text, shortenWords) }

// note is par for labels that are words of a sentence: the following lines are only indented.
func (p *page) note(label, text string) { p.wrapped("  "+label, 6, text, shortenWords) }

// command is par for what a person may copy.
func (p *page) command(label, text string) { p.wrapped(label, width(label), text, keepWords) }

func (p *page) wrapped(label string, hang int, text string, long longWords) {
	p.painted(label, label, "", hang, text, long)
}

// painted is wrapped with a label whose escape sequences take no width, and a style for the text.
func (p *page) painted(label, shown, style string, hang int, text string, long longWords) {
	// The label takes part in the first line's breaks as one word would: as placeholders for its
	// width beyond the hang.
	first, rest, _ := strings.Cut(strings.TrimLeft(Printable(text), " "), " ")
	if long == shortenWords {
		first = middle(first, p.columns-max(width(label), hang))
	}
	text = strings.Repeat("\x00", max(width(label)-hang, 0)) + first + " " + rest
	for i, l := range wrap(text, p.columns-hang, long) {
		if l = strings.TrimLeft(l, "\x00"); i == 0 {
			p.line("%s%s", shown, p.paint(style, l))
		} else {
			p.line("%s%s", strings.Repeat(" ", hang), p.paint(style, l))
		}
	}
}

// Text prints all of the report for a person: the answer in the first lines, its proof below.
func (r *Report) Text(w io.Writer, o TextOptions) error {
	p := newPage(o)
	if r.AttachedOnly() {
		p.attachments(r)
		_, err := io.WriteString(w, p.b.String())
		return err
	}
	p.title(r)
	p.verdict(r)
	p.attachedSection(r)
	p.requests(r)
	p.ledger(r)
	p.details(r)
	p.slowest(r)
	p.onCPU(r)
	p.pauses(r)
	p.capacity(r)
	p.cpus(r)
	p.memory(r)
	p.threads(r)
	p.lookedFor(r)
	p.tiers(r)
	p.lost(r)
	p.cost(r)
	_, err := io.WriteString(w, p.b.String())
	return err
}

func (p *page) title(r *Report) {
	p.painted("whystall: ", p.paint(bold, "whystall: "), bold, 4, r.title(), shortenWords)
	if s := r.Target.Ended; s != "" {
		p.par("  ", "meanwhile: "+s)
	}
	for _, e := range r.Errors {
		p.par("  ", e)
	}
}

func (p *page) verdict(r *Report) {
	p.line("")
	if title, rest := r.halted(); title != "" {
		p.line("%s", p.paint(yellow, title))
		p.par("  ", rest)
		p.line("")
	}
	if why := r.unrequested(); why != "" {
		p.line("%s", p.paint(yellow, noRequest))
		p.par("  ", why)
		p.line("")
	}
	if len(r.Findings) == 0 {
		title, rest := r.nothing()
		style := green
		if title != nothingFound {
			style = yellow
		}
		p.line("%s", p.paint(style, title))
		for _, s := range r.besides(title, rest) {
			p.par("  ", s)
		}
		return
	}
	p.line("%s", p.paint(red, "FOUND "+plural(int64(r.roots()), "cause", "causes")))
	n := 0
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.BecauseOf != "" {
			p.par("    seen as ", fmt.Sprintf("%s, which %s, %s", middle(Printable(f.Cause), 22),
				r.amount(f), f.Confidence))
			continue
		}
		n++
		cause := middle(Printable(f.Cause), 26)
		p.painted(fmt.Sprintf("%2d. %s ", n, cause),
			fmt.Sprintf("%2d. %s ", n, p.paint(bold, cause)), "", 6,
			fmt.Sprintf("%s, %s", r.amount(f), f.Confidence), shortenWords)
		p.par("    ", sentence(f.Summary))
	}
	for _, s := range r.without() {
		p.par("    ", s)
	}
}

const maxGroups = 5

func (p *page) requests(r *Report) {
	q := &r.Requests
	if q.Count == 0 {
		return // said at the top
	}
	p.heading("REQUESTS", fmt.Sprintf("%s; slow: %s", plural(q.Count, "request", "requests"), q.SlowSelect))
	p.line("  %9s %9s %9s %9s %6s  %s", "count", "p50", "p99", "max", "slow", "entry")
	groups := q.counted()
	if len(groups) != 1 {
		p.line("  %9s %9s %9s %9s %6d  %s", count(q.Count), finding.Duration(q.P50),
			finding.Duration(q.P99), finding.Duration(q.Max), q.Slow, "all")
	}
	for i := range groups {
		if i == maxGroups && len(groups) > maxGroups+1 {
			var n int64
			for j := i; j < len(groups); j++ {
				n += groups[j].Count
			}
			p.line("  %9s %39s  %d more entries (all of them: --format json)", count(n), "", len(groups)-i)
			break
		}
		g := &groups[i]
		text := fitted(p.columns-51, func(name func(string) string) string {
			if g.Kind == "" || g.Kind == account.GroupLoop {
				return name(g.Entry)
			}
			return name(g.Entry) + " (" + name(g.Kind) + ")"
		})
		p.line("  %9s %9s %9s %9s %6d  %s", count(g.Count), finding.Duration(g.P50),
			finding.Duration(g.P99), finding.Duration(g.Max), g.Slow, text)
	}
	for i := range groups {
		if g := &groups[i]; g.Doubt != "" && i < maxGroups {
			p.note(Printable(g.Entry)+": ", g.Doubt)
		}
	}
	if s := r.leftOut(); s != "" {
		p.note("not counted: ", s)
	}
}

func (p *page) ledger(r *Report) {
	if r.Ledger.Slow.Requests == 0 || r.Ledger.Slow.WallNS == 0 {
		return
	}
	t := newTable(&r.Ledger)
	p.heading("WHERE SLOW REQUESTS SPEND THEIR TIME", fmt.Sprintf("%s per request", t.scale.name))
	const format = "  %7s %7s %7s %7s  %s"
	const before = 35 // columns in front of the cause
	p.line(format, "share", "slow", "median", "largest", "cause")
	for i := range t.rows {
		w := &t.rows[i]
		median, largest := "-", ""
		if t.medianReq > 0 {
			median = t.scale.print(w.medianDigits)
		}
		if w.largest > 0 {
			largest = strconv.Itoa(w.largest)
		}
		// More lines are better than names cut to nothing.
		room := p.columns - before - 2
		label := wrap(fitted(max(2*room-16, 90), w.label), room, shortenWords)
		p.line(format, tenths(w.share)+" %", t.scale.print(w.slowDigits), median, largest, label[0])
		for _, l := range label[1:] {
			p.line("%*s%s", before+2, "", l)
		}
		if s := w.within(); s != "" && r.Kernel != nil {
			p.line("%*s%s", before+4, "", p.paint(dim, s))
		}
		if s := w.meanwhile(func(s string) string { return middle(Printable(shortFunc(s)), 40) }); s != "" {
			for _, l := range wrap(s, p.columns-before-4, shortenWords) {
				p.line("%*s%s", before+4, "", p.paint(dim, l))
			}
		}
	}
	median, of := "-", ""
	if t.medianReq > 0 {
		median, of = t.scale.print(t.medianTotal),
			fmt.Sprintf("; median: %s in the middle of their group", count(int64(t.medianReq)))
	}
	p.line(format, "100.0 %", t.scale.print(t.slowTotal), median, "", "")
	p.note("slow: ", fmt.Sprintf("%s%s; largest: in how many slow requests this is the biggest part.", plural(int64(t.slowRequests), "request", "requests"), of))
	if s := r.notLookedInto(); s != "" {
		p.note("not looked into: ", s)
	}
}
