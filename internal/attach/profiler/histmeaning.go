package profiler

import (
	"fmt"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

func runQueueMeaning(r *attach.Reading, h *histogram) {
	s, n := h.seconds(), h.total()
	p99 := h.at(0.99).low * s
	r.Facts = append(r.Facts, attach.Fact{Name: RunQueueP99, Value: p99 * 1e9, Of: h.key})
	long := h.from(0.001/s) / max(n, 1)
	part, limit := h.part(0.001/s), "a millisecond"
	if h.at(0).low == 0 && h.at(0).high > 0.00105/s { // in ms the first bucket goes to 2
		part, limit = pct(long), h.value(h.border(0.001/s))
	}
	r.Facts = append(r.Facts, attach.Fact{Name: RunQueueLong, Value: long, Of: h.key})
	switch {
	case n < 100:
		r.Means = fmt.Sprintf("These are %s values: too few for a p99.", count(n))
	case long < 0.01:
		r.State = attach.Healthy
		r.Means = fmt.Sprintf("Threads got a CPU at once: %s of the waits were %s or longer.", part, limit)
		r.Not = "The longest single wait of a distribution is no rate."
		for _, cause := range []string{"cpu-contention", "runqueue-saturation"} {
			r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Against, Share: long})
		}
	default:
		proof := fmt.Sprintf("%s of the waits for a CPU were %s or longer, %s ten ms or longer",
			part, limit, h.part(0.010/s))
		r.Means = upper(proof) + ": threads that could run waited, for a busy CPU or for their cgroup's quota."
		r.Not = "A throttled cgroup looks the same here: the wait counts from the wake-up on, whatever kept the thread off."
		cause := "cpu-contention"
		if long >= 0.20 {
			cause = "runqueue-saturation"
		}
		r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Candidate, Share: long,
			Proof: []string{proof}},
			attach.Sign{Cause: "cpu-throttled", Grade: attach.Candidate, Share: long,
				Proof: []string{"a quota that is used up delays threads in the same way"}})
		r.Next = append(r.Next,
			ask("cat /sys/fs/cgroup/CGROUP/cpu.stat; sleep 10; cat /sys/fs/cgroup/CGROUP/cpu.stat",
				0, "nr_throttled that rises says quota; else it is the CPUs"))
	}
}

// manyLate is the share of I/Os of 60 ms or longer from which a disk is slow for whoever waits: one
// in a hundred is what a rotating disk has that writes behind.
const manyLate = 0.03

func diskMeaning(r *attach.Reading, h *histogram) {
	s, n := h.seconds(), h.total()
	r.Not = "It is the disk's time for everybody: whether a request waited for it is not in it."
	if n < 50 {
		r.Means = fmt.Sprintf("These are %s I/Os: too few for a p99.", count(n))
		return
	}
	slow := h.from(0.010/s) / n
	switch {
	case slow < 0.01:
		r.State = attach.Healthy
		r.Means = fmt.Sprintf("The disk answered in time: %s of the I/Os took 10 ms or longer.", h.part(0.010/s))
		r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Against, Share: slow})
	case h.from(0.060/s)/n >= manyLate && n >= 200:
		proof := fmt.Sprintf("%s of %s I/Os took 10 ms or longer; p99 %s to %s", h.part(0.010/s),
			count(n), h.value(h.at(0.99).low), h.value(h.at(0.99).high))
		r.State = attach.Ill
		r.Means = "The disk is slow: " + proof + "."
		r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Found,
			Sure: finding.Possible, Share: slow, Proof: []string{proof}})
		r.Next = append(r.Next, record(0, "whose requests waited for it"))
	case h.at(0.5).low >= 0.001/s && h.from(0.060/s)/n < 0.01: // a rotating disk in health looks so
		r.Means = fmt.Sprintf("%s of the I/Os took 10 ms or longer, which rotating and remote disks do without being ill.", h.part(0.010/s))
		r.Next = append(r.Next, record(0, "whether requests waited for it"))
	default:
		r.Means = fmt.Sprintf("%s of the I/Os took 10 ms or longer, which rotating and remote disks do without being ill.", h.part(0.010/s))
		r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Candidate,
			Share: slow, Proof: []string{fmt.Sprintf("%s of the I/Os took 10 ms or longer", h.part(0.010/s))}})
		r.Next = append(r.Next, record(0, "whether requests waited for it"))
	}
}

func queueLenMeaning(r *attach.Reading, h *histogram) {
	n := h.total()
	waiting := h.from(1) / max(n, 1)
	r.Figures = append([]string{fmt.Sprintf("%s of the samples found threads queued", pct(waiting))}, r.Figures...)
	if n < 50 {
		r.Means = "These are too few samples."
		return
	}
	if waiting < 0.05 {
		r.State = attach.Healthy
		r.Means = "Nearly no sample found a thread that waited behind another."
		return
	}
	r.Means = fmt.Sprintf("In %s of the samples at least one thread waited for a CPU.", pct(waiting))
	r.Not = "A length is no time: how long threads waited is not in it, and on some versions a cgroup counts as one."
	if waiting >= 0.30 {
		r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-contention", Grade: attach.Candidate,
			Share: waiting, Proof: []string{fmt.Sprintf("threads were queued in %s of the samples", pct(waiting))}},
			attach.Sign{Cause: "cpu-throttled", Grade: attach.Candidate, Share: waiting,
				Proof: []string{"threads behind a quota that is used up may count as queued"}})
	}
	r.Next = append(r.Next, ask("runqlat-bpfcc 10 1", 0, "how long they waited"))
}
