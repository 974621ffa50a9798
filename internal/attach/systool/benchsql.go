package systool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// benchSQL knows what sysbench and pgbench print while they run, and at their end.
var benchSQL = &attach.Kind{
	Name: "sysbench, pgbench",
	Hints: []string{"thds:", "threads: ", "progress: ", "SQL statistics:", "queries performed:",
		"latency average", "transaction type:"},
	Claim: claimBenchSQL,
	Read:  readBenchSQL,
}

var (
	// benchSecond is a line for each interval: when, rate, and a time of a transaction in ms.
	benchSecond = pattern.New(`^\[ *(\d+)s ?\] (?:thds|threads): *(\d+),? tps: ([\d.]+)(.*)$`)
	pgProgress  = pattern.New(`^progress: ([\d.]+) s, ([\d.]+) tps, lat ([\d.]+) ms stddev ([\d.]+)`)
	benchP95    = pattern.New(`lat \(ms, ?(\d+)%\): ([\d.]+)|response time: ([\d.]+)ms \((\d+)%\)`)
	benchErrors = pattern.New(`(?:err(?:ors)?(?:/s)?:? +)([\d.]+)`)
	// benchStart starts a report at the end, benchRow are its lines.
	benchStart = pattern.New(`^(SQL statistics:|OLTP test statistics:|transaction type: |starting vacuum|Running the test with following options:)`)
	benchRow   = pattern.New(`^((queries performed|read|write|other|total|transactions|queries|deadlocks|ignored errors|reconnects|read/write requests|other operations|General statistics|` +
		`Throughput|time elapsed|total time|total number of events|total time taken by event execution|response time|min|avg|max|sum|approx\. +95 percentile|95th percentile|99th percentile|\d+th percentile|Threads fairness|` +
		`Number of threads|Initializing (random|worker)|Threads started|scaling factor|query mode|number of (clients|threads|transactions)|maximum number of tries|duration|` +
		`latency (average|stddev)|initial connection time|Report intermediate|partition)\b|(?:Latency \(ms\)|events/s \(eps\)|events \(avg/stddev\)|execution time \(avg/stddev\)):|Threads started!|tps = |pgbench \(|Random number generator|\d+ +[\d.]+ |- statement latencies|statement latencies)`)
	benchSums = pattern.New(`^(?:transactions: +\d+ +\(([\d.]+) per sec|tps = ([\d.]+))`)
	benchMean = pattern.New(`^(?:avg: +([\d.]+)|latency average = ([\d.]+) ms)`)
	benchHigh = pattern.New(`^(?:approx\. +)?(\d+)(?:th)? +percentile: +([\d.]+)`)
)

func claimBenchSQL(lines []paste.Line) int {
	sure := false
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		text = strings.TrimSpace(text)
		if benchSecond.MatchString(text) || pgProgress.MatchString(text) || benchSums.MatchString(text) {
			sure = true
			return true
		}
		return benchStart.MatchString(text) || benchRow.MatchString(text)
	})
	first := strings.TrimSpace(lines[0].Text)
	if !benchStart.MatchString(first) && !benchSecond.MatchString(first) && !pgProgress.MatchString(first) {
		return 0
	}
	return attach.ClaimIf(sure, n)
}

func readBenchSQL(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.unsure = "a benchmark's report of transactions", true
	var rates, times []float64
	threads, high, what, errors := "", "", "", 0.0
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if m := benchSecond.FindStringSubmatch(text); m != nil {
			rate, _ := number(m[3])
			rates, threads = append(rates, rate), m[2]
			if m := benchP95.FindStringSubmatch(m[4]); m != nil {
				f, _ := number(m[2] + m[3])
				times, what = append(times, f), "p"+m[1]+m[4]
			}
			if m := benchErrors.FindStringSubmatch(m[4]); m != nil {
				f, _ := number(m[1])
				errors = max(errors, f)
			}
		}
		if m := pgProgress.FindStringSubmatch(text); m != nil {
			rate, _ := number(m[2])
			mean, _ := number(m[3])
			rates, times, what = append(rates, rate), append(times, mean), "mean"
		}
		if m := benchSums.FindStringSubmatch(text); m != nil {
			v.figure("%s transactions/s in all", m[1]+m[2])
		}
		if m := benchMean.FindStringSubmatch(text); m != nil {
			v.figure("a transaction took %s ms in the mean", m[1]+m[2])
		}
		if m := benchHigh.FindStringSubmatch(text); m != nil && m[2] != "0" && m[2] != "0.00" {
			high = fmt.Sprintf("p%s %s ms", m[1], m[2])
		}
	}
	if high != "" {
		v.figure("%s", high)
	}
	if len(rates) > 0 {
		v.Title += ", " + attach.Plural(len(rates), "interval")
		lo, hi := slices.Min(rates), slices.Max(rates)
		text := fmt.Sprintf("%s transactions/s at the median (%s)", plain(attach.Median(rates)), between(lo, hi))
		if threads != "" {
			text += ", of " + threads + " threads"
		}
		v.figure("%s", text)
		if len(rates) >= enoughSamples && lo < 0.2*attach.Median(rates) && hi > 0 {
			v.means("transactions nearly stop in some intervals: %s/s at the least; why is not in it", plain(lo))
		}
	}
	if len(times) > 0 {
		lo, hi := slices.Min(times), slices.Max(times)
		v.figure("%s of a transaction %s ms at the median (%s)", what, plain(attach.Median(times)), between(lo, hi))
	}
	if errors > 0 {
		v.figure("up to %s errors/s", plain(errors))
	}
	v.means("this is how slow it was for the client of a benchmark: why is not in it")
	v.not("a benchmark's threads send as fast as they are answered: a time of a transaction grows with their number")
	v.next("whystall diagnose HOST:PORT", "why, while the same load runs")
	return v.done()
}
