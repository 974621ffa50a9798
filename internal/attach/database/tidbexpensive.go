package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// tidbExpensive is TiDB's log of statements that run for long or take much memory, written while
// they run.
var tidbExpensive = &attach.Kind{
	Name:      "TiDB expensive queries",
	Hints:     []string{"[expensive_query]", "expensivequery.go"},
	Marks:     []string{"[expensive_query]", "expensivequery.go"},
	Single:    true,
	Scattered: true,
	Claim:     func(lines []paste.Line) int { return run(lines, isExpensive) },
	Read:      readExpensive,
}

var (
	expensiveField = pattern.New(`\[(\w+)=("(?:[^"\\]|\\.)*"|[^\]]*)\]`)
	expensiveCost  = pattern.New(`\[cost_time=[\d.]+\w+\]`)
)

func isExpensive(text string) bool {
	return strings.Contains(text, "expensive") && expensiveCost.MatchString(text)
}

func readExpensive(p *attach.Part) attach.Reading {
	r := &result{}
	var worst map[string]string
	most, asleep := 0.0, 0
	for _, l := range p.Lines {
		f := map[string]string{}
		for _, m := range expensiveField.FindAllStringSubmatch(l.Text, 60) {
			f[m[1]] = strings.Trim(m[2], `"`)
		}
		s, _ := seconds(f["cost_time"])
		if strings.Contains(strings.ToLower(f["sql"]), "sleep(") {
			asleep++
		}
		if s >= most {
			most, worst = s, f
		}
	}
	r.Title = "TiDB's log of expensive statements, " + attach.Plural(len(p.Lines), "line")
	r.figure(fmt.Sprintf("it had run for %s when it was logged: %s", dur(most), short(worst["sql"])))
	cop, store := expensiveTasks(r, worst)
	if mem := worst["mem_max"]; mem != "" && len(mem) < 60 {
		r.figure("memory: " + mem)
	}
	r.Not = "How long it took in the end: TiDB writes this while the statement runs, by default after 60 s. Tasks that had not ended by then are not in its sums."
	switch {
	case asleep == len(p.Lines):
		r.Means = "The statement calls SLEEP: it takes the time on purpose."
		return r.done(attach.Healthy)
	case store >= most/2:
		r.Means = "The times of its tasks in the store add up to more than half of that; how many ran at once is not in it."
	case cop >= most/2:
		r.Means = "Most of the time TiDB waited for its tasks in the store."
	default:
		r.Means = "The tasks that had ended account for less than half of it. Where the rest was, in TiDB, a lock, the client or tasks under way, the line does not say."
	}
	r.next("EXPLAIN ANALYZE the statement", "has client's and server's times of each task")
	return r.done(attach.CannotTell)
}

// expensiveTasks says what the line has of the statement's tasks in TiKV or TiFlash: how long TiDB
// waited for them, and what they say of themselves, in seconds. TiDB leaves out what is 0.
func expensiveTasks(r *result, f map[string]string) (cop, store float64) {
	var list []string
	if v, ok := seconds(f["cop_time"]); ok && f["cop_time"] != "" {
		cop = v
		list = append(list, "TiDB waited "+dur(v)+" for them")
	}
	process, _ := seconds(f["process_time"])
	wait, _ := seconds(f["wait_time"])
	store = process + wait
	tasks, ok := number(f["num_cop_tasks"])
	if !ok || tasks < 1 {
		return cop, store
	}
	line := attach.Plural(int(min(tasks, 1e9)), "task") + " in the store"
	if keys, ok := number(f["total_keys"]); ok && keys > 0 {
		line += " scanned " + count(keys) + " keys"
	}
	switch {
	case store > 0:
		list = append(list, fmt.Sprintf("%s of processing and %s of waiting, added up", dur(process), dur(wait)))
	default:
		list = append(list, "they report no time of their own")
	}
	r.figure(line + ": " + strings.Join(list, "; "))
	return cop, store
}

// tikvResolved is TiKV's complaint that the timestamp up to which stale reads may go lags behind.
var tikvResolved = &attach.Kind{
	Name:      "TiKV resolved-ts",
	Hints:     []string{"the max gap of "},
	Marks:     []string{"the max gap of "},
	Single:    true,
	Scattered: true,
	Claim:     func(lines []paste.Line) int { return run(lines, resolvedLine.MatchString) },
	Read: func(p *attach.Part) attach.Reading {
		r := &result{}
		var gaps []float64
		locked := 0
		for _, l := range p.Lines {
			if m := resolvedGap.FindStringSubmatch(l.Text); m != nil {
				ms, _ := number(m[1])
				gaps = append(gaps, ms/1e3)
			}
			if resolvedLock.MatchString(l.Text) {
				locked++
			}
		}
		r.Title = "TiKV's log of timestamps that lag, " + attach.Plural(len(p.Lines), "line")
		r.Means = "A timestamp of a region lags: stale reads of it wait, or are done by the leader."
		r.Not = "That a disk or the network is slow: a transaction that stays open holds the timestamp back as well."
		line := "safe-ts or resolved-ts lags"
		if len(gaps) > 0 {
			line = fmt.Sprintf("it lags by up to %s", dur(slices.Max(gaps)))
			r.figure(line)
		}
		if locked > 0 {
			r.Means = ""
			r.figure("reason that TiKV names: a lock, " + times(locked))
			r.outside("a lock that a large or long transaction holds in the database's own tables", line, 0)
		}
		r.next("SELECT * FROM information_schema.cluster_tidb_trx ORDER BY start_time LIMIT 5",
			"the transaction that holds it")
		return r.done(attach.CannotTell)
	},
}

var (
	resolvedLine = pattern.New(`the max gap of (?:leader|follower) (?:resolved|safe)-ts is large`)
	resolvedGap  = pattern.New(`\[gap=(\d+)ms\]`)
	resolvedLock = pattern.New(`reason: \\?"lock\\?"`)
)
