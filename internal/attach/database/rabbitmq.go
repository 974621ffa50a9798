package database

import (
	"fmt"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// rabbit is RabbitMQ's log of its alarms: while one is set, no publisher gets on.
var rabbit = &attach.Kind{
	Name: "RabbitMQ log",
	Hints: []string{"vm_memory_high_watermark", "resource limit alarm", "REPORT==== ",
		"Publishers will be blocked", "free disk space", "Free disk space"},
	Marks: []string{"vm_memory_high_watermark", "resource limit alarm",
		"Publishers will be blocked", "disk space is", "Free bytes:"},
	Scattered: true,
	Claim: func(lines []paste.Line) int {
		n, sure := 0, false
		for i, l := range lines {
			t := strings.TrimSpace(l.Text)
			switch {
			case i > 0 && l.Command != "":
				return attach.ClaimIf(sure, n)
			case rabbitSure.MatchString(t):
				n, sure = i+1, true
			case rabbitHead.MatchString(t), i > 0 && rabbitStars.MatchString(t):
				n = i + 1
			case t == "" && i > 0 && i < n+2:
			default:
				return attach.ClaimIf(sure, n)
			}
		}
		return attach.ClaimIf(sure, n)
	},
	Read: readRabbit,
}

var (
	rabbitSure  = pattern.New(`\bvm_memory_high_watermark (?:set|clear)\b|\b(?:memory|disk|file_descriptor|file descriptor) (?:resource )?limit alarm (?:set|cleared)|Publishers will be blocked until this alarm clears|(?:Free )?[Dd]isk (?:free )?space (?:is )?(?:in)?sufficient\. Free bytes`)
	rabbitHead  = pattern.New(`^=(?:INFO|WARNING|ERROR) REPORT==== (\d{1,2}-[A-Z][a-z]{2}-\d{4}::\d\d:\d\d:\d\d)(?:\.\d+)? ===$`)
	rabbitStars = pattern.New(`^\*{3,}$|^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+(?:[+-]\d\d:\d\d)? \[\w+\] <[\d.]+> *\**$`)
	rabbitAt    = pattern.New(`\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?`)
	rabbitUsed  = pattern.New(`(?:Memory used|used):\s?(\d+)\s+allowed:\s?(\d+)`)
	rabbitAlarm = pattern.New(`\b(memory|disk|file_descriptor|file descriptor) (?:resource )?limit alarm (set|cleared)`)
	rabbitMark  = pattern.New(`\bvm_memory_high_watermark (set|clear)\b`)
)

// rabbitTime is when a line was written; the report's header above it says it in the old form.
func rabbitTime(l paste.Line, head time.Time) time.Time {
	for _, text := range []string{l.Text, l.Raw} {
		if m := rabbitAt.FindString(text); m != "" {
			if t, err := time.Parse("2006-01-02 15:04:05.999999", strings.Replace(m, "T", " ", 1)); err == nil {
				return t
			}
		}
	}
	if !l.Time.IsZero() {
		return l.Time
	}
	return head
}

func readRabbit(p *attach.Part) attach.Reading {
	r := &result{}
	var head, since time.Time
	sets, clears, what, blocked := 0, 0, "memory", 0.0
	open := false
	used := ""
	for _, l := range p.Lines {
		t := strings.TrimSpace(l.Text)
		if m := rabbitHead.FindStringSubmatch(t); m != nil {
			head, _ = time.Parse("2-Jan-2006::15:04:05", m[1])
			continue
		}
		state := ""
		if m := rabbitAlarm.FindStringSubmatch(t); m != nil {
			what, state = strings.ReplaceAll(m[1], "_", " "), m[2]
		} else if m := rabbitMark.FindStringSubmatch(t); m != nil {
			state = m[1]
		}
		if m := rabbitUsed.FindStringSubmatch(t); m != nil && used == "" {
			have, _ := number(m[1])
			limit, _ := number(m[2])
			used = fmt.Sprintf("memory %s used of %s allowed", bytesText(have), bytesText(limit))
		}
		at := rabbitTime(l, head)
		switch {
		case state == "set" && !open:
			sets, open, since = sets+1, true, at
		case strings.HasPrefix(state, "clear") && open:
			clears, open = clears+1, false
			if !since.IsZero() && at.After(since) {
				blocked += at.Sub(since).Seconds()
			}
		}
	}
	r.Title = "RabbitMQ's log, " + attach.Plural(len(p.Lines), "line")
	if sets+clears == 0 {
		r.Means = "Publishers are blocked while an alarm is set; the line that sets one is not here."
		return r.done(attach.CannotTell)
	}
	line := fmt.Sprintf("alarm for %s set %s, cleared %s", what, times(sets),
		timesOr(clears, "not"))
	if blocked > 0 {
		line += fmt.Sprintf("; it was set for %s", dur(blocked))
	}
	r.figure(line)
	if used != "" {
		r.figure(used)
	}
	r.Not = "That the machine is short of it: the limit is the broker's own, by default a part of the machine's."
	blocks := " blocks all who publish until it clears"
	if strings.Contains(what, "descriptor") {
		blocks = " lets it accept no connection until it clears"
	}
	r.outside("the broker: its alarm for "+what+blocks, line, 0)
	r.next("rabbitmqctl list_queues name messages memory consumers",
		"which queues grow, and whether anybody reads them")
	return r.done(attach.CannotTell)
}
