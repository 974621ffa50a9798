package thread

import (
	"strings"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// releaseKind says what kind of release ended the wait s; end is its end. It reports false if the
// thread that ended it is not known to have released what was waited for.
func (w *Walk) releaseKind(s, end *sched.Stretch) (kind hopKind, released bool) {
	if end.Waker == 0 || !end.WakerTarget || end.ByInterrupt || end.WakerSignal {
		return 0, false
	}
	user, kern := w.stack(end.WakerUser), w.stack(end.WakerKernel)
	if user.goFrames {
		// Go's runtime wakes threads for many reasons. Only these functions release what was waited
		// for.
		if !user.goRelease {
			return 0, false
		}
		if user.goUnlock {
			return hopLock, true
		}
		return hopMessage, true
	}
	switch s.Block {
	case sched.BlockFutex:
		switch {
		case kern.exit, w.k.Exits(end.WakerCall):
			return hopLife, true
		case kern.futex, end.WakerCall >= 0 && end.WakerArg != 0 && end.WakerArg&^7 == s.Futex&^7:
		default:
			return 0, false // nothing shows that this thread woke it by the futex
		}
		if w.isLock(s) {
			return hopLock, true
		}
		return hopMessage, true
	case sched.BlockChild:
		return hopLife, kern.exit
	case sched.BlockPipe, sched.BlockNetwork:
		// Without a kernel stack the waker's call must do: a thread in no call was interrupted.
		return hopMessage, kern.write || end.WakerKernel == 0 && end.WakerCall >= 0
	case sched.BlockOther, sched.BlockUnknown:
		if kind, released := w.callRelease(s, end); released {
			return kind, true
		}
	}
	return hopMessage, kern.futex || kern.write
}

// isLock reports whether a wait is for a lock, a futex's or a file's. Then its holder matters, and
// not only its waker.
func (w *Walk) isLock(s *sched.Stretch) bool {
	if s.Block != sched.BlockFutex {
		return w.isFileLock(s)
	}
	f := w.k.FutexOf(s)
	return f != nil && f.Kind.Lock()
}

// wakeStack is what the stack of a waker shows.
type wakeStack struct {
	goFrames  bool // functions of Go's runtime
	goRelease bool // one that releases what others wait for
	goUnlock  bool // one that unlocks the runtime's mutex
	futex     bool // the kernel's call to wake a futex
	exit      bool // the end of a thread
	write     bool // a write to a pipe, a socket or an eventfd
}

func (w *Walk) stack(id uint32) wakeStack {
	st, ok := w.stacks[id]
	if ok || id == 0 {
		return st
	}
	frames := w.k.Stack(id)
	for i := range frames {
		st.learn(&frames[i])
	}
	w.stacks[id] = st
	return st
}

func (st *wakeStack) learn(f *kernel.Frame) {
	name := f.Func
	if f.Inferred {
		return // it may never have been called
	}
	if rest, ok := strings.CutPrefix(name, "runtime."); ok {
		st.goFrames = true
		switch strings.TrimSuffix(rest, ".abi0") {
		case "unlock", "unlock2", "unlock2Wake", "unlockWithRank":
			st.goRelease, st.goUnlock = true, true
		case "semrelease", "semrelease1", "notewakeup":
			st.goRelease = true
		}
		return
	}
	switch name {
	case "futex_wake", "do_futex", "futex_wake_op", "futex_requeue", "futex_unlock_pi",
		"__x64_sys_futex", "__arm64_sys_futex", "__ia32_sys_futex":
		st.futex = true
	case "do_exit", "mm_release", "exit_mm_release", "exec_mm_release":
		st.exit = true
	case "pipe_write", "anon_pipe_write", "eventfd_write", "vfs_write", "ksys_write", "do_writev",
		"__sys_sendto", "__sys_sendmsg", "___sys_sendmsg",
		"unix_stream_sendmsg", "unix_dgram_sendmsg", "sock_write_iter", "eventfd_signal", "eventfd_signal_mask":
		st.write = true
	}
}
