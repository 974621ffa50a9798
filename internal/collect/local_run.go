package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/evidence/kernel"
)

// How long local collectors may take to start and to end. Loading the kernel's programs takes some
// hundred ms, and a hundred times that on a machine with no CPU to spare; a trace recorded before
// that is of no use. Resolving a large program's symbols at the end takes some seconds.
const (
	toStart = 60 * time.Second
	toEnd   = 60 * time.Second
	// linger is how much longer than the trace they record: events of its last moments reach us
	// later.
	linger = 50 * time.Millisecond
	// watchEvery is how often the target is looked at.
	watchEvery = 200 * time.Millisecond
)

// startLocals starts the process' collectors and waits until they record. The function it returns
// stops them, and returns a failure of our own disk, if there was one.
func (r *run) startLocals(ctx context.Context) (stop func() *failure) {
	if r.target == nil {
		return func() *failure { return nil }
	}
	r.o.Progress(Progress{Doing: "attaching"})
	// Ctrl-C ends the trace first, and the local collectors after it.
	interrupted := ctx.Done()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cpu := ownCPU()
	restoreProcs, restoreHeap := moreProcs(), moreHeap()
	var wg sync.WaitGroup
	var starts []chan struct{}
	var mu sync.Mutex // guards failed
	var failed error
	for _, cs := range r.byMember() {
		started := make(chan struct{})
		starts = append(starts, started)
		wg.Go(func() {
			once := sync.OnceFunc(func() { close(started) })
			defer once()
			if err := r.local(ctx, cs, once); err != nil {
				mu.Lock()
				failed = err
				mu.Unlock()
			}
		})
	}
	patience := time.After(toStart)
	for _, started := range starts {
		select {
		case <-started:
		case <-interrupted:
		case <-patience:
			patience = time.After(0)
		}
	}
	r.target.start()
	once := ownCPU() - cpu
	return func() *failure {
		time.Sleep(linger)
		r.o.Progress(Progress{Doing: "ending"})
		ending := ownCPU()
		cancel()
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(toEnd):
			r.o.Progress(Progress{Note: fmt.Sprintf("a collector did not end within %s: what it wrote is kept", toEnd)})
		}
		restoreProcs()
		restoreHeap()
		cost := evidence.Cost{CPUNS: ownCPU() - cpu, OnceNS: once + ownCPU() - ending,
			TargetNS: r.target.used(), SharedQuota: r.shared.Group, QuotaCPUs: r.shared.CPUs}
		r.w.Update(func(m *evidence.Manifest) {
			m.Recorder = &cost
			m.Target.Ended, m.Target.Halted = r.target.story(), r.target.halted()
		})
		mu.Lock()
		defer mu.Unlock()
		if failed != nil {
			return failf(full, "%v", failed)
		}
		return nil
	}
}

// byMember groups the collectors that offer the same member, in their order.
func (r *run) byMember() (groups [][]*Local) {
	at := map[string]int{}
	for _, c := range Locals() {
		if r.o.NoKernel && c.Member == kernel.Member {
			continue
		}
		i, ok := at[c.Member]
		if !ok {
			i = len(groups)
			at[c.Member] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}

// local runs the first of cs that works. An error is one of our own disk.
func (r *run) local(ctx context.Context, cs []*Local, started func()) error {
	var t evidence.Target
	r.w.Update(func(m *evidence.Manifest) { t = m.Target })
	p := Process{
		PID: r.o.PID, NSPID: t.NSPID, For: int64(r.o.For), WithArgs: r.o.WithArgs,
		Budget: r.o.Budget, Stacks: !r.o.NoStacks && !r.thrashes,
		Ease: func() int { return int(r.ease.Load()) }, MaxSize: r.o.MaxSize, Quota: r.shared.CPUs,
		Start: r.startCPUs(), Recording: started,
	}
	if cpus, quota := limitOf(r.o.PID, runtime.NumCPU()); quota {
		p.Limit = cpus
	}
	for _, c := range cs {
		if !c.Tries {
			if err := c.Probe(p); err != nil {
				r.settle(evidence.Collector{Name: c.Name, State: evidence.Unavailable, Why: oneLine(err)})
				continue
			}
		}
		wrote, err := r.recordLocal(ctx, c, p)
		if err != nil {
			return err
		}
		if wrote || ctx.Err() != nil {
			return nil
		}
	}
	return nil
}

// recordLocal runs one collector to its end and settles its outcome. An error is one of our own
// disk.
func (r *run) recordLocal(ctx context.Context, c *Local, p Process) (wrote bool, err error) {
	out := evidence.Collector{Name: c.Name, State: evidence.Broken,
		Why: "whystall was killed while it recorded", Members: []string{c.Member}}
	r.settle(out)
	f, err := r.w.Member(c.Member)
	if err != nil {
		return false, fmt.Errorf("create %s: %w", c.Member, root(err))
	}
	w := &bounded{w: f, left: r.o.MaxSize, started: p.Recording, count: func(n int) { r.wrote.Add(int64(n)) }}
	cost, err := c.Record(ctx, p, w)
	if e := f.Close(); e != nil && w.disk == nil {
		w.disk = e
	}
	out.Cost, out.State, out.Why = cost, evidence.Ready, ""
	if w.n == 0 {
		r.w.Remove(c.Member)
		out.Members = nil
	}
	switch {
	case w.cut:
		out.State, out.Why = evidence.Broken, "cut at --max-size "+size(r.o.MaxSize)
	case errors.As(err, &unavailable{}):
		out.State, out.Why = evidence.Unavailable, oneLine(err)
	case w.n == 0 && r.target.gone():
		// The report's first lines say so; it is no fault of the collector.
		out.State, out.Why = evidence.Unavailable, "the process had ended"
	case err != nil:
		out.State, out.Why = evidence.Broken, oneLine(err)
	case w.n == 0:
		out.State, out.Why = evidence.Broken, "it wrote nothing"
	}
	r.settle(out)
	if w.n > 0 {
		r.mu.Lock()
		r.kept++
		r.mu.Unlock()
	}
	if w.disk != nil {
		return false, fmt.Errorf("write %s: %w", c.Member, root(w.disk))
	}
	return w.n > 0, nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// bounded writes at most left bytes.
type bounded struct {
	w       io.Writer
	left    int64
	n       int64
	cut     bool
	disk    error // of our own disk
	started func()
	count   func(int)
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.started != nil {
		b.started()
		b.started = nil
	}
	if b.cut {
		return 0, ErrCut
	}
	over := int64(len(p)) > b.left
	if over {
		p = p[:b.left]
	}
	n, err := b.w.Write(p)
	b.n += int64(n)
	b.left -= int64(n)
	b.count(n)
	if err != nil {
		if b.disk == nil && errors.Is(err, syscall.ENOSPC) {
			b.disk = err
		}
		return n, err
	}
	if over {
		b.cut = true
		return n, ErrCut
	}
	return n, nil
}
