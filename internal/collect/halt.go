package collect

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/evidence"
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
	by    string // now; "" it goes on
	since time.Time
	cpu   int64 // CPU time of the process when it was looked at last, ns
	took  time.Duration
	most  string // by what it was held up last
}

// holder tells by what a process is held up, as its first thread has it; "" by nothing. Who used CPU time since is asked no further.
func holder(pid int, s procStat, ran bool) string {
	switch {
	case s.state == 'T':
		return bySignal
	case s.state == 't':
		return byDebugger
	case ran || s.state == 'R':
		return ""
	}
	// Version 1 freezes in __refrigerator, version 2 where signals are taken.
	b, _ := readSome(filepath.Join(procDir(pid), "wchan"))
	switch string(b) {
	case "__refrigerator", "do_freezer_trap", "get_signal": // the second is inlined into the third by some compilers
		return byFreezer
	}
	return ""
}

// look takes what was read of the process at a time, and says in words what has changed.
func (h *halt) look(pid int, s procStat, now time.Time) (said string) {
	by := holder(pid, s, s.cpuNS != h.cpu)
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
	h.most = by
	return "it is stopped by " + by + " at " + at
}

// begin forgets what was before the recording.
func (h *halt) begin(now time.Time) { h.took, h.since, h.most = 0, now, h.by }

// sum tells for how long it was held up; nil if it was not.
func (h *halt) sum(now time.Time) *evidence.Halt {
	took := h.took
	if h.by != "" {
		took += now.Sub(h.since)
	}
	if took <= 0 || h.most == "" {
		return nil
	}
	return &evidence.Halt{NS: int64(took), By: h.most}
}

// note tells a person that nothing will be seen, "" if it goes on.
func (h *halt) note(pid int) string {
	if h.by == "" {
		return ""
	}
	return fmt.Sprintf("pid %d is stopped by %s and does nothing until %s", pid, h.by, strings.Replace(goesOn[h.by], "PID", fmt.Sprint(pid), 1))
}
