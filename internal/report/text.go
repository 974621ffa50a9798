package report

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// Columns is the width of the text report, and narrowest what it is made to fit at the least.
const (
	Columns   = 100
	narrowest = 60
)

var _ = registerOutput(&Output{Name: "text", Order: 10, Ext: "txt", Print: (*Report).Text})

// TextOptions is how the text is to look.
type TextOptions struct {
	Colour  bool
	Columns int // of the terminal; 0: Columns, which is also the most
}

// page collects the text. Every string that may come from the input passes Printable before it reaches the page.
type page struct {
	b       strings.Builder
	colour  bool
	columns int
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

// heading begins a section.
func (p *page) heading(title, rest string) {
	p.line("")
	title = middle(title, p.columns*2/3)
	if rest == "" {
		p.line("%s", p.paint(bold, title))
		return
	}
	p.painted(title+"  ", p.paint(bold, title)+"  ", dim, 4, rest, false)
}

// par prints text after a label, wrapped, with the following lines under the first one's text.
func (p *page) par(label, text string) { p.wrapped(label, width(label), text, false) }

// note is par for labels that are words of a sentence: the following lines are only indented.
func (p *page) note(label, text string) { p.wrapped("  "+label, 6, text, false) }

// command is par for what a person may copy.
func (p *page) command(label, text string) { p.wrapped(label, width(label), text, true) }

func (p *page) wrapped(label string, hang int, text string, whole bool) {
	p.painted(label, label, "", hang, text, whole)
}

// painted is wrapped with a label that is shown otherwise than it is wide, and a style for the text.
func (p *page) painted(label, shown, style string, hang int, text string, whole bool) {
	// The label takes part in the first line's breaks as one word would: as placeholders of its width beyond the hang.
	first, rest, _ := strings.Cut(strings.TrimLeft(Printable(text), " "), " ")
	if !whole {
		first = middle(first, p.columns-max(width(label), hang))
	}
	text = strings.Repeat("\x00", max(width(label)-hang, 0)) + first + " " + rest
	for i, l := range wrap(text, p.columns-hang, whole) {
		if l = strings.TrimLeft(l, "\x00"); i == 0 {
			p.line("%s%s", shown, p.paint(style, l))
		} else {
			p.line("%s%s", strings.Repeat(" ", hang), p.paint(style, l))
		}
	}
}

// Text prints the report for a person: the answer in the first lines, its proof below.
func (r *Report) Text(w io.Writer, o TextOptions) error {
	p := &page{colour: o.Colour, columns: Columns}
	if o.Columns > 0 {
		p.columns = min(max(o.Columns, narrowest), Columns)
	}
	p.title(r)
	p.verdict(r)
	p.requests(r)
	p.ledger(r)
	p.details(r)
	p.slowest(r)
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
	p.painted("whystall: ", p.paint(bold, "whystall: "), bold, 4, r.title(), false)
	if s := r.Target.Ended; s != "" {
		p.par("  ", "meanwhile: "+s)
	}
	for _, e := range r.Errors {
		p.par("  ", e)
	}
}

// maxTarget is how wide the name of what was looked at may be: a URL or a path may be anything.
const maxTarget = 48

// title tells what was looked at and when, in one line.
func (r *Report) title() string {
	t := &r.Target
	var parts []string
	name := t.Name
	if name == "" {
		name = t.URL
	}
	for i := range r.Inputs {
		if name == "" && r.Inputs[i].Error == "" {
			name = middle(path.Base(r.Inputs[i].Name), 40)
		}
	}
	if t.PID != 0 {
		name = strings.TrimSpace(fmt.Sprintf("%s pid %d", name, t.PID))
	}
	if t.Host != "" {
		name += " on " + t.Host
	}
	if name != "" {
		parts = append(parts, middle(Printable(name), maxTarget))
	}
	switch {
	case t.GoVersion != "":
		parts = append(parts, t.GoVersion)
	case r.Native && t.Runtime != "":
		parts = append(parts, t.Runtime+", as plain threads")
	case r.Native:
		parts = append(parts, "native")
	case r.Recording.TraceFormat != "":
		parts = append(parts, "trace format "+r.Recording.TraceFormat)
	}
	if t.GOMAXPROCS > 0 {
		parts = append(parts, fmt.Sprintf("GOMAXPROCS %d", t.GOMAXPROCS))
	}
	if d := r.Recording.EndNS - r.Recording.BeginNS; d > 0 {
		when := finding.Duration(d)
		if u := r.Recording.BeginUTC; u != nil {
			when += " from " + clock(*u, len("2006-01-02T15:04:05")) + " UTC"
		}
		parts = append(parts, when)
	}
	return strings.Join(parts, ", ")
}

// clock is the first n characters of an RFC 3339 time, readable.
func clock(utc string, n int) string {
	if len(utc) < n {
		return utc
	}
	return strings.Replace(utc[:n], "T", " ", 1)
}

// roots are the findings that nothing else explains.
func (r *Report) roots() (n int) {
	for i := range r.Findings {
		if r.Findings[i].BecauseOf == "" {
			n++
		}
	}
	return n
}

func (p *page) verdict(r *Report) {
	p.line("")
	if title, rest := r.halted(); title != "" {
		p.line("%s", p.paint(yellow, title))
		p.par("  ", rest)
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
			p.par("    seen as ", fmt.Sprintf("%s, which %s, %s", middle(Printable(f.Cause), 22), r.amount(f), f.Confidence))
			continue
		}
		n++
		cause := middle(Printable(f.Cause), 26)
		p.painted(fmt.Sprintf("%2d. %s ", n, cause), fmt.Sprintf("%2d. %s ", n, p.paint(bold, cause)), "", 6, fmt.Sprintf("%s, %s", r.amount(f), f.Confidence), false)
		p.par("    ", sentence(f.Summary))
	}
	if s := r.beside(Printable); s != "" {
		p.par("    ", s)
	}
}

// halted says that the process was held up as a whole, "" if it was not. It comes first, as nothing else need be wrong.
func (r *Report) halted() (title, rest string) {
	h := r.Target.Halted
	if h == nil {
		return "", ""
	}
	all := r.Recording.EndNS - r.Recording.BeginNS
	title = "STOPPED for " + finding.Duration(h.NS)
	if all > 0 {
		title = "STOPPED for " + finding.Duration(min(h.NS, all)) + " of " + finding.Duration(all)
	}
	return title, "The process was held up as a whole by " + Printable(h.By) + ": none of its threads might run meanwhile, and whoever waited for it waited for that."
}

// besides puts what nothing says and what has no cause in order: where all was looked at, what took the time comes first, and the
// names of what was not looked for last.
func (r *Report) besides(title, rest string) []string {
	s := r.beside(Printable)
	switch {
	case s == "":
		return []string{rest}
	case title == nothingFound:
		return []string{s, rest}
	}
	return []string{rest, s}
}

const nothingFound = "NOTHING FOUND"

// nothing says what "nothing found" means here: what was looked for, what could not be.
func (r *Report) nothing() (title, rest string) {
	looked := len(r.RuledOut)
	if looked == 0 {
		why := r.Requests.NoRequestsCause
		switch {
		case why != "":
		case r.Requests.Count > 0 && r.Requests.Slow == 0:
			why = "no request was slow (" + r.Requests.SlowSelect + "), the longest took " + finding.Duration(r.Requests.Max) + ", so there is nothing to explain"
		default:
			why = "no cause could be checked"
		}
		if d, all := r.damaged(), r.Recording.EndNS-r.Recording.BeginNS; 2*d >= all && d > 0 {
			why = sentence(why) + " " + finding.Duration(min(d, all)) + " of the trace's " + finding.Duration(all) + " are damaged or cut off: names, stacks and states are missing there."
		}
		return "COULD NOT LOOK", sentence(why) + " What is missing is listed below."
	}
	rest = fmt.Sprintf("%s looked for and not there.", plural(int64(looked), "cause was", "causes were"))
	var names, inPart []string
	for _, n := range r.NotChecked {
		if slices.ContainsFunc(r.RuledOut, func(o finding.RuledOut) bool { return o.Cause == n.Cause }) {
			inPart = append(inPart, n.Cause)
		} else {
			names = append(names, n.Cause)
		}
	}
	if len(names) > 0 {
		rest += " Not looked for (why is below): " + strings.Join(names, ", ") + "."
	}
	if len(inPart) > 0 {
		rest += " Looked for in part: " + strings.Join(inPart, ", ") + "."
	}
	return nothingFound, rest
}

// amount tells how much a finding explains.
func (r *Report) amount(f *finding.Finding) string {
	switch e := f.Explains; {
	case e.NS > 0 && r.Ledger.Slow.Requests > 0:
		return fmt.Sprintf("explains %s of the slow requests' time (%s each)", percent(f.Share), finding.Duration(e.NS/int64(r.Ledger.Slow.Requests)))
	case e.CPUNS > 0:
		return fmt.Sprintf("explains %s of CPU time (%s)", percent(f.Share), finding.Duration(e.CPUNS))
	case e.Bytes > 0:
		return fmt.Sprintf("explains %s of memory (%s)", percent(f.Share), finding.Bytes(e.Bytes))
	}
	return "explains " + percent(f.Share)
}

// sentence makes a clause a sentence.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return s
	}
	if c := s[0]; c >= 'a' && c <= 'z' && !strings.ContainsAny(strings.SplitN(s, " ", 2)[0], ".(_") {
		s = string(c-'a'+'A') + s[1:]
	}
	if !strings.ContainsAny(s[len(s)-1:], ".!?:") {
		s += "."
	}
	return s
}

const maxGroups = 5

func (p *page) requests(r *Report) {
	q := &r.Requests
	if q.Count == 0 {
		p.heading("REQUESTS", "none")
		why := q.NoRequestsCause
		if why == "" {
			why = fmt.Sprintf("no request began and ended within the recording; %d were under way at its begin or end", q.Open)
		}
		p.par("  ", sentence(why))
		return
	}
	p.heading("REQUESTS", fmt.Sprintf("%s; slow: %s", plural(q.Count, "request", "requests"), q.SlowSelect))
	p.line("  %9s %9s %9s %9s %6s  %s", "count", "p50", "p99", "max", "slow", "entry")
	groups := q.counted()
	if len(groups) != 1 {
		p.line("  %9s %9s %9s %9s %6d  %s", count(q.Count), finding.Duration(q.P50), finding.Duration(q.P99), finding.Duration(q.Max), q.Slow, "all")
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
		p.line("  %9s %9s %9s %9s %6d  %s", count(g.Count), finding.Duration(g.P50), finding.Duration(g.P99), finding.Duration(g.Max), g.Slow, text)
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

// counted gives the groups that have a request to show: one whose all were left out has none.
func (q *Requests) counted() []Group {
	return slices.DeleteFunc(slices.Clone(q.Groups), func(g Group) bool { return g.Count == 0 })
}

// leftOut tells what was counted apart, "" if nothing was.
func (r *Report) leftOut() string {
	q := &r.Requests
	var parts []string
	if q.Open > 0 {
		parts = append(parts, count(q.Open)+" under way at the begin or end")
	}
	for _, l := range q.LeftOut {
		parts = append(parts, count(l.N)+" "+l.Reason)
	}
	if q.NotKept > 0 {
		parts = append(parts, count(q.NotKept)+" slow ones whose history was not kept")
	}
	if q.Limited > 0 {
		parts = append(parts, count(q.Limited)+" whose explanation met a limit")
	}
	return strings.Join(parts, ", ")
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
		// A second line, on a narrow terminal a third and fourth, is better than names cut to nothing.
		room := p.columns - before - 2
		label := wrap(fitted(max(2*room-16, 90), w.label), room, false)
		p.line(format, tenths(w.share)+" %", t.scale.print(w.slowDigits), median, largest, label[0])
		for _, l := range label[1:] {
			p.line("%*s%s", before+2, "", l)
		}
		if s := w.within(); s != "" && r.Kernel != nil {
			p.line("%*s%s", before+4, "", p.paint(dim, s))
		}
		if s := w.meanwhile(func(s string) string { return middle(Printable(shortFunc(s)), 40) }); s != "" {
			for _, l := range wrap(s, p.columns-before-4, false) {
				p.line("%*s%s", before+4, "", p.paint(dim, l))
			}
		}
	}
	median, of := "-", ""
	if t.medianReq > 0 {
		median, of = t.scale.print(t.medianTotal), fmt.Sprintf("; median: %s in the middle of their group", count(int64(t.medianReq)))
	}
	p.line(format, "100.0 %", t.scale.print(t.slowTotal), median, "", "")
	p.note("slow: ", fmt.Sprintf("%s%s; largest: of how many slow ones it is the largest part.", plural(int64(t.slowRequests), "request", "requests"), of))
	if s := r.notLookedInto(); s != "" {
		p.note("not looked into: ", s)
	}
}

// notLookedInto tells of time that has a name and yet may hide something; "" if there is none.
func (r *Report) notLookedInto() string {
	c, n := &r.Ledger.Slow, &r.NotLookedAt
	if c.Requests == 0 || n.RunningNS+n.SyscallNS == 0 || r.Kernel != nil {
		return ""
	}
	each := func(ns int64) string {
		return finding.Duration(ns/int64(c.Requests)) + " (" + percent(share(ns, c.WallNS)) + ")"
	}
	return "on CPU " + each(n.RunningNS) + " and syscall " + each(n.SyscallNS) + " a request: whether threads really ran, and what syscalls waited for, takes kernel evidence to tell."
}
