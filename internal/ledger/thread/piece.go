package thread

import (
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/sched"
)

// Piece is one piece of a thread's story: a stretch of time that one leaf explains.
type Piece struct {
	Lo, Hi int64 // CLOCK_MONOTONIC; Hi is outside
	Leaf   books.Leaf
	TID    uint32        // the thread that spent the time: the explained one, or one that it waited for
	State  sched.Stretch // what TID was in, cut to the piece; Doing is Unknown without records

	// The walk overwrites the two lists after it handed out the piece.

	Shares []sched.Share // only with LeafNoCPU: the threads that had the CPU; they add up to Hi-Lo
	Hops   []Hop         // the waits that lead to TID, the outermost first
}

// Hop is one wait that was followed to another thread.
type Hop struct {
	waiter, waker uint32
	wait          sched.Stretch // of waiter; Whole.End is the moment of the wake-up
	kind          hopKind

	// Inferred: that waker held the lock follows from the lock's releases, not from an event of
	// waker's own.
	Inferred bool
}

// hopKind says why the story goes on with another thread.
type hopKind uint8

const (
	hopMessage hopKind = iota // a condition, a note, a pipe: the other thread woke this one
	hopLock                   // the other thread held the lock
	hopLife                   // the other thread's end was waited for
	hopMaker                  // this thread was not born yet, or has ended: the other makes it, or frees its stack
)
