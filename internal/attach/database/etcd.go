package database

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// etcd reads etcd's log: the old text with a bar, and JSON since 3.4. What counts are its own
// complaints about slow applies, slow fdatasyncs and late heartbeats.
var etcd = &attach.Kind{
	Name: "etcd log",
	Marks: []string{"took too long", "fdatasync", "heartbeat on time", "sync duration",
		"likely overloaded", "lost leader", "elected leader", "ReadIndex"},
	Hints: []string{"took too long", "fdatasync", "heartbeat on time", "sync duration",
		"\"caller\"", " | ", "likely overloaded", "lost leader", "elected leader", "ReadIndex", " INFO: "},
	Single:    true,
	Scattered: true,
	Claim: func(lines []paste.Line) int {
		n := 0
		for n < len(lines) && (isEtcd(lines[n].Text) || n > 0 &&
			etcdMaybe.MatchString(lines[n].Text)) && (n == 0 || lines[n].Command == "") {
			n++
		}
		if n == 0 && etcdMaybe.MatchString(lines[0].Text) &&
			slices.ContainsFunc(lines[:min(len(lines), 30)], func(l paste.Line) bool { return isEtcd(l.Text) }) {
			return 1
		}
		return n
	},
	Read: readEtcd,
}

var (
	etcdOld    = pattern.New(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [IWENCD] \| (etcdserver|raft|wal|mvcc|embed|rafthttp|etcdmain|snap|lease|auth|pkg|api|store|membership)\b`)
	etcdCaller = pattern.New(`"caller": ?"(etcdserver|raft|wal|mvcc|embed|rafthttp|etcdmain|membership|v3rpc|traceutil|v3compactor|cindex)/`)
	// etcdMaybe are names that packages of other programs have as well.
	etcdMaybe = pattern.New(`^\{"level": ?"\w+", ?"ts": ?"[^"]+", ?"(?:logger|caller)": ?"(?:[\w.-]+", ?"caller": ?")?(snap|lease|auth|fileutil|txn|backend|schema|version|zapgrpc|flags|host|grpcproxy|transport|leasing|storage|apply|adapters|osutil|api)/`)
	etcdRaft  = pattern.New(`^raft\d{4}/\d\d/\d\d \d\d:\d\d:\d\d INFO: `)
	etcdWords = pattern.New(`apply request took too long|apply entries took too long|took too long [([][\d.]+\w+[)\]] to execute|slow fdatasync|failed to send out heartbeat on time|leader failed to send out heartbeat|wal: sync duration of|waiting for ReadIndex response took too long|server is likely overloaded|leader is overloaded likely|avoid queries with large range`)
	// etcdLogged is what a line of a log has and a sentence about it has not.
	etcdLogged = pattern.New(`"msg":|\d\d:\d\d:\d\d| \| |^\s*(?:etcdserver|etcdmain|rafthttp|raft|wal|mvcc|embed|lease)(?:/\S+)?: |\bmsg=|^\s*[\w./-]+\.go(?::\d+)?:?\s+"|` +
		`^"?[\w :]{4,60}"?,? +"?took"?[ =:]+"?[\d.]+(?:µs|ms|s)"?(?:,? +"?expected-duration"?[ =:]+"?[\d.]+m?s"?)?$`)
	etcdTook = pattern.New(`"took": ?"?([\d.]+[mµun]?s?|[\dhm.s]+)"?|took too long \(([\dhmµu.s]+)\)|took too long \[([\dhmµu.s]+)(?: for|\])|took too long \(([\d.]+[mµ]s)$|sync duration of ([\dhmµu.s]+)|\btook[ =](\d[\dhmµun.]*s)\b`)
	// etcdServed is what etcd says of a request that it served: a trace of its steps, or how long
	// it took in all.
	etcdServed = pattern.New(`"msg": ?"(?:trace\[\d+\] (\w+)|request stats)".*"(?:duration|time spent)": ?"([\dhmµu.s]+)"`)
	etcdOver   = pattern.New(`"exceeded-duration": ?"([^"]+)"|(?:timeout|deadline exceeded) for ([\dhmµun.s]+)[,)]`)
)

func isEtcd(text string) bool {
	return etcdCaller.MatchString(text) || etcdOld.MatchString(text) ||
		etcdRaft.MatchString(text) || etcdWords.MatchString(text) && etcdLogged.MatchString(text)
}

// fsyncSlow is in seconds: a fdatasync that takes so long is slow even for a disk that turns.
const fsyncSlow = 0.025

// fsyncGuide is what etcd's guide wants nearly all to stay below, in seconds.
const fsyncGuide = 0.010

// complaints are what etcd said was slow, in seconds, by sort.
type complaints struct {
	fsync, apply, reads, late []float64
	beats                     int // heartbeats sent too late; late has those that say by how much
	unsent                    int // snapshots of the database that did not reach a member
	timeouts                  int // requests that timed out
	agreement                 int // slow requests whose time was the agreement of the members
	index                     int // waits for the leader that name no duration
	unled                     int // and those of them that it did not answer in time
	elections                 int
	many                      int                // reads whose answer had many keys
	small                     int                // and those whose answer had next to none
	keys, size                float64            // the largest of their answers, in keys and bytes
	overloaded                int                // times that etcd said so of itself
	refused                   map[string]float64 // slow requests that ended with an error, by its words
	lines, warned, failed     int                // all; those that etcd calls a warning or worse, an error or worse
	steps                     map[string]float64 // of traces: the longest step of each; s
	traces, served            []float64          // by its traces, and by its statistics of requests; s
	ends, waits               []float64          // when slow requests ended, and how long they took; s
}

var etcdAt = pattern.New(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.\d+`)

// ended notes when a request ended that took v seconds.
func (c *complaints) ended(text string, v float64) {
	if at, err := time.Parse("2006-01-02 15:04:05.999999999",
		strings.Replace(etcdAt.FindString(text), "T", " ", 1)); err == nil {
		c.ends, c.waits = append(c.ends, float64(at.UnixMicro())/1e6), append(c.waits, v)
	}
}

// together says that requests which took unlike times ended at one moment: they waited for one
// thing.
func (c *complaints) together(r *result) {
	if len(c.ends) < 3 {
		return
	}
	within, apart := slices.Max(c.ends)-slices.Min(c.ends), slices.Max(c.waits)-slices.Min(c.waits)
	// Requests of like times are told from unlike ones that happened to be logged together by how
	// short the moment is beside them.
	unlike, long := apart >= 10*within && apart >= 0.1, slices.Min(c.waits) >= 100*within
	if within > 0.1 || !unlike && !long {
		return
	}
	took := dur(slices.Min(c.waits)) + " to " + dur(slices.Max(c.waits))
	if dur(slices.Min(c.waits)) == dur(slices.Max(c.waits)) {
		took = dur(slices.Max(c.waits))
	}
	r.figure(fmt.Sprintf("%d slow requests of %s ended within %s: they waited for one moment, not each for itself", len(c.ends), took, dur(within)))
}

func readEtcd(p *attach.Part) attach.Reading {
	var c complaints
	for _, l := range p.Lines {
		c.line(withoutBlanks(l.Text))
	}
	r := &result{}
	r.Title = "etcd's log, " + attach.Plural(len(p.Lines), "line")
	if p.Lines[0].Source != "" {
		r.Who.Host = p.Lines[0].Source
		r.Title = fmt.Sprintf("etcd's log of %s, %s", r.Who.Host, attach.Plural(len(p.Lines), "line"))
	}
	c.figures(r)
	switch {
	case len(c.fsync) > 0:
		line := "fdatasync of the write-ahead log: " + often(c.fsync)
		r.fact(FactFsync, attach.Median(c.fsync)*1e3, "")
		r.Not = "Whether the device was slow, or the thread had no CPU while it waited, the log does not say."
		if slices.Max(c.fsync) < fsyncSlow {
			r.Means = "Each fdatasync that is logged here was short: etcd's guide wants nearly all below 10 ms, and etcd warns from 1 s on."
			r.Not = "That the disk is slow: a build that logs such times logs each of them, whatever letter stands before it."
			if attach.Median(c.fsync) >= fsyncGuide {
				r.Means = "Half of what is logged here took a little longer than etcd's guide wants, 10 ms, and none stalled: etcd warns from 1 s on."
				return r.done(attach.CannotTell)
			}
			return r.done(attach.Healthy)
		}
		if attach.Median(c.fsync) < fsyncSlow && slices.Max(c.fsync) < 4*fsyncSlow {
			// A build for debugging logs each of them.
			r.candidate("disk-wait", line)
			r.Means = "etcd measured its own fdatasync: that is what a disk needs which turns, and no stall by itself."
		} else {
			r.found("disk-wait", finding.Possible, line, 0)
			r.Means = "etcd measured its own fdatasync: writes, and with them heartbeats, waited for it."
		}
		r.next("iostat -x 1 30; whystall record --pid $(pidof etcd)",
			"says whether the disk or the CPU made the fdatasync long")
	case c.brief():
		r.Means = "Etcd's oldest versions log all that takes 10 ms: these were late by next to nothing, and nothing stalled."
		r.Not = "That the disk is slow: \"took too long\" means 10 ms here."
	case c.mild():
		r.Means = "Etcd was late by little: it complains from 100 ms on, and nothing here took twice as long."
		r.Not = "Why: a slow disk, a lack of CPU and the network to its peers look alike in these lines."
		r.next("curl -s http://127.0.0.1:2379/metrics | grep -E 'wal_fsync_duration|backend_commit_duration|peer_round_trip'", "tells the disk from the network, where it grows worse")
		return r.done(attach.CannotTell)
	case c.onlyMany():
		r.Means = "etcd answered a read of many keys: reading and sending them takes time by itself, and nothing else was late."
		r.Not = "Whether the disk, the CPU or the number of keys made the read long."
		r.next("curl -s http://127.0.0.1:2379/metrics | grep -E 'wal_fsync_duration|backend_commit_duration|peer_round_trip'", "tells the disk from the network")
		return r.done(attach.CannotTell)
	case len(c.apply)+len(c.reads)+len(c.traces)+len(c.served)+c.beats+c.index > 0:
		line := r.Figures[0]
		r.candidate("disk-wait", line)
		r.candidate("cpu-contention", line)
		if c.beats > 0 {
			r.candidate("cpu-throttled", line)
		}
		r.Means = "etcd was late; a slow disk, a lack of CPU and the network to its peers all look like this in its log."
		if c.onlyApplies() {
			r.Means = "etcd was late in applying what its members had agreed on, which it does by itself: a slow disk, a lack of CPU and large entries or reads in them look alike. The network to its peers is no part of it."
		}
		if c.onlyAgreement() {
			r.Means = "The requests waited until the members had agreed, before anything was read: a slow disk or a lack of CPU of the leader or of a majority, and the network between them, look alike."
		}
		if c.unled > 0 {
			r.Means = "Reads waited for the leader's word on how far they may read, and it did not come in time: the network to it, or a leader that was gone, without a CPU or waiting for its disk. etcd names the network, whichever it was."
		}
		r.Not = "These lines name no slow fdatasync: a slow disk is not shown."
		r.next("curl -s http://127.0.0.1:2379/metrics | grep -E 'wal_fsync_duration|backend_commit_duration|peer_round_trip'", "tells the disk from the network")
		r.next("whystall record --pid $(pidof etcd)", "says whether etcd had its CPU")
	default:
		r.Means = "etcd complains about no slow disk, no slow request and no late heartbeat in these lines."
		r.Not = "It speaks only above its thresholds, which are 100 ms for requests and 1 s for fdatasync by default."
		return r.done(c.nothingSlow(r))
	}
	return r.done(attach.Healthy)
}

// manyKeys is an answer whose reading takes long on a machine that lacks nothing.
const manyKeys = 100

var (
	etcdKeys = pattern.New(`range_response_count:(\d+)|"range_response_count": ?"?(\d+)`)
	etcdSize = pattern.New(`\bsize:(\d+)|"(?:response_|request_)?size": ?"?(\d+)`)
)

// fewAnswered is an answer of so few keys that reading and sending them takes no time.
const fewAnswered = 1

var etcdStep = pattern.New(`'([a-z][a-z ,-]+?) *'  \(duration: ([\dhmµu.s]+)\)`)

// step notes the longest step of a trace.
func (c *complaints) step(text string) {
	most, name := 0.0, ""
	for _, m := range etcdStep.FindAllStringSubmatch(text, 20) {
		if v, ok := seconds(m[2]); ok && v > most {
			most, name = v, m[1]
		}
	}
	if name == "" {
		return
	}
	if c.steps == nil {
		c.steps = map[string]float64{}
	}
	c.steps[name] += most
}

// answer notes how much a slow read returned.
func (c *complaints) answer(text string) {
	m := etcdKeys.FindStringSubmatch(text)
	if m == nil {
		return
	}
	keys, _ := number(m[1] + m[2])
	if keys >= manyKeys {
		c.many++
	}
	if keys <= fewAnswered {
		c.small++
	}
	if keys <= c.keys {
		return
	}
	c.keys, c.size = keys, 0
	if m := etcdSize.FindStringSubmatch(text); m != nil {
		c.size, _ = number(m[1] + m[2])
	}
}

func (c *complaints) line(text string) {
	c.lines++
	if etcdWarned.MatchString(text) {
		c.warned++
	}
	if etcdFailed.MatchString(text) {
		c.failed++
	}
	if strings.Contains(text, "likely overloaded") || strings.Contains(text, "overloaded likely") {
		c.overloaded++
	}
	if strings.Contains(text, "lost leader") || strings.Contains(text, "elected leader") {
		c.elections++
	}
	if strings.Contains(text, "failed to be sent out") {
		c.unsent++
	}
	if c.ofRequest(text); strings.Contains(text, "etcdserver: request timed out") && !etcdOfClient.MatchString(text) {
		c.timeouts++
	}
	if strings.Contains(text, "agreement among raft nodes") {
		c.agreement++
	}
	if m := etcdServed.FindStringSubmatch(text); m != nil {
		if v, ok := seconds(m[2]); ok && v >= stallLeast {
			if m[1] != "" {
				c.traces = append(c.traces, v)
				c.step(text)
			} else {
				c.served = append(c.served, v)
			}
		}
		return
	}
	if strings.Contains(text, "heartbeat on time") || strings.Contains(text, "out heartbeat") {
		c.beats++
		if m := etcdOver.FindStringSubmatch(text); m != nil {
			if v, ok := seconds(m[1] + m[2]); ok {
				c.late = append(c.late, v)
			}
		}
		return
	}
	if strings.Contains(text, "waiting for ReadIndex response took too long") {
		c.index++
		return
	}
	if strings.Contains(text, "timed out waiting for read index response") {
		c.index++
		c.unled++
		return
	}
	m := etcdTook.FindStringSubmatch(text)
	if m == nil || strings.Contains(text, "traceutil/") {
		return
	}
	v, ok := seconds(cmp.Or(m[1:]...))
	switch {
	case !ok:
	case strings.Contains(text, "fdatasync") || strings.Contains(text, "sync duration"):
		c.fsync = append(c.fsync, v)
	case strings.Contains(text, "took too long") && strings.Contains(text, "read-only"):
		c.reads = append(c.reads, v)
		c.ended(text, v)
		c.answer(text)
	case strings.Contains(text, "took too long"):
		c.apply = append(c.apply, v)
		c.ended(text, v)
		c.answer(text)
	}
}

func (c *complaints) figures(r *result) {
	for _, f := range []struct {
		v    []float64
		text string
	}{{c.fsync, "fdatasync"}, {c.apply, "apply took too long"}, {c.reads, "read-only request took too long"}} {
		if len(f.v) > 0 {
			r.figure(f.text + ": " + often(f.v))
			r.fact(FactStall, attach.Median(f.v)*1e3, f.text)
		}
	}
	if len(c.served) > 0 {
		r.figure("requests, by etcd's own statistics: " + often(c.served))
		r.fact(FactStall, attach.Median(c.served)*1e3, "requests")
	}
	if len(c.traces) > 0 && len(c.apply)+len(c.reads) == 0 {
		r.figure("requests that etcd traced: " + often(c.traces))
	}
	if c.agreement > 0 {
		r.figure(fmt.Sprintf("%s: the time was the agreement among raft members, before the read", times(c.agreement)))
	}
	c.tellRefused(r)
	if c.index > 0 {
		line := "waiting for the leader's ReadIndex took too long: " + times(c.index)
		switch {
		case c.unled == c.index:
			line += ", until it timed out"
		case c.unled > 0:
			line += fmt.Sprintf(", %d of them until it timed out", c.unled)
		}
		r.figure(line)
	}
	c.together(r)
	if c.small > 0 && c.many == 0 {
		r.figure(fmt.Sprintf("%d of %d had an answer of at most 1 key: no large answer made these slow", c.small, len(c.reads)+len(c.apply)))
	}
	if c.keys >= manyKeys {
		line := "the largest answer of them: " + count(c.keys) + " keys"
		if c.size > 0 {
			line += ", " + bytesText(c.size)
		}
		r.figure(line)
	}
	if c.beats > 0 {
		line := "heartbeats sent too late: " + times(c.beats)
		if len(c.late) > 0 {
			line += fmt.Sprintf(", by %s in the median, at most %s", dur(attach.Median(c.late)),
				dur(slices.Max(c.late)))
		}
		r.figure(line)
	}
	if c.unsent > 0 {
		r.figure("snapshots of the database that did not reach a member: " + times(c.unsent))
	}
	if c.timeouts > 0 {
		r.figure("requests of etcd itself that timed out: " + times(c.timeouts))
	}
	if names := attach.Largest(c.steps); len(names) > 0 && c.agreement < len(c.traces) {
		r.figure(fmt.Sprintf("the longest step of traced requests: %s, %s", names[0], dur(c.steps[names[0]])))
	}
	if c.elections > 0 {
		r.figure("leader lost or elected: " + times(c.elections))
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
