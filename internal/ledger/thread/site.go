package thread

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/sched"
)

// placeKey is all that the name of a wait's place is made of.
type placeKey struct {
	block        sched.Block
	syscall      int32
	kernel, user uint32
	futex        uint64
}

// mostSites bounds the places, and the usual places of calls. A program may have any number of
// them.
const mostSites = 1 << 12

// site is the name of such a place, and its number after it was first asked for.
type site struct {
	name   string
	detail uint32
}

// detail is the number of a site's name; 0 without a name.
func (t *pass) detail(s *site) uint32 {
	if s.detail == 0 && s.name != "" {
		s.detail = t.words.Detail(s.name)
	}
	return s.detail
}

// namedSite is where a thread waited, if its stack was user.
func (t *pass) namedSite(s *sched.Stretch, user uint32) *site {
	key := placeKey{s.Block, s.Syscall, s.Kernel, user, s.Futex}
	x, ok := t.sites[key]
	if !ok {
		wait := *s
		wait.User = user
		x = &site{name: waitSite(t.k, &wait)}
		if len(t.sites) < mostSites {
			t.sites[key] = x
		}
	}
	return x
}

// siteAt is where tid waited, if its stack was user. A thread that frees its own stack as it ends
// has a stack which ends in the C library. It is recognized by its exit, which follows.
func (t *pass) siteAt(tid uint32, s *sched.Stretch, user uint32) *site {
	x := t.namedSite(s, user)
	if (x.name == "madvise" || x.name == "munmap") && t.walk.lives().Ends(t.k, tid, s.Whole.End) {
		return &site{name: x.name + account.OfItsStack}
	}
	return x
}
