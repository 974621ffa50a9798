package bpf

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// First lets the thread that reads the kernel's logs run before all ordinary ones, where that is
// permitted: where threads spin, the logs overflow before an ordinary thread gets a CPU. Nice
// values are no help. They are weighed within a group of the scheduler, and a session or a unit is
// one. Beside 60 polling threads of another session one thread of nice -20 made its whole group
// wait for up to 3.3 s; without it a thread waited for 3 ms on average and 165 ms at most, in class
// SCHED_RR for 2 ms.
//
// So that it cannot hold up the target, the thread sleeps when it has used a fifth of the machine's
// time in a firstWindow, which is a part of one CPU at most. A thread of the target that waits
// meanwhile waits no longer than that. First is for the thread that calls Keep; threads that it
// starts are not preferred. The zero value is ready; nil does nothing.
//
// While CPUs are idle now and then, the thread is one of those that run behind all others (Behind).
// It then becomes first only when it no longer is, or for a while when it is told to Hurry.
type First struct {
	active bool
	behind bool
	before *unix.SchedAttr // nil: not read yet
	until  time.Time       // when it goes back behind others, if those of the process still are
	spell  time.Duration   // for how long it was made to hurry the last time
	window
}

const (
	firstWindow = 2 * time.Millisecond
	// A thread that was late hurries for hurryLeast, and each time for twice as long as before.
	hurryLeast = time.Second
	hurryMost  = 16 * time.Second
	// mostOwed bounds how long a thread sleeps off what it used too much.
	mostOwed = 100 * time.Millisecond
)

// window bounds what is used of the CPUs: most in the length of the window.
type window struct {
	length   time.Duration
	most     int64     // ns
	opened   time.Time // when it started
	startCPU int64     // CPU time used by then, ns
}

// share makes a window of that length in which the given part of the machine's time may be used.
func share(length time.Duration, part float64) window {
	return window{length: length, most: int64(float64(length) * float64(runtime.NumCPU()) * part)}
}

// over reports whether the window has ended. owed is how long to do without, as more was used than
// allowed.
func (w *window) over(now time.Time, used int64) (owed time.Duration, over bool) {
	spent, passed := used-w.startCPU, now.Sub(w.opened)
	if spent <= w.most && passed < w.length {
		return 0, false
	}
	// An excess within one go is slept off as well.
	owed = time.Duration(float64(w.length)*float64(spent)/float64(w.most)) - passed
	return max(0, min(owed, mostOwed)), true
}

// Keep makes the calling thread first. The thread calls it again at least once in some hundred
// microseconds of its work.
func (f *First) Keep() {
	if f == nil || f.before != nil && !f.active && !f.behind && f.until.IsZero() {
		return
	}
	if f.behind {
		if is, err := unix.SchedGetAttr(0, 0); err != nil || is.Policy == unix.SCHED_IDLE {
			return
		}
		f.before, f.behind = nil, false
	}
	now, used := time.Now(), ThreadTime()
	if f.before == nil {
		f.start()
		if f.behind {
			return
		}
	} else {
		owed, over := f.over(now, used)
		if !over {
			return
		}
		if f.goBehind(now) {
			return
		}
		if owed > 0 && f.active {
			sleep(owed)
			now = time.Now()
		}
	}
	f.opened, f.startCPU = now, used
}

func (f *First) start() {
	f.window = share(firstWindow, 0.2)
	f.most = min(f.most, int64(firstWindow*9/10))
	var err error
	if f.before, err = unix.SchedGetAttr(0, 0); err != nil {
		f.before = &unix.SchedAttr{}
		return
	}
	if f.before.Policy == unix.SCHED_IDLE {
		f.behind = true
		return
	}
	// A thread that was started in a class of its own stays there. Most users may not change the
	// class, nor may a process whose cgroup has no time for such threads.
	f.active = f.before.Policy == unix.SCHED_NORMAL && setClass(0, unix.SCHED_RR, 1)
}

// Hurry makes a thread first that is behind: it was too late to read, or is about to be.
func (f *First) Hurry() {
	if f != nil && f.behind && setClass(0, unix.SCHED_NORMAL, 0) {
		f.spell = min(max(2*f.spell, hurryLeast), hurryMost)
		f.until = time.Now().Add(f.spell)
		f.Keep()
	}
}

// goBehind puts a thread back that has hurried for its spell, while the others of the process are
// behind, and reports whether it did.
func (f *First) goBehind(now time.Time) bool {
	if f.until.IsZero() || now.Before(f.until) {
		return false
	}
	ordinary.Lock()
	defer ordinary.Unlock()
	if ordinary.others != unix.SCHED_IDLE || !setClass(0, unix.SCHED_IDLE, 0) {
		return false
	}
	f.active, f.behind, f.until = false, true, time.Time{}
	return true
}

// setClass gives a thread of ours another class; tid 0 is the calling one. Threads that it starts
// are ordinary.
func setClass(tid int, policy, priority uint32) bool {
	return unix.SchedSetAttr(tid, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: policy, Priority: priority, Flags: unix.SCHED_FLAG_RESET_ON_FORK,
	}, 0) == nil
}

// End makes the thread ordinary, for good.
func (f *First) End() {
	if f != nil && f.active {
		f.active = false
		// Taking the flag back as well may not be permitted; it does no harm.
		f.before.Flags |= unix.SCHED_FLAG_RESET_ON_FORK
		unix.SchedSetAttr(0, f.before, 0)
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
	wait(-1, d)
}

// Nap waits in the thread itself. A goroutine's timer would make another thread of ours wake this
// one, and that other thread is not first: it waits for its turn.
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
