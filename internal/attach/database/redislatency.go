package database

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// redisDoctor reads LATENCY DOCTOR: what Redis' latency monitor saw, by event.
var redisDoctor = &attach.Kind{
	Name:  "Redis LATENCY DOCTOR",
	Hints: []string{"latency spike", "latency spikes", "latency monitor", "no latency spike"},
	Claim: claimDoctor,
	Read:  readDoctor,
}

// redisLatest reads LATENCY LATEST and HISTORY as redis-cli prints them.
var redisLatest = &attach.Kind{
	Name:  "Redis LATENCY LATEST",
	Hints: []string{"1) "},
	Claim: claimLatest,
	Read:  readLatest,
}

// redisPing reads redis-cli --latency and --latency-history.
var redisPing = &attach.Kind{
	Name:  "redis-cli --latency",
	Hints: []string{"min: "},
	Claim: func(lines []paste.Line) int {
		n := 0
		for n < len(lines) && pingLine.MatchString(lines[n].Text) {
			n++
		}
		return n
	},
	Read: readPing,
}

var (
	doctorEvent = pattern.New(`^\s*\d+\. ([\w-]+): (\d+) latency spikes \(average (\d+)ms(?:, mean deviation (\d+)ms)?(?:, period ([\d.]+) sec)?[^)]{0,40}\)\.?(?: Worst all time event (\d+)ms\.)?`)
	doctorLine  = pattern.New(`^(\d+\. [\w-]+: \d+ latency spikes|- |I have a few advices|While there are|The system is slow|You don't mind talking)`)
	doctorStart = pattern.New(`I have observed latency spikes in this Redis|no latency spike was observed|I can't do that|latency monitor(ing)? is disabled|Dave, I have observed`)
	eventName   = pattern.New(`^(?:\d+\) )?1\) "(command|fast-command|fork|rename|expire-cycle|expire-del|eviction-\w+|active-defrag-cycle|aof-[\w-]+|rdb-[\w-]+|while-blocked-cron|module-[\w-]+)"$`)
	cliInt      = pattern.New(`^\s*(?:\d+\) )+\(integer\) (\d+)(?:\s+#.*)?$`)
	pingLine    = pattern.New(`min: (\d+), max: (\d+), avg: ([\d.]+) \((\d+) samples\)`)
)

// broken reports whether a line goes on with the one above it: a client's window has broken it.
func broken(text, above string) bool {
	return strings.TrimSpace(above) != "" && (text != strings.TrimSpace(text) || strings.Contains(text, " sec). "))
}

// doctorText is an event's line with what a window has broken off it.
func doctorText(lines []paste.Line) string {
	text := lines[0].Text
	for _, l := range lines[1:min(3, len(lines))] {
		if !strings.Contains(text, " latency spikes (average") ||
			strings.Contains(text, " sec).") && strings.Contains(text, "Worst") ||
			doctorLine.MatchString(strings.TrimSpace(l.Text)) {
			break
		}
		text += " " + strings.TrimSpace(l.Text)
	}
	return text
}

func claimDoctor(lines []paste.Line) int {
	if !doctorStart.MatchString(lines[0].Text) && !doctorEvent.MatchString(lines[0].Text) {
		return 0
	}
	n := 1
	for i, l := range lines[1:] {
		t := strings.TrimSpace(l.Text)
		if l.Command != "" {
			break
		}
		if t == "" {
			continue
		}
		if !doctorLine.MatchString(t) && !broken(l.Text, lines[i].Text) {
			break
		}
		n = i + 2
	}
	return n
}

// eventCause is what an event of the latency monitor points to.
func eventCause(event string) (cause, words string) {
	switch {
	case strings.Contains(event, "fsync") && !strings.HasPrefix(event, "aof-"):
		return "disk-wait", "a file that the main thread writes: it waits until the disk has it (fsync)"
	case event == "fork":
		return "", "fork of the child that saves: it copies the page tables, longer the larger the memory"
	case strings.HasPrefix(event, "aof-"), event == "rename", strings.HasPrefix(event, "rdb-"):
		return "disk-wait", "the append-only file or the dump: the main thread waits for the disk"
	case event == "command", event == "fast-command":
		return "event-loop", "commands that hold the one thread: all other clients wait"
	case event == "command-unblocking":
		return "event-loop", "commands of clients that had been blocked, which hold the one thread"
	case strings.HasPrefix(event, "expire"), strings.HasPrefix(event, "eviction"), event == "active-defrag-cycle":
		return "event-loop", "expiry, eviction or defragmentation on the one thread"
	}
	return "", "an event of the latency monitor, in which the main thread did not go on"
}

// spike is an event with its times in milliseconds.
type spike struct {
	event          string
	n              int
	average, worst float64
}

// judgeSpikes says what events mean. Redis measured them itself, on its main thread.
func judgeSpikes(r *result, list []spike) {
	slices.SortStableFunc(list, func(a, b spike) int { return int(b.average - a.average) })
	for i, s := range list {
		line := fmt.Sprintf("%s: %s, on average %s", s.event, times(s.n), dur(s.average/1e3))
		if s.n == 0 {
			line = fmt.Sprintf("%s: last %s", s.event, dur(s.average/1e3))
		}
		if s.worst >= 0 {
			line += ", at worst " + dur(s.worst/1e3)
		}
		r.figure(line)
		cause, words := eventCause(s.event)
		switch {
		case s.n == 0 && s.average < 10 && s.worst >= 200 && cause != "":
			r.candidate(cause, line) // it was late once; the last time it was not
			continue
		case s.average < 10 || i > 2:
			continue
		case cause == "disk-wait":
			r.fact(FactFsync, s.average, s.event)
			r.found(cause, finding.Possible, line, 0)
			r.next("iostat -x 1 10", "says whether the disk was slow: await")
		case cause == "event-loop" && s.event == "fast-command":
			// A command of constant cost cannot hold the thread: something took the CPU or its
			// memory.
			r.candidate("cpu-contention", line)
			r.candidate("page-fault", line)
		case cause != "" && !strings.Contains(s.event, "command"):
			r.found(cause, finding.Possible, line, 0)
			r.next("redis-cli INFO stats | grep -E 'expired|evicted|defrag'", "how many keys it is about")
		case cause != "":
			r.found(cause, finding.Possible, line, 0)
			r.next("redis-cli SLOWLOG GET 25", "names the commands")
		case s.event == "fork":
			r.candidate("syscall-stall", line)
			r.next("redis-cli INFO | grep -E 'latest_fork_usec|used_memory_human'", "a fork takes about 10 to 20 ms for each GB")
		}
		if r.Means == "" {
			r.Means = strings.ToUpper(words[:1]) + words[1:] + "."
		}
	}
}

func readDoctor(p *attach.Part) attach.Reading {
	r := &result{}
	var list []spike
	huge := false
	for i, l := range p.Lines {
		if m := doctorEvent.FindStringSubmatch(doctorText(p.Lines[i:])); m != nil {
			s := spike{event: m[1]}
			v, _ := number(m[2])
			s.n = int(v)
			s.average, _ = number(m[3])
			s.worst = -1
			if v, ok := number(m[6]); ok && m[6] != "" {
				s.worst = v
			}
			list = append(list, s)
		}
		huge = huge || strings.Contains(l.Text, "huge pages")
	}
	r.Title = "Redis LATENCY DOCTOR, " + attach.Plural(len(list), "event")
	judgeSpikes(r, list)
	if huge {
		r.figure("it advises to switch off transparent huge pages")
		r.Signs = append(r.Signs, attach.Sign{Cause: "thp-bloat", Grade: attach.Risk,
			Proof: []string{"LATENCY DOCTOR names transparent huge pages"}})
	}
	if len(list) == 0 && strings.Contains(p.Lines[0].Text, "observed latency spikes") {
		r.Means = "There were latency spikes; the lines that say of what, and how long, are not in the paste."
		r.next("redis-cli LATENCY LATEST", "names the events")
		return r.done(attach.CannotTell)
	}
	if len(list) == 0 {
		r.figure("no latency spike since the monitor was switched on or reset")
		r.Means = "The latency monitor saw nothing, or it is off: its threshold is 0 by default."
		r.next("redis-cli CONFIG GET latency-monitor-threshold", "0 means that nothing was watched")
		if !strings.Contains(p.Lines[0].Text, "no latency spike") {
			return r.done(attach.CannotTell)
		}
		r.Not = "With latency-monitor-threshold 0 this is what Redis says, whatever happened."
		return r.done(attach.CannotTell)
	}
	r.Not = "Events since the monitor was reset: a period says how often, no time says when. A slow command may itself lack CPU or memory."
	return r.done(attach.Healthy)
}

func claimLatest(lines []paste.Line) int {
	if !eventName.MatchString(strings.TrimSpace(lines[0].Text)) {
		return claimHistory(lines)
	}
	n := 1
	for n < len(lines) && (cliInt.MatchString(lines[n].Text) ||
		eventName.MatchString(strings.TrimSpace(lines[n].Text))) {
		n++
	}
	return attach.ClaimIf(n > 2, n) // what an event took the last time is its second number
}

// historyOf is the event that the command asked for.
var historyOf = pattern.New(`(?i)\blatency history ([a-z-]+)`)

var historyHead = pattern.New(`^\s*\d+\) 1\) \(integer\) (1[3-9]\d{8})$`)

// claimHistory takes LATENCY HISTORY: pairs of a time and milliseconds.
func claimHistory(lines []paste.Line) int {
	n := 0
	for n+1 < len(lines) && historyHead.MatchString(lines[n].Text) &&
		cliInt.MatchString(lines[n+1].Text) && strings.Contains(lines[n+1].Text, "2) (integer)") {
		if n+2 < len(lines) && strings.HasPrefix(strings.TrimSpace(lines[n+2].Text), "3) ") &&
			!historyHead.MatchString(lines[n+2].Text) {
			return 0 // SLOWLOG's rows have more than two values
		}
		n += 2
	}
	return n
}

// readHistory reads LATENCY HISTORY, which does not name its event.
func readHistory(p *attach.Part) attach.Reading {
	r := &result{}
	var ms []float64
	var first, last float64
	for i := 0; i+1 < len(p.Lines); i += 2 {
		at, v := historyHead.FindStringSubmatch(p.Lines[i].Text), cliInt.FindStringSubmatch(p.Lines[i+1].Text)
		if at == nil || v == nil {
			continue
		}
		last, _ = number(at[1])
		if first == 0 {
			first = last
		}
		x, _ := number(v[1])
		ms = append(ms, x)
	}
	r.Title = "Redis LATENCY HISTORY, " + attach.Plural(len(ms), "spike")
	if len(ms) == 0 {
		return r.done(attach.CannotTell)
	}
	r.figure(fmt.Sprintf("%s in %s: median %s, at most %s", attach.Plural(len(ms), "spike"),
		dur(max(0, last-first)), dur(attach.Median(ms)/1e3), dur(slices.Max(ms)/1e3)))
	r.Time = time.Unix(int64(first), 0).UTC()
	r.Means = "Redis' main thread stood still for that long; the history does not say for which event."
	if m := historyOf.FindStringSubmatch(p.Command); m != nil {
		_, words := eventCause(strings.ToLower(m[1]))
		r.figure("event " + strings.ToLower(m[1]))
		r.Means = "Redis' main thread stood still for that long: " + words + "."
	}
	r.Not = "At most one spike a second is kept, the longest of it."
	r.next("redis-cli LATENCY LATEST", "names the events")
	return r.done(attach.CannotTell)
}

func readLatest(p *attach.Part) attach.Reading {
	if historyHead.MatchString(p.Lines[0].Text) {
		return readHistory(p)
	}
	r := &result{}
	var list []spike
	var nums []float64
	flush := func() {
		switch {
		case len(list) == 0:
		case len(nums) < 2: // cut off before its time
			list = list[:len(list)-1]
		default:
			s := &list[len(list)-1]
			s.average, s.worst = nums[1], -1
			if len(nums) > 2 {
				s.worst = max(nums[1], nums[2]) // a cut number is smaller than the last
			}
			r.Time = time.Unix(int64(nums[0]), 0).UTC()
		}
		nums = nil
	}
	for _, l := range p.Lines {
		if m := eventName.FindStringSubmatch(strings.TrimSpace(l.Text)); m != nil {
			flush()
			list = append(list, spike{event: m[1]})
		} else if m := cliInt.FindStringSubmatch(l.Text); m != nil {
			v, _ := number(m[1])
			nums = append(nums, v)
		}
	}
	flush()
	r.Title = "Redis LATENCY LATEST, " + attach.Plural(len(list), "event")
	if testSleep.MatchString(p.Session) {
		list = onPurpose(r, list)
	}
	judgeSpikes(r, list)
	r.Not = "The last and the worst event of each kind, no rate: LATENCY HISTORY EVENT has the times."
	if r.Means == "" {
		r.Means = "No event took 10 ms or more the last time."
		if len(list) == 0 {
			r.Means = "DEBUG SLEEP holds the thread on purpose: it is a test, and no slow command."
		}
	}
	return r.done(attach.Healthy)
}

// testSleep is a command that holds Redis' thread for as long as it is asked to.
var testSleep = pattern.New(`(?i)\bdebug sleep [\d.]+`)

// onPurpose takes off what DEBUG SLEEP in the same session explains: slow commands.
func onPurpose(r *result, list []spike) []spike {
	return slices.DeleteFunc(list, func(s spike) bool {
		if s.event != "command" {
			return false
		}
		r.figure(fmt.Sprintf("command: last %s, at worst %s, after DEBUG SLEEP in the same session",
			dur(s.average/1e3), dur(max(s.average, s.worst)/1e3)))
		return true
	})
}

func readPing(p *attach.Part) attach.Reading {
	r := &result{}
	var avgs, worsts []float64
	for _, l := range p.Lines {
		if m := pingLine.FindStringSubmatch(l.Text); m != nil {
			worst, _ := number(m[2])
			avg, _ := number(m[3])
			avgs, worsts = append(avgs, avg), append(worsts, worst)
		}
	}
	r.Title = "redis-cli --latency, " + attach.Plural(len(avgs), "range")
	r.figure(fmt.Sprintf("PING took %s on average (median of ranges), %s at most",
		dur(attach.Median(avgs)/1e3), dur(slices.Max(worsts)/1e3)))
	r.Not = "Measured by the client: network and the client's own scheduling are in it."
	late := 0
	for _, w := range worsts {
		if w >= 50 {
			late++
		}
	}
	if late > 0 && len(worsts) > 1 {
		r.figure(fmt.Sprintf("%d of %d ranges have an answer that took 50 ms or longer", late, len(worsts)))
	}
	if attach.Median(avgs) >= 5 || 2*late > len(worsts) && attach.Median(avgs) >= 1 {
		r.Means = "PING is late: Redis' one thread was busy or had no CPU, or the way to it is slow."
		r.next("redis-cli --intrinsic-latency 30", "on the server's host: says what the machine itself does")
		r.next("redis-cli SLOWLOG GET 25", "names commands that hold the thread")
		return r.done(attach.CannotTell)
	}
	r.Means = "PING is answered at once."
	if late > 0 {
		r.Means = fmt.Sprintf("PING is answered at once as a rule; now and then an answer is late, by up to %s: by Redis' one thread, by the way to it, or by the client.", dur(slices.Max(worsts)/1e3))
		r.next("redis-cli LATENCY LATEST", "on the server: whether its own thread was held up, and by what")
		return r.done(attach.CannotTell)
	}
	return r.done(attach.Healthy)
}
