package database

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// Reports that sum up slow logs, and pools of servers in Java.

var queryDigest = &attach.Kind{
	Name:  "pt-query-digest",
	Hints: []string{"# Overall: ", "# Profile", "# Rank Query ID", "user time, ", "# Query "},
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
			return own > 0 && (strings.HasSuffix(t, `\G`) || i > 0 && strings.HasPrefix(strings.TrimSpace(lines[i-1].Text), "#") || statementLine(lines, i))
		})
		return infoDone(n, own)
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
	digestSure    = regexp.MustCompile(`^# (Overall: [\d.]+[kM]? total, |Rank +Query ID +Response time|Query \d+: [\d.]+[kM]? QPS, |[\d.]+m?s user time, )`)
	digestOverall = regexp.MustCompile(`^# Overall: ([\d.]+[kM]?) total, ([\d.]+[kM]?) unique(?:, ([\d.]+[kM]?) QPS, ([\d.]+[kM]?)x concurrency)?`)
	digestRow     = regexp.MustCompile(`^# +(\d+) 0x[0-9A-F.]+ +([\d.]+) +([\d.]+)% +(\d+) +([\d.]+)(?: +[\d.]+)?(?: +[\d.]+)? +(.*)$`)
	digestAttr    = regexp.MustCompile(`^# (Exec|Lock) time +(?:(\d+) +)?([\d.]+)(us|ms|s|m|h)? `)
)

func readDigest(p *attach.Part) attach.Reading {
	r := &result{}
	r.Title = "pt-query-digest, a summary of a slow log"
	exec, lock := 0.0, 0.0
	for _, l := range p.Lines {
		t := strings.TrimSpace(l.Text)
		if m := digestOverall.FindStringSubmatch(t); m != nil {
			r.Title = fmt.Sprintf("pt-query-digest, %s statements of %s kinds", m[1], m[2])
		}
		if m := digestRow.FindStringSubmatch(t); m != nil && len(r.Figures) < 2 {
			r.figure(fmt.Sprintf("%s %% of the time (%s s): %s calls of %s s each: %s", m[3], m[2], m[4], m[5], short(m[6])))
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
	if exec > 0 && lock >= exec/2 {
		line := fmt.Sprintf("waits for locks: %s of %s", dur(lock), dur(exec))
		r.figure(line)
		r.Means = ""
		r.outside("a lock in the database's own tables", line, ratio(lock, exec))
	}
	r.next("EXPLAIN ANALYZE of the first statement", "where its time goes")
	return r.done(attach.CannotTell)
}

var dumpSlow = &attach.Kind{
	Name:  "mysqldumpslow",
	Hints: []string{"Count: ", "Reading mysql slow query log"},
	Claim: func(lines []paste.Line) int {
		own := 0
		n := attach.ClaimWhile(lines, func(i int, text string) bool {
			t := strings.TrimSpace(text)
			if dumpRow.MatchString(t) {
				own++
				return true
			}
			return i == 0 && strings.HasPrefix(t, "Reading mysql slow query log from ") || own > 0 && strings.HasPrefix(text, "  ")
		})
		return infoDone(n, own)
	},
	Read: func(p *attach.Part) attach.Reading {
		r := &result{}
		by, says := map[string]float64{}, map[string]string{}
		total, locked := 0.0, 0.0
		for i, l := range p.Lines {
			m := dumpRow.FindStringSubmatch(strings.TrimSpace(l.Text))
			if m == nil || i+1 >= len(p.Lines) {
				continue
			}
			n, _ := number(m[1])
			s, _ := number(m[2])
			k, _ := number(m[3])
			text := short(p.Lines[i+1].Text)
			by[text] += n * s
			total += n * s
			locked += n * k
			says[text] = fmt.Sprintf("%s calls of %s in the mean (locks %s): %s", count(n), dur(s), dur(k), text)
		}
		r.Title = fmt.Sprintf("mysqldumpslow, %d kinds of statements, %s in all", len(by), dur(total))
		for _, n := range attach.Largest(by)[:min(2, len(by))] {
			r.figure(says[n])
		}
		r.Not = "A slow log holds slow statements only."
		r.Means = "It names the statements that took most of the logged time; what they waited for is not in it."
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

var dumpRow = regexp.MustCompile(`^Count: (\d+) +Time=([\d.]+)s \([\d.]+s\) +Lock=([\d.]+)s \([\d.]+s\)`)

// threadPools is nodetool tpstats, and Elasticsearch's _cat/thread_pool.
var threadPools = &attach.Kind{
	Name:  "thread pools of a database",
	Hints: []string{"Pool Name", "node_name"},
	Claim: func(lines []paste.Line) int {
		head := strings.Fields(lines[0].Text)
		cassandra := len(head) >= 5 && head[0] == "Pool" && head[1] == "Name" && head[2] == "Active" && head[3] == "Pending"
		elastic := len(head) >= 4 && head[0] == "node_name" && head[1] == "name" && head[2] == "active" && head[3] == "queue"
		if !cassandra && !elastic {
			return 0
		}
		rows := 0
		n := attach.ClaimWhile(lines, func(i int, text string) bool {
			t := strings.TrimSpace(text)
			switch {
			case i == 0:
				return true
			case poolRow.MatchString(t), cassandra && (strings.HasPrefix(t, "Message type") || dropped.MatchString(t) || strings.HasPrefix(t, "Meters")):
				rows++
				return true
			}
			return false
		})
		return infoDone(n, rows)
	},
	Read: readPools,
}

var (
	poolRow = regexp.MustCompile(`^\S+(?: +\S+)?(?: +\d+){3,8}$`)
	dropped = regexp.MustCompile(`^[A-Z_]+ +\d+(?: +[\d.]+|N/A)*$`)
)

func readPools(p *attach.Part) attach.Reading {
	r := &result{}
	r.Glance = true
	waiting, most, who, lost := 0.0, 0.0, "", ""
	for _, l := range p.Lines[1:] {
		t := strings.TrimSpace(l.Text)
		f := strings.Fields(t)
		switch {
		case dropped.MatchString(t) && !poolRow.MatchString(t):
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
		r.figure("no queue")
	}
	if lost != "" {
		r.figure(lost)
	}
	if most >= 10 && !strings.HasPrefix(who, "Compaction") {
		r.candidate("pool-exhaustion", who)
		r.candidate("disk-wait", "threads of the pool may wait for the disk")
	}
	r.Not = "A queue of compactions is work in the background, which no request waits for."
	r.next("the same twice, ten seconds apart", "whether the queue stays")
	if waiting == 0 {
		return r.done(attach.Healthy)
	}
	return r.done(attach.CannotTell)
}

func allDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
