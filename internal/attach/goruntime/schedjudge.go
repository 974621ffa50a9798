package goruntime

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// firstMoment is how many s after the start of a program are not how it goes on.
const firstMoment = 0.5

// detail is what the lines of scheddetail say of one sample: Ps and goroutines by state.
func (s *snapshot) detail() (out []string) {
	if s.shown > 0 {
		out = append(out, fmt.Sprintf("of %s shown, %d run goroutines, %d are in system calls and %d are idle", count(s.shown, "P", "Ps"), s.states[1], s.states[2], s.states[0]))
	}
	n := 0
	for _, c := range s.listed {
		n += c
	}
	if n > 0 {
		out = append(out, fmt.Sprintf("of %s that the text lists, %d are runnable, %d running, %d in system calls and %d waiting",
			count(n, "goroutine", "goroutines"), s.listed[1], s.listed[2], s.listed[3], s.listed[4]))
	}
	return out
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

// longestRun is the samples of one start of a program: its time only grows, and its Ps stay. It
// returns those of other starts as well, and how many starts there are.
func longestRun(all []snapshot) (best, rest []snapshot, starts int) {
	from := 0
	for i := 1; i <= len(all); i++ {
		if i < len(all) && all[i].at >= all[i-1].at {
			continue
		}
		starts++
		if i-from > len(best) {
			best, rest = all[from:i], slices.Concat(all[:from], all[i:])
		}
		from = i
	}
	return best, rest, starts
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
		r.Means = fmt.Sprintf("queues for a P are short: all Ps are busy while goroutines wait in %d of %d samples, %s for each P at most", busy, n, short(slices.Max(perP)))
	}
	r.Signs = []attach.Sign{{Cause: "sched-latency", Grade: attach.Against, Share: min(1, attach.Median(perP))}}
}
