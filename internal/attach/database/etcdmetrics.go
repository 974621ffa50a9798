package database

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// etcdMetrics is what etcd's metrics say of its disk and its peers: the histograms of its page, and
// quantiles of them that somebody asked Prometheus for.
var etcdMetrics = &attach.Kind{
	Name:    "etcd metrics",
	Reports: true, // a histogram, and another one
	Hints:   []string{"etcd_", "histogram_quantile("},
	Claim:   claimEtcdMetrics,
	Read:    readEtcdMetrics,
}

var (
	etcdMetric = pattern.New(`^(?:# (?:HELP|TYPE) )?(etcd_\w+?)(_bucket|_sum|_count)?(?:\{([^}]*)\})?(?: +([\d.eE+-]+|NaN)| \S.*)$`)
	etcdBound  = pattern.New(`\ble="([^"]+)"`)
	etcdPeer   = pattern.New(`\b(?:To|instance)="([^"]+)"`)
	quantileOf = pattern.New(`histogram_quantile\(\s*(0?\.\d+)\s*,.*\b(etcd_\w+?)_bucket\b`)
	// "{instance="10.0.0.1:2379"} | 0.07", with an arrow, or with blanks only
	promAnswer = pattern.New(`^(?:etcd_\w+)?\{(.*)\}\s*(?:\||=>)?\s*(\d[\d.eE+-]*)(?: @\[[\d.]+\])?$`)
)

// etcdJudged are the histograms that are judged, with what etcd's manual asks of their p99, in s.
var etcdJudged = []struct {
	metric, text string
	want         float64
}{
	{"etcd_disk_wal_fsync_duration_seconds", "fsync of the write-ahead log", 0.010},
	{"etcd_wal_fsync_durations_seconds", "fsync of the write-ahead log", 0.010}, // etcd 2
	{"etcd_disk_backend_commit_duration_seconds", "commit of the backend", 0.025},
	{"etcd_network_peer_round_trip_time_seconds", "round trip to a peer", 0.050},
}

func etcdHistogram(name string) bool {
	for _, j := range etcdJudged {
		if j.metric == name {
			return true
		}
	}
	return false
}

func claimEtcdMetrics(lines []paste.Line) int {
	own := 0
	asked := false
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		t := strings.TrimSpace(text)
		if m := quantileOf.FindStringSubmatch(t); m != nil {
			asked = etcdHistogram(m[2])
			return asked
		}
		if m := etcdMetric.FindStringSubmatch(t); m != nil {
			if etcdHistogram(m[1]) && m[4] != "" {
				own++
			}
			return true
		}
		if asked && promAnswer.MatchString(t) {
			own++
			return true
		}
		return false
	})
	return attach.ClaimIf(own > 0, n)
}

// etcdSeries is one histogram of a page.
type etcdSeries struct {
	metric     string
	bounds, le []float64 // s, and how many took at most that long
	sum, count float64
}

// etcdResult is a reading in the making.
type etcdResult struct {
	result
	few   bool // a histogram has too few values for a p99
	blind bool // the buckets that would tell are not in the text
}

// etcdAnswers are quantiles that Prometheus computed.
type etcdAnswers struct {
	metric, quantile string
	values           []float64
	worst            string // the instance of the largest
}

func readEtcdMetrics(p *attach.Part) attach.Reading {
	var series []*etcdSeries
	var answers []*etcdAnswers
	for _, l := range p.Lines {
		t := strings.TrimSpace(l.Text)
		if m := quantileOf.FindStringSubmatch(t); m != nil {
			answers = append(answers, &etcdAnswers{metric: m[2], quantile: "p" +
				strings.TrimRight(strings.TrimLeft(m[1], "0."), "0")})
		} else if m := promAnswer.FindStringSubmatch(t); m != nil && len(answers) > 0 {
			answers[len(answers)-1].add(m[1], m[2])
		} else if m := etcdMetric.FindStringSubmatch(t); m != nil && m[4] != "" && etcdHistogram(m[1]) {
			series = seriesLine(series, m)
		}
	}
	r := &etcdResult{}
	r.Title = "etcd's metrics"
	r.Boot = len(answers) == 0
	for _, s := range series {
		s.judge(r)
	}
	for _, a := range answers {
		a.judge(r)
	}
	if len(r.Signs) == 0 {
		r.Means = "What is measured here takes no longer than etcd's manual asks for."
		if len(r.Figures) == 0 {
			r.Means = "No histogram of it has a figure that can be read."
			return r.done(attach.CannotTell)
		}
		if r.few {
			r.Means = "Too little was written since the start for a p99."
			return r.done(attach.CannotTell)
		}
		if r.blind {
			r.Means = "The buckets that tell a quick disk from a slow one are not in the text."
			return r.done(attach.CannotTell)
		}
		return r.done(attach.Healthy)
	}
	r.Means = "etcd's writes wait for its disk longer than its manual allows (p99 of 10 ms for an fsync, 25 ms for a commit)."
	if !slices.ContainsFunc(r.Signs, func(s attach.Sign) bool { return s.Cause == "disk-wait" }) {
		r.Means = "The way to a peer takes long; the disk is not shown to be slow."
	}
	r.Not = "Whether the device was slow, or etcd had no CPU while it waited. Of a page without rates: when it was slow, since it counts since the start."
	r.next("iostat -x 1 30; whystall record --pid $(pidof etcd)",
		"says whether the disk or the CPU made the fsync long")
	return r.done(attach.CannotTell)
}

// seriesLine adds one line of a page to its histogram; one with other labels starts a new one.
func seriesLine(list []*etcdSeries, m []string) []*etcdSeries {
	v, ok := number(m[4])
	if !ok {
		return list
	}
	var s *etcdSeries
	if i := len(list) - 1; i >= 0 && list[i].metric == m[1] && list[i].count == 0 {
		s = list[i]
	} else {
		s = &etcdSeries{metric: m[1]}
		list = append(list, s)
	}
	switch m[2] {
	case "_sum":
		s.sum = v
	case "_count":
		s.count = v
	case "_bucket":
		b := etcdBound.FindStringSubmatch(m[3])
		if b == nil || len(s.bounds) >= 100 {
			break
		}
		bound, ok := number(b[1])
		if !ok {
			bound = math.Inf(1)
		}
		s.bounds, s.le = append(s.bounds, bound), append(s.le, v)
	}
	return list
}

func etcdTextOf(metric string) (text string, want float64) {
	for _, j := range etcdJudged {
		if j.metric == metric {
			return j.text, j.want
		}
	}
	return metric, 0
}

// enoughFsyncs is how many make a p99.
const enoughFsyncs = 100

// judge says what a histogram since the start shows: where its p99 lies, and what was far above.
func (s *etcdSeries) judge(r *etcdResult) {
	all := s.count
	if n := len(s.le); all == 0 && n > 0 {
		all = s.le[n-1]
	}
	if all < 1 || !slices.IsSorted(s.le) || !slices.IsSorted(s.bounds) {
		return
	}
	text, want := etcdTextOf(s.metric)
	line := fmt.Sprintf("%s: %s since the start", text, count(all))
	if s.sum > 0 {
		line += ", in the mean " + dur(s.sum/all)
	}
	if all < enoughFsyncs {
		if i := slices.Index(s.le, all); i >= 0 && !math.IsInf(s.bounds[i], 1) {
			line += fmt.Sprintf(", none longer than %s", dur(s.bounds[i]))
		}
		r.figure(line)
		r.few = true
		return
	}
	if first := s.bounds; len(first) > 0 && first[0] > want && s.le[0] >= 0.99*all { // the start was cut off
		line += fmt.Sprintf(": %s within %s", percent(s.le[0], all), dur(first[0]))
		if i := slices.Index(s.le, all); i > 0 && all > s.le[i-1] {
			line += fmt.Sprintf("; of the others the longest took more than %s", dur(s.bounds[i-1]))
		}
		r.figure(line)
		r.blind = true
		return
	}
	half, _ := s.quantile(0.5, all)
	low, high := s.quantile(0.99, all)
	switch {
	case high == 0:
	case math.IsInf(high, 1):
		line += fmt.Sprintf(", p99 above %s", dur(low))
	default:
		line += fmt.Sprintf(", p99 between %s and %s", dur(low), dur(high))
	}
	if half >= want {
		line += fmt.Sprintf(", half of them above %s", dur(half))
	}
	if n := len(s.bounds); n > 1 && math.IsInf(s.bounds[n-1], 1) && all > s.le[n-2] {
		line += fmt.Sprintf("; %s took more than %s", count(all-s.le[n-2]), dur(s.bounds[n-2]))
	}
	r.figure(line)
	if low >= want {
		// Since the start may be one bad hour, but not where the usual fsync is late as well.
		r.slowMetric(s.metric, line, half >= want && low >= everSlow)
	}
}

// everSlow is a p99 in s, since the start, of a disk that is slow whatever the hour.
const everSlow = 0.064

// quantile gives the bounds between which a quantile lies; high is 0 where no bucket has it.
func (s *etcdSeries) quantile(q, all float64) (low, high float64) {
	for i, n := range s.le {
		if n >= q*all {
			return low, s.bounds[i]
		}
		low = s.bounds[i]
	}
	return low, 0
}

func (a *etcdAnswers) add(labels, value string) {
	v, ok := number(value)
	if !ok || v < 0 || len(a.values) >= 1000 {
		return
	}
	if len(a.values) == 0 || v > slices.Max(a.values) {
		a.worst = ""
		if m := etcdPeer.FindStringSubmatch(labels); m != nil {
			a.worst = m[1]
		}
	}
	a.values = append(a.values, v)
}

func (a *etcdAnswers) judge(r *etcdResult) {
	if len(a.values) == 0 {
		return
	}
	text, want := etcdTextOf(a.metric)
	most := slices.Max(a.values)
	line := fmt.Sprintf("%s: %s %s", text, a.quantile, dur(most))
	if len(a.values) > 1 {
		line = fmt.Sprintf("%s: %s %s to %s in %d series", text, a.quantile,
			dur(slices.Min(a.values)), dur(most), len(a.values))
	}
	if a.worst != "" {
		line += ", the longest of " + a.worst
	}
	r.figure(line)
	if most >= want {
		r.slowMetric(a.metric, line, most >= 2.5*want)
	}
}

// slowMetric says what a slow histogram means; rate: it is of some minutes, and far too slow.
func (r *result) slowMetric(metric, line string, rate bool) {
	switch {
	case strings.HasPrefix(metric, "etcd_network_"):
		r.outside("the network to a peer, or the peer itself", line, 0)
	case rate:
		r.found("disk-wait", finding.Possible, line, 0)
	default:
		r.candidate("disk-wait", line)
	}
}
