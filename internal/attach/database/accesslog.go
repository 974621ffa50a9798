package database

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
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
	Marks:     []string{"request_time", "upstream_response_time", " urt="},
	Hints:     []string{"rt=", "request_time", "urt=", "upstream_response_time"},
	Single:    true,
	Scattered: true,
	Claim:     func(lines []paste.Line) int { return run(lines, isNginx) },
	Read:      readNginx,
}

var (
	haLine  = regexp.MustCompile(`\[\d+/\w+/\d{4}:\d\d:\d\d:\d\d\.\d+\] \S+ (\S+)/(\S+) (-?\d+)/(-?\d+)/(-?\d+)/(-?\d+)/\+?(\d+) (-?\d+) `)
	nginxRT = regexp.MustCompile(`\b(?:rt|request_time|"request_time")"?[=:] ?"?(\d+\.\d+)`)
	nginxUp = regexp.MustCompile(`\b(?:urt|upstream_response_time|upstream_time|us|urpt)"?[=:] ?"?(\d+\.\d+)`)
	// nginxHead and nginxConn are parts of the upstream's time: to its first line, to connect.
	nginxHead = regexp.MustCompile(`\b(?:uht|upstream_header_time)"?[=:] ?"?(\d+\.\d+)`)
	nginxConn = regexp.MustCompile(`\b(?:uct|upstream_connect_time)"?[=:] ?"?(\d+\.\d+)`)
)

func isNginx(text string) bool { return nginxRT.MatchString(text) && upstreamTime(text) != nil }

// upstreamTime is the upstream's whole time, or that until its first line where a log has no other.
func upstreamTime(text string) []string {
	if m := nginxUp.FindStringSubmatch(text); m != nil {
		return m
	}
	return nginxHead.FindStringSubmatch(text)
}

func readHAProxy(p *attach.Part) attach.Reading {
	r := &result{}
	var queue, connect, server, total []float64
	slow := map[string]int{}
	for _, l := range p.Lines {
		m := haLine.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		ms := func(i int) float64 { v, _ := number(m[i]); return max(0, v) / 1e3 }
		queue, connect, server, total = append(queue, ms(4)), append(connect, ms(5)), append(server, ms(6)), append(total, ms(7))
		slow[m[1]+"/"+m[2]]++
	}
	r.Title = "HAProxy log, " + attach.Plural(len(total), "request")
	if len(total) == 0 {
		return r.done(attach.CannotTell)
	}
	line := fmt.Sprintf("median request %s: queue %s, connect %s, server's answer %s; at most %s", dur(attach.Median(total)), dur(attach.Median(queue)), dur(attach.Median(connect)), dur(attach.Median(server)), dur(slices.Max(total)))
	r.figure(line)
	r.figure("most requests at " + commonest(slow))
	r.fact(FactStatement, attach.Median(total)*1e3, "")
	r.Not = "The times are HAProxy's: what the server did meanwhile is not in it."
	switch t := attach.Median(total); {
	case t < 0.1:
		r.Means = "Requests are answered fast in the median."
		return r.done(attach.Healthy)
	case attach.Median(queue) >= 0.5*t:
		r.Means = "Requests wait in HAProxy's queue for a free slot of the server."
		r.candidate("pool-exhaustion", line)
	case attach.Median(server) >= 0.5*t:
		r.outside("the server behind HAProxy", line, ratio(attach.Median(server), t))
	default:
		r.Means = "Neither queue nor server holds most of the time: the client sends or reads slowly."
	}
	return r.done(attach.CannotTell)
}

func readNginx(p *attach.Part) attach.Reading {
	r := &result{}
	var total, up, connect []float64
	for _, l := range p.Lines {
		a, b := nginxRT.FindStringSubmatch(l.Text), upstreamTime(l.Text)
		if m := nginxConn.FindStringSubmatch(l.Text); m != nil {
			v, _ := number(m[1])
			connect = append(connect, v)
		}
		if a == nil || b == nil {
			continue
		}
		x, _ := number(a[1])
		y, _ := number(b[1])
		total, up = append(total, x), append(up, y)
	}
	r.Title = "nginx log with times, " + attach.Plural(len(total), "request")
	if len(total) == 0 {
		return r.done(attach.CannotTell)
	}
	line := fmt.Sprintf("median request %s, of it the upstream %s; at most %s", dur(attach.Median(total)), dur(attach.Median(up)), dur(slices.Max(total)))
	r.figure(line)
	r.Not = "The times are nginx's, in milliseconds; what the upstream did meanwhile is not in it."
	switch {
	case attach.Median(total) < 0.1:
		r.Means = "Requests are answered fast in the median."
		return r.done(attach.Healthy)
	case len(connect) > 0 && attach.Median(connect) >= 0.2*attach.Median(total):
		r.figure(fmt.Sprintf("median connect to the upstream %s", dur(attach.Median(connect))))
		r.Means = "Connecting takes long: a full accept queue of the upstream, packets that are lost, or nginx's own worker, which sees late what has come."
		r.candidate("cpu-contention", "nginx's worker may be what is late: its own clock counts that as time of the upstream")
		r.next("pidstat -u -t -p $(pgrep -d, nginx) 1 10; ss -lnt; nstat -az | grep -E 'ListenOverflows|RetransSegs'", "tells a busy worker from a full queue and from lost packets")
	case attach.Median(up) >= 0.5*attach.Median(total):
		r.outside("the upstream behind nginx", line, ratio(attach.Median(up), attach.Median(total)))
	default:
		r.Means = "The upstream answers sooner than the request ends: the client sends or reads slowly, or nginx itself waits."
	}
	return r.done(attach.CannotTell)
}
