package database

import (
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// redisIntrinsic reads redis-cli --intrinsic-latency. It runs without a server: what it finds is
// the machine's.
var redisIntrinsic = &attach.Kind{
	Name:  "redis-cli --intrinsic-latency",
	Hints: []string{"Max latency so far:", "total runs (avg", "Worst run took"},
	Claim: func(lines []paste.Line) int {
		n := 0
		text := func(i int) string { return strings.TrimSpace(lines[i].Text) }
		for n < len(lines) && (intrinsicMax.MatchString(text(n)) ||
			intrinsicEnd.MatchString(text(n)) || strings.HasPrefix(text(n), "Worst run took") ||
			n > 0 && text(n) == "" && n+1 < len(lines) && intrinsicEnd.MatchString(text(n+1))) {
			n++
		}
		return n
	},
	Read: readIntrinsic,
}

var (
	intrinsicMax = pattern.New(`^Max latency so far: (\d+) microseconds\.?$`)
	intrinsicEnd = pattern.New(`^(\d+) total runs \(avg (latency: )?(-?[\d.]+) microseconds`) // before 2.8.10 whole microseconds
)

// intrinsicLeast is the shortest run, in s, of which a maximum says anything; a user asks for whole
// seconds.
const intrinsicLeast = 0.9

func readIntrinsic(p *attach.Part) attach.Reading {
	r := &result{}
	worst, avg, runs, seen, ended, whole := 0.0, 0.0, 0.0, false, false, false
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if m := intrinsicMax.FindStringSubmatch(text); m != nil {
			v, _ := number(m[1])
			worst, seen = max(worst, v), true
		}
		if m := intrinsicEnd.FindStringSubmatch(text); m != nil {
			runs, _ = number(m[1])
			avg, _ = strconv.ParseFloat(m[3], 64)
			ended, whole = true, m[2] == ""
		}
	}
	r.Title = "redis-cli --intrinsic-latency: the machine's own, without a Redis"
	if ended && (avg < 0 || runs*avg < intrinsicLeast*1e6 && !(whole && avg == 0)) {
		return brokenIntrinsic(r, runs, avg)
	}
	if !seen {
		r.Means = "These lines are the end of a run; the longest time without the CPU stands above them."
		return r.done(attach.CannotTell)
	}
	line := "at most " + dur(worst/1e6) + " in which a computing process did not run"
	r.figure(line)
	switch {
	case ended && whole:
		r.figure("on average " + three(avg) + " µs a run, in whole microseconds")
	case ended:
		r.figure("on average " + three(avg*1e3) + " ns a run")
	}
	r.fact(FactStall, worst/1e3, "machine")
	r.Not = "It says nothing of Redis' commands or its disk; one maximum is no rate."
	return judgeIntrinsic(r, worst, line, ended)
}

// brokenIntrinsic is a run that ended before it had measured anything. Versions that keep the
// time in 32 bits end at once where more than 2147 s are asked for.
func brokenIntrinsic(r *result, runs, avg float64) attach.Reading {
	line := "it ended after " + attach.Plural(int(min(runs, 1e9)), "run")
	r.Means = "The run was too short to say anything of the machine."
	if avg < 0 {
		line += ", with a negative average"
		r.Means = "The run is void, for it did not last as long as it was asked to: it says nothing of the machine. A negative time is an overflow of a number."
	}
	r.figure(line)
	r.next("redis-cli --intrinsic-latency 60", "a minute is enough, and fits in its numbers")
	return r.done(attach.CannotTell)
}

// judgeIntrinsic says what a maximum means, in µs; of a run without its end, the length is unknown.
func judgeIntrinsic(r *result, worst float64, line string, ended bool) attach.Reading {
	switch {
	case worst >= 10000:
		r.Means = "The machine took the CPU away for that long: the run queue, a neighbour of the virtual machine, or a quota."
		for _, cause := range []string{"cpu-contention", "cpu-steal", "cpu-throttled"} {
			r.candidate(cause, line)
		}
		r.next("vmstat 1 30", "r above the number of CPUs is the run queue, st is steal; cpu.stat of the cgroup has the quota")
	case worst >= 5000:
		r.Means = "The machine kept a computing process waiting for milliseconds, without any Redis: answers are as late as that now and then."
		r.next("vmstat 1 30", "r above the number of CPUs is the run queue, st is steal")
		return r.done(attach.CannotTell)
	case !ended:
		r.Means = "The end of the run is not here, so how long it measured is not known: a short run may meet no wait."
		return r.done(attach.CannotTell)
	case worst >= 2000:
		r.Means = "A few milliseconds without the CPU, as a busy or a virtual machine has them: no reason for longer stalls."
	default:
		r.Means = "While it was measured, the machine kept no process from running for longer than that: scheduling was not the reason then."
		for _, cause := range []string{"cpu-contention", "cpu-steal"} {
			r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Against, Proof: []string{line}})
		}
	}
	return r.done(attach.Healthy)
}
