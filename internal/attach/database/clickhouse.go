package database

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// clickhouse reads what ClickHouse's client prints below a result: how long the statement took,
// and how much it read.
var clickhouse = &attach.Kind{
	Name:      "ClickHouse client",
	Hints:     []string{" in set. Elapsed: "},
	Marks:     []string{" in set. Elapsed: "},
	Single:    true,
	Scattered: true,
	Claim:     func(lines []paste.Line) int { return run(lines, houseLine) },
	Read:      readClickHouse,
}

var (
	houseTook = pattern.New(`^\s*[\d.]+ rows? in set\. Elapsed: ([\d.]+) sec\.(?: Processed ([\d.]+(?: (?:thousand|million|billion|trillion))?) rows?, ([\d.]+ [KMGT]?i?B))?`)
	housePeak = pattern.New(`^(?:MemoryTracker: )?Peak memory usage(?: \(for query\))?: [\d.]+ [KMGT]?i?B\.$`)
)

func houseLine(text string) bool {
	return houseTook.MatchString(text) || housePeak.MatchString(strings.TrimSpace(text))
}

func readClickHouse(p *attach.Part) attach.Reading {
	r := &result{}
	n, longest, read := 0, -1.0, ""
	for _, l := range p.Lines {
		m := houseTook.FindStringSubmatch(l.Text)
		if m == nil {
			if t := strings.TrimSpace(l.Text); housePeak.MatchString(t) {
				r.figure(strings.TrimSuffix(t, "."))
			}
			continue
		}
		v, ok := number(m[1])
		if !ok {
			continue
		}
		n++
		if v > longest {
			longest, read = v, ""
			if m[2] != "" {
				read = fmt.Sprintf(", %s rows and %s read", m[2], m[3])
			}
		}
	}
	r.Title = "ClickHouse's client, " + attach.Plural(n, "statement")
	if n == 0 {
		r.Means = "How long the statement took is not in these lines."
		return r.done(attach.CannotTell)
	}
	r.figure("the longest took " + dur(longest) + read)
	r.fact(FactStatement, longest*1e3, "")
	r.Not = "What the statement waited for: the disk, the CPU and the network to the client are all in it."
	if longest < quick {
		r.Means = fmt.Sprintf("Each of these statements took less than %s.", dur(quick))
		return r.done(attach.Healthy)
	}
	r.Means = "It says how long a statement took and what it read, and not why."
	r.next("SELECT ProfileEvents FROM system.query_log WHERE type = 'QueryFinish' ORDER BY event_time DESC LIMIT 1", "time of the threads on the CPU, in reads and in waits")
	return r.done(attach.CannotTell)
}
