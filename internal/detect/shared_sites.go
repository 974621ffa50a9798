package detect

import (
	"sort"
	"strings"

	"github.com/whystall/whystall/internal/account"
)

// polledFile reports whether a wait is for a file, not for a socket.
func polledFile(s *account.Site) bool { return strings.HasPrefix(s.Via, "os.(*File).") }

// nonblocking reports whether a call is on a socket: the runtime parks the goroutine instead of
// blocking.
func nonblocking(s *account.Site) bool {
	return strings.HasPrefix(s.Via, "net.") || strings.HasPrefix(s.Func, "net.(*")
}

// callSites sums the sites of what was granted, the largest first, without calls on sockets. polled
// is the part in which goroutines were parked on a file that the runtime polls, not inside a call.
func callSites(p *Pass) (ss []account.Site, polled int64) {
	p.granted(func(a *account.Account, ns int64) {
		for _, s := range a.Sites {
			if nonblocking(&s) || a.Leaf == account.LeafNetwork && !polledFile(&s) {
				continue
			}
			if a.Leaf == account.LeafNetwork {
				polled += s.NS
			} else {
				s.NS = scale(s.NS, ns, a.NS)
			}
			if i := siteIndex(ss, s); i >= 0 {
				ss[i].NS += s.NS
				ss[i].N += s.N
			} else {
				ss = append(ss, s)
			}
		}
	})
	sort.SliceStable(ss, func(i, j int) bool { return ss[i].NS > ss[j].NS })
	return ss, polled
}

func siteIndex(ss []account.Site, s account.Site) int {
	for i := range ss {
		if ss[i].Func == s.Func && ss[i].Line == s.Line && ss[i].Via == s.Via {
			return i
		}
	}
	return -1
}
