package database

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// houseLog reads ClickHouse's server log: how long statements took, inserts that were held back or
// refused since parts were not merged in time, and statements that ended at a limit of memory.
var houseLog = &attach.Kind{
	Name: "ClickHouse log",
	Hints: []string{"executeQuery: ", "DB::Exception: ", "Delaying inserting block by ",
		"> MemoryTracker: ", "TCPHandler: Processed in ", "ReadPool: "},
	Marks: []string{"executeQuery: Read ", "Code: 252. DB::Exception: ",
		"Code: 241. DB::Exception: ", "Delaying inserting block by "},
	Single:    true,
	Scattered: true,
	Claim:     func(lines []paste.Line) int { return run(lines, isHouseLog) },
	Read:      readHouseLog,
}

var (
	houseLevel  = pattern.New(`<(?:Fatal|Critical|Error|Warning|Notice|Information|Debug|Trace)> (?:executeQuery: |\w*ReadPool: |MemoryTracker: Peak memory usage|TCPHandler: Processed in )`)
	houseQuery  = pattern.New(`executeQuery: Read (\d+) rows, ([\d.]+ [KMGT]?i?B) in ([\d.e-]+) sec\., `)
	houseSlow   = pattern.New(`\bSlow read, event .{1,4}\d+: read (\d+) bytes in ([\d.]+) sec\.`)
	houseDelay  = pattern.New(`\bDelaying inserting block by ([\d.]+) ms\. because there are (\d+) parts`)
	houseParts  = pattern.New(`\bCode: 252\. DB::Exception: .*?Too many parts \((\d+)`)
	houseMemory = pattern.New(`\bCode: 241\. DB::Exception: .*?Memory limit \(([\w ]+)\) exceeded: would use ([\d.]+ [KMGT]iB).*?, maximum: ([\d.]+ [KMGT]iB)`)
)

func isHouseLog(text string) bool {
	return houseLevel.MatchString(text) || houseDelay.MatchString(text) ||
		houseParts.MatchString(text) || houseMemory.MatchString(text)
}

func readHouseLog(p *attach.Part) attach.Reading {
	r := &result{}
	var took, delays, slow []float64
	slowest := 0.0
	refused, ended, read, limit, most := 0, 0, "", "", 0.0
	for _, l := range p.Lines {
		if m := houseQuery.FindStringSubmatch(l.Text); m != nil {
			v, ok := number(m[3])
			if ok && (len(took) == 0 || v > slices.Max(took)) {
				rows, _ := number(m[1])
				read = fmt.Sprintf("%s rows and %s read", count(rows), m[2])
			}
			if ok {
				took = append(took, v)
			}
		}
		if m := houseDelay.FindStringSubmatch(l.Text); m != nil {
			ms, _ := number(m[1])
			parts, _ := number(m[2])
			delays, most = append(delays, ms/1e3), max(most, parts)
		}
		if m := houseParts.FindStringSubmatch(l.Text); m != nil {
			parts, _ := number(m[1])
			refused, most = refused+1, max(most, parts)
		}
		if m := houseSlow.FindStringSubmatch(l.Text); m != nil {
			v, _ := number(m[2])
			bytes, _ := number(m[1])
			if slow = append(slow, v); v >= slices.Max(slow) {
				slowest = bytes
			}
		}
		if m := houseMemory.FindStringSubmatch(l.Text); m != nil {
			ended++
			limit = fmt.Sprintf("would have used %s, and the limit (%s) is %s", m[2], m[1], m[3])
		}
	}
	r.Title = "ClickHouse log, " + attach.Plural(len(p.Lines), "line")
	if len(delays)+refused > 0 {
		line := fmt.Sprintf("up to %s parts of a table: %s refused", count(most), attach.Plural(refused, "insert"))
		if len(delays) > 0 {
			line += fmt.Sprintf(", %d held back by %s in the median and %s at most", len(delays),
				dur(attach.Median(delays)), dur(slices.Max(delays)))
		}
		r.figure(line)
		r.outside("ClickHouse's own brake on inserts: they make parts faster than it merges them", line, 0)
		r.next("SELECT table, count(), sum(rows) FROM system.parts WHERE active GROUP BY table ORDER BY 2 DESC LIMIT 5", "few rows in a part: the inserts are too small")
		r.next("iostat -x 1 10", "says whether the disk keeps the merges from going on")
	}
	if len(slow) > 0 {
		line := fmt.Sprintf("single reads that were slow: %s, at most %s for %s", times(len(slow)),
			dur(slices.Max(slow)), bytesText(slowest))
		r.figure(line)
		r.candidate("disk-wait", line)
		r.candidate("cpu-contention", line)
		r.Means = cmp.Or(r.Means,
			"ClickHouse measured reads that took long for their size: the disk, or the thread had no CPU. It is no rate of the whole statement.")
		r.next("iostat -x 1 10", "says whether the disk is slow")
	}
	if ended > 0 {
		r.figure(fmt.Sprintf("%s ended for want of memory: one %s", attach.Plural(ended, "statement"), limit))
		r.Not = "A statement that ends at a limit of memory is not slow: it fails."
	}
	if len(took) == 0 {
		if r.Means == "" {
			r.Means = "How long a statement took is not in these lines."
		}
		return r.done(attach.CannotTell)
	}
	r.figure(fmt.Sprintf("%s: median %s, at most %s: %s", attach.Plural(len(took), "statement"),
		dur(attach.Median(took)), dur(slices.Max(took)), read))
	r.fact(FactStatement, attach.Median(took)*1e3, "")
	switch {
	case r.Means != "":
	case slices.Max(took) < quick && ended == 0:
		r.Means = fmt.Sprintf("Each of these statements took less than %s.", dur(quick))
		return r.done(attach.Healthy)
	default:
		r.Means = "It says how long statements took and what they read, and not why."
		r.next("SELECT ProfileEvents FROM system.query_log WHERE type = 'QueryFinish' ORDER BY query_duration_ms DESC LIMIT 1", "time of the threads on the CPU, in reads and in waits")
	}
	return r.done(attach.CannotTell)
}
