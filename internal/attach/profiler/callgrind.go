package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// callgrind is what callgrind_annotate and cg_annotate print, and the head of callgrind's file.
var callgrind = &attach.Kind{Name: "callgrind", Claim: claimCallgrind, Read: readCallgrind, Reports: true,
	Hints: []string{"callgrind", "cachegrind", "PROGRAM TOTALS", "file:function", "events: Ir", "event: Ir",
		"I1 cache:", "----------"}}

var (
	// the lines that only it has
	grindSure = pattern.New(`^(?:Profile data file 'callgrind|Data file:\s+cachegrind|creator: callgrind|events?: Ir\b|fn=\(\d+\)|[\d,]+ .*PROGRAM TOTALS$|(?:[A-Z][A-Za-z0-9]*\s+)+file:function$|Events (?:recorded|shown):|-- Auto-annotated source:)`)
	grindOwn  = pattern.New(`^(?:-{20,}$|(?:I1|D1|LL|L2) cache:|Timerange:|Trigger:|Profiled target:|Command:|Event sort order:|Thresholds?:|Include dirs:|User annotated:|Auto-annotation:|Invocation:|(?:Ir|Dr|Dw|Bc|Bi|I1mr|ILmr|D1mr|DLmr|D1mw|DLmw)(?:\s+[A-Z][A-Za-z0-9]*)*$|-- line \d+ -+$|(?:version|cmd|part|pid|desc|positions|summary|totals|ob|fl|fi|fe|fn|cfn|cob|cfi|calls)[=:])`)
	// "14,400,103 (35.10%)  shop.c:price [/usr/bin/shop]", in old versions without shares
	grindRow = pattern.New(`^([\d,]{1,20})(?: \( ?(\d+\.\d+)%\))?\s+(?:[\d,.]+(?: \( ?\d+\.\d+%\))?\s+)*[<>*]? ?(\S*:\S.*)$`)
	// a line of source with its counts, or with dots
	grindSource = pattern.New(`^(?:[\d,]+|\.)(?: \( ?\d+\.\d+%\))?\s+\S`)
	grindTotal  = pattern.New(`^([\d,]+)(?: \(100\.0%\))?\s.*PROGRAM TOTALS$`)
)

func claimCallgrind(lines []paste.Line) int {
	first := strings.TrimSpace(lines[0].Text)
	if !grindSure.MatchString(first) && !grindOwn.MatchString(first) {
		return 0
	}
	sure, last := 0, 0
	n := claimed(lines, func(i int, text string) bool {
		switch {
		case len(text) > 1000:
			return false
		case grindSure.MatchString(text):
			sure, last = sure+1, i
		case grindOwn.MatchString(text):
		case sure > 0 && (grindRow.MatchString(text) || grindSource.MatchString(text)):
		default:
			return false
		}
		return sure > 0 || i-last < 12
	})
	return attach.ClaimIf(sure > 0, n)
}

func readCallgrind(p *attach.Part) attach.Reading {
	r := attach.Reading{Title: "callgrind", State: attach.Context}
	total, rows := 0.0, 0
	for _, text := range texts(p) {
		if strings.HasPrefix(text, "-- Auto-annotated source:") {
			break // lines of source follow
		}
		if m := grindTotal.FindStringSubmatch(text); m != nil && total == 0 {
			total, _ = number(m[1])
			continue
		}
		m := grindRow.FindStringSubmatch(text)
		if m == nil || grindOwn.MatchString(text) || grindSure.MatchString(text) || strings.HasPrefix(m[3], "0x") {
			continue
		}
		n, _ := number(m[1])
		if rows++; rows <= 3 {
			line := fmt.Sprintf("%s of %s", m[1], m[3])
			if total > 0 {
				line = pct(n/total) + " " + m[3]
			}
			r.Figures = append(r.Figures, line)
		}
	}
	if total > 0 {
		r.Title += fmt.Sprintf(", %s instructions", count(total))
	}
	r.Means = "It counts instructions of a program that runs in an emulation: which functions have most of them."
	r.Not = "No time and no waiting is in it: an instruction that misses the caches takes a hundred times as long as another."
	return r
}
