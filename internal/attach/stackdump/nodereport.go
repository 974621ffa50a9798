package stackdump

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// nodeReport is a diagnostic report of Node.js.
var nodeReport = &attach.Kind{
	Name:  "Node.js report",
	Hints: []string{"{", `"header"`, `"javascriptStack"`, `"libuv"`},
	Claim: func(lines []paste.Line) int {
		if foldedReport.MatchString(lines[0].Text) {
			return 1
		}
		return attach.ClaimJSON(lines, func(keys map[string]bool) bool {
			return (keys["javascriptStack"] || keys["javascriptHeap"]) &&
				(keys["nativeStack"] || keys["libuv"] || keys["resourceUsage"])
		})
	},
	Read: readNode,
}

var (
	nodeValue = pattern.New(`^"(\w+)"\s*:\s*"?([^"]*?)"?,?$`)
	nodeFrame = pattern.New(`^"(at .*)",?$`)
	// foldedReport is the start of a report in one line (--report-compact).
	foldedReport = pattern.New(`^\s*\{\s*"header"\s*:\s*\{\s*"(?:reportVersion|event)"\s*:`)
)

func readNode(p *attach.Part) attach.Reading {
	r := attach.Reading{Title: "Node.js diagnostic report", State: attach.CannotTell, Glance: true}
	v := map[string]string{}
	frame, requests := "", 0
	for _, t := range unfolded(p.Lines) {
		if m := nodeFrame.FindStringSubmatch(t); m != nil && frame == "" {
			frame = m[1]
		}
		m := nodeValue.FindStringSubmatch(t)
		if m == nil {
			continue
		}
		if v[m[1]] == "" {
			v[m[1]] = m[2]
		}
		if m[1] == "is_active" && m[2] == "true" {
			requests++
		}
	}
	r.Who.PID, _ = strconv.Atoi(v["processId"])
	if why := v["trigger"]; why != "" {
		r.Title += ", written for " + why
	}
	if cpu, ok := decimal(v["cpuConsumptionPercent"]); ok && v["cpuConsumptionPercent"] != "" {
		r.Figures = append(r.Figures, fmt.Sprintf("%.0f %% of a CPU since its start", cpu))
	}
	used, ok1 := decimal(v["usedMemory"])
	limit, ok2 := decimal(v["memoryLimit"])
	if !ok1 || v["usedMemory"] == "" {
		used, _ = decimal(v["usedHeapSize"])
	}
	if ok2 && limit > 0 && used > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%.0f %% of the heap's limit in use", 100*used/limit))
	}
	if frame != "" {
		r.Figures = append(r.Figures, "its one thread was at: "+frame)
	} else {
		r.Figures = append(r.Figures, fmt.Sprintf("%d handles of its loop are active", requests))
	}
	r.Means = "One glance at the process: how long its event loop was held up is not in it."
	r.Not = "The stack is of the code that asked for the report, where code did."
	r.Next = []attach.Next{{Command: "whystall diagnose --pid PID",
		Why: "what the thread of the loop did while it was slow"}}
	return r
}

// unfolded are the lines of a JSON text, each with one value, also where it was written into one
// line or cut off.
func unfolded(lines []paste.Line) []string {
	var out []string
	for _, l := range lines {
		text, from, quoted := strings.TrimSpace(l.Text), 0, false
		for i := 0; i < len(text); i++ {
			switch c := text[i]; {
			case c == '\\' && quoted:
				i++
			case c == '"':
				quoted = !quoted
			case !quoted && strings.IndexByte("{[,}]", c) >= 0:
				out = append(out, strings.TrimSpace(text[from:i]))
				from = i + 1
			}
		}
		out = append(out, strings.TrimSpace(text[from:]))
	}
	return out
}
