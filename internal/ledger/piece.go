package ledger

import (
	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/timeline"
)

// piece is a stretch of a request's time with one leaf and what is known of it.
type piece struct {
	lo, hi  int64
	leaf    books.Leaf
	class   books.Class
	depth   int
	ident   uint32
	site    timeline.FuncID    // of the request's first wait, or of its own system call
	stack   exectrace.StackID  // where the actor was
	seg     *timeline.Segment  // nil without one
	kind    exectrace.StringID // of the stop-the-world
	n       uint32             // number of the stop-the-world or sweep
	lock    timeline.FuncID    // where the first lock on the path is taken; 0 none
	through timeline.FuncID    // the same of the first lock below the first wait; 0 none
	hold    uint32             // the hold of a lock that was waited for: the segment that ended it; 0 none
	holder  uint32             // the goroutine that had the lock for which the request itself waited; 0 none
	queue   int32              // how many waited where the request did
	flags   pieceFlags
	turn    int64 // the time before it was the turn of others
	held    bool  // those others are requests
	serves  bool  // the worker waited outside for those others
	asked   bool  // the actor had asked for what it waits for

	// Of pieces that are joined with the kernel's records.
	detail timeline.FuncID // who had the CPU, or the function slept in
	tid    uint32          // of LeafNoCPU: the thread that had the CPU; of LeafOnCPU: the one that ran, 0 not known
	path   *path           // of a stop-the-world or barrier; nil without one
}

type pieceFlags uint8

const (
	pieceInferred pieceFlags = 1 << iota
	pieceHandoff
	pieceMeasured // joined: both ends are events
	pieceStopped  // joined: the world was stopped
	pieceBarrier  // joined: in a ragged barrier
	pieceSocket   // joined: data was there, and the goroutine not yet runnable
	pieceDue      // joined: the timer was due, likewise
)

// piece starts a piece from the cursor down to lo. The next call overwrites it.
func (x *explainer) piece(lo int64, leaf books.Leaf, ident uint32, s *timeline.Segment) *piece {
	p := &x.p
	*p = piece{} // a literal would be built beside it and copied
	p.lo, p.hi, p.leaf, p.class, p.depth, p.ident = lo, x.cursor, leaf, x.class, len(x.stack)-1, ident
	p.site, p.seg, p.queue, p.turn, p.held = x.site, s, x.queue, x.turn, x.held
	// A worker that asks others does not wait for the network itself.
	p.serves = x.serves == timeline.ServingAgain || x.serves == timeline.ServingHelpers && p.depth > 1
	p.asked = x.asked
	if s != nil {
		switch s.State() {
		case timeline.Running, timeline.Waiting, timeline.Syscall:
			p.stack = exectrace.StackID(s.Stack)
		}
		if leaf == books.LeafSweep {
			p.n = s.Ender
		}
	}
	if n := len(x.stack); n > 0 {
		f := &x.stack[n-1]
		if n > 2 && x.stack[1].lock {
			// A writer that waits for a reader has not got the lock yet. Readers that queue behind
			// the writer wait for that reader: the last frame of the class has the lock.
			i := n - 2
			for !x.stack[i].lock || x.stack[i].class != x.stack[1].class {
				i--
			}
			p.holder = x.stack[i+1].ident
		}
		p.lock, p.through, p.hold = f.first, f.through, f.hold
		if f.inferred {
			p.flags |= pieceInferred
		}
		if f.holder && leaf == books.LeafRunnable && s != nil && s.Why() == timeline.WhyWoken {
			if b := x.tl.Seg(s.Prev); b != nil && b.State() == timeline.Waiting && b.Wait() == timeline.WaitLock {
				p.flags |= pieceHandoff
			}
		}
	}
	return p
}

// emitTo books [lo, cursor) and moves the cursor there.
func (x *explainer) emitTo(lo int64, leaf books.Leaf, ident uint32, s *timeline.Segment) {
	if lo >= x.cursor {
		return
	}
	x.emit(x.piece(lo, leaf, ident, s))
}

func (x *explainer) emit(p *piece) {
	if p.lo >= x.cursor {
		return
	}
	x.out(p)
	x.cursor = p.lo
}
