package collect

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sensor/bpf"
	"github.com/whystall/whystall/internal/sensor/symbol"
)

var _ = registerLocal(&Local{
	Name:   "kernel",
	Doc:    "Records by eBPF which threads are on which CPUs, who wakes those of the target, and what they wait for.",
	Order:  10,
	Tier:   TierBPF,
	Member: kernel.Member,
	Probe:  func(Process) error { return bpf.Probe() },
	Tries:  true,
	Record: recordBPF,
})

const (
	// drainEvery keeps a ring of 2 MiB below half at 500 000 events a second; a fuller one is read
	// again at once. Nearly empty rings are read seldom, as waking up costs more than reading then.
	drainEvery  = 20 * time.Millisecond
	drainSeldom = beat
	flushEvery  = 250 * time.Millisecond
	// drainAt is how full a ring should be when it is read: bursts have room for seven times as
	// much.
	drainAt = 1.0 / 8
	// tooLate and tooFull are when our threads must no longer run behind others.
	tooLate = 50 * time.Millisecond
	tooFull = 1.0 / 4
	// maxBatch and maxKept bound the records held in memory, which matters at some 100 000 a
	// second.
	maxBatch = 4096
	maxKept  = 1 << 16
	// settle is how much later than the others an event may come that an interrupt held up.
	settle = 50 * time.Millisecond
)

// recordBPF reads the rings. What takes longer runs beside it: another goroutine names the frames
// of stacks.
func recordBPF(ctx context.Context, p Process, w io.Writer) (_ *evidence.Cost, err error) {
	runtime.LockOSThread() // its CPU time is read by thread
	defer runtime.UnlockOSThread()
	start := bpf.ThreadTime()
	named := newNaming(p) // first: it takes as long as a ring can wait to be read
	defer named.close()
	unwinder := newUnwinder(p, named)
	if unwinder != nil {
		defer unwinder.Close()
	}
	o := bpf.Options{PID: p.PID, Stacks: p.Stacks, Copy: unwinder != nil, Turns: !named.goroutines()}
	o.Loaded = debug.FreeOSMemory // the kernel's types took 20 MB
	pace := &bpf.Pace{Share: p.Start}
	pace.Keep()
	o.Step = pace.Keep
	r, err := bpf.Open(o)
	if errors.Is(err, bpf.ErrRefused) {
		return nil, unavailable{err}
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	named.readKernel(p, r.Symbols())
	proc := filepath.Join(p.Root, "/proc", strconv.Itoa(p.PID))
	s := &bpfStream{
		r: r, files: fileWaits{fds: filepath.Join(proc, "fd"), ends: socketEnds{dir: filepath.Join(proc, "net")}}, mapped: mappedFiles{maps: filepath.Join(proc, "maps")},
		cgroups: newCgroupPaths(p.Root), threads: map[uint32]*bpfThread{},
		stacks: map[uint64]stackID{}, seed: maphash.MakeSeed(),
	}
	if s.w, err = kernel.NewWriter(w, s.header(named)); err != nil {
		return nil, err
	}
	if err := s.listThreads(); err != nil {
		return nil, err
	}
	named.start(s.w)
	s.budget = newBPFBudget(r, p, named.spent.Load)
	if p.Recording != nil {
		p.Recording()
	}
	s.naming = named
	s.unwinder = unwinder
	err = s.run(ctx)
	cost := &evidence.Cost{Lost: s.lost}
	cost.KernelNS, cost.TargetNS, cost.Lowered = s.budget.end(s.counts)
	cost.CPUNS = named.end()
	if e := s.w.Close(); err == nil {
		err = e
	}
	_, cost.Records = s.w.Written()
	cost.CPUNS += bpf.ThreadTime() - start
	if errors.Is(err, ErrCut) {
		err = nil // the runner says so
	}
	return cost, err
}

// bpfStream turns events into records.
type bpfStream struct {
	self     uint32 // our own process, in the host's namespace; 0 until it was seen
	r        *bpf.Recorder
	w        *kernel.Writer
	naming   *naming
	unwinder *symbol.Table     // of its own: naming holds the other while it reads symbols
	copied   [4096]copiedStack // by the low bits of the thread: the last
	pcs      []uint64
	seed     maphash.Seed
	budget   *bpfBudget
	counts   eventCounts
	cgroups  *cgroupPaths
	threads  map[uint32]*bpfThread
	seen     [4096]uint32 // threads that are known to be written, by their low bits
	stacks   map[uint64]stackID
	batch    []kernel.Record
	kept     int // records since the last flush
	losses   []bpf.Loss
	lost     int64
	lossAt   int64
	broken   error // first event that could not be read
	files    fileWaits
	mapped   mappedFiles
}

func (s *bpfStream) header(n *naming) kernel.Header {
	h := kernel.Header{
		Source: "bpf", Kernel: release(), Arch: runtime.GOARCH, PID: s.r.Target.TID, CPUs: s.r.CPUs,
		PerTask: s.r.PerTask, AllTasks: true,
	}
	for _, part := range s.r.Attached {
		h.Recorded = append(h.Recorded, partSights[part]...)
	}
	if !n.goroutines() && slices.Contains(h.Recorded, kernel.SightSockets) {
		h.Recorded = append(h.Recorded, kernel.SightTurns, kernel.SightUnread)
	}
	for _, m := range s.r.Missing {
		h.Missing = append(h.Missing, kernel.Missing{What: partSights[m.Part], Why: m.Why})
	}
	h.Missing = append(h.Missing, n.missing...)
	if n.table != nil {
		if notes, err := n.table.Notes(); err == nil {
			h.StopNote, h.SafeNote, h.NoteFrom = notes.Stop, notes.Safe, notes.From
		}
	}
	return h
}

func (s *bpfStream) run(ctx context.Context) error {
	n, err := bpf.NewNap(ctx)
	if err != nil {
		return err
	}
	defer n.Close()
	flushed := time.Now()
	s.lossAt = monotonic()
	next := drainEvery
	for ended := false; !ended; {
		nap, asleep := untilBeat(next), time.Now()
		n.Wait(nap)
		ended = ctx.Err() != nil
		full, took := s.r.Fullest(), time.Since(asleep)
		if took > nap+tooLate || full > tooFull {
			bpf.Hurry()
		}
		next = nextDrain(full, took)
		upTo, err := s.drain()
		for err == nil && s.r.Fullest() > 0.25 && ctx.Err() == nil {
			upTo, err = s.drain()
		}
		if err != nil {
			return err
		}
		now := time.Now()
		if rec, changed := s.budget.tick(now, s.counts); changed {
			s.w.Records([]kernel.Record{rec})
		}
		if ended || now.Sub(flushed) >= flushEvery || s.kept > maxKept {
			flushed, s.kept = now, 0
			s.writeLosses()
			if err := s.w.Flush(upTo - int64(settle)); err != nil {
				return err
			}
		}
	}
	return s.broken
}

// nextDrain is when to read again, if the fullest ring was so full after that time.
func nextDrain(full float64, took time.Duration) time.Duration {
	if full < 1.0/16 {
		return drainSeldom
	}
	return min(max(drainEvery, time.Duration(float64(took)*drainAt/full)), drainSeldom)
}

func (s *bpfStream) drain() (upTo int64, err error) {
	upTo, broken := s.r.Read(s.event)
	if broken != nil && s.broken == nil {
		s.broken = broken
	}
	return upTo, s.put()
}

func (s *bpfStream) put() error {
	s.counts.events += int64(len(s.batch))
	s.kept += len(s.batch)
	err := s.w.Records(s.batch)
	s.batch = s.batch[:0]
	return err
}

// writeLosses writes how much was lost since the last time.
func (s *bpfStream) writeLosses() {
	now := monotonic()
	s.losses = s.r.Losses(s.losses[:0])
	for _, l := range s.losses {
		s.lost += int64(l.Events)
		s.w.Records([]kernel.Record{{
			Time: s.lossAt, CPU: uint16(l.CPU), Kind: kernel.Lost,
			Arg: [3]uint64{l.Events + l.Stacks, l.Stacks, uint64(now - s.lossAt)},
		}})
	}
	// Stacks that came faster than they could be named have a number but no frames.
	if n := s.naming.dropped; n > 0 {
		s.naming.dropped = 0
		s.w.Records([]kernel.Record{{Time: s.lossAt, Kind: kernel.Lost,
			Arg: [3]uint64{uint64(n), uint64(n), uint64(now - s.lossAt)}}})
	}
	s.lossAt = now
}
