package profiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// bpfTables are the kinds of these tools: one of each name.
func bpfTables() []*attach.Kind {
	var out []*attach.Kind
	for i := range bpfTools {
		tool := &bpfTools[i]
		hint := tool.hint
		if at := slices.IndexFunc(out, func(k *attach.Kind) bool { return k.Name == tool.name }); at >= 0 {
			out[at].Hints = append(out[at].Hints, hint)
			continue
		}
		hints := []string{hint, "Tracing ", "Ctrl", "loadavg: ", "Attaching "}
		if tool.bare != nil {
			hints = append(hints, " R", " W")
		}
		out = append(out, &attach.Kind{
			Name:  tool.name,
			Hints: hints,
			Claim: func(lines []paste.Line) int { return claimTable(tool.name, lines) },
			Read: func(p *attach.Part) attach.Reading {
				t := readTable(tool, p)
				t.dropAbsurd()
				return t.tool.read(t)
			},
		})
	}
	return out
}

// tableNote reports whether a line may stand in a table beside its rows.
func tableNote(text string) bool {
	switch {
	case preamble(text), clockLine.MatchString(strings.Trim(text, "[]")), text == "[...]",
		text == "...", text == "--------":
		return true
	case strings.HasPrefix(text, "Top "):
		return strings.Contains(text, "syscalls")
	case len(text) > 2 && strings.Contains("pruth", text[:1]) && text[1] == ':':
		return true
	}
	for _, start := range []string{"Detaching", "Total References:", "Printing ", "Tracing ",
		"Summarize", "Attached kernel tracepoints", "Exiting trace of ", "Ending tracing"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return len(text) < 120 && (strings.Contains(text, "loadavg:") ||
		strings.Contains(text, "Buffers MB:") || strings.Contains(text, "Ctrl-C to "))
}

// ofStack reports whether a line is a function of the kernel, below a row of a tool that prints
// stacks.
func ofStack(text string) bool {
	text, _, _ = strings.Cut(text, " [") // the library
	return !strings.Contains(text, " ") && len(text) < 200 &&
		(strings.HasPrefix(text, "b'") || strings.Contains(text, "+0x") || text == "[unknown]")
}

// mostNotes lines may stand above a heading.
const mostNotes = 6

// headNear reports whether the next lines may have a tool's heading. A log may be full of lines
// that start with Tracing, and all tools are asked about each.
func headNear(name string, lines []paste.Line) bool {
	for i := range bpfTools {
		if bpfTools[i].name != name {
			continue
		}
		for _, l := range lines[1:min(len(lines), 2*mostNotes)] {
			if strings.Contains(l.Text, bpfTools[i].hint) {
				return true
			}
		}
	}
	return false
}

func claimTable(name string, lines []paste.Line) int {
	first := strings.TrimSpace(lines[0].Text)
	tool, columns := columnsOf(first)
	headed := tool != nil
	if tool == nil {
		tool, columns = bareTool(name, lines)
	}
	if tool == nil && !(headNear(name, lines) && tableNote(first)) || tool != nil && tool.name != name {
		return 0
	}
	rows, end, notes := 0, 0, 0
	claimed(lines, func(i int, text string) bool {
		if t, c := columnsOf(text); t != nil {
			if t.name != name {
				return false
			}
			tool, columns = t, c
			return true
		}
		switch {
		case tool == nil || rows == 0 && tableNote(text):
			notes++
			return tableNote(text) && notes < mostNotes
		case hasRow(columns, text):
			rows++
			end = i + 1
			return true
		case tool.stacks && ofStack(text):
			end = i + 1
			return true
		}
		if strings.HasPrefix(text, "Total References:") || strings.HasPrefix(text, "Ending tracing") {
			end = i + 1
		}
		return tableNote(text)
	})
	switch {
	case rows == 0 && headed: // a table without events says something too
		return 1
	case rows == 0:
		return 0
	}
	return end
}

// bareTool is the tool of this name if its rows stand here without the names of their columns.
func bareTool(name string, lines []paste.Line) (*bpfTool, []string) {
	for i := range bpfTools {
		if t := &bpfTools[i]; t.name == name && t.bare != nil {
			if columns := t.bareColumns(lines); columns != nil {
				return t, columns
			}
		}
	}
	return nil, nil
}

func hasRow(columns []string, text string) bool {
	_, ok := rowOf(columns, text)
	return ok
}

// bpfTable is the rows of a tool.
type bpfTable struct {
	tool    *bpfTool
	columns []string
	rows    []bpfRow
	said    string    // what stands above the first row
	heads   int       // how often the header stands: intervals
	clocks  []float64 // times that stand between the rows, in seconds
	command string
	left    int    // rows that are not read
	wrong   int    // rows left out, whose time is absurd
	cut     bool   // a person cut rows out: what they add up to is no total
	total   string // the tool's own line of totals
}

// mostRows bounds how many rows of a table are kept.
const mostRows = 1 << 15

func readTable(tool *bpfTool, p *attach.Part) *bpfTable {
	t := &bpfTable{tool: tool, command: p.Command, columns: tool.bareColumns(p.Lines)}
	for i := range p.Lines {
		text := strings.TrimSpace(p.Lines[i].Text)
		switch {
		case text == "[...]", text == "...":
			t.cut = true
		case strings.HasPrefix(text, "Total References:"):
			t.total = text
		}
		if got, c := columnsOf(text); got != nil {
			t.tool, t.columns = got, c
			t.heads++
			continue
		}
		if first, _, _ := strings.Cut(text, " "); len(first) == len("10:20:30") &&
			len(t.rows) < mostRows && tableNote(text) {
			if s := clockOf(first); s >= 0 {
				t.clocks = append(t.clocks, s)
			}
			continue
		}
		if len(t.rows) == 0 && len(t.said) < 400 && tableNote(text) {
			t.said += text + "\n"
		}
		if t.columns == nil || tableNote(text) {
			continue
		}
		if len(t.rows) == mostRows {
			t.left++
			continue
		}
		if row, ok := rowOf(t.columns, text); ok {
			t.rows = append(t.rows, row)
		}
	}
	return t
}

// has reports whether there is such a column.
func (t *bpfTable) has(column string) bool { return slices.Contains(t.columns, column) }

// column is the first of several that is there; "": none is.
func (t *bpfTable) column(names string) string {
	for _, c := range strings.Fields(names) {
		if t.has(c) {
			return c
		}
	}
	return ""
}

// span is the time over which the rows came, in seconds; 0 if no column says it.
func (t *bpfTable) span() float64 {
	if len(t.rows) < 2 {
		return 0
	}
	first, last := t.rows[0].time(), t.rows[len(t.rows)-1].time()
	if first < 0 || last <= first {
		return 0
	}
	return last - first
}

// interval is what one table of a tool covers that prints several, in seconds: by the times above
// them, or by the command's first number. 0: neither says it.
func (t *bpfTable) interval() float64 {
	if n := len(t.clocks); n > 1 && t.clocks[n-1] > t.clocks[0] {
		return (t.clocks[n-1] - t.clocks[0]) / float64(n-1)
	}
	for _, f := range strings.Fields(t.command) {
		if s, ok := number(f); ok && s > 0 && s < 86400 {
			return s
		}
	}
	return 0
}

// hitsByRow says how far the rows of cachestat lie apart, which a sum hides; "" where they do not.
func (t *bpfTable) hitsByRow() string {
	least, most := 2.0, -1.0
	for _, row := range t.rows {
		hits, misses := max(row.num("HITS"), 0), max(row.num("MISSES"), 0)
		if hits+misses >= 100 {
			least, most = min(least, hits/(hits+misses)), max(most, hits/(hits+misses))
		}
	}
	if t.has("REFERENCE") || most < 0 || most-least < 0.1 {
		return ""
	}
	return fmt.Sprintf(", %s to %s by row", pct(least), pct(most))
}
