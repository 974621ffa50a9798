package attach

import (
	"fmt"
	"math"
	"strings"

	"github.com/whystall/whystall/internal/finding"
)

// A measure is a fact that two readings of one thing are compared by. Shares since boot are none:
// two of them say nothing of the time between. What single requests took is none either: they are
// other requests each time.
type measure struct {
	name    FactName
	noun    string `prose:"yes"` // what it is; of whom, if several have it, comes behind it
	counter bool   // it only grows, until whoever counts starts again
}

// measures are listed with those first that matter more: three are said.
var measures = []measure{
	{name: "/go/gc/cpu:share", noun: "GC's share of the CPUs"},
	{name: "/go/gc/used:share", noun: "GC's share of the CPU time used"},
	{name: GCPause, noun: "the worst stop of the world"},
	{name: "/go/gc/mark:share", noun: "the share of the time in which GC marks"},
	{name: "/go/heap/alloc:bytes", noun: "the heap"},
	{name: "/go/gc/cycles:cycles", noun: "GC cycles", counter: true},
	{name: "/go/gc/allocated:bytes", noun: "bytes allocated", counter: true},
	{name: "/go/gc/stopped:ns", noun: "stops of the world in all", counter: true},
	{name: "/go/sched/goroutines", noun: "goroutines"},
	{name: LockWaiters, noun: "goroutines that wait for the lock"},
	{name: "/go/sched/runnable-per-p", noun: "runnable goroutines for each P"},
	{name: MutexDelay, noun: "time waited for what is unlocked in", counter: true},
	{name: "/dump/threads:threads", noun: "threads"},
	{name: "/dump/lock/waiters:threads", noun: "threads that wait for the lock"},
	{name: "/dump/idle:threads", noun: "idle threads"},

	{name: ProcessRSS, noun: "resident memory"},
	{name: ProcessAnonHuge, noun: "memory in huge pages"},
	{name: "/process/swap:bytes", noun: "memory swapped out"},
	{name: "/process/threads:threads", noun: "threads"},
	{name: "/process/switches/voluntary:switches", noun: "voluntary switches", counter: true},
	{name: "/process/switches/involuntary:switches", noun: "involuntary switches", counter: true},
	{name: ProcessCPU, noun: "CPUs used by"},
	{name: "/process/cpu/wait:ratio", noun: "waiting for a CPU, of the time:"},
	{name: "/cgroup/memory/used:bytes", noun: "memory used in the cgroup"},
	{name: "/cgroup/memory/limit:bytes", noun: "the cgroup's limit of memory"},
	{name: "/cgroup/memory/anon-huge:bytes", noun: "the cgroup's memory in huge pages"},
	{name: Quota, noun: "the quota of CPUs"},
	{name: ContainerCPU, noun: "CPUs used by"},
	{name: "/container/memory/used-of-max:ratio", noun: "memory of its limit, of"},

	{name: StealShare, noun: "stolen CPU time"},
	{name: IdleShare, noun: "idle CPU time"},
	{name: "/host/cpu/iowait:ratio", noun: "idle CPU time that waits for a disk"},
	{name: Runnable, noun: "runnable threads"},
	{name: "/host/memory/available:bytes", noun: "available memory"},
	{name: "/host/memory/available:ratio", noun: "available memory"},
	{name: "/host/swap/used:bytes", noun: "swap used"},
	{name: "/host/swap/in:bytes/s", noun: "swapped in"},
	{name: "/host/swap/out:bytes/s", noun: "swapped out"},
	{name: "/host/memory/page-cache:bytes", noun: "page cache"},
	{name: "/host/memory/anon-huge:bytes", noun: "memory in huge pages"},
	{name: "/host/memory/major-faults:faults/s", noun: "major faults"},
	{name: "/host/memory/direct-scan:pages/s", noun: "pages scanned in direct reclaim"},
	{name: "/host/cpu/context-switches:switches/s", noun: "context switches"},
	{name: BuddyHuge, noun: "free memory in blocks of 2 MiB or more in"},
	{name: BuddyFree, noun: "free memory in"},
	{name: "/psi/full/avg60:share", noun: "PSI full, last minute, of"},
	{name: "/psi/some/avg60:share", noun: "PSI some, last minute, of"},

	{name: "/disk/io/await:ms", noun: "the time of a request to"},
	{name: "/net/listen/queue-of-backlog:ratio", noun: "the accept queue, of its backlog, at"},
	{name: Orphans, noun: "orphaned sockets"},
	{name: Conntrack, noun: "connections in nf_conntrack"},
	{name: "/net/tcp/retransmitted:segments", noun: "segments sent again", counter: true},
	{name: "/net/listen/overflows:connections", noun: "overflows of accept queues", counter: true},

	{name: "/runqlat/over-1ms:share", noun: "waits for a CPU of more than 1 ms"},
	{name: "/sched/delay/mean:ns", noun: "the mean wait for a CPU"},
	{name: "/profile/gc:share", noun: "GC's share of the profile"},
	{name: "/profile/kernel-lock:share", noun: "the share that spins for the kernel's locks"},
	{name: "/profile/page-fault:share", noun: "the share in page faults"},
	{name: "/profile/reclaim:share", noun: "the share in reclaim of memory"},
	{name: "/db/memory/used:bytes", noun: "memory used"},
	{name: "/db/connections:connections", noun: "connections"},
	{name: "/db/commands:commands", noun: "commands", counter: true},
}

// of is what is counted, and of whom.
func (m measure) of(whom string) string {
	if whom == "" {
		return m.noun
	}
	return m.noun + " " + whom
}

// written is a value with its unit, which the fact's name has.
func (m measure) written(v float64) string {
	_, unit, _ := strings.Cut(string(m.name), ":")
	unit, rate := strings.CutSuffix(unit, "/s")
	text := plain(v)
	switch unit {
	case "bytes":
		text = finding.Bytes(int64(v))
	case "ns":
		text = finding.Duration(int64(v))
	case "ms":
		text = finding.Duration(int64(v * 1e6))
	case "share", "ratio":
		text = fmt.Sprintf("%.3g %%", 100*v)
	}
	if rate {
		text += " a second"
	}
	return text
}

// plain writes a number as people do: three figures, and all of those before the point.
func plain(v float64) string {
	if v == math.Trunc(v) || math.Abs(v) >= 999.5 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
