package goruntime

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format"
	"github.com/whystall/whystall/internal/format/paste"
)

// memstats is runtime.MemStats: /debug/vars as JSON, and the line that programs print of it.
var memstats = &attach.Kind{
	Name:  "memstats",
	Hints: []string{"{", "lloc", "MemStats", "Heap", "heap-", "HEAP", "Sys", "name: runtime"},
	Claim: claimMemStats,
	Read:  readMemStats,
}

// maxJSON bounds a page of expvar.
const maxJSON = 4 << 20

// leastOwn is how many fields of the heap make an object in JSON a page of runtime.MemStats.
const leastOwn = 3

func claimMemStats(lines []paste.Line) int {
	if n := while(lines, memStatsLine); n > 0 {
		return n
	}
	first := strings.TrimSpace(lines[0].Text)
	if n := claimMemJSON(lines, first); n > 0 {
		return n
	}
	return claimMemFields(lines)
}

// claimMemJSON takes a page of expvar, or the start of one.
func claimMemJSON(lines []paste.Line, first string) int {
	if !strings.HasPrefix(first, "{") && !strings.HasPrefix(first, `"memstats": {`) {
		return 0
	}
	depth, size, known, own := 0, 0, false, 0
	quoted := false
	for i, line := range lines {
		if size += len(line.Text); line.Command != "" || size > maxJSON || i > 20000 {
			return 0
		}
		if i > 0 && !quoted && !valueStart(line.Text) || quoted && line.Text == "" {
			return attach.ClaimIf(known, i) // the text was cut off above
		}
		if !known && strings.Contains(line.Text, "eap") { // the cheap question first
			if lead := memLead.FindStringSubmatch(line.Text); lead != nil && memNames[memName(lead[1])] {
				own++
			}
		}
		known = known || own >= leastOwn || strings.Contains(line.Text, `"memstats"`) ||
			strings.Contains(line.Text, `"PauseTotalNs"`)
		for j := 0; j < len(line.Text); j++ {
			switch c := line.Text[j]; {
			case quoted && c == '\\':
				j++
			case c == '"':
				quoted = !quoted
			case quoted:
			case c == '{':
				depth++
			case c == '}':
				depth--
			}
		}
		if depth == 0 {
			return attach.ClaimIf(known, i+1)
		}
		if i > 200 && !known {
			return 0
		}
	}
	return attach.ClaimIf(known, len(lines)) // the end is cut off
}

// valueStart reports whether a line may go on with JSON outside of strings: no word stands there.
func valueStart(text string) bool {
	text = strings.TrimLeft(text, " \t")
	return text == "" || !unicode.IsLetter(rune(text[0])) || strings.HasPrefix(text, "true") ||
		strings.HasPrefix(text, "false") || strings.HasPrefix(text, "null")
}

// memStatsLine knows "Alloc = 5 MiB	TotalAlloc = 9 MiB	Sys = 12 MiB	NumGC = 3".
func memStatsLine(s string) bool {
	return strings.Contains(s, "Alloc = ") && strings.Contains(s, "TotalAlloc = ") &&
		strings.Contains(s, "Sys = ") && strings.Contains(s, "NumGC = ")
}

func readMemStats(p *attach.Part) attach.Reading {
	r := attach.Reading{Title: "memstats of a Go program", State: attach.CannotTell}
	if memStatsLine(p.Lines[0].Text) {
		r.Title = "memstats as a program prints it, " + count(len(p.Lines), "line", "lines")
	}
	first := strings.TrimSpace(p.Lines[0].Text)
	if strings.HasPrefix(first, "{\"") || first == "{" || strings.HasPrefix(first, `"memstats"`) {
		var text strings.Builder
		for _, line := range p.Lines {
			text.WriteString(line.Text + "\n")
		}
		if r.Title += " (JSON)"; strings.Contains(text.String(), `"memstats"`) {
			r.Title = "memstats of a Go program (expvar)"
		}
		page := []byte(text.String())
		if strings.HasPrefix(first, `"memstats"`) {
			page = []byte("{" + strings.TrimSuffix(strings.TrimSpace(text.String()), ",") + "}")
		}
		var err error
		if r.Records, err = format.Vars(page, 0); err != nil && !json.Valid(page) {
			r.Flaws = []string{fmt.Sprintf("line %d: the JSON is cut or damaged; what is there is read", p.First())}
		}
	}
	m := memFieldsOf(p.Lines)
	if len(m.v) == 0 {
		r.Means = "it holds no memstats: nothing follows"
		return r
	}
	m.figures(&r)
	m.judge(&r)
	return r
}
