package systool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var netdev = &attach.Kind{
	Name:  "ip -s link, ifconfig",
	Hints: []string{"mtu ", "Link encap"},
	Claim: claimNetdev,
	Read:  readNetdev,
}

var (
	ipLink      = pattern.New(`^\d+: ([\w.@:-]+): <[A-Z0-9_,-]+> mtu \d+`)
	ipLinkMore  = pattern.New(`^(link/\w+|inet6? |valid_lft |RX( errors)?: +|TX( errors)?: +|altname |vf \d+ |promiscuity )|^\d+( +\d+){3,8}$`)
	ifconfigTop = pattern.New(`^([\w.:-]+?):? +(?:flags=\d+<|Link encap:)`)
	ifconfigRow = pattern.New(`^(inet6? |ether |loop |unspec |RX |TX |device |UP |collisions:|Interrupt:|txqueuelen|Base address|HWaddr|options=|media:|status:)`)
	ifconfigNum = pattern.New(`(packets|errors|dropped|overruns)[: ](\d+)`)
)

func claimNetdev(lines []paste.Line) int {
	headed := false
	return attach.ClaimWhile(lines, func(_ int, text string) bool {
		trimmed := strings.TrimSpace(text)
		if ipLink.MatchString(trimmed) || ifconfigTop.MatchString(trimmed) {
			headed = true
			return true
		}
		return headed && (ipLinkMore.MatchString(trimmed) || ifconfigRow.MatchString(trimmed))
	})
}

// link is what one interface counted since it came up.
type link struct {
	name                   string
	packets, drops, broken float64
}

func parseNetdev(p *attach.Part) (all []link) {
	var names []string
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if m := ipLink.FindStringSubmatch(text); m != nil {
			all, names = append(all, link{name: m[1]}), nil
			continue
		}
		if m := ifconfigTop.FindStringSubmatch(text); m != nil {
			all, names = append(all, link{name: strings.TrimSuffix(m[1], ":")}), nil
			continue
		}
		if len(all) == 0 {
			continue
		}
		now := &all[len(all)-1]
		if strings.HasPrefix(text, "RX") || strings.HasPrefix(text, "TX") {
			for _, m := range ifconfigNum.FindAllStringSubmatch(text, 8) {
				n, _ := number(m[2])
				now.add(m[1], n)
			}
			names = strings.Fields(text)[1:]
			continue
		}
		f := strings.Fields(text)
		if len(names) >= 4 && len(f) == len(names) && numeric(f) {
			for i, n := range names {
				value, _ := number(f[i])
				now.add(n, value)
			}
			names = nil
		}
	}
	return all
}

func (l *link) add(name string, n float64) {
	switch name {
	case "packets":
		l.packets += n
	case "dropped", "missed", "overruns", "overrun":
		l.drops += n
	case "errors":
		l.broken += n
	}
}

func readNetdev(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title = "network interfaces, counters since they came up"
	v.Boot = true
	lost := false
	for _, l := range parseNetdev(p) {
		if l.packets == 0 && l.drops == 0 && l.broken == 0 {
			continue
		}
		share := 100 * (l.drops + l.broken) / max(1, l.packets)
		v.figure("%s: %s of %s packets dropped (%s %%), %s errors", l.name, plain(l.drops), plain(l.packets), plain(share), plain(l.broken))
		lost = lost || share >= 0.1
	}
	if len(v.Figures) == 0 {
		v.figure("no interface counted packets")
	}
	v.not("drops since the interface came up are no drops now; packets of unknown protocols count as well")
	if lost {
		v.unsure = true
		v.means("packets were dropped: whether it still goes on is not in it")
		v.next("ip -s link; sleep 10; ip -s link", "what was added in ten seconds")
	}
	v.means("hardly any packet was dropped or broken")
	return v.done()
}

var tc = &attach.Kind{
	Name:  "tc -s qdisc",
	Hints: []string{"qdisc ", "class "},
	Claim: claimTC,
	Read:  readTC,
}

var (
	tcTop  = pattern.New(`^(qdisc|class) \w+ [\da-f]+:`)
	tcRow  = pattern.New(`^(Sent \d+ bytes|backlog |maxpacket |new_flow|flows|rate |lended:|tokens:|count |memory |capacity|throttled|gc |\(?unsent|ecn_mark|flow_limit|drop_|fq: )|^\d+ (flows|pkt)`)
	tcSent = pattern.New(`Sent \d+ bytes (\d+) pkts? \(dropped (\d+), overlimits (\d+)`)
	tcWait = pattern.New(`backlog (\d+\w*) (\d+)p`)
)

func claimTC(lines []paste.Line) int {
	if !tcTop.MatchString(strings.TrimSpace(lines[0].Text)) {
		return 0
	}
	return attach.ClaimWhile(lines, func(_ int, text string) bool {
		trimmed := strings.TrimSpace(text)
		return tcTop.MatchString(trimmed) || tcRow.MatchString(trimmed)
	})
}

func readTC(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.Boot = "tc -s qdisc, counters since the queue was made", true
	name := ""
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if tcTop.MatchString(text) {
			f := strings.Fields(text)
			name = f[1]
			for i, w := range f {
				if w == "dev" && i+1 < len(f) {
					name += " of " + f[i+1]
				}
			}
			if f[1] == "netem" {
				v.unsure = true
				v.outside("the network: netem delays or drops packets on purpose", 0, text)
				v.means("netem delays or drops packets on purpose")
			}
			continue
		}
		if m := tcSent.FindStringSubmatch(text); m != nil {
			packets, _ := number(m[1])
			dropped, _ := number(m[2])
			if packets > 0 {
				v.figure("%s: %s of %s packets dropped", name, plain(dropped), plain(packets+dropped))
			}
			if dropped > 0.001*packets {
				v.unsure = true
				v.next("tc -s qdisc; sleep 10; tc -s qdisc", "what was added in ten seconds")
			}
		}
		if m := tcWait.FindStringSubmatch(text); m != nil && m[2] != "0" {
			v.figure("%s: %s packets wait at that moment", name, m[2])
		}
	}
	v.not("drops since the queue was made are no drops now")
	if v.unsure {
		v.means("packets were dropped: whether it still goes on is not in it")
	}
	v.means("hardly any packet was dropped")
	return v.done()
}

var ethtool = &attach.Kind{
	Name:  "ethtool -S",
	Hints: []string{"NIC statistics:", "_", ": "},
	Claim: claimEthtool,
	Read:  readEthtool,
}

// ethtoolRow is a counter. Those of a queue have two colons: "rxq0: rx_bytes: 12", "[0]: rx: 1".
var ethtoolRow = pattern.New(`^[\w.\[\]():/ -]+: \d+$`)

// ethtoolLost are parts of names of counters that count packets lost in the card or its driver.
var ethtoolLost = []string{"drop", "discard", "missed", "no_buf", "no_frag", "no_skb", "out_of_buf", "nobuf", "timeout", "error", "allowance_exceeded"}

func claimEthtool(lines []paste.Line) int {
	if strings.TrimSpace(lines[0].Text) != "NIC statistics:" {
		return 0
	}
	return attach.ClaimWhile(lines, func(at int, text string) bool { return at == 0 || ethtoolRow.MatchString(strings.TrimSpace(text)) })
}

func readEthtool(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.Boot = "ethtool -S, counters since the driver started", true
	type counter struct {
		name string
		n    float64
	}
	var lost []counter
	packets := 0.0
	for _, l := range p.Lines[1:] {
		text := strings.TrimSpace(l.Text)
		at := strings.LastIndex(text, ": ")
		if at < 0 {
			continue
		}
		n, _ := number(text[at+2:])
		low := strings.ToLower(text[:at])
		if strings.Contains(low, "rx_packets") || strings.Contains(low, "rx_pkts") {
			packets = max(packets, n) // of the card, or of its busiest queue
		}
		if n > 0 && slices.ContainsFunc(ethtoolLost, func(s string) bool { return strings.Contains(low, s) }) {
			lost = append(lost, counter{text[:at], n})
		}
	}
	slices.SortStableFunc(lost, func(a, b counter) int { return cmp.Compare(b.n, a.n) })
	for i, c := range lost[:min(len(lost), 8)] {
		share := ""
		if i == 0 && packets > 0 && c.n >= packets/1e4 {
			share = fmt.Sprintf(", %s %% of the %s packets of the card or its busiest queue", plain(100*c.n/packets), plain(packets))
		}
		v.figure("%s %s%s", c.name, plain(c.n), share)
	}
	v.not("counters since the driver started say nothing about now")
	if len(v.Figures) > 0 {
		v.unsure = true
		v.means("packets were lost in the card or its driver: whether it still goes on is not in it")
		v.next(fmt.Sprintf("%s; sleep 10; %s", "ethtool -S DEVICE", "ethtool -S DEVICE"), "what was added in ten seconds")
	}
	if len(lost) == 0 {
		v.figure("%s, none of a loss above 0", attach.Plural(len(p.Lines)-1, "counter"))
	}
	v.means("the card counts no loss")
	return v.done()
}
