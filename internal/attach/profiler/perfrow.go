package profiler

import (
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// perfRow is a row of perf report or perf top.
type perfRow struct {
	children, self float64 // shares of all
	comm, dso      string
	mark           string // "[k]", "[.]" and so on; "": the row names no symbol
	symbol         string
	screen         bool // it was opened on perf's screen: the tree below it is not as printed
	shares         int  // how many shares stand in front
	delta          bool // one has a sign: it is a difference of two recordings
}

// oldTopRow is a row of perf top before 3.1: "120249.00 74.6% do_raw_spin_lock [kernel.kallsyms]".
var oldTopRow = pattern.New(`^\d+\.\d\d\s+(\d+\.\d%)\s+([\w.@:~<>]+)\s+(\[[\w.]+\]|/\S+|\S+\.so\S*)$`)

// marks say whose code a symbol is of.
var marks = words("[k] [.] [u] [g] [H] [h]")

// perfRowOf reads a row. Only what has a mark is known without a header.
func perfRowOf(text string) (row perfRow, ok bool) {
	row.delta = signedShare(text) // perf's screen has blanks behind the sign of a row
	text = strings.TrimLeft(text, "+- ")
	if m := oldTopRow.FindStringSubmatch(text); m != nil {
		row = perfRow{dso: m[3], mark: "[.]", symbol: m[2], shares: 1}
		row.self, _ = percent(m[1])
		row.children = row.self
		if strings.HasPrefix(row.dso, "[") {
			row.mark = "[k]"
		}
		return row, true
	}
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return row, false
	}
	n := 0
	for n < len(fields) && n < 6 {
		share, ok := percent(strings.TrimLeft(fields[n], "+-"))
		if !ok {
			break
		}
		row.delta = row.delta || signedShare(fields[n])
		if n == 0 {
			row.children = share
		}
		if n < 2 {
			row.self = share
		}
		n++
	}
	if n == 0 || n == len(fields) || n > 2 && strings.HasPrefix(fields[n], "0x") { // the last is a row of perf c2c
		return row, false
	}
	row.shares = n
	rest := fields[n:]
	for i, f := range rest {
		if !marks[f] || i+1 == len(rest) {
			continue
		}
		row.mark = f
		before := rest[:i]
		for len(before) > 0 && isCount(before[0]) { // of samples, or periods
			before = before[1:]
		}
		if len(before) > 0 {
			row.dso = before[len(before)-1]
			row.comm = strings.Join(before[:len(before)-1], " ")
		}
		_, after, _ := strings.Cut(text, f+" ")
		row.symbol, _, _ = strings.Cut(strings.TrimSpace(after), "  ")
		return row, row.symbol != ""
	}
	for len(rest) > 1 && isCount(rest[0]) {
		rest = rest[1:]
	}
	row.comm = strings.Join(rest, " ")
	return row, true
}

// shares says what a row's second share is.
type shares int

const (
	unnamedShares shares = iota
	withCallees          // "Children Self": the second is of the function alone
	onlyFirst            // "Overhead sys usr", or one for each event: the first is of all
)

// own settles which share of a row is its own.
func (s *perfSection) own(row perfRow) perfRow {
	if row.shares > 1 && (s.shares == onlyFirst || s.shares == unnamedShares && row.self > row.children) {
		row.self = row.children
	}
	return row
}

// shareWithin is the share of a further row in a line that lost its breaks.
var shareWithin = pattern.New(`\d{1,2}\.\d\d%\s+\S+\s+(?:\S+\s+)?\[[.kugHh]\]`)

// gluedRows parts rows that a copy of a page wrote into one line. Rows go down by their shares:
// so "sse420.36%" after 0.42 % ends a symbol with sse42 and begins a row of 0.36 %.
func gluedRows(lines []paste.Line) []paste.Line {
	var out []paste.Line
	for _, l := range lines {
		row, ok := perfRowOf(l.Text)
		for ok && row.mark != "" {
			start := strings.Index(l.Text, row.mark) + len(row.mark)
			at := shareWithin.FindStringIndex(l.Text[start:])
			if at == nil {
				break
			}
			cut := start + at[0]
			if share, _, _ := strings.Cut(l.Text[cut:], "%"); len(share) == len("10.45") {
				if f, ok := number(share); ok && f > 100*row.self+0.005 || share[0] == '0' {
					cut++
				}
			}
			rest := l
			l.Text, rest.Text = l.Text[:cut], l.Text[cut:]
			out = append(out, l)
			l = rest
			row, ok = perfRowOf(l.Text)
		}
		out = append(out, l)
	}
	return out
}

// signedShare reports whether a text starts with a share that has a sign: "+5.42%".
func signedShare(text string) bool {
	return len(text) > 1 && (text[0] == '+' || text[0] == '-') && text[1] >= '0' && text[1] <= '9' &&
		strings.Contains(text[:min(len(text), 12)], "%")
}

func isCount(s string) bool { _, ok := whole(s); return ok }
