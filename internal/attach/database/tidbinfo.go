package database

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// tidbInfo reads what stands in a plan's column of execution info, where it was pasted alone.
var tidbInfo = &attach.Kind{
	Name:   "TiDB execution info",
	Hints:  []string{"cop_task:", "tikv_task:"},
	Yields: []string{"TiDB plan", "TiDB slow log"},
	Claim: func(lines []paste.Line) int {
		n := 0
		for i, l := range lines {
			blank := strings.TrimSpace(l.Text) == ""
			if i > 0 && l.Command != "" || !blank && !isExecInfo(l.Text) || blank && i == 0 {
				break
			}
			if !blank {
				n = i + 1
			}
		}
		return n
	},
	Read: readTiDBInfo,
}

// isExecInfo asks for a group of TiDB's own in braces, and for nothing in front of the first one.
func isExecInfo(text string) bool {
	text = strings.Trim(text, " \t`|")
	if isPlanRow(text) || len(text) > 1<<14 {
		return false
	}
	for _, first := range []string{"time:", "cop_task:", "tikv_task:", "scan_detail:"} {
		if strings.HasPrefix(text, first) {
			return group(text, "cop_task:") != "" || group(text, "tikv_task:") != "" ||
				group(text, "scan_detail:") != ""
		}
	}
	return false
}

func readTiDBInfo(p *attach.Part) attach.Reading {
	var text strings.Builder
	for _, l := range p.Lines {
		text.WriteString(strings.Trim(l.Text, " \t`|") + " ")
	}
	o := &operator{name: "this operator", text: text.String()}
	o.parse(false)
	total := max(o.time, o.client, 0)
	r := &result{}
	r.Title = "TiDB, execution info of one operator, " + dur(total)
	r.Not = "One operator of a plan: the others are not in it."
	r.next("EXPLAIN ANALYZE the statement", "has all operators, and the client's and the server's times of each task")
	if lostBetween(r, []*operator{o}, total) {
		return r.done(attach.CannotTell)
	}
	if o.client > 0 && o.server >= 0 {
		r.figure(fmt.Sprintf("the slowest task took %s by TiDB's clock and %s by TiKV's", dur(o.client), dur(o.server)))
	}
	if o.used > 0 {
		r.figure(count(o.used) + " keys processed")
	}
	switch {
	case o.client > 0 && o.server >= o.client/2:
		r.Means = "TiKV's clock has most of the slowest task's time: less than half of it is between the two clocks."
	case o.client > 0 && o.server >= 0:
		r.Means = "Much of the slowest task's time is between the two clocks, and it is short."
	default:
		r.Means = "It has one clock's times only, so nothing can be said of the way between TiDB and TiKV."
	}
	return r.done(attach.CannotTell)
}
