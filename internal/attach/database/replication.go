package database

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// What servers say of replicas that lag: a replica that is behind answers with old data, and slows
// down only who waits for it.

// lagMuch is in s from when on somebody notices that a replica is behind.
const lagMuch = 10.0

const lagNot = "Why it lags: applying changes, the disk, the network to it and a change that is large by itself look alike. A replica that is behind answers with old data; it makes nobody wait, but who waits for it."

// readReplica reads SHOW REPLICA STATUS of MySQL and MariaDB.
func readReplica(r *result, t *sqlTable) {
	r.Glance = true
	behind, known, stopped := 0.0, false, ""
	for _, row := range t.rows {
		if v, ok := number(valueOf(row, "seconds_behind_master", "seconds_behind_source")); ok &&
			valueOf(row, "seconds_behind_master", "seconds_behind_source") != "" {
			behind, known = max(behind, v), true
		}
		for _, part := range [][3]string{{"slave_io_running", "replica_io_running", "receives nothing"},
			{"slave_sql_running", "replica_sql_running", "applies nothing"}} {
			if v := cmp.Or(row[part[0]], row[part[1]]); v == "No" {
				stopped = cmp.Or(stopped, part[2])
			}
		}
		if text := valueOf(row, "last_error", "last_sql_error", "last_io_error"); text != "" && len(r.Figures) == 0 {
			r.figure("its last error: " + short(text))
		}
	}
	r.Title = "the state of a replica of MySQL"
	r.Not = lagNot
	if known {
		r.Figures = append([]string{"it is " + dur(behind) + " behind, by the time of what it applies"}, r.Figures...)
	}
	switch {
	case stopped != "":
		r.figure("it " + stopped + ": that thread does not run")
		r.Means = "The replica is stopped, not slow: what it lacks grows until it is started."
	case !known:
		r.Means = "How far the replica is behind these columns do not say."
	case behind >= lagMuch:
		r.Means = "The replica is behind at this instant: it applies changes later than they were made."
		r.next("the same some seconds later; SHOW PROCESSLIST on the replica", "whether it catches up, and what it applies")
	default:
		r.Means = "The replica is hardly behind at this instant."
	}
}

// readReplicas reads pg_stat_replication.
func readReplicas(r *result, t *sqlTable) {
	r.Glance = true
	most, who, said := 0.0, "", false
	for _, row := range t.rows {
		for _, c := range []string{"replay_lag", "flush_lag", "write_lag"} {
			v := clock(row[c])
			said = said || row[c] != ""
			if v > most {
				most, who = v, strings.TrimSpace(c+" of "+valueOf(row, "application_name", "client_addr", "usename"))
			}
		}
	}
	r.Title = "pg_stat_replication, " + attach.Plural(len(t.rows), "row")
	r.Not = lagNot
	switch {
	case most > 0:
		r.figure(fmt.Sprintf("the largest lag: %s, %s", dur(most), who))
		r.Means = "Standbys lag by so much; with synchronous_commit a commit waits for that of its standby."
	case said:
		r.figure("no standby lags in it")
		r.Means = "No standby lags at this instant."
	default:
		r.Means = "How far the standbys lag these columns do not say."
	}
}

// mongoLag is what MongoDB's shell says of how far its members are behind.
var mongoLag = &attach.Kind{
	Name:  "MongoDB replication lag",
	Hints: []string{"source: ", "behind the primary", "behind the freshest member"},
	Claim: func(lines []paste.Line) int {
		own := 0
		n := attach.ClaimWhile(lines, func(_ int, text string) bool {
			t := strings.TrimSpace(text)
			if mongoBehind.MatchString(t) {
				own++
				return true
			}
			return mongoLagLine.MatchString(t)
		})
		return attach.ClaimIf(own > 0, n)
	},
	Read: func(p *attach.Part) attach.Reading {
		r := &result{}
		r.Glance = true
		var lags []float64
		most, source, who := -1.0, "", ""
		for _, l := range p.Lines {
			t := strings.TrimSpace(l.Text)
			if s, ok := strings.CutPrefix(t, "source: "); ok {
				source = s
			}
			if m := mongoBehind.FindStringSubmatch(t); m != nil {
				v, _ := number(m[1])
				if lags = append(lags, v); v > most {
					most, who = v, source
				}
			}
		}
		r.Title = fmt.Sprintf("MongoDB's replication, %s", attach.Plural(len(lags), "member"))
		line := "at most " + dur(max(0, most)) + " behind"
		if who != "" {
			line += ": " + short(who)
		}
		r.figure(line)
		r.Not = lagNot
		r.Means = "The secondaries are hardly behind at this instant."
		if most >= lagMuch {
			r.Means = "A secondary is behind: writes that wait for a majority may wait for it."
			r.next("mongostat, iostat -x 1 10 on that member", "whether its disk or its CPU keeps it behind")
			return r.done(attach.CannotTell)
		}
		return r.done(attach.Healthy)
	},
}

var (
	mongoBehind  = pattern.New(`^(-?\d+) secs? \(-?[\d.]+ hrs?\) behind the (?:primary|freshest member)`)
	mongoLagLine = pattern.New(`^(?:source: \S+|syncedTo: .*|no replication info, yet\..*|doing initial sync.*)$`)
)

// redisStat reads redis-cli --stat: a line each second.
var redisStat = &attach.Kind{
	Name:  "redis-cli --stat",
	Hints: []string{"keys       mem", "------- data ------", "(+"},
	Joins: true,
	Claim: func(lines []paste.Line) int {
		rows := 0
		n := attach.ClaimWhile(lines, func(_ int, text string) bool {
			t := strings.TrimSpace(text)
			if statsRow.MatchString(t) {
				rows++
				return true
			}
			return strings.HasPrefix(t, "------- data ------") || strings.HasPrefix(t, "keys ") && strings.Contains(t, " clients blocked ")
		})
		return attach.ClaimIf(rows > 0, n)
	},
	Read: func(p *attach.Part) attach.Reading {
		r := &result{}
		var rate, clients, blocked []float64
		mem := ""
		for _, l := range p.Lines {
			m := statsRow.FindStringSubmatch(strings.TrimSpace(l.Text))
			if m == nil {
				continue
			}
			c, _ := number(m[2])
			b, _ := number(m[3])
			mem, clients, blocked = m[1], append(clients, c), append(blocked, b)
			if v, ok := number(m[4]); ok && len(clients) > 1 { // the first counts from the start
				rate = append(rate, v)
			}
		}
		r.Title = "redis-cli --stat, " + attach.Plural(len(clients), "sample")
		if len(rate) > 0 {
			r.figure(fmt.Sprintf("requests in each interval, 1 s by default: median %s, %s to %s", count(attach.Median(rate)),
				count(slices.Min(rate)), count(slices.Max(rate))))
		}
		if len(clients) > 0 {
			r.figure(fmt.Sprintf("clients: %s at most; blocked: %s at most; memory %s", count(slices.Max(clients)), count(slices.Max(blocked)), mem))
		}
		r.Means = "It counts requests; how long they take it does not say."
		r.Not = "A blocked client waits for data by its own wish (BLPOP, XREAD). Few requests may be few questions."
		r.next("redis-cli --latency-history; redis-cli SLOWLOG GET 25", "say whether clients wait now, and for what")
		return r.done(attach.CannotTell)
	},
}

var statsRow = pattern.New(`^\d+ +([\d.]+[BKMGT]) +(\d+) +(\d+) +\d+ \(\+?(-?\d+)\) +\d+ *`)
