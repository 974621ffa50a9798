package goruntime

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format"
	"github.com/whystall/whystall/internal/format/paste"
)

// memstats is runtime.MemStats: /debug/vars as JSON, and the line that programs print of it.
var memstats = &attach.Kind{
	Name:  "memstats",
	Hints: []string{"{", "TotalAlloc"},
	Claim: claimMemStats,
	Read:  readMemStats,
}

// maxJSON bounds a page of expvar.
const maxJSON = 4 << 20

func claimMemStats(lines []paste.Line) int {
	if n := while(lines, memStatsLine); n > 0 {
		return n
	}
	first := strings.TrimSpace(lines[0].Text)
	if !strings.HasPrefix(first, "{") && !strings.HasPrefix(first, `"memstats": {`) {
		return 0
	}
	depth, size, known := 0, 0, false
	quoted := false
	for i, line := range lines {
		if size += len(line.Text); line.Command != "" || size > maxJSON || i > 20000 {
			return 0
		}
		known = known || strings.Contains(line.Text, `"memstats"`) || strings.Contains(line.Text, `"PauseTotalNs"`)
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
			if !known {
				return 0
			}
			return i + 1
		}
		if i > 200 && !known {
			return 0
		}
	}
	if known { // the end is cut off
		return len(lines)
	}
	return 0
}

// memStatsLine knows "Alloc = 5 MiB	TotalAlloc = 9 MiB	Sys = 12 MiB	NumGC = 3".
func memStatsLine(s string) bool {
	return strings.Contains(s, "Alloc = ") && strings.Contains(s, "TotalAlloc = ") && strings.Contains(s, "Sys = ") && strings.Contains(s, "NumGC = ")
}

// memStat is what is used of runtime.MemStats.
type memStat struct {
	HeapAlloc, NextGC, NumGC, GCCPUFraction, Sys *float64
	NumForcedGC                                  *float64
	PauseNs                                      []float64
}

func readMemStats(p *attach.Part) attach.Reading {
	if memStatsLine(p.Lines[0].Text) {
		return readMemStatsLines(p)
	}
	r := attach.Reading{Title: "memstats of a Go program (expvar)", State: attach.CannotTell}
	var text strings.Builder
	for _, line := range p.Lines {
		text.WriteString(line.Text + "\n")
	}
	page := []byte(text.String())
	if strings.HasPrefix(strings.TrimSpace(p.Lines[0].Text), `"memstats"`) {
		page = []byte("{" + strings.TrimSuffix(strings.TrimSpace(text.String()), ",") + "}")
	}
	var vars struct{ Memstats *memStat }
	if err := json.Unmarshal(page, &vars); err != nil {
		r.Means, r.Flaws = "the JSON is cut or damaged: nothing follows", []string{fmt.Sprintf("line %d: %v", p.First(), err)}
		return r
	}
	m := vars.Memstats
	if m == nil {
		m = &memStat{}
		if err := json.Unmarshal(page, m); err != nil || m.NumGC == nil {
			r.Means = "it holds no memstats: nothing follows"
			return r
		}
	}
	r.Records, _ = format.Vars(page, 0)
	m.tell(&r)
	return r
}

func (m *memStat) tell(r *attach.Reading) {
	value := func(v *float64) float64 {
		if v == nil {
			return 0
		}
		return min(max(*v, 0), 1e18)
	}
	r.Boot, r.State = true, attach.Healthy
	share := value(m.GCCPUFraction)
	r.Figures = []string{fmt.Sprintf("heap %s of a goal of %s", finding.Bytes(int64(value(m.HeapAlloc))), finding.Bytes(int64(value(m.NextGC))))}
	var pauses []float64
	for _, v := range m.PauseNs {
		if v > 0 && v < 1e15 {
			pauses = append(pauses, v)
		}
	}
	if len(pauses) > 0 {
		worst := 0.0
		for _, v := range pauses {
			worst = max(worst, v)
		}
		r.Figures = append(r.Figures, fmt.Sprintf("stop-the-world of the last %s: median %s, worst %s", count(len(pauses), "cycle", "cycles"), ms(attach.Median(pauses)/1e6), ms(worst/1e6)))
		r.Facts = append(r.Facts, attach.Fact{Name: FactGCPause, Value: worst})
	}
	r.Figures = append(r.Figures, fmt.Sprintf("%.0f cycles since the start, with %s of the CPU available (%.0f forced)", value(m.NumGC), percent(share), value(m.NumForcedGC)))
	r.Means = "since the start, GC took little of the CPU"
	r.Not = "what GC costs now: counters since the start, read once, are no rate"
	if share >= 0.10 || len(pauses) >= 5 && attach.Median(pauses) >= longStop*1e6 {
		r.State = attach.CannotTell
		r.Means = "since the start, GC took much of the CPU or stopped the world for long"
		r.Next = []attach.Next{{Command: "curl http://HOST:PORT/debug/vars, twice, a minute apart under load", Why: "two readings give a rate"}}
	}
}

// readMemStatsLines reads lines that programs print: the first and the last.
func readMemStatsLines(p *attach.Part) attach.Reading {
	first, last := p.Lines[0].Text, p.Lines[len(p.Lines)-1].Text
	r := attach.Reading{Title: fmt.Sprintf("memstats as a program prints it, %s", count(len(p.Lines), "line", "lines")), State: attach.Healthy,
		Means: "it shows how much memory the heap has", Not: "anything about latency: no time is in it"}
	r.Figures = []string{"last: " + clip(last)}
	a, b := after(first, "NumGC = "), after(last, "NumGC = ")
	if n, ok := number(b); ok {
		r.Figures = append(r.Figures, fmt.Sprintf("%.0f GC cycles since the start", n))
		if m, ok := number(a); ok && len(p.Lines) > 1 && n >= m {
			r.Figures = append(r.Figures, fmt.Sprintf("%.0f of them between the first line and the last", n-m))
		}
	}
	return r
}

// after is the word that follows a key.
func after(s, key string) string {
	_, rest, _ := strings.Cut(s, key)
	return firstWord(strings.ReplaceAll(rest, "\t", " "))
}
