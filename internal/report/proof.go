package report

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// The part of the text below the first screen: the proof of each finding, the slowest requests, what was looked for and what
// could not be, what was lost.

func (p *page) details(r *Report) {
	n := 0
	for i := range r.Findings {
		f := &r.Findings[i]
		title, under := "", ""
		if f.BecauseOf == "" {
			n++
			title = fmt.Sprintf("%d. %s", n, f.Cause)
		} else {
			title = "   " + f.Cause
			under = "because of " + f.BecauseOf + ": "
		}
		p.heading(Printable(title), under+f.Title)
		if f.BecauseOf != "" {
			p.par("   ", sentence(f.Summary))
		}
		p.par("   how sure: ", fmt.Sprintf("%s, %s", f.Confidence, sure(f.Confidence)))
		for j, e := range f.Evidence {
			label := "   evidence: "
			if j > 0 {
				label = "             "
			}
			text := e.Text
			if e.Source != "" && (j == len(f.Evidence)-1 || f.Evidence[j+1].Source != e.Source) {
				text += "  [" + e.Source + "]" // where it and those before it were read
			}
			p.par(label+"- ", text)
		}
		for j, m := range f.Remedy {
			label := "   remedy:   "
			if j > 0 {
				label = "             "
			}
			p.command(label+"- ", m)
		}
		if f.Verify != "" {
			p.command("   verify:   ", f.Verify)
		}
	}
}

func sure(c finding.Confidence) string {
	switch c {
	case finding.Proven:
		return "who was awaited and what held it are both measured"
	case finding.Supported:
		return "either who was awaited or what held it is measured, or two counters agree"
	case finding.Possible:
		return "the evidence is compatible with it, no more"
	}
	return "not graded"
}

func (p *page) slowest(r *Report) {
	q := &r.Requests
	if len(q.Slowest) == 0 {
		return
	}
	unit, day := "begin: offset from the recording's begin", ""
	if u := q.Slowest[0].UTC; u != nil {
		day = clock(*u, len("2006-01-02"))
		unit = "begin: UTC, " + day
	}
	names, same := make([]string, len(q.Slowest)), true
	for i := range q.Slowest {
		s := &q.Slowest[i]
		names[i] = Printable(s.Name)
		if s.Name == "" {
			names[i] = Printable(s.Entry)
		}
		if width(names[i]) > maxName {
			names[i] = middle(Printable(shortFunc(names[i])), maxName)
		}
		same = same && names[i] == names[0]
	}
	if same && len(names) > 1 {
		name := q.Slowest[0].Name
		if name == "" {
			name = q.Slowest[0].Entry
		}
		unit += "; all of " + shortFunc(name)
	}
	p.heading("SLOWEST REQUESTS", unit)
	wide := 0
	for _, n := range names {
		wide = max(wide, width(n))
	}
	last, alike := "", 0
	more := func() {
		if alike > 0 {
			p.line("  %12s %9s  and %d more like it", "", "", alike)
		}
		alike = 0
	}
	for i := range q.Slowest {
		s := &q.Slowest[i]
		label := fmt.Sprintf("  %12s %9s  ", s.when(day), finding.Duration(s.WallNS))
		if !same || len(names) == 1 {
			label += names[i] + strings.Repeat(" ", wide-width(names[i])+2)
		}
		why := s.why()
		if label+why == last { // one event held them up together
			alike++
			continue
		}
		more()
		last = label + why
		p.par(label, why)
	}
	more()
}

// maxName is how wide the name of a request may be beside its reason.
const maxName = 28

// why tells in a line where the time went, in the words of the ledger above: its largest parts.
func (s *Request) why() string {
	var parts []string
	for i := range s.Accounts {
		a := &s.Accounts[i]
		if len(parts) == 2 || i == 1 && (s.Accounts[0].NS*2 >= s.WallNS || a.NS*5 < s.WallNS) {
			break
		}
		parts = append(parts, finding.Duration(a.NS)+" "+describe(a, shortFunc))
	}
	if len(parts) == 0 {
		return s.Reason
	}
	return strings.Join(parts, "; ")
}

// when prints the begin: time of day, with the date where it is not the heading's.
func (s *Request) when(day string) string {
	if s.UTC == nil {
		return fmt.Sprintf("+%d.%03d s", s.OffsetNS/1e9, s.OffsetNS%1e9/1e6)
	}
	t := clock(*s.UTC, len("2006-01-02T15:04:05.000"))
	if rest, ok := strings.CutPrefix(t, day+" "); ok && day != "" {
		return rest
	}
	return t
}

func (p *page) capacity(r *Report) {
	c := &r.Ledger.Capacity
	if c.TotalNS == 0 {
		return
	}
	p.heading("CAPACITY", fmt.Sprintf("%s x %s", plural(int64(c.Procs), "P", "Ps"), finding.Duration(c.WallNS)))
	ns := make([]int64, len(c.Accounts))
	for i := range c.Accounts {
		ns[i] = c.Accounts[i].NS
	}
	var parts []string
	for i, n := range apportion(ns, 1000) {
		if ns[i] > 0 {
			parts = append(parts, fmt.Sprintf("%s %s %%", c.Accounts[i].Cause, tenths(n)))
		}
	}
	p.par("  ", strings.Join(parts, ", "))
	p.note("", fmt.Sprintf("runnable goroutines waiting for a P: %.1f on average, %d at most", c.RunnableAvg, c.RunnableMax))
}

func (p *page) lookedFor(r *Report) {
	if len(r.RuledOut) > 0 {
		p.heading("RULED OUT", "")
		for _, o := range r.RuledOut {
			p.item(o.Cause, o.Why)
		}
	}
	if len(r.NotChecked) > 0 {
		p.heading("NOT CHECKED", "what could not be looked for, and what is missing")
		for _, u := range r.unchecked() {
			if len(u.causes) == 1 {
				p.item(u.causes[0], u.missing)
				continue
			}
			p.par("  ", strings.Join(u.causes, ", ")+":")
			p.par(strings.Repeat(" ", 24), u.missing)
		}
	}
}

// unchecked is causes that lack the same.
type unchecked struct {
	causes  []string
	missing string
}

// unchecked gives what could not be looked for, causes that lack the same together.
func (r *Report) unchecked() (us []unchecked) {
	for _, n := range r.NotChecked {
		missing := strings.Join(n.Missing, "; ")
		i := slices.IndexFunc(us, func(u unchecked) bool { return u.missing == missing })
		if i < 0 {
			i = len(us)
			us = append(us, unchecked{missing: missing})
		}
		us[i].causes = append(us[i].causes, n.Cause)
	}
	return us
}

func (p *page) item(name, text string) {
	name = middle(Printable(name), 22)
	p.par("  "+name+strings.Repeat(" ", max(21-width(name), 0)+1), text)
}

const maxGaps = 5

func (p *page) lost(r *Report) {
	if len(r.Gaps) == 0 && len(r.Lacks) == 0 && r.failedInputs() == 0 && (r.NotLookedAt.Silences.N == 0 || r.joined()) {
		return
	}
	p.heading("WHAT THE RECORDING LACKS", "")
	for _, in := range r.Inputs {
		if in.Error != "" {
			p.note("not read: ", in.Name+": "+in.Error)
		}
	}
	gaps := r.merged()
	for i := range gaps {
		if i == maxGaps && len(gaps) > maxGaps+1 {
			p.line("  lost: %d more gaps (all of them: --format json)", len(gaps)-i)
			break
		}
		if g := &gaps[i]; g.EndNS > g.BeginNS {
			p.note("lost: ", r.gap(g))
		} else {
			p.note("missing: ", r.gap(g))
		}
	}
	if s := &r.NotLookedAt.Silences; s.N > 0 && !r.joined() {
		p.note("silences: ", silences(s))
	}
	if len(r.Lacks) > 0 {
		p.note("not recorded by this trace format: ", strings.Join(r.Lacks, "; "))
	}
}

// traceSource is the source of gaps that the trace's reader told.
const traceSource = "execution trace"

// damaged is how long the longest stretch is of which the trace itself lost something.
func (r *Report) damaged() (ns int64) {
	for _, g := range r.Gaps {
		if g.Source == traceSource {
			ns = max(ns, g.EndNS-g.BeginNS)
		}
	}
	return ns
}

// joined tells whether the kernel's records say what threads did that the runtime calls running.
func (r *Report) joined() bool { return r.Kernel != nil && r.Kernel.Joined }

// merged gives the gaps for a person: what one reason left out of several sources is one.
func (r *Report) merged() (out []Gap) {
	for _, g := range r.Gaps {
		i := slices.IndexFunc(out, func(o Gap) bool {
			return o.Reason == g.Reason && o.EndNS <= o.BeginNS && g.EndNS <= g.BeginNS && o.Source != ""
		})
		if i < 0 || g.Source == "" {
			out = append(out, g)
			continue
		}
		if out[i].Source != g.Source {
			out[i].Source += ", " + g.Source
		}
	}
	for i := range out {
		out[i].Source = folded(out[i].Source)
	}
	return out
}

// folded names several streams of one folder by it: "/process/delay/*".
func folded(sources string) string {
	all := strings.Split(sources, ", ")
	folder := path.Dir(all[0])
	if len(all) < 3 || folder == "/" || folder == "." || slices.ContainsFunc(all, func(s string) bool { return path.Dir(s) != folder }) {
		return sources
	}
	return folder + "/*"
}

func silences(s *account.Silences) string {
	return fmt.Sprintf("%s without an event of any thread though work was runnable, %s in all, %s at most, %s of the slow requests' time: the process may have stood still (CPU quota, host)",
		plural(s.N, "stretch of 20 ms or more", "stretches of 20 ms or more"), finding.Duration(s.NS), finding.Duration(s.Max), finding.Duration(s.SlowNS))
}

// gap tells what was lost and when.
func (r *Report) gap(g *Gap) string {
	s := g.Reason
	if g.EndNS > g.BeginNS {
		at := fmt.Sprintf("+%.3f s", float64(g.BeginNS-r.Recording.BeginNS)/1e9)
		if g.BeginUTC != nil {
			at = clock(*g.BeginUTC, len("2006-01-02T15:04:05.000")) + " UTC"
		}
		s = finding.Duration(g.EndNS-g.BeginNS) + " from " + at + ": " + s
	}
	if g.Source != "" {
		s += "  [" + g.Source + "]"
	}
	return s
}

func (r *Report) failedInputs() (n int) {
	for _, in := range r.Inputs {
		if in.Error != "" {
			n++
		}
	}
	return n
}

func (p *page) cost(r *Report) {
	if s := r.cost(); s != "" {
		p.line("")
		p.wrapped("whystall itself: ", 4, s, false)
	}
}

// cost tells what recording and explaining took.
func (r *Report) cost() string {
	c := &r.Cost
	parts := append([]string{}, c.Recorder...)
	if s := r.recording(); s != "" {
		parts = append(parts, s)
	}
	if c.ExplainNS > 0 {
		s := "explaining took " + finding.Duration(c.ExplainNS)
		if c.ExplainCPUNS > 0 {
			s += " (" + finding.Duration(c.ExplainCPUNS) + " CPU)"
		}
		if c.Events > 0 {
			s += fmt.Sprintf(" for %s events, %s", count(c.Events), finding.Bytes(c.Bytes))
		}
		if c.MaxHeap > 0 {
			s += ", at most " + finding.Bytes(c.MaxHeap) + " of heap"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

// recording tells what recording a process cost it, and what was lost or lowered.
func (r *Report) recording() string {
	c := r.Cost.Recording
	if c == nil {
		return ""
	}
	var kernel, records, lost int64
	var lowered []string
	for _, t := range r.Tiers {
		if t.Cost == nil {
			continue
		}
		kernel += t.Cost.KernelNS
		records += t.Cost.Records
		lost += t.Cost.Lost
		if t.Cost.Lowered != "" {
			lowered = append(lowered, t.Cost.Lowered)
		}
	}
	s := "its recorder took "
	if c.OnceNS > 0 {
		s += finding.Duration(c.OnceNS) + " CPU to begin and to end, "
	}
	s += finding.Duration(c.CPUNS-c.OnceNS) + " CPU"
	if c.OnceNS > 0 {
		s += " meanwhile"
	}
	if kernel > 0 {
		s += " and its programs in the kernel " + finding.Duration(kernel)
	}
	if c.TargetNS > 0 {
		s += fmt.Sprintf(", %s of the %s that the target took", percent(share(c.CPUNS-c.OnceNS+kernel, c.TargetNS)), finding.Duration(c.TargetNS))
	}
	if c.SharedQuota != "" {
		// The quota is charged for both alike, and so is their share in what it runs out for. Programs in the kernel are in the target's own time.
		s += fmt.Sprintf(", under the quota of %.3g CPUs that it shared with the target (%s): %s of what the two took, and so of their being throttled, is the recorder's",
			c.QuotaCPUs, c.SharedQuota, percent(share(c.CPUNS, c.CPUNS+c.TargetNS)))
	}
	if records > 0 {
		s += fmt.Sprintf(", for %s records of the kernel, %s lost", count(records), count(lost))
	}
	if len(lowered) > 0 {
		s += "; detail was lowered: " + strings.Join(lowered, "; ")
	}
	return s
}
