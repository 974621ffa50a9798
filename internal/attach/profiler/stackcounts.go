package profiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// fewStacks is how many stacks are too few for a word on all waits of a program.
const fewStacks = 5

// countedStacks reads stacks with how often each led to an event.
func countedStacks(blocks []stackBlock) attach.Reading {
	total := 0.0
	for i := range blocks {
		total += blocks[i].value
	}
	return attach.Reading{Title: fmt.Sprintf("stacks with counts, %s", attach.Plural(len(blocks), "stack")),
		State: attach.CannotTell, Figures: stackTops(blocks, total),
		Means: "It counts how often each way led to a function. No time is in it.",
		Not:   "A count is no latency and no cause of slowness."}
}

// stackTops lists the largest stacks.
func stackTops(blocks []stackBlock, total float64) []string {
	sorted := slices.Clone(blocks)
	slices.SortStableFunc(sorted, func(a, b stackBlock) int { return int(b.value - a.value) })
	var out []string
	for _, b := range sorted[:min(3, len(sorted))] {
		line := fmt.Sprintf("%s (%s) %s", count(b.value), pct(b.value/max(total, 1)),
			strings.Join(b.names[:min(4, len(b.names))], " < "))
		if b.owner.comm != "" {
			line += " of " + b.owner.comm
		}
		out = append(out, line)
	}
	return out
}

// oneProbe reports whether stacks are of one probe and no samples of CPUs: nearly all end in the
// same function of the kernel, which is none where a CPU idles or spins for a lock.
func oneProbe(blocks []stackBlock) bool {
	leaves, total := map[string]float64{}, 0.0
	for i := range blocks {
		b := &blocks[i]
		total += b.value
		if len(b.names) > 0 && (b.kernel > 0 || entries[b.names[len(b.names)-1]]) {
			leaves[b.names[0]] += b.value
		}
	}
	if len(blocks) < 2 || len(leaves) == 0 {
		return false
	}
	first := attach.Largest(leaves)[0]
	return leaves[first] >= 0.95*total && !idlers[first] && !lockFunc(first) && !queues(first)
}

// probed reports whether a bpftrace program counts at probes, and takes no samples of CPUs.
func probed(p *attach.Part) bool {
	text := p.Command + " " + p.Script
	return !strings.Contains(text, "profile:") && slices.ContainsFunc([]string{"kprobe:", "kretprobe:", "tracepoint:",
		"uprobe:", "uretprobe:", "usdt:", "fentry:", "kfunc:", "rawtracepoint:", "software:", "watchpoint:"},
		func(probe string) bool { return strings.Contains(text, probe) })
}

// endCut takes back what follows of stacks whose end was cut off: the tools list the largest last.
func endCut(r *attach.Reading) {
	r.Flaws = append(r.Flaws, "the last stack has no number: more are cut off, and the largest stand last")
	demote(r)
}

// demote makes candidates of what was found, and takes back that all is well.
func demote(r *attach.Reading) {
	for i := range r.Signs {
		if r.Signs[i].Grade == attach.Found {
			r.Signs[i].Grade, r.Signs[i].Sure = attach.Candidate, ""
		}
	}
	r.State = attach.CannotTell
}

// unitless takes back what follows only if the numbers are times.
func unitless(r *attach.Reading) {
	r.Not += " The unit of the numbers is not in the text: counts of switches look the same as time."
	demote(r)
}
