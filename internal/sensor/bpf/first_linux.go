package bpf

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// First has the thread that reads what the kernel tells run before all ordinary ones, where that is permitted: where threads spin, the logs
// overflow before an ordinary thread gets a CPU. Nice values are no help: they are weighed within a group of the scheduler, and a session or a
// unit is one. Beside 60 polling threads of another session one thread of nice -20 made its whole group wait for up to 3.3 s; without it a thread
// waited for 3 ms on average and 165 ms at most, in class SCHED_RR for 2 ms.
//
// So that it cannot hold up the target, it sleeps when it has used a fifth of the machine's time of a firstWindow, a part of one CPU at
// most. It is for the thread that calls Keep, and what that one begins is not preferred. The zero value is ready; nil does nothing.
type First struct {
	on   bool
	at   time.Time       // when the window began
	from int64           // CPU time of the thread by then, ns
	was  *unix.SchedAttr // nil: not asked yet
	most int64           // ns of a window
}

const firstWindow = 20 * time.Millisecond

// Keep is called by the thread from when on it is to be first, and then at least once in some thousand events.
func (f *First) Keep() {
	if f == nil || f.was != nil && !f.on {
		return
	}
	now, used := time.Now(), ThreadTime()
	if f.was == nil {
		f.begin()
	} else {
		spent, passed := used-f.from, now.Sub(f.at)
		if spent <= f.most && passed < firstWindow {
			return
		}
		// What went over it in one go is slept off as well.
		if owed := time.Duration(float64(firstWindow)*float64(spent)/float64(f.most)) - passed; owed > 0 {
			sleep(min(owed, 5*firstWindow))
			now = time.Now()
		}
	}
	f.at, f.from = now, used
}

func (f *First) begin() {
	f.most = int64(min(firstWindow*time.Duration(runtime.NumCPU())/5, firstWindow*9/10))
	var err error
	if f.was, err = unix.SchedGetAttr(0, 0); err != nil {
		f.was = &unix.SchedAttr{}
		return
	}
	// Who was begun in a class of its own stays there. Most users may not do this, nor whose cgroup has no time for such threads.
	f.on = f.was.Policy == unix.SCHED_NORMAL && unix.SchedSetAttr(0, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK,
	}, 0) == nil
}

// End makes it as others are, for good.
func (f *First) End() {
	if f != nil && f.on {
		f.on = false
		// To take the flag back as well may not be permitted; it does no harm.
		f.was.Flags |= unix.SCHED_FLAG_RESET_ON_FORK
		unix.SchedSetAttr(0, f.was, 0)
	}
}

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
	ts := unix.NsecToTimespec(int64(d))
	unix.Ppoll(nil, &ts, nil)
}

// Nap waits in the thread itself. A goroutine's timer would have another thread of ours call this one, and that one waits for its turn.
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
			<-done // it has the pipe
		}
	}
	return n, nil
}

// Wait is for d, or until ctx ends.
func (n *Nap) Wait(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	unix.Ppoll([]unix.PollFd{{Fd: int32(n.pipe[0]), Events: unix.POLLIN}}, &ts, nil)
}

// Close lets go of what it has; no Wait may be under way.
func (n *Nap) Close() {
	n.stop()
	unix.Close(n.pipe[0])
	unix.Close(n.pipe[1])
}
