package profiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/sched"
)

// A wait is what a thread off CPU waited for.
type wait string

const (
	waitedIdle       wait = "nothing to do" // for work, for time, for a child
	waitedCond       wait = "a condition or semaphore (for work, or for what other threads do)"
	waitedLock       wait = "a lock of the program"
	waitedFutex      wait = "a futex (a lock, or a pool's thread without work)"
	waitedKernelLock wait = "a lock of the kernel"
	waitedMmapLock   wait = "mmap_lock"
	waitedDisk       wait = "a disk"
	waitedBuffer     wait = "a buffer of a file system: its I/O, or who has it"
	waitedPeer       wait = "the other end of a socket (an answer, or a client that asks nothing)"
	waitedReclaim    wait = "reclaim of memory"
	waitedNUMA       wait = "migration of memory between nodes"
	waitedFault      wait = "page faults"
	waitedTLB        wait = "TLB flushes"
	waitedPreempted  wait = "a CPU (preempted)"
	waitedPipe       wait = "a pipe or terminal"
	waitedDirect     wait = "other direct I/O on the same file to end"
	waitedDriver     wait = "a driver that sleeps until its device is ready"
	waitedOther      wait = "what no rule knows"
)

var waitOfBlock = map[sched.Block]wait{
	sched.BlockFutex: waitedFutex, sched.BlockNetwork: waitedPeer, sched.BlockTimer: waitedIdle,
	sched.BlockPipe: waitedPipe,
	sched.BlockDisk: waitedDisk, sched.BlockFault: waitedFault, sched.BlockReclaim: waitedReclaim,
	sched.BlockMemcg:      waitedReclaim,
	sched.BlockCompaction: waitedReclaim, sched.BlockMmapLock: waitedMmapLock,
	sched.BlockTLB: waitedTLB, sched.BlockNUMA: waitedNUMA,
	sched.BlockChild: waitedIdle, sched.BlockKernelLock: waitedKernelLock,
	sched.BlockIdle: waitedIdle, sched.BlockStopped: waitedIdle,
}

// waitOf says what a stack waited for, by its functions from the innermost on.
func waitOf(names []string) wait {
	frames := make([]kernel.Frame, 0, len(names))
	for _, name := range names {
		name, _, _ = strings.Cut(name, "+")
		frames = append(frames, kernel.Frame{Func: name})
	}
	if putOff(frames) {
		return waitedPreempted
	}
	if w := simpleWait(frames); w != "" {
		return w
	}
	w, ok := waitOfBlock[sched.BlockOf(frames)]
	if !ok {
		w = waitedOther
	}
	switch user := waitByUser(names); {
	case w == waitedFutex, w == waitedOther:
		if user != "" {
			return user
		}
	case w == waitedPeer && polls(names):
		return waitedIdle
	}
	if w == waitedOther && preempted(names) {
		return waitedPreempted
	}
	return w
}

// simpleWait knows the functions of older kernels, and those which stand alone in a table.
func simpleWait(frames []kernel.Frame) wait {
	for i := range frames {
		name := frames[i].Func
		switch {
		case name == "xfs_buf_lock" || name == "xfs_buf_iowait" || name == "__lock_buffer" ||
			name == "__wait_on_buffer":
			return waitedBuffer
		case name == "inode_dio_wait" || name == "__inode_dio_wait": // as for a lock of the file
			return waitedDirect
		case i == 0 && (name == "msleep" || name == "msleep_interruptible" ||
			name == "usleep_range" || name == "usleep_range_state" || name == "fsleep"):
			return waitedDriver
		case name == "md_flush_request" || name == "blkdev_issue_flush" || name == "__blkdev_issue_flush":
			return waitedDisk
		case strings.Contains(name, "migration_entry_wait"), strings.HasPrefix(name, "migrate_misplaced"):
			return waitedNUMA
		case i > 4:
		case name == "sleep_on_page" || name == "sleep_on_buffer" || name == "wait_on_page_bit" ||
			name == "do_blockdev_direct_IO" || name == "wait_iff_congested" ||
			name == "io_schedule" || name == "io_schedule_timeout" || name == "get_request_wait" ||
			name == "sync_buffer" || name == "blkdev_issue_flush" || name == "jbd2_log_wait_commit":
			if len(frames) == 1 {
				return waitedDisk
			}
		case strings.HasPrefix(name, "rwsem_down_") || strings.HasPrefix(name, "__mutex_lock") ||
			name == "mutex_lock" || strings.HasPrefix(name, "__rwsem_down") || name == "__down":
			if len(frames) == 1 {
				return waitedKernelLock
			}
		case idleSleeps[name]:
			return waitedIdle
		case name == "sk_wait_data" || name == "inet_csk_wait_for_connect" || name == "sk_stream_wait_memory":
			return waitedPeer
		}
	}
	return ""
}

var idleSleeps = words(`poll_schedule_timeout ep_poll do_nanosleep hrtimer_nanosleep do_wait do_sigtimedwait read_events pipe_wait inotify_read
	do_poll do_select sigsuspend sys_pause worker_thread rcu_gp_kthread do_epoll_wait pause smpboot_thread_fn kthread_worker_fn
	ep_poll_callback do_semtimedop_idle inet_csk_accept`)

// polls reports whether a stack waits for any of several sockets: a server without requests does.
func polls(names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		return strings.Contains(n, "epoll") || strings.Contains(n, "ep_poll") ||
			strings.Contains(n, "sys_poll") || strings.Contains(n, "do_select") || strings.Contains(n, "accept")
	})
}

// putOff reports whether the kernel's code gave its CPU up to others that want it: cond_resched or
// preempt_schedule called the scheduler. What called these is what it did, and no wait.
func putOff(frames []kernel.Frame) bool {
	for i := range frames {
		name, _, _ := strings.Cut(frames[i].Func, ".")
		if strings.HasSuffix(name, "cond_resched") || strings.Contains(name, "cond_resched_") ||
			strings.HasPrefix(name, "preempt_schedule") {
			return true
		}
		if name != "__schedule" && name != "schedule" && name != "finish_task_switch" &&
			name != "context_switch" {
			return false
		}
	}
	return false
}

// preempted reports whether a thread left its CPU without asking to.
func preempted(names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		return strings.HasPrefix(n, "exit_to_user_mode") ||
			strings.HasPrefix(n, "prepare_exit_to_usermode") || n == "retint_user" ||
			strings.HasPrefix(n, "preempt_schedule") ||
			strings.HasPrefix(n, "irqentry_exit") || n == "exit_to_usermode_loop" ||
			n == "int_careful" || n == "sysret_careful"
	})
}

// restful reports whether a wait is usual where nothing is slow: for work, or for what sends it.
func (w wait) restful() bool { return w == waitedIdle || w == waitedPipe || w == waitedCond }

// waitByUser says what a futex is, by the program's functions that wait for it.
func waitByUser(names []string) wait {
	for _, n := range names {
		switch {
		case n == "runtime.lock" || n == "runtime.lock2" || n == "runtime.lockWithRank" ||
			strings.HasPrefix(n, "sync.(*Mutex)") || strings.HasPrefix(n, "sync.(*RWMutex)"),
			strings.Contains(n, "lll_lock_wait"), strings.Contains(n, "pthread_mutex_lock"),
			strings.Contains(n, "pthread_rwlock_"), strings.Contains(n, "pthread_mutex_timedlock"),
			strings.HasPrefix(n, "ObjectMonitor::enter"), strings.Contains(n, "SafeFetchLock"),
			strings.HasPrefix(n, "take_gil"), strings.Contains(n, "SpinToAcquire"),
			strings.Contains(n, "mutex_enter"), strings.Contains(n, "lll_mutex_lock_wait"),
			strings.Contains(n, "Monitor::lock"), strings.Contains(n, "parking_lot_core"):
			return waitedLock
		case strings.HasPrefix(n, "runtime.note"), n == "runtime.stopm", n == "runtime.mPark",
			n == "runtime.findrunnable", n == "runtime.findRunnable", n == "runtime.semasleep",
			strings.Contains(n, "pthread_join"):
			return waitedIdle
		case strings.Contains(n, "pthread_cond_"), strings.Contains(n, "sem_wait"),
			strings.Contains(n, "sem_timedwait"), strings.HasPrefix(n, "Parker::park"),
			strings.Contains(n, "ObjectMonitor::wait"), strings.Contains(n, "condition_variable"):
			return waitedCond
		}
	}
	return ""
}

// waiting adds up what threads waited for.
type waiting struct {
	by    map[wait]float64
	at    map[wait]map[string]float64 // where, by the function that says it best
	whole float64                     // time that all waits are parts of: of the table, or the wall time
	of    string                      // what whole is; "": the waiting time
}

func newWaiting() *waiting {
	return &waiting{by: map[wait]float64{}, at: map[wait]map[string]float64{}}
}

func (w *waiting) add(kind wait, where string, amount float64) {
	w.by[kind] += amount
	if w.at[kind] == nil {
		w.at[kind] = map[string]float64{}
	}
	w.at[kind][where] += amount
	w.whole += amount
}

// share is a kind's part of all.
func (w *waiting) share(kinds ...wait) float64 {
	sum := 0.0
	for _, k := range kinds {
		sum += w.by[k]
	}
	if w.whole <= 0 {
		return 0
	}
	return min(sum/w.whole, 1)
}

// where names the places of a kind, the largest first.
func (w *waiting) where(kind wait, n int) string {
	var out []string
	for _, name := range attach.Largest(w.at[kind]) {
		if len(out) < n && name != "" {
			out = append(out, fmt.Sprintf("%s %s", pct(w.at[kind][name]/w.whole), name))
		}
	}
	return strings.Join(out, ", ")
}

// figures lists the kinds of waits by their shares.
func (w *waiting) figures(of string) string {
	kinds := make([]wait, 0, len(w.by))
	for k := range w.by {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b wait) int { return cmp.Or(cmp.Compare(w.by[b], w.by[a]), cmp.Compare(a, b)) })
	var out []string
	for _, k := range kinds[:min(4, len(kinds))] {
		out = append(out, fmt.Sprintf("%s %s", pct(w.share(k)), k))
	}
	return of + ": " + strings.Join(out, ", ")
}

// waitRule is what a share of waiting says of a cause.
type waitRule struct {
	kind  wait
	cause string
	least float64
}

var waitRules = []waitRule{
	{waitedLock, "lock-contention", 0.10}, {waitedKernelLock, "kernel-lock", 0.10},
	{waitedMmapLock, "mmap-lock", 0.05}, {waitedNUMA, "numa-balancing", 0.05},
	{waitedReclaim, "direct-reclaim", 0.03}, {waitedTLB, "tlb-shootdown", 0.03}, {waitedDisk, "disk-wait", 0.20},
	{waitedBuffer, "disk-wait", 0.20},
}

// signs says which causes the waits show. Share is of the waiting time, and sure how much the
// table shows of whose wait it was.
func (w *waiting) signs(r *attach.Reading, sure finding.Confidence) {
	for _, rule := range waitRules {
		share := w.share(rule.kind)
		if share < rule.least {
			continue
		}
		line := fmt.Sprintf("%s of %s is for %s", pct(share), cmp.Or(w.of, "the waiting time"), rule.kind)
		if where := w.where(rule.kind, 3); where != "" {
			line += ": " + where
		}
		if rule.kind == waitedBuffer &&
			slices.ContainsFunc(r.Signs, func(s attach.Sign) bool { return s.Cause == rule.cause }) {
			continue
		}
		if rule.kind == waitedBuffer || rule.kind == waitedDisk && (share < 0.5 || len(r.Signs) > 0) {
			// To wait for a disk is what some threads are for.
			r.Signs = append(r.Signs, attach.Sign{Cause: rule.cause, Grade: attach.Candidate,
				Share: share, Proof: []string{line}})
			continue
		}
		level := sure
		if rule.kind == waitedDisk {
			level = finding.Possible
		}
		r.State = attach.Ill
		r.Signs = append(r.Signs, attach.Sign{Cause: rule.cause, Grade: attach.Found, Sure: level,
			Share: share, Proof: []string{line}})
	}
	slices.SortStableFunc(r.Signs, func(a, b attach.Sign) int {
		return cmp.Or(cmp.Compare(gradeOrder[a.Grade], gradeOrder[b.Grade]), cmp.Compare(b.Share, a.Share))
	})
}

var gradeOrder = map[attach.Grade]int{attach.Found: 0, attach.Outside: 1, attach.Candidate: 2,
	attach.Risk: 3, attach.Against: 4}

// diskSign is a sign that a disk was waited for. That a text shows slow calls on files makes it
// possible: a lock of the file looks the same.
func diskSign(proof string, share float64) attach.Sign {
	return attach.Sign{Cause: "disk-wait", Grade: attach.Found, Sure: finding.Possible,
		Share: min(share, 1), Proof: []string{proof}}
}
