package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var cyclictest = &attach.Kind{Name: "cyclictest", Claim: claimCyclic, Read: readCyclic,
	Hints: []string{"T:", "# /dev/cpu_dma_latency", "policy: "}}

// "T: 0 ( 9580) P: 0 I:1000 C:   2000 Min:     10 Act:   77 Avg:  461 Max:  144496"
var cyclicRow = pattern.New(`^T:\s*(\d+) \(\s*(\d+)\) P:\s*(\d+) I:\s*(\d+) C:\s*(\d+) Min:\s*(-?\d+) Act:\s*(-?\d+) Avg:\s*(-?\d+) Max:\s*(-?\d+)`)

func claimCyclic(lines []paste.Line) int {
	rows := 0
	n := claimed(lines, func(_ int, text string) bool {
		switch {
		case cyclicRow.MatchString(text):
			rows++
		case strings.HasPrefix(text, "# /dev/cpu_dma_latency"), strings.HasPrefix(text, "policy: "),
			strings.HasPrefix(text, "INFO: "), strings.HasPrefix(text, "WARN: "):
		default:
			return false
		}
		return true
	})
	return attach.ClaimIf(rows > 0, n)
}

// enoughLoops is how many wake-ups say that threads come in time.
const enoughLoops = 1000

func readCyclic(p *attach.Part) attach.Reading {
	r := attach.Reading{State: attach.CannotTell}
	threads, worst, avg, priority, loops := 0, 0.0, 0.0, 0.0, 0.0
	for _, text := range texts(p) {
		m := cyclicRow.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		threads++
		prio, _ := number(m[3])
		n, _ := number(m[5])
		a, _ := number(m[8])
		mx, _ := number(m[9])
		priority, loops = max(priority, prio), loops+n
		avg, worst = max(avg, a), max(worst, mx)
	}
	r.Title = fmt.Sprintf("cyclictest, %s, priority %s, %s wake-ups",
		attach.Plural(threads, "thread"), count(priority), count(loops))
	r.Figures = []string{fmt.Sprintf("mean %s late, longest %s", lasts(avg/1e6), lasts(worst/1e6))}
	r.Not = "The longest is one of all wake-ups. It measures cyclictest's own threads, and no service."
	switch {
	case worst < 1000:
		r.Means = "Timers woke threads in time: below a millisecond a service hardly feels it."
		if loops >= enoughLoops {
			r.State = attach.Healthy
		}
	case priority >= 1:
		r.Means = "A thread with real-time priority came late: something ran with interrupts or preemption off, or with a higher priority, or the hypervisor had the CPU."
		r.Signs = append(r.Signs,
			attach.Sign{Grade: attach.Outside,
				Where: fmt.Sprintf("the kernel, the firmware, the hypervisor or another real-time thread: up to %s late", lasts(worst/1e6))})
	default:
		proof := fmt.Sprintf("a thread without priority came %s late in the mean, %s at most",
			lasts(avg/1e6), lasts(worst/1e6))
		r.Means = upper(proof) + ": other threads, a quota or the hypervisor had the CPU."
		if avg >= 100 {
			r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-contention", Grade: attach.Candidate,
				Proof: []string{proof}},
				attach.Sign{Cause: "cpu-throttled", Grade: attach.Candidate,
					Proof: []string{proof}},
				attach.Sign{Cause: "cpu-steal", Grade: attach.Candidate, Proof: []string{proof}})
		}
		r.Next = append(r.Next, attach.Next{Command: "vmstat 1 10", Why: "r and st tell busy CPUs from a hypervisor"})
	}
	return r
}
