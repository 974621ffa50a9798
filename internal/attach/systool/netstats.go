package systool

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var netstatSums = &attach.Kind{
	Name: "netstat -s",
	Hints: []string{"Ip:", "Ip6", "Tcp", "Udp", "Icmp", "IpExt", "MPTcp", "#kernel", "segments",
		"listen queue", "SYNs to", "SYN cookies", "delayed acks", "time wait in", "SYN_RECV", "connection openings", "connection attempts", "resets sent",
		"packets received", "packets delivered", "ICMP ", "unknown port", "connections established",
		"connection resets", "times the", "fast timer"},
	Claim: claimNetstat,
	Read:  readNetstat,
}

// netstatSection is a protocol's heading; netstatSure are lines which nothing else prints.
var (
	netstatSection = pattern.New(`^(Ip|Icmp|IcmpMsg|Tcp|Udp|UdpLite|TcpExt|IpExt|Ip6|Icmp6|Udp6|UdpLite6|MPTcpExt|Sctp):$`)
	netstatCount   = pattern.New(`^\s*(\d+) [a-zA-Z].*$|^\s*[A-Za-z0-9 ,./-]+: \d+$|^\s*[A-Z][A-Za-z0-9 ]* \d+( .*)?$|^\s*ICMP (input|output) histogram:$`)
	netstatSure    = pattern.New(`active connection openings|segments retransmi|times the listen queue|SYNs to LISTEN|failed connection attempts|segments received|total packets received|incoming packets delivered|ICMP messages? received|ICMP (?:in|out)put histogram:|packets to unknown port|TCPLostRetransmit|TCPTimeouts|resets sent|^TcpExt|^#kernel|\d SYN cookies (?:sent|received)|resets received for embryonic|finished time wait in|\d delayed acks (?:sent|further)`)
	nstatLine      = pattern.New(`^(Ip|Tcp|Udp|Icmp|TcpExt|IpExt|Ip6|Udp6)\w+ +(\d+) +[\d.]+$`)
)

func claimNetstat(lines []paste.Line) int {
	headed, sure, counted := false, false, false
	n := attach.ClaimWhile(lines, func(at int, text string) bool {
		trimmed := strings.TrimSpace(text)
		sure = sure || netstatSure.MatchString(trimmed) || at == 0 && netstatBelow(lines)
		switch {
		case netstatSection.MatchString(trimmed), trimmed == "#kernel":
			headed = true
			return true
		case nstatLine.MatchString(trimmed):
			sure, counted = true, true
			return true
		}
		counted = counted || netstatCount.MatchString(trimmed)
		return (headed || sure) && len(trimmed) < 160 && netstatCount.MatchString(trimmed)
	})
	return attach.ClaimIf(sure && counted, n)
}

// netstatBelow reports whether counters that nothing else prints follow the first one at once.
func netstatBelow(lines []paste.Line) bool {
	const most = 4
	if !netstatCount.MatchString(strings.TrimSpace(lines[0].Text)) {
		return false
	}
	for _, l := range lines[1:min(len(lines), most)] {
		text := strings.TrimSpace(l.Text)
		if l.Command != "" || !netstatCount.MatchString(text) {
			return false
		}
		if netstatSure.MatchString(text) {
			return true
		}
	}
	return false
}

// netstatFigures are lines that matter, as netstat words them, and nstat's names.
var netstatFigures = []struct {
	match, say string
	fact       attach.FactName // that two readings are compared by; "": none
}{
	{`(\d+) times the listen queue of a socket overflowed|TcpExtListenOverflows +(\d+)`, "the listen queue overflowed", ListenOverflows},
	{`(\d+) segments? retransmit\w+|TcpRetransSegs +(\d+)`, "segments were sent again", SegmentsAgain},
	{`(\d+) SYNs to LISTEN sockets (?:dropped|ignored)|TcpExtListenDrops +(\d+)`, "SYNs were dropped", ""},
	{`TCPTimeouts: (\d+)|(\d+) other TCP timeouts|TcpExtTCPTimeouts +(\d+)`, "retransmission timeouts", ""},
	{`(\d+) packet receive errors|UdpInErrors +(\d+)`, "UDP packets were lost on receipt", ""},
	{`TCPReqQFullDrop: (\d+)|TcpExtTCPReqQFullDrop +(\d+)`, "requests for a connection were dropped", ""},
	{`TCPTimeWaitOverflow: (\d+)|TcpExtTCPTimeWaitOverflow +(\d+)`, "the table of TIME-WAIT sockets overflowed", ""},
	{`(\d+) connections reset due to unexpected data|TcpExtTCPAbortOnData +(\d+)`,
		"connections were reset since data came for a socket that was closed", ""},
	{`(\d+) packets pruned from receive queue|TcpExtPruneCalled +(\d+)`,
		"a socket's queue was pruned for lack of room", ""},
	{`TCPBacklogDrop: (\d+)|TcpExtTCPBacklogDrop +(\d+)`, "segments were dropped while the socket was in use", ""},
}

// netstatAgain is the row of them that needs another one, how many segments were sent.
const netstatAgain = 1

var netstatMatches = func() (out []*pattern.Regexp) {
	for _, f := range netstatFigures {
		out = append(out, pattern.New(f.match))
	}
	return out
}()

var netstatSent = pattern.New(`(\d+) segments sen[dt] out|TcpOutSegs +(\d+)`)

var (
	netstatActive  = pattern.New(`(\d+) active connections? openings?|TcpActiveOpens +(\d+)`)
	netstatPassive = pattern.New(`(\d+) passive connections? openings?|TcpPassiveOpens +(\d+)`)
	netstatFailed  = pattern.New(`(\d+) failed connection attempts|TcpAttemptFails +(\d+)`)
)

// firstNumber is the first group that matched.
func firstNumber(m []string) (float64, bool) {
	for _, s := range m[min(1, len(m)):] {
		if s != "" {
			return number(s)
		}
	}
	return 0, false
}

// nstatOnly reports whether all lines are nstat's, which counts since it was last called, or with
// -a since boot.
func nstatOnly(p *attach.Part) bool {
	n := 0
	for _, l := range p.Lines {
		switch text := strings.TrimSpace(l.Text); {
		case nstatLine.MatchString(text):
			n++
		case text != "" && text != "#kernel":
			return false
		}
	}
	return n > 0 && !option(p, 'a')
}

func readNetstat(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title = "netstat -s, sums since boot"
	v.Boot, v.unsure = true, true
	when := "since boot"
	if nstatOnly(p) {
		v.Title, when = "nstat, sums since boot or since its last call", "since boot or the last call"
	}
	sent, again, active, passive, failed := 0.0, 0.0, -1.0, -1.0, 0.0
	said := make([]string, len(netstatFigures))
	var none []string // what is counted, and did not happen
	for _, l := range p.Lines {
		if n, ok := firstNumber(netstatSent.FindStringSubmatch(l.Text)); ok {
			sent = n
		}
		for _, o := range []struct {
			re   *pattern.Regexp
			into *float64
		}{{netstatActive, &active}, {netstatPassive, &passive}, {netstatFailed, &failed}} {
			if n, ok := firstNumber(o.re.FindStringSubmatch(l.Text)); ok {
				*o.into = n
			}
		}
		for i, re := range netstatMatches {
			m := re.FindStringSubmatch(l.Text)
			n, ok := firstNumber(m)
			if ok && n == 0 {
				none = append(none, netstatFigures[i].say)
			}
			if fact := netstatFigures[i].fact; ok && fact != "" && m[1] != "" { // nstat counts from its last call on
				v.fact(fact, n)
			}
			if ok && n > 0 {
				if i == netstatAgain {
					again = n
					continue
				}
				said[i] = fmt.Sprintf("%s %s times %s", netstatFigures[i].say, plain(n), when)
			}
		}
	}
	if again > 0 && sent > 0 {
		safe := ""
		if active+passive > sent {
			safe = ", which is not safe: there are fewer segments than connections, so a counter went over its 32 bits"
		}
		said[netstatAgain] = fmt.Sprintf("%s of %s segments were sent again %s (%s %%)%s",
			plain(again), plain(sent), when, plain(100*again/sent), safe)
	} else if again > 0 {
		said[netstatAgain] = plain(again) + " segments were sent again " + when
	}
	for _, s := range said { // the table's order: what a client waits for stands first
		if s != "" {
			v.Figures = append(v.Figures, s)
		}
	}
	if len(v.Figures) == 0 && len(none) > 0 {
		v.unsure = false
		v.figure("0 times %s: %s", when, strings.Join(none[:min(6, len(none))], "; "))
		v.means("nothing of what is counted here happened %s", when)
		v.not("what other counters say, which are not in the paste")
		return v.done()
	}
	if active >= 0 && passive >= 0 {
		v.figure("%s connections opened from here and %s from elsewhere %s; %s attempts failed", plain(active), plain(passive), when, plain(failed))
	}
	v.means("these count %s: they say that something happened, and not that it happens now", when)
	v.not("an overflow or a retransmission since boot is no cause of what is slow now")
	v.next("nstat -n; sleep 10; nstat", "what was added in ten seconds")
	return v.done()
}
