package oncpu

import (
	"cmp"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// said is what a kernel stack says.
type said struct {
	kind account.WorkKind
	name string
	call string // the system call; "" none or not known
	late string // who enabled interrupts, for a sample that waited for it
}

// kernelOf says what a thread was at in the kernel, by its stack, the innermost first. Functions
// come and go between kernel versions and with inlining, so a rule knows several on each way.
// Asked is the system call by the program's stack, for a kernel stack that does not name it.
//
//  1. What runs for this recording or for other tracers (tracing).
//  2. What is not the thread's own business: a softirq, else an interrupt. What a return from an
//     interrupt does for the thread is the thread's: to switch, to pay for memory, to be signalled.
//  3. To spin for a lock of the kernel, whatever wanted it.
//  4. Memory management that may come in the middle of anything: reclaim, compaction, TLB flushes
//     outside of faults, NUMA balancing; then a page fault, also one in a system call.
//  5. To make or end a thread; to leave a CPU and come back.
//  6. A system call: its copying, its network stack, and the rest by its name.
func kernelOf(frames []kernel.Frame, asked string) said {
	if len(frames) == 0 {
		return said{}
	}
	s := scan(frames)
	if s.inCall && s.call == "" {
		s.call = asked
	}
	kind, name := s.work(frames)
	return said{kind, name, s.call, lateBy(frames)}
}

func (s *sight) work(frames []kernel.Frame) (account.WorkKind, string) {
	switch {
	case s.outermost == "":
		return account.WorkUnknown, account.UnnamedWork
	case s.tracing:
		return account.WorkTracing, ""
	case s.softirq != "" && s.ownSoftirq:
		if s.spins {
			return account.WorkKernelLock, s.lockName(frames)
		}
		return account.WorkOwnSoftirq, s.softirq
	case s.softirq != "":
		return account.WorkSoftirq, s.softirq
	case s.interrupt != "":
		return account.WorkInterrupt, s.interrupt
	case s.spins:
		return account.WorkKernelLock, s.lockName(frames)
	}
	if kind, name := s.memory(frames); kind != "" {
		return kind, name
	}
	switch {
	case s.switches && s.back:
		return account.WorkSwitch, preempted
	case s.fault:
		return account.WorkFault, faultName(frames)
	case s.threads:
		return account.WorkThreads, s.call
	case s.switches:
		return account.WorkSwitch, cmp.Or(s.call, preempted)
	case s.copies && s.inCall:
		return account.WorkCopy, s.call
	case s.network && s.inCall:
		return account.WorkNetwork, s.call
	case s.inCall:
		return account.WorkSyscall, s.call
	}
	if s.entered != "" {
		return account.WorkInterrupt, s.entered
	}
	return account.WorkKernel, s.outermost
}

// memory is what memory management does in the middle of anything. It agrees with what the
// timeline lays over the thread's time (sched.BlockOf), except that to charge memory is no reclaim
// while it need not wait.
func (s *sight) memory(frames []kernel.Frame) (account.WorkKind, string) {
	switch sched.BlockOf(frames) {
	case sched.BlockTLB:
		return account.WorkTLB, s.call
	case sched.BlockNUMA:
		return account.WorkNUMA, ""
	case sched.BlockCompaction:
		return account.WorkReclaim, "compaction"
	case sched.BlockReclaim:
		return account.WorkReclaim, "of the machine"
	case sched.BlockMemcg:
		if s.memcg {
			return account.WorkReclaim, "of the memory cgroup"
		}
	}
	return "", ""
}

// sight is what the functions of a kernel stack show.
type sight struct {
	tracing    bool
	softirq    string // its kind
	ownSoftirq bool   // it ran within the thread's own call
	ranBy      bool   // who ran the softirq is known
	interrupt  string // its kind
	entered    string // the kind of an interrupt that came in, also where it went on to work for the thread
	back       bool   // it goes on in what works for the thread at the end of an interrupt
	spins      bool   // for a lock of the kernel
	sleeper    bool   // the lock is one that sleeps too
	asker      string // who wants it
	fault      bool
	memcg      bool // reclaim of a memory cgroup
	threads    bool // a thread is made or ends
	switches   bool
	copies     bool
	network    bool
	inCall     bool
	call       string // the system call's name; "" not known
	outermost  string // function with a name
}

// preempted is the name of a switch that the thread did not ask for; inOut that of the way into
// the kernel and out of it, where no call or part has started yet.
const (
	preempted = "preemption"
	inOut     = "entry and exit"
)

// spinDepth is how far inside a function that spins may be: what it calls while it spins.
const spinDepth = 3

// scan walks a kernel stack from the innermost function outwards.
func scan(frames []kernel.Frame) (s sight) {
	inner := "" // the function called by the present one
	for i := range frames {
		name := plain(frames[i].Func)
		if name == "" {
			continue
		}
		s.outermost = name
		s.lock(i, name)
		switch {
		case s.softirq != "" && !s.ranBy:
			s.runsSoftirq(name)
		case softirqRunner(name):
			if s.softirq == "" {
				s.softirq = softirqKind(inner)
			}
		case backToThread[name]:
			s.back = s.back || i > 0
		case interruptEntry(name):
			s.entered = interruptKind(name)
			if !s.back && !s.switches {
				s.interrupt = s.entered
			}
		}
		s.see(name)
		inner = name
	}
	return s
}

// see notes what a function stands for in the thread's own business.
func (s *sight) see(name string) {
	switch {
	case tracers(name):
		s.tracing = true
	case faults[name]:
		s.fault = true
	case memcgReclaim[name]:
		s.memcg = true
	case threadLife[name]:
		s.threads = true
	case switchers[name]:
		s.switches = true
	case copiers[name] || strings.HasPrefix(name, "copy_user"):
		s.copies = true
	case entries[name]:
		s.inCall = true
	case hasPrefix(name, networkPrefixes):
		s.network = true
	}
	if call := systemCall(name); call != "" && s.call == "" {
		s.call, s.inCall = callName(call), true
		s.threads = s.threads || threadCalls[call]
	}
	if name == "do_sched_yield" {
		s.call = "sched_yield"
	}
}

// lock notes who spins for a lock. Only the innermost functions can spin; the first one outside of
// the lock's own is who wants it.
func (s *sight) lock(i int, name string) {
	switch {
	case i < spinDepth && spinners[name], i == 0 && sleepSpinners[name]:
		s.spins = true
		fallthrough
	case s.spins && s.asker == "" && lockFunc(name):
		s.sleeper = s.sleeper || sleepSpinners[name] || strings.HasPrefix(name, "down_") ||
			strings.HasPrefix(name, "rwsem_")
	case s.spins && s.asker == "":
		s.asker = name
	}
}

// lockName says who asks for the lock: the system call or what else it is, and the function.
func (s *sight) lockName(frames []kernel.Frame) string {
	where := s.call
	if where == "" && s.fault {
		where = "page fault"
	}
	switch {
	case s.call == "futex" && strings.HasPrefix(s.asker, "futex_"):
		return "futex"
	case s.sleeper && sched.BlockOf(frames) == sched.BlockMmapLock:
		return strings.TrimPrefix(where+": mmap_lock", ": ")
	case s.sleeper && inodeLockers(s.asker):
		return where + ": inode lock"
	case s.asker == "" || s.asker == where:
		return where
	case where == "":
		return s.asker
	}
	return where + ": " + s.asker
}
