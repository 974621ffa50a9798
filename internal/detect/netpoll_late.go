package detect

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:  "netpoll-late",
	Title: "The runtime notices late that a socket is ready",
	Needs: []string{KernelRecords},
	Go:    true,
	Floor: lateFloor,
	Fast:  never,
	Doc: `What happens
  Data arrive, and the socket is ready. But a goroutine becomes runnable only when some thread
  asks the network poller. A P that looks for work asks. When all Ps are busy for long, only
  sysmon asks, every 10 ms or so. To the program, and in its trace, all of this looks like a slow
  network.

Evidence
  The kernel's time of readiness (data queued to the socket) against the moment when the waiting
  goroutine became runnable. Time in the slow column that was "network" until the kernel was
  asked. What the threads of the process did meanwhile: on their CPUs with all Ps busy, or asleep.

Not to be taken for
  A full run queue: the goroutine is runnable, and waits for a P after that (sched-latency; late
  polls are a part of it where the queue costs more than they do). Threads without a CPU or quota:
  then no thread could poll (cpu-contention, cpu-throttled). A slow peer: the data come late, and
  readiness with them.

Remedy
  Keep a P free: run fewer CPU-bound goroutines than GOMAXPROCS, break up long loops, move batch
  work to another process. More Ps where CPUs are idle.

Verify
  whystall diagnose under the same load: the lateness printed here falls.

Sources
  golang/go#51651; Arthur Mao, Gopher China 2020: 4.3 ms, sometimes over 10, from ready to
  running; runtime/proc.go (sysmon, findRunnable).`,
	Look: func(p *Pass) {
		p.needs(kernel.Sockets, "since when sockets had data")
		lookLate(p, "sockets that became ready", func(t *account.Tags) int64 { return t.SocketNS },
			&p.Ledger.Kernel.Late.Sockets, kernel.SightSockets)
	},
	Tell: func(p *Pass, f *finding.Finding) {
		tellLate(p, f, "their socket is ready", &p.Ledger.Kernel.Late.Sockets)
	},
})
