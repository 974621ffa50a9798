package goruntime

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// stopped is how long the world was stopped in all, in ns; 0: it does not say. Before gops printed
// the last stop as well, it called the sum gc-pause.
func (m *memFields) stopped() float64 {
	v := max(m.v["pausetotalns"], m.v["gcpausetotal"])
	if _, last := m.v["gcpauseend"]; v == 0 && !last {
		v = m.v["gcpause"]
	}
	return v
}

// Stops grow where the last quarter of the list is so many times as long as the first.
const (
	grownStops = 8
	leastStops = 16
)

// trend is the median of the first and of the last quarter of the stops, where they grow all along
// the list; 0: they do not.
func (m *memFields) trend() (from, to float64) {
	n := len(m.pauses) / 4
	if len(m.pauses) < leastStops {
		return 0, 0
	}
	last := 0.0
	for at := 0; at < 4; at++ {
		v := attach.Median(m.pauses[at*n : (at+1)*n])
		if v <= last {
			return 0, 0
		}
		if last = v; at == 0 {
			from = v
		}
	}
	if last < grownStops*from {
		return 0, 0
	}
	return from, last
}

// Floors of memory that the heap keeps without need.
const (
	keptShare = 0.25 // of what the process has from the system
	keptLeast = 256 << 20

	grownLeast = 64 << 20

	offHeapLeast = 64 << 20
)

// judge says what follows of stops and of memory.
func (m *memFields) judge(r *attach.Reading) {
	r.Boot, r.State = true, attach.Healthy
	r.Means = "it shows how much memory the heap has and needs"
	r.Not = "what GC costs now: counters since the start, read once, are no rate"
	share, hasShare := m.v["gccpufraction"]
	kept := m.v["heapidle"] - m.v["heapreleased"]
	next := attach.Next{Command: "curl http://HOST:PORT/debug/vars, twice, a minute apart under load", Why: "two readings give a rate"}
	if !hasShare && len(m.pauses) == 0 {
		r.State = attach.Context
	}
	switch {
	case hasShare && share >= 0.10:
		r.State = attach.CannotTell
		r.Means = "since the start, GC took much of the CPU"
		r.Next = []attach.Next{next}
	case len(m.pauses) >= 5 && attach.Median(m.pauses) >= longStop*1e6:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("the world stops for %s (median) in a cycle: before Go 1.5 all marking is a stop; later a stop is long where a thread gets no CPU or memory is swapped out, and until Go 1.8 where many stacks are scanned again", ms(attach.Median(m.pauses)/1e6))
		for _, cause := range []string{"stw-pause", "cpu-throttled"} {
			r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Candidate,
				Proof: r.Figures[len(r.Figures)-1:]})
		}
		r.Next = []attach.Next{next}
	case m.samples > 1 && m.v["heapalloc"] >= 2*m.first && m.v["heapalloc"] >= grownLeast:
		r.State = attach.CannotTell
		r.Means = "the heap grows from the first sample to the last: a leak, a cache that fills, or garbage that the next cycle takes; it is no cause of latency by itself"
		r.Next = []attach.Next{{Command: "go tool pprof -top -diff_base heap1.pb.gz heap2.pb.gz",
			Why: "two heap profiles, a while apart, say which code's memory grows"}}
	case m.offHeap() != "":
		r.State = attach.CannotTell
		r.Means = "most of the memory is not the heap's" + m.offHeap() + ": a heap profile does not show it"
	case kept >= keptLeast && kept >= keptShare*m.v["sys"]:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("the runtime keeps %s that the heap does not use now and has not given back to the system", finding.Bytes(int64(kept)))
		r.Next = []attach.Next{{Command: "GODEBUG=gctrace=1 for a minute under load",
			Why: "says to which size the heap grows before each cycle; GOMEMLIMIT or a lower GOGC bounds it"}}
	case hasShare || len(m.pauses) > 0:
		worst := slices.Max(append(m.pauses, 0))
		r.Means = fmt.Sprintf("since the start, GC took %s of the CPU", percent(share))
		if !hasShare {
			r.Means = fmt.Sprintf("it shows how much memory the heap has and needs; of the stops that are listed none took more than %s", ms(worst/1e6))
		}
		if worst >= veryLong*1e6 {
			r.Means = fmt.Sprintf("one of the last stops took %s, and most are short: such a stop is mostly a thread that got no CPU, or a call that could not be interrupted", ms(worst/1e6))
		}
	}
}

// offHeap names what has more of the memory than all else, where that is not the heap; "": it is.
func (m *memFields) offHeap() string {
	for _, part := range []struct{ key, words string }{
		{"othersys", "other needs of the runtime (OtherSys)"}, {"stacksys", "stacks (StackSys)"},
		{"gcsys", "GC's own needs (GCSys)"},
		{"mspansys", "the heap's books (MSpanSys)"}, {"buckhashsys", "the tables of profiles (BuckHashSys)"},
	} {
		if v := m.v[part.key]; v >= offHeapLeast && v > m.v["sys"]/2 {
			return fmt.Sprintf(", %s of it for %s", finding.Bytes(int64(min(v, 1e18))), part.words)
		}
	}
	return ""
}
