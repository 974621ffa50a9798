package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

const (
	maxWorks   = 12
	leastShown = 0.005 // of a column
	leastTold  = 0.05  // of the samples, for a remark on them
	// surelyMissed samples are so many that chance does not make a quarter of the time too few.
	surelyMissed = 100
	mostOwnSaid  = 3   // functions in the verdict
	ownWorkFrom  = 0.5 // of slow requests' time, or of the CPU time, for a sentence in the verdict
)

// workTable is the division of time on CPUs: of slow requests, of usual ones, of the process. A
// column is nil where too few samples fell into it.
type workTable struct {
	slow, usual, process *account.OnCPU
	rows                 []workRow
	profiled             bool    // the process' is of its own CPU profile
	rest                 workRow // what has no row of its own; its label is "" if there is none
}

// workRow is one work, with its share of each column.
type workRow struct {
	label                string
	slow, usual, process float64
	low, high            float64 // of the process' share
}

// works is the table, nil if no time was divided.
func (r *Report) works() *workTable {
	t := &workTable{slow: divided(r.Ledger.Slow.OnCPU), usual: divided(r.Ledger.Median.OnCPU)}
	if r.Kernel != nil {
		t.process = divided(r.Kernel.OnCPU)
	}
	if o := divided(r.Ledger.Profiled); t.process == nil && o != nil {
		t.process, t.profiled = o, true
	}
	if t.slow == nil && t.usual == nil && t.process == nil {
		return nil
	}
	type id struct {
		kind account.WorkKind
		name string
	}
	by := map[id]*workRow{}
	add := func(o *account.OnCPU, put func(row *workRow, w *account.Work, ns float64)) {
		if o == nil {
			return
		}
		for i := range o.Works {
			w := &o.Works[i]
			row := by[id{w.Kind, w.Name}]
			if row == nil {
				row = &workRow{label: workLabel(w)}
				by[id{w.Kind, w.Name}] = row
			}
			put(row, w, float64(o.NS))
		}
	}
	add(t.process, func(row *workRow, w *account.Work, ns float64) {
		row.process, row.low, row.high = float64(w.NS)/ns, float64(w.Low)/ns, float64(w.High)/ns
	})
	add(t.slow, func(row *workRow, w *account.Work, ns float64) { row.slow = float64(w.NS) / ns })
	add(t.usual, func(row *workRow, w *account.Work, ns float64) { row.usual = float64(w.NS) / ns })
	for _, row := range by {
		t.rows = append(t.rows, *row)
	}
	slices.SortFunc(t.rows, func(a, b workRow) int {
		return cmp.Or(cmp.Compare(b.most(), a.most()), cmp.Compare(b.process, a.process), cmp.Compare(a.label, b.label))
	})
	n := 0
	for n < len(t.rows) && n < maxWorks && t.rows[n].most() >= leastShown {
		n++
	}
	for _, row := range t.rows[n:] {
		t.rest.label = plural(int64(len(t.rows)-n), "more kind of work", "more kinds of work")
		t.rest.slow += row.slow
		t.rest.usual += row.usual
		t.rest.process += row.process
	}
	t.rows = t.rows[:n]
	return t
}

func divided(o *account.OnCPU) *account.OnCPU {
	if o == nil || len(o.Works) == 0 {
		return nil
	}
	return o
}

func (w *workRow) most() float64 { return max(w.slow, w.process) }

// workLabel names a work, and where in the program it comes from.
func workLabel(w *account.Work) string {
	s := string(w.Kind)
	if w.Name != "" {
		s += ": " + w.Name
	}
	if len(w.Sites) > 0 && 2*w.Sites[0].NS >= w.NS && w.Kind != account.WorkOwn {
		s += fromSite + w.Sites[0].Func
	}
	return s
}

const fromSite = ", from "

// shortLabel fits a label into a width: a work is worth more than where it comes from.
func shortLabel(label string, most int) string {
	label = Printable(label)
	if width(label) > most {
		label, _, _ = strings.Cut(label, fromSite)
	}
	return middle(label, most)
}

// heading says what is divided, and by how many samples.
func (t *workTable) heading() string {
	var parts []string
	say := func(what string, o *account.OnCPU) {
		if o != nil {
			parts = append(parts, fmt.Sprintf("%s %s by %s", what, finding.Duration(o.NS),
				plural(o.Samples, "sample", "samples")))
		}
	}
	say("the process", t.process)
	say("slow requests", t.slow)
	return strings.Join(parts, "; ")
}

// remarks are what a reader must know of the samples.
func (t *workTable) remarks() (l []string) {
	if t.profiled {
		l = append(l, "the process: by its own CPU profile, which shows who called the kernel and not what the kernel did. Page faults and interrupts are in the functions in which they came")
	}
	if t.usual != nil && t.usual.OfAll {
		l = append(l, "usual: as the time of all requests of the same groups is divided, since too few samples fell into usual ones")
	}
	o := cmp.Or(t.process, t.slow, t.usual)
	var late int64
	var by []string
	for _, s := range o.Late {
		late += s.N
		by = append(by, fmt.Sprintf("%s %s", s.Func, count(s.N)))
	}
	if float64(late) >= leastTold*float64(o.Samples) {
		l = append(l, fmt.Sprintf("%s of the samples came late: code had interrupts off, and they are of what ran before. They were taken where interrupts came back: %s",
			percent(share(late, o.Samples)), strings.Join(by, ", ")))
	}
	if missed := o.NS - o.Unseen - o.SampledNS; o.SampledNS > 0 && missed > o.NS/4 && o.Samples >= surelyMissed {
		l = append(l, fmt.Sprintf("the samples stand for only %s of the time: records were lost, or some CPUs take no ticks (nohz_full) and are not divided", percent(share(o.SampledNS, o.NS))))
	}
	if float64(o.Leaf) >= leastTold*float64(o.Samples) {
		l = append(l, fmt.Sprintf("of %s of the samples only the innermost function of the program is known, as code without frame pointers hides its callers",
			percent(share(o.Leaf, o.Samples))))
	}
	return l
}

// onCPU prints the table.
func (p *page) onCPU(r *Report) {
	t := r.works()
	if t == nil {
		return
	}
	p.heading("ON CPU", t.heading())
	p.line("  %7s %7s %7s %11s  %s", "slow", "usual", "process", "95 %", "used for (an estimate by samples)")
	line := func(w *workRow, between string) {
		p.line("  %7s %7s %7s %11s  %s", t.cell(t.slow, w.slow), t.cell(t.usual, w.usual),
			t.cell(t.process, w.process), between, shortLabel(w.label, p.columns-39))
	}
	for i := range t.rows {
		line(&t.rows[i], t.between(&t.rows[i]))
	}
	if t.rest.label != "" {
		line(&t.rest, "")
	}
	for _, s := range t.remarks() {
		p.note("", s)
	}
}

// cell is a share of a column; "-" where nothing of it is known.
func (t *workTable) cell(o *account.OnCPU, share float64) string {
	if o == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// between is the interval of the process' share.
func (t *workTable) between(w *workRow) string {
	if t.process == nil || w.high == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f..%.1f", 100*w.low, 100*w.high)
}

func (m *markdown) onCPU(r *Report) {
	t := r.works()
	if t == nil {
		return
	}
	m.line("\n### On CPU\n\nAn estimate by samples: %s.\n", escape(t.heading()))
	m.line("| slow | usual | process | 95 %% | used for |\n|--:|--:|--:|--:|---|")
	rows := t.rows
	if t.rest.label != "" {
		rows = append(slices.Clone(rows), t.rest)
	}
	for i := range rows {
		w := &rows[i]
		m.line("| %s | %s | %s | %s | %s |", t.cell(t.slow, w.slow), t.cell(t.usual, w.usual),
			t.cell(t.process, w.process), t.between(w), cell(w.label))
	}
	for _, s := range t.remarks() {
		m.line("\n%s", escape(sentence(s)))
	}
}

// computing are the kinds of work that nothing but the program's own code asks for.
var computing = []account.WorkKind{account.WorkOwn, account.WorkLibrary, account.WorkInterprets,
	account.WorkMemmove, account.WorkMap, account.WorkInterface}

// onCPU is what divides the time on CPU of slow requests, or of the process where none was seen: of
// how much time in all, whose that is, and which part of what is divided is the program's own.
func (r *Report) onCPU() (o *account.OnCPU, whole int64, whose string, part float64) {
	if c := &r.Ledger.Slow; c.Requests > 0 {
		return divided(c.OnCPU), c.WallNS, "slow requests' time", ownPart(c)
	}
	if r.Kernel != nil {
		return divided(r.Kernel.OnCPU), r.Kernel.OnNS, "the process' CPU time", 1
	}
	return nil, 0, "", 1
}

// allocates says that allocation takes the time, and where it is asked for.
func allocates(o *account.OnCPU, whole int64, whose string, part float64) string {
	all, clearing := o.Of(account.WorkAlloc), int64(0)
	var from account.Site
	for i := range o.Works {
		w := &o.Works[i]
		if w.Kind != account.WorkAlloc {
			continue
		}
		if w.Name == account.AllocClears {
			clearing = w.NS
		}
		if len(w.Sites) > 0 && w.Sites[0].NS > from.NS {
			from = w.Sites[0]
		}
	}
	s := fmt.Sprintf("%s of %s is the allocation of memory", percent(part*share(all.NS, whole)), whose)
	if 2*clearing > all.NS {
		s += ", which is cleared before it is handed out"
	}
	if from.Func != "" {
		s += ": mostly asked for in " + from.Func
	}
	return s + fmt.Sprintf(" (%s). Memory that is kept and used again costs none of it.",
		plural(o.Samples, "sample", "samples"))
}

// computes says in a sentence that what takes the time is the program's own computing, where it
// does; "" else. It is no stall, as nobody has anything to wait for, unless a finding says that
// others wait for it, as behind an event loop. Where no request was seen, nobody knows.
func (r *Report) computes() string {
	o, whole, whose, part := r.onCPU()
	if o == nil || whole <= 0 {
		return ""
	}
	if own := o.Of(account.WorkAlloc); part*float64(own.NS) >= ownWorkFrom*float64(whole) {
		return allocates(o, whole, whose, part)
	}
	own := o.Of(computing...)
	if part*float64(own.NS) < ownWorkFrom*float64(whole) {
		return ""
	}
	var by []string
	for i := range o.Works {
		w := &o.Works[i]
		if !slices.Contains(computing, w.Kind) || w.Name == account.OtherWorks ||
			len(by) >= mostOwnSaid || part*share(w.NS, whole) < leastTold {
			continue
		}
		by = append(by, fmt.Sprintf("%s %s", cmp.Or(w.Name, string(w.Kind)), percent(part*share(w.NS, whole))))
	}
	s := fmt.Sprintf("%s of %s is your own computing", percent(part*share(own.NS, whole)), whose)
	if len(by) > 0 {
		s += ": " + strings.Join(by, ", ")
	}
	s += fmt.Sprintf(" (%s).", plural(o.Samples, "sample", "samples"))
	if r.Ledger.Slow.Requests == 0 || r.stalls(int64(part*float64(own.NS))) {
		return s
	}
	return s + " That is no stall."
}

// stalls reports whether findings claim most of the slow column's time on CPUs, and so much of it
// that some of its own computing must be in it; or whether requests lay behind such computing.
func (r *Report) stalls(own int64) bool {
	var on, claimed int64
	for i := range r.Ledger.Slow.Accounts {
		if a := &r.Ledger.Slow.Accounts[i]; a.Leaf == account.LeafOnCPU {
			on += a.NS
		}
	}
	for i := range r.Findings {
		if r.Findings[i].Scope != finding.Slow {
			continue
		}
		for _, c := range r.Findings[i].Claims {
			switch c.Leaf {
			case string(account.LeafOnCPU):
				claimed += c.NS
			case string(account.LeafBehindTurn):
				return true
			}
		}
	}
	return 2*claimed > on && claimed > on-own
}

// ownPart is the part of a column's time on CPUs in which its requests computed themselves. In the
// rest they waited, as for a lock, and the one they waited for computed.
func ownPart(c *Column) float64 {
	var own, all int64
	for i := range c.Accounts {
		a := &c.Accounts[i]
		if a.Leaf != account.LeafOnCPU {
			continue
		}
		all += a.NS
		if a.Class == account.ClassOwn {
			own += a.NS
		}
	}
	if all <= 0 {
		return 1
	}
	return float64(own) / float64(all)
}
