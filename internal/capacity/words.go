package capacity

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/sched"
)

// Words are the names that the kernel's records add to a ledger: who had a CPU while a thread was queued for it, and in which
// function a thread slept. The ledger gives each name a number of its own.
type Words struct {
	k      *sched.Timeline
	number func(name string) uint32

	details map[string]uint32
	slept   map[[2]uint32]uint32 // by stacks
	whom    map[uint32]Whom      // by TID
	list    []account.Instead    // by Whom.Ref
	refs    map[account.Instead]uint32
	own     uint32
	idle    uint32
}

// Whom is who had a CPU.
type Whom struct {
	Detail uint32 // the number of its name
	Ref    uint32 // see [Words.Instead]
	Own    bool   // a thread of the target

	called sched.Span // when the thread had that name
}

// NoRef stands for nobody that is known.
const NoRef = ^uint32(0) - 17

// mostDetails bounds the names that commands and functions of other programs may add.
const mostDetails = 1 << 12

// NewWords makes the names of k's threads; number gives a name its number.
func NewWords(k *sched.Timeline, number func(name string) uint32) *Words {
	return &Words{
		k: k, number: number, details: map[string]uint32{}, slept: map[[2]uint32]uint32{}, whom: map[uint32]Whom{},
		refs: map[account.Instead]uint32{}, own: number(account.OwnThreads), idle: number(account.WakeUpLatency),
	}
}

// Detail is the number of a name of the kernel's side. Beyond the bound all names are one.
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

// Slept is the number of the function that a blocked thread sleeps in; 0 where no stack was recorded.
func (w *Words) Slept(s *sched.Stretch) uint32 {
	if s.Block == sched.BlockStopped {
		return w.Detail(sched.Stopped)
	}
	stacks := [2]uint32{s.User, s.Kernel}
	id, ok := w.slept[stacks]
	if ok {
		return id
	}
	if name := sched.SleptFunc(w.k, s); name != "" {
		id = w.Detail(name)
	}
	w.slept[stacks] = id
	return id
}

// Behind names the thread tid at a time: the kernel uses a thread's number again. 0 is nobody.
func (w *Words) Behind(tid uint32, at int64) Whom {
	who, ok := w.whom[tid]
	if ok && who.called.Begin <= at && at < who.called.End {
		return who
	}
	who = Whom{called: w.k.Named(tid, at)}
	i := account.Instead{}
	switch t, known := w.k.Name(tid, at); {
	case tid == 0:
		i, who.Detail = account.Instead{Who: account.WakeUpLatency, Kind: account.InsteadIdle}, w.idle
	case known && t.Target:
		i, who.Detail, who.Own = account.Instead{Who: account.OwnThreads, Kind: account.InsteadOwn}, w.own, true
	case !known:
		i, who.Detail = account.Instead{Who: "unknown", Kind: account.InsteadUnknown}, w.Detail("unknown")
	default:
		name := sched.PlainComm(t.Comm)
		i, who.Detail = account.Instead{Who: fmt.Sprintf("%s (pid %d)", name, t.PID), Kind: account.InsteadNeighbour}, w.Detail(name)
		if t.Kernel {
			i.Who = name
		}
	}
	who.Ref, ok = w.refs[i]
	if !ok {
		who.Ref = uint32(len(w.list))
		w.list = append(w.list, i)
		w.refs[i] = who.Ref
	}
	w.whom[tid] = who
	return who
}

// Ref is the number of tid's name when it was last asked for, [NoRef] where it never was.
func (w *Words) Ref(tid uint32) uint32 {
	if who, ok := w.whom[tid]; ok {
		return who.Ref
	}
	return NoRef
}

// Instead is who a [Whom.Ref] stands for.
func (w *Words) Instead(ref uint32) account.Instead {
	if int64(ref) < int64(len(w.list)) {
		return w.list[ref]
	}
	return account.Instead{Who: "unknown", Kind: account.InsteadUnknown}
}
