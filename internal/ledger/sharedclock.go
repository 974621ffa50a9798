package ledger

import (
	"cmp"
	"slices"
	"sort"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/timeline"
)

// Traces before Go 1.22 count ticks of their own and name no threads. But nothing can be traced
// while no thread of the process is on a CPU. So the kernel's stretches of that kind must lie in
// the trace's silences, and where they come in no rhythm, only one shift of the clocks makes them
// lie there. That shift is enough for what needs no thread: what the threads of the process did
// together.
//
//   1. List the trace's silences, and the process's stretches off all CPUs.
//   2. Try the shifts that put one of the longest stretches at either end of a silence of about its
//      length.
//   3. Take the shift with the least time off CPU in which the trace has events, if that time is
//      next to none and every other shift has much of it.

const (
	offLeast = 1e6 // ns, of stretches off all CPUs: shorter ones are everywhere
	// ns at both ends of a stretch: the first and last event on a CPU lie within it, and clocks
	// drift
	offSlack     = 1e5
	offMost      = 400 // the longest are enough
	offTried     = 40
	offFew       = 10 // fewer prove nothing
	silencesMost = 1 << 14
	shiftsMost   = 4000
	shiftApart   = 5e6 // ns: shifts nearer than this are the same but for their precision
	// Measured on Prometheus built with Go 1.19 and on a server built with 1.13: none at the right
	// shift, 2.6 % and more at every other one, with a process that is idle for 95 % of the time.
	wrongMost  = 0.002
	wrongOther = 0.01
)

// sharedClock finds what to add to a Time of src to get CLOCK_MONOTONIC.
func sharedClock(src timeline.Source, k *sched.Timeline) (shift int64, ok bool) {
	silent, begin, end := silences(src)
	off := offCPUs(k)
	if len(silent) == 0 || len(off) < offFew {
		return 0, false
	}
	type tried struct {
		shift int64
		wrong float64
	}
	var all []tried
	kb, ke := k.Span()
	for _, o := range off[:min(len(off), offTried)] {
		for _, s := range silent {
			d := s.Hi - s.Lo - (o.Hi - o.Lo)
			if d < -offSlack || d > (o.Hi-o.Lo)/4+offLeast {
				continue
			}
			for _, at := range [2]int64{o.Lo - s.Lo, o.Hi - s.Hi} {
				// A recording is made around its trace.
				if begin+at < kb-shiftApart || end+at > ke+shiftApart || len(all) >= shiftsMost {
					continue
				}
				if wrong, ok := wrongAt(silent, off, begin, end, at); ok {
					all = append(all, tried{at, wrong})
				}
			}
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	best := slices.MinFunc(all,
		func(a, b tried) int { return cmp.Or(cmp.Compare(a.wrong, b.wrong), cmp.Compare(a.shift, b.shift)) })
	if best.wrong > wrongMost {
		return 0, false
	}
	for _, t := range all {
		if apart := t.shift - best.shift; max(apart, -apart) > shiftApart && t.wrong < wrongOther {
			return 0, false
		}
	}
	return best.shift, true
}

// silences lists the stretches without an event, in order, and the trace's first and last time.
func silences(src timeline.Source) (l []capacity.Span, begin, end int64) {
	first := true
	for block := range src.Blocks() {
		for i := range block {
			at := int64(block[i].Time)
			if first {
				begin, end, first = at, at, false
			}
			if at-end >= offLeast/2 && block[i].Kind != exectrace.KindGap {
				if l = append(l, capacity.Span{Lo: end, Hi: at}); len(l) == silencesMost {
					return l, begin, at
				}
			}
			end = max(end, at)
		}
	}
	return l, begin, end
}

// offCPUs lists when no thread of the process was on a CPU, the longest first.
func offCPUs(k *sched.Timeline) []capacity.Span {
	var l capacity.Times
	b, e := k.Span()
	for _, t := range k.Process(b, e, nil) {
		switch t.State {
		case sched.ProcessThrottled, sched.ProcessQueued, sched.ProcessNone, sched.ProcessStopped:
			l = append(l, capacity.Span{Lo: t.Begin, Hi: t.End})
		}
	}
	l = slices.DeleteFunc(l.Merge(), func(s capacity.Span) bool { return s.Hi-s.Lo < offLeast })
	slices.SortFunc(l, func(a, b capacity.Span) int {
		return cmp.Or(cmp.Compare(b.Hi-b.Lo, a.Hi-a.Lo), cmp.Compare(a.Lo, b.Lo))
	})
	return l[:min(len(l), offMost)]
}

// wrongAt is the share of the time off all CPUs in which the trace has events, with that shift. It
// proves nothing if less than half of that time lies in the trace.
func wrongAt(silent, off []capacity.Span, begin, end, shift int64) (wrong float64, ok bool) {
	var all, in, within int64
	for _, o := range off {
		lo, hi := o.Lo-shift, o.Hi-shift
		all += hi - lo
		if lo < begin || hi > end {
			continue
		}
		within += hi - lo
		lo, hi = lo+offSlack, hi-offSlack
		in += 2 * offSlack
		for i := sort.Search(len(silent),
			func(i int) bool { return silent[i].Hi > lo }); i < len(silent) && silent[i].Lo < hi; i++ {
			in += min(silent[i].Hi, hi) - max(silent[i].Lo, lo)
		}
	}
	return 1 - float64(in)/float64(max(within, 1)), 2*within >= all
}
