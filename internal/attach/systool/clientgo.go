package systool

import (
	"fmt"
	"slices"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// clientGo is what clients of Kubernetes log of waits that they impose on themselves.
var clientGo = &attach.Kind{
	Name:      "client-go throttling",
	Hints:     []string{"client-side throttling", "Throttling request took "},
	Marks:     []string{"client-side throttling", "Throttling request took "},
	Single:    true,
	Scattered: true,
	Claim: func(lines []paste.Line) int {
		return logRun(lines, func(l paste.Line) bool { return clientWait.MatchString(l.Text) })
	},
	Read: readClientGo,
}

var clientWait = pattern.New(`(?:Waited for|Throttling request took) ([\d.hmsuµn]+)(?:,| due to client-side throttling)`)

// clientLong is a wait that somebody feels who waits for a command.
const clientLong = 3 * time.Second

func readClientGo(p *attach.Part) attach.Reading {
	v := &verdict{}
	var waits []float64
	for _, l := range p.Lines {
		if m := clientWait.FindStringSubmatch(l.Text); m != nil {
			if d, err := time.ParseDuration(m[1]); err == nil {
				waits = append(waits, d.Seconds())
			}
		}
	}
	v.Title = "client-go, " + attach.Plural(len(p.Lines), "wait") + " by its own limit of requests"
	if len(waits) == 0 {
		v.unsure = true
		return v.done()
	}
	most := slices.Max(waits)
	line := fmt.Sprintf("waits of %.3g s in the median, %.3g s at most, %.3g s in these lines",
		attach.Median(waits), most, attach.Sum(waits))
	v.figure("%s", line)
	v.not("that the API server is slow: the client waits before it sends")
	if most < clientLong.Seconds() && len(waits) < 10 {
		v.means("the client held back a few requests for short: it sends many at once")
		return v.done()
	}
	v.outside("the client's own limit of requests a second (QPS and burst of client-go)", 0, line)
	v.unsure = true
	v.means("the client waits for its own limit of requests a second, which its flags or code set")
	v.next("grep -c 'client-side throttling' the client's log", "how much of its time it waited")
	return v.done()
}
