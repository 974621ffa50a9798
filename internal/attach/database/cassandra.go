package database

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// Reports of Cassandra's nodetool. Those of its pools are in summaries.go.

// report is a kind of which each line has one of some forms, and one form is sure.
type report struct {
	sure  *pattern.Regexp
	lines *pattern.Regexp // others of its lines
	least int             // sure ones
}

func (f report) claim(lines []paste.Line) int {
	own := 0
	n := attach.ClaimWhile(lines, func(i int, text string) bool {
		t := strings.TrimSpace(text)
		if len(t) > 400 {
			return false
		}
		if f.sure.MatchString(t) {
			own++
			return true
		}
		return f.lines.MatchString(t)
	})
	if own < max(1, f.least) {
		return 0
	}
	return n
}

var nodeStatus = &attach.Kind{
	Name:  "nodetool status",
	Hints: []string{"Datacenter: ", "Status=Up/Down", "UN  ", "DN  ", "--  Address", "Note: "},
	Claim: report{
		sure:  pattern.New(`^([UD][NLJM]) +(\S+) +(?:[\d.,]+ [KMGT]?i?B|\?) +\d+ .*\b[0-9a-f]{8}-[0-9a-f]{4}-`),
		lines: pattern.New(`^(Datacenter: \S+|=+|Status=Up/Down|\|/ State=Normal/Leaving/Joining/Moving|-- +Address .*|Note: .*)$`),
	}.claim,
	Read: readNodeStatus,
}

var nodeRow = pattern.New(`^([UD])([NLJM]) +(\S+) `)

func readNodeStatus(p *attach.Part) attach.Reading {
	r := &result{}
	nodes, down, moving := 0, []string{}, 0
	for _, l := range p.Lines {
		m := nodeRow.FindStringSubmatch(strings.TrimSpace(l.Text))
		if m == nil {
			continue
		}
		nodes++
		if m[1] == "D" {
			down = append(down, m[3])
		}
		if m[2] != "N" {
			moving++
		}
	}
	r.Title = "nodetool status, " + attach.Plural(nodes, "node")
	r.figure(fmt.Sprintf("%d of %d down, %d joining, leaving or moving", len(down), nodes, moving))
	r.Not = "how fast the nodes answer"
	r.next("nodetool tpstats; nodetool proxyhistograms", "whether requests queue, and how long they take")
	if len(down) == 0 && moving == 0 {
		r.Means = "All nodes are up."
		return r.done(attach.Context)
	}
	if len(down) > 0 {
		r.figure("down: " + strings.Join(down[:min(3, len(down))], ", "))
	}
	r.Means = "Nodes are down or move data: requests that need them wait for others or for a timeout, and moving data loads the disks."
	return r.done(attach.CannotTell)
}

var compactions = &attach.Kind{
	Name:  "nodetool compactionstats",
	Hints: []string{"pending tasks: ", "compaction type", "Active compaction remaining time", "pending compactions", "concurrent compactors"},
	Claim: report{
		sure:  pattern.New(`^(pending tasks: \d+|id +compaction type +keyspace|compaction type +keyspace|Active compaction remaining time : +.*|pending compactions +\d+)$|^id +compaction type +keyspace`),
		lines: pattern.New(`^(- \S+: \d+|[0-9a-f-]{36} +\S.*%|\S+ +\S+ +\S+ +\d+ +\d+ +bytes +[\d.]+%|concurrent compactors .*|compactions (completed|aborted).*|(minute|5 minute|15 minute|mean) rate .*|compaction throughput.*|data compacted.*)$`),
	}.claim,
	Read: readCompactions,
}

var (
	pendingTasks = pattern.New(`^pending (?:tasks:|compactions) +(\d+)$`)
	remaining    = pattern.New(`^Active compaction remaining time : +(\S+)`)
	running      = pattern.New(`^[0-9a-f]{8}-[0-9a-f]{4}-\S+ +(\S+) +(\S+) +(\S+) `)
)

func readCompactions(p *attach.Part) attach.Reading {
	r := &result{}
	r.Glance = true
	pending, busy := 0.0, 0
	for _, l := range p.Lines {
		t := strings.TrimSpace(l.Text)
		if m := pendingTasks.FindStringSubmatch(t); m != nil {
			pending, _ = number(m[1])
		}
		if m := remaining.FindStringSubmatch(t); m != nil && m[1] != "n/a" {
			r.figure("remaining: " + m[1])
		}
		if running.MatchString(t) {
			busy++
		}
	}
	r.Figures = append([]string{fmt.Sprintf("%s pending, %d at work", count(pending), busy)}, r.Figures...)
	r.Title = "nodetool compactionstats"
	r.Not = "that requests wait: compactions are work in the background"
	r.Means = "Hardly any compaction waits."
	if pending >= 20 {
		r.Means = "Compactions have piled up: reads have more files to look into, and the compactions load the disks meanwhile."
		r.next("nodetool tablehistograms KEYSPACE TABLE", "SSTables: how many files a read looks into, and how long it takes")
		return r.done(attach.CannotTell)
	}
	return r.done(attach.Context)
}

var nodeGC = &attach.Kind{
	Name:  "nodetool gcstats",
	Hints: []string{"Interval (ms) Max GC Elapsed (ms)"},
	Claim: report{
		sure:  pattern.New(`^Interval \(ms\) Max GC Elapsed \(ms\) ?Total GC Elapsed \(ms\)`),
		lines: pattern.New(`^\d+(?: +(?:[\d.]+|NaN|-1)){5,8}$`),
	}.claim,
	Read: readNodeGC,
}

func readNodeGC(p *attach.Part) attach.Reading {
	r := &result{}
	r.Title = "nodetool gcstats"
	r.Means = "It has no row."
	for _, l := range p.Lines {
		f := strings.Fields(l.Text)
		if len(f) < 6 || !allDigits(f[0]) {
			continue
		}
		interval, _ := number(f[0])
		longest, _ := number(f[1])
		total, _ := number(f[2])
		times, _ := number(f[5])
		if interval <= 0 {
			continue
		}
		line := fmt.Sprintf("collections stopped it %s of %s (%s), the longest %s", dur(total/1e3), dur(interval/1e3), percent(total, interval), dur(longest/1e3))
		r.figure(line)
		r.figure(count(times) + " collections")
		r.Not = "how many requests met such a stop"
		r.Means = "Collections stop the node little."
		switch {
		case total >= 0.05*interval || longest >= 500:
			r.Means = "The node stands still for collections, long enough for requests to feel it."
			r.candidate("jvm-safepoint", line)
			r.next("the GC log (-Xlog:gc*,safepoint)", "which collections, and how long each")
		case longest < 200:
			return r.done(attach.Healthy)
		}
		break
	}
	return r.done(attach.CannotTell)
}

var nodeHistograms = &attach.Kind{
	Name:  "nodetool histograms",
	Hints: []string{"proxy histograms", " histograms", "Percentile "},
	Claim: report{
		sure:  pattern.New(`^(proxy histograms|Percentile +.*\b(Read Latency|Write Latency)\b.*)$`),
		lines: pattern.New(`^(\S+/\S+ histograms|\(micros\).*|(?:\d+%|Min|Max)(?: +(?:[\d.]+|NaN)){2,8})$`),
	}.claim,
	Read: readNodeHistograms,
}

// gap is between two columns whose names have blanks.
var gap = pattern.New(`  +`)

func readNodeHistograms(p *attach.Part) attach.Reading {
	r := &result{}
	r.Title = "nodetool histograms"
	reads, writes, scale := -1, -1, 1e-6
	slow := 0.0
	for _, l := range p.Lines {
		t := strings.TrimSpace(l.Text)
		if strings.HasPrefix(t, "Percentile") {
			names := gap.Split(t, -1)
			for i, n := range names {
				switch {
				case strings.HasPrefix(n, "Read Latency"):
					reads = i
				case strings.HasPrefix(n, "Write Latency"):
					writes = i
				}
			}
			continue
		}
		f := strings.Fields(t)
		if len(f) == 0 || f[0] != "50%" && f[0] != "99%" || reads < 0 || writes < 0 || max(reads, writes) >= len(f) {
			continue
		}
		read, _ := number(f[reads])
		write, _ := number(f[writes])
		r.figure(fmt.Sprintf("%s: reads %s, writes %s", f[0], dur(read*scale), dur(write*scale)))
		if f[0] == "99%" {
			slow = read * scale
		}
	}
	r.Boot = true
	r.Not = "how it is now, or what clients wait for: the figures are since the start, and of the server alone"
	r.Means = "It says how long the node took for requests, and not what it waited for."
	if slow > 0 && slow < 0.02 {
		r.Means = "The node answered reads fast: what clients wait for beyond that is in front of it."
	}
	r.next("nodetool tpstats; nodetool gcstats; nodetool compactionstats", "queues, collections, compactions")
	return r.done(attach.CannotTell)
}
