package bpf

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whystall/whystall/internal/sensor/session"
)

const (
	behindLook = 500 * time.Millisecond
	// behindFrom is the idle share of the machine's CPUs from which on the threads run behind, and
	// behindTo the one below which they no longer do: they would hardly run at all.
	behindFrom = 0.05
	behindTo   = 0.03
	// behindPatience is how many looks in a row must find less: in a burst of requests all CPUs are
	// busy for a while, and to run before them would lengthen it.
	behindPatience = 3
)

// Behind lets the ordinary threads of this process run after those of all others while CPUs are
// idle now and then, until ctx ends (class SCHED_IDLE). Every user may take that class, but only
// with privilege comes a thread out of it again: without, Behind does nothing. A thread of the
// target that wakes then takes the CPU from them at once. uptime is the path of /proc/uptime, whose
// second number is how long the CPUs were idle.
//
// Where nothing is idle they would not run either: then they are ordinary, or even ahead. Until
// that is known they are behind, as the first half second takes the most CPU time. What they use
// while they are behind counts as idle: nobody else wanted it. The thread that looks does not run
// behind.
func Behind(ctx context.Context, uptime string) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer session.Lowered(false)
	if !mayComeBack() {
		return
	}
	f, err := os.Open(uptime)
	if err != nil {
		return
	}
	defer f.Close()
	n, err := NewNap(ctx)
	if err != nil {
		return
	}
	defer n.Close()
	defer promptly()()
	defer reclass(unix.SCHED_IDLE, unix.SCHED_NORMAL)
	behind := true
	reclass(unix.SCHED_NORMAL, unix.SCHED_IDLE)
	last, used, at, busy := idleSeconds(f), processTime(), time.Now(), 0
	for n.Wait(behindLook / 2); ctx.Err() == nil; n.Wait(behindLook) {
		idle, own, now := idleSeconds(f), processTime(), time.Now()
		if hurry.pauses(now) {
			behind, busy, last, used, at = false, 0, idle, own, now
			reclass(unix.SCHED_IDLE, unix.SCHED_NORMAL)
			continue
		}
		free := idle - last
		if behind {
			free += float64(own-used) / 1e9
		}
		share := free / (now.Sub(at).Seconds() * float64(runtime.NumCPU()))
		last, used, at = idle, own, now
		switch busy++; {
		case share >= behindFrom || behind && share >= behindTo:
			behind, busy = true, 0
			reclass(unix.SCHED_NORMAL, unix.SCHED_IDLE)
		case behind && busy >= behindPatience:
			behind = false
			reclass(unix.SCHED_IDLE, unix.SCHED_NORMAL)
		}
	}
}

// reclass moves all threads of this process from one class to another, the present one and those
// that run what is Ordinary only to the ordinary one. A thread that starts another passes its class
// on, so it looks until no thread is left to move.
func reclass(from, to uint32) {
	reclassing.Lock()
	defer reclassing.Unlock()
	ordinary.Lock()
	ordinary.others = to
	ordinary.Unlock()
	for moved := true; moved; {
		moved = false
		for _, tid := range ownThreads() {
			if to == unix.SCHED_NORMAL || tid != unix.Gettid() {
				moved = reclassOne(tid, from, to) || moved
			}
		}
	}
	session.Lowered(to == unix.SCHED_IDLE)
}

// reclassing is held by who moves threads: two that move them to and fro would not come to an end.
var reclassing sync.Mutex

// reclassOne reports whether it gave the thread another class.
func reclassOne(tid int, from, to uint32) bool {
	ordinary.Lock()
	defer ordinary.Unlock()
	if to != unix.SCHED_NORMAL && ordinary.runs[tid] > 0 {
		return false
	}
	is, err := unix.SchedGetAttr(tid, 0)
	if err != nil || is.Policy != from {
		return false
	}
	is.Policy = to
	return unix.SchedSetAttr(tid, is, 0) == nil
}

// mayComeBack tries with a thread that then ends whether one that runs behind may be ordinary again
// (sched(7): RLIMIT_NICE, or CAP_SYS_NICE).
func mayComeBack() bool {
	may := make(chan bool)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		may <- setClass(0, unix.SCHED_IDLE, 0) && setClass(0, unix.SCHED_NORMAL, 0)
	}()
	return <-may
}

// hurry is for how long no thread of this process runs behind others.
var hurry pause

type pause struct {
	sync.Mutex
	until time.Time
	spell time.Duration // of the last pause
}

const (
	hurryLeast = time.Second // and each time twice as long as before
	hurryMost  = 16 * time.Second
)

func (p *pause) pauses(now time.Time) bool {
	p.Lock()
	defer p.Unlock()
	return now.Before(p.until)
}

// begin starts a pause, unless one is under way.
func (p *pause) begin(now time.Time) bool {
	p.Lock()
	defer p.Unlock()
	if now.Before(p.until) {
		return false
	}
	p.spell = min(max(2*p.spell, hurryLeast), hurryMost)
	p.until = now.Add(p.spell)
	return true
}

// Hurry is for a thread that is late, or is about to be: for a while no thread of this process runs
// behind others. All of them have the same class at any time but for moments. A thread of a better
// one would wait in the Go runtime, without sleep, for one that is behind and gets no CPU: one that
// scans its stack. A reader of class SCHED_RR did so for 11 s, beside a server that then answered a
// tenth of its requests.
func Hurry() {
	if runsBehind() && hurry.begin(time.Now()) {
		reclass(unix.SCHED_IDLE, unix.SCHED_NORMAL)
	}
}

// runsBehind reports whether the threads of this process run behind others by now.
func runsBehind() bool {
	ordinary.Lock()
	defer ordinary.Unlock()
	return ordinary.others == unix.SCHED_IDLE
}

// idleSeconds is for how long the machine's CPUs were idle, all of them added up.
func idleSeconds(f *os.File) float64 {
	var b [64]byte
	n, _ := f.ReadAt(b[:], 0)
	fields := bytes.Fields(b[:n])
	if len(fields) < 2 {
		return 0
	}
	v, _ := strconv.ParseFloat(string(fields[1]), 64)
	return v
}

// ordinary counts for each thread the calls of Ordinary that are under way in it. others is the
// class that all others have by now.
var ordinary = struct {
	sync.Mutex
	runs   map[int]int
	others uint32
}{runs: map[int]int{}}

// Ordinary runs f in an ordinary thread: who holds a lock of the target must not run behind others
// meanwhile.
func Ordinary(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tid := unix.Gettid()
	ordinary.Lock()
	ordinary.runs[tid]++
	is, err := unix.SchedGetAttr(tid, 0)
	behind := err == nil && is.Policy == unix.SCHED_IDLE && setClass(tid, unix.SCHED_NORMAL, 0)
	ordinary.Unlock()
	defer func() {
		ordinary.Lock()
		defer ordinary.Unlock()
		if ordinary.runs[tid]--; ordinary.runs[tid] == 0 {
			delete(ordinary.runs, tid)
		}
		if behind && ordinary.others == unix.SCHED_IDLE {
			unix.SchedSetAttr(tid, is, 0)
		}
	}()
	f()
}
