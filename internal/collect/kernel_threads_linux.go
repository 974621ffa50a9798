package collect

import (
	"os"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sensor/bpf"
)

type bpfThread struct {
	bpf.Thread
	since   int64
	written bool
}

// maxBPFThreads bounds the threads of the machine that are remembered, so that they can be named
// when they turn up: some 150 bytes each.
const maxBPFThreads = 1 << 16

// listThreads remembers the threads that exist once the programs are attached: those that the
// programs report later are newer.
func (s *bpfStream) listThreads() error {
	all, err := s.r.Threads()
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.SelfTID == uint32(os.Getpid()) {
			s.self = t.PID
		}
		if len(s.threads) < maxBPFThreads/2 || t.FromTarget {
			s.threads[t.TID] = &bpfThread{Thread: t}
		}
	}
	return nil
}

// meet writes which thread this is when it turns up for the first time.
func (s *bpfStream) meet(tid uint32) {
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
		Since: t.since, TID: t.TID, PID: t.PID, Comm: t.Comm, Cgroup: s.cgroups.path(t.Cgroup),
		Target: t.FromTarget, Kernel: t.Kernel,
	}
	if t.FromTarget {
		out.NSTID = t.NSTID
	}
	// A report that names the recorder as a neighbour must not be read as naming another whystall.
	if s.self != 0 && t.PID == s.self {
		out.Comm = kernel.Recorder
	}
	s.w.Thread(out) // an error stays, and the next Records returns it
}

// name takes a thread's new name, or a new thread. One that has turned up already is written at
// once.
func (s *bpfStream) name(e *bpf.Event) {
	old := s.threads[e.TID]
	if old == nil && len(s.threads) >= maxBPFThreads {
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

// forget makes room on a machine that creates threads all the time, and lists again those that
// still exist.
func (s *bpfStream) forget(now int64) {
	clear(s.threads)
	clear(s.seen[:])
	all, err := s.r.Threads()
	if err != nil {
		return // their names stay unknown
	}
	for _, t := range all[:min(len(all), maxBPFThreads/2)] {
		s.threads[t.TID] = &bpfThread{Thread: t, since: now}
	}
}
