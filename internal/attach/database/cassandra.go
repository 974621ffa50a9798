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
	Name: "nodetool compactionstats",
	Hints: []string{"pending tasks: ", "compaction type", "Active compaction remaining time",
		"pending compactions", "concurrent compactors"},
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
		r.next("nodetool tablehistograms KEYSPACE TABLE",
			"SSTables: how many files a read looks into, and how long it takes")
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
		line := fmt.Sprintf("collections stopped it %s of %s (%s), the longest %s", dur(total/1e3),
			dur(interval/1e3), percent(total, interval), dur(longest/1e3))
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

// histogram is a row of a table of percentiles: of reads and writes in s, of partitions in bytes.
type histogram struct {
	name                     string
	read, write, size, cells float64
}

// histograms are the rows of a table; a column that it has not is -1.
func histograms(lines []paste.Line) (rows []histogram) {
	reads, writes, sizes, cells := -1, -1, -1, -1
	for _, l := range lines {
		t := strings.TrimSpace(l.Text)
		if strings.HasPrefix(t, "Percentile") {
			for i, n := range gap.Split(t, -1) {
				switch {
				case strings.HasPrefix(n, "Read Latency"):
					reads = i
				case strings.HasPrefix(n, "Write Latency"):
					writes = i
				case strings.HasPrefix(n, "Partition Size"):
					sizes = i
				case strings.HasPrefix(n, "Cell Count"):
					cells = i
				}
			}
			continue
		}
		f := strings.Fields(t)
		at := func(i int, scale float64) float64 {
			if i < 1 || i >= len(f) {
				return -1
			}
			v, _ := number(f[i])
			return v * scale
		}
		if len(f) > 2 && reads > 0 && writes > 0 && max(reads, writes) < len(f) {
			rows = append(rows, histogram{f[0], at(reads, 1e-6), at(writes, 1e-6), at(sizes, 1), at(cells, 1)})
		}
	}
	return rows
}

// hugePartition is what Cassandra itself warns of, in bytes.
const hugePartition = 100 << 20

func readNodeHistograms(p *attach.Part) attach.Reading {
	r := &result{}
	r.Title = "nodetool histograms"
	rows := histograms(p.Lines)
	read, write, slow := 0.0, 0.0, 0.0
	for _, h := range rows {
		read, write = max(read, h.read), max(write, h.write)
	}
	var times []string
	for _, h := range rows {
		if h.name != "50%" && h.name != "99%" {
			continue
		}
		var said []string
		if read > 0 {
			said = append(said, "reads "+dur(h.read))
		}
		if write > 0 {
			said = append(said, "writes "+dur(h.write))
		}
		if len(said) > 0 {
			times = append(times, h.name+": "+strings.Join(said, ", "))
		}
		if h.name == "99%" {
			slow = h.read
		}
	}
	if len(times) > 0 {
		r.figure(strings.Join(times, "; "))
	}
	if len(rows) > 0 && read == 0 {
		r.figure("no read is recorded in these rows: each of them has 0")
	}
	if len(rows) > 0 && write == 0 {
		r.figure("no write is recorded in these rows: each of them has 0")
	}
	r.Not = "what clients wait for: the figures are of the server alone. Newer versions weigh the last minutes most, older ones count since the start."
	r.Means = "It says how long the node took for requests, and not what it waited for."
	if slow > 0 && slow < 0.02 {
		r.Means = "The node answered reads fast: what clients wait for beyond that is in front of it."
	}
	partitions(r, rows)
	r.next("nodetool tpstats; nodetool gcstats; nodetool compactionstats", "queues, collections, compactions")
	return r.done(attach.CannotTell)
}

// partitions says how large partitions are, where some are huge.
func partitions(r *result, rows []histogram) {
	var most, middle histogram
	for _, h := range rows {
		if h.size > most.size {
			most = h
		}
		if h.name == "50%" {
			middle = h
		}
	}
	if most.size < hugePartition {
		return
	}
	line := "partitions: "
	if middle.size > 0 {
		line += "median " + bytesText(middle.size) + ", "
	}
	line += "the largest in these rows " + bytesText(most.size)
	if most.cells > 0 {
		line += ", with cells up to " + count(most.cells)
	}
	r.figure(line)
	r.Means += " Partitions are huge: to read much of one, or to compact it, is long work for one thread."
}
