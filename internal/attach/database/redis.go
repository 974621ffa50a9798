package database

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

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
	infoLine = pattern.New(`^([a-z][A-Za-z0-9_|.-]*):(\S.*)?$`)
	infoHead = pattern.New(`^# (Server|Clients|Memory|Persistence|Stats|Replication|CPU|Modules|Commandstats|Errorstats|Latencystats|Cluster|Keyspace)$`)
	infoOwn  = pattern.New(`^(redis_version|redis_mode|valkey_version|used_memory_human|used_memory_rss|mem_fragmentation_ratio|aof_delayed_fsync|latest_fork_usec|instantaneous_ops_per_sec|cmdstat_\w+|latency_percentiles_usec_\w+|rdb_last_bgsave_status|aof_enabled|blocked_clients|mem_clients_normal|total_commands_processed|keyspace_hits|tcp_port|maxmemory_policy|master_replid|used_cpu_sys|connected_clients|master_link_status|master_last_io_seconds_ago|latest_fork_usec|instantaneous_output_kbps):`)
)

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
	if f["master_link_status"] == "down" {
		r.figure("the link to its master is down: what it answers is as old as that")
	}
	if v := num("rejected_connections"); v > 0 {
		r.figure(count(v) + " connections were refused since the start, at the limit of clients (maxclients)")
	}
	if up := num("uptime_in_seconds"); up > 0 && num("used_cpu_user")+num("used_cpu_sys") >= mostlyBusy*up {
		r.Means = cmp.Or(r.Means, "Redis' threads used most of a CPU in the mean since its start: its one thread for commands may be full, and then all clients wait for it.")
		r.next("redis-cli INFO commandstats; top -H -p PID", "which commands take the time, and whether the main thread is at 100 % now")
		return r.done(attach.CannotTell)
	}
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

// mostlyBusy is a share of one CPU, in the mean since the start, with which a thread may be full.
const mostlyBusy = 0.8

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
