package unit

import (
	"slices"

	"github.com/whystall/whystall/internal/sched"
)

const (
	// handedThreads is how many threads must have waited at a connection, one after another.
	handedThreads = 3
	// One part in oneInHanded of their waits may overlap.
	oneInHanded = 50
)

// single reports whether k is a wait for the bytes of one socket, which is known.
func (k *siteKey) single() bool {
	return k.block == sched.BlockNetwork && k.multi == multiNone && k.arg != 0
}

// hands finds the connections that go from thread to thread: several wait there, but never two at
// once. A pool of connections to another server is such a thing. A thread asks there while it is at
// a request; at its own client's connection no other waits. At one that several share as a queue of
// work, all idle ones wait at once.
func (f *finder) hands() {
	f.handed = map[uint64]bool{}
	for fd, waits := range f.reads.of {
		slices.SortFunc(waits, byBegin)
		threads := map[uint32]bool{}
		var sum, together, until int64
		for _, w := range waits {
			threads[w.tid] = true
			sum += w.end - w.begin
			together += max(0, min(w.end, until)-w.begin)
			until = max(until, w.end)
		}
		f.handed[fd] = len(threads) >= handedThreads && together*oneInHanded <= sum
	}
}

// isHanded reports whether s is a wait at a connection that goes from thread to thread.
func (f *finder) isHanded(s *site) bool { return s.key.single() && f.handed[s.key.arg] }
