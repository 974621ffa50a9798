package collect

import (
	"runtime"
	"runtime/debug"
	"sync"
)

// moreProcs gives the runtime spare Ps until the function it returns is called. Where our threads
// that hold a P wait seconds for a CPU, a thread that has a CPU comes back from a system call only
// if a P is left.
func moreProcs() (restore func()) {
	return spareP.hold(func() int { return runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + spareProcs) },
		func(was int) { runtime.GOMAXPROCS(was) })
}

// moreHeap makes the runtime collect garbage less often until the function it returns is called: a
// collection stops the world, and waits for the same threads. Five came in the first half second,
// at a heap of 3 to 8 MB.
func moreHeap() (restore func()) {
	return spareHeap.hold(func() int { return debug.SetGCPercent(400) }, func(was int) { debug.SetGCPercent(was) })
}

// spareProcs is enough for those of our goroutines that may be at work at once.
const spareProcs = 6

var spareP, spareHeap setting

// setting is a setting of the runtime with several users: segments of a recording overlap. The
// first user changes it, the last one restores it.
type setting struct {
	sync.Mutex
	users, was int
}

func (h *setting) hold(set func() (was int), restore func(was int)) (release func()) {
	h.Lock()
	defer h.Unlock()
	if h.users++; h.users == 1 {
		h.was = set()
	}
	return func() {
		h.Lock()
		defer h.Unlock()
		if h.users--; h.users == 0 {
			restore(h.was)
		}
	}
}
