package profiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

func claimPerfTrace(lines []paste.Line) int {
	if !perfCall.MatchString(strings.TrimSpace(lines[0].Text)) {
		return 0
	}
	return claimed(lines, func(_ int, text string) bool {
		return perfCall.MatchString(text) || perfTraceEvent.MatchString(text)
	})
}

// perfTraceEvent is an event between the calls: "0.048 sched:sched_switch(prev_comm: ...", or
// "9.120 ( ): shopd/12 minfault [main+0x1] => /srv/shopd@0x0 (d.)".
var perfTraceEvent = pattern.New(`^\d+[.,]\d{3}\s+(?:\(\s*\):\s*)?(?:\S+/\d+\s+)?(?:[a-z_]+:[a-z_]\w*[:(]|(?:maj|min)fault \[)`)

// perfTraceCall reads a line of perf trace.
func perfTraceCall(text string) (c tracedCall, ok bool) {
	m := perfCall.FindStringSubmatch(text)
	if m == nil {
		return c, false
	}
	c = tracedCall{name: m[5], at: -1, seconds: -1}
	if at, ok := number(m[1]); ok {
		c.at = at / 1000
	}
	if ms, ok := number(strings.TrimSpace(m[2])); ok {
		c.seconds = ms / 1000
	}
	c.tid, _ = whole(m[4])
	if e := callErr.FindStringSubmatch(text); e != nil {
		c.errno = e[1]
	}
	return c, true
}

func readPerfTrace(p *attach.Part) attach.Reading {
	t := newCallTrace()
	first, last := -1.0, -1.0
	// A call during which another thread's line came has two: one that is open, and its end.
	open := map[string]tracedCall{}
	for _, text := range texts(p) {
		if c, ok := perfTraceCall(text); ok {
			key := fmt.Sprint(c.tid, c.name)
			if c.seconds < 0 && strings.HasSuffix(strings.TrimSpace(text), "...") && len(open) < most {
				open[key] = c
			} else {
				delete(open, key)
				t.add(&c)
			}
			if c.at >= 0 {
				if first < 0 {
					first = c.at
				}
				last = c.at + max(c.seconds, 0)
			}
		}
	}
	for _, key := range slices.Sorted(mapNames(open)) { // their end is not in it
		c := open[key]
		t.add(&c)
	}
	t.span = max(last-first, 0)
	return t.reading(t.title("perf trace", "system call"),
		"perf trace costs little, but it shows calls and not what they wait for")
}

var perfTraceSum = &attach.Kind{Name: "perf trace -s", Claim: claimTraceSum, Read: readTraceSum,
	Hints: []string{"Summary of events", " events, ", "syscall ", "%"}}

var (
	// " redis-server (6176), 46130 events, 100.0%"
	sumThread = pattern.New(`^(\S.*?) \((\d+)\), (\d+) events, (\d+[.,]\d+)%(?:, (\d+[.,]\d+) msec)?$`)
	// " total, 6194 events": of all threads
	sumTotal = pattern.New(`^total, (\d+) events$`)
	// "   write   11189   0   202.988  0.014  0.018  0.413  0.40%", before perf 5.6 without errors
	sumRow = pattern.New(`^([A-Za-z_]\w*)\s+(\d+)\s+(?:(\d+)\s+)?(\d+[.,]\d{3})\s+(\d+[.,]\d{3})\s+(\d+[.,]\d{3})\s+(\d+[.,]\d{3})\s+(\d+[.,]\d+%)$`)
)

func claimTraceSum(lines []paste.Line) int {
	sure := false
	if first := lines[0].Text; strings.Contains(first, "%") && !strings.HasSuffix(first, "%") &&
		!strings.Contains(first, " events, ") {
		return 0
	}
	n := claimed(lines, func(_ int, text string) bool {
		switch {
		case sumRow.MatchString(text), sumThread.MatchString(text), sumTotal.MatchString(text):
			sure = true
		case strings.HasPrefix(text, "Summary of events"), header(text, "syscall", "calls"),
			strings.HasPrefix(text, "(msec)"), strings.Trim(text, "- ") == "":
		default:
			return false
		}
		return true
	})
	return attach.ClaimIf(sure, n)
}

func readTraceSum(p *attach.Part) attach.Reading {
	t := newCallTrace()
	who, threads, tid, all := "", 0, 0, false
	events := 0
	for _, text := range texts(p) {
		if m := sumThread.FindStringSubmatch(text); m != nil {
			threads++
			who = m[1]
			tid, _ = whole(m[2])
			n, _ := whole(m[3])
			events += n
			continue
		}
		if m := sumTotal.FindStringSubmatch(text); m != nil {
			all = true
			n, _ := whole(m[1])
			events += n
		}
		m := sumRow.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		s := t.byName[m[1]]
		if s == nil {
			s = &callSum{name: m[1], errs: map[string]int{}}
			t.byName[m[1]] = s
		}
		n, _ := whole(m[2])
		ms, _ := number(m[4])
		longest, _ := number(m[7])
		errs, _ := whole(m[3])
		s.n += n
		s.seconds += ms / 1000
		s.longest = max(s.longest, longest/1000)
		s.errs["errors"] += errs
		t.n += n
		if k := callWaits[m[1]]; k != waitIdle && k != waitLock && k != waitChild && longest/1000 > t.longest.seconds {
			t.longest = tracedCall{name: m[1], seconds: longest / 1000}
		}
	}
	cut := float64(events) > 2.2*float64(t.n) // a call has two events: its start and its end
	r := attach.Reading{State: attach.CannotTell,
		Title: fmt.Sprintf("perf trace -s, %s", attach.Plural(t.n, "system call"))}
	switch {
	case cut:
		r.Title += " in the rows that are here"
		r.Flaws = append(r.Flaws,
			fmt.Sprintf("its head says %d events, two of which are a call: rows may have been cut out, and sums and shares are of those that are here", events))
	case all:
		r.Title += " of all threads that it watched"
	case threads > 0:
		r.Title += " of " + attach.Plural(threads, "thread")
	}
	if threads == 1 {
		r.Title += fmt.Sprintf(", %s", who)
		r.Who = attach.Who{PID: tid, Name: who}
	}
	idle, total := 0.0, 0.0
	for _, s := range t.sums() {
		if k := callWaits[s.name]; k == waitIdle || k == waitLock || k == waitChild {
			idle += s.seconds
		}
		total += s.seconds
	}
	if total > 0 {
		r.Title += fmt.Sprintf(", %s in calls", lasts(total))
	}
	shown := min(3, len(t.byName))
	if len(t.byName) > 3 {
		shown = 2 // how often which calls come together says as much as the third
	}
	for _, s := range t.sums()[:shown] {
		line := fmt.Sprintf("%s: %s took %s, %s each", s.name, attach.Plural(s.n, "call"),
			lasts(s.seconds), lasts(s.seconds/float64(max(s.n, 1))))
		if longest := s.longest; longest > 0 && s.n > 1 {
			line += fmt.Sprintf(", longest %s", lasts(longest))
		}
		if total > 0 {
			line += fmt.Sprintf(" (%s of the time in calls)", pct(s.seconds/total))
		}
		if e := s.errs["errors"]; e > 0 {
			line += fmt.Sprintf(", %d (%s) %s", e, pct(float64(e)/float64(max(s.n, 1))), failedHow(s.name))
		}
		r.Figures = append(r.Figures, line)
	}
	if len(t.byName) > shown {
		r.Figures = append(r.Figures, "calls: "+t.oftenest(6))
	}
	sumMeaning(&r, t, idle, total, cut)
	return r
}

// oftenest lists the calls that came most often.
func (t *callTrace) oftenest(n int) string {
	counts := map[string]int{}
	for name, s := range t.byName {
		counts[name] = s.n
	}
	var out []string
	for _, name := range attach.Largest(counts)[:min(n, len(counts))] {
		out = append(out, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(out, ", ")
}

func sumMeaning(r *attach.Reading, t *callTrace, idle, total float64, cut bool) {
	r.Not = "These are times from entry to exit, of CPU and of waiting; in epoll_wait, poll, futex and sleeps a thread mostly idles."
	if total <= 0 {
		r.Means = "No call has a time."
		return
	}
	locks := 0.0
	for _, s := range t.byName {
		if callWaits[s.name] == waitLock {
			locks += s.seconds
		}
	}
	rest := "; no other call is in it."
	if cut {
		rest = "; other calls may be in rows that were cut out."
	}
	if t.longest.name != "" {
		rest = fmt.Sprintf("; the longest of the other calls is %s.", t.longest.says())
	}
	r.Means = fmt.Sprintf("%s of the time in calls is in those that wait for work or for time to pass%s", pct(idle/total), rest)
	switch {
	case locks >= 0.2*total: // a pool's thread without work waits in the same call
		r.Means = fmt.Sprintf("%s of the time in calls is in futex, for a lock or for work, and %s in others that wait for work or for time to pass%s", pct(locks/total), pct((idle-locks)/total), rest)
	case t.byName["io_uring_enter"] != nil && t.byName["io_uring_enter"].seconds >= 0.2*total:
		r.Means = fmt.Sprintf("%s of the time in calls is in io_uring_enter, which hands I/O in, waits for it or for work, or polls, and %s in others that wait for work or for time to pass%s",
			pct(t.byName["io_uring_enter"].seconds/total), pct((idle-t.byName["io_uring_enter"].seconds)/total), rest)
	}
	if s := t.byName["fsync"]; s == nil {
		s = t.byName["fdatasync"]
		if s == nil {
			return
		}
		t.byName["fsync"] = s
	}
	s := t.byName["fsync"]
	if each := s.seconds / float64(max(s.n, 1)); each >= 0.005 && s.n >= 3 {
		r.State = attach.Ill
		r.Signs = append(r.Signs,
			diskSign(fmt.Sprintf("%d calls of %s took %s each", s.n, s.name, lasts(each)), s.seconds/total))
	}
}
