package stackdump

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// redisWatchdog reads what Redis logs of its own stack where its main thread does not come back in
// time (CONFIG SET watchdog-period).
var redisWatchdog = &attach.Kind{
	Name:  "Redis watchdog",
	Hints: []string{"WATCHDOG TIMER EXPIRED", "Backtrace:", "signal handler] (", "signal-handler ("},
	Claim: func(lines []paste.Line) int {
		at := slices.IndexFunc(lines[:min(3, len(lines))], func(l paste.Line) bool { return strings.Contains(l.Text, "WATCHDOG TIMER EXPIRED") })
		if at < 0 && strings.TrimSpace(lines[0].Text) == "Backtrace:" && slices.ContainsFunc(lines[:min(6, len(lines))], func(l paste.Line) bool { return strings.Contains(l.Text, "(watchdogSignalHandler+0x") }) {
			at = 0 // the line above it was left out
		} else if at < 0 || at > 0 && !strings.Contains(lines[0].Text, "signal") {
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
	watchdogLine  = pattern.New(`^\s*(?:-{3,}|EIP:|Backtrace:|\[?\d+ ?[:|] ?signal.handler\]? \(|Sorry: no support)`)
	watchdogFrame = pattern.New(`^\s*[^\s(]+(?: [^\s(]+){0,2}?(?:\((\w*)(?:[+-]0x[0-9a-f]+)?\) ?)?\[0x[0-9a-f]+\]$`)
)

// ownWork is what Redis does between commands, by the function that does it.
var ownWork = map[string]string{
	"activeDefragCycle": "the defragmentation of memory", "activeExpireCycle": "the removal of expired keys", "freeMemoryIfNeeded": "the eviction of keys",
	"performEvictions": "the eviction of keys", "rdbSave": "a save in the foreground", "flushAppendOnlyFile": "writing the append-only file", "incrementallyRehash": "rehashing",
	"rehash": "rehashing", "clusterCron": "the cluster's own work", "freeClient": "the freeing of a client",
}

func readWatchdog(p *attach.Part) attach.Reading {
	r := attach.Reading{Title: "Redis' watchdog: the stack of its main thread", State: attach.CannotTell, Glance: true}
	var names []string
	for _, l := range p.Lines {
		if strings.HasPrefix(strings.TrimSpace(l.Text), "Backtrace:") {
			names = nil // what stands above repeats the innermost function
		} else if m := watchdogFrame.FindStringSubmatch(l.Text); m != nil && m[1] != "" && m[1] != "logStackTrace" && m[1] != "watchdogSignalHandler" {
			names = append(names, m[1])
		}
	}
	r.Not = "It is one instant of the delay: what the thread did before it, the stack does not say."
	r.Next = append(r.Next, attach.Next{Command: "redis-cli SLOWLOG GET 25", Why: "names commands that were slow, with their arguments"})
	at := slices.IndexFunc(names, func(n string) bool { return strings.HasSuffix(n, "Command") && n != "processCommand" })
	if i := slices.IndexFunc(names, func(n string) bool { return ownWork[n] != "" }); at < 0 && i >= 0 {
		line := fmt.Sprintf("the main thread is in %s, below %s", names[0], names[i])
		r.Figures = append(r.Figures, line)
		r.Means = "Redis' own work, " + ownWork[names[i]] + ", held its one thread for longer than watchdog-period: all clients waited."
		r.Signs = append(r.Signs, attach.Sign{Cause: "event-loop", Grade: attach.Found, Sure: finding.Possible, Proof: []string{line}})
		r.State = attach.Ill
		return r
	}
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
