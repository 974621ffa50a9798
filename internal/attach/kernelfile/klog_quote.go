package kernelfile

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// klogQuote is a whole message of the kernel that stands in a sentence, in the marks of code. It
// may be of this host or an example, so no cause follows from it; but it is not nothing either.
var klogQuote = &attach.Kind{
	Name:  "kernel message in a sentence",
	Hints: []string{"`"},
	Claim: func(lines []paste.Line) int { return attach.ClaimIf(quoted(lines[0]) != "", 1) },
	Read: func(p *attach.Part) attach.Reading {
		text := quoted(p.Lines[0])
		one := *p
		one.Lines = []paste.Line{{Text: text, N: p.Lines[0].N}}
		r := readKlog(&one)
		r.Title = "a message of the kernel that a sentence quotes"
		r.Figures = append([]string{fmt.Sprintf("%.120s", printed(text))}, r.Figures...)
		r.State, r.Glance, r.Signs, r.Facts = attach.CannotTell, true, nil, nil
		r.Not = "when it came, how often, and that it came on this host: a sentence quotes it"
		r.Next = []attach.Next{{Command: "dmesg -T | tail -n 200", Why: "the kernel's own log around it"}}
		return r
	},
}

// leastQuoted is shorter than any whole message: less is the name of one.
const leastQuoted = 40

// quoted is the first whole message of the kernel between marks of code in a sentence; "": none.
func quoted(l paste.Line) string {
	if _, stamped := kernelText(l); stamped || l.Raw != "" || !prose(l) {
		return ""
	}
	spans := strings.Split(l.Text, "`")
	for i := 1; i+1 < len(spans) && i < 16; i += 2 {
		text := strings.TrimSpace(spans[i])
		if e := eventOf(text); len(text) >= leastQuoted && e != nil &&
			strings.HasPrefix(text, e.line.FindStringSubmatch(text)[0]) {
			return text
		}
	}
	return ""
}
