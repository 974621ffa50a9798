package ledger

import (
	"cmp"
	"strings"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/timeline"
	"github.com/whystall/whystall/internal/unit"
)

// blockLeaf is the leaf of what a thread is blocked in; false where that is not known, or none that has a leaf.
func blockLeaf(b sched.Block) (leafCode, bool) {
	switch b {
	case sched.BlockFutex:
		return codeAsleep, true
	case sched.BlockNetwork:
		return codeNetwork, true
	case sched.BlockTimer:
		return codeTimer, true
	case sched.BlockPipe:
		return codePipe, true
	case sched.BlockDisk:
		return codeDisk, true
	case sched.BlockFault:
		return codeFault, true
	case sched.BlockReclaim:
		return codeReclaim, true
	case sched.BlockMemcg:
		return codeMemcg, true
	case sched.BlockCompaction:
		return codeCompaction, true
	case sched.BlockMmapLock:
		return codeMmapLock, true
	case sched.BlockTLB:
		return codeTLB, true
	case sched.BlockNUMA:
		return codeNUMA, true
	}
	return codeAsleep, false
}

// sleep is the function that a blocked thread sleeps in: the innermost of the user stack that is no plumbing, else of the kernel's.
func (j *joiner) sleep(s *sched.Stretch) timeline.FuncID {
	if s.Block == sched.BlockStopped {
		return j.detail(stopped)
	}
	key := [2]uint32{s.User, s.Kernel}
	id, ok := j.sleeps[key]
	if ok {
		return id
	}
	if name := sleepsIn(j.k, s); name != "" {
		id = j.detail(name)
	}
	j.sleeps[key] = id
	return id
}

// stopped is what a thread sleeps in that SIGSTOP, a debugger or the like stopped.
const stopped = "a stop by a signal or a debugger"

// sleepsIn names the function: "" where no stack was recorded.
func sleepsIn(k *sched.Timeline, s *sched.Stretch) string {
	if s.Block == sched.BlockStopped {
		return stopped
	}
	if name := asksToSleep(k.Stack(s.User)); name != "" {
		return name
	}
	for _, f := range k.Stack(s.Kernel) {
		switch f.Func {
		case "", "__schedule", "schedule", "schedule_timeout", "schedule_hrtimeout_range", "schedule_hrtimeout_range_clock", "io_schedule",
			"preempt_schedule_irq", "preempt_schedule_common", "__cond_resched":
			continue
		}
		return f.Func
	}
	return ""
}

// asksToSleep is the innermost function of a user stack that is no plumbing. Where all of the thread's own are, it is the innermost of a language's or
// a lock's library; else the outermost.
func asksToSleep(frames []kernel.Frame) string {
	last, library := "", ""
	for _, f := range frames {
		if f.Func == "" {
			continue
		}
		if library != "" && unit.ThreadRoot(f.Func) {
			return library
		}
		last = f.Func
		if !sleepPlumbing(f.Func) {
			return f.Func
		}
		if library == "" && (unit.LanguageFunc(f.Func) || unit.LockFunc(f.Func)) {
			library = f.Func
		}
	}
	return cmp.Or(library, last)
}

// sleepPlumbing tells of a function that it only passes on that its caller wants to sleep or to lock.
func sleepPlumbing(name string) bool {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".abi0"), ".goroutine")
	switch name {
	case "runtime.futex", "runtime.futexsleep", "runtime.lock", "runtime.lock2", "runtime.lockWithRank", "runtime.(*mLockProfile).start",
		"runtime.notesleep", "runtime.notetsleep", "runtime.notetsleep_internal", "runtime.notetsleepg", "runtime.semasleep", "runtime.mPark",
		"runtime.usleep", "runtime.osyield", "runtime.systemstack", "runtime.systemstack_switch", "runtime.mcall", "runtime.semacquire",
		"syscall", "__futex_abstimed_wait_common", "__futex_abstimed_wait_common64", "__futex_abstimed_wait_cancelable64", "futex_wait", "__lll_lock_wait", "__lll_lock_wait_private",
		"pthread_mutex_lock", "__pthread_mutex_lock", "___pthread_mutex_lock", "pthread_cond_wait", "__pthread_cond_wait", "pthread_cond_timedwait":
		return true
	}
	return unit.LanguageFunc(name) || unit.LockFunc(name)
}
