package oldclock

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/timeline"
)

// machine is the runtime's number of a thread, its M, in the order of its first event.
type machine = int32

const noMachine machine = -1

const (
	quietsMost   = 1 << 16 // of them the longest are kept
	quietLeast   = 10e3    // ns: no thread leaves its CPU and comes back sooner
	machinesMost = 1 << 10
	procsMost    = 1 << 16
)

// quiet is a stretch without an event of one thread. Its ends are what an offset is judged by:
// there, and nowhere else, the thread may have come to a CPU or left it.
type quiet struct {
	from, to int64
	m        machine
}

// holder follows which thread of the runtime holds each P.
type holder struct {
	procs   []held
	numbers map[uint64]machine
	list    []uint64 // by machine: the runtime's number
}

type held struct {
	m machine
	// The goroutine on it is in a system call: another thread may take the P meanwhile, and write
	// that down as if the P had done it.
	call bool
}

// event takes the next event. It returns the thread that made it, noMachine if not known.
func (h *holder) event(ev *exectrace.Event) machine {
	if ev.Kind == exectrace.KindProc {
		return h.proc(ev)
	}
	p := h.get(ev.P)
	if p == nil {
		return noMachine
	}
	if ev.Kind == exectrace.KindSample {
		return noMachine
	}
	if ev.Kind == exectrace.KindGoroutine {
		if ev.Reason == exectrace.ReasonStatus {
			return noMachine
		}
		switch {
		case ev.To == exectrace.Syscall:
			p.call = true
		case ev.From == exectrace.Syscall:
			p.call = false // it was short
		case p.call:
			// A thread took back the P that it had lost in a system call, without an event.
			p.m, p.call = noMachine, false
		}
	}
	return p.m
}

func (h *holder) proc(ev *exectrace.Event) machine {
	p := h.get(ev.Proc)
	if p == nil {
		return noMachine
	}
	if ev.To == exectrace.Running {
		p.m, p.call = h.machine(ev.Arg[0]), false
		return p.m
	}
	m := p.m
	if p.call {
		m = noMachine
	}
	p.m, p.call = noMachine, false
	return m
}

// forget is called where events are missing.
func (h *holder) forget() {
	for i := range h.procs {
		h.procs[i] = held{m: noMachine}
	}
}

func (h *holder) get(id exectrace.ProcID) *held {
	if id < 0 || id >= procsMost {
		return nil
	}
	for int(id) >= len(h.procs) {
		h.procs = append(h.procs, held{m: noMachine})
	}
	return &h.procs[id]
}

func (h *holder) machine(number uint64) machine {
	m, ok := h.numbers[number]
	if !ok {
		if len(h.list) == machinesMost {
			return noMachine
		}
		if h.numbers == nil {
			h.numbers = map[uint64]machine{}
		}
		m = machine(len(h.list))
		h.numbers[number] = m
		h.list = append(h.list, number)
	}
	return m
}

// marks is the trace's side.
type marks struct {
	quiets     []quiet // in order of their ends
	machines   []uint64
	begin, end int64
}

// read lists the trace's quiets.
func read(src timeline.Source) *marks {
	x := &marks{}
	var h holder
	var last []int64 // by machine
	least := int64(quietLeast)
	first := true
	for block := range src.Blocks() {
		for i := range block {
			ev := &block[i]
			at := int64(ev.Time)
			if first {
				x.begin, first = at, false
			}
			x.end = max(x.end, at)
			if ev.Kind == exectrace.KindGap {
				h.forget()
				continue
			}
			m := h.event(ev)
			if m < 0 {
				continue
			}
			if int(m) == len(last) {
				last = append(last, at)
				continue
			}
			if at-last[m] >= least {
				if len(x.quiets) == quietsMost {
					least = x.thin()
				}
				x.quiets = append(x.quiets, quiet{last[m], at, m})
			}
			last[m] = at
		}
	}
	x.machines = h.list
	return x
}

// thin forgets the shorter half, and returns how long those that are left are at least.
func (x *marks) thin() int64 {
	l := make([]int64, len(x.quiets))
	for i, q := range x.quiets {
		l[i] = q.to - q.from
	}
	slices.Sort(l)
	least := l[len(l)/2] + 1
	x.quiets = slices.DeleteFunc(x.quiets, func(q quiet) bool { return q.to-q.from < least })
	return least
}

// mark is a moment at which thread m was on a CPU.
type mark struct {
	at int64
	m  machine
}

// ends lists the ends of every n-th quiet, in order of time.
func (x *marks) ends(n int) []mark {
	l := make([]mark, 0, 2*len(x.quiets)/n+2)
	for i := 0; i < len(x.quiets); i += n {
		q := &x.quiets[i]
		l = append(l, mark{q.from, q.m}, mark{q.to, q.m})
	}
	slices.SortFunc(l, func(a, b mark) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.m, b.m)) })
	return l
}
