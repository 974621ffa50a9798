package capacity

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/sched"
)

// Words are the names that the kernel's records add to a ledger: who had a CPU while a thread was
// queued for it, and in which function a thread slept. The ledger gives each name a number of its
// own. Both are asked for at every piece of time, so answers are remembered.
type Words struct {
	k      *sched.Timeline
	number func(name string) uint32

	details   map[string]uint32
	functions map[[2]uint32]uint32       // that threads slept in: numbers, by the stacks of user and kernel
	occupants map[uint32]Occupant        // by TID, under the name that was asked for last
	list      []account.Instead          // by Occupant.Ref
	refs      map[account.Instead]uint32 // index in list
	own       uint32                     // number of account.OwnThreads
	idle      uint32                     // number of account.WakeUpLatency
}

// Occupant is who had a CPU.
type Occupant struct {
	Detail uint32 // the number of its name
	Ref    uint32 // see [Words.Instead]

	named sched.Span // when the thread had that name
}

// NoRef is the Ref of nobody that is known.
const NoRef = ^uint32(0) - 17

// mostDetails bounds the names that commands and functions of other programs may add.
const mostDetails = 1 << 12

// NewWords makes the names of k's threads. Number gives a name its number.
func NewWords(k *sched.Timeline, number func(name string) uint32) *Words {
	return &Words{
		k: k, number: number, details: map[string]uint32{}, functions: map[[2]uint32]uint32{},
		occupants: map[uint32]Occupant{},
		refs:      map[account.Instead]uint32{}, own: number(account.OwnThreads), idle: number(account.WakeUpLatency),
	}
}

// Detail is the number of a name of the kernel's side. Beyond mostDetails all names are one.
func (w *Words) Detail(name string) uint32 {
	id, ok := w.details[name]
	if !ok {
		if len(w.details) >= mostDetails {
			return w.number("(others)")
		}
		id = w.number(name)
		w.details[name] = id
	}
	return id
}

// Slept is the number of the function that a blocked thread sleeps in; 0 where no stack was
// recorded.
func (w *Words) Slept(s *sched.Stretch) uint32 {
	if s.Block == sched.BlockStopped {
		return w.Detail(sched.Stopped)
	}
	stacks := [2]uint32{s.User, s.Kernel}
	id, ok := w.functions[stacks]
	if ok {
		return id
	}
	if name := sched.SleptFunc(w.k, s); name != "" {
		id = w.Detail(name)
	}
	w.functions[stacks] = id
	return id
}

// Behind names the thread tid at a time; 0 is nobody. The kernel gives a thread's number to others
// later, and a thread may change its name. So an answer holds only while the thread had that name.
func (w *Words) Behind(tid uint32, at int64) Occupant {
	o, ok := w.occupants[tid]
	if ok && o.named.Begin <= at && at < o.named.End {
		return o
	}
	o = Occupant{named: w.k.Named(tid, at)}
	var i account.Instead
	switch t, known := w.k.Name(tid, at); {
	case tid == 0:
		i, o.Detail = account.Instead{Who: account.WakeUpLatency, Kind: account.InsteadIdle}, w.idle
	case known && t.Target:
		i, o.Detail = account.Instead{Who: account.OwnThreads, Kind: account.InsteadOwn}, w.own
	case !known:
		i, o.Detail = account.Instead{Who: "unknown", Kind: account.InsteadUnknown}, w.Detail("unknown")
	default:
		name := sched.PlainComm(t.Comm)
		i, o.Detail = account.Instead{Who: fmt.Sprintf("%s (pid %d)", name, t.PID),
			Kind: account.InsteadNeighbour}, w.Detail(name)
		if t.Kernel {
			i.Who = name
		}
	}
	o.Ref, ok = w.refs[i]
	if !ok {
		o.Ref = uint32(len(w.list))
		w.list = append(w.list, i)
		w.refs[i] = o.Ref
	}
	w.occupants[tid] = o
	return o
}

// Ref is the number of the name under which tid was asked for last, [NoRef] where it never was.
func (w *Words) Ref(tid uint32) uint32 {
	if o, ok := w.occupants[tid]; ok {
		return o.Ref
	}
	return NoRef
}

// Instead is who an [Occupant.Ref] stands for.
func (w *Words) Instead(ref uint32) account.Instead {
	if int64(ref) < int64(len(w.list)) {
		return w.list[ref]
	}
	return account.Instead{Who: "unknown", Kind: account.InsteadUnknown}
}
