package detect

import (
	"strings"

	"github.com/whystall/whystall/internal/account"
)

// recorder is the name of the recorder's own threads. What they take is reported with its cost: it
// is gone when nobody records.
const recorder = account.Recorder

// behindRecorder is how long slow requests waited for CPUs that the recorder had.
func behindRecorder(r *account.Result) int64 {
	return timeIn(&r.Slow, func(a *account.Account) bool { return a.Leaf == account.LeafNoCPU && a.Detail == recorder })
}

// kernelThreads lists the kernel's own threads, by the start of their names, as Linux has had them
// since 3.x, with what they do and who causes that work. None of them can be moved or given a
// weight by its name; what gives it work can.
var kernelThreads = []struct{ name, work string }{
	{"kswapd", "the freeing of memory: give the host more, or bound who fills it (page cache of a backup, a group without memory.max); cat /proc/pressure/memory"},
	{"kcompactd", "the compaction of memory into large blocks: vm.compaction_proactiveness=0, fewer huge pages; cat /proc/pressure/memory"},
	{"khugepaged", "the collecting of huge pages: /sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs"},
	{"ksoftirqd", "the rest of network interrupts' work: spread them over CPUs (RPS, irqbalance), away from those of the service"},
	{"irq/", "interrupts of a device: move them with /proc/irq/*/smp_affinity"},
	{"kworker", "work that others hand to it, mostly write-back and encryption: perf top, or cat /proc/PID/stack of it"},
	{"jbd2/", "the journal of a file system: fewer syncs, or another disk"},
	{"kdamond", "the watching of memory accesses (DAMON): whoever set it up under /sys/kernel/mm/damon can slow it down or end it"},
	{"ksmd", "the merging of equal pages: /sys/kernel/mm/ksm/run"},
	{"migration/", "the moving of threads between CPUs: look for a taskset or cpuset that changes again and again"},
	{"rcu", "the kernel's own cleaning up"}, {"kthreadd", "the creation of kernel threads"},
	{"kauditd", "auditing: auditctl -l"},
}

// kernelWork says what a thread of the kernel does; "" for other threads.
func kernelWork(comm string) string {
	for _, t := range kernelThreads {
		rest, ok := strings.CutPrefix(comm, t.name)
		if ok && strings.Trim(rest, "0123456789./:-_+abcdefghijklmnopqrstuvwxyzAB") == "" {
			return t.work
		}
	}
	return ""
}

// kernelThread says what who does, if the records or its name show that it is a thread of the
// kernel.
func kernelThread(k *account.Kernel, who string) string {
	work := kernelWork(who)
	for _, b := range k.Neighbours {
		if who != "" && b.Comm == who && b.PID == 0 && !isIdle(who) && work == "" {
			work = "what perf top and /proc/PID/stack of it show"
		}
	}
	return work
}

// movable is the largest neighbour that is a program. It has no name if there is none.
func movable(k *account.Kernel) account.Neighbour {
	for _, b := range k.Neighbours {
		if !b.Own && b.PID != 0 && b.Comm != recorder && !strings.HasPrefix(b.Comm, "swapper") &&
			kernelWork(b.Comm) == "" {
			return b
		}
	}
	return account.Neighbour{}
}

// cpuTimeOf is how long threads of that name had CPUs for which threads of the target waited.
func cpuTimeOf(k *account.Kernel, who string) (ns int64) {
	for _, b := range k.Neighbours {
		if b.Comm == who && !b.Own {
			ns += b.NS
		}
	}
	return ns
}
