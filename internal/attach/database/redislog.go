package database

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// redisLog is the log of a Redis or Valkey server. Its own words say when the disk did not keep up,
// and when it forked; no line says how long a client waited.
var redisLog = &attach.Kind{
	Name:      "Redis log",
	Scattered: true,
	Hints: []string{" * ", ` \* `, " # ", " - ", " . ", "WATCHDOG", "Background ",
		"automatic rewriting of AOF", "AOF fsync"},
	Marks: []string{"Asynchronous AOF fsync is taking too long", "Background saving ",
		"DB saved on disk", "memory used by copy-on-write", "Fork CoW for ", "append only file rewriting",
		"Can't save in background", "Slow script detected", "Transparent Huge Pages (THP)",
		"overcommit_memory is set to 0", "output buffer limits", "WATCHDOG TIMER EXPIRED",
		"Disconnecting timedout replica", "Connection with replica", "Ready to accept connections",
		"Background AOF buffer size", "automatic rewriting of AOF", "DB loaded from "},
	Claim: claimRedisLog,
	Read:  readRedisLog,
}

// A forum may have put a backslash before the star.
// "2210:M 22 Nov 2026 10:00:00.123 * Ready"; before Redis 3 "[2210] 22 Nov 10:00:00.123 * Ready".
var redisLine = pattern.New(`^(?:(\d+):[MSCX]|\[(\d+)\]) (\d{1,2} [A-Z][a-z]{2} (?:\d{4} )?\d\d:\d\d:\d\d(?:\.\d{1,3})?) (\\?[.\-*#]) (.*)$`)

// redisLoose is a line of which somebody took off the pid or the date. Only what Redis alone says
// makes it one.
var redisLoose = pattern.New(`^(?:\S{0,12} )?(?:\S{1,4} )?(?:\S{0,10} )?(\d\d:\d\d:\d\d(?:\.\d{1,3})?Z?) +([.\-*#]) (.*)$`)

// redisBare is a line of which syslog or a person left the time and the message, which is Redis'
// own from its first word on.
var redisBare = pattern.New(`^(?:[A-Z][a-z]{2} +\d{1,2} )?(\d\d:\d\d:\d\d(?:\.\d{1,3})?)?(?: ?\[[^\]]{1,12}\]:?)? ?((?:Background AOF buffer size: \d+ MB|Starting automatic rewriting of AOF on \d+% growth|Background append only file rewriting (?:started by pid|terminated)|Background AOF rewrite (?:terminated|finished|signal handler)|Background saving (?:started by pid|terminated)|AOF rewrite child asks to stop|Residual parent diff|Asynchronous AOF fsync is taking too long|\d+ changes in \d+ seconds\. Saving).*)$`)

// redisMessages are messages of no other program.
var redisMessages = []string{"Asynchronous AOF fsync is taking too long",
	"Background saving started by pid", "Background saving terminated", "DB saved on disk",
	"memory used by copy-on-write", "Fork CoW for ",
	" seconds. Saving...", "append only file rewriting", "Background AOF rewrite",
	"is now ready to exit, bye bye", "User requested shutdown"}

// redisParts takes a line apart as redisLine does: the pid twice, the time, the level, the message.
func redisParts(text string) []string {
	if m := redisLine.FindStringSubmatch(text); m != nil {
		return m
	}
	if m := redisBare.FindStringSubmatch(text); m != nil {
		return []string{text, "", "", m[1], "", m[2]}
	}
	m := redisLoose.FindStringSubmatch(text)
	if m == nil || !slices.ContainsFunc(redisMessages, func(s string) bool { return strings.Contains(m[3], s) }) {
		return nil
	}
	return []string{text, "", "", m[1], m[2], m[3]}
}

func claimRedisLog(lines []paste.Line) int {
	if redisParts(lines[0].Text) == nil {
		return 0
	}
	n := 0
	for i, l := range lines {
		switch {
		case l.Command != "" || i > n+mostBanner:
			return n
		case redisParts(l.Text) != nil, i > 0 && redisTold.MatchString(l.Text):
			n = i + 1
		case l.Text != "" && !ofBanner(l.Text):
			return n
		}
	}
	return n
}

// redisTold is a line that a signal handler wrote, which has no level.
var redisTold = pattern.New(`^(?:\S+ )?\d+:signal-handler(?: \(\d+\))? Received SIG\w+ scheduling shutdown`)

// mostBanner lines of a drawing stand where a server starts.
const mostBanner = 24

func ofBanner(text string) bool {
	return len(text) < 100 && (strings.Contains(text, "`-._") || strings.Contains(text, "_.-") ||
		strings.Contains(text, "_._") || strings.Contains(text, "-.__") || strings.Contains(text, "`-.."))
}

// redisEvent is what a message of the log is.
type redisEvent struct {
	text string // the message has it
	one  string // how one is called
}

var redisEvents = []redisEvent{
	{"Asynchronous AOF fsync is taking too long", "fsync of the append-only file that took too long"},
	{"Slow script detected", "script that ran too long"},
	{"WATCHDOG TIMER EXPIRED", "stall that the watchdog saw"},
	{"Can't save in background", "fork that failed"},
	{"Background saving started", "fork for a snapshot"},
	{"append only file rewriting started", "fork to rewrite the append-only file"},
	{"output buffer limits", "client that was closed, as it read too slowly"},
	{"Disconnecting timedout replica", "replica that did not answer in time"},
	{"Connection with replica", "replica that was lost"},
}

var redisCopied = pattern.New(`(\d+) MB of memory used by copy-on-write|Fork CoW for \w+: current \d+ MB, peak (\d+) MB`)

var redisBacklog = pattern.New(`TCP backlog setting of (\d+) cannot be enforced because \S+ is set to the lower value of (\d+)`)

// redisWarned says which setting of the host Redis complains of when it starts.
func redisWarned(text string) string {
	if m := redisBacklog.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("net.core.somaxconn is %s, below the backlog of %s: a burst of new connections may overflow the queue of accept", m[2], m[1])
	}
	if strings.Contains(text, "overcommit_memory is set to 0") {
		return "vm.overcommit_memory is 0: a fork for a snapshot may fail where memory is short"
	}
	return ""
}

func readRedisLog(p *attach.Part) attach.Reading {
	r := &result{}
	n, lines := make([]int, len(redisEvents)), 0
	copied := 0.0
	thp := false
	var warned []string
	var slow []string // when a fsync took too long
	var load redisLoad
	for _, l := range p.Lines {
		m := redisParts(l.Text)
		if m == nil {
			continue
		}
		lines++
		load.line(m[3], m[5])
		if strings.Contains(m[5], redisEvents[0].text) {
			slow = append(slow, m[3])
		}
		if r.Who.PID == 0 {
			pid, _ := number(cmp.Or(m[1], m[2]))
			r.Who.PID = int(min(pid, 1<<22))
		}
		for i, e := range redisEvents {
			if strings.Contains(m[5], e.text) {
				n[i]++
			}
		}
		if c := redisCopied.FindStringSubmatch(m[5]); c != nil {
			mb, _ := number(cmp.Or(c[1], c[2]))
			copied = max(copied, mb)
		}
		if w := redisWarned(m[5]); w != "" && !slices.Contains(warned, w) {
			warned = append(warned, w)
		}
		thp = thp || strings.Contains(m[5], "Transparent Huge Pages (THP)") && strings.HasPrefix(m[5], "WARNING")
	}
	r.Title = "Redis log, " + attach.Plural(lines, "line")
	for i, e := range redisEvents {
		if n[i] > 0 {
			line := attach.Plural(n[i], "time") + ": " + e.one
			if i == 0 && len(slow) > 1 {
				line += ", from " + slow[0] + " to " + slow[len(slow)-1]
			}
			r.figure(line)
		}
	}
	if copied > 0 {
		r.figure(fmt.Sprintf("up to %s MB were copied beside a fork", count(copied)))
	}
	r.Figures = append(r.Figures, warned...)
	r.Not = "how long a client waited: a fork and a slow fsync hold Redis' one thread, and all clients behind it"
	load.tell(r)
	redisJudge(r, n, copied)
	if thp {
		r.Signs = append(r.Signs, attach.Sign{Cause: "thp-bloat", Grade: attach.Risk,
			Proof: []string{"huge pages are on: after a fork each write copies 2 MiB, says Redis itself"}})
	}
	if len(r.Signs) == 0 && r.Means == "" {
		r.Means = "These lines tell of no stall of Redis; commands that take long are in SLOWLOG, and not in its log."
		return r.done(attach.Context)
	}
	r.next("redis-cli LATENCY LATEST; redis-cli SLOWLOG GET 10", "how long its thread was held, and by what")
	return r.done(attach.CannotTell)
}

// redisJudge says what counts of events mean; n is in the order of redisEvents.
func redisJudge(r *result, n []int, copied float64) {
	fsyncs, scripts, stalls, forks := n[0], n[1], n[2], n[4]+n[5]
	if fsyncs > 0 {
		line := attach.Plural(fsyncs, "time") + " an fsync of the append-only file took 2 s or longer"
		r.Means = "The disk does not keep up with the append-only file: a write waits while an fsync runs, and Redis' one thread with it."
		if fsyncs >= 3 {
			r.found("disk-wait", finding.Possible, line, 0)
		} else {
			r.candidate("disk-wait", line)
		}
		r.next("iostat -x 1 10", "whether the disk is slow, or full of others' writes")
	}
	if scripts+stalls > 0 {
		line := attach.Plural(scripts+stalls, "time") + " one command or script held Redis' thread too long"
		r.Means = cmp.Or(r.Means, "A command or a script held Redis' one thread: all other clients waited behind it.")
		r.found("event-loop", finding.Possible, line, 0)
	}
	if n[3] > 0 {
		r.Means = cmp.Or(r.Means,
			"A fork failed for lack of memory: Redis cannot save, and by its settings may refuse writes.")
	}
	if forks > 0 && copied >= 100 {
		r.Means = cmp.Or(r.Means,
			"Redis forks: the fork itself holds its thread, and each page written after it is copied first. How long that took these lines do not say.")
		r.next("redis-cli INFO stats | grep latest_fork_usec", "how long the last fork held the thread")
	}
	if n[6]+n[7]+n[8] > 0 {
		r.Means = cmp.Or(r.Means,
			"Clients or replicas fell behind or were lost: that may be the network, or themselves.")
	}
}

// redisLoad is what a log says of the loading of a dump or of the append-only file, and of what
// gathers beside a rewrite.
type redisLoad struct {
	from, to    time.Time // of the loading
	parts       []string  // files with the time each took
	longest     float64   // of several starts, s
	of          []string  // the parts of that
	first, last float64   // the buffer beside a rewrite, in MB
	most        float64
}

var (
	redisLoaded = pattern.New(`DB loaded from (base file|incr file|disk|append only file)\S*(?: (\S+?))?: ([\d.]+) seconds`)
	redisBuffer = pattern.New(`Background AOF buffer size: (\d+) MB`)
	redisLoads  = pattern.New(`^(?:Reading RDB (?:base file|preamble) |Loading RDB produced|Reading the remaining AOF tail|Done loading RDB|DB loaded from )`)
	redisClock  = pattern.New(`\d\d:\d\d:\d\d(?:\.\d{1,3})?`)
)

func (d *redisLoad) line(at, text string) {
	if strings.Contains(text, "Ready to accept connections") || strings.Contains(text, "Redis is starting") {
		d.close()
		return
	}
	if m := redisBuffer.FindStringSubmatch(text); m != nil {
		d.last, _ = number(m[1])
		if d.most == 0 {
			d.first = d.last
		}
		d.most = max(d.most, d.last)
	}
	if !redisLoads.MatchString(text) {
		return
	}
	if t, err := time.Parse("15:04:05", redisClock.FindString(at)); err == nil {
		if d.from.IsZero() {
			d.from = t
		}
		d.to = t
	}
	if m := redisLoaded.FindStringSubmatch(text); m != nil && len(d.parts) < 3 {
		v, _ := number(m[3])
		d.parts = append(d.parts, m[1]+" "+dur(v))
	}
}

// close ends one loading, of which the longest counts.
func (d *redisLoad) close() {
	took := d.to.Sub(d.from).Seconds()
	if took < 0 {
		took += 24 * 3600 // over midnight
	}
	if took > d.longest {
		d.longest, d.of = took, d.parts
	}
	d.from, d.to, d.parts = time.Time{}, time.Time{}, nil
}

func (d *redisLoad) tell(r *result) {
	d.close()
	if d.longest >= 1 {
		line := "loading its data took " + dur(d.longest)
		if len(d.of) > 0 {
			line += " by the lines' times: " + strings.Join(d.of, ", ")
		}
		r.figure(line)
		r.Means = "While Redis loads its data after a start, it answers each command with LOADING: probes and clients fail for so long."
		r.Not = "Why it was started, and what a client waited for before."
	}
	if d.most > 0 {
		line := fmt.Sprintf("writes that gathered beside a rewrite of the append-only file: from %.0f MB to %.0f MB", d.first, d.last)
		r.figure(line)
		r.Means = cmp.Or(r.Means,
			"A rewrite of the append-only file runs: the fork at its start, and the writing of what gathered at its end, are done by the main thread.")
	}
}

// mysqlBrief is the line of mysqladmin status, which the client's \s ends with as well.
var mysqlBrief = &attach.Kind{
	Name:  "mysqladmin status",
	Hints: []string{"Queries per second avg:"},
	Claim: func(lines []paste.Line) int {
		return attach.ClaimWhile(lines,
			func(_ int, text string) bool { return mysqlStatus.MatchString(strings.TrimSpace(text)) })
	},
	Read: readMySQLBrief,
}

var mysqlStatus = pattern.New(`^(?:Uptime: (\d+) +)?Threads: (\d+) +Questions: (\d+) +Slow queries: (\d+) +Opens: \d+ .*Queries per second avg: ([\d.]+)$`)

func readMySQLBrief(p *attach.Part) attach.Reading {
	r := &result{}
	r.Boot = true
	for _, l := range p.Lines {
		m := mysqlStatus.FindStringSubmatch(strings.TrimSpace(l.Text))
		if m == nil || len(r.Figures) > 0 {
			continue
		}
		all, _ := number(m[3])
		slow, _ := number(m[4])
		r.figure(m[2] + " connections now")
		r.figure(m[5] + " statements a second in the mean since the start")
		r.figure(fmt.Sprintf("%s of %s statements were slow since the start", count(slow), count(all)))
	}
	r.Title = "mysqladmin status, sums since the start"
	r.Means = "It counts since the server's start, and says nothing of now."
	r.Not = "when the slow statements were: one of last week counts as much as one of now"
	r.next("mysqladmin processlist; SHOW ENGINE INNODB STATUS", "what connections do and wait for at this moment")
	return r.done(attach.CannotTell)
}
