package systool

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// iftop is iftop's text (-t): how much goes between which hosts.
var iftop = &attach.Kind{
	Name:    "iftop",
	Hints:   []string{"# Host name (port/service", "interface: ", "Listening on ", "Total send rate:"},
	Context: true,
	Claim:   claimIftop,
	Read:    readIftop,
}

var (
	iftopHead = pattern.New(`^\s*# Host name \(port/service if enabled\)\s+last 2s`)
	iftopRow  = pattern.New(`^\s*(?:\d+ )?\s*\S.*\s(?:=>|<=)\s+[\d.]+[KMG]?b\s`)
	iftopSum  = pattern.New(`^(?:Total send rate|Total receive rate|Total send and receive rate|Peak rate \(sent/received/total\)|Cumulative \(sent/received/total\)):\s`)
	iftopTop  = pattern.New(`^(?:interface: \S+|IP address is: \S+|MAC address is: \S+|IPv6 address is: \S+|Listening on \S+|[-=]{20,})$`)
)

func claimIftop(lines []paste.Line) int {
	sure := false
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		t := strings.TrimSpace(text)
		switch {
		case iftopHead.MatchString(text), iftopSum.MatchString(t):
			sure = true
		case iftopRow.MatchString(text + " "), iftopTop.MatchString(t):
		default:
			return false
		}
		return true
	})
	return attach.ClaimIf(sure, n)
}

func readIftop(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title = "iftop"
	for _, l := range p.Lines {
		if t := strings.TrimSpace(l.Text); strings.HasPrefix(t, "Total send") ||
			strings.HasPrefix(t, "Total receive") || strings.HasPrefix(t, "Peak rate") {
			v.figure("%s", strings.Join(strings.Fields(t), " "))
		}
	}
	v.means("it says how much goes over the network, in bits a second over 2, 10 and 40 s: nothing of waiting")
	r := v.done()
	r.State = attach.Context
	return r
}
