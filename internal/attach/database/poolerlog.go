package database

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// poolerLog reads the logs of PgBouncer and Pgpool-II, which stand between clients and PostgreSQL.
var poolerLog = &attach.Kind{
	Name:      "log of a connection pooler",
	Hints:     []string{" LOG stats: ", " LOG Stats: ", " C-0x", " S-0x", " pid "},
	Marks:     []string{" LOG stats: ", " LOG Stats: ", " C-0x", " S-0x", ": pid ", "child pid ", "psql pid "},
	Single:    true,
	Scattered: true,
	Claim: func(lines []paste.Line) int {
		return run(lines, func(text string) bool { return bouncerLine.MatchString(text) || pgpoolLine.MatchString(text) })
	},
	Read: readPoolerLog,
}

var (
	bouncerLine  = pattern.New(`\b(?:LOG|WARNING|ERROR|FATAL|DEBUG|NOISE) (?:[Ss]tats: \d+ |[CS]-0x[0-9a-f]+: )`)
	bouncerStats = pattern.New(`\bLOG [Ss]tats: (\d+) (?:xacts|req)/s,(?: (\d+) queries/s,)?.*?(?:, ?xact (\d+) us)?, ?query (\d+) us(?:, wait(?: time)? (\d+) us)?`)
	bouncerEnd   = pattern.New(`\b([CS])-0x[0-9a-f]+: (?:\S+ )?(?:closing because: |pooler error: )(.{1,60}?)(?: \(age=\d+s?\))?$`)
	// "2024-02-06 22:48:41.460: child pid 205: LOG:  ..."; before version 4.3 without a name.
	pgpoolLine = pattern.New(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?: (?:[\w.-]{1,40} )?pid \d+: (?:LOG|ERROR|FATAL|PANIC|WARNING|NOTICE|DETAIL|HINT|STATEMENT|CONTEXT|DEBUG\d?): `)
	pgpoolLag  = pattern.New(`Replication of node: ?(\d+) is behind (\d+) bytes`)
)

// serverFailed are reasons that PgBouncer gives where the server did not answer.
var serverFailed = pattern.New(`^(?:server conn crashed|connect (?:failed|timeout)|server login failed|server_login|login failed|server down|got packet|client_login_timeout \(server down\)|unexpected response)`)

// Of PgBouncer's waits, in s of waiting in each second, added up over clients.
const (
	poolFull = 1.0  // somebody waits all the time
	poolFelt = 0.05 // less is a burst of a moment
)

// bouncerSaid is what PgBouncer's lines say; times in s.
type bouncerSaid struct {
	lines               int
	at                  []time.Time // of its statistics
	xact, query, waited []float64
	gaveUp, closed      int
	failed              map[string]float64
}

func (s *bouncerSaid) line(text string) {
	s.lines++
	if m := bouncerEnd.FindStringSubmatch(text); m != nil {
		switch {
		case strings.HasPrefix(m[2], "query_wait_timeout") && strings.Contains(text, "closing because"):
			s.closed++
		case strings.HasPrefix(m[2], "query_wait_timeout"):
			s.gaveUp++ // a line that closes the connection follows, as a rule
		case serverFailed.MatchString(m[2]) && len(s.failed) < mostOwners:
			s.failed[m[2]]++
		}
		return
	}
	m := bouncerStats.FindStringSubmatch(text)
	if m == nil {
		return
	}
	if t := pgTimeOf(text); !t.IsZero() {
		s.at = append(s.at, t)
	}
	micros := func(to *[]float64, word string) {
		if us, ok := number(word); ok && word != "" {
			*to = append(*to, us/1e6)
		}
	}
	micros(&s.waited, m[5])
	if m[4] != "0" { // else nothing was asked
		micros(&s.query, m[4])
		micros(&s.xact, m[3])
	}
}

func readPoolerLog(p *attach.Part) attach.Reading {
	b, g := bouncerSaid{failed: map[string]float64{}}, pgpoolSaid{}
	for _, l := range p.Lines {
		if bouncerLine.MatchString(l.Text) {
			b.line(l.Text)
		} else {
			g.line(l.Text)
		}
	}
	r := &result{}
	r.Title = "PgBouncer's log, " + attach.Plural(b.lines, "line")
	if g.lines > 0 {
		r.Title = "Pgpool-II's log, " + attach.Plural(g.lines, "line")
		if b.lines > 0 {
			r.Title = "logs of PgBouncer and Pgpool-II, " + attach.Plural(len(p.Lines), "line")
		}
		g.tell(r)
	}
	if b.lines > 0 {
		return b.tell(r)
	}
	return r.done(attach.CannotTell)
}

func (s *bouncerSaid) tell(r *result) attach.Reading {
	s.gaveUp = max(s.gaveUp, s.closed)
	if len(s.query) > 0 {
		line := "a query takes " + spread(s.query) + " in the mean of each line"
		if len(s.query) == 1 {
			line = "a query takes " + dur(s.query[0]) + " in the mean"
		}
		if len(s.xact) > 0 {
			line += ", a transaction " + spread(s.xact)
		}
		r.figure(line)
		r.fact(FactStatement, attach.Median(s.query)*1e3, "")
	}
	waits := ""
	if len(s.waited) > 0 {
		waits = "clients waited for a connection, in each second and added up: " + spread(s.waited)
		r.figure(waits)
	}
	if s.gaveUp > 0 {
		waits = "clients that gave up their wait for a connection (query_wait_timeout): " + times(s.gaveUp)
		r.figure(waits)
	}
	if len(s.failed) > 0 {
		r.figure("connections to the server that failed: " + times(int(attach.Sum(slices.Collect(maps.Values(s.failed))))) + ", " + chiefly(s.failed, ""))
	}
	gap := sampleGap(r, s.at)
	r.Not = "What a query waited for at the server; a transaction's time holds that of a client which leaves it open."
	most, usual := slices.Max(append(s.waited, 0)), attach.Median(s.waited)
	query := attach.Median(s.query)
	switch {
	case len(s.failed) > 0:
		r.outside("the server behind PgBouncer, or the way to it", r.Figures[len(r.Figures)-1], 0)
	case usual >= poolFull:
		r.Means = "Clients wait for a connection of the pool all the time: what those do who have one decides."
		r.found("pool-exhaustion", finding.Possible, waits, 0)
	case s.gaveUp > 0 || most >= poolFelt:
		r.Means = "Clients waited for a connection of the pool: all were in use, or a new one was being made."
		r.candidate("pool-exhaustion", waits)
	case query >= quick:
		r.outside("the server behind PgBouncer: its queries take long", r.Figures[0], 0)
	case gap:
		r.Means = "PgBouncer's own statistics are missing for a while: it did not run, or its log was not written."
	case len(s.query) > 0 && len(s.waited) > 0:
		r.Means = "Queries are answered fast in the mean, and hardly anybody waits for a connection."
		return r.done(attach.Healthy)
	case slices.Max(append(s.query, 0)) >= quick:
		r.Means = "Queries are fast as a rule, and slow in the mean of single lines; whether clients wait for a connection is not in them."
	default:
		r.Means = "These lines tell of no wait for a connection; whether there is one, they need not say."
		return r.done(attach.CannotTell)
	}
	r.next("psql -p 6432 pgbouncer -c 'SHOW POOLS'; psql -c \"SELECT state, count(*), max(now() - state_change) FROM pg_stat_activity GROUP BY 1\"",
		"who waits now, and whether connections work or are idle in a transaction")
	return r.done(attach.CannotTell)
}

// pgpoolSaid is what Pgpool's lines say.
type pgpoolSaid struct {
	lines, full, checks, failover int
	behind                        float64 // bytes
	node                          string
}

func (s *pgpoolSaid) line(text string) {
	s.lines++
	low := strings.ToLower(text)
	switch {
	case strings.Contains(low, "too many clients already"), strings.Contains(low, "remaining connection slots"):
		s.full++
	case strings.Contains(low, "health check retrying"), strings.Contains(low, "health check failed"),
		strings.Contains(low, "failed to connect to postgresql server"), strings.Contains(low, "health check timer expired"):
		s.checks++
	case strings.Contains(low, "degenerate backend"), strings.Contains(low, "starting degeneration"):
		s.failover++
	}
	if m := pgpoolLag.FindStringSubmatch(text); m != nil {
		if v, _ := number(m[2]); v > s.behind {
			s.behind, s.node = v, m[1]
		}
	}
}

func (s *pgpoolSaid) tell(r *result) {
	r.Means = "These lines tell of no wait for a connection; whether there is one, they need not say."
	if s.full > 0 {
		line := "connections that were refused, since all were in use: " + times(s.full)
		r.figure(line)
		r.candidate("pool-exhaustion", line)
		r.Means = "All connections were in use, those of Pgpool's children (num_init_children) or those of the server (max_connections): what their holders do decides."
		r.next("psql -c 'SELECT state, count(*), max(now() - state_change) FROM pg_stat_activity GROUP BY 1'; psql -p 9999 -c 'SHOW pool_processes'", "whether the connections work, or are idle")
	}
	if s.checks > 0 {
		r.figure("checks of a server that failed: " + times(s.checks))
	}
	if s.failover > 0 {
		r.figure("servers that were given up: " + times(s.failover))
	}
	if s.behind > 0 {
		r.figure(fmt.Sprintf("replication of node %s was behind by %s at most", s.node, bytesText(s.behind)))
	}
	if s.checks+s.failover > 0 && s.full == 0 {
		r.Means = "A server behind Pgpool did not answer its checks: it, or the way to it, was late or gone."
	}
	r.Not = "How long a client waited, or what a statement waited for: no time is in it."
}
