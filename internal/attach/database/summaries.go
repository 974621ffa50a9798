package database

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// Reports that sum up slow logs, and pools of servers in Java.

var queryDigest = &attach.Kind{
	Name:    "pt-query-digest",
	Reports: true, // the profile, and a table for each class
	Hints:   []string{"# Overall: ", "# Profile", "# Rank Query ID", "user time, ", "# Query ", "# Item "},
	Claim: func(lines []paste.Line) int {
		own := 0
		n := attach.ClaimWhile(lines, func(i int, text string) bool {
			t := strings.TrimSpace(text)
			switch {
			case digestSure.MatchString(t):
				own++
				return true
			case strings.HasPrefix(t, "#"):
				return true
			}
			// The statement of a class, the start of one, or a line in it.
			return own > 0 && (strings.HasSuffix(t, `\G`) || i > 0 &&
				strings.HasPrefix(strings.TrimSpace(lines[i-1].Text), "#") || statementLine(lines, i))
		})
		return attach.ClaimIf(own > 0, n)
	},
	Read: readDigest,
}

// statementLine reports whether a line stands in a statement that ends with \G soon.
func statementLine(lines []paste.Line, at int) bool {
	for i := at; i < min(len(lines), at+40); i++ {
		t := strings.TrimSpace(lines[i].Text)
		if lines[i].Command != "" || t == "" || strings.HasPrefix(t, "#") {
			return false
		}
		if strings.HasSuffix(t, `\G`) {
			return true
		}
	}
	return false
}

var (
	digestSure    = pattern.New(`^# (Overall: [\d.]+[kM]? total, |Rank +Query ID +Response time|(?:Query|Item) \d+: [\d.]+[kM]? QPS, |[\d.]+m?s user time, )`)
	digestOverall = pattern.New(`^# Overall: ([\d.]+[kM]?) total, ([\d.]+[kM]?) unique(?:, ([\d.]+[kM]?) QPS, ([\d.]+[kM]?)x concurrency)?`)
	digestRow     = pattern.New(`^# +(\d+) 0x([0-9A-F.]*) +([\d.]+) +([\d.]+)% +(\d+) +([\d.]+)(?: +[\d.]+)?(?: +[\d.]+)? +(.*)$`)
	digestAttr    = pattern.New(`^# (Exec|Lock) time +(?:(\d+) +)?([\d.]+)(us|ms|s|m|h)? `)
)

// digestClass is the table of one class of statements, or of all of them.
type digestClass struct {
	share             string  // of the time; "" of all
	total, mean, most float64 // s
	lock              float64
	examined, sent    float64 // rows of one call, in the mean
	examines          bool
}

var digestField = pattern.New(`^# (Exec time|Lock time|Rows sent|Rows examine) +(\d+) +(\S+) +(\S+) +(\S+) +(\S+)`)

// line reads one line of a class' table.
func (c *digestClass) line(text string) {
	m := digestField.FindStringSubmatch(text)
	if m == nil {
		return
	}
	total, _ := digestNumber(m[3])
	most, _ := digestNumber(m[5])
	mean, ok := digestNumber(m[6])
	switch m[1] {
	case "Exec time":
		if c.total == 0 {
			c.share, c.total, c.most, c.mean = m[2], total, most, mean
		}
	case "Lock time":
		c.lock = total
	case "Rows sent":
		c.sent = mean
	case "Rows examine":
		c.examined, c.examines = mean, ok
	}
}

// digestNumber reads "33.12G", "564s", "208.16k", "22ms".
func digestNumber(s string) (float64, bool) {
	if v, ok := seconds(s); ok {
		return v, ok
	}
	factor := map[string]float64{"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "h": 3600}[s[len(s)-1:]]
	v, ok := number(s[:len(s)-1])
	return v * factor, ok && factor > 0
}

// Of a call in the mean: so many rows read for each one sent, and so many in all, are a plan that
// reads too much.
const (
	manyForOne = 1000
	manyRows   = 1e4
)

func readDigest(p *attach.Part) attach.Reading {
	r := &result{}
	r.Title = "pt-query-digest, a summary of a slow log"
	exec, lock := 0.0, 0.0
	var classes []*digestClass
	selects, others := false, false // others: of users, hosts or the like, and of no statements
	for _, l := range p.Lines {
		t := strings.TrimSpace(l.Text)
		if m := digestOverall.FindStringSubmatch(t); m != nil {
			r.Title = fmt.Sprintf("pt-query-digest, %s statements of %s kinds", m[1], m[2])
		}
		if (strings.HasPrefix(t, "# Query ") || strings.HasPrefix(t, "# Item ")) && digestSure.MatchString(t) {
			classes = append(classes, &digestClass{})
		}
		if len(classes) > 0 {
			classes[len(classes)-1].line(t)
		}
		others = others || strings.HasPrefix(t, "# Item ")
		if m := digestRow.FindStringSubmatch(t); m != nil && len(r.Figures) < 2 {
			others = others || m[2] == ""
			selects = selects || len(r.Figures) == 0 && strings.HasPrefix(m[7], "SELECT") &&
				!strings.Contains(m[7], "INSERT")
			took, _ := number(m[3])
			each, _ := number(m[6])
			r.figure(fmt.Sprintf("%s %% of the time (%s): %s calls of %s each: %s", m[4], dur(took),
				m[5], dur(each), short(m[7])))
		}
		if m := digestAttr.FindStringSubmatch(t); m != nil && m[2] == "" {
			v, ok := seconds(m[3] + m[4])
			if m[4] == "" {
				v, ok = number(m[3])
			}
			switch {
			case ok && m[1] == "Exec" && exec == 0:
				exec = v
			case ok && m[1] == "Lock" && lock == 0:
				lock = v
			}
		}
	}
	r.Not = "A slow log holds slow statements only: shares are of these, and not of all."
	r.Means = "It names the statements that took most of the logged time; what they waited for is not in it."
	if others {
		r.Means = "It names who took most of the logged time, by user, host or the like, and no statement."
	}
	switch {
	case exec > 0 && lock >= exec/2:
		line := fmt.Sprintf("waits for locks: %s of %s", dur(lock), dur(exec))
		r.figure(line)
		r.Means = ""
		r.outside("a lock in the database's own tables", line, ratio(lock, exec))
	case len(classes) > 0 && !others: // what stands in one line is of many statements
		classes[0].judge(r, selects)
	}
	if others {
		r.next("pt-query-digest of the same log without --group-by", "names the statements")
		return r.done(attach.CannotTell)
	}
	r.next("EXPLAIN ANALYZE of the first statement", "where its time goes")
	return r.done(attach.CannotTell)
}

// judge says what the table of the class with most time shows. What a statement writes is not in
// the rows that it sends, so only those of one that selects are held against those it reads.
func (c *digestClass) judge(r *result, selects bool) {
	if c.total <= 0 {
		return
	}
	line := fmt.Sprintf("the first statement: %s in all, %s in the mean, at most %s", dur(c.total),
		dur(c.mean), dur(c.most))
	r.figure(line)
	if c.examines {
		line = fmt.Sprintf("a call of it reads %s rows in the mean, and sends %s", count(c.examined), count(c.sent))
		r.figure(line)
	}
	switch {
	case c.lock >= c.total/2:
		line := fmt.Sprintf("waits for locks: %s of its %s", dur(c.lock), dur(c.total))
		r.figure(line)
		r.Means = ""
		r.outside("a lock in the database's own tables", line, ratio(c.lock, c.total))
	case (selects || c.sent > 0) && c.examines && c.examined >= manyRows && c.examined >= manyForOne*max(c.sent, 1):
		r.Means = ""
		r.outside("the plan: it reads far more rows than it sends", line, 0)
	}
}

var dumpSlow = &attach.Kind{
	Name:  "mysqldumpslow",
	Hints: []string{"Count: ", "Reading mysql slow query log"},
	Claim: func(lines []paste.Line) int {
		own, n := 0, 0
		for i, l := range lines {
			t := strings.TrimSpace(l.Text)
			below := i > 0 && dumpRow.MatchString(strings.TrimSpace(lines[i-1].Text))
			switch {
			case i > 0 && l.Command != "" && !below: // a statement at the start of its line is one
				return attach.ClaimIf(own > 0, n)
			case dumpRow.MatchString(t):
				own++
				n = i + 1
			case i == 0 && strings.HasPrefix(t, "Reading mysql slow query log from "), below,
				own > 0 && (strings.HasPrefix(l.Text, "  ") || isSQL(t)):
				n = i + 1
			case t == "" && i > 0:
			default:
				return attach.ClaimIf(own > 0, n)
			}
		}
		return attach.ClaimIf(own > 0, n)
	},
	Read: func(p *attach.Part) attach.Reading {
		r := &result{}
		by, says := map[string]float64{}, map[string]string{}
		total, locked, most := 0.0, 0.0, 0.0
		for i, l := range p.Lines {
			m := dumpRow.FindStringSubmatch(strings.TrimSpace(l.Text))
			if m == nil || i+1 >= len(p.Lines) {
				continue
			}
			n, _ := number(m[1])
			s, _ := number(m[2])
			k, _ := number(m[3])
			text := short(cmp.Or(strings.TrimSpace(p.Lines[i+1].Text), p.Lines[i+1].Command))
			most = max(most, s)
			by[text] += n * s
			total += n * s
			locked += n * k
			each := dur(s)
			if s == 0 { // two decimals are printed
				each = "less than 10 ms"
			}
			says[text] = fmt.Sprintf("%s calls of %s in the mean (locks %s): %s", count(n), each, dur(k), text)
		}
		r.Title = fmt.Sprintf("mysqldumpslow, %s", attach.Plural(len(by), "kind")+" of statements")
		if total > 0 {
			r.Title += ", " + dur(total) + " in all"
		}
		for _, n := range attach.Largest(by)[:min(2, len(by))] {
			r.figure(says[n])
		}
		r.Not = "A slow log holds slow statements only."
		r.Means = "It names the statements that took most of the logged time; what they waited for is not in it."
		if len(by) > 0 && most < quick {
			r.Means = fmt.Sprintf("Each kind of statement took less than %s in the mean: they are in the log, and not slow.", dur(quick))
			return r.done(attach.Healthy)
		}
		if total > 0 && locked >= total/2 {
			line := fmt.Sprintf("waits for locks: %s of %s", dur(locked), dur(total))
			r.figure(line)
			r.Means = ""
			r.outside("a lock in the database's own tables", line, ratio(locked, total))
		}
		r.next("EXPLAIN ANALYZE of the first statement", "where its time goes")
		return r.done(attach.CannotTell)
	},
}

var dumpRow = pattern.New(`^Count: (\d+) +Time=([\d.]+)s \([\d.]+s\) +Lock=([\d.]+)s \([\d.]+s\)`)

// threadPools is nodetool tpstats, and Elasticsearch's _cat/thread_pool.
var threadPools = &attach.Kind{
	Name:  "thread pools of a database",
	Hints: []string{"Pool Name", "node_name"},
	Claim: func(lines []paste.Line) int {
		head := strings.Fields(lines[0].Text)
		cassandra := len(head) >= 5 && head[0] == "Pool" && head[1] == "Name" &&
			head[2] == "Active" && head[3] == "Pending"
		elastic := len(head) >= 4 && head[0] == "node_name" && head[1] == "name" &&
			head[2] == "active" && head[3] == "queue"
		if !cassandra && !elastic {
			return 0
		}
		rows := 0
		n := attach.ClaimWhile(lines, func(i int, text string) bool {
			t := strings.TrimSpace(text)
			switch {
			case i == 0:
				return true
			case poolRow.MatchString(t), cassandra && (strings.HasPrefix(t, "Message type") ||
				strings.HasPrefix(t, "Latencies waiting in queue (micros)") ||
				dropped.MatchString(t) || strings.HasPrefix(t, "Meters")):
				rows++
				return true
			}
			return false
		})
		return attach.ClaimIf(rows > 0, n)
	},
	Read: readPools,
}

var (
	poolRow = pattern.New(`^\S+(?: +\S+)?(?: +\d+){3,8}$`)
	dropped = pattern.New(`^[A-Z_]+ +\d+(?: +(?:[\d.]+|N/A))*$`)
)

func readPools(p *attach.Part) attach.Reading {
	r := &result{}
	r.Glance = true
	waiting, most, who, lost := 0.0, 0.0, "", ""
	pools, blocked, listed := 0, 0.0, false
	cassandra := strings.HasPrefix(strings.TrimSpace(p.Lines[0].Text), "Pool Name") &&
		strings.HasSuffix(strings.TrimSpace(p.Lines[0].Text), "All time blocked")
	refused, at := map[string]float64{}, slices.Index(strings.Fields(p.Lines[0].Text), "rejected")
	for _, l := range p.Lines[1:] {
		t := strings.TrimSpace(l.Text)
		f := strings.Fields(t)
		if at > 0 && at < len(f) && len(refused) < mostOwners {
			if v, ok := number(f[at]); ok && v > 0 {
				refused[f[1]] += v
			}
		}
		switch {
		case strings.HasPrefix(t, "Message type"):
			listed = true
		case dropped.MatchString(t) && (listed || !poolRow.MatchString(t)):
			if v, _ := number(f[1]); v > 0 && lost == "" {
				lost = fmt.Sprintf("%s %s messages were dropped since the start", f[1], f[0])
			}
		case poolRow.MatchString(t):
			at := 1
			for at < len(f) && !allDigits(f[at]) {
				at++
			}
			if at+1 >= len(f) {
				continue
			}
			pools++
			if v, ok := number(f[len(f)-1]); ok && cassandra && len(f)-at == 5 {
				blocked = max(blocked, v)
			} else {
				cassandra = false // rows of another form, or one that was cut
			}
			queue, _ := number(f[at+1])
			waiting += queue
			if queue > most {
				most, who = queue, fmt.Sprintf("%s: %s at work, %s wait", strings.Join(f[:at], " "), f[at], f[at+1])
			}
		}
	}
	r.Title = "thread pools of a database"
	r.Means = "No request waits for a thread of a pool at this instant."
	if who != "" {
		r.figure(who)
		r.Means = "Requests wait for a thread of a pool at this instant: a burst does that as well as a slow disk."
	} else {
		r.figure("no queue in " + attach.Plural(pools, "pool") + " shown")
	}
	switch {
	case cassandra && blocked == 0:
		r.figure("no task of these pools was ever blocked since the start")
	case cassandra:
		r.figure(fmt.Sprintf("blocked since the start: at most %s tasks of one pool", count(blocked)))
	}
	if lost != "" {
		r.figure(lost)
	}
	if len(refused) > 0 {
		r.figure(fmt.Sprintf("%s tasks were refused since the nodes' start, %s", count(attach.Sum(slices.Collect(maps.Values(refused)))), chiefly(refused, "of the pool ")))
	}
	if most >= 10 && !strings.HasPrefix(who, "Compaction") {
		r.candidate("pool-exhaustion", who)
		r.candidate("disk-wait", "threads of the pool may wait for the disk")
	}
	r.Not = "A queue of compactions is work in the background, which no request waits for. What is completed is a count since the start."
	if strings.HasPrefix(strings.TrimSpace(p.Lines[0].Text), "Pool Name") && !listed {
		r.Not += " Which messages were dropped, these lines do not say."
	}
	r.next("the same twice, ten seconds apart", "whether the queue stays")
	if waiting == 0 && len(refused) == 0 {
		return r.done(attach.Healthy)
	}
	return r.done(attach.CannotTell)
}

func allDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
