package collect

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/sensor/proc"
)

// What may hold a process up as a whole, and what lets it go on.
const (
	bySignal   = "a signal (SIGSTOP, or Ctrl-Z)"
	byDebugger = "a debugger"
	byFreezer  = "the freezer of its cgroup (docker pause, systemctl freeze)"
)

var goesOn = map[string]string{bySignal: "kill -CONT PID", byDebugger: "the debugger", byFreezer: "docker unpause, systemctl thaw"}

// halt follows whether a process is held up as a whole: no thread of it may run, and that is no thread's doing.
type halt struct {
	freezers []string // files that tell whether its cgroups are frozen
	by       string   // now; "" it goes on
	since    time.Time
	cpu      int64 // CPU time of the process when it was looked at last, ns
	took     time.Duration
	last     string // by what it was held up last
}

// holder tells by what a process is held up; "" by nothing. Who used CPU time since is asked no further.
func (h *halt) holder(s procStat) string {
	switch {
	case s.state == 'T':
		return bySignal
	case s.state == 't':
		return byDebugger
	case s.cpuNS != h.cpu:
		return ""
	}
	// Threads are frozen where they sleep: no state or place of theirs tells it.
	for _, f := range h.freezers {
		if b, err := os.ReadFile(f); err == nil && proc.Frozen(b) {
			return byFreezer
		}
	}
	return ""
}

// look takes what was read of the process at a time, and says in words what has changed.
func (h *halt) look(s procStat, now time.Time) (said string) {
	by := h.holder(s)
	h.cpu = s.cpuNS
	if by == h.by {
		return ""
	}
	at := now.UTC().Format("15:04:05.000 UTC")
	if h.by != "" {
		h.took += now.Sub(h.since)
	}
	h.by, h.since = by, now
	if by == "" {
		return "it goes on at " + at
	}
	h.last = by
	return "it is stopped by " + by + " at " + at
}

// begin forgets what was before the recording.
func (h *halt) begin(now time.Time) { h.took, h.since, h.last = 0, now, h.by }

// sum tells for how long it was held up; nil if it was not.
func (h *halt) sum(now time.Time) *evidence.Halt {
	took := h.took
	if h.by != "" {
		took += now.Sub(h.since)
	}
	if took <= 0 || h.last == "" {
		return nil
	}
	return &evidence.Halt{NS: int64(took), By: h.last}
}

// note tells a person that nothing will be seen, "" if it goes on.
func (h *halt) note(pid int) string {
	if h.by == "" {
		return ""
	}
	return fmt.Sprintf("pid %d is stopped by %s and does nothing until %s", pid, h.by, strings.Replace(goesOn[h.by], "PID", fmt.Sprint(pid), 1))
}
