package collect

import (
	"fmt"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/whystall/whystall/internal/sensor/bpf"
)

// bpfBudget watches what recording costs against what the target uses, and lowers the detail in steps when it is too much.
//
// The programs' time is measured in windows, as measuring costs by itself, and taken to be the same between them. The first
// window comes early: a short recording should know its cost as well.
type bpfBudget struct {
	r     *bpf.Recorder
	pid   int
	share float64
	begun time.Time

	meter  *bpf.Meter
	opened time.Time
	next   time.Time
	blind  bool    // the kernel does not let us measure
	rate   float64 // ns of programs per ns

	at         time.Time // up to when the figures below are
	own        int64
	target     int64
	first      int64
	events     int64
	programsNS float64

	level   int
	lowered []string
	windows int
}

const (
	meterFirst  = 300 * time.Millisecond
	meterWindow = 100 * time.Millisecond
	meterEvery  = time.Second

	// eventNS is what an event is taken to cost where programs cannot be measured; stacks included, on the machine this was
	// written on.
	eventNS = 400

	// cheap is the share of one CPU that recording may always take: a target that does nothing has no budget.
	cheap = 0.005
)

func newBPFBudget(r *bpf.Recorder, p Process) *bpfBudget {
	now := time.Now()
	b := &bpfBudget{r: r, pid: p.PID, share: p.Budget, begun: now, next: now.Add(meterFirst), at: now, own: threadTime(), target: processCPU(p.PID)}
	b.first = b.target
	return b
}

// tick is called often, with how many events came so far. It tells the new level when it has lowered the detail.
func (b *bpfBudget) tick(now time.Time, events int64) (level int, lower bool) {
	if b.meter == nil {
		if now.Before(b.next) {
			return 0, false
		}
		b.opened, b.next = now, now.Add(meterEvery)
		if !b.blind {
			m, err := b.r.Measure()
			if b.meter, b.blind = m, err != nil; !b.blind {
				return 0, false
			}
		}
	} else if now.Sub(b.opened) < meterWindow {
		return 0, false
	} else {
		b.rate = float64(b.meter.Stop(b.r)) / float64(now.Sub(b.opened))
		b.meter = nil
	}
	return b.judge(now, events)
}

// judge compares since the last time.
func (b *bpfBudget) judge(now time.Time, events int64) (level int, lower bool) {
	own, wall := threadTime(), now.Sub(b.at)
	programs := b.rate * float64(wall)
	if b.blind {
		programs = float64(events-b.events) * eventNS
	}
	cost := float64(own-b.own) + programs
	target := processCPU(b.pid)
	used := float64(target - b.target)
	if target < 0 { // it is gone
		target, used = b.target, 0
	}
	b.programsNS += programs
	b.at, b.own, b.target, b.events = now, own, target, events
	// The first window holds what is done once: everybody's names, each stack for the first time.
	if b.windows++; b.windows < 2 {
		return 0, false
	}
	if b.share <= 0 || cost <= b.share*used || cost <= cheap*float64(wall) || b.level+1 >= len(bpf.Levels) {
		return 0, false
	}
	if err := b.r.Lower(b.level + 1); err != nil {
		return 0, false
	}
	b.level++
	b.lowered = append(b.lowered, fmt.Sprintf("from %.1f s on: %s", now.Sub(b.begun).Seconds(), bpf.Levels[b.level]))
	return b.level, true
}

// end gives what it came to: CPU time of the programs and of the target, and what was given up.
func (b *bpfBudget) end(events int64) (programs, target int64, lowered string) {
	now := time.Now()
	if b.meter != nil {
		b.rate = float64(b.meter.Stop(b.r)) / float64(max(1, now.Sub(b.opened)))
		b.meter = nil
	}
	b.share = 0
	b.judge(now, events)
	return int64(b.programsNS), max(0, b.target-b.first), strings.Join(b.lowered, "; ")
}

// threadTime is the CPU time of the calling thread, ns.
func threadTime() int64 {
	const rusageThread = 1
	var u syscall.Rusage
	if syscall.Getrusage(rusageThread, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// processCPU is the CPU time of a process, ns, by the clock that each has; -1 when it is gone.
func processCPU(pid int) int64 {
	clock := ^uintptr(pid)<<3 | 2 // MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED)
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return -1
	}
	return ts.Nano()
}
