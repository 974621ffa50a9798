package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// perfKVM is the table of perf kvm stat: why virtual CPUs left their guests, and how long the host
// took until they went on.
var perfKVM = &attach.Kind{Name: "perf kvm stat", Claim: claimKVM, Read: readKVM,
	Hints: []string{"Analyze events for ", "VM-EXIT", "MMIO Access", "IO Port Access", "MSR Access", "Total Samples:", "us ( +-"}}

var (
	kvmHead = pattern.New(`^(?:Event name|VM-EXIT|MMIO Access|IO Port Access|MSR Access)\s+Samples\s+Samples%\s+Time%\s`)
	// "  EPT_VIOLATION   1204   25.30%   3.10%   1.02us   330.11us   2.20us ( +-  2.13% )"
	kvmRow = pattern.New(`^(\S.*?)\s+(\d+)\s+(\d+\.\d+)%\s+(\d+\.\d+)%\s+(?:(\d+(?:\.\d+)?)\s?us\s+(\d+(?:\.\d+)?)\s?us\s+)?(\d+(?:\.\d+)?)\s?us(?: +\( *\+- +\d+\.\d+% *\))?$`)
	kvmSum = pattern.New(`^Total Samples:\s*(\d+), Total events handled time:\s*(\d+(?:\.\d+)?)\s?us\.?$`)
)

func claimKVM(lines []paste.Line) int {
	headed, rows := false, 0
	n := claimed(lines, func(_ int, text string) bool {
		switch {
		case kvmHead.MatchString(text):
			headed = true
		case kvmSum.MatchString(text):
			headed = headed || rows > 0
		case kvmRow.MatchString(text):
			rows++
		case strings.HasPrefix(text, "Analyze events for "), clockLine.MatchString(text),
			rows > 0 && (text == "[..]" || text == "[...]" || text == "..."):
		default:
			return false
		}
		return true
	})
	return attach.ClaimIf(rows > 0 && headed, n)
}

// guestIdle are exits by which a guest says that a CPU of its has nothing to do.
var guestIdle = words("HLT hlt WFx")

func readKVM(p *attach.Part) attach.Reading {
	r := attach.Reading{State: attach.Context}
	type exit struct {
		name, n, share, time, mean, longest string
		took                                float64
	}
	all, idle := []exit{}, ""
	total, exits, counted := 0.0, 0.0, 0.0 // counted: exits of all rows, also of those that are not here
	for _, text := range texts(p) {
		if m := kvmSum.FindStringSubmatch(text); m != nil {
			total, _ = number(m[2])
			counted, _ = number(m[1])
		}
		m := kvmRow.FindStringSubmatch(text)
		if m == nil || len(all) >= most {
			continue
		}
		n, _ := number(m[2])
		mean, _ := number(m[7])
		e := exit{m[1], m[2], m[3], m[4], m[7], m[6], n * mean}
		exits += n
		if guestIdle[e.name] {
			idle = fmt.Sprintf("%s: %s times, with %s %% of the time: guests that had nothing to do", e.name, e.n, e.time)
			continue
		}
		all = append(all, e)
	}
	r.Title = fmt.Sprintf("perf kvm stat, %s exits", count(max(exits, counted)))
	if total > 0 {
		r.Title += fmt.Sprintf(", %s handled", lasts(total/1e6))
	}
	for _, e := range all[:min(2, len(all))] { // the tool sorts by what a person asked for
		line := fmt.Sprintf("%s: %s times (%s %%), %s %% of the time, %s us each", e.name, e.n, e.share, e.time, e.mean)
		if e.longest != "" {
			line += fmt.Sprintf(", longest %s us", e.longest)
		}
		r.Figures = append(r.Figures, line)
	}
	if idle != "" {
		r.Figures = append(r.Figures, idle)
	}
	r.Means = "It says why virtual CPUs left their guests, and how long it was until each went on: by the host's work, or since the guest had none."
	r.Not = "Which of these a guest's program waited for is not in it, nor how much of its time that is."
	return r
}
