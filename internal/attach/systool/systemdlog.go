package systool

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// systemdLog is what systemd logs of services that did not answer, were killed or start again.
var systemdLog = &attach.Kind{
	Name: "systemd log", Scattered: true, Single: true,
	Hints: []string{"atchdog timeout", "cheduled restart job", "OOM killer", "oom-kill",
		"timed out", "repeated too quickly"},
	Marks: []string{"atchdog timeout", "cheduled restart job", "by the OOM killer",
		"result 'oom-kill'", "timed out. ", "repeated too quickly"},
	Claim: func(lines []paste.Line) int {
		return logRun(lines, func(l paste.Line) bool { return unitTold(l) != nil })
	},
	Read: readSystemdLog,
}

// unitEvents are sentences of systemd; the first group is the unit.
var unitEvents = []struct {
	what string
	line *pattern.Regexp
	mean string
}{
	{"watchdog timeout", pattern.New(`^(\S+\.service):? [Ww]atchdog timeout(?: \(limit ([\w .]+)\))?!`),
		"a service gave no sign of life for as long as its watchdog allows, and systemd ends and restarts it: it hangs, or gets no CPU, memory or disk; which of these is not in the lines"},
	{"kill for lack of memory",
		pattern.New(`^(\S+\.(?:service|scope|slice)): (?:A process of this unit has been killed by the OOM killer|Failed with result 'oom-kill')`),
		"a process of a unit was killed for lack of memory: its end, and a restart where something starts it again"},
	{"time-out of a start or stop",
		pattern.New(`^(\S+\.(?:service|mount|device)): (?:(?:[Ss]tart|[Ss]top|[Rr]eload)[\w-]* operation timed out|State '[\w-]+' timed out|Job \S+ timed out)`),
		"a service did not start or end in time, and was killed for it: what it waited for is not in the lines"},
	{"restart", pattern.New(`^(\S+\.service): (?:Scheduled restart job, restart counter is at (\d+)|Service \S+ has no hold-off time)`),
		"a service ended and is started again: requests of that moment fail; why it ended stands in the lines above it"},
	{"start given up", pattern.New(`^(\S+\.service): Start request repeated too quickly`),
		"a service ended so often that systemd does not start it any more"},
}

type unitEvent struct {
	unit, detail string
	which        int
}

// unitTold finds what systemd says in a line. Its name stands in front: who writes of it does not.
func unitTold(l paste.Line) *unitEvent {
	text := strings.TrimSpace(l.Text)
	if len(text) > 400 {
		return nil
	}
	if i := strings.Index(text, "systemd["); i >= 0 && i < 100 {
		if _, rest, ok := strings.Cut(text[i:], "]: "); ok {
			text = rest
		}
	} else if !strings.Contains(l.Raw, "systemd[") && !strings.HasPrefix(text, "systemd: ") {
		return nil
	}
	text = strings.TrimPrefix(text, "systemd: ")
	for i, e := range unitEvents {
		if m := e.line.FindStringSubmatch(text); m != nil {
			u := &unitEvent{unit: m[1], which: i}
			if len(m) > 2 {
				u.detail = m[2]
			}
			return u
		}
	}
	return nil
}

func readSystemdLog(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.unsure = "systemd log, "+attach.Plural(len(p.Lines), "event"), true
	v.Time = p.Lines[0].Time
	told := make([]*unitEvent, len(p.Lines))
	for at, l := range p.Lines {
		told[at] = unitTold(l)
	}
	for i, e := range unitEvents {
		n, times, details := map[string]int{}, map[string][]time.Time{}, map[string]string{}
		for at, l := range p.Lines {
			u := told[at]
			if u == nil || u.which != i || len(n) >= 256 && n[u.unit] == 0 {
				continue
			}
			n[u.unit]++
			if u.detail != "" {
				details[u.unit] = u.detail
			}
			if !l.Time.IsZero() {
				times[u.unit] = append(times[u.unit], l.Time)
			}
		}
		for _, unit := range attach.Largest(n)[:min(3, len(n))] {
			text := fmt.Sprintf("%s: %s", unit, attach.Plural(n[unit], e.what))
			switch e.what {
			case "watchdog timeout":
				if details[unit] != "" {
					text += " (limit " + details[unit] + ")"
				}
			case "restart":
				if details[unit] != "" {
					text += ", its counter is at " + details[unit]
				}
			}
			v.figure("%s%s", text, apart(times[unit]))
			v.means("%s", e.mean)
		}
	}
	if slices.ContainsFunc(told, func(u *unitEvent) bool { return u != nil && unitEvents[u.which].what == "watchdog timeout" }) {
		v.not("that the watchdog is at fault: it only tells")
	}
	v.not("what requests waited for, nor how long: these are events of whole units")
	v.next("journalctl -k --since '1 hour ago' | grep -E 'blocked for more|lockup|stall|oom'",
		"whether the kernel saw it hang, or memory run out")
	return v.done()
}

// apart says how far from each other the same event came, in the median.
func apart(at []time.Time) string {
	if len(at) < 2 {
		return ""
	}
	var gaps []float64
	for i := 1; i < len(at); i++ {
		gaps = append(gaps, at[i].Sub(at[i-1]).Seconds())
	}
	if slices.Min(gaps) < 0 {
		return ""
	}
	return fmt.Sprintf(", %s apart in the median",
		time.Duration(attach.Median(gaps)*float64(time.Second)).Round(time.Second))
}
