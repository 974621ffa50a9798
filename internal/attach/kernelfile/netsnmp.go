package kernelfile

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// netSNMP is /proc/net/snmp and /proc/net/netstat: for each protocol a line of names and a line of
// values. Both have one form, and are often pasted together.
var netSNMP = &attach.Kind{
	Name: "/proc/net/snmp, netstat", Joins: true, Hints: []string{":"},
	Claim: starting("ITUM", 16<<10, repeated(claimSNMP)), Read: readSNMP,
}

var snmpProtocol = oneOf("Ip Icmp IcmpMsg Tcp Udp UdpLite TcpExt IpExt MPTcpExt")

// snmpLine divides "Tcp: A B" and "Tcp: 1 2"; values says which of the two it is.
func snmpLine(text string) (protocol string, words []string, values, ok bool) {
	protocol, rest, ok := strings.Cut(text, ": ")
	if !ok || !snmpProtocol(protocol) || len(text) > 16<<10 {
		return "", nil, false, false
	}
	words = strings.Fields(rest)
	if len(words) == 0 {
		return "", nil, false, false
	}
	if _, number := count(words[0]); number {
		for _, w := range words {
			if _, good := count(w); !good {
				return "", nil, false, false
			}
		}
		return protocol, words, true, true
	}
	for _, w := range words {
		if w[0] < 'A' || w[0] > 'Z' {
			return "", nil, false, false
		}
	}
	return protocol, words, false, true
}

func claimSNMP(lines []paste.Line) int {
	named, seen := "", map[string]bool{}
	names, full := 0, 0
	n := run(lines, func(text string) bool {
		protocol, words, values, ok := snmpLine(text)
		switch {
		case !ok, values && (protocol != named || len(words) != names), !values && seen[protocol]:
			return false
		case values:
			full++
			named = ""
		default:
			named, names, seen[protocol] = protocol, len(words), true
		}
		return true
	})
	return attach.ClaimIf(full > 0, n)
}

// parseSNMP gives all samples, by names such as "Tcp RetransSegs".
func parseSNMP(p *attach.Part) (c counts) {
	seen := map[string]bool{}
	c.when = samples(p, func(sofar []string, line string) bool {
		if len(sofar) == 1 {
			clear(seen)
			protocol, _, _, _ := snmpLine(sofar[0])
			seen[protocol] = true
		}
		protocol, _, values, ok := snmpLine(line)
		if !ok || values {
			return false
		}
		again := seen[protocol]
		seen[protocol] = true
		return again
	})
	for _, s := range c.when {
		m := pairs{values: map[string]float64{}}
		var names []string
		for _, line := range s.lines {
			protocol, words, values, ok := snmpLine(line)
			if !ok || !values {
				names = words
				continue
			}
			for i, w := range words[:min(len(words), len(names))] {
				name := protocol + " " + names[i]
				m.values[name], _ = count(w)
				m.order = append(m.order, name)
			}
		}
		c.values = append(c.values, m)
	}
	return c
}

// snmpLosses are counters that say that something was lost.
var snmpLosses = []struct{ name, say string }{
	{"TcpExt ListenOverflows", "connections met a full queue of accept"},
	{"TcpExt TCPTimeouts", "retransmission timeouts"},
	{"Udp RcvbufErrors", "UDP packets found no room in their socket"},
	{"TcpExt TCPRcvQDrop", "segments found no room in their socket"},
	{"TcpExt PruneCalled", "times a socket's memory was squeezed"},
	{"TcpExt TCPBacklogDrop", "segments dropped while the socket was in use"},
	{"Ip InDiscards", "packets discarded"},
}

func readSNMP(p *attach.Part) attach.Reading {
	c := parseSNMP(p)
	by, when, boot, seconds := c.since()
	r := attach.Reading{Title: "counters of network protocols", State: attach.Healthy, Boot: boot, Time: c.when[0].at}
	if !boot {
		r.Title += fmt.Sprintf(", %d samples%s", len(c.when), over(seconds))
	}
	sent, again := by("Tcp OutSegs"), by("Tcp RetransSegs")
	if sent > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%s of %s segments were sent again (%s), %s",
			number(again), number(sent), percent(ratio(again, sent)), when))
	}
	lost := ratio(again, sent) >= 0.005 && again >= 10
	for _, l := range snmpLosses {
		if v := by(l.name); v > 0 {
			r.Figures = append(r.Figures, fmt.Sprintf("%s %s, %s (%s)", number(v), l.say, when, l.name))
			lost = lost || l.name != "TcpExt TCPTimeouts" && l.name != "TcpExt PruneCalled"
		}
	}
	r.Not = "which connections it met: a peer that went away makes retransmissions as well"
	switch {
	case boot && len(r.Figures) > 0:
		r.State = attach.CannotTell
		r.Means = "Counters since boot: they say that something happened, and not that it happens now."
		r.Next = []attach.Next{{Command: "date; cat /proc/net/snmp /proc/net/netstat; sleep 10; date; cat /proc/net/snmp /proc/net/netstat", Why: "what is added in ten seconds"}}
	case boot:
		r.State, r.Means = attach.CannotTell, "No loss was counted since boot in what is here."
	case lost:
		r.State = attach.CannotTell
		r.Means = "Packets are lost now, in the network or at a socket that is not read fast enough."
		r.Signs = []attach.Sign{{Grade: attach.Outside,
			Where: "the network, or a server that does not read its sockets in time", Proof: r.Figures[:1]}}
		r.Next = []attach.Next{{Command: "ss -ti; ss -lnt",
			Why: "which connections send again, and whose queue of accept is full"}}
	default:
		r.Means = "Next to nothing was lost between the samples."
	}
	return r
}

// sockStat counts sockets, and the memory they have in pages.
var sockStat = counting(contextKind("/proc/net/sockstat",
	[]string{"sockets: used", "TCP: inuse", "TCP6: inuse", "UDP6: inuse"}, func(lines []paste.Line) int {
		rows := 0
		n := run(lines, func(t string) bool {
			f := strings.Fields(t)
			if len(f) < 3 || len(f)%2 == 0 || !sockNames(strings.TrimSuffix(f[0], ":")) {
				return false
			}
			rows++
			return true
		})
		return attach.ClaimIf(rows >= 2, n)
	}, func(lines []string) (figures []string, means string) {
		orphans := 0.0
		for _, t := range lines {
			f := strings.Fields(t)
			if f[0] != "TCP:" && f[0] != "TCP6:" && f[0] != "sockets:" {
				continue
			}
			var words []string
			for i := 1; i+1 < len(f); i += 2 {
				v, _ := count(f[i+1])
				switch f[i] {
				case "mem":
					words = append(words, mem(v*pageSize)+" of buffers")
				case "tw":
					words = append(words, number(v)+" in TIME-WAIT")
				case "inuse", "used", "orphan":
					words = append(words, number(v)+" "+f[i])
					orphans = max(orphans, map[bool]float64{true: v}[f[i] == "orphan"])
				}
			}
			figures = append(figures, strings.TrimSuffix(f[0], ":")+": "+strings.Join(words, ", "))
		}
		if orphans >= 4096 {
			figures = append(figures, number(orphans)+
				" orphans: at net.ipv4.tcp_max_orphans the kernel closes connections at once")
		}
		return figures, "It counts sockets at one instant; TIME-WAIT is the usual end of a connection, and no wait of a request."
	}), func(p *attach.Part) (facts []attach.Fact) {
	for _, l := range p.Lines {
		f := strings.Fields(l.Text)
		for i, w := range f[:max(0, len(f)-1)] {
			if v, ok := count(f[i+1]); ok && w == "orphan" {
				facts = append(facts, attach.Fact{Name: FactOrphans, Value: v})
			}
		}
	}
	return facts
})

// counting adds facts to what a kind reads.
func counting(k *attach.Kind, facts func(p *attach.Part) []attach.Fact) *attach.Kind {
	read := k.Read
	k.Read = func(p *attach.Part) attach.Reading {
		r := read(p)
		r.Facts = append(r.Facts, facts(p)...)
		return r
	}
	return k
}

var sockNames = oneOf("sockets TCP UDP UDPLITE RAW FRAG TCP6 UDP6 UDPLITE6 RAW6 FRAG6")
