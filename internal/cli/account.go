package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/ledger"
	"github.com/whystall/whystall/internal/ledger/thread"
	"github.com/whystall/whystall/internal/report"
	"github.com/whystall/whystall/internal/sched"
)

// memoryLimit is soft. It keeps the promise of 64 MiB of heap for a trace of any size. The runtime
// needs another 11 MiB. In a trace of 500 MB 44 to 48 MiB are live, with few pointers, so that its
// dozen collections take 1 to 10 ms.
const memoryLimit = 72 << 20

// kernelLimit is what the columns of the kernel's records may take in addition (sched.Options).
const kernelLimit = 320 << 20

// storiesLimit is what stories of slow requests may take in addition: under the limit of the rest
// the collector would run without a pause.
const storiesLimit = 96 << 20

// account makes the ledgers of the trace, of the kernel's records, or of both on one clock. Without
// a trace the requests are those of threads. An error beside a result means that the trace ended
// early or that a sum is wrong.
func (con *console) account(in *loaded, entry *regexp.Regexp, slowOver time.Duration) (*account.Result, error) {
	// Ctrl-C is handled here so that diagnose can remove its temporary folder.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the system handles a second Ctrl-C and ends the program at once
	name := in.traceName
	if in.kern != nil && in.trace != nil && in.kernName != in.traceName {
		in.gaps = append(in.gaps,
			report.Gap{Source: in.kernName,
				Reason: "its kernel records are left out, since the execution trace is from another recording, " + in.traceName})
		in.kern = nil
	}
	if con.getenv("GOMEMLIMIT") == "" {
		limit := int64(memoryLimit)
		if in.kern != nil {
			limit += kernelLimit
		}
		if in.stories {
			limit += storiesLimit
		}
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit))
	}
	if in.kern != nil {
		var err error
		if in.threads, err = sched.New(in.kern); err != nil {
			in.gaps = append(in.gaps, report.Gap{Source: "kernel", Reason: err.Error()})
		} else if why := in.kern.Ended(); why != "" {
			in.gaps = append(in.gaps, report.Gap{Source: "kernel", Reason: why})
		}
	}
	o := ledger.Options{Entry: entry, SlowOver: int64(slowOver), Kernel: in.threads, Set: in.set, Stories: in.stories}
	var r *account.Result
	var err error
	if in.trace != nil {
		src := &watched{Trace: in.trace, show: con.progress()}
		r, err = ledger.Run(ctx, src, o)
		src.show.clear()
	}
	if r == nil && in.threads != nil && ctx.Err() == nil {
		// A trace that cannot be read does not take the kernel's records with it.
		if err != nil {
			in.gaps = append(in.gaps, report.Gap{Source: in.traceName, Reason: err.Error()})
		}
		if in.target.Runtime == "go" {
			// Its threads wait for goroutines to run, and such waits do not bound requests.
			r, err = ledger.RunKernel(ctx, in.threads, o)
		} else {
			r, err = thread.Run(ctx, in.threads, thread.Options{Entry: entry, SlowOver: o.SlowOver,
				Set: in.set, Stories: in.stories})
		}
		name = "the kernel's records"
	}
	if errors.Is(err, context.Canceled) {
		return nil, fmt.Errorf("explain %s: interrupted", name)
	}
	if err != nil {
		err = fmt.Errorf("explain %s: %w", name, err)
	}
	if r != nil && r.Memory == nil {
		// Native is said only of a process whose program was read.
		native := in.manifest != nil && in.manifest.Target.Exe != "" && in.target.Runtime != "go"
		r.Memory = capacity.Memory(in.set, native)
	}
	if r != nil && (r.Kernel == nil || r.Kernel.OnCPU == nil) {
		r.Profiled = capacity.Profiled(in.set)
	}
	if r != nil && in.stories {
		capacity.AddCurves(r, in.threads, in.set)
	}
	if r == nil || in.manifest == nil {
		return r, err
	}
	offset, exact, ok := in.manifest.WallOffset(r.Begin, r.Monotonic)
	if b := in.manifest.Begun; r.Kernel != nil && b.MonoNS != 0 {
		// The kernel's clock is the recorder's.
		r.Kernel.Wall, r.Kernel.WallOffset = true, b.UTC.UnixNano()-b.MonoNS
		if r.Monotonic || r.Kernel.Whole {
			offset, exact, ok = r.Kernel.WallOffset+r.Kernel.ShiftNS, true, true
		}
	}
	if exact && in.target.CPUs == 0 {
		in.target.CPUs = in.manifest.Host.CPUs // one clock, so one machine
	}
	// Formats before 1.25 have no wall clock, but the recorder knows when it asked for the trace.
	if !ok || r.Wall {
		return r, err
	}
	r.Wall, r.WallOffset = true, offset
	if !exact {
		r.Lacks = append(r.Lacks,
			account.Lack{Text: "the wall clock: UTC times are the recorder's, early by the time that the target took to answer"})
	}
	return r, err
}

// watched is a trace that shows on a terminal how far the reading is.
type watched struct {
	*exectrace.Trace
	show   *progress
	events int64
	shown  time.Time
}

// Blocks yields the trace's blocks and counts them.
func (w *watched) Blocks() iter.Seq[[]exectrace.Event] {
	if !w.show.live {
		return w.Trace.Blocks()
	}
	start := time.Now()
	return func(yield func([]exectrace.Event) bool) {
		for block := range w.Trace.Blocks() {
			w.count(start, len(block))
			if !yield(block) {
				return
			}
		}
	}
}

// Batches yields the events packed, and counts them.
func (w *watched) Batches() iter.Seq[*exectrace.Batch] {
	if !w.show.live {
		return w.Trace.Batches()
	}
	start := time.Now()
	return func(yield func(*exectrace.Batch) bool) {
		for b := range w.Trace.Batches() {
			w.count(start, len(b.Records))
			if !yield(b) {
				return
			}
		}
	}
}

// count counts events that were read, and shows the number five times a second once a second has
// passed.
func (w *watched) count(start time.Time, events int) {
	w.events += int64(events)
	if now := time.Now(); now.Sub(start) > time.Second && now.Sub(w.shown) > 200*time.Millisecond {
		w.shown = now
		w.show.line(readLine(w.events, w.Trace.Stats().Bytes, w.Trace.Version()))
	}
}

// readLine says how far the reading is. The reader has no one position, since two workers read at
// several places. From format 1.22 on an event takes 4.9 to 5.4 bytes, which is near enough for a
// person who waits; earlier formats vary.
func readLine(events, bytes int64, v exectrace.Version) string {
	line := fmt.Sprintf("explaining: %.1f million events of a trace of %s", float64(events)/1e6, finding.Bytes(bytes))
	if v >= 22 && bytes > 0 {
		line += fmt.Sprintf(", about %d %%", min(99, events*515/bytes))
	}
	return line
}
