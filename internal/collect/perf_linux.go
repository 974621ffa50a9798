package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sensor/perfevent"
	"github.com/whystall/whystall/internal/sensor/symbol"
)

var _ = registerLocal(&Local{
	Name:   "kernel-perf",
	Doc:    "Where eBPF is not permitted: records by perf_event when the target's threads come to a CPU and leave it, their page faults, and samples of what they run.",
	Order:  20,
	Tier:   TierPerf,
	Member: kernel.Member,
	Probe:  func(p Process) error { _, err := perfReach(p); return err },
	Record: recordPerf,
})

// reach is how far perf_event_open lets us see.
type reach struct {
	whole  bool // switches of all tasks
	kernel bool // the kernel's part of stacks
	why    []kernel.Missing
}

// perfReach tries what is permitted, the most first. An error means that not even the least of use
// is.
func perfReach(p Process) (r reach, err error) {
	if err := perfevent.Probe(perfevent.Options{AllTasks: true, Switches: true, Kernel: true}); err != nil {
		r.why = append(r.why, kernel.Missing{What: []kernel.Sight{kernel.SightOtherTasks},
			Why: "who ran while the target's threads did not: " + err.Error()})
	} else {
		r.whole = true
	}
	if err := perfevent.Probe(perfevent.Options{PID: p.PID, Switches: true, SwitchStacks: true,
		Kernel: true}); err != nil {
		r.why = append(r.why, kernel.Missing{What: []kernel.Sight{kernel.SightWaitStacks},
			Why: "the stacks of waits, and why a thread left its CPU, except for preemption: " + err.Error()})
	} else {
		r.kernel = true
		return r, nil
	}
	return r, perfevent.Probe(perfevent.Options{PID: p.PID, Switches: true})
}

// sampleNS is the distance between CPU samples: 1 kHz.
const sampleNS = 1e6

const (
	perfWait  = 50 * time.Millisecond // a ring that is a quarter full is read at once
	perfFlush = 200 * time.Millisecond
)

// recordPerf writes what perf_event reports. It works as the eBPF collector does: this goroutine
// empties the rings, another names stacks.
func recordPerf(ctx context.Context, p Process, w io.Writer) (_ *evidence.Cost, err error) {
	runtime.LockOSThread() // its CPU time is read by thread
	defer runtime.UnlockOSThread()
	start := threadCPU()
	can, err := perfReach(p)
	if err != nil {
		return nil, err
	}
	s := newPerfStream(p)
	// First what takes its time: once opened, the rings fill.
	named := newNaming(p)
	naming := sync.OnceValue(named.end)
	defer naming()
	s.naming = named
	if err := s.open(can); err != nil {
		return nil, err
	}
	defer s.close()
	if s.w, err = kernel.NewWriter(w, s.header(can, named)); err != nil {
		return nil, err
	}
	s.threads.writeAll(s.w)
	named.start(s.w)
	if p.Recording != nil {
		p.Recording()
	}
	now, used := time.Now(), processCPU(p.PID)
	s.targetCPU = used
	s.cost = perfBudget{lookAt: now, dutyAt: now, targetCPU: used, ownCPU: threadCPU(), share: 1, clockShare: 1}
	if p.Budget > 0 {
		s.cost.share = firstShare
	}
	err = s.run(ctx)
	cost := &evidence.Cost{CPUNS: threadCPU() - start + naming(), Lost: s.lost, Lowered: s.cost.given()}
	if used >= 0 {
		cost.TargetNS = max(0, s.targetCPU-used)
	}
	if e := s.w.Close(); err == nil {
		err = e
	}
	_, cost.Records = s.w.Written()
	if errors.Is(err, ErrCut) {
		err = nil // the runner says so
	}
	return cost, err
}

func (s *perfStream) open(can reach) error {
	// The kernel looks at each of a thread's own events whenever the thread is switched: the fewer
	// the better.
	own := perfevent.Options{PID: s.p.PID, MajorFaults: true, Stacks: true, Kernel: can.kernel,
		SwitchStacks: can.kernel && s.p.Stacks}
	// Go keeps frame pointers; other code needs the bytes of the stack.
	if t, err := symbol.New(s.p.PID, s.p.Root); err == nil {
		if !t.Binary().Go && s.p.Stacks && runtime.GOARCH == "amd64" {
			s.unwinder, own.StackBytes = t, stackBytes
		} else {
			t.Close()
		}
	}
	if !can.whole {
		own.Switches, own.ClockNS = true, sampleNS
	}
	r, err := perfevent.Open(own)
	if err != nil {
		s.close()
		return err
	}
	s.readers = append(s.readers, r)
	s.target, s.stacking = r, own.SwitchStacks
	if !can.whole {
		s.clock = true
		return nil
	}
	// This comes last, as opening the events of thousands of threads takes a while: a lost switch
	// is worse than a lost stack.
	all, err := perfevent.Open(perfevent.Options{AllTasks: true, Switches: true, Kernel: true,
		Stacks: true, ClockNS: sampleNS, StackBytes: own.StackBytes})
	if err != nil {
		s.close()
		return err
	}
	s.readers = append(s.readers, all)
	return nil
}

func (s *perfStream) close() {
	for _, r := range s.readers {
		r.Close()
	}
	if s.unwinder != nil {
		s.unwinder.Close()
	}
}

// stackBytes holds the innermost ten or so callers of compiled code.
const stackBytes = 2 << 10

func (s *perfStream) header(can reach, n *naming) kernel.Header {
	h := kernel.Header{
		Source: "perf", Kernel: release(), Arch: runtime.GOARCH, PID: uint32(s.p.PID),
		CPUs: s.target.CPUs(), AllTasks: can.whole,
		Recorded: []kernel.Sight{kernel.SightSwitches, kernel.SightSamples},
		Missing:  append(can.why, n.missing...),
	}
	if can.whole {
		h.Recorded = append(h.Recorded, kernel.SightOtherTasks)
	}
	if s.stacking {
		h.Recorded = append(h.Recorded, kernel.SightWaitStacks)
	}
	h.Missing = append(h.Missing,
		kernel.Missing{What: []kernel.Sight{kernel.SightWakers},
			Why: "who wakes a thread, and since when a woken one is queued: perf_event without tracepoints does not report it"},
		kernel.Missing{What: []kernel.Sight{kernel.SightThrottling},
			Why: "throttling by a quota: it looks like preemption"},
		kernel.Missing{What: []kernel.Sight{kernel.SightReclaim, kernel.SightMemcgReclaim,
			kernel.SightCompaction, kernel.SightMmapLock,
			kernel.SightTLBFlushes, kernel.SightFutexes, kernel.SightPreemptionAsked, kernel.SightPreemptionDelivered},
			Why: "reclaim, compaction, mmap_lock waits, TLB flushes, futex calls, signals: they need eBPF"},
	)
	for _, r := range s.readers {
		for _, why := range r.Missing() { // threads whose events could not be opened
			h.Missing = append(h.Missing, kernel.Missing{What: []kernel.Sight{kernel.SightAllThreads}, Why: why})
		}
	}
	if n.table != nil {
		if notes, err := n.table.Notes(); err == nil {
			h.StopNote, h.SafeNote, h.NoteFrom = notes.Stop, notes.Safe, notes.From
		}
	}
	return h
}

func (s *perfStream) run(ctx context.Context) error {
	flushed := time.Now()
	for ended := false; !ended; {
		if err := perfevent.Wait(perfWait, s.readers...); err != nil {
			return fmt.Errorf("wait for perf events: %w", err)
		}
		s.duty()
		ended = ctx.Err() != nil
		rounds := 1
		if ended {
			rounds = 2 // the second sees what was being written during the first
		}
		for range rounds {
			if err := s.read(); err != nil {
				return err
			}
		}
		if !ended && time.Since(flushed) < perfFlush {
			continue
		}
		if err := s.w.Flush(s.horizon() - int64(settle)); err != nil {
			return err
		}
		if cpu := processCPU(s.p.PID); cpu > 0 {
			s.targetCPU = cpu
		}
		s.budget()
		flushed = time.Now()
	}
	return s.broken
}

func (s *perfStream) horizon() int64 {
	h := s.readers[0].Horizon()
	for _, r := range s.readers[1:] {
		h = min(h, r.Horizon())
	}
	return h
}

func (s *perfStream) read() error {
	s.batch = s.batch[:0]
	for _, r := range s.readers {
		s.from = r
		if err := r.Read(s.record); err != nil && s.broken == nil {
			s.broken = err
		}
	}
	s.majors()
	s.threads.flush(s.w)
	return s.w.Records(s.batch)
}
