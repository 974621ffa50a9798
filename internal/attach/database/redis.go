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

// redisInfo reads INFO: states of now, and counters since the start.
var redisInfo = &attach.Kind{
	Name:  "Redis INFO",
	Hints: []string{"# ", "redis_version:", "_", ":"},
	Claim: claimRedisInfo,
	Read:  readRedisInfo,
}

// factDelayedFsync counts writes that waited for an fsync of the log, since the start.
const factDelayedFsync attach.FactName = "/db/redis/delayed-fsync:writes"

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
	infoLine   = pattern.New(`^([a-z][A-Za-z0-9_|.-]*):(\S.*)?$`)
	infoHead   = pattern.New(`^# (Server|Clients|Memory|Persistence|Stats|Replication|CPU|Modules|Commandstats|Errorstats|Latencystats|Cluster|Keyspace)$`)
	infoOwn    = pattern.New(`^(redis_version|redis_mode|valkey_version|used_memory_human|used_memory_rss|mem_fragmentation_ratio|aof_delayed_fsync|latest_fork_usec|instantaneous_ops_per_sec|cmdstat_\w+|latency_percentiles_usec_\w+|rdb_last_bgsave_status|aof_enabled|blocked_clients|mem_clients_normal|total_commands_processed|keyspace_hits|tcp_port|maxmemory_policy|master_replid|used_cpu_sys|connected_clients|master_link_status|master_last_io_seconds_ago|latest_fork_usec|instantaneous_output_kbps):`)
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
	if !slowHead.MatchString(slowText(lines[0].Text)) {
		return 0
	}
	n, took := 1, false
	for n < len(lines) && lines[n].Command == "" && slowOwn(slowText(lines[n].Text)) {
		took = took || strings.Contains(lines[n].Text, "3) (integer)")
		n++
	}
	return attach.ClaimIf(took, n)
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
	if slices.ContainsFunc(p.Lines, func(l paste.Line) bool { return strings.Contains(l.Text, "Running time(ms): ") }) {
		r.figure("the label says ms: what Redis gives are microseconds")
	}
	r.Not = "Only execution is in it, not the wait in the queue nor the append-only file's fsync; it says nothing of faster commands."
	line := r.Figures[0]
	switch {
	case worst.s < 0.01:
		r.Means = "None of them held the thread for 10 ms: the threshold is low, nothing is slow."
		return r.done(attach.Healthy)
	case worst.name == "DEBUG" && sum["DEBUG"] >= 0.9*total:
		r.Means = "DEBUG holds the thread on purpose: it is a test, and no slow command."
		return r.done(attach.Healthy)
	case cheap[worst.name]:
		r.Means = worst.name +
			" has a constant cost: Redis' thread lacked the CPU, or its memory had to be read in, or its value is huge."
		r.candidate("cpu-contention", line)
		r.candidate("page-fault", line)
		r.next("redis-cli --intrinsic-latency 30", "says whether the machine takes the CPU away")
	default:
		r.Means = "These commands hold Redis' one thread: all other clients wait behind them."
		r.found("event-loop", finding.Possible, line, 0)
		r.next("redis-cli INFO commandstats", "has the calls and microseconds of each command")
	}
	return r.done(attach.CannotTell)
}

// cheap are commands of constant cost.
var cheap = map[string]bool{"GET": true, "SET": true, "PING": true, "INCR": true, "DECR": true,
	"EXPIRE": true, "HGET": true, "HSET": true, "LPUSH": true, "RPUSH": true,
	"LPOP": true, "RPOP": true, "SADD": true, "EXISTS": true, "SETEX": true, "TTL": true,
	"AUTH": true, "SELECT": true, "PUBLISH": true, "ZADD": true, "SETNX": true,
	"INCRBY": true, "SISMEMBER": true, "HEXISTS": true, "GETSET": true, "ZSCORE": true, "HINCRBY": true}

func parseRedisSlow(lines []paste.Line) (list []slowCommand) {
	took, field := 0.0, false
	for i := range lines {
		text := slowText(lines[i].Text)
		if n := flatSlow(lines[i:]); n > 0 {
			us, _ := number(flatTook.FindStringSubmatch(strings.TrimSpace(lines[i+2].Text))[1])
			word := flatWord.FindStringSubmatch(strings.TrimSpace(lines[i+n-1].Text))[1]
			list = append(list, slowCommand{strings.ToUpper(word), us / 1e6})
			continue
		}
		if bareSlow(lines[i:]) {
			us, _ := number(lines[i+2].Text)
			list = append(list, slowCommand{strings.ToUpper(lines[i+3].Text), us / 1e6})
			continue
		}
		if m := iredisItem.FindStringSubmatch(text); m != nil {
			switch {
			case strings.HasPrefix(m[1], "Running"):
				us, ok := number(m[2])
				took, field = us/1e6, ok
			case m[1] == "Command" && field && m[2] != "":
				list = append(list, slowCommand{strings.ToUpper(strings.Trim(firstWord(m[2]), `"`)), took})
				field = false
			}
			continue
		}
		m := slowItem.FindStringSubmatch(text)
		switch {
		case m == nil:
		case m[1] == "3" && m[2] != "":
			us, _ := number(m[2])
			took, field = us/1e6, true
		case m[1] == "4" && m[3] != "" && field:
			list = append(list, slowCommand{strings.ToUpper(m[4]), took})
			field = false
		}
	}
	return list
}

func claimRedisInfo(lines []paste.Line) int {
	if !infoHead.MatchString(lines[0].Text) && !infoOwn.MatchString(lines[0].Text) &&
		!infoLine.MatchString(lines[0].Text) {
		return 0
	}
	n, own := 0, 0
	for i, l := range lines {
		switch {
		case i > 0 && l.Command != "":
			return attach.ClaimIf(own > 0, n)
		case infoOwn.MatchString(l.Text):
			own++
			n = i + 1
		case infoHead.MatchString(l.Text), infoLine.MatchString(l.Text):
			n = i + 1
		case strings.TrimSpace(l.Text) == "", l.Text == "...":
		default:
			return attach.ClaimIf(own > 0, n)
		}
		if own == 0 && i > 30 {
			return 0
		}
	}
	return attach.ClaimIf(own > 0, n)
}

var percentiles = pattern.New(`p50=([\d.]+),p99=([\d.]+)`)

// infoNote is what somebody wrote behind a value.
var infoNote = pattern.New(`\s+#.*$`)

func readRedisInfo(p *attach.Part) attach.Reading {
	f := map[string]string{}
	for _, l := range p.Lines {
		if m := infoLine.FindStringSubmatch(l.Text); m != nil {
			f[m[1]] = infoNote.ReplaceAllString(m[2], "")
		}
	}
	num := func(name string) float64 { v, _ := number(f[name]); return v }
	r := &result{}
	r.Boot = true
	r.Who.PID = int(num("process_id"))
	r.Title = "Redis INFO"
	if v := cmp.Or(f["redis_version"], f["valkey_version"]); v != "" {
		r.Title += ", version " + v
	}
	if up := num("uptime_in_seconds"); up > 0 {
		text := "up " + dur(up)
		if f["used_cpu_user"] != "" && f["used_cpu_sys"] != "" {
			text += fmt.Sprintf("; its threads used %s of a CPU since then",
				percent(num("used_cpu_user")+num("used_cpu_sys"), up))
		}
		r.figure(text)
	}
	if v, ok := f["instantaneous_ops_per_sec"]; ok {
		line := v + " commands/s now"
		for _, k := range []struct{ field, what string }{{"connected_clients", "clients"},
			{"blocked_clients", "blocked"}} {
			if n, said := f[k.field]; said {
				line += "; " + k.what + ": " + n
			}
		}
		r.figure(line)
	}
	memoryFigures(r, f, num)
	for _, known := range []struct {
		field string
		fact  attach.FactName
	}{{"used_memory", FactMemory}, {"connected_clients", FactClients}, {"total_commands_processed", FactCommands}} {
		if f[known.field] != "" {
			r.fact(known.fact, num(known.field), "")
		}
	}
	if v := num("latest_fork_usec"); v >= 50000 {
		r.figure(fmt.Sprintf("the last fork took %s: Redis answered nobody meanwhile", dur(v/1e6)))
		r.candidate("syscall-stall", "latest_fork_usec "+f["latest_fork_usec"])
	}
	if v := num("latest_fork_usec"); v >= 1000 && v < 50000 {
		r.figure(fmt.Sprintf("the last fork took %s", dur(v/1e6)))
	}
	if v := num("aof_delayed_fsync"); v > 0 {
		r.figure(fmt.Sprintf("aof_delayed_fsync %s since the start: writes waited for the disk at times that it does not name", f["aof_delayed_fsync"]))
		r.fact(factDelayedFsync, v, "")
		r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Risk, Counter: factDelayedFsync,
			Proof: []string{"aof_delayed_fsync " + f["aof_delayed_fsync"] + " since the start"}})
		r.next("redis-cli INFO persistence; sleep 60; redis-cli INFO persistence",
			"the difference says whether it happens now")
	}
	slowStats(r, f)
	commandStats(r, f)
	r.Not = "Counters since the start are no rates: two INFOs a minute apart give them."
	if r.Means == "" && len(r.Signs) == 0 && len(f) < fewFields {
		r.Means = "These are few fields of INFO: whether requests wait they do not say."
		return r.done(attach.CannotTell)
	}
	if len(r.Signs) > 0 {
		r.Means = cmp.Or(r.Means,
			"Requests have waited in Redis since its start; whether they wait now it does not say.")
	}
	r.Means = cmp.Or(r.Means, "Nothing in it shows that requests wait.")
	if r.Next == nil && len(r.Signs) > 0 {
		r.next("redis-cli --latency-history; redis-cli SLOWLOG GET 25", "say whether clients wait now, and for what")
	}
	return r.done(attach.Healthy)
}

// fewFields is below how many fields INFO was cut down to something.
const fewFields = 4

func memoryFigures(r *result, f map[string]string, num func(string) float64) {
	used, rss := num("used_memory"), num("used_memory_rss")
	if used > 0 && rss > 0 {
		r.figure(fmt.Sprintf("memory %s used, %s resident", bytesText(used), bytesText(rss)))
	}
	if used > 256<<20 && rss > 0 && rss < 0.8*used {
		r.Means = "Less is resident than Redis uses: a part is swapped out, as a rule, and reading that takes major faults."
		r.Signs = append(r.Signs, attach.Sign{Cause: "page-fault", Grade: attach.Risk,
			Proof: []string{fmt.Sprintf("%s resident of %s used", bytesText(rss), bytesText(used))}})
	}
	if limit := num("maxmemory"); limit > 0 && used > 0.95*limit {
		text := fmt.Sprintf("memory is at %s of maxmemory", percent(used, limit))
		if n := f["evicted_keys"]; n != "" {
			text += fmt.Sprintf("; %s keys evicted since the start", n)
		}
		r.figure(text)
	}
	if f["loading"] == "1" {
		r.figure("it loads its data set and answers nobody")
		r.Signs = append(r.Signs,
			attach.Sign{Grade: attach.Outside, Where: "loading the data set after a start",
				Proof: []string{"loading:1"}})
	}
}

// slowStats looks for commands whose median is slow: latency percentiles are since the start as
// well.
func slowStats(r *result, f map[string]string) {
	worst, name := 0.0, ""
	for k, v := range f {
		if m := percentiles.FindStringSubmatch(v); m != nil && strings.HasPrefix(k, "latency_percentiles_usec_") {
			p50, _ := number(m[1])
			if p50 > worst || p50 == worst && k < name {
				worst, name = p50, k
			}
		}
	}
	if name != "" {
		r.figure(fmt.Sprintf("slowest median of a command since the start: %s, %s",
			strings.ToUpper(strings.TrimPrefix(name, "latency_percentiles_usec_")), dur(worst/1e6)))
	}
}
