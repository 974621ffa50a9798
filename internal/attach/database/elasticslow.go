package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// elasticSlow reads the slow logs of Elasticsearch and OpenSearch, as text. A line is the work of
// one shard on one phase of a request.
var elasticSlow = &attach.Kind{
	Name:      "Elasticsearch slow log",
	Marks:     []string{"], took_millis[", "took_millis\""},
	Hints:     []string{"], took_millis[", "took_millis\""},
	Scattered: true,
	Claim: func(lines []paste.Line) int {
		n := 0
		for n < len(lines) && lines[n].Command == "" && elasticLine(lines[n]) != nil {
			n += 1 + elasticRest(lines[n:])
		}
		return n
	},
	Read: readElasticSlow,
}

var (
	elasticTook = pattern.New(`\[(?:index\.|i\.)?(?:search|indexing|s|i)\.(?:slowlog|s)\.(query|fetch|index)\w* *\] (?:\[([^\]]*)\] ?)?\[([^\]]+)\](?:\[(\d+)\])? took\[([^\]]*)\], took_millis\[(\d+)\]`)
	elasticHits = pattern.New(`total_hits(?:\[|": ?"?)(\d+)`)
	elasticOf   = pattern.New(`total_shards(?:\[|": ?"?)(\d+)`)
)

// Since 7.0 a line is a record of JSON as well: which log, and behind it the node, the shard and
// the time, in any order.
var (
	elasticLog   = pattern.New(`"(?:type|event\.dataset)": ?"(?:\w+\.)?index_(search|indexing)_slowlog"`)
	elasticNode  = pattern.New(`"(?:node\.name|elasticsearch\.node\.name)": ?"([^"]*)"`)
	elasticShard = pattern.New(`"(?:message|elasticsearch\.slowlog\.message)": ?"\[([^\]"]+)\](?:\[(\d+)\])?`)
	elasticMS    = pattern.New(`"(?:elasticsearch\.slowlog\.)?took_millis": ?"?(\d+)`)
	elasticFetch = pattern.New(`"(?:component|log\.logger)": ?"[\w.]*\.fetch\b`)
)

// elasticJSON is what such a record says, as the groups of elasticTook; nil: it is none.
func elasticJSON(text string) []string {
	log, ms := elasticLog.FindStringSubmatch(text), elasticMS.FindStringSubmatch(text)
	if log == nil || ms == nil {
		return nil
	}
	out := []string{"", "query", "", "an index", "", "", ms[1]}
	switch {
	case log[1] == "indexing":
		out[1] = "index"
	case elasticFetch.MatchString(text):
		out[1] = "fetch"
	}
	if m := elasticNode.FindStringSubmatch(text); m != nil {
		out[2] = m[1]
	}
	if m := elasticShard.FindStringSubmatch(text); m != nil {
		out[3], out[4] = m[1], m[2]
	}
	return out
}

func elasticLine(l paste.Line) []string {
	for _, text := range []string{l.Text, l.Raw} {
		if strings.HasPrefix(text, "{") && strings.Contains(text, "took_millis") {
			return elasticJSON(text)
		}
	}
	if m := elasticTook.FindStringSubmatch(l.Text); m != nil || l.Raw == "" {
		return m
	}
	return elasticTook.FindStringSubmatch(l.Raw)
}

// mostOfSource bounds the lines of a request's text that a page's width has broken.
const mostOfSource = 20

// elasticRest is how many lines go on with the request's text, which ends in a bracket.
func elasticRest(lines []paste.Line) int {
	if !strings.Contains(lines[0].Text, "source[") || strings.HasSuffix(strings.TrimRight(lines[0].Text, ", "), "]") {
		return 0
	}
	n := 0
	for _, l := range lines[1:min(len(lines), mostOfSource)] {
		t := strings.TrimSpace(l.Text)
		if l.Command != "" || t == "" || l.Block != lines[0].Block || strings.HasPrefix(t, "[") &&
			elasticLine(l) != nil || !strings.ContainsAny(t, `{}":`) {
			break
		}
		if n++; strings.HasSuffix(t, "],") || strings.HasSuffix(t, "]") {
			break
		}
	}
	return n
}

// elasticPhase is what the lines say of one phase.
type elasticPhase struct {
	took   []float64
	worst  string
	shards map[string]bool
}

// elasticSeconds is what a line took. Its milliseconds are cut to whole ones, and are 0 below one.
func elasticSeconds(m []string) float64 {
	ms, _ := number(m[6])
	if us, is := strings.CutSuffix(m[5], "micros"); is && ms < 1 {
		if v, ok := number(us); ok && sane(v) {
			return v / 1e6
		}
	}
	return ms / 1e3
}

func readElasticSlow(p *attach.Part) attach.Reading {
	r := &result{}
	phases := map[string]*elasticPhase{}
	n, longest, of, hits := 0, 0.0, "", -1.0
	for _, l := range p.Lines {
		m := elasticLine(l)
		if m == nil {
			continue
		}
		n++
		took := elasticSeconds(m)
		ph := phases[m[1]]
		if ph == nil {
			ph = &elasticPhase{shards: map[string]bool{}}
			phases[m[1]] = ph
		}
		where := m[3]
		if m[4] != "" {
			where = fmt.Sprintf("shard %s of %s", m[4], m[3])
		}
		if m[2] != "" {
			where += " at node " + m[2]
		}
		if len(ph.took) == 0 || took > slices.Max(ph.took) {
			ph.worst = where
		}
		ph.took = append(ph.took, took)
		ph.shards[where] = true
		if took >= longest {
			longest, of, hits = took, "", -1
			if s := elasticOf.FindStringSubmatch(l.Text); s != nil {
				of = s[1]
			}
			if h := elasticHits.FindStringSubmatch(l.Text); h != nil {
				hits, _ = number(h[1])
			}
		}
	}
	r.Title = "Elasticsearch slow log, " + attach.Plural(n, "line")
	words := map[string]string{"query": "search, its query phase",
		"fetch": "search, its fetch phase", "index": "indexing of a document"}
	for _, name := range []string{"query", "fetch", "index"} {
		ph := phases[name]
		if ph == nil {
			continue
		}
		if slices.Max(ph.took) == 0 {
			r.figure(fmt.Sprintf("%s: %s, less than 1 ms each", words[name], times(len(ph.took))))
			continue
		}
		line := fmt.Sprintf("%s: %s on %s", words[name], dur(ph.took[0]), ph.worst)
		if len(ph.took) > 1 {
			line = fmt.Sprintf("%s: %s on %s; %s in all", words[name], often(ph.took), ph.worst,
				attach.Plural(len(ph.shards), "shard"))
		}
		r.figure(line)
	}
	if of != "" {
		r.figure("the slowest is one shard's part of a request to " + of + " shards")
	}
	if hits >= 0 {
		r.figure(fmt.Sprintf("it has %s hits", count(hits)))
	}
	r.Not = "That a whole request took so long, which has other shards and phases as well. Only what is above the log's threshold is in it."
	if longest < quick {
		r.Means = fmt.Sprintf("Each of these took less than %s: they are in the log, and not slow.", dur(quick))
		return r.done(attach.Healthy)
	}
	r.Means = "A shard took that long by itself: the network between nodes and the queue before it are not in it. Whether it computed, read from the disk or stood still, the line does not say."
	r.next("the same search with \"profile\": true", "shows which part of the query takes the time")
	r.next("curl -s localhost:9200/_nodes/hot_threads", "while it is slow: what the node's threads do")
	return r.done(attach.CannotTell)
}
