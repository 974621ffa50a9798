package goruntime

import (
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// profTitleWords is the heading of pprof's table, with one blank between its words.
const profTitleWords = "flat flat% sum% cum cum%"

// oldTable is what stands above the rows of old tables: "Total: 2525 samples".
var oldTable = pattern.New(`Total: \d+ samples `)

// maxCollapsed bounds the line that is taken apart: its words take more memory than the text.
const maxCollapsed = 64 << 10

// profHeads are the starts of the lines above the table.
var profHeads = []string{"Total: ", "File: ", "Type: ", "Time: ", "Duration: ", "Active filters:",
	"Showing nodes accounting for ", "Dropped ", "Showing top "}

// collapsed takes apart a table of pprof whose lines a web page joined into one; nil: it is none.
func collapsed(text string) (out []string) {
	head, table, ok := strings.Cut(text, profTitleWords+" ")
	if m := oldTable.FindStringIndex(text); !ok && m != nil { // until Go 1.4 it had no title
		head, table, ok = text[:m[1]], text[m[1]:], true
	}
	if !ok || len(text) > maxCollapsed {
		return nil
	}
	fields := strings.Fields(table)
	start := -1
	for i := range fields {
		if !rowAt(fields[i:]) {
			continue
		}
		if start >= 0 {
			out = append(out, strings.Join(fields[start:i], " "))
		}
		start = i
	}
	if start != 0 && len(out) == 0 {
		return nil
	}
	last := fields[start:]
	out = append(out, strings.Join(last[:min(len(last), 7)], " ")) // prose may follow
	return append(headLines(head), append([]string{profTitleWords}, out...)...)
}

// rowAt reports whether a row of the table starts here: a sum, two shares, a sum, a share, a name.
func rowAt(f []string) bool {
	if len(f) < 6 || !strings.HasSuffix(f[1], "%") || !strings.HasSuffix(f[2], "%") || !strings.HasSuffix(f[4], "%") {
		return false
	}
	_, ok := parseRow(strings.Join(f[:6], " "))
	return ok
}

// headLines are the lines above the table, of which each starts with words that pprof prints.
func headLines(head string) (out []string) {
	for head != "" {
		last := -1
		for _, h := range profHeads {
			last = max(last, strings.LastIndex(head, h))
		}
		if last < 0 {
			break
		}
		out = append([]string{strings.TrimSpace(head[last:])}, out...)
		head = head[:last]
	}
	return out
}
