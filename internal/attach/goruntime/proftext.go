package goruntime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// pprofTop is what go tool pprof prints with -top, -text, -tree and -peek, and its prompt's top.
var pprofTop = &attach.Kind{
	Name: "pprof -top",
	Hints: []string{"File: ", "Type: ", "flat%", "Flat%", "nodes", "Build ID: ", "%", "(pprof)",
		"Duration: ", "Total: ", "ROUTINE ", "(flat, cum)", "Active filters:", "Fetching profile ",
		"Saved profile in ", "Entering interactive mode", "Generating report in ",
		"Main binary filename ", "Local symbolization "},
	Claim:   func(lines []paste.Line) int { return claimPprof(lines) },
	Reports: true,
	Read:    readPprof,
}

// profLine says what a line of go tool pprof is.
type profLine int

const (
	profNone   profLine = iota
	profHead            // Type, Time, Duration
	profTitle           // flat  flat%   sum%        cum   cum%
	profRow             // a function with its sums
	profRule            // -----------+-----
	profTrace           // of -traces: a value or none, and a function
	profListed          // of -list: ROUTINE, and its lines
	profPlain           // belongs to it and says nothing
)

// row is a function's line.
type row struct {
	flat, cum float64
	total     float64 // by the row's own percentage
	fn        string
	unit      string
}

func pprofLine(s string) (profLine, row) {
	t := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "(pprof) "))
	if listHead(t) != nil {
		return profListed, row{}
	}
	for _, h := range []string{"Type: ", "Duration: ", "Showing nodes accounting for ",
		"Showing top ", "Dropped ", "Total: ", "File: ", "Build ID: ", "Time: ",
		"Entering interactive mode", "Active filters:", "Doc: ", "Fetching profile ",
		"Saved profile in ", "Please wait... (", "Main binary filename ", "Local symbolization ",
		"Generating report in ", "Some binary filenames not available",
		"Try setting PPROF_BINARY_PATH", "Set the PPROF_TMPDIR"} {
		if !strings.HasPrefix(t, h) {
			continue
		}
		if h == "Showing top " && !strings.Contains(t, " nodes out of ") || h == "Dropped " &&
			!strings.Contains(t, " node") {
			return profNone, row{}
		}
		return profHead, row{}
	}
	if _, ok := oldTotal(t); ok {
		return profHead, row{}
	}
	if f := strings.Fields(t); len(f) >= 5 && strings.EqualFold(f[0], "flat") &&
		strings.EqualFold(f[1], "flat%") && strings.EqualFold(f[2], "sum%") {
		return profTitle, row{}
	}
	if r, ok := parseRow(t); ok {
		return profRow, r
	}
	switch {
	case ruled(t):
		return profRule, row{}
	case strings.HasPrefix(t, "ROUTINE ====="):
		return profListed, row{}
	case strings.Contains(t, "% |") && strings.Count(t, "%") == 1, strings.HasPrefix(t, "| "),
		filterLine(t), t == "(pprof)":
		return profPlain, row{}
	}
	return profNone, row{}
}

// ruled knows the rules of -traces, and of -tree and -peek.
func ruled(s string) bool {
	t := strings.TrimSpace(s)
	return strings.HasPrefix(t, "-----------+---") ||
		strings.HasPrefix(t, "----------------------------------------------------------+")
}

// filterLine is one of those below "Active filters:".
func filterLine(t string) bool {
	switch name, _, ok := strings.Cut(t, "="); name {
	case "focus", "ignore", "hide", "show", "show_from", "prune_from", "tagfocus", "tagignore", "tagshow", "taghide":
		return ok
	}
	return false
}

// oldTotal parses "6.45s of 11.88s total (54.29%)" and "Total: 64 samples", as pprof printed it
// until Go 1.8.
func oldTotal(t string) (total float64, ok bool) {
	f := strings.Fields(t)
	if (len(f) == 5 || len(f) == 6 && f[4] == "(") && f[1] == "of" && f[3] == "total" {
		total, _, ok = amount(f[2])
	}
	return total, ok
}

// nameless stands for the name of a function that has none.
const nameless = "?"

// parseRow parses "1.68s 14.14% 14.14%      1.68s 14.14%  runtime.mallocgc (inline) file.go". -tree
// has a bar before the function.
func parseRow(t string) (r row, ok bool) {
	f := strings.Fields(t)
	if len(f) == 5 { // pprof found no name
		f = append(f, nameless)
	}
	if len(f) < 6 || !strings.HasSuffix(f[1], "%") || !strings.HasSuffix(f[2], "%") || !strings.HasSuffix(f[4], "%") {
		return r, false
	}
	var ok1, ok2, ok3 bool
	r.flat, r.unit, ok1 = signed(f[0])
	var unit string
	r.cum, unit, ok2 = signed(f[3])
	var share float64
	share, ok3 = number(strings.Trim(f[1], "-%"))
	r.total = 100 * ratio(r.flat, share)
	if ofCum, isShare := number(strings.Trim(f[4], "-%")); isShare && r.cum > r.flat {
		r.total = 100 * ratio(r.cum, ofCum) // the larger number is the more exact one
	}
	if r.unit == "" {
		r.unit = unit
	}
	r.fn = f[5]
	if r.fn == "|" && len(f) > 6 {
		r.fn = f[6]
	}
	r.fn = goName(r.fn)
	return r, ok1 && ok2 && ok3
}

// signed is amount with a sign, as differences of profiles have.
func signed(s string) (v float64, unit string, ok bool) {
	rest, less := strings.CutPrefix(s, "-")
	v, unit, ok = amount(rest)
	if less {
		v = -v
	}
	return v, unit, ok
}

// amount parses "1.68s", "650.62kB", "12" to ns, bytes or a number.
func amount(s string) (v float64, unit string, ok bool) {
	i := strings.LastIndexAny(s, "0123456789.") + 1
	v, ok = number(s[:i])
	if !ok {
		return 0, "", false
	}
	switch s[i:] {
	case "":
		return v, "", true
	case "ns":
		return v, "ns", true
	case "us", "µs":
		return v * 1e3, "ns", true
	case "ms":
		return v * 1e6, "ns", true
	case "s":
		return v * 1e9, "ns", true
	case "mins":
		return v * 60e9, "ns", true
	case "hrs":
		return v * 3600e9, "ns", true
	case "days":
		return v * 86400e9, "ns", true
	case "B":
		return v, "B", true
	case "kB", "KB":
		return v * (1 << 10), "B", true
	case "MB":
		return v * (1 << 20), "B", true
	case "GB":
		return v * (1 << 30), "B", true
	case "TB":
		return v * (1 << 40), "B", true
	}
	return 0, "", false
}

// claimPprof starts at a head that a table, traces or a listing follows, or in a cut-off table.
func claimPprof(lines []paste.Line) int {
	if collapsed(lines[0].Text) != nil {
		return 1
	}
	end, rows, rules, titles, heads, listed, traces := 0, 0, 0, 0, 0, 0, 0
	beside := 0 // lines of -tree and -peek that stand above and below a function's own
	named := 0  // rows that can be nothing else
	done := func() int {
		if named > 0 && named == end {
			return end
		}
		if rows > 0 {
			return pprofEnd(end, rows+beside/2, titles, traces, listed)
		}
		return pprofEnd(end, rows, titles, traces, listed)
	}
	for i, line := range lines {
		if line.Command != "" && i > 0 {
			if ownPrompt(line) {
				continue
			}
			break
		}
		what, r := pprofLine(line.Text)
		if what == profRow && r.fn == nameless && titles == 0 {
			what = profNone
		}
		if what == profRow && r.unit != "" && strings.Contains(r.fn, ".") {
			named++
		}
		if what == profNone && rules > 0 && listed == 0 && traceLine(line.Text) {
			what = profTrace
		}
		if what == profPlain && strings.Contains(line.Text, "% |") {
			beside++
		}
		if what == profNone && listed > 0 && (listLine(line.Text) || fileBelow(lines, i)) {
			what = profPlain
		}
		switch what {
		case profNone:
			if strings.TrimSpace(line.Text) == "" && (rows+heads+traces+listed > 0) {
				continue
			}
			return max(done(), headsEnd(lines, end, heads))
		case profRow:
			rows++
		case profTitle:
			titles++
		case profHead:
			if rows+traces+listed > 0 && strings.HasPrefix(strings.TrimSpace(line.Text), "File: ") {
				return done() // the next one
			}
			heads++
		case profRule:
			rules++
		case profTrace:
			traces++
		case profListed:
			listed++
		}
		end = i + 1
	}
	return max(done(), headsEnd(lines, end, heads))
}

// headsEnd is the end of a head alone: what follows is cut off, or stands below the tool's own
// prompt. 0: it is none.
func headsEnd(lines []paste.Line, end, heads int) int {
	own := false
	for _, line := range lines[:min(end, 8)] {
		_, total := oldTotal(strings.TrimSpace(line.Text))
		own = own || total || strings.Contains(line.Text, "Entering interactive mode") ||
			strings.Contains(line.Text, "Generating report in ") || strings.Contains(line.Text, "Showing nodes accounting for ")
	}
	return attach.ClaimIf(end == heads && (heads >= 3 || heads > 0 && own), end)
}

// ownPrompt knows commands at pprof's own prompt.
func ownPrompt(line paste.Line) bool {
	word := strings.TrimRight(firstWord(line.Command), "0123456789")
	return strings.Contains(line.Text, "(pprof)") || word == "top" && line.Command != "top" ||
		word == "Showing" || word == "peek" || word == "traces" || word == "tree"
}

func pprofEnd(end, rows, titles, traces, listed int) int {
	if rows >= 3 || titles > 0 || traces > 0 || listed > 0 {
		return end
	}
	return 0
}

// traceLine knows the lines of -traces: a function, with a value before it in the first of a stack.
func traceLine(s string) bool {
	f := strings.Fields(s)
	if len(f) == 0 || len(s) > 1024 {
		return false
	}
	if _, _, ok := amount(f[0]); ok && len(f) >= 2 {
		f = f[1:]
	}
	if strings.Contains(f[0], "[") { // a generic function's types have blanks
		return strings.HasPrefix(s, "  ")
	}
	return strings.HasPrefix(s, "  ") &&
		(len(f) == 1 || f[1] == "(inline)" || strings.HasSuffix(f[0], ":") || sourceLine(f[1]) ||
			strings.HasPrefix(f[1], "/")) && !strings.HasSuffix(f[0], "%")
}

// sourceLine knows what -lines adds to a function: its file and the line.
func sourceLine(s string) bool {
	file, line, ok := strings.Cut(s, ":")
	return ok && line != "" && digits(line) == len(line) && strings.Contains(file, ".")
}

func readPprof(part *attach.Part) attach.Reading {
	t := tables{p: newProfile(profOther)}
	for _, line := range part.Lines {
		if joined := collapsed(line.Text); joined != nil {
			for _, text := range joined {
				t.take(text)
			}
			continue
		}
		t.take(line.Text)
	}
	t.closeTrace()
	p := t.p
	p.missing(t.rows)
	p.unseen, p.byCum, p.headless = !t.locksListed(), t.byCum, t.rows > 0 && t.titles == 0
	if p.total == 0 {
		p.total = t.byRow
	}
	if p.total == 0 {
		p.total = p.sum()
		if last := part.Lines[len(part.Lines)-1].Text; len(p.stacks) > 0 && !ruled(last) {
			p.total, p.least = 0, p.total // -traces ends with a rule: the end is cut off
		}
	}
	p.fromAbove(part)
	p.named(part.Title + " " + part.Command + " " + part.Session)
	p.sampleIndex(part.Command + " " + part.Session)
	if t.rows > 0 && !t.listed && !hasNames(p.flat) {
		return p.readNameless(t.unit)
	}
	p.guess(t.unit)
	p.unit = t.unit
	if (p.kind == profHeap || p.kind == profAllocs) && !p.objects && t.unit == "" && t.rows > 0 && p.total > 0 {
		// Bytes have units: another sample index was chosen in the session, unseen.
		p.kind, p.objects, p.vague = profHeap, true, true
	}
	if t.listed {
		return p.readList(part.Lines)
	}
	if t.titles == 0 && t.rows > 0 && t.rows < 3 && t.rows == len(part.Lines) {
		return p.readRows(t.unit)
	}
	if len(p.flat)+len(p.stacks)+t.titles == 0 {
		if p.total == 0 && !slices.ContainsFunc(part.Lines, ofProfile) {
			return attach.Reading{Title: "a line of pprof's own", State: attach.Context,
				Means: "what it shows went into a file, or is not here", Not: "anything by itself"}
		}
		return p.readHead(part.Lines)
	}
	title := "pprof output"
	if p.kind != profOther {
		title = fmt.Sprintf("%s profile as pprof prints it", p.kind)
	}
	if p.guessed {
		title += ", by its functions: its head is cut off"
	}
	if p.vague {
		title = "memory profile as pprof prints it"
	}
	if p.differ {
		title = "difference of two profiles, as pprof prints it"
	}
	r := p.read(title)
	p.tellMissing(&r)
	if text := t.neighbours(); t.rows == 1 && text != "" {
		r.Figures = append(r.Figures, text)
	}
	return r
}

// ofProfile reports whether a line says which profile it is, or of which program.
func ofProfile(l paste.Line) bool {
	t := strings.TrimSpace(l.Text)
	return strings.HasPrefix(t, "File: ") || strings.HasPrefix(t, "Type: ") || strings.HasPrefix(t, "Main binary") ||
		strings.HasPrefix(t, "Fetching profile ") || strings.HasPrefix(t, "Saved profile in ")
}

// readNameless reads a table whose functions have no names.
func (p *profile) readNameless(unit string) attach.Reading {
	r := attach.Reading{Title: "pprof output without names of functions", State: attach.CannotTell,
		Means: "pprof found no names: without the program's own file, or its symbols, the sums say of nothing"}
	switch {
	case unit == "ns":
		r.Figures = []string{finding.Duration(int64(p.total)) + " in all, without a name"}
	case unit == "B":
		r.Figures = []string{finding.Bytes(int64(p.total)) + " in all, without a name"}
	case p.total > 0:
		r.Figures = []string{fmt.Sprintf("%.0f in all, without a name", p.total)}
	}
	r.Next = []attach.Next{{Command: "go tool pprof -top PROGRAM FILE", Why: "finds the names in the program"}}
	return r
}

// fromAbove takes what the head says that pprof printed when it started, above its own prompt.
func (p *profile) fromAbove(part *attach.Part) {
	for above, n := part.Above, 0; above != nil && n < 64; above, n = above.Above, n+1 {
		head := newProfile(profOther)
		for _, line := range above.Lines[:min(len(above.Lines), 16)] {
			if what, _ := pprofLine(line.Text); what == profHead {
				head.head(strings.TrimSpace(line.Text))
			}
		}
		if p.kind == profOther && p.typed == "" {
			p.kind, p.objects, p.perSample, p.typed = head.kind, head.objects, head.perSample, head.typed
		}
		if p.duration == 0 {
			p.duration = head.duration
		}
	}
}

// sampleTypes is what of a profile is shown, by the names that pprof's options have.
// At its own prompt a name alone chooses as well.
var sampleTypes = pattern.New(`(?:^|;\s*|--?|sample_index[= ]\s*)(alloc_space|alloc_objects|inuse_space|inuse_objects)\b`)

// diffOption knows the options that take another profile off.
var diffOption = pattern.New(`(?:^|\s)--?(?:diff_)?base[= ]`)

// sampleIndex takes what a person chose to see. The last choice counts.
func (p *profile) sampleIndex(commands string) {
	p.differ = p.differ || diffOption.MatchString(commands)
	all := sampleTypes.FindAllStringSubmatch(commands, -1)
	if len(all) == 0 || p.kind != profOther && p.kind != profHeap && p.kind != profAllocs {
		return
	}
	p.head("Type: " + all[len(all)-1][1])
}
