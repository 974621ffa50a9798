package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// routerLog reads access logs of Traefik and Caddy, which have the time of each request.
var routerLog = &attach.Kind{
	Name:      "access log of Traefik or Caddy",
	Hints:     []string{`"http.log.access`, `"OriginDuration"`, `" "http://`, `" "https://`},
	Marks:     []string{`"http.log.access`, `"OriginDuration"`, `" "http://`, `" "https://`},
	Single:    true,
	Scattered: true,
	Claim: func(lines []paste.Line) int {
		return run(lines, func(text string) bool { _, ok := routedRequest(text); return ok })
	},
	Read: readRouterLog,
}

var (
	// Traefik's common form has behind the client's words the number of the request, the router,
	// the server behind it and whole milliseconds.
	traefikText = pattern.New(`" \d{3} (?:\d+|-) "[^"]*" "[^"]*" \d+ "[^"]*" "([^"]*)" (\d+)ms$`)
	traefikAll  = pattern.New(`"Duration": ?(\d+)\b`)
	traefikBack = pattern.New(`"OriginDuration": ?(\d+)\b`)
	traefikTo   = pattern.New(`"ServiceAddr": ?"([^"]+)"`)
	caddyTook   = pattern.New(`"logger": ?"http\.log\.access[^"]*".*"duration": ?"?([\d.e+-]+)(m?s)?"?[,}]`)
)

// routed is a request: how long it took, and how long the server behind took of that; -1: not said.
type routed struct {
	took, behind float64
	to           string
}

func routedRequest(text string) (q routed, ok bool) {
	q.behind = -1
	if m := traefikText.FindStringSubmatch(text); m != nil {
		ms, _ := number(m[2])
		q.took, q.to = ms/1e3, m[1]
		return q, true
	}
	if back := traefikBack.FindStringSubmatch(text); back != nil {
		all := traefikAll.FindStringSubmatch(text)
		if all == nil {
			return q, false
		}
		ns, _ := number(all[1])
		theirs, _ := number(back[1])
		q.took, q.behind = ns/1e9, theirs/1e9
		if m := traefikTo.FindStringSubmatch(text); m != nil {
			q.to = m[1]
		}
		return q, true
	}
	if m := caddyTook.FindStringSubmatch(text); m != nil {
		s, ok := number(m[1])
		if m[2] == "ms" {
			s /= 1e3
		}
		q.took = s
		return q, ok && sane(s)
	}
	return q, false
}

func readRouterLog(p *attach.Part) attach.Reading {
	r := &result{}
	var took, behind []float64
	to := map[string]float64{}
	for _, l := range p.Lines {
		q, ok := routedRequest(l.Text)
		if !ok {
			continue
		}
		took = append(took, q.took)
		if q.behind >= 0 {
			behind = append(behind, q.behind)
		}
		if q.to != "" && q.to != "-" && len(to) < mostOwners {
			to[q.to]++
		}
	}
	name := "Traefik's"
	if strings.Contains(p.Lines[0].Text, "http.log.access") {
		name = "Caddy's"
	}
	r.Title = name + " access log, " + attach.Plural(len(took), "request")
	if len(took) == 0 {
		return r.done(attach.CannotTell)
	}
	line := fmt.Sprintf("median request %s, at most %s", dur(attach.Median(took)), dur(slices.Max(took)))
	if len(took) == 1 {
		line = "the request took " + dur(took[0])
	}
	if len(behind) > 0 {
		line += fmt.Sprintf("; the server behind took %s", spread(behind))
	}
	r.figure(line)
	if len(to) > 0 {
		r.figure("requests went " + chiefly(to, "to "))
	}
	r.Not = "What the server behind did meanwhile; reading the request and sending the answer to the client are in the time too."
	switch t := attach.Median(took); {
	case t < 0.1:
		return r.fastAsARule(took)
	case len(behind) == len(took) && attach.Median(behind) >= 0.5*t:
		r.outside("the server behind the proxy", line, ratio(attach.Median(behind), t))
	case len(behind) == len(took):
		r.Means = "The server's time is the smaller part: the client reads or sends slowly, or the proxy itself waits."
	default:
		r.Means = "Requests take long; how much of it the server behind took is not in these lines."
	}
	r.next("whystall diagnose --pid PID   # on the server behind", "what its requests wait for")
	return r.done(attach.CannotTell)
}
