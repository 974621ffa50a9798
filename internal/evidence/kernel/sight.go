package kernel

import "slices"

// Sight is one thing that a recorder may see of a target, or not. Rooms decide by sights, never by
// the sentences beside them. Their values are in streams, so that they stay as they are.
type Sight string

// Sights, by what is seen.
const (
	SightSwitches            Sight = "switches"             // which thread is on which CPU
	SightOtherTasks          Sight = "other-tasks"          // the same of threads that are not the target's
	SightRunQueues           Sight = "run-queues"           // in which queue a woken thread waits
	SightNewThreads          Sight = "new-threads"          // in which queue a new thread waits
	SightMigrations          Sight = "migrations"           // moves between CPUs
	SightWakers              Sight = "wakers"               // who wakes whom, and when
	SightThreadsMade         Sight = "threads-made"         // who makes which thread
	SightThreadNames         Sight = "thread-names"         // new names of threads
	SightThreadEnds          Sight = "thread-ends"          //
	SightExecs               Sight = "execs"                // that the target runs another program
	SightAllThreads          Sight = "all-threads"          // each thread of the target; else only some
	SightWaitStacks          Sight = "wait-stacks"          // what a blocked thread waits for: lock, disk, or work
	SightSamples             Sight = "samples"              // what runs on CPUs
	SightThrottling          Sight = "throttling"           // that a thread, or its group, is out of quota
	SightQuotaTimers         Sight = "quota-timers"         // when a quota gives time again
	SightTimers              Sight = "timers"               // when a timer was due
	SightPreemptionAsked     Sight = "preemption-asked"     // SIGURG sent
	SightPreemptionDelivered Sight = "preemption-delivered" // SIGURG received
	SightFutexes             Sight = "futexes"              // which futex a call is about
	SightReclaim             Sight = "reclaim"              // direct reclaim
	SightMemcgReclaim        Sight = "memcg-reclaim"        // of a memory cgroup
	SightCompaction          Sight = "compaction"           //
	SightMmapLock            Sight = "mmap-lock"            // waits for it
	SightTLBFlushes          Sight = "tlb-flushes"          //
	SightKernelLocks         Sight = "kernel-locks"         // waits for the kernel's own locks
	SightSockets             Sight = "sockets"              // since when a socket had data
	SightTurns               Sight = "turns"                // that a thread goes on to another socket without waiting
	SightUnread              Sight = "unread"               // since when data lay in a socket that a loop came to later
	SightPageFaults          Sight = "page-faults"          //
	SightNUMA                Sight = "numa"                 // hinting faults and pages moved
	SightTargetNames         Sight = "target-names"         // names of the target's functions
	SightKernelNames         Sight = "kernel-names"         // names of the kernel's functions
	SightWhole               Sight = "whole"                // the recording from its start to its end; else a part of the time

	// SightUnknown stands for what this version does not know: it may concern anything.
	SightUnknown Sight = "unknown"
)

var sights = []Sight{
	SightSwitches, SightOtherTasks, SightRunQueues, SightNewThreads, SightMigrations, SightWakers,
	SightThreadsMade, SightThreadNames,
	SightThreadEnds, SightExecs, SightAllThreads, SightWaitStacks, SightSamples, SightThrottling,
	SightQuotaTimers, SightTimers,
	SightPreemptionAsked, SightPreemptionDelivered, SightFutexes, SightReclaim, SightMemcgReclaim,
	SightCompaction, SightMmapLock,
	SightTLBFlushes, SightKernelLocks, SightSockets, SightTurns, SightUnread, SightPageFaults,
	SightNUMA, SightTargetNames, SightKernelNames, SightWhole, SightUnknown,
}

// Missing is something that a recording lacks: what, for code, and why, for people.
type Missing struct {
	What []Sight
	Why  string `prose:"yes"` // "mmap_lock waits: no such tracepoint"
}

// Concerns reports whether any of the sights is missing. What is not known may be any of them.
func (m Missing) Concerns(any ...Sight) bool {
	return slices.ContainsFunc(m.What, func(s Sight) bool { return s == SightUnknown || slices.Contains(any, s) })
}

// clean replaces sights of a newer recorder, and none at all, by SightUnknown.
func (m *Missing) clean() {
	m.Why = clip(m.Why)
	known := slices.DeleteFunc(slices.Clone(m.What),
		func(s Sight) bool { return s == SightUnknown || !slices.Contains(sights, s) })
	if len(known) < len(m.What) || len(known) == 0 {
		known = append(known, SightUnknown)
	}
	m.What = known
}
