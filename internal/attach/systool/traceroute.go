package systool

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// traceroute lists the hops to a machine with the round trips of a few packets each.
var traceroute = &attach.Kind{
	Name:  "traceroute",
	Hints: []string{"traceroute", "tracepath", " ms", " * *"},
	Claim: claimTraceroute,
	Read:  readTraceroute,
}

var (
	routeHead = pattern.New(`^traceroute to \S+ \([\d.a-f:]+\), \d+ hops max`)
	routeHop  = pattern.New(`^(\d{1,3}) +((?:\S+ \([\d.a-f:]+\)|[\d.]+|[\da-f:]{3,})(?: \[\S+\])?)((?: +(?:[\d.]+ ms(?: ![A-Z\d]*)?|\*|\S+ \([\d.a-f:]+\)))+)$`)
	routeNone = pattern.New(`^\d{1,3} +\*( +\*)*$`)
	routeTime = pattern.New(`([\d.]+) ms`)
)

func claimTraceroute(lines []paste.Line) int {
	hops, headed := 0, false
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		text = strings.TrimSpace(text)
		switch {
		case routeHead.MatchString(text):
			headed = true
			return true
		case len(text) < 240 && routeHop.MatchString(text) && strings.Contains(text, " ms"):
			hops++
			return true
		}
		return (headed || hops > 0) && routeNone.MatchString(text)
	})
	return attach.ClaimIf(hops > 0 && (headed || hops > 1), n)
}

func readTraceroute(p *attach.Part) attach.Reading {
	v := &verdict{}
	last, name, hops, silent := 0.0, "", 0, 0
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if m := routeHop.FindStringSubmatch(text); m != nil {
			var times []float64
			for _, t := range routeTime.FindAllStringSubmatch(m[3], 8) {
				f, _ := number(t[1])
				times = append(times, f)
			}
			hops++
			last, name, silent = attach.Median(times), fmt.Sprintf("hop %s, %s", m[1], m[2]), 0
		} else if routeNone.MatchString(text) {
			silent++
		}
	}
	v.Title = "traceroute, " + attach.Plural(hops, "hop") + " that answer"
	v.unsure, v.Glance = true, true
	v.figure("%s: %s ms at the median of its packets", name, plain(last))
	if silent > 0 {
		v.figure("%s behind it do not answer", attach.Plural(silent, "hop"))
	}
	v.means("it shows the way and some round trips: three packets a hop say nothing of loss")
	v.not("a hop that does not answer, or late, is mostly a router that has better to do: only the last hop's times count")
	v.next("mtr -r -c 60 HOST", "loss and round trips of many packets, hop by hop")
	return v.done()
}
