package detect

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:  "syscall-stall",
	Title: "Requests wait inside a system call",
	Needs: []string{Trace},
	// A disk takes milliseconds to sync, and a thread may lose its CPU in a call. 10 ms per request
	// and a fifth of its time are beyond both.
	Floor: Floor{NS: 10e6, Share: 0.20},
	Doc: `What happens
  A system call (or a call into C) does not return for a long time: fsync or write on a slow disk,
  write on a pipe or terminal that nobody reads fast enough, open on a network file system, a
  resolver in C. The thread is blocked in the kernel. Go hands its P to others, so nothing else
  looks busy. But if its goroutine holds a lock meanwhile (a logger, a write-ahead log), everybody
  behind the lock waits.

Evidence
  Slow column: "syscall", by the request itself or by the goroutine or lock holder that it waits
  for, with the call sites. A trace does not show what the kernel did inside the call. With the
  kernel's records, time on the disk, in reclaim, in a fault or without CPU is not here but with
  its own cause, and "pipe" is told apart. Traces of Go 1.11-1.21 record only calls that blocked.

Not to be taken for
  Reads and writes on sockets: Go's are non-blocking, and time in them is work or a lost CPU; they
  are not counted here. A process that stands still (quota, overloaded host): calls that happened
  to be under way look long. The time lies in silences then, and the finding is possible at most.
  The lock in front of the call: the lock is the mechanism, the call is the root, and faster
  locking does not help.

Remedy
  A pipe behind a logger: mend its reader (log driver, collector), or write through a bounded
  buffer that may drop. Disk: move the write-ahead log to a disk of its own, sync fewer times
  (group commit), or outside the request. Calls into C: bound them, or move them to goroutines of
  their own; use netgo instead of the C resolver (GODEBUG=netdns=go).

Verify
  whystall diagnose under the same load: "syscall" of slow requests falls, and with it the time
  behind locks whose holders made the call.

Sources
  sirupsen/logrus#1213, erigontech/erigon#20652 (stdout pipe full); etcd's disk guide (fsync p99
  under 10 ms); golang/go#63978 (C resolver threads).`,
	Look: lookSyscallStall,
	Tell: tellSyscallStall,
})

func lookSyscallStall(p *Pass) {
	for i := range p.Ledger.Slow.Accounts {
		a := &p.Ledger.Slow.Accounts[i]
		if a.Leaf == account.LeafNetwork {
			// A pipe that the program itself opened is polled like a socket: a full one parks the
			// goroutine.
			var files int64
			for _, s := range a.Sites {
				if polledFile(&s) {
					files += s.NS
				}
			}
			p.Claim(i, min(a.NS, files))
			continue
		}
		if a.Leaf == account.LeafPipe {
			p.Claim(i, a.NS)
			continue
		}
		if a.Leaf != account.LeafSyscall {
			continue
		}
		var sockets int64
		for _, s := range a.Sites {
			if nonblocking(&s) {
				sockets += s.NS
			}
		}
		p.Claim(i, a.NS-min(a.NS, sockets))
	}
	if !outlastsQueues(p, 1) {
		unlessStretched(p, func(a *account.Account) bool { return a.Leaf == account.LeafSyscall && !waitsForDisk(a) })
	}
}

// outlastsQueues reports whether slow requests were in calls of their own for so many times as long
// as all threads of the process together were kept off their CPUs in the whole recording. Each call
// is on a thread of its own, so that a lack of CPU explains no more than one of these times.
func outlastsQueues(p *Pass, times int64) bool {
	k := kernelOf(p)
	if k == nil {
		return false
	}
	var own int64
	for _, c := range p.claims {
		if a := &p.Ledger.Slow.Accounts[c.account]; a.Leaf == account.LeafSyscall && a.Class == account.ClassOwn {
			own += c.ns
		}
	}
	return own > times*(k.QueuedNS+k.ThrottledNS+k.UnknownNS) && 2*own > p.Claimed()
}

// waitsForDisk reports whether the calls are of a kind that waits for a disk by its nature.
func waitsForDisk(a *account.Account) bool {
	var ns int64
	for _, s := range a.Sites {
		if v := strings.ToLower(s.Via + " " + s.Func); strings.Contains(v, "sync") || strings.Contains(v, "flock") {
			ns += s.NS
		}
	}
	return 2*ns > a.NS
}

func tellSyscallStall(p *Pass, f *finding.Finding) {
	ss, polled := callSites(p)
	where, via, actor := "sites that the trace does not name", "", ""
	if len(ss) > 0 {
		where, via = sites(ss[:1], 0, 1), ss[0].Via
		source := "execution trace: syscalls"
		if p.Ledger.Native {
			source = "kernel records: waits"
		}
		p.Proof(source, "call sites: %s", sites(ss, p.NS(), 4))
		// An account keeps its five largest sites: a long tail is not there to be summed.
		if ss[0].NS*3 < p.NS() {
			p.Doubt("the time is spread over many call sites; threads that lose their CPU inside calls look the same, and only the kernel's records can separate them")
		}
	}
	// By the trace alone, a thread that waits for a disk also has to get a CPU once the disk is
	// done [etcd's fdatasync beside six CPU hogs: 10 ms of a slow request, of which the kernel's
	// records leave 2].
	var disk int64
	p.granted(func(a *account.Account, ns int64) {
		if joined(p.Ledger) && a.Leaf == account.LeafSyscall && waitsForDisk(a) {
			disk += ns
		}
	})
	if why := shortOfCPU(p.Ledger); why != "" && 2*(polled+disk) < p.NS() && !outlastsQueues(p, 2) {
		p.Doubt("%s; other calls look long for the same reason", why)
	}
	if polled > 0 {
		p.Proof("execution trace: file waits",
			"%s of it parked on a file that the runtime polls (a pipe or terminal), and not inside a call", percent(ratio(polled, p.NS())))
	}
	var own int64
	p.granted(func(a *account.Account, ns int64) {
		switch {
		case a.Class == account.ClassOwn:
			own += ns
		case actor == "":
			actor = a.Actor
		}
	})
	to := "to a system call in"
	if 2*polled > p.NS() {
		to = "waiting for a pipe or terminal in"
	}
	f.Summary = fmt.Sprintf("%s lose %s (%s of their time) %s %s", p.who(), p.per(p.NS()), p.share(p.NS()), to, where)
	if 2*own < p.NS() && actor != "" {
		f.Summary += fmt.Sprintf("; it is made by %s, for which they wait", actor)
	}
	if joined(p.Ledger) && p.Ledger.Kernel.Whole {
		k := p.Ledger.Kernel
		p.Proof("kernel records",
			"this trace does not say which thread made the call; all threads together were queued %s and throttled %s in the whole recording", finding.Duration(k.QueuedNS), finding.Duration(k.ThrottledNS))
		p.measure()
	} else if joined(p.Ledger) {
		p.Proof("kernel records",
			"the thread was blocked in the call, by no disk, no reclaim, no fault and no lack of CPU")
		p.measure()
	} else {
		p.Proof("not checked", "what the kernel did inside the call: that needs the kernel's records")
	}
	site := ""
	if len(ss) > 0 {
		site = ss[0].Func
	}
	if logs := loggerFunc(site) || strings.Contains(via, "os.(*File).Write"); logs {
		f.Remedy = append(f.Remedy,
			"see what the file is: ls -l /proc/PID/fd; a pipe or terminal: mend its reader (log driver, collector, journald), or put a bounded buffer in front that drops and counts when full")
	}
	worker, queue := "goroutine", "channel"
	if p.Ledger.Native {
		worker, queue = "thread", "queue"
	}
	var pipe int64
	p.granted(func(a *account.Account, ns int64) {
		if a.Leaf == account.LeafPipe {
			pipe += ns
		}
	})
	if 2*pipe > p.NS() {
		f.Remedy = append(f.Remedy,
			"it is a pipe, a terminal or the like: see who is at its other end (ls -l /proc/PID/fd), a child process or the reader of the logs, and why that one is slow")
	}
	f.Remedy = append(f.Remedy,
		"see what the call waits for: cat /proc/PID/task/*/stack (root), cat /proc/pressure/io, strace -f -T -p PID for a moment (it slows the process)",
		"move the call out of the request and out of locks: one "+worker+" behind a bounded "+queue+
			", or one call for many requests (group commit)")
	f.Verify = p.verify("what slow requests lose to this call is below " + p.per(p.NS()) + " per request")
}
