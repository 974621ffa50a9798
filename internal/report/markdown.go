package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

var _ = registerOutput(&Output{Name: "markdown", Order: 30, Ext: "md", Print: (*Report).printMarkdown})

// Markdown prints all of the report for a ticket: GitHub's flavour, the parts as in the text.
func (r *Report) Markdown(w io.Writer) error {
	m := &markdown{}
	if r.AttachedOnly() {
		m.attachments(r)
		_, err := io.WriteString(w, m.b.String())
		return err
	}
	m.line("## whystall: %s", escape(r.title()))
	if s := r.Target.Ended; s != "" {
		m.line("\nMeanwhile: %s", escape(s))
	}
	for _, e := range r.Errors {
		m.line("\n> **%s**", escape(e))
	}
	m.verdict(r)
	m.attachedSection(r)
	m.requests(r)
	m.ledger(r)
	m.details(r)
	m.slowest(r)
	m.onCPU(r)
	m.pauses(r)
	m.capacity(r)
	m.kernel(r)
	m.lookedFor(r)
	m.tiers(r)
	m.lost(r)
	m.serviceCost(r)
	if s := r.cost(); s != "" {
		m.line("\n<sub>whystall itself: %s</sub>", escape(s))
	}
	_, err := io.WriteString(w, m.b.String())
	return err
}

func (m *markdown) serviceCost(r *Report) {
	title, rest := r.serviceCost()
	if title == "" {
		return
	}
	m.line("\n### %s\n\n%s\n", escape(sentenceCase(title)), escape(sentence(rest)))
	for i, row := range r.serviceTable() {
		line := "| " + escape(row.Name) + " |"
		for _, c := range row.Cells {
			line += " " + escape(c.String()) + " |"
		}
		m.line("%s", line)
		if i == 0 {
			m.line("|---|%s", strings.Repeat("--:|", len(row.Cells)))
		}
	}
	for _, s := range r.eased() {
		m.line("\n- %s", escape(s))
	}
}

type markdown struct{ b strings.Builder }

func (m *markdown) line(format string, args ...any) {
	fmt.Fprintf(&m.b, format, args...)
	m.b.WriteByte('\n')
}

// escape makes text plain in markdown: no emphasis, links, images, tables, HTML or mentions, not
// across lines either. An empty comment breaks a mention in all flavours that have them.
func escape(s string) string {
	var b strings.Builder
	runes := []rune(Printable(s))
	for i, c := range runes {
		next := rune(0)
		if i+1 < len(runes) {
			next = runes[i+1]
		}
		switch {
		case c == '&':
			b.WriteString("&amp;")
		case c == '<':
			b.WriteString("&lt;")
		case c == '>':
			b.WriteString("&gt;")
		case c == '@' && next > ' ':
			b.WriteString("@<!-- -->")
		case c == ':' && next == '/':
			b.WriteString("&#58;")
		case c == '.' && i >= 3 && strings.EqualFold(string(runes[i-3:i]), "www"):
			b.WriteString("&#46;")
		case strings.ContainsRune("\\`*_[]|~$", c), strings.ContainsRune("#!", c) && next > ' ':
			b.WriteByte('\\')
			b.WriteRune(c)
		case i == 0 && strings.ContainsRune("#+-=", c):
			b.WriteByte('\\')
			b.WriteRune(c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// cell is a code span in a table, where a bar ends the cell even inside a span.
func cell(s string) string { return strings.ReplaceAll(code(s), "|", `\|`) }

// code is a code span, in which only its own fence has a meaning.
func code(s string) string {
	s = Printable(s)
	if s == "" {
		return ""
	}
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if s[0] == '`' || s[len(s)-1] == '`' || s[0] == ' ' {
		s = " " + s + " "
	}
	return fence + s + fence
}

func (m *markdown) verdict(r *Report) {
	if title, rest := r.halted(); title != "" {
		m.line("\n**%s.** %s", sentenceCase(title), escape(rest))
	}
	if why := r.unrequested(); why != "" {
		m.line("\n**%s.** %s", sentenceCase(noRequest), escape(why))
	}
	if len(r.Findings) == 0 {
		title, rest := r.nothing()
		m.line("\n**%s.** %s", sentenceCase(title), escape(strings.Join(r.besides(title, rest), " ")))
		return
	}
	m.line("\n**Found %s:**\n", plural(int64(r.roots()), "cause", "causes"))
	n := 0
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.BecauseOf != "" {
			m.line("   - seen as %s, which %s, %s", code(f.Cause), escape(r.amount(f)), f.Confidence)
			continue
		}
		n++
		m.line("%d. **%s** %s, %s. %s", n, escape(f.Cause), escape(r.amount(f)), f.Confidence,
			escape(sentence(f.Summary)))
	}
	for _, s := range r.without() {
		m.line("\n%s", escape(s))
	}
}

func sentenceCase(s string) string {
	if s == "" {
		return s
	}
	return s[:1] + strings.ToLower(s[1:])
}

func (m *markdown) requests(r *Report) {
	q := &r.Requests
	if q.Count == 0 {
		return // said at the top
	}
	m.line("\n### Requests\n")
	m.line("%s; slow: %s.\n", plural(q.Count, "request", "requests"), escape(q.SlowSelect))
	groups := q.counted()
	m.line("| entry | count | p50 | p99 | max | slow |")
	m.line("|---|--:|--:|--:|--:|--:|")
	if len(groups) != 1 {
		m.line("| all | %s | %s | %s | %s | %d |", count(q.Count), finding.Duration(q.P50),
			finding.Duration(q.P99), finding.Duration(q.Max), q.Slow)
	}
	for i := range groups {
		if i == maxGroups && len(groups) > maxGroups+1 {
			m.line("| %d more | | | | | |", len(groups)-i)
			break
		}
		g := &groups[i]
		kind := ""
		if g.Kind != "" && g.Kind != account.GroupLoop {
			kind = " " + escape(g.Kind)
		}
		m.line("| %s%s | %s | %s | %s | %s | %d |", cell(g.Entry), kind, count(g.Count),
			finding.Duration(g.P50), finding.Duration(g.P99), finding.Duration(g.Max), g.Slow)
	}
	for i := range groups {
		if g := &groups[i]; g.Doubt != "" && i < maxGroups {
			m.line("\n%s: %s.", code(g.Entry), escape(g.Doubt))
		}
	}
	if s := r.leftOut(); s != "" {
		m.line("\nNot counted: %s.", escape(s))
	}
}

func (m *markdown) ledger(r *Report) {
	if r.Ledger.Slow.Requests == 0 || r.Ledger.Slow.WallNS == 0 {
		return
	}
	t := newTable(&r.Ledger)
	m.line("\n### Where slow requests spend their time\n")
	m.line("Per request, in %s: %s slow, %s in the middle of their group.\n", t.scale.name,
		count(int64(t.slowRequests)), count(int64(t.medianReq)))
	m.line("| cause | share | slow | median | largest part of |")
	m.line("|---|--:|--:|--:|--:|")
	for i := range t.rows {
		w := &t.rows[i]
		median := "-"
		if t.medianReq > 0 {
			median = t.scale.print(w.medianDigits)
		}
		plain := func(s string) string { return s }
		label := escape(w.label(plain))
		if s := w.meanwhile(plain); s != "" {
			label += "<br>" + escape(s)
		}
		m.line("| %s | %s %% | %s | %s | %d |", label, tenths(w.share), t.scale.print(w.slowDigits), median, w.largest)
	}
	median := "-"
	if t.medianReq > 0 {
		median = t.scale.print(t.medianTotal)
	}
	m.line("| **total** | 100.0 %% | %s | %s | |", t.scale.print(t.slowTotal), median)
	if s := r.notLookedInto(); s != "" {
		m.line("\nNot looked into: %s", escape(s))
	}
}

func (m *markdown) details(r *Report) {
	n := 0
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.BecauseOf == "" {
			n++
			m.line("\n### %d. %s: %s\n", n, escape(f.Cause), escape(f.Title))
		} else {
			m.line("\n#### %s: %s\n\nBecause of %s.\n", escape(f.Cause), escape(f.Title), code(f.BecauseOf))
		}
		m.line("%s\n", escape(sentence(f.Summary)))
		m.line("How sure: **%s**, %s.\n", f.Confidence, sure(f.Confidence))
		if len(f.Evidence) > 0 {
			m.line("| evidence | read where |\n|---|---|")
			for _, e := range f.Evidence {
				m.line("| %s | %s |", escape(e.Text), escape(e.Source))
			}
			m.line("")
		}
		for j, s := range f.Remedy {
			if j == 0 {
				m.line("Remedy:\n")
			}
			m.line("- %s", escape(s))
		}
		if f.Verify != "" {
			m.line("\nVerify: %s", code(f.Verify))
		}
	}
}

func (m *markdown) slowest(r *Report) {
	q := &r.Requests
	if len(q.Slowest) == 0 {
		return
	}
	unit := "start (offset)"
	if q.Slowest[0].UTC != nil {
		unit = "start (UTC)"
	}
	m.line("\n### Slowest requests\n\n| %s | took | request | reason |\n|---|--:|---|---|", unit)
	for i := range q.Slowest {
		s := &q.Slowest[i]
		name := s.Name
		if name == "" {
			name = s.Entry
		}
		m.line("| %s | %s | %s | %s |", escape(s.when("")), finding.Duration(s.WallNS), cell(name), escape(s.why()))
	}
}

func (m *markdown) capacity(r *Report) {
	c := &r.Ledger.Capacity
	if c.TotalNS == 0 {
		return
	}
	m.line("\n### Capacity\n\n%s x %s; runnable goroutines waiting for a P: %.1f on average, %d at most.\n", plural(int64(c.Procs), "P", "Ps"), finding.Duration(c.WallNS), c.RunnableAvg, c.RunnableMax)
	m.line("| account | share | time |\n|---|--:|--:|")
	ns := make([]int64, len(c.Accounts))
	for i := range c.Accounts {
		ns[i] = c.Accounts[i].NS
	}
	for i, n := range apportion(ns, 1000) {
		m.line("| %s | %s %% | %s |", c.Accounts[i].Cause, tenths(n), finding.Duration(ns[i]))
	}
}

// pauses shows the long stop-the-worlds and barriers that cost slow requests most.
func (m *markdown) pauses(r *Report) {
	bs, which := r.longest()
	if len(bs) == 0 {
		return
	}
	m.line("\n### Pauses\n\n%s\n", escape(sentence(which)))
	for i := range bs {
		b := &bs[i]
		m.line("- %s", escape(b.words()))
		if s := whoList(b.Leaves, b.End-b.Begin, 4); s != "" {
			m.line("  - spent on: %s", escape(s))
		}
		for j, h := range b.Hops {
			if j == maxHops && len(b.Hops) > maxHops+1 {
				break
			}
			m.line("  - %s", escape(h))
		}
	}
	if s := fairWords(&r.Kernel.Fair); s != "" {
		m.line("\n%s", escape(sentence(s)))
	}
}

// kernel shows the ledgers of CPUs and memory, and the threads.
func (m *markdown) kernel(r *Report) {
	if c := r.Ledger.CPUs; c != nil {
		m.line("\n### CPUs\n\n%s that it may use x %s; %s.\n",
			plural(int64(c.Allowed), "CPU", "CPUs"), finding.Duration(c.WallNS), escape(c.beside()))
		m.line("| account | share | time |\n|---|--:|--:|")
		ns := make([]int64, len(c.Accounts))
		for i := range c.Accounts {
			ns[i] = c.Accounts[i].NS
		}
		for i, n := range apportion(ns, 1000) {
			m.line("| %s | %s %% | %s |", c.Accounts[i].Cause, tenths(n), finding.Duration(ns[i]))
		}
	}
	if l := r.Ledger.Memory; l != nil {
		m.line("\n### Memory\n\n%s resident. %s\n", finding.Bytes(l.RSS), escape(sentence(l.beside())))
		m.line("| account | share | bytes |\n|---|--:|--:|")
		for _, a := range l.rows() {
			m.line("| %s | %s | %s |", escape(a.Account), a.share, finding.Bytes(a.Bytes))
		}
	}
	k := r.Kernel
	if k == nil {
		return
	}
	m.line("\n### Threads\n\n| on CPU | queued | throttled | blocked | tid | name |\n|--:|--:|--:|--:|--:|---|")
	m.line("| %s | %s | %s | %s | | all %s |", finding.Duration(k.OnNS),
		finding.Duration(k.QueuedNS), finding.Duration(k.ThrottledNS),
		finding.Duration(k.BlockedNS), count(k.ThreadsSeen))
	for i := range k.Threads {
		if t := &k.Threads[i]; i < maxThreads {
			m.line("| %s | %s | %s | %s | %d | %s |", finding.Duration(t.OnNS),
				finding.Duration(t.QueuedNS), finding.Duration(t.ThrottledNS),
				finding.Duration(t.BlockedNS), t.TID, cell(t.Comm))
		}
	}
	m.line("\n%s", escape(sentence(k.running())))
	if s := k.ran(); s != "" {
		m.line("What they ran: %s.", escape(s))
	}
	if s := k.who(); s != "" {
		m.line("Who had the CPU while they were queued: %s.", escape(s))
	}
}

// tiers says what recorded, and what could not be seen.
func (m *markdown) tiers(r *Report) {
	if len(r.Tiers) == 0 && r.Kernel == nil {
		return
	}
	m.line("\n### What was looked at\n")
	for _, t := range r.looked() {
		m.line("- %s: %s", escape(t[0]), escape(t[1]))
	}
	for _, s := range r.Unseen {
		m.line("- not seen: %s", escape(s))
	}
}

func (m *markdown) lookedFor(r *Report) {
	if len(r.RuledOut) > 0 {
		m.line("\n### Ruled out\n")
		for _, o := range r.RuledOut {
			m.line("- %s: %s", code(o.Cause), escape(o.Why+bounds(o.Bounds)))
		}
	}
	if len(r.NotChecked) > 0 {
		m.line("\n### Not checked\n")
		for _, u := range r.unchecked() {
			names := make([]string, len(u.causes))
			for i, c := range u.causes {
				names[i] = code(c)
			}
			m.line("- %s: %s", strings.Join(names, ", "), escape(u.missing))
		}
	}
}

func (m *markdown) lost(r *Report) {
	var items []string
	for _, in := range r.Inputs {
		if in.Error != "" {
			items = append(items, "not read: "+code(in.Name)+": "+escape(in.Error))
		}
	}
	gaps := r.merged()
	for i := range gaps {
		if i == maxGaps && len(gaps) > maxGaps+1 {
			items = append(items, fmt.Sprintf("lost: %d more gaps", len(gaps)-i))
			break
		}
		items = append(items, "lost: "+escape(r.gap(&gaps[i])))
	}
	if s := &r.NotLookedAt.Silences; s.N > 0 && !r.joined() {
		items = append(items, "silences: "+escape(silences(s)))
	}
	if len(r.Lacks) > 0 {
		items = append(items, "not recorded by this trace format: "+escape(strings.Join(r.Lacks, "; ")))
	}
	if len(items) > 0 {
		m.line("\n### What the recording lacks\n")
		for _, s := range items {
			m.line("- %s", s)
		}
	}
}
