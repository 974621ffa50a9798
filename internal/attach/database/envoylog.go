package database

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// envoyLog is Envoy's log of requests: its default form, Istio's, JSON, and pairs that somebody
// chose. What it has over others is a flag that says why a request ended.
var envoyLog = &attach.Kind{
	Name:      "Envoy access log",
	Hints:     []string{"response_flag", "HTTP/1", "HTTP/2", "\"- - -\" 0 "},
	Marks:     []string{"response_flag", "\" 504 UT ", "\" 503 U", "\" 0 DC ", "\"- - -\" 0 "},
	Single:    true,
	Scattered: true,
	Claim: func(lines []paste.Line) int {
		return run(lines, func(text string) bool { _, ok := envoyRequest(text); return ok })
	},
	Read: readEnvoyLog,
}

var (
	// `[time] "GET / HTTP/1.1" 504 UT 0 24 15001 - "-"`; Istio's form has details in between
	envoyText  = pattern.New(`^\[\d{4}-\d\d-\d\dT[\d:.]+Z?\] "[^"]*" \d{1,3} ([A-Z][\w,]*|-) (?:\S+ \S+ "[^"]*" )?\d+ \d+ (\d+) (\d+|-)(?: |$)`)
	envoyPeer  = pattern.New(` "([\w.-]+:\d+)" \S+ `) // Istio's form has the server behind its names
	envoyFlag  = pattern.New(`"?\bresponse_flags?"?[=:] ?"?([A-Z][A-Za-z,]*|-)"?(?:[ ,}]|$)`)
	envoyTook  = pattern.New(`"?\b(?:duration|total_time_ms|duration_ms)"?[=:] ?"?(\d+)"?(?:[ ,}]|$)`)
	envoyTheir = pattern.New(`"?\b(?:upstream_service_time|x-envoy-upstream-service-time)"?[=:] ?"?(\d+|-|null)"?(?:[ ,}]|$)`)
	envoyTo    = pattern.New(`"?\b(?:upstream_host|upstream)"?[=:] ?"?([\w.:/-]+:\d+)`)
)

// envoyFlags are what flags mean, in a person's words, of those that cost time.
var envoyFlags = map[string]string{
	"UT": "the server did not answer within the route's timeout (UT)",
	"UF": "the connection to the server failed (UF)", "UC": "the server closed the connection (UC)",
	"UR": "the server reset the request (UR)", "URX": "retries were used up (URX)",
	"UO": "too many requests waited, by Envoy's own limits (UO)", "UH": "no server is healthy (UH)",
	"DC": "the client closed the connection (DC)", "SI": "the stream was idle too long (SI)",
	"DT": "the request or connection was older than its limit (DT)", "RL": "the rate limit refused it (RL)",
}

type envoyLine struct {
	flag        string
	took, their float64 // s; their is negative where the server gave no answer
	to          string
	tcp         bool // a connection, whose time is how long it stood
}

func envoyRequest(text string) (l envoyLine, ok bool) {
	l.their = -1
	if m := envoyText.FindStringSubmatch(text); m != nil {
		l.flag = m[1]
		l.took, _ = number(m[2])
		if v, ok := number(m[3]); ok {
			l.their = v / 1e3
		}
		l.took /= 1e3
		l.tcp = strings.Contains(text, `] "- - -" 0 `)
		if m := envoyPeer.FindStringSubmatch(text); m != nil {
			l.to = m[1]
		}
		return l, true
	}
	flag, took := envoyFlag.FindStringSubmatch(text), envoyTook.FindStringSubmatch(text)
	if flag == nil || took == nil {
		return l, false
	}
	l.flag = flag[1]
	l.took, _ = number(took[1])
	l.took /= 1e3
	if m := envoyTheir.FindStringSubmatch(text); m != nil {
		if v, ok := number(m[1]); ok {
			l.their = v / 1e3
		}
	}
	if m := envoyTo.FindStringSubmatch(text); m != nil {
		l.to = m[1]
	}
	return l, true
}

func readEnvoyLog(p *attach.Part) attach.Reading {
	r := &result{}
	var took, their []float64
	tcp := 0
	flags, to := map[string]float64{}, map[string]float64{}
	for _, line := range p.Lines {
		l, ok := envoyRequest(line.Text)
		if !ok {
			continue
		}
		took = append(took, l.took)
		if l.tcp {
			tcp++
		}
		if l.their >= 0 {
			their = append(their, l.their)
		}
		flag, _, _ := strings.Cut(l.flag, ",")
		if say := envoyFlags[flag]; say != "" {
			flags[say]++
		}
		if l.to != "" && len(to) < mostOwners {
			to[l.to]++
		}
	}
	r.Title = "Envoy's log, " + attach.Plural(len(took), "request")
	if len(took) == 0 {
		return r.done(attach.CannotTell)
	}
	if tcp == len(took) {
		return envoyTCP(r, took, flags, to)
	}
	line := fmt.Sprintf("median request %s, at most %s", dur(attach.Median(took)), dur(slices.Max(took)))
	if len(their) > 0 {
		line += fmt.Sprintf("; of %s with an answer the server took %s in the median",
			attach.Plural(len(their), "request"), dur(attach.Median(their)))
	}
	r.figure(line)
	if len(flags) > 0 {
		r.figure(fmt.Sprintf("ended early: %s of %d, %s",
			times(int(attach.Sum(slices.Collect(maps.Values(flags))))), len(took), chiefly(flags, "as ")))
	}
	if len(to) > 0 {
		r.figure("requests went " + chiefly(to, "to "))
	}
	r.Not = "What the server did meanwhile: the times are Envoy's. The status of gRPC is 200 for failures too."
	timeouts := flags[envoyFlags["UT"]]
	switch {
	case 2*timeouts >= float64(len(took)):
		r.outside("the server behind Envoy, which did not answer within the route's timeout",
			r.Figures[1], timeouts/float64(len(took)))
	case attach.Median(took) < 0.1 && len(flags) == 0:
		return r.fastAsARule(took)
	case len(their) > 0 && 2*len(their) >= len(took) && attach.Median(their) >= 0.5*attach.Median(took):
		r.outside("the server behind Envoy", line, ratio(attach.Median(their), attach.Median(took)))
	case len(flags) > 0:
		r.Means = "Requests ended early; the flag says who ended them."
		if flags[envoyFlags["UO"]] > 0 {
			r.next("curl -s localhost:9901/stats | grep -E 'overflow|pending_active'", "which of Envoy's own limits was met")
		} else {
			r.next("whystall diagnose --pid PID   # on the server behind", "what its requests wait for")
		}
	default:
		r.Means = "The server's time is the smaller part: the client reads or sends slowly, or Envoy itself waits."
		if len(their) == 0 {
			r.Means = "The server's time is not in these lines."
		}
	}
	return r.done(attach.CannotTell)
}

// envoyTCP says what lines of connections say, whose times are how long they stood.
func envoyTCP(r *result, took []float64, flags, to map[string]float64) attach.Reading {
	r.Title = "Envoy's log, " + attach.Plural(len(took), "connection")
	ended := int(attach.Sum(slices.Collect(maps.Values(flags))))
	r.Not = "How fast requests were answered: a connection's time is how long it stood, and of one that failed how long it was tried."
	if ended == 0 {
		r.Means = "No connection was ended by a flag that costs time."
		return r.done(attach.CannotTell)
	}
	line := fmt.Sprintf("ended early: %s of %d, %s", times(ended), len(took), chiefly(flags, "as "))
	r.figure(line)
	r.figure("the longest took " + dur(slices.Max(took)))
	if len(to) > 0 {
		r.figure("they went " + chiefly(to, "to "))
	}
	r.Means = "Connections ended early; the flag says who ended them."
	if failed := flags[envoyFlags["UF"]]; 2*failed >= float64(len(took)) {
		r.Means = ""
		r.outside("the server behind Envoy, or the way to it: no connection came about", line,
			failed/float64(len(took)))
	}
	return r.done(attach.CannotTell)
}
