package profiler

import (
	"fmt"
	"math"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var asyncProfiler = &attach.Kind{Name: "async-profiler", Claim: claimAsync, Read: readAsync,
	Hints: []string{"--- ", "Total samples", "Total: ", "percent", "samples  top", " self: "}}

var (
	// "--- 3100000000 ns (12.34%), 310 samples"
	asyncTrace = pattern.New(`^--- (\d+) (ns|bytes|counts?|total|units?) \((\d+(?:\.\d+)?)%\), (\d+) samples?$`)
	// "Total: 3100000000 (12.34%)  samples: 310" of version 1
	asyncOld   = pattern.New(`^Total: (\d+) \((\d+(?:\.\d+)?)%\)\s+samples: (\d+)$`)
	asyncFrame = pattern.New(`^\[ ?(\d+)\] (\S.*)$`)
	// "  820000000   12.34%   82  org.shop.Cart.total"
	asyncRow = pattern.New(`^(\d+)\s+(\d+\.\d+)%\s+(\d+)\s+(\S.*)$`)
	// "[2] 76.90% 6,591 self: 0.00% 0 org/shop/Cart.total", of a tree
	asyncTree = pattern.New(`^\[(\d+)\] (\d+\.\d+)% ([\d,.]+) self: (\d+\.\d+)% ([\d,.]+) (\S.*)$`)
)

func claimAsync(lines []paste.Line) int {
	sure := false
	n := claimed(lines, func(_ int, text string) bool {
		switch {
		case asyncTree.MatchString(text), asyncTrace.MatchString(text), asyncOld.MatchString(text),
			strings.HasPrefix(text, "--- Execution profile ---"),
			header(text, "ns", "percent", "samples"), header(text, "bytes", "percent", "samples"):
			sure = true
		case sure && (asyncFrame.MatchString(text) || asyncRow.MatchString(text)),
			strings.HasPrefix(text, "Total samples"), sure &&
				strings.HasPrefix(text, "Frame buffer usage"), sure && strings.Trim(text, "- ") == "",
			sure && asyncNote.MatchString(text):
		default:
			return false
		}
		return true
	})
	return attach.ClaimIf(sure, n)
}

// "Total samples       : 9330021", "skipped             : 4180503 (44.81%)"
var asyncTotal = pattern.New(`^(?:Total samples|(skipped))\s*:\s*(\d+(?: \([\d.]+%\))?)`)

// asyncNote are the counts of samples without a stack: "skipped", "unknown_java : 12 (0.3%)".
var asyncNote = pattern.New(`^[a-zA-Z_][a-zA-Z_ ()-]*:\s*\d+(\s*\(.*\))?$`)

func readAsync(p *attach.Part) attach.Reading {
	if r, ok := readAsyncTree(p); ok {
		return r
	}
	flat, traces := profile{}, profile{stacks: true}
	unit, total, ofClass := "ns", 0.0, false
	taken, skipped := 0, ""
	var now *sample
	for _, text := range texts(p) {
		if n := asyncTotal.FindStringSubmatch(text); n != nil && n[1] != "" {
			skipped = n[2] + " skipped"
		} else if n != nil {
			taken, _ = whole(n[2])
		}
		m := asyncTrace.FindStringSubmatch(text)
		if o := asyncOld.FindStringSubmatch(text); o != nil {
			m = []string{o[0], o[1], "units", o[2], o[3]}
		}
		if m != nil && len(traces.samples) < most {
			unit = m[2]
			share, _ := number(m[3])
			n, _ := whole(m[4])
			if value, ok := number(m[1]); ok && share > 0 {
				total = max(total, value/share*100)
			}
			traces.samples = append(traces.samples, sample{weight: share / 100})
			traces.number += n
			now = &traces.samples[len(traces.samples)-1]
			continue
		}
		if m := asyncFrame.FindStringSubmatch(text); m != nil && now != nil && len(now.program) < 256 {
			name := strings.TrimSuffix(m[2], "_[k]")
			ofClass = ofClass || len(now.program)+len(now.kernel) == 0 && javaClass(name)
			now.program = append(now.program, frames([]string{name}, "")...)
			if name != m[2] {
				now.kernel, now.program = append(now.kernel, now.program[len(now.program)-1]),
					now.program[:len(now.program)-1]
			}
			continue
		}
		if header(text, "bytes", "percent") {
			unit = "bytes"
		}
		if m := asyncRow.FindStringSubmatch(text); m != nil && len(flat.samples) < most {
			share, _ := number(m[2])
			n, _ := whole(m[3])
			flat.samples = append(flat.samples, sample{weight: share / 100, program: frames([]string{m[4]}, "")})
			flat.number += n
		}
	}
	best := &flat
	if len(flat.samples) == 0 {
		best = &traces
	}
	best.whole = 1
	for i := range best.samples {
		best.samples[i].bare = len(best.samples[i].program)+len(best.samples[i].kernel) == 0
	}
	r := best.reading()
	demote(&r) // with wall time threads without work are in most samples
	samples := attach.Plural(best.number, "sample")
	if taken > best.number {
		samples = fmt.Sprintf("%s, %d of them in what is here", attach.Plural(taken, "sample"), best.number)
	}
	r.Title = "async-profiler, " + samples
	if skipped != "" {
		r.Figures = append(r.Figures, skipped)
	}
	if len(best.samples) == 0 {
		r.State, r.Signs, r.Next = attach.CannotTell, nil, nil
		r.Means = "It is the head of a profile: which functions the samples are in is not in it."
		return r
	}
	if ofClass && unit != "bytes" {
		// A class on top is what is locked or made, which no sample of a CPU has.
		r.State, r.Signs, r.Next = attach.CannotTell, nil, nil
		r.Title = "async-profiler of locks or allocations, " + samples
		r.Figures = append([]string{fmt.Sprintf("%s of nanoseconds in all, if it is of locks; bytes, if of allocations", count(math.Round(total)))}, r.Figures...)
		r.Means = "If it is of locks, threads waited " + lasts(total/1e9) +
			" for them in all; over how long it ran is not in it."
		r.Not = "A share is of the waiting for locks alone, and none of the time."
		return r
	}
	if unit == "bytes" {
		r.State, r.Signs = attach.CannotTell, nil
		r.Means = "It is memory that was allocated, and no time."
		r.Not = "A share is of the bytes that were allocated: what that costs is not in it."
		return r
	}
	r.Not = "Whether it sampled CPU time, wall time or locks is not in it: with wall time most samples are threads without work."
	if len(r.Signs) == 0 {
		r.State = attach.CannotTell
	}
	return r
}

// javaClass reports whether a frame is a class and no method: its last part is in capitals, as in
// java.util.HashMap$Node.
func javaClass(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	return strings.Contains(name, ".") && last != "" && last[0] >= 'A' && last[0] <= 'Z' &&
		!strings.Contains(name, "::") && !strings.ContainsAny(name, " (")
}

// readAsyncTree reads a tree, if that is what p is: each function with all that it calls, and by
// itself.
func readAsyncTree(p *attach.Part) (r attach.Reading, ok bool) {
	self, deepest, name := map[string]float64{}, -1, ""
	share := ""
	for _, text := range texts(p) {
		m := asyncTree.FindStringSubmatch(text)
		if m == nil || len(self) >= most {
			continue
		}
		ok = true
		own, _ := number(m[4])
		self[m[6]] += own / 100
		all, _ := number(m[2])
		if depth, _ := whole(m[1]); all >= 50 && depth > deepest {
			deepest, name, share = depth, m[6], m[2]
		}
	}
	r = attach.Reading{Title: fmt.Sprintf("async-profiler, a tree of %s", attach.Plural(len(self), "function")),
		State: attach.CannotTell}
	var out []string
	for _, fn := range attach.Largest(self)[:min(3, len(self))] {
		if self[fn] > 0 {
			out = append(out, pct(self[fn])+" "+fn)
		}
	}
	if len(out) > 0 {
		r.Figures = append(r.Figures, "by themselves: "+strings.Join(out, ", "))
	}
	if name != "" {
		r.Figures = append(r.Figures, fmt.Sprintf("%s %% in or below %s", share, name))
	}
	r.Means = "It says where samples were found, each function with all that it calls."
	r.Not = "Whether it sampled CPU time, wall time or locks is not in it: with wall time most samples are threads without work."
	return r, ok
}
