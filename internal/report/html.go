package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/report/webpage"
)

// HTML prints the report as one page for a browser. It is no row of the table of outputs: it shows
// more than a Report has, and a file of its own is all that it is good for.
func (r *Report) HTML(w io.Writer) error { return webpage.Write(w, r.page()) }

// page prepares what the page shows, in the sentences of the other outputs. Names stay as they
// were, since the page marks them.
func (r *Report) page() *webpage.Model {
	m := &webpage.Model{Title: cmp.Or(r.title(), "a report"), Facts: r.facts(), Alerts: r.alerts(),
		Verdict: r.pageVerdict(), Findings: r.pageFindings(), Requests: r.pageRequests(), Unseen: r.Unseen}
	rows := rowIndex{}
	if r.Ledger.Slow.Requests > 0 && r.Ledger.Slow.WallNS > 0 {
		t := newTable(&r.Ledger)
		m.Ledger, rows = r.pageLedger(t), t.index()
	}
	if r.ledger != nil {
		m.Latency = pageLatency(r.ledger, rows)
	}
	for i := range r.Requests.Slowest {
		m.Slowest = append(m.Slowest, pageRequest(&r.Requests.Slowest[i], rows))
	}
	if r.ledger != nil {
		dots, frames := slowDots(&r.ledger.Series), frameTable{of: map[webpage.Frame]int{}}
		m.Stories, m.Sketches = r.pageStories(dots, &frames), r.pageSketches(rows, dots, &frames)
		m.Frames = frames.list
		m.Waits, m.Locks, m.Curves = pageWaits(r.ledger.Waits), pageLocks(r.ledger), pageCurves(r.ledger)
	}
	m.Pauses, m.Uses, m.Threads = r.pagePauses(), r.pageUses(), r.pageThreads()
	for _, o := range r.RuledOut {
		m.RuledOut = append(m.RuledOut, webpage.Text{Title: o.Cause, Text: o.Why + bounds(o.Bounds)})
	}
	for _, n := range r.NotChecked {
		for _, s := range n.Missing {
			m.NotChecked = append(m.NotChecked, webpage.Text{Title: n.Cause, Text: s})
		}
	}
	for _, l := range r.looked() {
		m.Looked = append(m.Looked, webpage.Text{Title: l[0], Text: l[1]})
	}
	m.Lost, m.Cost = r.pageLost(), r.pageCost()
	m.Attached = pageAttached(r.Attached)
	return m
}

// facts says what was looked at.
func (r *Report) facts() (fs []webpage.Fact) {
	add := func(name, value string) {
		if value != "" {
			fs = append(fs, webpage.Fact{Name: name, Value: value})
		}
	}
	t := &r.Target
	add("service", cmp.Or(t.Name, t.URL))
	if t.PID != 0 {
		add("pid", fmt.Sprint(t.PID))
	}
	add("host", t.Host)
	add("Go", t.GoVersion)
	if t.GOMAXPROCS > 0 {
		add("GOMAXPROCS", fmt.Sprint(t.GOMAXPROCS))
	}
	if t.CPUs > 0 {
		add("CPUs", fmt.Sprint(t.CPUs))
	}
	if d := r.Recording.EndNS - r.Recording.BeginNS; d > 0 {
		add("recorded", finding.Duration(d))
	}
	if u := r.Recording.BeginUTC; u != nil {
		add("from", clock(*u, len("2006-01-02T15:04:05"))+" UTC")
	}
	for _, in := range r.Inputs {
		add("file", in.Name)
	}
	return fs
}

// alerts is what a person must know before the verdict.
func (r *Report) alerts() (as []webpage.Text) {
	if title, rest := r.halted(); title != "" {
		as = append(as, webpage.Text{Title: sentenceCase(title), Text: rest})
	}
	if s := r.Target.Ended; s != "" {
		as = append(as, webpage.Text{Title: "Meanwhile", Text: s})
	}
	if why := r.unrequested(); why != "" && !r.AttachedOnly() {
		as = append(as, webpage.Text{Title: sentenceCase(noRequest), Text: why})
	}
	for _, e := range r.Errors {
		as = append(as, webpage.Text{Title: "Error", Text: e})
	}
	return as
}

func (r *Report) pageVerdict() webpage.Verdict {
	if r.AttachedOnly() {
		return r.Attached.pageVerdict()
	}
	v := webpage.Verdict{Kind: webpage.Found}
	if len(r.Findings) == 0 {
		title, rest := r.nothing()
		v.Kind, v.Title, v.Text = webpage.Blind, sentenceCase(title), r.besides(title, rest)
		if title == nothingFound {
			v.Kind = webpage.Nothing
		}
	} else {
		v.Title, v.Text = "Found "+plural(int64(r.roots()), "cause", "causes"), r.without()
		if f := &r.Findings[0]; r.roots() == 1 {
			v.Title += ": " + f.Title
		} else {
			v.Title += ", the first: " + f.Title
		}
	}
	if s := r.wasSlow(); s != "" {
		v.Text = append([]string{s}, v.Text...)
	}
	return v
}

// wasSlow says in a sentence which requests were slow, and how slow, "" without any.
func (r *Report) wasSlow() string {
	slow, usual := &r.Ledger.Slow, &r.Ledger.Median
	if slow.Requests == 0 {
		return ""
	}
	s := fmt.Sprintf("Of %s %d were slow (%s): they took %s on average",
		plural(r.Requests.Count, "request", "requests"), slow.Requests, r.Requests.SlowSelect,
		finding.Duration(perRequest(slow)))
	if usual.Requests > 0 {
		s += ", a usual one took " + finding.Duration(perRequest(usual))
	}
	return s + "."
}

func (r *Report) pageFindings() (fs []webpage.Finding) {
	n := 0
	for i := range r.Findings {
		f := &r.Findings[i]
		p := webpage.Finding{Cause: f.Cause, Title: f.Title, Amount: r.pageAmount(f),
			Share: f.Share, Confidence: string(f.Confidence), Sure: sure(f.Confidence),
			BecauseOf: f.BecauseOf, Summary: sentence(f.Summary), Remedy: slices.Clone(f.Remedy), Verify: f.Verify}
		if f.BecauseOf == "" {
			n++
			p.Number = n
		}
		for _, e := range f.Evidence {
			p.Evidence = append(p.Evidence, webpage.Evidence(e))
		}
		fs = append(fs, p)
	}
	return fs
}

// pageAmount leaves out a share of which nothing says what it is a share of.
func (r *Report) pageAmount(f *finding.Finding) string {
	if f.Explains == (finding.Explains{}) {
		return ""
	}
	return r.amount(f)
}

func (r *Report) pageRequests() webpage.Requests {
	q := &r.Requests
	out := webpage.Requests{Count: q.Count, Select: q.SlowSelect, LeftOut: r.leftOut()}
	for _, g := range q.counted() {
		kind := g.Kind
		if kind == account.GroupLoop {
			kind = ""
		}
		out.Groups = append(out.Groups, webpage.Group{Entry: g.Entry, Kind: kind, Doubt: g.Doubt,
			Count: g.Count, P50: g.P50, P99: g.P99, Max: g.Max, Slow: g.Slow})
	}
	return out
}

func pageRequest(s *Request, rows rowIndex) webpage.Request {
	p := webpage.Request{At: s.OffsetNS, Wall: s.WallNS, When: s.when(""),
		Name: cmp.Or(s.Name, s.Entry), Entry: s.Entry, G: s.Goroutine, Why: s.why()}
	for i := range s.Accounts {
		a := &s.Accounts[i]
		p.Parts = append(p.Parts, webpage.Part{Row: rows.of(&a.Account), Label: describe(a, unchanged), NS: a.NS})
	}
	return p
}

// unchanged prints a symbol as it is: the page marks it, and breaks lines itself.
func unchanged(s string) string { return s }

func (r *Report) pageLost() (items []string) {
	for _, in := range r.Inputs {
		if in.Error != "" {
			items = append(items, "not read: "+in.Name+": "+in.Error)
		}
	}
	gaps := r.merged()
	for i := range gaps {
		items = append(items, r.gap(&gaps[i]))
	}
	if s := &r.NotLookedAt.Silences; s.N > 0 && !r.joined() {
		items = append(items, silences(s))
	}
	for _, s := range r.Lacks {
		items = append(items, "not recorded by this trace format: "+s)
	}
	return items
}

func (r *Report) pageCost() webpage.Cost {
	_, service := r.serviceCost()
	c := webpage.Cost{Service: sentence(service), Eased: r.eased(), Own: sentence(r.cost())}
	for _, row := range r.serviceTable() {
		line := []string{row.Name}
		for _, cell := range row.Cells {
			line = append(line, cell.String())
		}
		c.Stages = append(c.Stages, line)
	}
	return c
}
