package capacity

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/sched"
)

// spaceCalls are the system calls that change an address space, or copy one, by what they are called.
var spaceCalls = map[string]map[int32]string{
	"amd64": {9: "mmap", 10: "mprotect", 11: "munmap", 12: "brk", 25: "mremap", 28: "madvise", 56: "fork", 57: "fork", 58: "vfork", 435: "fork"},
	"arm64": {214: "brk", 215: "munmap", 216: "mremap", 220: "fork", 222: "mmap", 226: "mprotect", 233: "madvise", 435: "fork"},
}

// mostLetGoes bounds the names that programs may add.
const mostLetGoes = 1 << 12

// letGoes adds up waits for mmap_lock by who ended them as it let go of the lock, and in which call. A thread's making takes the lock for moments: a
// clone that others wait for copies the address space.
type letGoes struct {
	k  *sched.Timeline
	by map[account.LetGo]int64 // without their NS
}

func (l *letGoes) add(s *sched.Stretch) {
	call := spaceCalls[cmp.Or(l.k.Header().Arch, "amd64")][s.WakerCall]
	if s.Waker == 0 || !s.WakerTarget || s.ByInterrupt || call == "" {
		return
	}
	p := sched.PlaceOf(l.k, s.WakerUser)
	who := p.Func
	if who == "" || sched.SystemModule(p.Module) {
		t, _ := l.k.Name(s.Waker, s.Whole.End)
		who = sched.PlainComm(t.Comm)
	}
	if x := (account.LetGo{Who: who, Call: call}); len(l.by) < mostLetGoes || l.by[x] > 0 {
		l.by[x] += s.Whole.End - s.Whole.Begin
	}
}

// list gives the largest.
func (l *letGoes) list() []account.LetGo {
	var out []account.LetGo
	for x, ns := range l.by {
		x.NS = ns
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b account.LetGo) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Who+" ("+a.Call, b.Who+" ("+b.Call))
	})
	return out[:min(len(out), account.MostInstead)]
}
