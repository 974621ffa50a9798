package database

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// digestJSON reads one class of pt-query-digest --output json, whole or cut off.
var digestJSON = &attach.Kind{
	Name:    "pt-query-digest as JSON",
	Reports: true, // each is of one class of statements
	Hints:   []string{"{", `"attribute"`, `"checksum"`, `"distillate"`, `"metrics"`},
	Claim: func(lines []paste.Line) int {
		return attach.ClaimJSON(lines, func(keys map[string]bool) bool {
			return keys["Query_time"] && (keys["distillate"] || keys["fingerprint"]) &&
				(keys["checksum"] || keys["metrics"])
		})
	},
	Read: readDigestJSON,
}

var (
	digestGroup = pattern.New(`^"([A-Z]\w+)": ?\{$`)
	digestValue = pattern.New(`^"(\w+)": ?"?([^",]+)"?,?$`)
)

// digestMetrics are the figures of each metric, by its name: those below "metrics".
func digestMetrics(lines []paste.Line) (m map[string]map[string]float64, verb string) {
	m = map[string]map[string]float64{}
	group, inside := "", false
	for _, l := range lines {
		t := strings.TrimSpace(l.Text)
		switch {
		case strings.HasPrefix(t, `"metrics"`):
			inside = true
		case digestGroup.MatchString(t):
			group = digestGroup.FindStringSubmatch(t)[1]
		case strings.HasPrefix(t, "}"):
			group = ""
		}
		v := digestValue.FindStringSubmatch(t)
		if v == nil {
			continue
		}
		if v[1] == "distillate" {
			verb = v[2]
		}
		if n, ok := number(v[2]); ok && (inside && group != "" || v[1] == "query_count") {
			if m[group] == nil {
				m[group] = map[string]float64{}
			}
			m[group][v[1]] = n
		}
	}
	return m, verb
}

func readDigestJSON(p *attach.Part) attach.Reading {
	m, verb := digestMetrics(p.Lines)
	r := &result{}
	r.Title = "pt-query-digest as JSON, one kind of statements"
	if verb != "" {
		r.Title += ": " + short(verb)
	}
	took, lock, rows := m["Query_time"], m["Lock_time"], m["Rows_examined"]
	calls := m[""]["query_count"]
	if calls == 0 && took["avg"] > 0 {
		calls = float64(int(took["sum"]/took["avg"] + 0.5))
	}
	if took["max"] == 0 && took["sum"] == 0 {
		r.Means = "Its times are cut off: nothing follows."
		return r.done(attach.CannotTell)
	}
	line := fmt.Sprintf("%s in all", dur(took["sum"]))
	if calls > 0 {
		line = fmt.Sprintf("%s calls, %s", count(calls), line)
	}
	line = fmt.Sprintf("%s; a call takes %s in the median, %s in the mean, %s at most", line,
		dur(took["median"]), dur(took["avg"]), dur(took["max"]))
	r.figure(line)
	if rows["max"] > 0 {
		r.figure(fmt.Sprintf("a call reads %s rows in the mean, %s at most", count(rows["avg"]), count(rows["max"])))
	}
	if len(lock) > 0 {
		r.figure(fmt.Sprintf("waits for locks: %s of %s", dur(lock["sum"]), dur(took["sum"])))
	}
	r.Not = "A slow log holds slow statements only; a longest call may have read more rows than the others."
	sent := m["Rows_sent"]
	switch {
	case lock["sum"] >= took["sum"]/2 && lock["sum"] > 0:
		r.outside("a lock in the database's own tables", r.Figures[len(r.Figures)-1], ratio(lock["sum"], took["sum"]))
	case rows["max"] >= manyRows && (len(sent) == 0 || rows["avg"] >= manyForOne*max(1, sent["avg"])):
		r.outside("the plan: it reads many rows", r.Figures[1], 0)
	default:
		r.Means = "It says how long the statement takes; what it waits for is not in it."
	}
	r.next("EXPLAIN ANALYZE of the statement", "where its time goes")
	return r.done(attach.CannotTell)
}
