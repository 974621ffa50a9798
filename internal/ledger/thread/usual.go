package thread

import (
	"slices"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// Of short waits the recorder takes a stack now and then only. Where all that it took of one thread in one call are of one place, the others are
// too: a thread that sleeps in steps of a ms.

// usualKey is a call of a thread: with its file where it has one.
type usualKey struct {
	thread uint32
	block  sched.Block
	call   int32
	arg    uint64
}

// usualPlace is where a thread makes a call.
type usualPlace struct {
	stack uint32
	site  string
	many  bool // in more places than one
}

func usualOf(tid uint32, s *sched.Stretch) (usualKey, bool) {
	k := usualKey{thread: tid, block: s.Block, call: s.Syscall}
	switch s.Block {
	case sched.BlockTimer:
	case sched.BlockNetwork, sched.BlockPipe, sched.BlockOther:
		k.arg = s.Arg
	default:
		return k, false // a futex has its address
	}
	return k, s.Syscall >= 0
}

// inferredBelow: a stack that could not be walked names none of its callers for sure.
func inferredBelow(frames []kernel.Frame) bool {
	return slices.ContainsFunc(frames, func(f kernel.Frame) bool { return f.Inferred })
}

// usualStack is the stack of such waits as s of tid, 0 where they are of several places or none was taken.
func (t *pass) usualStack(tid uint32, s *sched.Stretch) uint32 {
	if t.usual == nil {
		t.usual = map[usualKey]usualPlace{}
		lo, hi := t.k.Span()
		t.k.Each(lo, hi, func(tid uint32, s *sched.Stretch) {
			if s.Doing != sched.Blocked || s.User == 0 || inferredBelow(t.k.Stack(s.User)) {
				return
			}
			k, ok := usualOf(tid, s)
			if !ok {
				return
			}
			p, known := t.usual[k]
			switch {
			case !known && len(t.usual) < mostSites:
				t.usual[k] = usualPlace{stack: s.User, site: t.siteOf(tid, s).name}
			case known && !p.many && p.stack != s.User && p.site != t.siteOf(tid, s).name:
				p.many = true
				t.usual[k] = p
			}
		})
	}
	k, ok := usualOf(tid, s)
	if !ok {
		return 0
	}
	if p := t.usual[k]; !p.many {
		return p.stack
	}
	return 0
}
