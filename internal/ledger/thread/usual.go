package thread

import (
	"slices"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// Of short waits the recorder takes a stack only now and then. A thread that sleeps in steps of a
// ms is an example. Where all stacks of one thread in one call are of one place, its waits without
// a stack are taken to be of that place too.

// usualKey is a call of a thread, with its file where it has one.
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
	many  bool // it makes the call in more places than one
}

// usualOf is the key of a wait; false if its kind has no usual place.
func usualOf(tid uint32, s *sched.Stretch) (usualKey, bool) {
	k := usualKey{thread: tid, block: s.Block, call: s.Syscall}
	switch s.Block {
	case sched.BlockTimer:
	case sched.BlockNetwork, sched.BlockPipe, sched.BlockOther:
		k.arg = s.Arg
	default:
		return k, false // a futex is known by its address
	}
	return k, s.Syscall >= 0
}

// hasInferred reports whether a stack could not be walked: it then names none of its callers for
// sure.
func hasInferred(frames []kernel.Frame) bool {
	return slices.ContainsFunc(frames, func(f kernel.Frame) bool { return f.Inferred })
}

// siteOf is where tid waited in s.
func (t *pass) siteOf(tid uint32, s *sched.Stretch) *site {
	user := s.User
	if s.User == 0 && s.Kernel == 0 {
		user = t.usualStack(tid, s)
	}
	return t.siteAt(tid, s, user)
}

// usualStack is the stack of waits like s of tid; 0 where they are of several places, or none was
// taken.
func (t *pass) usualStack(tid uint32, s *sched.Stretch) uint32 {
	if t.usual == nil {
		t.usual = map[usualKey]usualPlace{}
		lo, hi := t.k.Span()
		t.k.Each(lo, hi, func(tid uint32, s *sched.Stretch) {
			if s.Doing != sched.Blocked || s.User == 0 || hasInferred(t.k.Stack(s.User)) {
				return
			}
			k, ok := usualOf(tid, s)
			if !ok {
				return
			}
			p, ok := t.usual[k]
			switch {
			case !ok && len(t.usual) < mostSites:
				t.usual[k] = usualPlace{stack: s.User, site: t.siteAt(tid, s, s.User).name}
			case ok && !p.many && p.stack != s.User && p.site != t.siteAt(tid, s, s.User).name:
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
