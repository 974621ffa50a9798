package collect

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sensor/bpf"
	"github.com/whystall/whystall/internal/sensor/symbol"
)

var _ = registerLocal(&Local{
	Name:   "kernel",
	Doc:    "Hears from the kernel, by eBPF, which threads are on which CPUs, who wakes the target's, and what they wait for.",
	Order:  10,
	Tier:   TierBPF,
	Member: kernel.Member,
	Probe:  func(Process) error { return bpf.Probe() },
	Tries:  true,
	Record: recordBPF,
})

const (
	// drainEvery keeps a ring of 2 MiB below half at 500 000 events a second; a fuller one is read again at once. What is nearly
	// empty is read seldom, as waking up costs more than reading then.
	drainEvery  = 20 * time.Millisecond
	drainSeldom = beat
	flushEvery  = 250 * time.Millisecond
	// batchMost and flushMost bound the records kept, which matters at some 100 000 a second.
	batchMost = 4096
	flushMost = 1 << 16
	// settle is how long after the others an event may come that an interrupt held up.
	settle = 50 * time.Millisecond
)

// recordBPF reads the rings, and has what takes longer done beside: another goroutine names the frames of stacks.
func recordBPF(ctx context.Context, p Process, w io.Writer) (_ *evidence.Cost, err error) {
	runtime.LockOSThread() // its CPU time is read by thread
	defer runtime.UnlockOSThread()
	began := bpf.ThreadTime()
	named := newNaming(p) // first: it takes as long as a ring may wait to be read
	defer named.close()
	unwinder := newUnwinder(p, named)
	if unwinder != nil {
		defer unwinder.Close()
	}
	o := bpf.Options{PID: p.PID, Stacks: p.Stacks, Copy: unwinder != nil}
	o.Loaded = debug.FreeOSMemory // the kernel's types took 20 MB
	var turn *bpf.First
	if p.Quota == 0 { // else what we take is to be taken from that, as is said
		turn = &bpf.First{}
	}
	defer turn.End()
	o.Step = turn.Keep
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
	s := &bpfStream{r: r, files: fileWaits{fds: filepath.Join(proc, "fd")}, mapped: mappedFiles{maps: filepath.Join(proc, "maps")}, cgroups: newCgroupPaths(p.Root), threads: map[uint32]*bpfThread{}, stacks: map[uint64]stackID{}, seed: maphash.MakeSeed()}
	if s.w, err = kernel.NewWriter(w, s.header(named)); err != nil {
		return nil, err
	}
	if err := s.everybody(); err != nil {
		return nil, err
	}
	named.start(s.w)
	s.budget = newBPFBudget(r, p, named.spent.Load)
	if p.Recording != nil {
		p.Recording()
	}
	s.naming = named
	s.unwinder = unwinder
	s.first = turn
	err = s.run(ctx)
	turn.End()
	cost := &evidence.Cost{Lost: s.lost}
	cost.KernelNS, cost.TargetNS, cost.Lowered = s.budget.end(s.seenEvents())
	cost.CPUNS = named.end()
	if e := s.w.Close(); err == nil {
		err = e
	}
	_, cost.Records = s.w.Written()
	cost.CPUNS += bpf.ThreadTime() - began
	if errors.Is(err, ErrCut) {
		err = nil // the runner says so
	}
	return cost, err
}

// bpfStream turns events into records.
type bpfStream struct {
	self     uint32 // our own process, in the host's namespace; 0 until it was met
	r        *bpf.Recorder
	w        *kernel.Writer
	naming   *naming
	unwinder *symbol.Table     // of its own: naming holds the other while it reads symbols
	copied   [4096]copiedStack // by the low bits of the thread: the last
	pcs      []uint64
	seed     maphash.Seed
	budget   *bpfBudget
	events   int64
	switches int64 // of them
	foreign  int64 // of them, switches with which the target has nothing to do
	cgroups  *cgroupPaths
	threads  map[uint32]*bpfThread
	seen     [4096]uint32 // threads known to be written, by their low bits
	stacks   map[uint64]stackID
	batch    []kernel.Record
	kept     int // records since the last flush
	first    *bpf.First
	losses   []bpf.Loss
	lost     int64
	lossAt   int64
	broken   error // first event that could not be read
	files    fileWaits
	mapped   mappedFiles
}

type bpfThread struct {
	bpf.Thread
	since   int64
	written bool
}

// Threads of the machine that are remembered, to be named when they turn up: some 150 bytes each.
const maxKnown = 1 << 16

func (s *bpfStream) header(n *naming) kernel.Header {
	h := kernel.Header{
		Source: "bpf", Kernel: release(), Arch: runtime.GOARCH, PID: s.r.Target.TID, CPUs: s.r.CPUs, PerTask: s.r.PerTask, AllTasks: true,
		Features: s.r.Features, Missing: append(append([]string(nil), s.r.Missing...), n.missing...),
	}
	if n.table != nil {
		if notes, err := n.table.Notes(); err == nil {
			h.StopNote, h.SafeNote, h.NoteFrom = notes.Stop, notes.Safe, notes.From
		}
	}
	return h
}

// everybody remembers who is there, after the programs were attached: whom they tell of later is newer.
func (s *bpfStream) everybody() error {
	all, err := s.r.Threads()
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.SelfTID == uint32(os.Getpid()) {
			s.self = t.PID
		}
		if len(s.threads) < maxKnown/2 || t.FromTarget {
			s.threads[t.TID] = &bpfThread{Thread: t}
		}
	}
	return nil
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
		n.Wait(untilBeat(next))
		ended = ctx.Err() != nil
		if next = drainEvery; s.r.Fullest() < 1.0/16 {
			next = drainSeldom
		}
		upTo, err := s.drain()
		for err == nil && s.r.Fullest() > 0.25 && ctx.Err() == nil {
			upTo, err = s.drain()
		}
		if err != nil {
			return err
		}
		now := time.Now()
		if rec, changed := s.budget.tick(now, s.seenEvents()); changed {
			s.w.Records([]kernel.Record{rec})
		}
		if ended || now.Sub(flushed) >= flushEvery || s.kept > flushMost {
			flushed, s.kept = now, 0
			s.count()
			if err := s.w.Flush(upTo - int64(settle)); err != nil {
				return err
			}
		}
	}
	return s.broken
}

func (s *bpfStream) drain() (upTo int64, err error) {
	upTo, broken := s.r.Read(s.event)
	if broken != nil && s.broken == nil {
		s.broken = broken
	}
	return upTo, s.put()
}

func (s *bpfStream) seenEvents() seen { return seen{s.events, s.switches, s.foreign} }

func (s *bpfStream) put() error {
	s.first.Keep()
	s.events += int64(len(s.batch))
	s.kept += len(s.batch)
	err := s.w.Records(s.batch)
	s.batch = s.batch[:0]
	return err
}

// event takes one event. It runs for every switch of the machine.
func (s *bpfStream) event(e *bpf.Event) {
	switch e.Kind {
	case bpf.Named:
		s.name(e)
		return
	case bpf.Copied:
		s.copied[int(e.TID)%len(s.copied)] = copiedStack{e.ID, s.unwound(e)}
		return
	case bpf.Defined:
		if id, isNew := s.define(e.ID); isNew {
			s.naming.put(id, e)
		}
		return
	}
	if int(e.Kind) >= len(kinds) || kinds[e.Kind] == kernel.None || e.Time < s.r.Since {
		return
	}
	kind := kinds[e.Kind]
	if len(s.batch) >= batchMost {
		s.put() // an error stays in the writer
	}
	s.batch = append(s.batch, kernel.Record{
		Time: e.Time, TID: e.TID, Other: e.Other, CPU: e.CPU, Kind: kind, Flags: flagsOf(e.Flags), Arg: e.Arg,
	})
	rec := &s.batch[len(s.batch)-1]
	if e.Kernel != 0 {
		rec.Kernel = s.stack(e.Kernel)
	}
	if e.User != 0 {
		rec.User = s.userStack(e)
	}
	s.who(e.TID)
	s.who(e.Other)
	switch e.Kind {
	case bpf.Switch:
		s.switches++
		s.files.look(s, e)
		if e.Flags&(bpf.Target|bpf.OtherTarget) == 0 {
			s.foreign++
		}
	case bpf.Waking:
		if t := s.threads[e.Other]; t != nil && t.Kernel && serves(t.Comm) {
			rec.Flags |= kernel.Interrupt
		}
	case bpf.Fault:
		if e.Flags&bpf.Major != 0 {
			rec.User = s.mapped.fault(s, e)
		}
	case bpf.Exec:
		s.naming.exec(e.Time)
		if s.unwinder != nil {
			s.unwinder.Exec(e.Time)
		}
	}
}

// userStack gives the number of an event's user stack. Without word of a thread's return its copy was made as it began to wait, maybe on another
// CPU, whose ring is read after this one: it gets a number that is defined then.
func (s *bpfStream) userStack(e *bpf.Event) uint32 {
	whose := e.TID
	if e.Kind == bpf.Waking {
		whose = e.Other
	}
	if c := &s.copied[int(whose)%len(s.copied)]; c.hash == e.User {
		return c.id
	}
	if e.User&1 == 0 && e.Kind != bpf.WaitStack {
		return 0 // a copy that was lost
	}
	return s.stack(e.User)
}

// copiedStack is which stack a copy came to.
type copiedStack struct {
	hash uint64
	id   uint32
}

// newUnwinder gives what finds callers in code without frame pointers; nil for Go, which has them.
func newUnwinder(p Process, n *naming) *symbol.Table {
	if !p.Stacks || runtime.GOARCH != "amd64" || n.table == nil || n.table.Binary().Go {
		return nil
	}
	t, err := symbol.New(p.PID, p.Root)
	if err != nil {
		return nil
	}
	return t
}

// unwound gives the number of the stack that a copy holds, 0 where it tells nothing.
func (s *bpfStream) unwound(e *bpf.Event) uint32 {
	if s.unwinder == nil {
		return 0
	}
	s.pcs = s.unwinder.Unwind(symbol.Regs{IP: e.IP, SP: e.SP, BP: e.BP}, e.Bytes, e.Time, s.pcs[:0])
	if len(s.pcs) == 0 {
		return 0
	}
	// An event spoke of it already.
	if k, ok := s.stacks[e.ID]; ok && !k.defined {
		s.stacks[e.ID] = stackID{k.id, true}
		s.naming.send(unnamed{id: k.id, at: e.Time, user: true, exact: true, frames: slices.Clone(s.pcs)})
		return k.id
	}
	// Frame pointers' stacks are by the programs' hash, which is odd.
	hash := maphash.Bytes(s.seed, unsafe.Slice((*byte)(unsafe.Pointer(&s.pcs[0])), 8*len(s.pcs))) &^ 1
	id, isNew := s.define(hash)
	if isNew {
		s.naming.send(unnamed{id: id, at: e.Time, user: true, exact: true, frames: slices.Clone(s.pcs)})
	}
	return id
}

// serves tells whether a kernel's thread does nothing but what interrupts left.
func serves(comm string) bool {
	return strings.HasPrefix(comm, "ksoftirqd/") || strings.HasPrefix(comm, "irq/")
}

// kinds are the record's kinds by the event's.
var kinds = [...]kernel.Kind{
	bpf.Switch: kernel.Switch, bpf.Waking: kernel.Waking, bpf.Wakeup: kernel.Wakeup, bpf.Fork: kernel.Clone, bpf.Exit: kernel.Exit,
	bpf.Exec: kernel.Exec, bpf.WaitStack: kernel.WaitStack, bpf.Unthrottle: kernel.Unthrottle, bpf.Signal: kernel.Signal,
	bpf.Delivered: kernel.Delivered, bpf.Sample: kernel.Sample, bpf.Fault: kernel.Fault, bpf.Reclaim: kernel.Reclaim,
	bpf.Compaction: kernel.Compaction, bpf.MmapLock: kernel.MmapLock, bpf.TLBFlush: kernel.TLBFlush, bpf.KernelLock: kernel.KernelLock,
	bpf.NUMAMove: kernel.NUMAMove, bpf.SocketReady: kernel.SocketReady, bpf.TimerDue: kernel.TimerDue, bpf.Held: kernel.Held,
}

var flagPairs = [...]struct {
	of bpf.Flags
	is kernel.Flags
}{
	{bpf.Preempted, kernel.Preempted}, {bpf.Throttled, kernel.Throttled}, {bpf.GroupThrottled, kernel.GroupThrottled},
	{bpf.Target, kernel.Target}, {bpf.OtherTarget, kernel.OtherTarget}, {bpf.Interrupt, kernel.Interrupt}, {bpf.New, kernel.New},
	{bpf.Migrate, kernel.Migrate}, {bpf.Memcg, kernel.Memcg}, {bpf.Write, kernel.Write}, {bpf.Leaving, kernel.Leaving}, {bpf.Major, kernel.Major},
}

func flagsOf(f bpf.Flags) (k kernel.Flags) {
	if f == 0 {
		return 0
	}
	for _, p := range flagPairs {
		if f&p.of != 0 {
			k |= p.is
		}
	}
	return k
}

// who writes who a thread is when it turns up first.
func (s *bpfStream) who(tid uint32) {
	if tid == 0 || s.seen[tid%uint32(len(s.seen))] == tid {
		return
	}
	s.seen[tid%uint32(len(s.seen))] = tid
	if t := s.threads[tid]; t != nil && !t.written {
		s.write(t)
	}
}

func (s *bpfStream) write(t *bpfThread) {
	t.written = true
	out := kernel.Thread{
		Since: t.since, TID: t.TID, PID: t.PID, Comm: t.Comm, Cgroup: s.cgroups.path(t.Cgroup), Target: t.FromTarget, Kernel: t.Kernel,
	}
	if t.FromTarget {
		out.NSTID = t.NSTID
	}
	// A report that names the recorder as a neighbour must not be taken to speak of another one.
	if s.self != 0 && t.PID == s.self {
		out.Comm = "whystall, this recording"
	}
	s.w.Thread(out) // an error stays, and the next Records returns it
}

// name takes a thread's new name, or a new thread, at the time it has it. Those that have turned up are written at once.
func (s *bpfStream) name(e *bpf.Event) {
	old := s.threads[e.TID]
	if old == nil && len(s.threads) >= maxKnown {
		s.forget(e.Time)
	}
	t := &bpfThread{Thread: e.Thread, since: e.Time}
	s.threads[e.TID] = t
	if old != nil && old.written || e.Thread.FromTarget {
		s.write(t)
		return
	}
	if s.seen[e.TID%uint32(len(s.seen))] == e.TID {
		s.seen[e.TID%uint32(len(s.seen))] = 0
	}
}

// forget makes room on a machine that makes threads all the time: those that are still there are asked for again.
func (s *bpfStream) forget(now int64) {
	clear(s.threads)
	clear(s.seen[:])
	all, err := s.r.Threads()
	if err != nil {
		return // their names stay unknown
	}
	for _, t := range all[:min(len(all), maxKnown/2)] {
		s.threads[t.TID] = &bpfThread{Thread: t, since: now}
	}
}

// Stacks that are told apart; beyond them records have none. A program that runs code it makes on the fly has ever new ones.
const maxBPFStacks = 1 << 18

// stackID is a stack's number in the stream, and whether its frames have come: another CPU's ring may speak of it first.
type stackID struct {
	id      uint32
	defined bool
}

// stack gives a stack's number in the stream, 0 when there are too many.
func (s *bpfStream) stack(hash uint64) uint32 {
	k, ok := s.stacks[hash]
	if !ok && len(s.stacks) < maxBPFStacks {
		k.id = uint32(len(s.stacks) + 1)
		s.stacks[hash] = k
	}
	return k.id
}

// define gives a stack's number, and whether this is the first time that its frames come.
func (s *bpfStream) define(hash uint64) (id uint32, isNew bool) {
	id = s.stack(hash)
	if id == 0 || s.stacks[hash].defined {
		return id, false
	}
	s.stacks[hash] = stackID{id, true}
	return id, true
}

// count writes what was lost.
func (s *bpfStream) count() {
	now := monotonic()
	s.losses = s.r.Losses(s.losses[:0])
	for _, l := range s.losses {
		s.lost += int64(l.Events)
		s.w.Records([]kernel.Record{{
			Time: s.lossAt, CPU: uint16(l.CPU), Kind: kernel.Lost, Arg: [3]uint64{l.Events + l.Stacks, l.Stacks, uint64(now - s.lossAt)},
		}})
	}
	// Stacks that came faster than they could be named have a number and no frames.
	if n := s.naming.dropped; n > 0 {
		s.naming.dropped = 0
		s.w.Records([]kernel.Record{{Time: s.lossAt, Kind: kernel.Lost, Arg: [3]uint64{uint64(n), uint64(n), uint64(now - s.lossAt)}}})
	}
	s.lossAt = now
}
