package kernelfile

import (
	"fmt"

	"github.com/whystall/whystall/internal/attach"
)

// readLimits reads limits that were reached, of the host and of groups: as a rule an error at once,
// and of audit a wait.
func (r *report) readLimits(out *attach.Reading) {
	if n := r.counts[auditFull]; n > 0 {
		figure := countOf(auditFull, n)
		out.Signs = append(out.Signs,
			attach.Sign{Grade: attach.Outside, Where: "the queue of audit records and auditd", Proof: []string{figure}})
		say(out, attach.CannotTell,
			"The queue of audit records is full: each audited system call may wait for auditd, up to a minute (audit_backlog_wait_time), or its record is lost.", figure)
		out.Next = append(out.Next,
			attach.Next{Command: "auditctl -s",
				Why: "backlog, backlog_limit, backlog_wait_time_actual: how long tasks waited"})
	}
	if m := r.first[pidsFull]; m != nil {
		say(out, attach.CannotTell,
			"A group has as many threads as it may have (pids.max): it can start none, and what needs one fails.",
			fmt.Sprintf("%s in %s", countOf(pidsFull, r.counts[pidsFull]), printed(tail(m[1]))))
	}
	if m := r.first[filesFull]; m != nil {
		say(out, attach.CannotTell,
			"The host has as many files open as it may have: opening one more fails at once.",
			fmt.Sprintf("fs.file-max of %s reached", printed(m[1])))
	}
	if m := r.first[poolStuck]; m != nil {
		say(out, attach.CannotTell,
			"Workers of the kernel did not get on: what they had queued, such as writes and timers of drivers, waited with them.",
			fmt.Sprintf("a pool of workers was stuck for %s s (CPUs %s)", printed(m[2]), printed(m[1])))
	}
	if m := r.first[memDeadlock]; m != nil {
		figure := countOf(memDeadlock, r.counts[memDeadlock])
		if m[1] != "" {
			figure += fmt.Sprintf(", the first by %s (pid %s)", printed(m[1]), printed(m[2]))
		}
		if size := float(m[3]); size > pageSize {
			figure += fmt.Sprintf(", for %s in one piece", mem(size))
		}
		out.Signs = append(out.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Candidate,
			Proof: []string{figure}})
		say(out, attach.CannotTell,
			"XFS asks for memory until it gets it: who waits for that file system waits with it. Memory is short, or free in pieces that are too small.", figure)
		out.Next = append(out.Next,
			attach.Next{Command: "cat /proc/buddyinfo; grep -E 'allocstall|compact_' /proc/vmstat",
				Why: "whether large pieces are free"})
	}
}
