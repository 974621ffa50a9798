package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sensor/proc"
)

// How long local collectors may take to begin and to end. Loading the kernel's programs takes some hundred ms, on a machine that has no
// CPU to spare a hundred times that, and what is recorded before is of no use; resolving a large program's symbols at the end takes some seconds.
const (
	toBegin = 60 * time.Second
	toEnd   = 60 * time.Second
	// linger is how much longer than the trace they record: events of its last moments reach us later.
	linger = 50 * time.Millisecond
	// watchEvery is how often the target is looked after.
	watchEvery = 200 * time.Millisecond
)

// startLocals starts the process' collectors, waits until they record, and gives what ends them and says what of that
// is a failure of our own.
func (r *run) startLocals(ctx context.Context) (stop func() *failure) {
	if r.target == nil {
		return func() *failure { return nil }
	}
	r.o.Progress(Progress{Doing: "attaching"})
	// Ctrl-C ends the recording first, and that them.
	interrupted := ctx.Done()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cpu := ownCPU()
	fewer, less := moreProcs(), moreHeap()
	var wg sync.WaitGroup
	var begin []chan struct{}
	var failed error
	var one sync.Mutex
	for _, cs := range r.byMember() {
		began := make(chan struct{})
		begin = append(begin, began)
		wg.Go(func() {
			once := sync.OnceFunc(func() { close(began) })
			defer once()
			if err := r.local(ctx, cs, once); err != nil {
				one.Lock()
				failed = err
				one.Unlock()
			}
		})
	}
	patience := time.After(toBegin)
	for _, b := range begin {
		select {
		case <-b:
		case <-interrupted:
		case <-patience:
			patience = time.After(0)
		}
	}
	r.target.begin()
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
		fewer()
		less()
		cost := evidence.Cost{CPUNS: ownCPU() - cpu, OnceNS: once + ownCPU() - ending, TargetNS: r.target.used(), SharedQuota: r.shared.Group, QuotaCPUs: r.shared.CPUs}
		r.w.Update(func(m *evidence.Manifest) {
			m.Recorder = &cost
			m.Target.Ended, m.Target.Halted = r.target.story(), r.target.halted()
		})
		one.Lock()
		defer one.Unlock()
		if failed != nil {
			return failf(full, "%v", failed)
		}
		return nil
	}
}

// moreProcs gives the runtime Ps to spare until the function it returns. Where threads of ours that have one wait seconds for a CPU, one that has the CPU
// comes back from each system call only if a P is left.
func moreProcs() (fewer func()) {
	return spareP.hold(func() int { return runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + spareProcs) }, func(was int) { runtime.GOMAXPROCS(was) })
}

// moreHeap has the runtime collect less often until the function it returns: a collection stops the world, and waits for the same threads. Five came in
// the first half second, of a heap of 3 to 8 MB.
func moreHeap() (less func()) {
	return spareHeap.hold(func() int { return debug.SetGCPercent(400) }, func(was int) { debug.SetGCPercent(was) })
}

var spareP, spareHeap held

// held is a setting of the runtime's that several hold: segments of a recording overlap. The first takes it, the last gives back what was found.
type held struct {
	sync.Mutex
	users, was int
}

func (h *held) hold(set func() (was int), back func(was int)) (release func()) {
	h.Lock()
	defer h.Unlock()
	if h.users++; h.users == 1 {
		h.was = set()
	}
	return func() {
		h.Lock()
		defer h.Unlock()
		if h.users--; h.users == 0 {
			back(h.was)
		}
	}
}

// spareProcs are enough for those of our goroutines that may be at work at once.
const spareProcs = 6

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

// local runs the first of cs that works. The error is one of our own disk.
func (r *run) local(ctx context.Context, cs []*Local, began func()) error {
	var t evidence.Target
	r.w.Update(func(m *evidence.Manifest) { t = m.Target })
	p := Process{PID: r.o.PID, NSPID: t.NSPID, For: int64(r.o.For), WithArgs: r.o.WithArgs, Budget: r.o.Budget, Stacks: !r.o.NoStacks, MaxSize: r.o.MaxSize, Quota: r.shared.CPUs, Recording: began}
	for _, c := range cs {
		if !c.Tries {
			if err := c.Probe(p); err != nil {
				r.settle(evidence.Collector{Name: c.Name, State: evidence.Unavailable, Why: oneLine(err)})
				continue
			}
		}
		out := evidence.Collector{Name: c.Name, State: evidence.Broken, Why: "it was recording when whystall was ended", Members: []string{c.Member}}
		r.settle(out)
		f, err := r.w.Member(c.Member)
		if err != nil {
			return fmt.Errorf("create %s: %w", c.Member, root(err))
		}
		w := &bounded{w: f, left: r.o.MaxSize, began: began, count: func(n int) { r.wrote.Add(int64(n)) }}
		cost, err := c.Record(ctx, p, w)
		if e := f.Close(); e != nil && w.disk == nil {
			w.disk = e
		}
		out.Cost, out.State, out.Why = cost, evidence.Ready, ""
		if w.n == 0 {
			r.w.Remove(c.Member)
			out.Members = nil
		}
		if err != nil || w.n == 0 {
			out.State = evidence.Broken
			if out.Why = "it wrote nothing"; err != nil {
				out.Why = oneLine(err)
			}
			if errors.As(err, &unavailable{}) {
				out.State = evidence.Unavailable
			}
		}
		if w.cut {
			out.State, out.Why = evidence.Broken, "cut at --max-size "+size(r.o.MaxSize)
		}
		if w.n == 0 && out.State == evidence.Broken && r.target.gone() {
			out.State, out.Why = evidence.Unavailable, "the process had ended" // said in the first lines; no fault of the collector
		}
		r.settle(out)
		if w.n > 0 {
			r.mu.Lock()
			r.kept++
			r.mu.Unlock()
		}
		if w.disk != nil {
			return fmt.Errorf("write %s: %w", c.Member, root(w.disk))
		}
		if w.n > 0 || ctx.Err() != nil {
			return nil
		}
	}
	return nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// bounded writes at most left bytes.
type bounded struct {
	w     io.Writer
	left  int64
	n     int64
	cut   bool
	disk  error // of our own disk
	began func()
	count func(int)
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.began != nil {
		b.began()
		b.began = nil
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

// mostSaid bounds what is told of a target that does this all the time.
const mostSaid = 10

// watch looks after a target: its end, another program in its place, its CPU time.
type watch struct {
	mu        sync.Mutex
	l         life
	cpu, last int64
	said      []string
	ended     bool
	halt      halt
	kin       family
}

// newWatch begins to know pid. It may have ended by now.
func newWatch(pid int, exe string) *watch {
	w := &watch{l: life{pid: pid, exe: exe}, halt: halt{freezers: proc.FS{}.Freezers(pid)}}
	if s, ok := readProcStat(pid); ok {
		w.l.start, w.cpu, w.last, w.halt.cpu = s.start, s.cpuNS, s.cpuNS, s.cpuNS
	}
	return w
}

func (w *watch) begin() {
	w.look()
	w.mu.Lock()
	w.cpu = w.last
	w.halt.begin(time.Now())
	w.kin = familyOf(w.l.pid)
	w.mu.Unlock()
}

// look looks once and tells whether the target is there.
func (w *watch) look() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	was := w.l.exe
	ended, s := w.l.look()
	at := time.Now()
	now := at.UTC().Format("15:04:05.000 UTC")
	switch {
	case ended != "":
		w.ended = true
		w.said = append(w.said, ended+" at "+now)
		return false
	case len(w.said) >= mostSaid:
	case w.l.exe != was:
		w.said = append(w.said, fmt.Sprintf("it runs another program, %s, since %s", w.l.exe, now))
	}
	if said := w.halt.look(s, at); said != "" && len(w.said) < mostSaid {
		w.said = append(w.said, said)
	}
	w.last = s.cpuNS
	return true
}

// until calls end when the target is gone; the function it returns ends the watch.
func (w *watch) until(end func()) func() {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTimer(untilBeat(watchEvery))
		defer t.Stop()
		for {
			if !w.look() {
				end()
				return
			}
			select {
			case <-t.C:
				t.Reset(untilBeat(watchEvery))
			case <-done:
				return
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

func (w *watch) gone() bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

// used is the target's CPU time since begin, to within 10 ms, up to when it was last seen.
func (w *watch) used() int64 {
	w.look()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last - w.cpu
}

// halted tells for how long it was held up as a whole, to within the 200 ms between two looks; nil if it was not.
func (w *watch) halted() *evidence.Halt {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.halt.sum(time.Now())
}

func (w *watch) story() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := w.said
	if s := w.kin.story(familyOf(w.l.pid), w.last-w.cpu); s != "" {
		said = append(slices.Clone(said), s)
	}
	return strings.Join(said, "; ")
}

func readProcStat(pid int) (procStat, bool) {
	b, err := os.ReadFile(procDir(pid) + "/stat")
	if err != nil {
		return procStat{}, false
	}
	s, err := parseStat(b)
	return s, err == nil
}
