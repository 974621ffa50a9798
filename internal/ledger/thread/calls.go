package thread

import (
	"cmp"

	"github.com/whystall/whystall/internal/sched"
)

// lockCalls are the numbers of the calls by which threads wait for a lock on a file or for a
// semaphore of System V, and release it. The kernel keeps these locks itself, so no futex shows
// them.
type lockCalls struct{ flock, fcntl, close, semop, semtimedop int32 }

var lockCallsOf = map[string]lockCalls{
	"amd64": {flock: 73, fcntl: 72, close: 3, semop: 65, semtimedop: 220},
	"arm64": {flock: 32, fcntl: 25, close: 57, semop: 193, semtimedop: 192},
}

func (w *Walk) calls() lockCalls {
	c, ok := lockCallsOf[cmp.Or(w.k.Header().Arch, "amd64")]
	if !ok {
		return lockCalls{-2, -2, -2, -2, -2} // -1 is "none or not known", and must not match
	}
	return c
}

// callRelease reports whether the thread that ended a wait for such a lock was in a call that
// releases it, and of what kind that is.
func (w *Walk) callRelease(s, end *sched.Stretch) (kind hopKind, released bool) {
	c, call := w.calls(), end.WakerCall
	switch {
	case w.isFileLock(s):
		return hopLock, call == s.Syscall || call == c.close || w.k.Exits(call)
	case w.isSemaphore(s):
		return hopMessage, call == c.semop || call == c.semtimedop
	}
	return 0, false
}

// isFileLock reports whether a wait is for a lock on a file. Nothing else makes these calls block,
// but a file system that waits for its disk or server.
func (w *Walk) isFileLock(s *sched.Stretch) bool {
	c := w.calls()
	return (s.Syscall == c.flock || s.Syscall == c.fcntl) &&
		(s.Block == sched.BlockOther || s.Block == sched.BlockUnknown)
}

// isSemaphore reports whether a wait is for a semaphore of System V.
func (w *Walk) isSemaphore(s *sched.Stretch) bool {
	c := w.calls()
	return (s.Syscall == c.semop || s.Syscall == c.semtimedop) &&
		(s.Block == sched.BlockOther || s.Block == sched.BlockUnknown)
}
