package capacity

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/oncpu"
	"github.com/whystall/whystall/internal/sched"
)

// Sums adds up what the kernel's records say of the target, whoever its requests are:
//
//  1. what was recorded, and what not;
//  2. the process as a whole: threads that could run, standstills;
//  3. its threads one by one, and who had CPUs meanwhile (threads.go);
//  4. rarer records, and samples (events.go, samples.go);
//  5. page faults by the process' own counters, since records may leave the short ones out.
func Sums(k *sched.Timeline, works *oncpu.Works, set *evidence.Set) *account.Kernel {
	h, totals := k.Header(), k.Totals()
	begin, end := k.Span()
	r := &account.Kernel{Source: h.Source, Release: h.Kernel, Begin: begin, End: end,
		PerTask: h.PerTask, AllTasks: h.AllTasks, Missing: slices.Clone(h.Missing),
		Lost: totals.Lost, UnknownNS: totals.BreakNS, Switches: totals.Switches, Involuntary: totals.Involuntary}
	r.Untold = untold(k.Levels(), begin, end)
	r.Unread = slices.Contains(h.Recorded, kernel.SightUnread) && r.Untold[kernel.Sockets] < mostUntold
	r.Turns = slices.Contains(h.Recorded, kernel.SightTurns) && r.Untold[kernel.Sockets] < mostUntold
	if s := k.Ended(); s != "" {
		r.Missing = append(r.Missing, kernel.Missing{What: []kernel.Sight{kernel.SightWhole}, Why: s})
	}
	if t := k.Dropped(); t != 0 {
		r.Missing = append(r.Missing, kernel.Missing{What: []kernel.Sight{kernel.SightWhole},
			Why: fmt.Sprintf("records before %.1f s from the end were given up to bound memory", float64(end-t)/1e9)})
	}
	r.RunnableAvg, r.RunnableMax, _ = k.Runnable()
	r.GlanceAvg = glance(k, set)
	for _, t := range k.Process(begin, end, nil) {
		switch t.State {
		case sched.ProcessThrottled:
			r.StoodNS += t.End - t.Begin
			r.WorkNS += t.End - t.Begin
		case sched.ProcessQueued:
			r.StoodQueuedNS += t.End - t.Begin
			r.WorkNS += t.End - t.Begin
		case sched.ProcessOn:
			r.WorkNS += t.End - t.Begin
		case sched.ProcessStopped:
			r.HaltedNS += t.End - t.Begin
		}
	}
	r.Standstills = Standstills(k, leastStandstill)
	r.Standstills = r.Standstills[:min(len(r.Standstills), account.MostStandstills)]
	sumThreads(k, r)
	sumEvents(k, r)
	sumSamples(k, works, r)
	if minor, ok := growth(set, "/process/faults/minor:faults"); ok {
		major, _ := growth(set, "/process/faults/major:faults")
		r.FaultsN = max(r.FaultsN, minor+major)
	}
	return r
}

// mostUntold is the part of a recording that may be without turns of loops: some of its rounds look
// longer than they were.
const mostUntold = 0.05

// untold is the share of [begin,end) in which each kind of extra record was not recorded.
func untold(levels []sched.Level, begin, end int64) (share [kernel.Extras]float64) {
	for i, l := range levels {
		until := end
		if i+1 < len(levels) {
			until = levels[i+1].Time
		}
		ns := min(until, end) - max(l.Time, begin)
		for x := range kernel.Extras {
			if l.Untold>>x&1 != 0 && ns > 0 {
				share[x] += float64(ns) / float64(end-begin)
			}
		}
	}
	return share
}

// growth is how much a counter grew while it was read.
func growth(set *evidence.Set, stream string) (n int64, ok bool) {
	if set == nil {
		return 0, false
	}
	d, _, ok := set.Delta(stream)
	return bounded(d), ok
}

// glance is how many threads were running, on average, for a reader that walks them one by one. It
// is as was read, if it was read more than once. Else the records say what a reader would have
// found once a second, at 20 us a thread.
func glance(k *sched.Timeline, set *evidence.Set) float64 {
	if set != nil {
		var sum float64
		n := 0
		for _, s := range set.All("/process/threads/running:threads") {
			if s.Shape == evidence.Sample {
				sum += s.Value
				n++
			}
		}
		if n > 1 {
			return sum / float64(n)
		}
	}
	avg, _ := k.Glance(1e9, 20e3)
	return avg
}
