package ledger

import (
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/timeline"
)

// What a segment of a goroutine is booked to by the runtime's word. Both walks ask here: the one
// that explains a request (explain.go) and the one that adds it to the column of all (own.go). The
// kernel's records then cut it further (join.go).

// stateLeaf is the leaf of a segment that is no wait.
func stateLeaf(s *timeline.Segment) books.Leaf {
	switch s.State() {
	case timeline.Running:
		return runningLeaf(s)
	case timeline.Runnable:
		return books.LeafRunnable
	case timeline.Syscall:
		return books.LeafSyscall
	}
	if s.Gap() {
		return books.LeafGap
	}
	return books.LeafUnknown
}

// runningLeaf is what a running goroutine did by the runtime's word.
func runningLeaf(s *timeline.Segment) books.Leaf {
	switch {
	case s.STW():
		return books.LeafSTWWork
	case s.Sweep():
		return books.LeafSweep
	case s.Assist():
		return books.LeafAssist
	}
	return books.LeafOnCPU
}

// followable reports whether a wait is explained by what the goroutine that ended it did meanwhile.
func followable(s *timeline.Segment) bool {
	switch s.Wait() {
	case timeline.WaitMessage, timeline.WaitUnknown, timeline.WaitLock, timeline.WaitNetwork:
		return s.EnderKind() == timeline.EnderGoroutine
	}
	return false
}

// unfollowed is the leaf of a wait that no goroutine ended, or that is not followed to the one that
// did. stale means that a gap cut the segment off.
func unfollowed(s *timeline.Segment, stale bool) books.Leaf {
	w, woken := s.Wait(), s.EnderKind() != timeline.EnderNone
	switch w {
	case timeline.WaitMessage, timeline.WaitLock, timeline.WaitUnknown:
		switch {
		case !woken && (stale || s.Gap()):
			return books.LeafGap
		case s.First() && (!woken || w == timeline.WaitUnknown):
			return books.LeafBeforeTrace
		case !woken:
			return books.LeafNotWoken
		case w == timeline.WaitLock:
			return books.LeafLockUnseen
		}
	}
	return waitLeaf(w)
}

// pastLeaf is the leaf of the time before s where nothing older of its goroutine is known. It is
// false where there is.
func pastLeaf(s *timeline.Segment) (leaf books.Leaf, ends bool) {
	switch {
	case s.First() && s.Gap():
		return books.LeafGap, true
	case s.First():
		return books.LeafBeforeTrace, true
	case s.Prev == 0:
		return books.LeafLookback, true
	}
	return 0, false
}

// collects reports whether a wait is the collector's own.
func collects(w timeline.Wait) bool {
	switch w {
	case timeline.WaitAssistCredit, timeline.WaitMarkTerm, timeline.WaitGCStart, timeline.WaitSTW, timeline.WaitScan:
		return true
	}
	return false
}

// classOfWait is the class of a request's own wait.
func classOfWait(w timeline.Wait, by timeline.Ender) books.Class {
	switch w {
	case timeline.WaitNetwork:
		if by == timeline.EnderGoroutine { // a deadline or Close
			return books.ClassMessage
		}
		return books.ClassOutside
	case timeline.WaitTimer:
		return books.ClassOutside
	case timeline.WaitMessage:
		if by == timeline.EnderP || by == timeline.EnderNobody {
			return books.ClassOutside
		}
		return books.ClassMessage
	case timeline.WaitLock:
		return books.ClassLock
	case timeline.WaitUnknown:
		return books.ClassUnknown
	}
	return books.ClassRuntime
}

// waitLeaf is the leaf of a wait that is not followed.
func waitLeaf(w timeline.Wait) books.Leaf {
	switch w {
	case timeline.WaitNetwork:
		return books.LeafNetwork
	case timeline.WaitTimer, timeline.WaitMessage:
		return books.LeafTimer // for a message that no goroutine sent: a timer's channel
	case timeline.WaitAssistCredit:
		return books.LeafAssistCredit
	case timeline.WaitMarkTerm:
		return books.LeafMarkTermQueue
	case timeline.WaitGCStart:
		return books.LeafGCStartQueue
	case timeline.WaitSTW:
		return books.LeafSTWQueue
	case timeline.WaitScan:
		return books.LeafStackScan
	case timeline.WaitIdle:
		return books.LeafRuntimeIdle
	}
	return books.LeafUnknown
}
