package profiler

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var perfReport = &attach.Kind{Name: "perf report", Claim: claimPerfReport, Read: readPerfReport, Reports: true,
	Hints: []string{"%", "#", "PerfTop:", "pcnt", "Samples: ", "Overhead", "Children"},
	Apart: func(l paste.Line) bool { return reportStarts(strings.TrimSpace(l.Text)) }}

// reportStarts reports whether a line is the first that perf report prints.
func reportStarts(text string) bool {
	return strings.HasPrefix(text, "# To display the perf.data header")
}

// perfHead reports whether a line is of the head of perf report or perf top.
func perfHead(text string) bool {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "#") {
		rest := strings.TrimSpace(text[1:])
		return rest == "" || strings.HasPrefix(rest, "Samples:") ||
			strings.HasPrefix(rest, "Event count") || strings.HasPrefix(rest, "To display the perf.data") ||
			strings.HasPrefix(rest, "Total Lost Samples") || strings.HasPrefix(rest, "Overhead ") ||
			strings.HasPrefix(rest, "Children ") ||
			strings.HasPrefix(rest, "........") || strings.HasPrefix(rest, "comm: ") ||
			strings.HasPrefix(rest, "dso: ") || strings.HasPrefix(rest, "(Tip:") ||
			strings.HasPrefix(rest, "(Cannot load tips") || strings.HasPrefix(rest, "========") || perfHeaderField(rest)
	}
	return perfTopHead(text)
}

// topTail is the end of perf top's first line, which mails wrap.
var topTail = pattern.New(`^[^%]{0,60}\],\s+\((?:all|target_\w+: \S+)(?:, \d+ CPUs?)?\)$`)

// topLoad is what perf top's first line says of all samples.
var topLoad = pattern.New(`^PerfTop:\s+(\d+) irqs/sec\s+kernel:\s*(\d+(?:\.\d+)?)%`)

// perfTopHead reports whether a line heads the screen of perf top or of perf report.
func perfTopHead(text string) bool {
	return topTail.MatchString(text) || strings.HasPrefix(text, "PerfTop:") || strings.HasPrefix(text, "Samples: ") &&
		strings.Contains(text, "of event") ||
		header(text, "Overhead", "Shared", "Object") || header(text, "Overhead", "Command") ||
		header(text, "Children", "Self") || header(text, "Overhead", "Symbol") ||
		strings.HasPrefix(text, "........") && strings.Trim(text, ". ") == "" || // a # was taken off
		strings.HasPrefix(text, "ESC: exit, ENTER|") ||
		strings.HasPrefix(text, "Press '?' for help on key bindings") ||
		strings.HasPrefix(text, "For a higher level overview, try:") ||
		header(text, "samples", "pcnt", "function") || strings.HasPrefix(text, "____") && strings.Trim(text, "_ ") == ""
}

// perfHeaderField reports whether a comment is of what perf report --header prints.
func perfHeaderField(rest string) bool {
	name, _, ok := strings.Cut(rest, " : ")
	if !ok {
		return strings.HasPrefix(rest, "pmu mappings:") || strings.Contains(rest, " pmu capabilities:") ||
			strings.HasSuffix(rest, "info available, use -I to display") || strings.HasPrefix(rest, "captured on") || strings.HasPrefix(rest, "event : name") ||
			strings.HasPrefix(rest, "node") || strings.HasPrefix(rest, "missing features")
	}
	first, _, _ := strings.Cut(strings.TrimSpace(name), " ")
	return perfHeaderFields[first]
}

// perfHeaderFields are the first words of the fields of that header.
var perfHeaderFields = words(`hostname os perf arch nrcpus cpudesc cpuid total memory cmdline event sibling pmu contains captured header data feat
	CPU group cache sample time missing node0 node1`)

func claimPerfReport(lines []paste.Line) int {
	first := strings.TrimSpace(lines[0].Text)
	row, isRow := perfRowOf(first)
	if !(isRow && row.mark != "" && !row.delta) && !perfHead(first) {
		return 0
	}
	known := isRow && row.mark != ""
	columns := false // a header that names columns
	indent, screen, named := -1, -1, false
	n := claimed(lines, func(i int, text string) bool {
		if known && reportStarts(text) {
			return false
		}
		if perfHead(text) || columnsHead(text) || strings.Trim(text, "- ") == "" && strings.HasPrefix(text, "------") {
			columns = columns || columnsHead(text)
			named = false
			return true
		}
		row, ok := perfRowOf(text)
		if ok && row.mark == "" && (onScreen(lines[i].Text, screen) || named && foldedChain.MatchString(text)) {
			return true
		}
		if ok && !row.delta && (row.mark != "" || columns) {
			known = true
			screen, named = -1, row.mark != ""
			if named {
				screen = openedAt(lines[i].Text)
			}
			indent = len(lines[i].Text) - len(strings.TrimLeft(lines[i].Text, " \t+-"))
			return true
		}
		return indent >= 0 && inGraph(lines[i].Text, indent) || onScreen(lines[i].Text, screen)
	})
	return attach.ClaimIf(known, n)
}

// columnsHead reports whether a line names the columns of rows.
func columnsHead(text string) bool {
	text = strings.TrimSpace(strings.TrimPrefix(text, "#"))
	return strings.HasPrefix(text, "Overhead ") || strings.HasPrefix(text, "Children ") &&
		strings.Contains(text, "Self")
}

// inGraph reports whether a line is of the call graph below a row that starts at column indent.
func inGraph(text string, indent int) bool {
	trimmed := strings.TrimLeft(text, " \t")
	return len(text)-len(trimmed) > indent+2 && trimmed != "" && !strings.HasPrefix(trimmed, "#") ||
		strings.HasPrefix(trimmed, "|") || strings.HasPrefix(trimmed, "---")
}

// perfSection is the rows of one event.
type perfSection struct {
	called  []sample           // of the row with the largest share that has callees, by its call graph
	covered float64            // share of that row
	below   map[string]float64 // the same on perf's screen: shares by function, with what it calls
	event   string
	samples int
	about   string  // samples, as printed: 12K is not 12000
	counted float64 // of the event, where the text says it; 0: it does not
	p       profile
	rows    int
	top     bool
	kernel  string // what perf top says of the kernel's part; "": nothing
	symbols bool   // the column without a name of its own holds symbols
	shares  shares // what the second share of a row is
	tree    bool   // rows stand below those that they are parts of (--hierarchy)
}

// symbolsHead reports whether a head has two columns: shares and symbols.
func symbolsHead(text string) bool {
	return slices.Equal(strings.Fields(strings.TrimPrefix(text, "#")), []string{"Overhead", "Symbol"})
}

func readPerfReport(p *attach.Part) attach.Reading {
	if r, ok := readBranches(p); ok {
		return r
	}
	sections := perfSections(p)
	best := &sections[0]
	for i := range sections {
		if s := &sections[i]; s.rows > 0 && (best.rows == 0 || s.top && s.rows > best.rows &&
			s.event == best.event || !cpuEvent(best.event) && cpuEvent(s.event)) {
			best = s
		}
	}
	tool := "perf report"
	if best.top {
		tool = "perf top"
	}
	title := fmt.Sprintf("%s, %s", tool, attach.Plural(best.rows, "row"))
	if best.event != "" {
		title += " of event " + best.event
	}
	if best.samples > 0 {
		title += ", " + strings.Replace(attach.Plural(best.samples, "sample"),
			strconv.Itoa(best.samples), best.about, 1)
	}
	if best.event != "" && !cpuEvent(best.event) {
		best.p.counts = true
		r := otherEvent(&best.p, title, best.event, best.counted)
		otherSections(&r, sections, best)
		return r
	}
	best.p.pid, best.p.only = targetOf(p), sampledOnly(best.event)
	best.p.unsaid = best.event == "" && !best.top
	if best.ofRowsAlone() {
		best.p.only = ofRows
	}
	r := best.p.reading()
	r.Title = title
	if best.kernel != "" {
		r.Figures = append(r.Figures, best.kernel)
	}
	if len(sections) > 1 {
		what := "tables"
		switch {
		case slices.ContainsFunc(sections, func(s perfSection) bool { return s.top }):
			what = "screens of perf top"
		case slices.ContainsFunc(sections, func(s perfSection) bool { return s.event != best.event }):
			what = "events"
		}
		r.Flaws = append(r.Flaws, fmt.Sprintf("it has %d %s; the reading is of one", len(sections), what))
	}
	return r
}

func perfSections(p *attach.Part) []perfSection {
	out := []perfSection{{}}
	var below []string // the call graph of row
	var row perfRow
	flush := func() {
		out[len(out)-1].add(row, below)
		row, below = perfRow{}, nil
	}
	indent, screen := 0, -1
	for _, l := range gluedRows(p.Lines) {
		l.Text = strings.TrimRight(l.Text, " ▒◆█") // the screen's scroll bar
		text := strings.TrimSpace(l.Text)
		if s, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(text, "#")), "Samples:"); ok {
			flush()
			if out[len(out)-1].rows > 0 {
				out = append(out, perfSection{})
			}
			out[len(out)-1].head(s)
			continue
		}
		if _, s, ok := strings.Cut(text, "Event count (approx.):"); ok && len(out[len(out)-1].p.samples) == 0 {
			out[len(out)-1].count(s)
		}
		if strings.HasPrefix(text, "PerfTop:") {
			if flush(); out[len(out)-1].rows > 0 {
				out = append(out, perfSection{})
			}
			out[len(out)-1].top = true
			if m := topLoad.FindStringSubmatch(text); m != nil {
				out[len(out)-1].kernel = fmt.Sprintf("%s samples a second, %s %% of them in the kernel", m[1], m[2])
			}
			continue
		}
		if header(text, "Overhead", "Shared", "Object") && out[len(out)-1].samples == 0 || header(text, "samples", "pcnt") {
			out[len(out)-1].top = true
		}
		if symbolsHead(text) {
			out[len(out)-1].symbols = true
		}
		if columnsHead(text) {
			out[len(out)-1].tree = strings.Contains(text, " / ")
			if out[len(out)-1].shares = onlyFirst; strings.Contains(text, "Children ") {
				out[len(out)-1].shares = withCallees
			}
		}
		if perfHead(text) || text == "" {
			continue
		}
		got, ok := perfRowOf(text)
		if ok && got.mark == "" && row.mark != "" &&
			(onScreen(l.Text, screen) || foldedChain.MatchString(text)) && len(below) < most {
			below = append(below, l.Text)
			continue
		}
		if ok && (got.mark != "" || len(below) == 0 || !inGraph(l.Text, indent)) {
			flush()
			row, screen = got, -1
			if row.mark != "" {
				screen = openedAt(l.Text)
			}
			row.screen = screen >= 0
			indent = len(l.Text) - len(strings.TrimLeft(l.Text, " \t+-"))
			continue
		}
		if len(below) < most {
			below = append(below, l.Text)
		}
	}
	flush()
	for i := range out {
		out[i].settle()
	}
	return out
}

// head reads what follows "Samples:", such as "10K of event 'cycles:P'".
func (s *perfSection) head(text string) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return
	}
	s.samples, s.about = int(abbreviated(fields[0])), fields[0]
	s.top = s.top || strings.Contains(text, " Hz") && strings.Contains(text, "drop: ")
	s.p.number = s.samples
	if _, after, ok := strings.Cut(text, "Event count (approx.):"); ok {
		s.count(after)
	}
	if _, after, ok := strings.Cut(text, "event '"); ok {
		s.event, _, _ = strings.Cut(after, "'")
	} else if _, after, ok := strings.Cut(text, "events '"); ok {
		s.event, _, _ = strings.Cut(after, "'")
	}
}

// count reads what follows "Event count (approx.):".
func (s *perfSection) count(text string) {
	if f := strings.Fields(text); len(f) > 0 {
		s.counted, _ = number(f[0])
	}
}

// abbreviated reads a count such as 12K or 3M.
func abbreviated(s string) float64 {
	factor := 1.0
	for suffix, f := range map[string]float64{"K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9} {
		if rest, ok := strings.CutSuffix(s, suffix); ok {
			s, factor = rest, f
		}
	}
	f, ok := number(s)
	if !ok || f < 0 || f > 1e9 {
		return 0
	}
	return f * factor
}

// add adds a row with the call graph below it.
func (s *perfSection) add(row perfRow, below []string) {
	if row.comm == "" && row.symbol == "" || s.rows >= most {
		return
	}
	row = s.own(row)
	if s.tree && row.symbol == "" { // what its functions add up to
		return
	}
	s.rows++
	s.p.whole = 1
	if s.symbols && row.mark == "" && row.symbol == "" { // whose code it is was left out
		one := sample{weight: row.self, ofNobody: true, program: frames([]string{row.comm}, "")}
		s.p.samples = append(s.p.samples, one)
		return
	}
	inKernel := row.mark == "[k]" || row.mark == "[g]"
	if row.screen {
		below = printed(below)
	}
	if row.children > s.p.through.share && row.self < row.children/2 {
		s.p.through = reached{row.symbol, row.children}
		if allZero(row.symbol) {
			s.p.through.name = "functions without a symbol"
		}
	}
	if inKernel && row.children > 2*row.self && row.comm != "swapper" {
		if s.p.calls == nil {
			s.p.calls = map[string]float64{}
		}
		s.p.calls[row.symbol] += row.children
	}
	s.caller(row, below)
	left := row.self
	for _, c := range chains(below, row.symbol, row.self) {
		if row.symbol == "" || left <= 0 {
			break
		}
		one := sample{weight: min(c.share, left), comm: row.comm}
		one.kernel, one.program = split(c.names, inKernel)
		if !inKernel {
			one.kernel, one.program = nil, frames(c.names, row.dso)
		}
		left -= one.weight
		s.p.stacks = true
		s.p.samples = append(s.p.samples, one)
	}
	if left <= 0 {
		return
	}
	one := sample{weight: left, comm: row.comm, bare: row.symbol == ""}
	switch {
	case row.symbol == "":
	case inKernel:
		one.kernel = []kernel.Frame{{Func: row.symbol, Module: "kernel"}}
	default:
		one.program = frames([]string{row.symbol}, row.dso)
	}
	s.p.samples = append(s.p.samples, one)
}

// frames are functions of a program, of which the innermost one's module is known.
func frames(names []string, module string) []kernel.Frame {
	out := make([]kernel.Frame, len(names))
	for i, name := range names {
		out[i].Func = name
		if name == "[unknown]" || strings.HasPrefix(name, "0x") {
			out[i].Func = ""
		}
	}
	if len(out) > 0 {
		out[0].Module = module
		if strings.Contains(module, ".so") && !strings.Contains(module, "/") {
			out[0].Module = "/usr/lib/" + module // perf prints a library's name alone
		}
	}
	return out
}
