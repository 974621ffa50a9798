package stackdump

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
)

// redisWatchdog reads what Redis logs of its own stack where its main thread does not come back in
// time (CONFIG SET watchdog-period).
var redisWatchdog = &attach.Kind{
	Name:  "Redis watchdog",
	Hints: []string{"WATCHDOG TIMER EXPIRED", "signal handler] (", "signal-handler ("},
	Claim: func(lines []paste.Line) int {
		at := slices.IndexFunc(lines[:min(3, len(lines))], func(l paste.Line) bool { return strings.Contains(l.Text, "WATCHDOG TIMER EXPIRED") })
		if at < 0 || at > 0 && !strings.Contains(lines[0].Text, "signal") {
			return 0
		}
		n := at + 1
		for n < len(lines) && lines[n].Command == "" && (watchdogFrame.MatchString(lines[n].Text) || watchdogLine.MatchString(lines[n].Text) || strings.TrimSpace(lines[n].Text) == "") {
			n++
		}
		return n
	},
	Read: readWatchdog,
}

var (
	watchdogLine  = regexp.MustCompile(`^\s*(?:-{3,}|EIP:|Backtrace:|\[?\d+ ?[:|] ?signal.handler\]? \(|Sorry: no support)`)
	watchdogFrame = regexp.MustCompile(`^\s*\S+(?: \S+)?\((\w*)(?:[+-]0x[0-9a-f]+)?\) ?\[0x[0-9a-f]+\]$`)
)

func readWatchdog(p *attach.Part) attach.Reading {
	r := attach.Reading{Title: "Redis' watchdog: the stack of its main thread", State: attach.CannotTell, Glance: true}
	var names []string
	for _, l := range p.Lines {
		if strings.HasPrefix(strings.TrimSpace(l.Text), "Backtrace:") {
			names = nil // what stands above repeats the innermost function
		} else if m := watchdogFrame.FindStringSubmatch(l.Text); m != nil && m[1] != "" {
			names = append(names, m[1])
		}
	}
	r.Not = "It is one instant of the delay: what the thread did before it, the stack does not say."
	r.Next = append(r.Next, attach.Next{Command: "redis-cli SLOWLOG GET 25", Why: "names commands that were slow, with their arguments"})
	at := slices.IndexFunc(names, func(n string) bool { return strings.HasSuffix(n, "Command") && n != "processCommand" })
	if at < 0 {
		r.Means = "The main thread did not come back in time; no command is on its stack."
		return r
	}
	line := fmt.Sprintf("the main thread is in %s, below %s", names[0], names[at])
	r.Figures = append(r.Figures, line)
	r.Means = "One command held Redis' one thread for longer than watchdog-period: all other clients waited."
	r.Signs = append(r.Signs, attach.Sign{Cause: "event-loop", Grade: attach.Found, Sure: finding.Possible, Proof: []string{line}})
	r.State = attach.Ill
	return r
}
