package thread

import (
	"cmp"

	"github.com/whystall/whystall/internal/sched"
)

// lockCalls are the calls by which threads wait for a lock on a file, or for a semaphore of System V, and let go of it: the kernel keeps
// these, so that no futex tells of them.
type lockCalls struct{ flock, fcntl, close, semop, semtimedop int32 }

var lockCallsOf = map[string]lockCalls{
	"amd64": {flock: 73, fcntl: 72, close: 3, semop: 65, semtimedop: 220},
	"arm64": {flock: 32, fcntl: 25, close: 57, semop: 193, semtimedop: 192},
}

func (w *Walk) calls() lockCalls {
	c, ok := lockCallsOf[cmp.Or(w.k.Header().Arch, "amd64")]
	if !ok {
		return lockCalls{-2, -2, -2, -2, -2}
	}
	return c
}

// fileLock tells a wait for a lock on a file. Nothing else makes these calls block, but a file system that waits for its disk or server.
func (w *Walk) fileLock(s *sched.Stretch) bool {
	c := w.calls()
	return (s.Syscall == c.flock || s.Syscall == c.fcntl) && (s.Block == sched.BlockOther || s.Block == sched.BlockUnknown)
}

// semaphore tells a wait for a semaphore of System V.
func (w *Walk) semaphore(s *sched.Stretch) bool {
	c := w.calls()
	return (s.Syscall == c.semop || s.Syscall == c.semtimedop) && (s.Block == sched.BlockOther || s.Block == sched.BlockUnknown)
}

// letsGo tells whether who ended such a wait was in a call that gives the thing back.
func (w *Walk) letsGo(s, end *sched.Stretch) (hopKind, bool) {
	c, by := w.calls(), end.WakerCall
	switch {
	case w.fileLock(s):
		return hopLock, by == s.Syscall || by == c.close || w.k.Exits(by)
	case w.semaphore(s):
		return hopMessage, by == c.semop || by == c.semtimedop
	}
	return 0, false
}
