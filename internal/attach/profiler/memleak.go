package profiler

import (
	"fmt"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var (
	// "	160 bytes in 10 allocations from stack", with lines of addresses above it by -a
	leakStack = pattern.New(`^(\d+) bytes in (\d+) allocations from stack`)
	leakTop   = pattern.New(`^\[\d\d:\d\d:\d\d\] Top \d+ stacks with outstanding allocations:`)
)

// leaks is what one report of memleak lists.
type leaks struct {
	bytes, count float64
	most         float64
	text, at     string // of the largest stack; at is its innermost frame
}

// readMemleak reads memory that was not given back, report by report. It is no latency.
func readMemleak(p *attach.Part) attach.Reading {
	r := attach.Reading{State: attach.CannotTell, Title: "memleak"}
	var all []leaks
	top := false // the next line is the largest stack's innermost frame
	for _, text := range texts(p) {
		m := leakStack.FindStringSubmatch(text)
		if leakTop.MatchString(text) || m != nil && len(all) == 0 {
			all = append(all, leaks{})
		}
		if len(all) == 0 {
			continue
		}
		now := &all[len(all)-1]
		if m == nil {
			if top && text != "" {
				now.at = text
			}
			top = false
			continue
		}
		b, _ := number(m[1])
		n, _ := number(m[2])
		now.bytes, now.count = now.bytes+b, now.count+n
		if top = b > now.most; top {
			now.most, now.text, now.at = b, m[0], ""
		}
	}
	for len(all) > 1 && all[len(all)-1].text == "" {
		all = all[:len(all)-1] // cut off
	}
	if len(all) == 0 {
		all = []leaks{{}}
	}
	last := all[len(all)-1]
	r.Title = fmt.Sprintf("memleak, %s", attach.Plural(len(all), "report"))
	if last.text != "" {
		line := "the largest: " + last.text
		if last.at != "" {
			line += " " + last.at
		}
		r.Figures = append(r.Figures, line)
	}
	if first := all[0]; len(all) > 1 && first.bytes > 0 {
		r.Figures = append(r.Figures,
			fmt.Sprintf("outstanding in all: %s bytes at first, %s in the last report",
				count(first.bytes), count(last.bytes)))
	}
	r.Means = "It lists memory that was allocated and not given back meanwhile: that is no latency."
	r.Not = "That it leaks: what is kept on purpose, or is freed later, is listed likewise."
	r.Next = append(r.Next, attach.Next{Command: "cat /proc/pressure/memory; grep -E 'allocstall|compact_stall' /proc/vmstat", Why: "whether anybody waits for memory"})
	return r
}
