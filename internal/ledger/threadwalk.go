package ledger

import "github.com/whystall/whystall/internal/timeline"

// threadPiece is one piece of a thread's story.
type threadPiece struct {
	lo, hi int64
	leaf   leafCode
	tid    uint32           // whose time it is: the thread itself, or the one it waited for
	at     timeline.Stretch // what that thread was in; its Begin and End are not clipped. Doing is ThreadUnknown without records
	by     []timeline.Share // of codeNoCPU: who held the CPU; adds up to hi-lo
	hops   []threadHop      // the waits that were followed to tid, outermost first; overwritten after emit
}

// threadHop is one wait that was followed to who ended it.
type threadHop struct {
	waiter, waker uint32
	wait          timeline.Stretch // of waiter; its End is the moment of the wake-up
	kind          hopKind
	inferred      bool // waker held the lock by what is known of the lock's wake-ups, not by an event of its own
}

// hopKind says by what a wait was followed.
type hopKind uint8

const (
	hopMessage hopKind = iota // a condition, a note, a pipe: who woke it
	hopLock                   // a lock: who held it
	hopLife                   // the end of a thread or child
	hopMaker                  // it was not born yet: who made it
)

// maxThreadHops is how many waits are followed in a row.
const maxThreadHops = 7

// explainThread tells what kept thread tid during [lo,hi): it tiles that exactly with pieces, in order of time. A wait that
// another thread of the target ended by a release is followed to what that thread did meanwhile, clipped to the wait, never
// to a thread that is on the path already; all others are leaves of tid.
func explainThread(k *timeline.Kernel, tid uint32, lo, hi int64, emit func(*threadPiece)) {
	if lo < hi {
		emit(&threadPiece{lo: lo, hi: hi, leaf: codeUnknown, tid: tid})
	}
}
