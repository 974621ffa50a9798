package collect

import (
	"fmt"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/format"
)

// What is left out or thinned where the target's memory is short: a trace's buffers, the answers of
// pages, and requests that wait all take some.

// memoryFrom is the share of its memory limit from which on a target is at it.
const memoryFrom = 0.9

// scarce says why a page is not fetched from a target whose memory is short; "" if it may be.
func (r *run) scarce(c *Collector) string {
	if !c.Allocates || r.target == nil {
		return ""
	}
	used := r.memoryUse()
	if used < memoryFrom {
		return ""
	}
	r.tally.ease(evidence.Easing{Part: c.Name, Did: evidence.LeftOut, Why: evidence.WhyMemory,
		Measured: used, Limit: memoryFrom, Lost: "what the runtime says of its memory is not known"})
	return fmt.Sprintf("not asked for: the process' memory is at %.0f %% of its limit, and the page would allocate there, or stop the world", 100*used)
}

// memoryUse is the largest share of a memory limit that the target has in use: that of a cgroup,
// without the page cache that can be dropped, or GOMEMLIMIT. 0: it has none.
func (r *run) memoryUse() float64 { return max(groupMemoryUse(r.o.PID), r.goMemoryUse()) }

// goMemoryUse is the share of GOMEMLIMIT, of the target's environment, that it has in use. 0: it
// has none.
func (r *run) goMemoryUse() float64 {
	var t evidence.Target
	r.w.Update(func(m *evidence.Manifest) { t = m.Target })
	for _, rec := range format.Env(t.Env) {
		if rec.Stream == "/env/GOMEMLIMIT:bytes" && rec.Value > 0 {
			return float64(anonymousMemory(r.o.PID)) / rec.Value
		}
	}
	return 0
}

// A target is short of memory where it needs refaultsFrom pages a second again that its cgroup's
// limit had evicted. Such a busy target queues at a touch: while requests wait, they hold memory,
// more pages are evicted, and each request takes longer. With stacks p99 was 2.2 times as long,
// without them 1.1 times.
const refaultsFrom = 100

// beforeThrashing lets the kernel's recorder do without stacks where a busy target is short of
// memory by its cgroup's limit, and loads its programs at a slower pace.
func (r *run) beforeThrashing(alone evidence.Slice) {
	if r.o.Alone != nil { // another segment counted: what it read of the cgroup is not known
		return
	}
	rate := float64(groupRefaults(r.o.PID)-r.refaults) / (float64(alone.NS) / 1e9)
	if rate < refaultsFrom {
		return
	}
	r.thrashes = true
	r.tally.ease(evidence.Easing{
		Part: "kernel", Did: evidence.Thinned, Why: evidence.WhyRefaults, Measured: rate, Limit: refaultsFrom,
		Lost: "no stacks are taken: what its CPU time went into is not known, nor the code that waits",
	})
}

// A trace's buffers may need traceRoom bytes, or the part roomOfLimit of a small limit: 64 KiB for
// each P, and as many again for each time that the reader is late. A limit that leaves less may end
// in the kernel's killing the target.
const (
	traceRoom   = 16 << 20
	roomOfLimit = 1.0 / 8
)

// noRoomForTrace leaves the trace out where the target's cgroup has no room for its buffers.
func (r *run) noRoomForTrace() bool {
	left, limit := groupMemoryLeft(r.o.PID)
	room := min(traceRoom, roomOfLimit*limit)
	if limit == 0 || left >= room {
		return false
	}
	r.leaveTraceOut(1-left/limit, 1-room/limit, fmt.Sprintf(
		"not asked for: the memory limit of its cgroup leaves it %.0f MiB, and the trace's buffers may need %.0f",
		left/(1<<20), room/(1<<20)))
	return true
}

// leaveTraceOut notes that it is, for the share of a limit that is in use, and from which on.
func (r *run) leaveTraceOut(used, limit float64, why string) {
	r.untraced = true
	r.tally.ease(evidence.Easing{
		Part: lead().Name, Did: evidence.LeftOut, Why: evidence.WhyMemory, Measured: used, Limit: limit,
		Lost: "goroutines and requests are not seen: a trace's buffers count as memory of the Go runtime",
	})
	r.settle(evidence.Collector{Name: lead().Name, State: evidence.Unavailable, Why: why})
}

// withoutTrace leaves the trace of a busy target out where it is at its GOMEMLIMIT. The limit
// counts the trace's buffers as well, so less is left for the heap, and GC runs more often. At 85 %
// of 2 CPUs an answer took 30 % more CPU time, and p50 went from 7 ms to 400.
func (r *run) withoutTrace() bool {
	used := r.goMemoryUse()
	if used < memoryFrom {
		return false
	}
	r.leaveTraceOut(used, memoryFrom, fmt.Sprintf(
		"not asked for: the process' memory is at %.0f %% of its GOMEMLIMIT, which counts the trace's buffers as well", 100*used))
	return true
}
