package ledger

import (
	"context"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/ledger/thread"
	"github.com/whystall/whystall/internal/oncpu"
	"github.com/whystall/whystall/internal/sched"
)

// maxMisplaced is the share of goroutines' transitions, in 1/100 %, that may fall where their
// thread was off a CPU. Beyond it, the report says that the clocks and records do not fit.
const maxMisplaced = 5

// kernel fills in what the kernel's records add beside the requests.
func (p *pass) kernel(r *account.Result, slow *books.Column) {
	k := p.o.Kernel
	if k == nil {
		return
	}
	r.Kernel = p.sums()
	r.Kernel.OldClock = p.clock
	var requests capacity.Times
	if p.j != nil {
		r.Kernel.Joined, r.Kernel.Whole, r.Kernel.ShiftNS = true, p.j.whole, p.j.shift
		r.Kernel.Late = account.Late{Sockets: p.j.sockets.sum(), Timers: p.j.timers.sum()}
		r.Kernel.Align = p.align.sum()
		stws, _ := p.tl.STWs()
		r.Kernel.Fair = p.align.fair(stws)
		a := r.Kernel.Align
		// Goroutines' transitions fall where their threads were off a CPU: the clocks do not fit.
		misplaced := a.OffCPU*100_00 > a.Transitions*maxMisplaced || p.clock != nil
		r.Kernel.Barriers = p.j.paths.results(slow, misplaced)
		requests = slices.Clone(p.flight.List)
		for i := range requests {
			requests[i].Lo += p.j.base
			requests[i].Hi += p.j.base
		}
	} else {
		r.Kernel.Barriers = pausesByNotes(k)
	}
	on := &r.Median
	if on.Requests == 0 {
		on = &r.Slow
	}
	r.CPUs = capacity.CPUs(k, p.o.Set, requests, capacity.Waited(on))
}

// noGoTrace is why a Go program without a trace has no requests.
const noGoTrace = "there is no execution trace that tells of goroutines, and a Go program's threads serve whichever of them can run"

// RunKernel accounts for a Go program without a trace, by the kernel's records: CPUs, threads, and
// pauses by the runtime's notes. Its requests are goroutines', which any of its threads takes up in
// turn, so none can be seen.
func RunKernel(ctx context.Context, k *sched.Timeline, o Options) (*account.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, e := k.Span()
	r := &account.Result{Begin: b, End: e, Monotonic: true, Kernel: thread.Beside(k, oncpu.New(k), o.Set)()}
	r.Requests.None, r.Requests.NoRequestsCause = account.NoneNoTrace, noGoTrace
	r.Kernel.Barriers = pausesByNotes(k)
	r.CPUs = capacity.CPUs(k, o.Set, nil, nil)
	goRan(k, r.Kernel)
	capacity.AddSeries(r, o.Set, 0)
	return r, nil
}
