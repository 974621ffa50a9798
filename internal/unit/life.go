package unit

import "github.com/whystall/whystall/internal/sched"

// life is one thread from its creation, or the recording's start, to its end.
type life struct {
	begin, end int64
	birth      int64 // when its maker made it
	tid        uint32
	maker      uint32
	born, died bool   // seen, not just cut off by the recording
	name       int32  // index in finder.nameOf
	sites      []site // where
	best       int32  // the site that is its wait for work; -1 none
	role       int32  // index in Set.roles; -1 none
	busyNS     int64  // on a CPU or wanting to be
	unsure     bool   // two sites could be its wait for work
	follows    uint64 // the condition at which it waits while another of its kind waits for events; 0 none
}

// waitsAt reports whether the thread ever waits at the futex at addr.
func (l *life) waitsAt(addr uint64) bool {
	for i := range l.sites {
		if s := &l.sites[i]; s.key.block == sched.BlockFutex && s.key.arg == addr {
			return true
		}
	}
	return false
}

// waitsForWorkAt reports whether k is the place at which the thread waits for work.
func (l *life) waitsForWorkAt(k *siteKey) bool {
	if l.best < 0 {
		return false
	}
	own := &l.sites[l.best].key
	return *k == *own || k.vaguerThan(own)
}

// aroundSockets reports whether the thread waits for work at many sockets at once.
func (l *life) aroundSockets() bool { return l.best >= 0 && l.sites[l.best].key.multi == multiMany }

// nameKey is what tells threads apart before anything is known of what they do.
type nameKey struct {
	comm  string // with its numbers left out
	entry string // the thread's first own function; "" not known
}

// CommPattern is a thread's name with a # for each number: "worker-12" and "worker-3" do the same.
func CommPattern(comm string) string {
	b := make([]byte, 0, len(comm))
	for i := 0; i < len(comm); i++ {
		c := comm[i]
		if c >= '0' && c <= '9' {
			if len(b) > 0 && i > 0 && comm[i-1] >= '0' && comm[i-1] <= '9' {
				continue
			}
			c = '#'
		}
		b = append(b, c)
	}
	return string(b)
}
