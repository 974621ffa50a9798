package database

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// rdKafka is what librdkafka, the client of Kafka below most languages, counts of itself, as JSON.
var rdKafka = &attach.Kind{
	Name:    "librdkafka statistics",
	Reports: true,
	Hints:   []string{"{", `"msg_cnt"`},
	Claim: func(lines []paste.Line) int {
		if text := strings.TrimSpace(lines[0].Text); len(text) > 200 && strings.HasPrefix(text, "{") {
			return attach.ClaimIf(strings.Contains(text, `"msg_max"`) && strings.Contains(text, `"replyq"`), 1)
		}
		return attach.ClaimJSON(lines, func(keys map[string]bool) bool {
			return keys["msg_cnt"] && keys["msg_max"] && (keys["replyq"] || keys["simple_cnt"])
		})
	},
	Read: readRDKafka,
}

var (
	rdValue = pattern.New(`"(msg_cnt|msg_max|msg_size|msg_size_max|type|waitresp_cnt|req_timeouts|txretries)": ?"?([\w.]+)`)
	rdTrip  = pattern.New(`"rtt": ?\{[^{}]*"avg": ?(\d+)`)
)

func readRDKafka(p *attach.Part) attach.Reading {
	var b strings.Builder
	first, sums, kind := map[string]float64{}, map[string]float64{}, ""
	for _, l := range p.Lines {
		b.WriteString(strings.TrimSpace(l.Text) + " ")
		for _, m := range rdValue.FindAllStringSubmatch(l.Text, 1<<12) {
			v, ok := number(m[2])
			if m[1] == "type" && kind == "" {
				kind = m[2]
			}
			if _, seen := first[m[1]]; ok && !seen {
				first[m[1]] = v // those of the client itself stand before its brokers'
			}
			if ok {
				sums[m[1]] += v
			}
		}
	}
	trip := 0.0
	for _, m := range rdTrip.FindAllStringSubmatch(b.String(), 1<<12) {
		us, _ := number(m[1])
		trip = max(trip, us/1e6)
	}
	r := &result{}
	r.Title, r.Glance = "librdkafka's statistics of a "+strings.TrimSpace(kind+" client"), true
	line := fmt.Sprintf("%s of %s messages in the client's own queue, %s of %s",
		count(first["msg_cnt"]), count(first["msg_max"]), bytesText(first["msg_size"]),
		bytesText(first["msg_size_max"]))
	r.figure(line)
	if trip > 0 {
		r.figure("a request to a broker takes " + dur(trip) + " in the mean, to the slowest")
	}
	if n := sums["req_timeouts"] + sums["txretries"]; n > 0 {
		r.figure(fmt.Sprintf("requests to brokers that timed out: %s, that were sent again: %s",
			count(sums["req_timeouts"]), count(sums["txretries"])))
	}
	full := first["msg_max"] > 0 && first["msg_cnt"] >= first["msg_max"] ||
		first["msg_size_max"] > 0 && first["msg_size"] >= first["msg_size_max"]
	r.Not = "Whether brokers are slow: the connection that only finds them (bootstrap) has zeros as a rule."
	switch {
	case full:
		r.Means = ""
		r.outside("the client's own queue of messages, which is full: who produces waits, or is refused", line, 0)
	case kind == "consumer":
		r.Means = "It counts what the client did; how far a consumer is behind stands at each partition (consumer_lag)."
	default:
		r.Means = "The client's queue has room at this instant: nobody waits for it."
	}
	r.next("the same statistics some seconds later, with brokers.*.rtt and outbuf_latency",
		"whether messages leave, and how long a broker takes")
	return r.done(attach.CannotTell)
}
