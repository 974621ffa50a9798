package bpf

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A thread that waits in a system call keeps its P for up to 10 ms. Meanwhile the runtime's monitor
// wakes, every 20 us at first, to look whether it should take the P away: some 60 wake-ups for each
// nap of 20 to 100 ms. Each of them takes a CPU from the target for some us. They were a third of
// what the recorder used beside a busy server. The runtime's own blocking calls give their P back
// at once, by these functions. Their signatures are fixed, as gVisor uses them in the same way
// (go.dev/issue/67401).

//go:linkname entersyscallblock runtime.entersyscallblock
func entersyscallblock()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()

// poll is ppoll(2) that gives the P back before it waits. Between the two calls nothing may grow
// the stack. A negative fd is passed over.
//
//go:nosplit
func poll(fd *unix.PollFd, timeout *unix.Timespec) {
	entersyscallblock()
	unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(fd)), 1, uintptr(unsafe.Pointer(timeout)), 0, 0, 0)
	exitsyscall()
}

// wait waits for d, or until fd can be read; with -1 for d.
func wait(fd int32, d time.Duration) {
	ts := unix.NsecToTimespec(int64(max(0, d)))
	poll(&unix.PollFd{Fd: fd, Events: unix.POLLIN}, &ts)
}
