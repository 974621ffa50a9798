package profiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var foldedStacks = &attach.Kind{Name: "folded stacks", Claim: claimFolded, Read: readFolded,
	Rows: true, Hints: []string{";"}}

// "java;start_thread;do_syscall_64_[k];schedule_[k] 1234"
var foldedLine = pattern.New(`^([^;\s][^;]*(?:;[^;]+)+);? (\d{1,18}(?:\.\d+)?)$`)

func claimFolded(lines []paste.Line) int {
	rows, depth := 0, 0
	n := claimed(lines, func(_ int, text string) bool {
		if len(text) > 1<<16 || strings.HasPrefix(text, "#") {
			return false
		}
		m := foldedLine.FindStringSubmatch(text)
		if m == nil {
			return text == "..." && rows > 0
		}
		if strings.Contains(m[1], "=") && strings.Contains(m[1], "; ") { // a cookie, or code
			return false
		}
		if strings.Count(m[1], "; ") == strings.Count(m[1], ";") { // a list in a sentence
			return false
		}
		rows++
		depth = max(depth, strings.Count(m[1], ";"))
		return true
	})
	if rows == 0 || depth < 2 || rows < 2 && depth < 4 {
		return 0
	}
	return n
}

// foldedBlocks reads folded stacks, whose outermost function stands first.
func foldedBlocks(p *attach.Part) (out []stackBlock, marked bool) {
	out = make([]stackBlock, 0, min(len(p.Lines), most))
	for _, text := range texts(p) {
		m := foldedLine.FindStringSubmatch(text)
		if m == nil || len(out) >= most {
			continue
		}
		parts := strings.Split(m[1], ";")
		b := stackBlock{names: make([]string, 0, min(len(parts), 256))}
		b.value, _ = number(m[2])
		b.owner.comm = parts[0]
		for i := len(parts) - 1; i > 0 && len(b.names) < 256; i-- {
			name := parts[i]
			if rest, ok := strings.CutSuffix(name, "_[k]"); ok {
				name, marked = rest, true
				b.kernel++
			}
			for _, suffix := range []string{"_[j]", "_[i]", "_[w]", "_[0]", "_[1]"} {
				name = strings.TrimSuffix(name, suffix)
			}
			if name != "-" && name != "--" {
				b.names = append(b.names, name)
			}
		}
		out = append(out, b)
	}
	return out, marked
}

// foldedPair is a stack with two counts, of one profile each, as difffolded prints it.
var foldedPair = pattern.New(`^[^;\s][^;]*(?:;[^;]+)+ (\d{1,18}) (\d{1,18})$`)

// differential reads stacks with two counts. It reports whether all are of that form.
func differential(p *attach.Part) (r attach.Reading, ok bool) {
	first, second, n := 0.0, 0.0, 0
	for _, text := range texts(p) {
		m := foldedPair.FindStringSubmatch(text)
		if m == nil && foldedLine.MatchString(text) {
			return r, false
		}
		if m == nil {
			continue
		}
		a, _ := number(m[1])
		b, _ := number(m[2])
		first, second, n = first+a, second+b, n+1
	}
	return attach.Reading{Title: fmt.Sprintf("folded stacks with two counts each, %s",
		attach.Plural(n, "stack")), State: attach.CannotTell,
		Figures: []string{fmt.Sprintf("the first counts add up to %s, the second ones to %s, in the lines shown", count(first), count(second))},
		Means:   "It compares two profiles: which stacks grew is in it, and how long anything took is not.",
		Not:     "Counts of recordings of different length or load differ by that alone."}, n >= 2
}

func readFolded(p *attach.Part) attach.Reading {
	if r, ok := differential(p); ok {
		return r
	}
	blocks, _ := foldedBlocks(p)
	total, off, inKernel, switched := 0.0, 0.0, 0.0, 0.0
	for _, b := range blocks {
		total += b.value
		if slices.ContainsFunc(b.names, func(n string) bool { return schedulerPlumbing[n] }) {
			switched += b.value
		}
		switch {
		case offCPUStack(b.names):
			off += b.value
		case b.kernel > 0 || slices.ContainsFunc(b.names, func(n string) bool { return entries[n] }):
			inKernel += b.value
		}
	}
	lower := strings.ToLower(p.Command)
	offCPU := strings.Contains(lower, "offcpu") || strings.Contains(lower, "wakeuptime")
	onCPU := strings.Contains(lower, "profile") || strings.Contains(lower, "cpu-clock") ||
		strings.Contains(lower, "perf script") || strings.Contains(lower, "-e cpu")
	switch {
	case (total > 0 && off >= 0.8*total || offCPU) && !strings.Contains(lower, "stackcount"):
		r := offCPUReading(blocks, false, offCPU)
		r.Title = "folded stacks, " + r.Title
		if !offCPU {
			unitless(&r)
		}
		return r
	case onCPU:
		return foldedTitle(onCPUReading(blocks, ""), "folded stacks, CPU samples", len(blocks), total)
	case inKernel >= 0.03*total && switched < 0.3*total && !oneProbe(blocks):
		r := foldedTitle(onCPUReading(blocks, ""), "folded stacks, CPU samples by their functions", len(blocks), total)
		r.Not = "That they are CPU samples is taken from the functions; counts of an event look the same. A CPU profile has no waiting in it."
		demote(&r)
		return r
	}
	r := foldedTitle(onCPUReading(blocks, ""), "folded stacks", len(blocks), total)
	r.Means = "Whether these are samples on CPU or time off CPU cannot be told from the text: the command that made them says it."
	r.Not = "If they are time off CPU, most of it is waiting for work; if they are CPU samples, no waiting is in them."
	r.State, r.Signs, r.Facts = attach.CannotTell, nil, nil
	r.Next = []attach.Next{ask("whystall diagnose --pid PID", 0, "both at once, and which of it requests lost")}
	return r
}

// foldedTitle says what the numbers add up to: they may be samples, periods of an event or time,
// and the file does not say which.
func foldedTitle(r attach.Reading, title string, n int, total float64) attach.Reading {
	r.Title = fmt.Sprintf("%s, %s whose numbers add up to %s", title, attach.Plural(n, "stack"), count(total))
	return r
}
