package oncpu

import (
	"math"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// Sample is a sample whose work is known.
type Sample struct {
	At   int64 // CLOCK_MONOTONIC
	NS   int64 // that it stands for
	Work uint32
}

// Samples lists a recording's samples by thread. It is for one goroutine, since it remembers where
// it found the last ones.
type Samples struct {
	Works   *Works
	threads map[uint32]*ofThread
	recent  [16]*ofThread // by the low bits of the TID
}

// ofThread is the samples of a thread.
type ofThread struct {
	tid  uint32
	list []Sample // in order
	// The last question was answered beside this stretch, which has no sample: after list[next-1],
	// up to list[next].
	after, until int64
	next         int
}

// NewSamples lists the samples of k. Left out are those at work that the timeline has leaves of
// its own for: it lays what such a sample stands for over the thread's time.
func NewSamples(k *sched.Timeline, w *Works) *Samples {
	s := &Samples{Works: w, threads: map[uint32]*ofThread{}}
	k.Events(math.MinInt64, math.MaxInt64, func(e *sched.Event) bool {
		work := w.Of(e)
		if own := w.Key(work).Kind; own == account.WorkTLB || own == account.WorkNUMA {
			return true
		}
		t := s.threads[e.TID]
		if t == nil {
			t = &ofThread{tid: e.TID, after: math.MaxInt64}
			s.threads[e.TID] = t
		}
		t.list = append(t.list, Sample{e.Begin, SampleNS(e), work})
		return true
	}, kernel.Sample)
	return s
}

// In lists a thread's samples in [lo,hi), oldest first. Questions are mostly about short
// stretches, without a sample, near those of the question before: these cost two comparisons. A
// nil list has none.
func (s *Samples) In(tid uint32, lo, hi int64) []Sample {
	if s == nil {
		return nil
	}
	t := s.recent[tid%uint32(len(s.recent))]
	if t == nil || t.tid != tid {
		if t = s.threads[tid]; t == nil {
			return nil
		}
		s.recent[tid%uint32(len(s.recent))] = t
	}
	if lo > t.after && hi <= t.until {
		return nil
	}
	return t.in(lo, hi)
}

// in looks from where the last question was answered, in steps that double.
func (t *ofThread) in(lo, hi int64) []Sample {
	from, to := 0, len(t.list) // the first sample from lo on is in list[from:to], or list[to]
	if at := t.next; at < to && t.list[at].At < lo {
		from = at + 1
		for step := 1; from+step < to; step *= 2 {
			if t.list[from+step].At >= lo {
				to = from + step
				break
			}
			from += step + 1
		}
	} else {
		to = min(at, to)
		for step := 1; to-step >= from; step *= 2 {
			if t.list[to-step].At < lo {
				from = to - step + 1
				break
			}
			to -= step
		}
	}
	for from < to {
		if m := int(uint(from+to) >> 1); t.list[m].At < lo {
			from = m + 1
		} else {
			to = m
		}
	}
	end := from
	for end < len(t.list) && t.list[end].At < hi {
		end++
	}
	t.next, t.after, t.until = from, math.MinInt64, math.MaxInt64
	if from > 0 {
		t.after = t.list[from-1].At
	}
	if from < len(t.list) {
		t.until = t.list[from].At
	}
	return t.list[from:end]
}
