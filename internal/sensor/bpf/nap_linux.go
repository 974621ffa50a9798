package bpf

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime is the CPU time of the calling thread, in ns.
func ThreadTime() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return ts.Nano()
}

// sleep waits in the thread itself, see Nap.
func sleep(d time.Duration) {
	wait(-1, d)
}

// Nap waits in the thread itself. A goroutine's timer would make another thread of ours wake this
// one, and that other thread waits for its turn.
type Nap struct {
	pipe [2]int
	stop func()
}

// NewNap makes naps that the end of ctx ends.
func NewNap(ctx context.Context) (*Nap, error) {
	n := &Nap{}
	if err := unix.Pipe2(n.pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		unix.Write(n.pipe[1], []byte{0})
		close(done)
	})
	n.stop = func() {
		if !stop() {
			<-done // it uses the pipe
		}
	}
	return n, nil
}

// Wait waits for d, or until ctx ends.
func (n *Nap) Wait(d time.Duration) {
	wait(int32(n.pipe[0]), d)
}

// Close closes the pipe; no Wait may be under way.
func (n *Nap) Close() {
	n.stop()
	unix.Close(n.pipe[0])
	unix.Close(n.pipe[1])
}
