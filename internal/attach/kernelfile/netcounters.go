package kernelfile

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// netDev counts packets of each interface.
var netDev = counted{name: "/proc/net/dev", hints: []string{"Inter-|", "face |", ":"},
	line: netDevLine, least: 1, read: readNetDev}.kind()

func netDevLine(text string) (string, pairs, bool) {
	if strings.HasPrefix(text, "Inter-|") && strings.Contains(text, "Receive") ||
		strings.HasPrefix(text, "face |bytes") {
		return "", pairs{}, true
	}
	name, rest, ok := strings.Cut(text, ":")
	f := strings.Fields(rest)
	if !ok || len(f) != 16 || name == "" || len(name) > 15 || strings.ContainsAny(name, " \t") {
		return "", pairs{}, false
	}
	m, ok := columns(f, "rx bytes", "rx packets", "rx errs", "rx drop", "rx fifo", "rx frame",
		"rx compressed", "multicast", "tx bytes", "tx packets", "tx errs", "tx drop", "tx fifo",
		"colls", "carrier", "tx compressed")
	return name, m, ok
}

// lostShare is a share of packets lost that connections feel.
const lostShare = 0.001

func readNetDev(p *attach.Part, c counts) attach.Reading {
	by, when, boot, seconds := c.since()
	r := attach.Reading{Title: "/proc/net/dev, " + plural(len(c.keys), "interface", "interfaces"),
		State: attach.Healthy, Boot: boot, Time: c.when[0].at}
	if !boot {
		r.Title += fmt.Sprintf(", %d samples%s", len(c.when), over(seconds))
	}
	lost := ""
	for _, k := range c.keys {
		packets := by(k+" rx packets") + by(k+" tx packets")
		drops := by(k+" rx drop") + by(k+" tx drop") + by(k+" rx fifo")
		errs := by(k+" rx errs") + by(k+" tx errs")
		if packets+drops+errs == 0 {
			continue
		}
		text := fmt.Sprintf("%s: %s of %s packets dropped (%s), %s errors, %s", printed(k),
			number(drops), number(packets), percent(ratio(drops, packets)), number(errs), when)
		if seconds > 0 {
			text += fmt.Sprintf("; %s/s in, %s/s out", mem(by(k+" rx bytes")/seconds), mem(by(k+" tx bytes")/seconds))
		}
		r.Figures = append(r.Figures, text)
		if drops+errs >= lostShare*packets {
			lost = k
		}
	}
	r.Means = "Hardly any packet was dropped or broken."
	r.Not = "what a link loses further on: packets lost behind it are seen as retransmissions only"
	switch {
	case len(r.Figures) == 0:
		r.State, r.Means = attach.CannotTell, "No interface counted packets."
	case lost != "" && boot:
		r.State, r.Means = attach.CannotTell,
			fmt.Sprintf("%s dropped packets, or got broken ones, at some time since boot: whether it still does, two readings tell.", printed(lost))
		r.Next = []attach.Next{{Command: "date; cat /proc/net/dev; sleep 10; date; cat /proc/net/dev", Why: "what was added in ten seconds"}}
	case lost != "":
		r.State, r.Means = attach.CannotTell,
			fmt.Sprintf("%s drops packets, or gets broken ones; broadcasts and packets that nobody wants count as dropped as well.", printed(lost))
		r.Next = []attach.Next{{Command: "nstat -n; sleep 10; nstat -z TcpRetransSegs TcpOutSegs",
			Why: "whether connections had to send again"}}
	}
	return r
}
