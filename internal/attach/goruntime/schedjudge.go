package goruntime

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// firstMoment is how many s after the start of a program are not how it goes on.
const firstMoment = 0.5

// detail is what the lines of scheddetail say of one sample: Ps and goroutines by state.
func (s *snapshot) detail() (out []string) {
	if s.shown > 0 {
		out = append(out, fmt.Sprintf("of %s shown, %d have a thread that runs goroutines or looks for some, %d are in system calls and %d are idle",
			count(s.shown, "P", "Ps"), s.states[1], s.states[2], s.states[0]))
	}
	n := 0
	for _, c := range s.listed {
		n += c
	}
	if n > 0 {
		out = append(out, fmt.Sprintf("of %s that the text lists, %d are runnable, %d running, %d in system calls and %d waiting",
			count(n, "goroutine", "goroutines"), s.listed[1], s.listed[2], s.listed[3], s.listed[4])+s.waitsFor())
	}
	return out
}

// waitsFor says what the goroutines wait for that a sample lists, but for the runtime's own.
func (s *snapshot) waitsFor() string {
	var parts []string
	for _, reason := range byMost(s.reasons)[:min(3, len(s.reasons))] {
		parts = append(parts, fmt.Sprintf("%d in %s", s.reasons[reason], reason))
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ") + ", besides the runtime's own"
}

// waitingText says what most goroutines of the last sample wait for that lists any; "": few do.
func waitingText(samples []snapshot) string {
	for i := len(samples) - 1; i >= 0; i-- {
		s := samples[i]
		if reasons := byMost(s.reasons); len(reasons) > 0 {
			if s.reasons[reasons[0]] < leastAlike {
				return ""
			}
			text := fmt.Sprintf("at %.3f s goroutines wait%s", s.at, s.waitsFor())
			if before := samples[0].reasons[reasons[0]]; i > 0 && before < s.reasons[reasons[0]] && len(samples[0].reasons) > 0 {
				text += fmt.Sprintf("; %d in %s at %.3f s", before, reasons[0], samples[0].at)
			}
			return text
		}
	}
	return ""
}

// threadsText says what many threads do: those that block, and those that rest afterwards.
func threadsText(samples []snapshot, threads, ps int) string {
	top, last := samples[0], samples[len(samples)-1]
	for _, s := range samples {
		if s.blocked() > top.blocked() {
			top = s
		}
	}
	text := fmt.Sprintf("%d threads at most, for %s", threads, count(ps, "P", "Ps"))
	if top.blocked() >= manyThreads {
		text += fmt.Sprintf(": at %.3f s about %d neither rest nor have a P (system calls, C code, or locked to a goroutine that waits)", top.at, top.blocked())
	}
	if last.resting >= manyThreads && len(samples) > 1 {
		text += fmt.Sprintf("; in the last sample %d rest (idle threads are kept)", last.resting)
	}
	return text
}

// grows says that the queue only grows from sample to sample; "": it does not.
func grows(samples []snapshot) string {
	if n := len(samples); n > 0 && samples[n-1].open { // its sum is not known
		samples = samples[:n-1]
	}
	if len(samples) < 3 {
		return ""
	}
	first, last := samples[0], samples[len(samples)-1]
	for i, s := range samples[1:] {
		if s.runnable() < samples[i].runnable() || !s.locals && samples[i].locals {
			return ""
		}
	}
	if last.runnable() < first.runnable()*5/4 || last.runnable() < 2*last.ps || last.at <= first.at {
		return ""
	}
	rate := float64(last.runnable()-first.runnable()) / (last.at - first.at)
	return fmt.Sprintf("it grows from sample to sample: %d runnable at %.3f s, %d at %.3f s, %.0f more each second", first.runnable(), first.at, last.runnable(), last.at, rate)
}

// manyThreads is more than a program has that does not wait in system calls or C code.
const (
	manyThreads = 200
	queueSome   = 3 // goroutines in the queue of each P that is always busy
	threadsPerP = 20
)

// short writes a small number with a decimal, and a large one without.
func short(v float64) string {
	if v >= 10 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

// Of the samples: one up to here is of a program's very start; the next one of a process follows
// after these many periods; and two within less of one are of two processes.
const (
	veryStart  = 0.005
	periodLess = 0.9
	periodMore = 1.5
	periodHalf = 0.5
)

// periodOf is the time between two samples of a process, in s, which is never shorter; 0: it is not
// known.
func periodOf(all []snapshot) (period float64) {
	for _, s := range all {
		if s.at > veryStart && (period == 0 || s.at < period) {
			period = s.at
		}
	}
	if !slices.ContainsFunc(all, func(s snapshot) bool { return s.at <= veryStart }) {
		return 0
	}
	return period
}

// processes divides samples by process: by the prefix, by a time that falls, and where several
// write by turns by their periods. The tools of "go run" print samples of their own.
func processes(all []snapshot) (out [][]snapshot) {
	period := periodOf(all)
	turns := false
	for i := 1; i < len(all); i++ {
		d := all[i].at - all[i-1].at
		turns = turns || all[i-1].at > veryStart && d >= 0 && d < periodHalf*period
	}
	var used []int // runs, the one that was used last at the end
	for _, s := range all {
		best, near := -1, false
		for _, r := range used {
			last := out[r][len(out[r])-1]
			d := s.at - last.at
			if last.source != s.source || d < 0 || s.at == 0 || s.at <= veryStart && last.at > veryStart {
				continue
			}
			fits := d >= periodLess*period && d <= periodMore*period
			if best < 0 || fits && (!near || !turns) || !fits && !near {
				best, near = r, fits
			}
		}
		if best < 0 {
			out = append(out, nil)
			best = len(out) - 1
		}
		out[best] = append(out[best], s)
		used = append(slices.DeleteFunc(used, func(r int) bool { return r == best }), best)
		used = used[max(0, len(used)-mostOpen):]
	}
	return out
}

// longestRun is the samples of one process: of those with most samples the busiest one. It returns
// those of the others as well, and how many processes there are.
func longestRun(all []snapshot) (best, rest []snapshot, starts int) {
	runs := processes(all)
	most := 0
	for _, r := range runs {
		most = max(most, len(r))
	}
	at := -1
	for i, r := range runs {
		if 2*len(r) >= most && (at < 0 || busyPs(r) > busyPs(runs[at]) || busyPs(r) == busyPs(runs[at]) && len(r) > len(runs[at])) {
			at = i
		}
	}
	for i, r := range runs {
		if i != at {
			rest = append(rest, r...)
		}
	}
	return runs[at], rest, len(runs)
}

// busyPs is how many goroutines run or are queued for each P, on average.
func busyPs(samples []snapshot) (sum float64) {
	for _, s := range samples {
		sum += ratio(float64(s.ps-s.idle+s.runnable()), float64(s.ps))
	}
	return sum / float64(len(samples))
}

// besideText says what the samples of other starts amount to: how many they are, and the longest
// queue.
func besideText(rest []snapshot) string {
	most := slices.MaxFunc(rest, func(a, b snapshot) int { return cmp.Compare(a.perP(), b.perP()) })
	return fmt.Sprintf("; beside them, of another start or process, %s with %d runnable at most on %s",
		count(len(rest), "sample", "samples"), most.runnable(), count(most.ps, "P", "Ps"))
}

// queued reports whether goroutines wait long for a P.
func (s snapshot) queued() bool { return s.perP() >= queueLong && s.idle == 0 }

// leastTail is how many samples at the end say that something has changed and stays.
const leastTail = 3

// queuedToEnd counts the samples at the end that have long queues, one after another.
func queuedToEnd(samples []snapshot) (n int) {
	for n < len(samples) && samples[len(samples)-1-n].queued() {
		n++
	}
	return n
}

func judgeSched(r *attach.Reading, samples []snapshot, long int, perP []float64) {
	n := len(samples)
	share := ratio(float64(long), float64(n))
	often := fmt.Sprintf("%d of %d samples", long, n)
	switch {
	case n == 1:
		r.Glance = true
		r.State = attach.CannotTell
		r.Means = "one sample is a glance: queues of Go's scheduler change within milliseconds"
		r.Next = []attach.Next{{Command: "GODEBUG=schedtrace=100",
			Why: "samples over some seconds say how often goroutines queue"}}
		switch s := samples[0]; {
		case s.runnable() == 0 && s.at < firstMoment:
			r.Means = "nobody queues for a P in this one sample, which is of the program's start"
		case s.runnable() == 0 && s.locals && (s.shown == 0 || s.shown >= s.ps):
			r.State = attach.Healthy
			r.Means = "nobody queues for a P in this one sample, which is a glance"
		case s.runnable() == 0:
			r.Means = "nobody is in the queues that this one sample shows, and others are cut off"
		case s.idle > 0:
			r.Means = fmt.Sprintf("%s while %s: one sample does not say for how long",
				count(s.runnable(), "goroutine is queued", "goroutines are queued"),
				count(s.idle, "P is idle", "Ps are idle"))
		case s.states[0] > 0:
			r.Means = fmt.Sprintf("%s, and by its line %s: one sample does not say for how long",
				count(s.runnable(), "goroutine is queued", "goroutines are queued"),
				count(s.states[0], "P is idle", "Ps are idle"))
		case s.perP() >= queueCrowd && s.at >= firstMoment:
			r.Means = fmt.Sprintf("no P is idle, and %s goroutines are queued for each: the last one waits for the turns of all before it; one sample does not say whether it goes on so", short(s.perP()))
			r.Signs = []attach.Sign{{Cause: "sched-latency", Grade: attach.Candidate, Proof: r.Figures[:1]}}
		case long == 0:
			r.Means = fmt.Sprintf("no P is idle, and %s: one sample does not say for how long",
				count(s.runnable(), "goroutine is queued", "goroutines are queued"))
		}
	case long >= 2 && share >= queueOften:
		r.State = attach.Ill
		sure := finding.Possible
		r.Means = fmt.Sprintf("runnable goroutines wait for a P in bursts: in %s, and not all the time", often)
		if share >= queueAlways {
			r.Means = fmt.Sprintf("runnable goroutines wait for a P in %s: there is more work than the Ps get done, be it much work or little CPU", often)
			if grows(samples) != "" {
				r.Means += ", and the queue grows all the while"
			}
			if n >= 5 {
				sure = finding.Supported
			}
		}
		if span := samples[n-1].at - samples[0].at; span < leastSpan && grows(samples) == "" {
			sure = finding.Possible
			r.Means = fmt.Sprintf("runnable goroutines wait for a P in %s, which are of %s: a burst, or a part of more", often, seconds(span))
		}
		if tail := queuedToEnd(samples); tail == long && tail >= leastTail && tail < n {
			r.Means = fmt.Sprintf("from %.3f s on, runnable goroutines wait for a P in each of the %d samples to the end, and in none before", samples[n-tail].at, tail)
		}
		r.Not = "who waits and what runs meanwhile; threads that the kernel keeps off their CPUs look the same"
		r.Signs = []attach.Sign{{Cause: "sched-latency", Grade: attach.Found, Sure: sure,
			Share: share, Proof: r.Figures[:2]}}
		r.Next = []attach.Next{{Command: "whystall diagnose --pid PID",
			Why: "shows which goroutines queue, and what has the Ps meanwhile"}}
	case long > 0:
		r.State = attach.CannotTell
		waiting := 0
		for _, s := range samples {
			if s.runnable() > 0 {
				waiting++
			}
		}
		r.Means = fmt.Sprintf("runnable goroutines are queued in %d of %d samples, and in %d the queue is long while no P is idle: for how long, these samples do not say", waiting, n, long)
		r.Next = []attach.Next{{Command: "GODEBUG=schedtrace=100", Why: "more samples say how often it comes"}}
	default:
		judgeShort(r, samples, perP)
	}
}

// judgeStopping says that a sample met a stop of the world which waits for a P. A stop takes
// microseconds, so that a sample hardly meets one that is well.
func judgeStopping(r *attach.Reading, samples []snapshot) {
	for i := len(samples) - 1; i >= 0; i-- {
		s := samples[i]
		if !s.gcWaiting || s.stopWait == 0 || s.at < firstMoment || s.idle > 0 || r.State == attach.Ill {
			continue
		}
		line := fmt.Sprintf("at %.3f s the world is being stopped (gcwaiting), and %s not stopped yet", s.at,
			count(s.stopWait, "P has", "Ps have"))
		r.Figures = append([]string{line}, r.Figures...)
		r.State = attach.CannotTell
		r.Means = "a stop of the world waits for a P, and all others stand still meanwhile: a goroutine on it that cannot be interrupted (before Go 1.14, a loop without calls), or its thread has no CPU"
		r.Not = "how long it lasts: a sample is one moment"
		r.Signs = []attach.Sign{{Cause: "stw-pause", Grade: attach.Candidate, Proof: []string{line}}}
		r.Next = []attach.Next{{Command: "kill -QUIT PID", Why: "the stack of the goroutine that runs; it ends the program"}}
		return
	}
}

// queueHalf is the share of samples with all Ps busy from which short queues are no rest.
const queueHalf = 0.5

// judgeShort reads samples without a long queue.
func judgeShort(r *attach.Reading, samples []snapshot, perP []float64) {
	busy, n := 0, len(samples)
	for _, s := range samples {
		if s.idle == 0 && s.runnable() > 0 {
			busy++
		}
	}
	last := samples[n-1]
	r.State = attach.Healthy
	switch {
	case last.at < firstMoment:
		r.State, r.Glance = attach.CannotTell, true
		r.Means = fmt.Sprintf("these samples are of the program's first %s: nothing of how it goes on", seconds(last.at))
		r.Next = []attach.Next{{Command: "GODEBUG=schedtrace=1000 under load",
			Why: "samples over some seconds say how often goroutines queue"}}
		return
	case ratio(float64(busy), float64(n)) >= queueHalf && attach.Median(perP) >= 1:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("all Ps are busy in %d of %d samples, and %s goroutines wait for each (median): each waits for the turns of those before it whenever it wants to run", busy, n, short(attach.Median(perP)))
		r.Not = "that requests wait: the goroutines in the queues may be background work"
		if attach.Median(perP) >= queueSome {
			r.Signs = []attach.Sign{{Cause: "sched-latency", Grade: attach.Candidate,
				Share: ratio(float64(busy), float64(n)), Proof: r.Figures[:1]}}
		}
		r.Next = []attach.Next{{Command: "whystall diagnose --pid PID",
			Why: "shows which goroutines queue, and what has the Ps meanwhile"}}
		return
	case busy == 0:
		r.Means = "in no sample do goroutines wait for a P while all are busy"
	default:
		r.Means = fmt.Sprintf("queues for a P are short: all Ps are busy while goroutines wait in %d of %d samples, %s for each P at most%s", busy, n, short(slices.Max(perP)), ofWhole(samples))
	}
	if 2*(n-len(wholeOf(samples))) >= n || wholeOf(samples)[0].partial() {
		r.State = attach.CannotTell
		return
	}
	r.Signs = []attach.Sign{{Cause: "sched-latency", Grade: attach.Against, Share: min(1, attach.Median(perP))}}
}
