package collect

import (
	"strings"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sensor/bpf"
)

// event takes one event. It runs for every switch of the machine, and so allocates nothing.
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
	if len(s.batch) >= maxBatch {
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
	s.meet(e.TID)
	s.meet(e.Other)
	switch e.Kind {
	case bpf.Switch:
		s.counts.switches++
		s.files.look(s, e)
		if e.Flags&(bpf.Target|bpf.OtherTarget) == 0 {
			s.counts.foreign++
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

// serves reports whether a kernel thread does nothing but the work that interrupts left.
func serves(comm string) bool {
	return strings.HasPrefix(comm, "ksoftirqd/") || strings.HasPrefix(comm, "irq/")
}

// kinds has the record's kind for each kind of event.
var kinds = [...]kernel.Kind{
	bpf.Switch: kernel.Switch, bpf.Waking: kernel.Waking, bpf.Wakeup: kernel.Wakeup,
	bpf.Fork: kernel.Clone, bpf.Exit: kernel.Exit,
	bpf.Exec: kernel.Exec, bpf.WaitStack: kernel.WaitStack, bpf.Unthrottle: kernel.Unthrottle,
	bpf.Signal:    kernel.Signal,
	bpf.Delivered: kernel.Delivered, bpf.Sample: kernel.Sample, bpf.Fault: kernel.Fault, bpf.Reclaim: kernel.Reclaim,
	bpf.Compaction: kernel.Compaction, bpf.MmapLock: kernel.MmapLock, bpf.TLBFlush: kernel.TLBFlush,
	bpf.KernelLock: kernel.KernelLock,
	bpf.NUMAMove:   kernel.NUMAMove, bpf.SocketReady: kernel.SocketReady,
	bpf.TimerDue: kernel.TimerDue, bpf.Held: kernel.Held,
	bpf.Turn: kernel.Turn,
}

var flagPairs = [...]struct {
	event  bpf.Flags
	record kernel.Flags
}{
	{bpf.Preempted, kernel.Preempted}, {bpf.Throttled, kernel.Throttled}, {bpf.GroupThrottled, kernel.GroupThrottled},
	{bpf.Target, kernel.Target}, {bpf.OtherTarget, kernel.OtherTarget},
	{bpf.Interrupt, kernel.Interrupt}, {bpf.New, kernel.New},
	{bpf.Migrate, kernel.Migrate}, {bpf.Memcg, kernel.Memcg}, {bpf.Write, kernel.Write},
	{bpf.Leaving, kernel.Leaving}, {bpf.Major, kernel.Major},
	{bpf.Reads, kernel.Reads},
}

func flagsOf(f bpf.Flags) (k kernel.Flags) {
	if f == 0 {
		return 0
	}
	for _, p := range flagPairs {
		if f&p.event != 0 {
			k |= p.record
		}
	}
	return k
}
