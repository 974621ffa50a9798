package goruntime

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// ended reports whether the text is of a process that ended by itself.
func (p *picture) ended() bool {
	return p.crash != "" && !survived(p.crash) && !p.reported()
}

// reported reports whether the program itself printed the stack of the panic: it was caught, and a
// crash is printed by the runtime.
func (p *picture) reported() bool {
	return len(p.stacks) > 0 && p.stacks[0].panicked() > 0 &&
		p.stacks[0].has("runtime/debug.Stack", "runtime/debug.PrintStack")
}

func (p *picture) readCrash(r *attach.Reading) {
	r.State = attach.CannotTell
	r.Glance = false
	if len(p.stacks) > 0 {
		first := 0
		if p.threadless { // goroutine 0 is the thread's that found it
			first = slices.IndexFunc(p.waits, func(w wait) bool { return w.kind != waitRuntime })
		}
		if first >= 0 {
			r.Figures = append([]string{does(p.stacks[first], p.waits[first])}, r.Figures...)
		}
	}
	if asked := p.asked(); asked > 0 && p.memory == "" {
		r.Figures = append([]string{fmt.Sprintf("the goroutine that ended it asked for %s in one piece", decimal(float64(asked)))}, r.Figures...)
	}
	if p.memory != "" {
		r.Figures = append([]string{p.memory}, r.Figures...)
	}
	if strings.Contains(p.crash, "all goroutines are asleep") {
		r.Figures = append(p.senders(), r.Figures...)
		r.Means = p.deadlock()
		if len(p.queues) > 0 {
			r.Figures = append(r.Figures, fmt.Sprintf("%d at %s, %s", p.queues[0].n,
				p.queues[0].what(), p.queues[0].where()))
		}
	} else {
		r.Means = "the process ended by a crash: " + clip(p.crash)
		if p.loose && strings.HasPrefix(p.crash, "panic: ") {
			r.Means = "a panic is reported behind other words: " + clip(p.crash) +
				"; whether the process ended by it, or caught it, they do not say"
			r.Not = "that anything was slow: a panic is a bug"
		}
		if p.fault != "" {
			r.Means += fmt.Sprintf(" (%s)", p.fault)
			if fn := p.struck(); fn != "" {
				r.Figures = append([]string{fmt.Sprintf("%s in %s", p.fault, fn)}, r.Figures...)
			}
		}
		if p.nested != "" {
			r.Means += "; then, in a deferred function, " + clip(p.nested)
		}
		p.readTimeout(r)
	}
	if p.deep > 0 {
		r.Figures = append([]string{"a goroutine's stack reached its limit of " + decimal(p.deep)}, r.Figures...)
		r.Means = "the process ended since a goroutine called deeper and deeper: a recursion without an end"
	}
	if p.threadless {
		r.Means = "the process ended since the system gave it no further thread: a limit of processes and threads is reached, or memory is; which, and by whom, is not in the text"
		r.Next = []attach.Next{
			{Command: "cat /sys/fs/cgroup/CGROUP/pids.current /sys/fs/cgroup/CGROUP/pids.max; ulimit -u; sysctl kernel.threads-max", Why: "the limits, and how many the group has"},
			{Command: "ps -eLo user,pid,comm | sort | uniq -c | sort -n | tail", Why: "who has the threads"},
		}
	}
	if strings.Contains(p.crash, "thread exhaustion") {
		r.Means = "the process ended since it had more threads than Go permits: each call of the system or of C that blocks keeps one, and each goroutine that is locked to its thread"
	}
	if r.Not == "" {
		r.Not = "that it was slow: the process ended"
	}
}

// struck is the function in which a signal of a fault came; "": the stack does not say.
func (p *picture) struck() string {
	if len(p.stacks) == 0 {
		return ""
	}
	frames := p.stacks[0].frames
	at := slices.IndexFunc(frames, func(f frame) bool { return f.fn == "runtime.sigpanic" })
	if at < 0 || at+1 >= len(frames) {
		return ""
	}
	return frames[at+1].fn
}

// asked is how many bytes the goroutine wanted that ran out of memory: the first argument of the
// runtime's allocator. 0: it did not run out, or the text does not say.
func (p *picture) asked() uint64 {
	if !strings.Contains(p.crash, "out of memory") {
		return 0
	}
	if len(p.stacks) > 0 {
		for _, f := range p.stacks[0].frames {
			if f.fn == "runtime.mallocgc" && len(f.args) > 0 && !f.vague {
				return f.args[0]
			}
		}
	}
	return p.large // of the runtime's stack
}

// readTimeout reads the dump of a test that did not end in time. The goroutine that panics is the
// clock's; who has waited longest is more likely what hangs.
func (p *picture) readTimeout(r *attach.Reading) {
	if !strings.HasPrefix(p.crash, "panic: test timed out") {
		return
	}
	r.Means = "a test did not end in time, so the test's program ended itself"
	if len(p.stacks) > 0 && strings.HasPrefix(p.stacks[0].own().fn, "testing.(*M).startAlarm") && len(r.Figures) > 1 {
		r.Figures = r.Figures[1:] // it is the clock's
	}
	if n := len(p.tests); n > 0 {
		r.Figures = append([]string{"it ran, when the time was over: " + p.tests[n-1]}, r.Figures...)
	}
	r.Not = "what the test waited for: any of those that wait may be it, or what it computed"
	if own := p.testsOwn(); own >= 0 {
		r.Figures = append([]string{"the test's own goroutine: " + does(p.stacks[own], p.waits[own])}, r.Figures...)
		r.Not = "who should have ended that wait, where it is one, nor how long it would have gone on"
	}
	longest, _ := p.longest()
	if len(p.queues) > 0 {
		q := p.queues[0]
		r.Figures = append([]string{fmt.Sprintf("%s for %s %s", waits(q.n), q.what(), q.where())}, r.Figures...)
	}
	if longest != "" {
		r.Figures = append([]string{longest}, r.Figures...)
	}
}

// testsOwn is the place of the goroutine in which the test runs, where one test alone was under
// way: those that wait for a test of theirs to end do not count. -1: there are several, or none.
func (p *picture) testsOwn() int {
	found := -1
	for i, s := range p.stacks {
		n := len(s.frames)
		if n < 2 || s.frames[n-1].fn != "testing.tRunner" || strings.HasPrefix(s.own().fn, "testing.") {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// shownLongest is how many of those are named that wait longest.
const shownLongest = 3

// longest names the goroutines that have waited most minutes, but for those whose wait is their
// rest, and for the test's own clock and framework. "": there are none.
func (p *picture) longest() (text string, minutes int) {
	var all []*stack
	for i, s := range p.stacks {
		own := s.own().fn
		if p.waits[i].kind != waitRuntime && s.minutes > 0 && !idle(s) &&
			!strings.HasPrefix(own, "testing.") && !strings.HasPrefix(own, "runtime.") {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b *stack) int { return cmp.Compare(b.minutes, a.minutes) })
	var out []string
	said := map[string]bool{}
	for _, s := range all {
		key := s.own().fn + s.own().at
		if s.minutes == all[0].minutes && len(out) < shownLongest && !said[key] {
			said[key] = true
			out = append(out, does(s, classify(s)))
		}
	}
	if len(out) == 0 {
		return "", 0
	}
	return "waits longest: " + strings.Join(out, "; "), all[0].minutes
}

// deadlock says what nobody can end any more, where the runtime found that no goroutine can run.
// Who had ended is not in such a text.
func (p *picture) deadlock() string {
	const ended = ", so the runtime ended the process"
	if p.n != 1 {
		return "a deadlock: every goroutine waited, and none was left to wake another" + ended
	}
	what := "it waited, and none was left to wake it"
	switch s := p.stacks[0]; p.waits[0].kind {
	case waitGroup:
		what = "it waited for a WaitGroup, and none was left to call Done: Done was called too seldom, or not on this WaitGroup"
	case waitLock:
		what = "it waited for a lock, which it holds itself or which a goroutine that is gone has not given back"
	case waitCond:
		what = "it waited for a condition, and none was left to signal it"
	case waitChan:
		switch {
		case strings.HasPrefix(s.state, "chan receive"):
			what = "it waited to receive from a channel, and none was left to send to it or to close it"
		case strings.HasPrefix(s.state, "chan send"):
			what = "it waited to send to a channel, and none was left to receive"
		case strings.HasPrefix(s.state, "select (no cases)"):
			what = "it waited in a select without cases, and none was left to run"
		}
	}
	return "a deadlock of the only goroutine in the text: " + what + ended
}

// maxTests bounds the list of tests that ran when a test's program ended itself.
const maxTests = 7

// runningTest is a line of that list, "TestPay/card (10m0s)"; a test of a test stands below it.
var runningTest = pattern.New(`^Test\S* \([0-9hms.µ]+\)$`)
