package database

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// dotnetCounters is what dotnet-counters collects of a .NET process, as CSV; whole, or the lines of
// one counter that somebody searched for.
var dotnetCounters = &attach.Kind{
	Name:  "dotnet-counters",
	Hints: []string{",Metric,", ",Rate,", "Timestamp,Provider,Counter Name", "Press p to pause", "[System.Runtime]"},
	Rows:  true,
	Claim: func(lines []paste.Line) int {
		if n := claimDotnetScreen(lines); n > 0 {
			return n
		}
		rows := 0
		n := attach.ClaimWhile(lines, func(_ int, text string) bool {
			if dotnetRow.MatchString(text) {
				rows++
				return true
			}
			return strings.HasPrefix(text, "Timestamp,Provider,Counter Name,")
		})
		return attach.ClaimIf(rows > 0, n)
	},
	Read: readDotnetCounters,
}

var dotnetRow = pattern.New(`^((?:\d{4}[/-]\d{1,2}[/-]\d{1,2}|\d{1,2}/\d{1,2}/\d{4}) \d{1,2}:\d\d:\d\d(?: [AP]M)?),([\w.-]+),([^,]+),(?:Metric|Rate),"?([\d.]+(?:E[+-]?\d+)?)"?$`)

// dotnetHead is the line above the counters of the runtime, on the screen of dotnet-counters
// monitor; dotnetShown is one of them.
const dotnetHead = "[System.Runtime]"

var (
	dotnetShown = pattern.New(`^\s{2,}(\S.*?\S)\s{2,}(\d[\d,.]*)$`)
	dotnetOther = pattern.New(`^\[[A-Z]\w+(?:\.\w+)+\]$|^Press p to pause, r to resume, q to quit\.$|^Status: (?:Running|Paused)$`)
)

// claimDotnetScreen claims the screen: its heads, and the counters below them.
func claimDotnetScreen(lines []paste.Line) int {
	own, rows := false, 0
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		t := strings.TrimSpace(text)
		switch {
		case t == dotnetHead:
			own = true
			return true
		case own && dotnetShown.MatchString(text):
			rows++
			return true
		}
		return dotnetOther.MatchString(t)
	})
	return attach.ClaimIf(own && rows > 0, n)
}

var dotnetTimes = []string{"2006/1/2 15:04:05", "2006-1-2 15:04:05", "1/2/2006 15:04:05", "1/2/2006 3:04:05 PM"}

func dotnetTime(s string) (t time.Time) {
	for _, layout := range dotnetTimes {
		if t, err := time.Parse(layout, s); err == nil {
			return t
		}
	}
	return t
}

// dotnetSays are the counters that say something of waits, by how their names start.
var dotnetSays = []string{"ThreadPool Queue Length", "ThreadPool Thread Count", "CPU Usage",
	"% Time in GC", "Monitor Lock Contention Count"}

func readDotnetCounters(p *attach.Part) attach.Reading {
	values := map[string][]float64{}
	var at []time.Time
	screens := 0
	for _, l := range p.Lines {
		if strings.TrimSpace(l.Text) == dotnetHead {
			screens++
		} else if m := dotnetShown.FindStringSubmatch(l.Text); m != nil && screens > 0 {
			v, ok := number(strings.ReplaceAll(m[2], ",", ""))
			for _, name := range dotnetSays {
				if ok && strings.HasPrefix(m[1], name) {
					values[name] = append(values[name], v)
				}
			}
			continue
		}
		m := dotnetRow.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		v, ok := number(m[4])
		for _, name := range dotnetSays {
			if ok && strings.HasPrefix(m[3], name) {
				values[name] = append(values[name], v)
			}
		}
		if t := dotnetTime(m[1]); !t.IsZero() && (len(at) == 0 || t.After(at[len(at)-1])) {
			at = append(at, t)
		}
	}
	r := &result{}
	r.Title = "dotnet-counters, " + attach.Plural(max(len(at), screens), "sample")
	r.Glance = screens == 1
	for _, name := range dotnetSays {
		if v := values[name]; len(v) > 0 {
			if len(v) == 1 {
				r.figure(name + ": " + three(v[0]))
				continue
			}
			r.figure(fmt.Sprintf("%s: median %s, at most %s, the last %s", name,
				three(attach.Median(v)), three(slices.Max(v)), three(v[len(v)-1])))
		}
	}
	gap := sampleGap(r, at)
	queue := values["ThreadPool Queue Length"]
	r.Not = "What the pool's threads do: calls that block, or computing."
	switch {
	case len(queue) > 0 && slices.Max(queue) >= muchQueued:
		r.Means = "Work waits for a free thread of the pool, which adds threads slowly: its threads block, or have no CPU."
		r.candidate("pool-exhaustion", r.Figures[0])
		r.candidate("cpu-contention", r.Figures[0])
		r.next("dotnet-stack report -p PID; dotnet-counters monitor -p PID", "what the pool's threads wait for")
	case gap:
		r.Means = "The counters themselves came late: the process did not run, or had no free thread."
		r.candidate("cpu-contention", r.Figures[len(r.Figures)-1])
	case len(queue) > 0:
		r.Means = "Little work waits for a thread of the pool in these samples."
	default:
		r.Means = "Rates and states of a .NET process; the queue of its thread pool is not among them."
	}
	return r.done(attach.CannotTell)
}

// muchQueued is a length of the pool's queue that is no burst of a moment.
const muchQueued = 50
