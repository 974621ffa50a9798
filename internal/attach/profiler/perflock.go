package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var perfLock = &attach.Kind{Name: "perf lock", Claim: claimPerfLock, Read: readPerfLock, Hints: []string{"contended", "wait"}}

var (
	// "  40   50.25 us   8.10 us   1.26 us   spinlock   native_write_msr+0x6"
	contentionRow = pattern.New(`^(\d+)\s+(\d+(?:\.\d+)?) (ns|us|ms|s)\s+(\d+(?:\.\d+)?) (ns|us|ms|s)\s+(\d+(?:\.\d+)?) (ns|us|ms|s)\s+(?:(\S+)\s+)?(\S.*)$`)
	// "  &rq->__lock   1200   33   2.10 us   70.11 us   9.11 us   512 ns", in ns before 6.x
	lockRow = pattern.New(`^(\S+)\s+(\d+)\s+(\d+)\s+(\d+(?:\.\d+)?)(?: (ns|us|ms|s))?\s+(\d+(?:\.\d+)?)(?: (ns|us|ms|s))?\s+(\d+(?:\.\d+)?)(?: (ns|us|ms|s))?\s+(\d+(?:\.\d+)?)(?: (ns|us|ms|s))?$`)
)

func lockHead(text string) bool {
	return header(text, "Name", "acquired", "contended") || header(text, "contended", "total", "wait")
}

func claimPerfLock(lines []paste.Line) int {
	if !lockHead(strings.TrimSpace(lines[0].Text)) {
		return 0
	}
	return claimed(lines, func(_ int, text string) bool {
		return lockHead(text) || contentionRow.MatchString(text) || lockRow.MatchString(text) || strings.HasPrefix(text, "=== output for debug") || strings.HasPrefix(text, "bad: ") ||
			strings.HasPrefix(text, "bad rate") || strings.HasPrefix(text, "histogram of") || strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "acquire") || strings.HasPrefix(text, "contended:") ||
			strings.HasPrefix(text, "release") || strings.HasPrefix(text, "contention_")
	})
}

// unitSeconds is what a unit of perf lock is; without one it is ns.
func unitSeconds(unit string) float64 {
	switch unit {
	case "us":
		return 1e-6
	case "ms":
		return 1e-3
	case "s":
		return 1
	}
	return 1e-9
}

func readPerfLock(p *attach.Part) attach.Reading {
	by, times, worst := map[string]float64{}, map[string]float64{}, 0.0
	total := 0.0
	for _, text := range texts(p) {
		var name string
		var n, sum, longest float64
		if m := contentionRow.FindStringSubmatch(text); m != nil {
			name = strings.TrimSpace(m[8] + " at " + m[9])
			n, _ = number(m[1])
			sum, _ = number(m[2])
			longest, _ = number(m[4])
			sum, longest = sum*unitSeconds(m[3]), longest*unitSeconds(m[5])
		} else if m := lockRow.FindStringSubmatch(text); m != nil {
			name = m[1]
			n, _ = number(m[3])
			sum, _ = number(m[6])
			longest, _ = number(m[8])
			sum, longest = sum*unitSeconds(m[7]), longest*unitSeconds(m[9])
		} else {
			continue
		}
		if len(by) < most {
			by[name] += sum
			times[name] += n
		}
		total += sum
		worst = max(worst, longest)
	}
	r := attach.Reading{Title: fmt.Sprintf("perf lock, %s", attach.Plural(len(by), "lock")), State: attach.CannotTell}
	if len(by) == 0 {
		r.Means = "No row stands below its head: either nobody waited for a lock, or the rows were cut off."
		return r
	}
	for _, name := range attach.Largest(by)[:min(2, len(by))] {
		r.Figures = append(r.Figures, fmt.Sprintf("%s: waited %s in all, %s times", name, lasts(by[name]), count(times[name])))
	}
	r.Figures = append(r.Figures, fmt.Sprintf("all: %s, longest %s", lasts(total), lasts(worst)))
	r.Means = fmt.Sprintf("Threads waited %s for locks of the kernel; over how long, and whose requests, is not in it.", lasts(total))
	r.Not = "Locks of the program itself are not in it."
	switch {
	case worst < 0.001 && total < 0.1:
		r.State = attach.Healthy
		r.Means = fmt.Sprintf("Threads waited %s for locks of the kernel, %s at most: that is nobody's stall.", lasts(total), lasts(worst))
	case total >= 0.1:
		r.Signs = append(r.Signs, attach.Sign{Cause: "kernel-lock", Grade: attach.Candidate, Proof: r.Figures[:1]})
		r.Next = append(r.Next, record(0, "whose requests waited for it"))
	}
	return r
}
