package detect

import (
	"strings"

	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:  "logger-lock",
	Title: "Requests queue for the logger's lock",
	Needs: []string{Trace},
	Go:    true,
	Floor: lockFloor,
	Doc: `What happens
  A logger makes its writers take turns by one mutex. logrus held it while formatting and writing;
  log, slog's handlers and zap's lockedWriteSyncer hold it while writing. Without a logger's
  mutex, the file's own lock (fdMutex, one per descriptor) does the same, and does it worse. Every
  request that logs in its hot path queues there, though the service seems to work in memory only.
  The garbage of formatting starts GCs, and GC is blamed.

Evidence
  Slow column: time behind a lock whose site is in a logger's package (log, log/slog, logrus, zap,
  zerolog, klog, glog, hclog, go-kit, lumberjack), or behind fdMutex with a logger above it; and
  what those who unlocked it did.

Not to be taken for
  A slow pipe, terminal, disk or log collector behind the logger: the holders are in write(2)
  then. The write is the root (syscall-stall), and the logger's lock spreads it to everybody; a
  faster logger would not help. Holders that are mostly runnable: the lock is handed from
  goroutine to goroutine, and each waits for a P.

Remedy
  Log less in the hot path: sample, raise the level, one line per request. Format before taking
  the lock. Write through a bounded buffer and one writer that drops or counts when it is full:
  zapcore.BufferedWriteSyncer (fewer writes), zerolog/diode (drops and counts). logrus: use a
  release with the narrow lock, or SetNoLock for writers that are atomic by themselves (O_APPEND
  files).

Verify
  whystall diagnose under the same load: time behind the logger's site falls, and the file's own
  lock does not take its place.

Sources
  lggomez, Log everything, just not every single thing, 2021-01-02: removing the lock made fdMutex
  50-100 times worse. sirupsen/logrus#1213, #376; erigontech/erigon#20652 (stdout pipe full).`,
	Look: func(p *Pass) {
		lookLocks(p, isLogger)
		if len(p.claims) == 0 && p.outcome == undecided {
			p.Clear("%s waited for no logger's lock, by the execution trace", p.who())
		}
	},
	Tell: func(p *Pass, f *finding.Finding) {
		locks := claimedLocks(p, isLogger)
		mostly, share := tellLocks(p, locks)
		site, at := "a logger", "a logger"
		if len(locks) > 0 {
			sites := waitedAt(p, locks[0])
			site, at = sites[0], strings.Join(sites, ", ")
		}
		f.Summary = lockSummary(p, "the logger's lock at", site, mostly, share)
		if p.root != nil && p.root.det.Name == "syscall-stall" {
			f.Remedy = append(f.Remedy,
				"mend the slow write first: who reads the log is too slow; the lock only spreads it")
		}
		f.Remedy = append(f.Remedy, "log less in the hot path: raise the level, sample, one line per request",
			"put a bounded buffer and one writer between logger and file: zapcore.BufferedWriteSyncer makes fewer writes, zerolog/diode drops and counts when full")
		lockRemedies(f, mostly, at)
		f.Verify = p.verify("waiting behind " + site + " is below " + p.per(p.NS()) + " per request")
	},
})
