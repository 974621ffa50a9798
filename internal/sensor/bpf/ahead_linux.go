package bpf

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	aheadWindow = 20 * time.Millisecond
	aheadLook   = aheadWindow / 2        // between two looks in a crowd
	aheadSeldom = 250 * time.Millisecond // otherwise: a look costs 0.5 ms, as it wakes the runtime
	// aheadShare is what they may take of the machine's time that way. It was a fifth, and a server
	// that a burst had put behind did not catch up again.
	aheadShare = 1.0 / 10
	// mostOwed bounds how long the threads do without, as they used too much.
	mostOwed = 5 * aheadWindow
	// crowd is how many threads per CPU must run or want to run: with fewer, an ordinary thread
	// gets a fifth.
	crowd = 4
)

// Ahead lets the ordinary threads of this process run before those of others while the machine is
// crowded, where that is permitted, until ctx ends. It returns then. loadavg is the path of
// /proc/loadavg; while pause returns true no thread is ahead, nor while they run behind others.
//
// Without it, in a session of its own beside 60 threads that poll in another, a thread that only
// computes gets between 1 and 50 % of a CPU (Linux 6.18). Up to nine of ten records were lost, as
// other threads of the recorder held up the reading one, and the explanation took up to 33 s for
// half a second of CPU. With a fifth of the machine's time ahead of others no record was lost, and
// the explanation took 1 to 5 s. When the threads exceeded aheadShare, they are ordinary until the
// excess is made up for.
func Ahead(ctx context.Context, loadavg string, pause func() bool) {
	Ordinary(func() { lookAhead(ctx, loadavg, pause) })
}

func lookAhead(ctx context.Context, loadavg string, pause func() bool) {
	f, err := os.Open(loadavg)
	if err != nil {
		return
	}
	defer f.Close()
	n, err := NewNap(ctx)
	if err != nil {
		return
	}
	defer n.Close()
	a := ahead{tids: map[int]bool{}, window: share(aheadWindow, aheadShare)}
	if !a.take(0) {
		return // it may not, or was started in a class of its own
	}
	setClass(0, unix.SCHED_NORMAL, 0)
	defer promptly()()
	defer a.release()
	var wanting float64 // threads a CPU
	for next := aheadSeldom; ctx.Err() == nil; n.Wait(next) {
		wanting += (running(f)/float64(runtime.NumCPU()) - wanting) / 4
		now, used := time.Now(), processTime()
		if wanting < crowd || pause() || runsBehind() {
			a.release()
			a.opened, a.startCPU, next = now, used, aheadSeldom
			continue
		}
		next = aheadLook
		if owed, over := a.over(now, used); owed > 0 {
			a.release()
			n.Wait(owed)
			a.opened, a.startCPU = time.Now(), processTime()
		} else if over {
			a.opened, a.startCPU = now, used
		}
		a.takeAll()
	}
}

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

// ahead is the set of threads that run ahead.
type ahead struct {
	tids map[int]bool
	window
}

// takeAll puts every ordinary thread of the process ahead.
func (a *ahead) takeAll() {
	for _, tid := range ownThreads() {
		if !a.tids[tid] && a.take(tid) {
			a.tids[tid] = true
		}
	}
}

// ownThreads lists the threads of this process; nil where /proc does not tell.
func ownThreads() (tids []int) {
	d, err := os.Open("/proc/self/task")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	for _, name := range names {
		if tid, err := strconv.Atoi(name); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids
}

// take puts a thread ahead, unless it has a class of its own, as the thread that reads the kernel's
// logs has.
func (a *ahead) take(tid int) bool {
	attr, err := unix.SchedGetAttr(tid, 0)
	return err == nil && attr.Policy == unix.SCHED_NORMAL && setClass(tid, unix.SCHED_RR, 1)
}

// release makes all of them ordinary again.
func (a *ahead) release() {
	for tid := range a.tids {
		setClass(tid, unix.SCHED_NORMAL, 0)
	}
	clear(a.tids)
}

// running is how many threads of the machine run or want to run: the fourth field of /proc/loadavg
// (proc(5)).
func running(f *os.File) float64 {
	var b [128]byte
	n, _ := f.ReadAt(b[:], 0)
	fields := bytes.Fields(b[:n])
	if len(fields) < 4 {
		return 0
	}
	now, _, _ := bytes.Cut(fields[3], []byte("/"))
	v, _ := strconv.ParseFloat(string(now), 64)
	return v
}

// processTime is the CPU time of this process, ns.
func processTime() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return ts.Nano()
}

// promptly lets the calling thread run before all others for 1 ms in 20, where that is permitted,
// until the function that it returns is called (class SCHED_DEADLINE). The kernel holds it to that,
// should it wait in the Go runtime, without sleep, for a thread that gets no CPU; see Hurry.
func promptly() (end func()) {
	const window = uint64(20 * time.Millisecond)
	if unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_DEADLINE,
		Flags: unix.SCHED_FLAG_RESET_ON_FORK, Runtime: window / 20, Deadline: window, Period: window}, 0) != nil {
		return func() {}
	}
	return func() { setClass(0, unix.SCHED_NORMAL, 0) }
}

// setClass gives a thread of ours another class; tid 0 is the calling one. Threads that it starts
// are ordinary.
func setClass(tid int, policy, priority uint32) bool {
	return unix.SchedSetAttr(tid, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: policy, Priority: priority, Flags: unix.SCHED_FLAG_RESET_ON_FORK,
	}, 0) == nil
}
