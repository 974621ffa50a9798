package database

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// haproxy reads HAProxy's HTTP log: queue, connect, response and total time of each request.
var haproxy = &attach.Kind{
	Name:      "HAProxy log",
	Marks:     []string{"haproxy["},
	Hints:     []string{"haproxy", "/"},
	Single:    true,
	Scattered: true,
	Claim:     func(lines []paste.Line) int { return run(lines, haLine.MatchString) },
	Read:      readHAProxy,
}

// nginxTimes reads access logs of nginx with its times of the request and of its upstream.
var nginxTimes = &attach.Kind{
	Name:      "nginx log with times",
	Marks:     []string{"request_time", "upstream_response_time", " urt=", "] [] "},
	Hints:     []string{"rt=", "request_time", "urt=", "upstream_response_time", "] [] "},
	Single:    true,
	Scattered: true,
	Claim:     func(lines []paste.Line) int { return run(lines, isNginx) },
	Read:      readNginx,
}

var (
	haLine  = pattern.New(`\[\d+/\w+/\d{4}:\d\d:\d\d:\d\d\.\d+\] \S+ (\S+)/(\S+) (-?\d+)/(-?\d+)/(-?\d+)/(-?\d+)/\+?(\d+) (-?\d+) (?:(?:\S+ ){1,3}?([A-Za-z-]{2}[\w-]{2}) )?`)
	nginxRT = pattern.New(`\b(?:rt|request_time|"request_time")"?[=:] ?"?(\d+\.\d+)`)
	nginxUp = pattern.New(`\b(?:urt|ut|upstream_response_time|upstream_time|us|urpt)"?[=:] ?"?(\d+\.\d+)`)
	// nginxIngress is the form of Kubernetes' ingress: length and time of the request, two names in
	// brackets, address, length, time and status of the upstream, and an id.
	nginxIngress = pattern.New(`" \d+ (\d+\.\d+) \[[^\]]*\] \[[^\]]*\] \S+(?:, \S+)* (?:[\d-]+(?:, )?)+ (\d+\.\d+|-)(?:, (\d+\.\d+|-))* [\d-]+(?:, [\d-]+)* [0-9a-f]{32}`)
	// nginxUnasked stands there where nginx asked no upstream, as where its cache has the answer.
	nginxUnasked = pattern.New(`\b(?:urt|ut|upstream_response_time)"?[=:] ?"?-(?:["\s,]|$)`)
	// nginxHead and nginxConn are parts of the upstream's time: to its first line, to connect.
	nginxHead = pattern.New(`\b(?:uht|upstream_header_time)"?[=:] ?"?(\d+\.\d+)`)
	nginxConn = pattern.New(`\b(?:uct|upstream_connect_time)"?[=:] ?"?(\d+\.\d+)`)
)

func isNginx(text string) bool {
	return nginxRT.MatchString(text) && (upstreamTime(text) != nil || nginxUnasked.MatchString(text)) ||
		nginxIngress.MatchString(text)
}

// upstreamTime is the upstream's whole time, or that until its first line where a log has no other.
func upstreamTime(text string) []string {
	if m := nginxIngress.FindStringSubmatch(text); m != nil {
		last := cmp.Or(m[3], m[2])
		if last == "-" {
			return nil
		}
		return []string{m[0], last}
	}
	if m := nginxUp.FindStringSubmatch(text); m != nil {
		return m
	}
	return nginxHead.FindStringSubmatch(text)
}

// haTimes are where the time of one request went, in seconds. HAProxy writes -1 for a phase that
// did not end: the rest of the time went there.
type haTimes struct{ send, queue, connect, server, total float64 }

// longest is the phase in which half of a request's time or more passed; "": none has that.
func (t haTimes) longest() string {
	for name, v := range map[string]float64{"send": t.send, "queue": t.queue, "connect": t.connect,
		"server": t.server, "data": t.total - t.send - t.queue - t.connect - t.server} {
		if v > 0.5*t.total {
			return name
		}
	}
	return ""
}

func haRequest(m []string) (t haTimes, ended bool) {
	ms := func(i int) float64 { v, _ := number(m[i]); return v / 1e3 }
	phases := []*float64{&t.send, &t.queue, &t.connect, &t.server}
	t.total = ms(7)
	rest := t.total
	for i, p := range phases {
		if *p = ms(3 + i); *p < 0 {
			*p = max(0, rest)
			return t, false
		}
		rest -= *p
	}
	return t, true
}

// haEnds says who ended a request early and when, by the first two letters of the state.
var haEnds = map[string]string{
	"sH": "the server's timeout, before its answer",
	"sD": "the server's timeout, during its answer", "SH": "the server closed, before its answer",
	"SD": "the server closed, during its answer",
	"sC": "the timeout of the connect to the server", "SC": "the server refused the connection",
	"sQ": "the timeout of the queue", "cR": "the client's timeout, before its request was whole",
	"CR": "the client closed, before its request was whole",
	"cH": "the client's timeout, before the answer", "CH": "the client closed, before the answer",
	"cD": "the client's timeout, during the answer",
	"cL": "the client's timeout, while the last of the answer was sent to it",
	"CL": "the client closed, while the last of the answer was sent to it",
	"CD": "the client closed, during the answer", "CQ": "the client closed, in the queue",
}

func readHAProxy(p *attach.Part) attach.Reading {
	r := &result{}
	var send, queue, connect, server, total []float64
	slow, ends := map[string]int{}, map[string]float64{}
	open, unsent, where := 0, 0, ""
	by := map[string]float64{} // requests by the phase that has most of their time
	for _, l := range p.Lines {
		m := haLine.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		if len(m[9]) >= 2 && haEnds[m[9][:2]] != "" {
			ends[haEnds[m[9][:2]]+" ("+m[9][:2]+")"]++
		}
		if m[4] == "-1" { // it ended before HAProxy looked for a server
			unsent++
			continue
		}
		t, ended := haRequest(m)
		send, queue, connect, server, total = append(send, t.send), append(queue, t.queue),
			append(connect, t.connect), append(server, t.server), append(total, t.total)
		by[t.longest()]++
		where = m[1] + "/" + m[2]
		slow[where]++
		if !ended {
			open++
		}
	}
	r.Title = "HAProxy log, " + attach.Plural(len(total)+unsent, "request")
	early := func() {
		if len(ends) > 0 {
			r.figure("ended early, " + chiefly(ends, "by "))
		}
		if unsent > 0 {
			r.figure(attach.Plural(unsent, "request") + " ended before HAProxy looked for a server")
		}
	}
	if len(total) == 0 {
		r.Means = "No request got as far as a server."
		early()
		return r.done(attach.CannotTell)
	}
	line := fmt.Sprintf("median request %s: queue %s, connect %s, server's answer %s; at most %s",
		dur(attach.Median(total)), dur(attach.Median(queue)), dur(attach.Median(connect)),
		dur(attach.Median(server)), dur(slices.Max(total)))
	if len(total) == 1 {
		line = fmt.Sprintf("the request took %s: queue %s, connect %s, server's answer %s",
			dur(total[0]), dur(queue[0]), dur(connect[0]), dur(server[0]))
	}
	if open == 1 && len(total) == 1 && connect[0]+queue[0]+send[0]+server[0] > 0 && server[0] > connect[0]+queue[0] {
		line = fmt.Sprintf("the request took %s: queue %s, connect %s, then %s without an answer of the server", dur(total[0]), dur(queue[0]), dur(connect[0]), dur(server[0]))
	}
	r.figure(line)
	early()
	if open > 0 && len(total) > 1 {
		r.figure(fmt.Sprintf("%s without an answer: the time since the last phase that ended is taken for the next one's", attach.Plural(open, "request")))
	}
	if len(total) == 1 {
		r.figure("it went to " + where)
	} else {
		r.figure("requests went " + chiefly(slow, "to "))
	}
	r.fact(FactStatement, attach.Median(total)*1e3, "")
	r.Not = "The times are HAProxy's: what the server did meanwhile is not in it."
	if open > 0 {
		r.Not = "Whether the server worked on a request that got no answer, still waited for the rest of it from the client, never saw it, or its answer was lost: HAProxy only knows that none came."
	}
	switch t := attach.Median(total); {
	case t >= 0.1 && 2*by[attach.Largest(by)[0]] <= float64(len(total)):
		r.Means = "No phase has most of the time of most requests: each lost it somewhere else."
		r.next("grep 'haproxy\\[' of more lines", "which phase has the time of most requests (Tq/Tw/Tc/Tr/Tt)")
	case t < 0.1:
		if len(ends) > 0 || open > 0 {
			r.Means = "Requests end soon in the median, and some without an answer."
			return r.done(attach.CannotTell)
		}
		return r.fastAsARule(total)
	case attach.Median(queue) >= 0.5*t:
		r.Means = "Requests wait in HAProxy's queue for a free slot of the server."
		r.candidate("pool-exhaustion", line)
	case attach.Median(connect) >= 0.5*t:
		r.outside("the way to the server behind HAProxy, or its full queue of connections: it did not accept in time", line, ratio(attach.Median(connect), t))
	case attach.Median(server) >= 0.5*t && 2*open > len(total):
		r.outside("the server behind HAProxy, or the way to it and back: it took the connection, and no answer came", line, ratio(attach.Median(server), t))
	case attach.Median(server) >= 0.5*t:
		r.outside("the server behind HAProxy", line, ratio(attach.Median(server), t))
	case attach.Median(send) >= 0.5*t:
		r.Means = "The client, or the network to it, sends its request late."
	default:
		r.Means = "Most of the time passes after the server's answer has started: the server sends its data slowly, or the client reads slowly."
	}
	return r.done(attach.CannotTell)
}

func readNginx(p *attach.Part) attach.Reading {
	r := &result{}
	var total, up, connect, own []float64
	for _, l := range p.Lines {
		a, b := nginxRT.FindStringSubmatch(l.Text), upstreamTime(l.Text)
		if a == nil {
			a = nginxIngress.FindStringSubmatch(l.Text)
		}
		if m := nginxConn.FindStringSubmatch(l.Text); m != nil {
			v, _ := number(m[1])
			connect = append(connect, v)
		}
		if a == nil {
			continue
		}
		x, _ := number(a[1])
		if b == nil {
			own = append(own, x)
			continue
		}
		y, _ := number(b[1])
		total, up = append(total, x), append(up, y)
	}
	r.Title = "nginx log with times, " + attach.Plural(len(total)+len(own), "request")
	if len(total) == 0 {
		if len(own) > 0 {
			r.figure(nginxAnswered(own))
			r.Means = "nginx answered these itself, as from its cache or with a file: no upstream is in them."
		}
		return r.done(attach.CannotTell)
	}
	line := fmt.Sprintf("median request %s, of it the upstream %s; at most %s",
		dur(attach.Median(total)), dur(attach.Median(up)), dur(slices.Max(total)))
	if len(total) == 1 {
		line = fmt.Sprintf("the request to an upstream took %s, of it the upstream %s", dur(total[0]), dur(up[0]))
	}
	r.figure(line)
	if len(own) > 0 {
		r.figure(nginxAnswered(own))
	}
	r.Not = "The times are nginx's, in milliseconds; what the upstream did meanwhile is not in it."
	switch {
	case attach.Median(total) < 0.1:
		return r.fastAsARule(append(slices.Clone(total), own...))
	case len(total) < 3 && slices.Max(total) < 0.5:
		r.Means = "These are too few requests, and too short ones, to call anything slow."
	case len(connect) > 0 && attach.Median(connect) >= 0.2*attach.Median(total):
		r.figure(fmt.Sprintf("median connect to the upstream %s", dur(attach.Median(connect))))
		r.Means = "Connecting takes long: a full accept queue of the upstream, packets that are lost, or nginx's own worker, which sees late what has come."
		r.candidate("cpu-contention",
			"nginx's worker may be what is late: its own clock counts that as time of the upstream")
		r.next("pidstat -u -t -p $(pgrep -d, nginx) 1 10; ss -lnt; nstat -az | grep -E 'ListenOverflows|RetransSegs'", "tells a busy worker from a full queue and from lost packets")
	case attach.Median(up) >= 0.5*attach.Median(total):
		r.outside("the upstream behind nginx", line, ratio(attach.Median(up), attach.Median(total)))
	default:
		r.Means = "The upstream answers sooner than the request ends: the client sends or reads slowly, or nginx itself waits."
	}
	return r.done(attach.CannotTell)
}

// nginxAnswered says of requests that went to no upstream how long they took.
func nginxAnswered(own []float64) string {
	if slices.Max(own) == 0 {
		return attach.Plural(len(own), "request") + " without an upstream, as from nginx's cache: less than 1 ms"
	}
	return fmt.Sprintf("%s without an upstream, as from nginx's cache: %s",
		attach.Plural(len(own), "request"), spread(own))
}
