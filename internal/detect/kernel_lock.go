package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:   "kernel-lock",
	Title:  "System calls wait for a lock of the kernel",
	Needs:  []string{KernelRecords},
	Floor:  workFloor,
	Scopes: everyScope,
	Doc: `What happens
  System calls of many threads want the same lock inside the kernel. Its spin locks never sleep,
  and its mutexes and semaphores spin as long as the holder runs, and sleep then. Threads that spin
  are on their CPUs and in the kernel, and nothing shows that they wait. Which lock it is follows
  from what they share: the inode of a file that all append to, the bucket of a futex, a socket or
  an accept queue, the file table, a directory, a cgroup's counters. With more threads it becomes
  slower: the lock's cache line moves from CPU to CPU.

Evidence
  Waits asleep whose kernel stack is in a mutex or a semaphore of the kernel, whatever call wants
  it. Samples of kernel stacks within native_queued_spin_lock_slowpath and its kin, osq_lock,
  rwsem_spin_on_owner, mutex_spin_on_owner, by who asks for the lock: the system call and the
  function, and from where in the program. Their share of the CPU time with its 95 % interval.
  Code that runs with interrupts off is sampled when they come back: then the function that
  enables them stands for what it waited for, and the finding says how many samples those are.

Not to be taken for
  mmap_lock, which is waited for asleep as a rule (mmap-lock). TLB flushes (tlb-shootdown).
  Spinning in the program itself (spinning). System time as such: a call that works is no lock. A
  lock whose holder waits for the disk: no record says who holds it, so where threads of the process
  wait for disks, its waiters are left out.

Remedy
  Share less. A file of its own for each thread, or one thread that writes what others queue for
  it; fewer and larger writes (O_APPEND takes the inode's lock for each). Fewer futex calls: a lock
  in user space first, wake one instead of all, several locks instead of one. SO_REUSEPORT for one
  accept queue a thread. Fewer threads at that call.

Verify
  whystall diagnose under the same load: kernel-lock is gone, and "system" of top falls.

Sources
  Documentation/locking/mutex-design.rst and rwsem (optimistic spinning; osq_lock); S. Boyd-Wickizer
  et al., "An Analysis of Linux Scalability to Many Cores" and "Non-scalable locks are dangerous";
  write(2): with O_APPEND the seek and the write are one atomic step; futex(2); lwn.net/Articles/
  590243 (MCS locks and qspinlocks).`,
	Look: lookKernelLock,
	Tell: tellKernelLock,
})

// diskShare is the part of wall time from which on threads that wait for disks may be what the
// waiters for the kernel's locks wait for.
const diskShare = 0.10

// lookKernelLock claims waits asleep by their stacks, and spinning by samples. Waits must be many:
// one that is long, and that others wait behind, is of who had the lock that once.
func lookKernelLock(p *Pass) {
	r := p.Ledger
	if joined(r) && p.Scope() != finding.Process &&
		ratio(r.Kernel.Disk.NS, wall(r.Kernel)) < diskShare && sleepsForKernel(p.Column()) >= leastEvents {
		p.ClaimWhere(leaf(account.LeafKernelLock))
		p.ClaimLacking(lacks(account.LeafKernelLock))
	}
	lookWork(p, account.WorkKernelLock)
}

// sleepsForKernel is how many separate waits for locks of the kernel there were, at least.
func sleepsForKernel(c *account.Column) (n int) {
	for i := range c.Accounts {
		if a := &c.Accounts[i]; a.Leaf == account.LeafKernelLock && a.Class == account.ClassOwn {
			n = max(n, a.Events)
		}
	}
	return n
}

func tellKernelLock(p *Pass, f *finding.Finding) {
	l := works(p.best(), account.WorkKernelLock)
	asks, callers := names(l, 2), workSites(l)
	f.Summary = fmt.Sprintf("%s spinning for a lock of the kernel", p.costs())
	if asleep := p.grantedOf(leaf(account.LeafKernelLock)); asleep > 0 {
		f.Summary = fmt.Sprintf("%s waiting for a lock of the kernel", p.costs())
		p.Proof("kernel records",
			"%s of it asleep: their kernel stacks are in a mutex or semaphore of the kernel; no record says who held it", p.share(asleep))
		p.Cap("who held the lock is not known")
	}
	if asks != "" {
		f.Summary += ", for which " + asks + " asks"
	}
	at := ""
	if len(callers) > 0 {
		at = " (" + callers[0].Func + ")"
		f.Summary += at
	}
	workLines(p, "spinning for the kernel's locks", account.WorkKernelLock)
	if on := p.best(); on != nil && len(on.Late) > 0 {
		p.Proof("CPU samples", "samples that came late, when interrupts were let in again: at %s", sites(on.Late, 0, 3))
	}
	threadsLine(p)
	if asks == "" {
		asks = "this"
	}
	f.Remedy = append(f.Remedy,
		"share less of what "+asks+" works on"+at+
			": a file, a lock or a socket of its own for each thread, or one thread that does it for the others",
		"fewer and larger calls; fewer threads at it at once")
	f.Verify = p.verify("kernel-lock is gone, and the CPU time of a request falls by its share")
}
