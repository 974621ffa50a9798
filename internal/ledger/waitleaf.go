package ledger

import (
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/timeline"
)

// classOfWait is the class a request's own wait has.
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
		return books.LeafTimer // of a message without a goroutine that sent it: a timer's channel
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
