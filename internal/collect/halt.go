package collect

import (
	"fmt"
	"os"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/sensor/proc"
)

// holdup is what stops a process as a whole.
type holdup uint8

const (
	bySignal holdup = iota + 1
	byDebugger
	byFreezer
)

// String says it in words, which are in the manifest and the report.
func (h holdup) String() string {
	return [...]string{
		bySignal:   "a signal (SIGSTOP, or Ctrl-Z)",
		byDebugger: "a debugger",
		byFreezer:  "the freezer of its cgroup (docker pause, systemctl freeze)",
	}[h]
}

// remedy is what lets the process go on.
func (h holdup) remedy(pid int) string {
	switch h {
	case bySignal:
		return fmt.Sprintf("kill -CONT %d", pid)
	case byDebugger:
		return "the debugger"
	}
	return "docker unpause, systemctl thaw"
}

// halt follows whether a process is stopped as a whole: none of its threads may run, and none of
// them caused that.
type halt struct {
	freezers []string // files that say whether its cgroups are frozen
	now      holdup   // 0: it goes on
	last     holdup   // what stopped it last
	since    time.Time
	cpu      int64 // CPU time of the process by the last look, ns
	took     time.Duration
}

// holdup says what stops a process, 0 if nothing does. If it has used CPU time since the last look,
// the freezers are not asked.
func (h *halt) holdup(s procStat) holdup {
	switch {
	case s.state == 'T':
		return bySignal
	case s.state == 't':
		return byDebugger
	case s.cpuNS != h.cpu:
		return 0
	}
	// Threads are frozen where they sleep: neither their state nor their place shows it.
	for _, f := range h.freezers {
		if b, err := os.ReadFile(f); err == nil && proc.Frozen(b) {
			return byFreezer
		}
	}
	return 0
}

// look takes what was read of the process at a time, and says in words what has changed.
func (h *halt) look(s procStat, now time.Time) (change string) {
	by := h.holdup(s)
	h.cpu = s.cpuNS
	if by == h.now {
		return ""
	}
	clock := now.UTC().Format("15:04:05.000 UTC")
	if h.now != 0 {
		h.took += now.Sub(h.since)
	}
	h.now, h.since = by, now
	if by == 0 {
		return "it goes on at " + clock
	}
	h.last = by
	return "it is stopped by " + by.String() + " at " + clock
}

// start forgets what was before the recording.
func (h *halt) start(now time.Time) { h.took, h.since, h.last = 0, now, h.now }

// sum says for how long it was stopped; nil if it was not.
func (h *halt) sum(now time.Time) *evidence.Halt {
	took := h.took
	if h.now != 0 {
		took += now.Sub(h.since)
	}
	if took <= 0 || h.last == 0 {
		return nil
	}
	return &evidence.Halt{NS: int64(took), By: h.last.String()}
}

// note warns a person that nothing will be seen, "" if the process goes on.
func (h *halt) note(pid int) string {
	if h.now == 0 {
		return ""
	}
	return fmt.Sprintf("pid %d is stopped by %s and does nothing until %s", pid, h.now, h.now.remedy(pid))
}
