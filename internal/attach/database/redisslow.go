package database

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// redisSlow reads SLOWLOG GET, as redis-cli prints it on a terminal and into a pipe.
var redisSlow = &attach.Kind{
	Name:  "Redis SLOWLOG",
	Hints: []string{"(integer)", "Slow log id:", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"},
	Claim: claimRedisSlow,
	Read:  readRedisSlow,
}

var (
	slowHead = pattern.New(`^\s*\d+\) +1\) \(integer\) (\d+)$`)
	slowItem = pattern.New(`^\s+([234567])\) +(?:\(integer\) (\d+)|(1\) )?"(.*)"|\(empty.*\))$`)
	slowArg  = pattern.New(`^\s+\d+\) +"(.*)"?$`)
	// iredis names the fields. Its older versions call the microseconds ms.
	iredisHead = pattern.New(`^\s*\d+\) +Slow log id: +\d+$`)
	iredisItem = pattern.New(`^\s+(Start at|Running time\([^)]*\)|Command|Client IP and port|Client name):(?: +(.*))?$`)
	bareInt    = pattern.New(`^\d{1,16}$`)
	epoch      = pattern.New(`^1[3-9]\d{8}$`)
	bareWord   = pattern.New(`^[A-Za-z][A-Za-z.]{1,20}$`)
)

// slowNote is what somebody wrote behind a field.
var slowNote = pattern.New(`^(\s*(?:\d+\) *)+(?:\(integer\) \d+|"(?:[^"\\]|\\.)*"))\s+(?:#|//|<-+|--).*$`)

// slowText is a line without what somebody wrote behind its field, and without blanks at its end.
func slowText(text string) string {
	text = strings.TrimRight(text, " \t")
	if strings.ContainsAny(text, "#/<-") {
		if m := slowNote.FindStringSubmatch(text); m != nil {
			return m[1]
		}
	}
	return text
}

func claimRedisSlow(lines []paste.Line) int {
	if bareSlow(lines) {
		n := 0
		for n < len(lines) && bareSlow(lines[n:]) {
			n += 4
			for n < len(lines) && lines[n].Command == "" && !bareSlow(lines[n:]) && n < 1<<20 &&
				(strings.TrimSpace(lines[n].Text) != "" || n+1 < len(lines) && bareSlow(lines[n+1:])) {
				n++
			}
		}
		return n
	}
	if iredisHead.MatchString(lines[0].Text) {
		n, took := 1, 0
		for n < len(lines) && lines[n].Command == "" && (iredisHead.MatchString(lines[n].Text) ||
			iredisItem.MatchString(lines[n].Text)) {
			if strings.Contains(lines[n].Text, "Running time(") {
				took++
			}
			n++
		}
		return attach.ClaimIf(took > 0, n)
	}
	if n := flatSlow(lines); n > 0 {
		for n < len(lines) && lines[n].Command == "" &&
			(flatField.MatchString(strings.TrimSpace(lines[n].Text)) || strings.TrimSpace(lines[n].Text) == "") {
			n++
		}
		return n
	}
	if !slowHead.MatchString(slowText(lines[0].Text)) && !gluedSlow(lines) {
		return 0
	}
	n, took := 1, false
	for n < len(lines) && lines[n].Command == "" && slowOwn(slowText(lines[n].Text)) {
		took = took || strings.Contains(lines[n].Text, "3) (integer)")
		n++
	}
	return attach.ClaimIf(took, n)
}

var (
	gluedHead = pattern.New(`[^\s\w.]\s*\d+\) +1\) +\(integer\) \d+$`)
	gluedAt   = pattern.New(`^\s+2\) +\(integer\) 1[3-9]\d{8}$`)
	gluedTook = pattern.New(`^\s+3\) +\(integer\) \d{1,16}$`)
)

// gluedSlow reports whether an entry starts at the end of a line of something else, such as the
// quote that a program has it in.
func gluedSlow(lines []paste.Line) bool {
	return len(lines) > 3 && gluedHead.MatchString(slowText(lines[0].Text)) &&
		gluedAt.MatchString(slowText(lines[1].Text)) && gluedTook.MatchString(slowText(lines[2].Text))
}

func slowOwn(text string) bool {
	return slowHead.MatchString(text) || slowItem.MatchString(text) || slowArg.MatchString(text)
}

var (
	flatField = pattern.New(`^(?:\d+\) *)+(?:\(integer\) \d+|"[^"]*")?$`)
	flatID    = pattern.New(`^(?:\d+\) +)?1\) \(integer\) \d+$`)
	flatAt    = pattern.New(`^2\) \(integer\) 1[3-9]\d{8}$`)
	flatTook  = pattern.New(`^3\) \(integer\) (\d{1,16})$`)
	flatWord  = pattern.New(`^(?:4\) +)?1\) "([^"]+)"$`)
)

// flatSlow is how many lines the first entry has which lost its indentation, as pages do that to
// it; 0: none starts here.
func flatSlow(lines []paste.Line) int {
	if len(lines) < 4 {
		return 0
	}
	t := func(i int) string { return strings.TrimSpace(lines[i].Text) }
	if strings.HasPrefix(lines[1].Text, " ") || !flatID.MatchString(t(0)) ||
		!flatAt.MatchString(t(1)) || !flatTook.MatchString(t(2)) {
		return 0
	}
	if flatWord.MatchString(t(3)) {
		return 4
	}
	if len(lines) > 4 && t(3) == "4)" && flatWord.MatchString(t(4)) {
		return 5
	}
	return 0
}

// bareSlow reports whether an entry without quotes starts here: id, time, microseconds, command.
func bareSlow(lines []paste.Line) bool {
	return len(lines) > 3 && bareInt.MatchString(lines[0].Text) &&
		epoch.MatchString(lines[1].Text) && bareInt.MatchString(lines[2].Text) &&
		bareWord.MatchString(lines[3].Text)
}

// slowCommand is a command of the slow log.
type slowCommand struct {
	name string
	s    float64
	at   float64 // when it ran, in Unix seconds; 0: not read
}

func readRedisSlow(p *attach.Part) attach.Reading {
	r := &result{}
	list := parseRedisSlow(p.Lines)
	if len(list) == 0 {
		r.Title = "Redis SLOWLOG, no entry that could be read"
		return r.done(attach.CannotTell)
	}
	var took []float64
	sum := map[string]float64{}
	total := 0.0
	for _, c := range list {
		took = append(took, c.s)
		sum[c.name] += c.s
		total += c.s
	}
	worst := slices.MaxFunc(list, func(a, b slowCommand) int { return cmp.Compare(a.s, b.s) })
	r.Title = "Redis SLOWLOG, " + attach.Plural(len(list), "command")
	r.figure(fmt.Sprintf("the slowest: %s, %s; median of the slow ones %s", worst.name,
		dur(worst.s), dur(attach.Median(took))))
	names := make([]string, 0, len(sum))
	for name := range sum {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(sum[b], sum[a]), cmp.Compare(a, b)) })
	top := names[0]
	r.figure(fmt.Sprintf("%s: %s of %s of all of them", top, dur(sum[top]), dur(total)))
	if text := slowSpan(list); text != "" {
		r.figure(text)
	}
	if slices.ContainsFunc(p.Lines, func(l paste.Line) bool { return strings.Contains(l.Text, "Running time(ms): ") }) {
		r.figure("the label says ms: what Redis gives are microseconds")
	}
	r.Not = "Only execution is in it, not the wait in the queue nor the append-only file's fsync; it says nothing of faster commands."
	line := r.Figures[0]
	constant := 0.0 // the time of commands of constant cost
	for name, s := range sum {
		if cheap[name] {
			constant += s
		}
	}
	switch {
	case worst.s < 0.01:
		r.Means = "None of them held the thread for 10 ms: the threshold is low, nothing is slow."
		return r.done(attach.Healthy)
	case worst.name == "DEBUG" && sum["DEBUG"] >= 0.9*total:
		r.Means = "DEBUG holds the thread on purpose: it is a test, and no slow command."
		return r.done(attach.Healthy)
	case 2*constant >= total:
		r.Means = "Most of this time is of commands of constant cost: Redis' thread lacked the CPU, or its memory had to be read in, or their values are huge."
		r.candidate("cpu-contention", line)
		r.candidate("page-fault", line)
		r.next("redis-cli --intrinsic-latency 30", "says whether the machine takes the CPU away")
	case worst.s < slowlogFelt:
		r.Means = "Each of these commands held Redis' one thread, none for long: what waited behind them waited as long."
		r.candidate("event-loop", line)
		r.next("redis-cli INFO commandstats", "has the calls and microseconds of each command")
	default:
		r.Means = "These commands hold Redis' one thread: all other clients wait behind them."
		r.found("event-loop", finding.Possible, line, 0)
		r.next("redis-cli INFO commandstats", "has the calls and microseconds of each command")
	}
	return r.done(attach.CannotTell)
}

// slowSpan says how much time lies between the first and the last of the commands; "": not all of
// them have their time, or they ran in one second.
func slowSpan(list []slowCommand) string {
	first, last := list[0].at, list[0].at
	for _, c := range list {
		first, last = min(first, c.at), max(last, c.at)
	}
	if first == 0 || last-first < 1 {
		return ""
	}
	long := dur(last - first)
	switch {
	case last-first >= 2*3600:
		long = three((last-first)/3600) + " h"
	case last-first >= 2*60:
		long = three((last-first)/60) + " min"
	}
	return "from the first of them to the last: " + long
}

// slowlogFelt is in s what a command holds the thread for that others feel.
const slowlogFelt = 0.05

// cheap are commands of constant cost.
var cheap = map[string]bool{"GET": true, "SET": true, "PING": true, "INCR": true, "DECR": true,
	"EXPIRE": true, "HGET": true, "HSET": true, "LPUSH": true, "RPUSH": true,
	"LPOP": true, "RPOP": true, "SADD": true, "EXISTS": true, "SETEX": true, "TTL": true,
	"AUTH": true, "SELECT": true, "PUBLISH": true, "ZADD": true, "SETNX": true,
	"INCRBY": true, "SISMEMBER": true, "HEXISTS": true, "GETSET": true, "ZSCORE": true, "HINCRBY": true}

func parseRedisSlow(lines []paste.Line) (list []slowCommand) {
	took, at, field := 0.0, 0.0, false
	for i := range lines {
		text := slowText(lines[i].Text)
		if n := flatSlow(lines[i:]); n > 0 {
			us, _ := number(flatTook.FindStringSubmatch(strings.TrimSpace(lines[i+2].Text))[1])
			word := flatWord.FindStringSubmatch(strings.TrimSpace(lines[i+n-1].Text))[1]
			list = append(list, slowCommand{name: strings.ToUpper(word), s: us / 1e6})
			continue
		}
		if bareSlow(lines[i:]) {
			us, _ := number(lines[i+2].Text)
			list = append(list, slowCommand{name: strings.ToUpper(lines[i+3].Text), s: us / 1e6})
			continue
		}
		if m := iredisItem.FindStringSubmatch(text); m != nil {
			switch {
			case strings.HasPrefix(m[1], "Running"):
				us, ok := number(m[2])
				took, field = us/1e6, ok
			case m[1] == "Command" && field && m[2] != "":
				list = append(list, slowCommand{name: strings.ToUpper(strings.Trim(firstWord(m[2]), `"`)), s: took})
				field = false
			}
			continue
		}
		m := slowItem.FindStringSubmatch(text)
		switch {
		case m == nil:
		case m[1] == "2" && epoch.MatchString(m[2]):
			at, _ = number(m[2])
		case m[1] == "3" && m[2] != "":
			us, _ := number(m[2])
			took, field = us/1e6, true
		case m[1] == "4" && m[3] != "" && field:
			list = append(list, slowCommand{name: strings.ToUpper(m[4]), s: took, at: at})
			field, at = false, 0
		}
	}
	return list
}
