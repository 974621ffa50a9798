package database

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// phpFPM is the status page of PHP's process manager, as text. People keep notes between its lines.
var phpFPM = &attach.Kind{
	Name: "PHP-FPM status",
	Hints: []string{"pool:", "process manager:", "start since:", "start time:", "accepted conn:",
		"listen queue:", "idle processes:", "active processes:"},
	Claim: func(lines []paste.Line) int {
		keys := map[string]bool{}
		n := 0
		for i, l := range lines {
			t := strings.TrimSpace(l.Text)
			m := fpmKey.FindStringSubmatch(t)
			switch {
			case i > 0 && l.Command != "", i == 0 && m == nil, i > n+3:
				return attach.ClaimIf(keys["listen queue"] && keys["active processes"], n)
			case m != nil:
				keys[m[1]+m[3]] = true
				n = i + 1
			case t == "" || strings.HasPrefix(t, ";") || strings.HasPrefix(t, "#"):
			default:
				return attach.ClaimIf(keys["listen queue"] && keys["active processes"], n)
			}
		}
		return attach.ClaimIf(keys["listen queue"] && keys["active processes"], n)
	},
	Read: readPHPFPM,
}

var fpmKey = pattern.New(`^(?:(pool|process manager|start time):\s+(\S.*)|(start since|accepted conn|listen queue|max listen queue|listen queue len|idle processes|active processes|total processes|max active processes|max children reached|slow requests|memory peak):\s+(\d+))$`)

func readPHPFPM(p *attach.Part) attach.Reading {
	v := map[string]float64{}
	name := ""
	for _, l := range p.Lines {
		if m := fpmKey.FindStringSubmatch(strings.TrimSpace(l.Text)); m != nil {
			v[m[3]], _ = number(m[4])
			if m[1] == "pool" {
				name = " of pool " + short(m[2])
			}
		}
	}
	r := &result{}
	r.Title, r.Glance = "PHP-FPM status"+name, true
	_, idleSaid := v["idle processes"]
	waiting := fmt.Sprintf("%.0f requests wait for a worker now", v["listen queue"])
	if most, said := v["max listen queue"]; said {
		waiting += fmt.Sprintf(", %.0f at the worst", most)
	}
	busy := fmt.Sprintf("%.0f workers are busy", v["active processes"])
	if all, said := v["total processes"]; said && idleSaid {
		busy = fmt.Sprintf("%.0f of %.0f workers are busy, %.0f idle", v["active processes"], all, v["idle processes"])
	}
	if n, said := v["max children reached"]; said {
		busy += "; the limit of workers was reached " + timesOr(int(min(n, 1e9)), "never")
	}
	r.figure(waiting)
	r.figure(busy)
	if s, n := v["start since"], v["accepted conn"]; s > 0 && n > 0 {
		line := fmt.Sprintf("%s requests a second in the mean since the start", three(n/s))
		if idleSaid && v["idle processes"] == 0 && v["active processes"] > 0 {
			line += fmt.Sprintf(": if all workers were busy, each took %s", dur(v["active processes"]*s/n))
		}
		r.figure(line)
	}
	r.Not = "What the workers do meanwhile: CPU, a database or another server. Its slow requests are 0 where no slowlog is set."
	switch {
	case v["listen queue"] > 0 && idleSaid && v["idle processes"] == 0:
		r.found("pool-exhaustion", finding.Possible, waiting+"; "+busy, 0)
		r.Means = "Requests queue for a worker, and none is free: what the workers wait for decides."
		r.next("request_slowlog_timeout = 2s, then the slowlog", "where the workers are when a request takes long")
	case v["max children reached"] > 0:
		r.candidate("pool-exhaustion", busy)
		r.Means = "No request waits at this instant; the limit of workers was reached before."
	case v["listen queue"] > 0:
		r.Means = "Requests wait for a worker at this instant, and workers are free or not counted here: a burst looks like that."
	case !idleSaid || v["idle processes"] == 0:
		r.Means = "No request waits for a worker at this instant."
	default:
		r.Means = "Workers are free, and no request waits for one at this instant."
		return r.done(attach.Healthy)
	}
	return r.done(attach.CannotTell)
}

// mongotop is where MongoDB spent its time of each interval, by collection.
var mongotop = &attach.Kind{
	Name:  "mongotop",
	Hints: []string{"total    read    write", "ns "},
	Joins: true,
	Claim: func(lines []paste.Line) int {
		if !topHead.MatchString(lines[0].Text) {
			return 0
		}
		rows := 0
		n := attach.ClaimWhile(lines, func(_ int, text string) bool {
			if topRow.MatchString(text) {
				rows++
				return true
			}
			return topHead.MatchString(text)
		})
		return attach.ClaimIf(rows > 0, n)
	},
	Read: readMongotop,
}

var (
	topHead = pattern.New(`^\s*(?:ns|db)\s+total\s+read\s+write(?:\s+\d{4}-\d\d-\d\dT\S+)?\s*$`)
	topRow  = pattern.New(`^\s*(\S+)\s+(\d+)ms\s+(\d+)ms\s+(\d+)ms\s*$`)
)

func readMongotop(p *attach.Part) attach.Reading {
	busy := map[string]float64{}
	samples := 0
	for _, l := range p.Lines {
		if topHead.MatchString(l.Text) {
			samples++
		} else if m := topRow.FindStringSubmatch(l.Text); m != nil && len(busy) < mostOwners {
			ms, _ := number(m[2])
			busy[m[1]] = max(busy[m[1]], ms)
		}
	}
	r := &result{}
	r.Title = "mongotop, " + attach.Plural(samples, "sample")
	for _, ns := range attach.Largest(busy)[:min(3, len(busy))] {
		r.figure(fmt.Sprintf("%s: %.0f ms of an interval at the worst", ns, busy[ns]))
	}
	r.Means = "It is the time that MongoDB's operations took in each collection; the interval is that of its command, 1 s by default."
	r.Not = "Waits that are no operation's time: replication's acknowledgement, the network, the clients. Times of many clients add up beyond the interval."
	r.next("mongostat 1; db.currentOp()", "queues, and what operations wait for")
	return r.done(attach.CannotTell)
}
