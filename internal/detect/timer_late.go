package detect

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:  "timer-late",
	Title: "Timers fire late",
	Needs: []string{KernelRecords},
	Go:    true,
	Floor: lateFloor,
	Fast:  never,
	Doc: `What happens
  A timer of Go lies in the heap of a P. It is checked when that P schedules, or when an idle
  thread's sleep in the kernel ends. A P that runs one goroutine for long does not check; then
  sysmon or a thief must. Sleeps, timeouts, tickers and deadlines are late by milliseconds.

Evidence
  When the timer was due and when the goroutine became runnable. The kernel's own timers, due and
  fired, of the threads that slept for them. What the threads of the process did meanwhile.

Not to be taken for
  A long sleep: until it is due, it is what the program asked for. The run queue after it
  (sched-latency). Threads without CPU or quota (cpu-contention, cpu-throttled). Timer slack of 50
  us, which every thread has.

Remedy
  As for netpoll-late: keep a P free to check, and have no long loops. Go 1.14.0 and 1.14.1
  starved timers: use 1.14.2 or later.

Verify
  whystall diagnose under the same load: the lateness printed here falls.

Sources
  golang/go#38860, #38119, #41699; runtime/time.go; prctl(2), PR_SET_TIMERSLACK.`,
	Look: func(p *Pass) {
		lookLate(p, "timers", func(t *account.Tags) int64 { return t.DueNS },
			&p.Ledger.Kernel.Late.Timers, kernel.SightTimers)
	},
	Tell: func(p *Pass, f *finding.Finding) {
		tellLate(p, f, "their timer is due", &p.Ledger.Kernel.Late.Timers)
	},
})
