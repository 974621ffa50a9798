package sched

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// KernelOptions bound what a Kernel keeps. The zero value is right for most.
type Options struct {
	Bytes int // of columns; 0: 256 MiB
}

// NewKernel reads a stream whole. See [Kernel].
func New(src kernel.Source) (*Timeline, error) { return NewWith(src, Options{}) }

// NewKernelWith is NewKernel with bounds. An error is the source's: what it gave before is lost.
//
// The states follow from the switches:
//  1. A thread that leaves its CPU is throttled if the record says so, queued if it could have run on, else blocked.
//  2. A waking ends blocked, and it is queued until it comes to a CPU.
//  3. Throttled ends with the last unthrottling of its CPU before it comes back, and it is queued from there on.
//  4. Who leaves a CPU must be who came last. Else records are missing: who leaves was there since an unknown moment, and who came
//     last left at one. Both are unknown for that long.
//  5. Before a thread's first record nothing is known; only that one who leaves had been there.
func NewWith(src kernel.Source, o Options) (*Timeline, error) {
	k := &Timeline{src: src}
	k.limit = o.Bytes
	if k.limit <= 0 {
		k.limit = 256 << 20
	}
	k.header = src.Header()
	b := kbuilder{kernelState: &k.kernelState}
	b.placed = k.header.Source == "bpf" && !slices.Contains(k.header.Features, "run queues")
	for _, c := range k.header.CPUs {
		b.cpu(c)
	}
	err := src.Each(func(recs []kernel.Record) error {
		for i := range recs {
			b.record(&recs[i])
		}
		b.trim()
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the kernel's records: %w", err)
	}
	b.finish(src)
	return k, nil
}

// kbuilder is what is needed while reading.
type kbuilder struct {
	*kernelState
	any  bool
	now  int64
	fold bool // others' switches are folded

	// placed tells that there are no wake-ups but of new threads: who is woken waits for the CPU it left, unless it is moved.
	placed bool
	files  map[uint64]Block // what a wait for a descriptor is in; BlockUnknown where it was several kinds of file
}

const (
	segBytes    = 16
	offBytes    = 48
	runBytes    = 16
	eventBytes  = 80 // with what lists it by thread
	threadBytes = 512
	maxKthreads = 1 << 18
	maxLives    = 1 << 20
)

func (b *kbuilder) record(r *kernel.Record) {
	t := clampTime(r.Time)
	if !b.any {
		b.any, b.begin, b.now = true, t, t
		b.end = t
	}
	// The order is promised. Of a source that breaks its promise the later time holds.
	t = max(t, b.now)
	b.now, b.end = t, t
	switch r.Kind {
	case kernel.Switch:
		b.switched(r, t)
	case kernel.Waking:
		b.waking(r, t)
	case kernel.Wakeup:
		b.wakeup(r, t)
	case kernel.WaitStack:
		b.stack(r, t)
	case kernel.Unthrottle:
		if c := b.cpu(int(r.CPU)); c != nil {
			c.mark = t
		}
		b.event(r, t)
	case kernel.Clone:
		b.clone(r, t)
	case kernel.File:
		b.file(r)
	case kernel.Exit:
		b.exit(r, t)
	case kernel.Signal:
		if th := b.find(r.Other); th != nil {
			th.signalled, th.signaller = t, r.TID
		}
		b.event(r, t)
	case kernel.Lost:
		b.lost(r, t)
	case kernel.Held:
		b.held(r, t)
	case kernel.Detail:
		b.fold = r.Arg[0] > 0 && r.Arg[1] != 1 && b.header.Source != "perf"
		if len(b.levels) < 1<<16 {
			b.levels = append(b.levels, Level{t, int(min(r.Arg[0], 1<<20)), b.fold, r.Arg[2]})
		}
	case kernel.None:
	default:
		b.event(r, t)
	}
}

// cpu is CPU n, made if it is not there; nil for a number that none has.
func (b *kbuilder) cpu(n int) *kcpu {
	if n < 0 || n >= 1<<13 {
		return nil
	}
	if n >= len(b.cpus) {
		b.cpus = append(b.cpus, make([]kcpu, n+1-len(b.cpus))...)
	}
	return &b.cpus[n]
}

// thread is the target's thread tid, made if it is not there; nil where there are too many.
func (b *kbuilder) thread(tid uint32) *kthread {
	if th := b.find(tid); th != nil {
		return th
	}
	if tid == 0 || len(b.threads) >= maxKthreads {
		b.crowd++
		return nil
	}
	b.index.set(tid, int32(len(b.threads)))
	b.threads = append(b.threads, kthread{tid: tid})
	b.bytes += threadBytes
	return &b.threads[len(b.threads)-1]
}

// push begins th's next segment at t, which is not before its last.
func (b *kbuilder) push(th *kthread, t int64, d Doing, cpu int16, off uint32, meta uint16) *kseg {
	meta |= uint16(d)
	n := len(th.segs)
	if n == 0 && t > b.begin {
		th.segs = append(th.segs, kseg{begin: b.begin, cpu: -1, meta: uint16(Unknown)})
		b.bytes += segBytes
		n++
	}
	if n > 0 && th.segs[n-1].begin >= t {
		th.segs[n-1] = kseg{th.segs[n-1].begin, off, cpu, meta}
		return &th.segs[n-1]
	}
	th.segs = append(th.segs, kseg{t, off, cpu, meta})
	b.bytes += segBytes
	return &th.segs[n]
}

// unknown makes th unknown from t on: records are missing.
func (b *kbuilder) unknown(th *kthread, t int64) {
	if n := len(th.segs); n > 0 {
		t = max(t, th.segs[n-1].begin)
	}
	b.push(th, t, Unknown, -1, 0, ksegMissing)
}

func (th *kthread) last() *kseg {
	if n := len(th.segs); n > 0 {
		return &th.segs[n-1]
	}
	return nil
}

// off begins a time off a CPU and gives its number.
func (b *kbuilder) off(th *kthread) (*koff, uint32) {
	th.offs = append(th.offs, koff{call: -1, wcall: -1})
	b.bytes += offBytes
	return &th.offs[len(th.offs)-1], uint32(len(th.offs))
}

// stack gives a wait its stacks.
func (b *kbuilder) stack(r *kernel.Record, t int64) {
	th := b.find(r.TID)
	if th == nil {
		return
	}
	s := th.last()
	if s == nil {
		return
	}
	if r.Flags&kernel.Leaving != 0 && s.doing() == OnCPU {
		th.leaving = [2]uint32{r.Kernel, r.User}
		return
	}
	if s.doing() == Unknown || s.doing() == Gone {
		return
	}
	if s.off == 0 {
		// of the whole time off a CPU
		_, n := b.off(th)
		s.off = n
		for i := len(th.segs) - 2; i >= 0 && th.segs[i].off == 0; i-- {
			if d := th.segs[i].doing(); d != Queued && d != Throttled && d != Blocked {
				break
			}
			th.segs[i].off = n
		}
	}
	o := &th.offs[s.off-1]
	if r.Kernel != 0 {
		o.kernel = r.Kernel
	}
	if r.User != 0 {
		o.user = r.User
	}
}

func (th *kthread) life() *life {
	if n := len(th.lives); n > 0 {
		return &th.lives[n-1]
	}
	return nil
}

func (b *kbuilder) born(th *kthread, t int64, maker, user uint32) {
	b.totals.Created++
	if len(th.lives) < maxLives {
		th.lives = append(th.lives, life{birth: t, maker: maker, user: user})
		b.bytes += 40
	}
	th.exiting = false
}

func (b *kbuilder) clone(r *kernel.Record, t int64) {
	th := b.thread(r.TID)
	b.event(r, t)
	if th == nil {
		return
	}
	if l := th.life(); l != nil && l.exit == 0 && l.maker == 0 && l.birth != 0 {
		l.maker, l.user = r.Other, r.User // it was seen before who made it
		return
	}
	s := th.last()
	if s == nil {
		b.push(th, b.begin, Gone, -1, 0, 0)
	} else if s.doing() != Gone {
		b.push(th, t, Gone, -1, 0, 0) // the number was used again, and the exit is missing
	}
	b.born(th, t, r.Other, r.User)
}

func (b *kbuilder) exit(r *kernel.Record, t int64) {
	th := b.thread(r.TID)
	b.event(r, t)
	if th == nil {
		return
	}
	if !b.header.AllTasks {
		b.push(th, t, Gone, -1, 0, 0)
		b.ended(th, t)
		return
	}
	th.exiting = true
	if l := th.life(); l != nil && l.exit == 0 {
		l.exit = t
	} else if len(th.lives) < maxLives {
		th.lives = append(th.lives, life{exit: t})
		b.bytes += 40
	}
	b.totals.Exited++
}

// ended notes the end of th's life unless its exit was seen.
func (b *kbuilder) ended(th *kthread, t int64) {
	l := th.life()
	switch {
	case th.exiting:
	case l != nil && l.exit == 0:
		l.exit = t
		b.totals.Exited++
	case len(th.lives) < maxLives:
		th.lives = append(th.lives, life{exit: t})
		b.totals.Exited++
	}
	th.exiting = false
}

func (b *kbuilder) event(r *kernel.Record, t int64) {
	e := Event{Kind: r.Kind, Flags: r.Flags, Begin: t, End: t, TID: r.TID, Other: r.Other, CPU: cpuOf(r.CPU),
		Kernel: r.Kernel, User: r.User, Arg: [2]uint64{r.Arg[1], r.Arg[2]}}
	switch r.Kind {
	case kernel.Fault, kernel.Reclaim, kernel.Compaction, kernel.MmapLock, kernel.KernelLock, kernel.NUMAMove, kernel.Disk, kernel.SocketReady:
		e.End = t + int64(min(r.Arg[0], maxTimeNS))
	case kernel.Unthrottle, kernel.Sample:
		e.Arg[0] = r.Arg[0]
	}
	b.events = append(b.events, e)
	b.bytes += eventBytes
}

// file notes what a descriptor is.
func (b *kbuilder) file(r *kernel.Record) {
	is := BlockUnknown
	switch r.Arg[1] {
	case kernel.FileSocket:
		is = BlockNetwork
	case kernel.FilePipe:
		is = BlockPipe
	}
	was, told := b.files[r.Arg[0]]
	switch {
	case told && was != is:
		is = BlockUnknown
	case !told && len(b.files) >= mostDescriptors:
		return
	case b.files == nil:
		b.files = map[uint64]Block{}
	}
	b.files[r.Arg[0]] = is
}

// mostDescriptors bounds those whose kind is kept.
const mostDescriptors = 1 << 16

// held notes who had a CPU. The same is told for each thread that was queued there.
func (b *kbuilder) held(r *kernel.Record, t int64) {
	c := b.cpu(int(r.CPU))
	ns := int64(min(r.Arg[0], maxTimeNS))
	if c == nil || ns == 0 || b.find(r.Other) != nil {
		return // who is of the target is told by its switches
	}
	h := hold{t - ns, t, r.Other}
	if n := len(c.held); n > 0 && c.held[n-1].end == h.end && c.held[n-1].tid == h.tid {
		c.held[n-1].begin = min(c.held[n-1].begin, h.begin)
		return
	}
	c.held = append(c.held, h)
	b.bytes += 24
}

// lost notes a stretch in which a CPU's records are missing.
func (b *kbuilder) lost(r *kernel.Record, t int64) {
	stacks := int64(min(r.Arg[1], r.Arg[0], maxTimeNS))
	n := int64(min(r.Arg[0], maxTimeNS)) - stacks
	b.totals.Lost = min(b.totals.Lost+n, maxTimeNS)
	b.totals.LostStacks = min(b.totals.LostStacks+stacks, maxTimeNS)
	if n == 0 {
		return
	}
	c := b.cpu(int(r.CPU))
	if c == nil {
		return
	}
	s := Span{t, t + int64(min(r.Arg[2], maxTimeNS))}
	if m := len(c.lost); m > 0 && s.Begin <= c.lost[m-1].End {
		c.lost[m-1].End = max(c.lost[m-1].End, s.End)
		return
	}
	c.lost = append(c.lost, s)
	b.bytes += 16
}
