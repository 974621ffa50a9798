package capacity

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/sched"
)

// mostReleases bounds the names that a program may add.
const mostReleases = 1 << 12

// releases adds up waits for mmap_lock by who ended them as it released the lock, and in which
// call. Only calls that hold the lock for long count: those that change the address space or copy
// it. To make a thread takes it for moments, so a clone that others wait for is a fork.
type releases struct {
	k     *sched.Timeline
	calls calls
	ns    map[account.LetGo]int64 // keys are without their NS
}

func newReleases(k *sched.Timeline) releases {
	return releases{k: k, calls: callsOf(k.Header().Arch), ns: map[account.LetGo]int64{}}
}

// add adds a wait by its last stretch. It is left out where an interrupt or another program ended
// it: the waker then is not who held the lock.
func (l *releases) add(s *sched.Stretch) {
	c := l.calls.call(s.WakerCall)
	if s.Waker == 0 || !s.WakerTarget || s.ByInterrupt || !c.has(changesSpace|copiesSpace) {
		return
	}
	p := sched.PlaceOf(l.k, s.WakerUser)
	who := p.Func
	if who == "" || sched.SystemModule(p.Module) {
		t, _ := l.k.Name(s.Waker, s.Whole.End)
		who = sched.PlainComm(t.Comm)
	}
	if x := (account.LetGo{Who: who, Call: c.name}); len(l.ns) < mostReleases || l.ns[x] > 0 {
		l.ns[x] += s.Whole.End - s.Whole.Begin
	}
}

// largest lists those whose release was waited for longest.
func (l *releases) largest() []account.LetGo {
	var out []account.LetGo
	for x, ns := range l.ns {
		x.NS = ns
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b account.LetGo) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Who, b.Who), cmp.Compare(a.Call, b.Call))
	})
	return out[:min(len(out), account.MostInstead)]
}
