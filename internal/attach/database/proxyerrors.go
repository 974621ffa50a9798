package database

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// proxyErrors is what nginx and HAProxy log of servers behind them that do not answer.
var proxyErrors = &attach.Kind{
	Name: "errors of a proxy",
	Hints: []string{"upstream timed out", "upstream server temporarily disabled",
		"no live upstreams", " is DOWN, reason: ", " is UP, reason: ",
		"buffered to a temporary file", "worker_connections are not enough",
		") while connecting to upstream", "while reading response header from upstream",
		"limiting requests", "limiting connections"},
	Marks: []string{"upstream timed out", "upstream server temporarily disabled",
		"no live upstreams", " is DOWN, reason: ", "buffered to a temporary file",
		"worker_connections are not enough", "while connecting to upstream",
		"while reading response header from upstream", "limiting requests", "limiting connections"},
	Single:    true,
	Scattered: true,
	Claim: func(lines []paste.Line) int {
		return run(lines, func(text string) bool {
			return nginxLate.MatchString(text) || nginxOff.MatchString(text) ||
				nginxDisk.MatchString(text) || nginxOwn.MatchString(text) ||
				nginxGone.MatchString(text) || haproxyDown.MatchString(text)
		})
	},
	Read: readProxyErrors,
}

var (
	nginxLate   = pattern.New(`upstream timed out \(110: [^)]*\) while (connecting to upstream|reading response header from upstream|reading upstream|sending request to upstream|SSL handshaking to upstream)`)
	nginxOff    = pattern.New(`upstream server temporarily disabled while|no live upstreams while connecting to upstream`)
	nginxDisk   = pattern.New(`\[warn\] .*an? (upstream response|client request body) is buffered to a temporary file`)
	nginxOwn    = pattern.New(`\[(?:alert|warn|error)\] .*?\b(?:\d+ worker_connections are not enough|limiting (?:requests|connections)(?:, excess: [\d.]+)? by zone)`)
	nginxGone   = pattern.New(`\[(?:error|info|crit)\] .*?\b(?:connect|recv|send|readv|SSL_do_handshake)\(\) failed \((\d+: [^)]*)\) while ([a-zA-Z ]*upstream)|upstream prematurely closed connection while`)
	nginxTo     = pattern.New(`upstream: "\w+://([^/"]+)`)
	haproxyDown = pattern.New(`Server (\S+) is (DOWN|UP), reason: ([^,]+)(?:, code: \d+)?(?:, info: \\?"[^"]*")?, check duration: (\d+)ms\. (\d+) active`)
)

func readProxyErrors(p *attach.Part) attach.Reading {
	r := &result{}
	phases, to := map[string]float64{}, map[string]float64{}
	late, off := 0, 0
	disk, gone := map[string]float64{}, map[string]float64{}
	full, limited := 0, 0
	var downs []string
	for _, l := range p.Lines {
		if m := nginxLate.FindStringSubmatch(l.Text); m != nil {
			late++
			phases[m[1]]++
			if u := nginxTo.FindStringSubmatch(l.Text); u != nil {
				to[u[1]]++
			}
		} else if m := haproxyDown.FindStringSubmatch(l.Text); m != nil {
			if m[2] == "DOWN" {
				downs = append(downs,
					fmt.Sprintf("%s went down: %s after %s ms, %s servers are left", m[1], m[3], m[4], m[5]))
			}
		} else if m := nginxDisk.FindStringSubmatch(l.Text); m != nil {
			disk[m[1]]++
		} else if nginxOwn.MatchString(l.Text) {
			if strings.Contains(l.Text, "worker_connections are not enough") {
				full++
			} else {
				limited++
			}
		} else if m := nginxGone.FindStringSubmatch(l.Text); m != nil {
			gone[cmp.Or(strings.TrimSpace(m[1]+" while "+m[2]), "upstream closed too early")]++
		} else {
			off++
		}
	}
	r.Title = "errors of a proxy, " + attach.Plural(len(p.Lines), "line")
	if late > 0 {
		line := fmt.Sprintf("upstream timed out: %s, %s", times(late), chiefly(phases, "while "))
		if len(to) > 0 {
			line += ", " + chiefly(to, "of ")
		}
		r.figure(line)
		where := "the server behind the proxy, which did not answer within the proxy's timeout"
		if phases["connecting to upstream"] > float64(late)/2 {
			where = "the way to the server behind the proxy, or its full queue of connections: it did not accept in time"
		}
		r.outside(where, line, 0)
	}
	if full > 0 {
		line := "all connections of a worker of nginx were in use (worker_connections): " + times(full)
		r.figure(line)
		r.found("pool-exhaustion", finding.Possible, line, 0)
		r.next("curl -s localhost/nginx_status", "how many of them are at work, and how many are only kept open")
	}
	if len(gone) > 0 {
		line := fmt.Sprintf("a server behind it failed: %s, %s",
			times(int(attach.Sum(slices.Collect(maps.Values(gone))))), chiefly(gone, ""))
		r.figure(line)
		if late == 0 {
			r.outside("the server behind the proxy, which refuses or closes connections", line, 0)
		}
	}
	if limited > 0 {
		r.figure("requests held back or refused by nginx's own limits (limit_req, limit_conn): " + times(limited))
	}
	if off > 0 {
		r.figure("a server was taken out for its failures: " + times(off))
	}
	if len(downs) > 0 {
		r.figure(downs[0])
		if len(r.Signs) == 0 {
			r.outside("a server behind the proxy that fails its checks", downs[0], 0)
		}
	}
	if len(downs) > 1 {
		r.figure("servers that went down: " + times(len(downs)))
	}
	if len(disk) > 0 {
		r.figure("larger than nginx's buffers, and written to a temporary file: " + chiefly(disk, ""))
	}
	if len(r.Signs) == 0 && limited > 0 && late+off == 0 {
		r.Means = "nginx holds requests back on purpose, by limits that somebody has set: with nodelay it refuses them, without it delays them."
		r.Not = "How long a request was held back."
		return r.done(attach.CannotTell)
	}
	if len(r.Signs) == 0 && len(disk) > 0 && late+off == 0 {
		r.Means = "Answers or bodies larger than the proxy's buffers went through its disk: no error, and no time is in these lines."
		r.Not = "How long the requests took, and whether the disk was slow."
		r.next("$request_time and $upstream_response_time in nginx's log_format",
			"how long these requests took, and where")
		return r.done(attach.CannotTell)
	}
	if len(r.Signs) == 0 {
		r.Means = "Servers came back, or were taken out for failures that are not in these lines."
	}
	r.Not = "How long the server took: a timeout is the proxy's setting."
	r.next("whystall diagnose --pid PID on that server", "what its requests wait for")
	return r.done(attach.CannotTell)
}
