package thread

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/sched"
)

// threadMakers are the C library's functions that make a thread: what waits below them waits to make one, whoever called.
var threadMakers = map[string]bool{"pthread_create": true, "__pthread_create_2_1": true, "pthread_create@@GLIBC_2.34": true, "allocate_stack": true, "thrd_create": true}

// placeKey is all that the name of a place where a thread waited is made of.
type placeKey struct {
	block        sched.Block
	syscall      int32
	kernel, user uint32
	futex        uint64
}

// mostSites bounds the places, and what is remembered of calls: programs may add as many as they like.
const mostSites = 1 << 12

// site is the name of such a place, and its number once it was asked for.
type site struct {
	name   string
	detail uint32
}

func (t *pass) detail(s *site) uint32 {
	if s.detail == 0 && s.name != "" {
		s.detail = t.words.Detail(s.name)
	}
	return s.detail
}

// named is where a thread waited, with that stack.
func (t *pass) named(s *sched.Stretch, user uint32) *site {
	at := placeKey{s.Block, s.Syscall, s.Kernel, user, s.Futex}
	x, ok := t.sites[at]
	if !ok {
		told := *s
		told.User = user
		x = &site{name: waitSite(t.k, &told)}
		if len(t.sites) < mostSites {
			t.sites[at] = x
		}
	}
	return x
}

// siteOf is where a thread waited. One that gives its stack back as it ends is known by what follows, as its stack ends in the C library.
func (t *pass) siteOf(tid uint32, s *sched.Stretch) *site {
	user := s.User
	if s.User == 0 && s.Kernel == 0 {
		user = t.usualStack(tid, s)
	}
	x := t.named(s, user)
	if (x.name == "madvise" || x.name == "munmap") && t.walk.lives().Ends(t.k, tid, s.Whole.End) {
		return &site{name: x.name + account.OfItsStack}
	}
	return x
}
