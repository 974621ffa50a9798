package sched

import "github.com/whystall/whystall/internal/evidence/kernel"

// builder fills the columns while records are read. Its methods here are the only ones that add to
// them; what a record means is decided in the files below.
type builder struct {
	*columns
	limit   int // of bytes
	started bool
	now     int64
	fold    bool // switches between threads of other programs are not recorded one by one

	// placed: the recorder has no record of a wake-up but of new threads. A thread that is woken is
	// queued at the CPU that it left, unless it is moved.
	placed bool
	// files has what a wait for a descriptor is in; BlockUnknown for one that was several kinds of
	// file.
	files map[uint64]Block
}

// What things cost in memory, to bound it.
const (
	segBytes    = 16
	offBytes    = 48
	runBytes    = 16
	lifeBytes   = 40
	holdBytes   = 24
	spanBytes   = 16
	eventBytes  = 80 // with its place in the lists by thread
	threadBytes = 512
	maxThreads  = 1 << 18
	maxLives    = 1 << 20 // of one thread
	maxCPUs     = 1 << 13
)

// cpuOf is the number of a CPU as segments keep it; -1 for one that none has.
func cpuOf(n uint16) int16 {
	if n > 1<<15-1 {
		return -1
	}
	return int16(n)
}

// cpu is the log of CPU n, which is made if it is new; nil for a number that no CPU has.
func (b *builder) cpu(n int) *cpuLog {
	if n < 0 || n >= maxCPUs {
		return nil
	}
	if n >= len(b.cpus) {
		b.cpus = append(b.cpus, make([]cpuLog, n+1-len(b.cpus))...)
	}
	return &b.cpus[n]
}

// thread gives the target's thread tid, and makes it if it is new. It is nil for tid 0, and if
// there are too many threads. The pointer is good until the next thread is made.
func (b *builder) thread(tid uint32) *thread {
	if th := b.find(tid); th != nil {
		return th
	}
	if tid == 0 || len(b.threads) >= maxThreads {
		return nil
	}
	b.index.set(tid, int32(len(b.threads)))
	b.threads = append(b.threads, thread{tid: tid})
	b.bytes += threadBytes
	return &b.threads[len(b.threads)-1]
}

// push starts th's next segment at t, which is not before its last. One that would start with the
// last takes its place.
func (b *builder) push(th *thread, t int64, d Doing, cpu int16, off uint32, meta uint16) *segment {
	meta |= uint16(d)
	n := len(th.segs)
	if n == 0 && t > b.begin {
		th.segs = append(th.segs, segment{begin: b.begin, cpu: -1, meta: uint16(Unknown)})
		b.bytes += segBytes
		n++
	}
	if n > 0 && th.segs[n-1].begin >= t {
		th.segs[n-1] = segment{th.segs[n-1].begin, off, cpu, meta}
		return &th.segs[n-1]
	}
	th.segs = append(th.segs, segment{t, off, cpu, meta})
	b.bytes += segBytes
	return &th.segs[n]
}

// unknown makes th unknown from t on, or from its last segment if that starts later: records are
// missing.
func (b *builder) unknown(th *thread, t int64) {
	if n := len(th.segs); n > 0 {
		t = max(t, th.segs[n-1].begin)
	}
	b.push(th, t, Unknown, -1, 0, segMissing)
}

// addOff adds a time off a CPU and returns its number, too.
func (b *builder) addOff(th *thread) (*offCPU, uint32) {
	th.offs = append(th.offs, offCPU{call: -1, waker: waker{call: -1}})
	b.bytes += offBytes
	return &th.offs[len(th.offs)-1], uint32(len(th.offs))
}

// addLife adds a life of th.
func (b *builder) addLife(th *thread, l life) {
	if len(th.lives) < maxLives {
		th.lives = append(th.lives, l)
		b.bytes += lifeBytes
	}
}

// born starts a life of th.
func (b *builder) born(th *thread, t int64, maker, user uint32) {
	b.totals.Created++
	b.addLife(th, life{birth: t, maker: maker, user: user})
	th.exiting = false
}

// ended ends th's life at its last switch, unless the record of its exit did.
func (b *builder) ended(th *thread, t int64) {
	if !th.exiting {
		b.endLife(th, t)
	}
	th.exiting = false
}

func (b *builder) endLife(th *thread, t int64) {
	if l := th.life(); l != nil && l.exit == 0 {
		l.exit = t
	} else {
		b.addLife(th, life{exit: t})
	}
	b.totals.Exited++
}

// event keeps a record as an Event.
func (b *builder) event(r *kernel.Record, t int64) {
	e := Event{Kind: r.Kind, Flags: r.Flags, Begin: t, End: t, TID: r.TID, Other: r.Other, CPU: cpuOf(r.CPU),
		Kernel: r.Kernel, User: r.User, Arg: [2]uint64{r.Arg[1], r.Arg[2]}}
	switch r.Kind {
	case kernel.Fault, kernel.Reclaim, kernel.Compaction, kernel.MmapLock, kernel.KernelLock,
		kernel.NUMAMove, kernel.Disk, kernel.SocketReady:
		e.End = t + int64(min(r.Arg[0], maxTimeNS))
	case kernel.Unthrottle, kernel.Sample:
		e.Arg[0] = r.Arg[0]
	}
	b.events = append(b.events, e)
	b.bytes += eventBytes
}
