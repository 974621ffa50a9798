package database

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// What caches and proxies count of themselves: Redis' clients and keys, memcached, HAProxy's and
// Envoy's statistics, nginx' status.

// linesOf makes a claim of lines of which each matches, and at least so many.
func linesOf(least int, re *pattern.Regexp) func([]paste.Line) int {
	return func(lines []paste.Line) int {
		n, rows := 0, 0
		for i, l := range lines {
			text := strings.TrimSpace(l.Text)
			if l.Command != "" || text != "" && (len(text) > 8<<10 || !re.MatchString(text)) ||
				text == "" && (i == 0 || i > n) {
				break
			}
			if text != "" {
				rows++
				n = i + 1
			}
		}
		if rows < least {
			return 0
		}
		return n
	}
}

var redisClients = &attach.Kind{
	Name:  "Redis CLIENT LIST",
	Hints: []string{"addr="},
	Claim: linesOf(1, pattern.New(`^id=\d+ addr=\S+ (laddr=\S+ )?fd=-?\d+ name=.* age=\d+ idle=\d+ `)),
	Read: func(p *attach.Part) attach.Reading {
		r := &result{}
		r.Glance = true
		n, busy, blocked := 0, 0, 0
		most, who := 0.0, ""
		for _, l := range p.Lines {
			v := pairsOf(l.Text)
			if v["id"] == "" {
				continue
			}
			n++
			if v["idle"] == "0" {
				busy++
			}
			if strings.Contains(v["flags"], "b") {
				blocked++
			}
			if m, _ := number(v["omem"]); m > most {
				most, who = m, v["addr"]
			}
		}
		r.Title = "Redis CLIENT LIST, " + attach.Plural(n, "client")
		r.figure(fmt.Sprintf("%d of %d sent a command within the last second, %d wait in a blocking command", busy, n, blocked))
		r.Means = "It lists who is connected; how long commands take, it does not say."
		if most >= 1<<20 {
			r.figure(fmt.Sprintf("%s has %s of output waiting: it reads slower than it asks", who, bytesText(most)))
			r.Means = "A client does not read its answers as fast as it asks: the answers fill the server's memory."
		}
		r.Not = "A blocked client waits for data by its own wish (BLPOP, XREAD)."
		r.next("redis-cli slowlog get 10", "which commands took the server's one thread longest")
		return r.done(attach.CannotTell)
	},
}

// pairsOf reads "a=1 b=2".
func pairsOf(text string) map[string]string {
	out := map[string]string{}
	for _, f := range strings.Fields(text) {
		if k, v, ok := strings.Cut(f, "="); ok && len(out) < 64 {
			out[k] = v
		}
	}
	return out
}

var redisKeys = &attach.Kind{
	Name:  "redis-cli --bigkeys",
	Hints: []string{"# Scanning the entire keyspace", "Biggest ", "-------- summary"},
	Claim: func(lines []paste.Line) int {
		own := 0
		n := attach.ClaimWhile(lines, func(_ int, text string) bool {
			text = strings.TrimSpace(text)
			if bigKey.MatchString(text) {
				own++
				return true
			}
			return bigKeyLine.MatchString(text)
		})
		return attach.ClaimIf(own > 0, n)
	},
	Read: func(p *attach.Part) attach.Reading {
		r := &result{}
		r.Title = "redis-cli --bigkeys"
		for _, l := range p.Lines {
			if t := strings.TrimSpace(l.Text); bigKey.MatchString(t) && !strings.HasPrefix(t, "[") {
				r.figure(t)
			}
		}
		r.Means = "It names the largest key of each type: a command that takes all of such a key holds Redis' one thread meanwhile."
		r.Not = "Whether anybody asks for all of it is not in it."
		r.next("redis-cli slowlog get 10", "whether a command took long, and on which key")
		return r.done(attach.CannotTell)
	},
}

var (
	bigKey     = pattern.New(`^(\[\d+\.\d+%\] )?Biggest +\w+ +found .*(with|has) \d+ \w+$`)
	bigKeyLine = pattern.New(`^(# Scanning the entire keyspace|# average sizes per key type|# per 100 SCAN commands|-+ summary -+|Sampled \d+ keys|Total key length|\d+ \w+ with \d+ \w+ \([\d.]+% of keys|\[\d+\.\d+%\] )`)
)

var redisMemory = &attach.Kind{
	Name:  "Redis MEMORY DOCTOR",
	Hints: []string{"Hi Sam, "},
	Claim: func(lines []paste.Line) int {
		t := strings.TrimSpace(lines[0].Text)
		if !strings.Contains(t, "Hi Sam, ") || !strings.Contains(t, "memory") {
			return 0
		}
		n := 1
		for n < len(lines) && lines[n].Command == "" &&
			(strings.HasPrefix(strings.TrimSpace(lines[n].Text), "* ") ||
				strings.TrimSpace(lines[n].Text) == "" && n+1 < len(lines) &&
					strings.HasPrefix(strings.TrimSpace(lines[n+1].Text), "* ") ||
				strings.HasPrefix(strings.TrimSpace(lines[n].Text), "I'm here to keep you safe")) {
			n++
		}
		return n
	},
	Read: func(p *attach.Part) attach.Reading {
		r := &result{}
		r.Title = "Redis MEMORY DOCTOR"
		for _, l := range p.Lines {
			if t, ok := strings.CutPrefix(strings.TrimSpace(l.Text), "* "); ok {
				topic, _, _ := strings.Cut(t, ":")
				r.figure(short(topic))
			}
		}
		if len(r.Figures) == 0 {
			r.figure("it found nothing of its list")
		}
		r.Means = "It looks at how Redis uses memory, and at no latency: what it lists costs memory first."
		r.next("redis-cli latency doctor", "what Redis measured of delays (latency-monitor-threshold must be set)")
		return r.done(attach.CannotTell)
	},
}

var memcached = &attach.Kind{
	Name:  "memcached stats",
	Hints: []string{"STAT "},
	Claim: linesOf(3, pattern.New(`^(STAT [\w.:-]+ .*|STAT [\w.:-]+|END)$`)),
	Read: func(p *attach.Part) attach.Reading {
		r := &result{}
		v := map[string]float64{}
		for _, l := range p.Lines {
			if f := strings.Fields(l.Text); len(f) == 3 && f[0] == "STAT" && len(v) < 4096 {
				v[f[1]], _ = number(f[2])
			}
		}
		r.Title, r.Boot = "memcached stats", true
		if gets := v["cmd_get"]; gets > 0 {
			r.figure(fmt.Sprintf("%s of %s gets were hits, since its start", percent(v["get_hits"], gets), count(gets)))
		}
		if n := v["curr_connections"]; n > 0 {
			line := count(n) + " connections"
			if most := v["max_connections"]; most > 0 {
				line += fmt.Sprintf(" of %s at most", count(most))
			}
			if off, said := v["listen_disabled_num"]; said {
				line += "; the limit was reached " + timesOr(int(min(off, 1e9)), "never")
			}
			r.figure(line)
		}
		if e := v["evictions"]; e > 0 {
			r.figure(count(e) + " items were thrown out before their time, since its start")
		}
		if len(r.Figures) == 0 {
			r.figure(fmt.Sprintf("%d figures", len(v)))
		}
		r.Means = "Counters since its start: no time of a command is in it."
		if v["listen_disabled_num"] > 0 {
			r.Means = "The limit of connections was reached at some time since its start: new ones waited to be accepted."
		}
		r.Not = "A low share of hits is slow for the service behind it, and not for memcached."
		r.next("the same stats twice, ten seconds apart", "what was added")
		return r.done(attach.CannotTell)
	},
}

// haproxyStats is "show stat" of HAProxy: a line for each proxy and server.
var haproxyStats = &attach.Kind{
	Name:  "HAProxy stats",
	Hints: []string{"pxname,svname,"},
	Claim: func(lines []paste.Line) int {
		head := strings.TrimPrefix(strings.TrimSpace(lines[0].Text), "# ")
		if !strings.HasPrefix(head, "pxname,svname,qcur,qmax,scur") {
			return 0
		}
		n := 1
		for n < len(lines) && lines[n].Command == "" && strings.Count(lines[n].Text, ",") >= 16 {
			n++
		}
		return n
	},
	Read: readHAProxyStats,
}

func readHAProxyStats(p *attach.Part) attach.Reading {
	r := &result{}
	r.Glance = true
	head := strings.Split(strings.TrimPrefix(strings.TrimSpace(p.Lines[0].Text), "# "), ",")
	var rows []map[string]string
	for _, l := range p.Lines[1:] {
		row := map[string]string{}
		for i, c := range strings.Split(strings.TrimSpace(l.Text), ",") {
			if i < len(head) {
				row[head[i]] = c
			}
		}
		if len(rows) < mostRows {
			rows = append(rows, row)
		}
	}
	r.Title = fmt.Sprintf("HAProxy stats, %d rows", len(rows))
	var queued, slow map[string]string
	down := 0
	for _, row := range rows {
		if row["svname"] == "FRONTEND" {
			continue
		}
		if strings.HasPrefix(row["status"], "DOWN") && row["svname"] != "BACKEND" {
			down++
		}
		if num(row, "qcur") > 0 && (queued == nil || num(row, "qcur") > num(queued, "qcur")) {
			queued = row
		}
		if slow == nil || num(row, "rtime") > num(slow, "rtime") {
			slow = row
		}
	}
	name := func(row map[string]string) string { return row["pxname"] + "/" + row["svname"] }
	if slow != nil && num(slow, "rtime") > 0 {
		r.figure(fmt.Sprintf("%s answers in %s ms in the mean of its last 1024 requests; its queue takes %s ms, a connection %s ms", name(slow), slow["rtime"], cmp.Or(slow["qtime"], "0"), cmp.Or(slow["ctime"], "0")))
	}
	r.Means = "Times are means of the last 1024 requests of each server."
	if queued != nil {
		line := fmt.Sprintf("%s requests wait in HAProxy's queue for %s, which has %s sessions of %s at most", queued["qcur"], name(queued), queued["scur"], cmp.Or(queued["slim"], "?"))
		r.figure(line)
		r.Means = ""
		r.outside("HAProxy's queue: the servers behind it do not take more requests", line, 0)
	}
	if down > 0 {
		r.figure(fmt.Sprintf("%d servers are down", down))
	}
	r.Not = "Why a server behind it is slow is not in it."
	r.next("whystall diagnose on the server that is slow", "what its requests wait for")
	return r.done(attach.CannotTell)
}

var envoyStats = &attach.Kind{
	Name:  "Envoy stats",
	Hints: []string{"cluster.", "server.", "listener.", "http."},
	Claim: linesOf(3, pattern.New(`^(cluster|server|listener|http|cluster_manager|listener_manager|runtime|filesystem|main_thread|workers|overload|tls|vhost|tcp|grpc|access_logs|control_plane|dns|thread_local_cluster_manager|http1|http2|tls_inspector|redis|ext_authz|sds|wasm|cert|connection_limit|geoip)[.\w:|;@/-]*\.[\w.:@-]+: (\d+|P0\(.*|No recorded values|".*")$`)),
	Read:  readEnvoy,
}

var envoyP = pattern.New(`P(50|99)\((nan|[\d.]+),([\d.]+)\)`)

func readEnvoy(p *attach.Part) attach.Reading {
	r := &result{}
	r.Boot = true
	lines, counted := 0, false
	var overflow, timeout, pending float64
	slowest, slow := "", 0.0
	for _, l := range p.Lines {
		name, v, ok := strings.Cut(strings.TrimSpace(l.Text), ": ")
		if !ok {
			continue
		}
		lines++
		n, _ := number(v)
		switch {
		case strings.HasSuffix(name, ".upstream_rq_pending_overflow"):
			overflow, counted = overflow+n, true
		case strings.HasSuffix(name, ".upstream_rq_timeout"):
			timeout += n
		case strings.HasSuffix(name, ".upstream_rq_pending_active"):
			pending, counted = pending+n, true
		case strings.HasSuffix(name, ".upstream_rq_time"):
			median, p99 := "", ""
			for _, m := range envoyP.FindAllStringSubmatch(v, 8) {
				if m[1] == "50" {
					median = m[3]
				} else {
					p99 = m[3]
				}
			}
			if f, ok := number(p99); ok && p99 != "" && (slowest == "" || f > slow) {
				slow, slowest = f,
					fmt.Sprintf("%s: median %s ms, 99th percentile %s ms, since its start",
						strings.TrimSuffix(name, ".upstream_rq_time"), median, p99)
			}
		}
	}
	r.Title = fmt.Sprintf("Envoy stats, %d names", lines)
	if slowest != "" {
		r.figure(slowest)
	}
	if counted {
		r.figure(fmt.Sprintf("%s requests wait for a connection now; %s were refused since its start because too many waited", count(pending), count(overflow)))
	}
	if timeout > 0 {
		r.figure(count(timeout) + " requests ran into a timeout, since its start")
	}
	r.Means = "Times of the servers behind it, since its start: why one is slow is not in it."
	if pending > 0 {
		r.Means = ""
		r.outside("the servers behind Envoy: requests wait for a connection to them",
			count(pending)+" requests wait for a connection at this instant", 0)
	}
	r.next("curl -s localhost:9901/stats?filter=upstream_rq; sleep 10; curl -s localhost:9901/stats?filter=upstream_rq", "what was added in ten seconds")
	return r.done(attach.CannotTell)
}

var nginxStatus = &attach.Kind{
	Name:  "nginx stub_status",
	Hints: []string{"Active connections: ", "server accepts handled"},
	Claim: linesOf(3, pattern.New(`^(Active connections: \d+|server accepts handled requests( request_time)?|\d+ \d+ \d+( \d+)?|Reading: \d+ Writing: \d+ Waiting: \d+)$`)),
	Read: func(p *attach.Part) attach.Reading {
		r := &result{}
		r.Title, r.Glance = "nginx stub_status", true
		for _, l := range p.Lines {
			f := strings.Fields(l.Text)
			switch {
			case len(f) == 6 && f[0] == "Reading:":
				r.figure(fmt.Sprintf("%s requests are read, %s are worked on or answered, %s connections are idle", f[1], f[3], f[5]))
			case len(f) >= 3 && f[0] != "server" && f[0] != "Active":
				a, _ := number(f[0])
				h, _ := number(f[1])
				if h < a {
					r.figure(fmt.Sprintf("%s connections were dropped since its start: worker_connections was used up", count(a-h)))
				}
			}
		}
		if len(r.Figures) == 0 {
			r.figure("no state of connections in it")
		}
		r.Means = "It counts connections at one instant: no time of a request is in it. Waiting ones are kept open, and wait for their clients."
		r.next("log_format with $request_time and $upstream_response_time",
			"how long requests take, and how much of it in the server behind")
		return r.done(attach.CannotTell)
	},
}
