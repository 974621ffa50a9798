package systool

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// mtr knows reports and screens of mtr: loss and round trips of every hop to a machine.
var mtr = &attach.Kind{
	Name:  "mtr",
	Hints: []string{"Start: ", "|--", "Loss%", "My traceroute", "Packets"},
	Claim: claimMTR,
	Read:  readMTR,
}

var (
	// mtrHop is a hop: its number, its machine, loss, packets, and five times in ms. The sign % is
	// missing where loss takes all of the column, and so are decimals of long times.
	mtrHop   = pattern.New(`^ *(\d+)\.(?:\|--)? +(\S.*?) +([\d.]+)%? +(\d+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$`)
	mtrOther = pattern.New("^ *(\\| +)?(`\\|--|\\|  ?\\|--) +\\S+|^ *\\d+\\.(\\|--)? +(\\?\\?\\?|\\(waiting for reply\\)|\\S+)$|^ {4,}\\S+$")
	mtrHead  = pattern.New(`^ *(HOST: ?\S* +|Host +|HOST +)?Loss% +Snt +Last +Avg +Best +Wrst +St ?Dev$`)
	mtrAbove = pattern.New(`^ *(Start: +\S|My traceroute +\[|\S+ \(\S*\).*\d\d:\d\d:\d\d|Keys: +Help|Packets +Pings$)`)
)

// mtrTrim takes the colours' rest and trailing blanks from a line.
func mtrTrim(text string) string { return strings.TrimRight(text, " \t\r") }

func claimMTR(lines []paste.Line) int {
	hops := 0
	n := attach.ClaimWhile(lines, func(at int, text string) bool {
		text = mtrTrim(text)
		switch {
		case mtrHop.MatchString(text):
			hops++
			return true
		case mtrHead.MatchString(text):
			return true
		}
		return hops > 0 && mtrOther.MatchString(text) || hops == 0 && mtrAbove.MatchString(text)
	})
	return attach.ClaimIf(hops > 0, n)
}

// hop is one machine on the way.
type hop struct {
	n, name                string
	loss                   float64 // percent
	sent                   int
	avg, best, worst, more float64 // ms; more is avg above best
}

func (h hop) String() string { return fmt.Sprintf("hop %s, %s", h.n, h.name) }

// What is worth a word: a round trip this much above its best, in ms, and loss in percent.
const (
	hopMore = 20
	hopLoss = 1
)

func readMTR(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title = "mtr"
	var hops []hop
	for _, l := range p.Lines {
		m := mtrHop.FindStringSubmatch(mtrTrim(l.Text))
		if m == nil {
			continue
		}
		h := hop{n: m[1], name: strings.Join(strings.Fields(m[2]), " ")}
		h.loss, _ = number(m[3])
		h.sent, _ = whole(m[4])
		h.avg, _ = number(m[6])
		h.best, _ = number(m[7])
		h.worst, _ = number(m[8])
		h.more = h.avg - h.best
		if h.sent > 0 && h.loss < 100 {
			hops = append(hops, h)
		}
	}
	if len(hops) == 0 {
		v.unsure = true
		v.means("no hop answers")
		return v.done()
	}
	last := hops[len(hops)-1]
	least, most := last.sent, last.sent
	for _, h := range hops {
		least, most = min(least, h.sent), max(most, h.sent)
	}
	v.Title = fmt.Sprintf("mtr, %s that answer, %d packets each", attach.Plural(len(hops), "hop"), last.sent)
	if least < most {
		v.Title = fmt.Sprintf("mtr, %s that answer, %d to %d packets each",
			attach.Plural(len(hops), "hop"), least, most)
	}
	v.figure("%s: %s ms on average, %s at best, %s at worst, %s %% lost", last, plain(last.avg),
		plain(last.best), plain(last.worst), plain(last.loss))
	v.not("loss at a hop behind which packets arrive is that router's own limit of answers, and no loss")
	lost, late := mtrOrigins(hops)
	if late >= 0 {
		text := fmt.Sprintf("%s: %s ms on average, %s at best, %s at worst", hops[late],
			plain(hops[late].avg), plain(hops[late].best), plain(hops[late].worst))
		v.figure("%s", text)
		v.outside("the network, from "+hops[late].String()+" on: round trips swing", 0, text)
		v.means("round trips swing from %s on, and all behind it have that too: packets queue there or before it", hops[late])
	}
	if lost >= 0 {
		text := fmt.Sprintf("%s %% of the packets to the last hop are lost, from %s on", plain(last.loss), hops[lost])
		v.figure("%s", text)
		v.outside("the network: packets are lost", last.loss/100, text)
		v.means("packets are lost on the way: TCP waits 200 ms and more for each")
	}
	if v.has() {
		v.next("ping -c 100 -i 0.2 GATEWAY", "whether the first hop alone, such as a wireless link, does it")
	}
	v.means("packets arrive, and round trips are even")
	return v.done()
}

// mtrOrigins gives the hop from which on packets are lost, and the one from which on they are late,
// as far as the last hop shows it; -1: they are not.
func mtrOrigins(hops []hop) (lost, late int) {
	lost, late = -1, -1
	last := hops[len(hops)-1]
	for i := len(hops) - 1; i >= 0; i-- {
		if last.loss < hopLoss || hops[i].loss == 0 {
			break
		}
		lost = i
	}
	for i := len(hops) - 1; i >= 0; i-- {
		if last.more < hopMore || last.more < last.best || hops[i].more < hopMore || hops[i].more < last.more/4 {
			break
		}
		late = i
	}
	return lost, late
}
