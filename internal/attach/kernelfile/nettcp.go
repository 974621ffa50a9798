package kernelfile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// netTCP is /proc/net/tcp, and its kin of UDP and IPv6: a line for each socket, in hexadecimal.
var netTCP = &attach.Kind{
	Name:  "/proc/net/tcp",
	Hints: []string{"local_address", "00:00000000"},
	Claim: func(lines []paste.Line) int {
		if t := lines[0].Text; !strings.Contains(t, "local_address") && !socketLine.MatchString(t) {
			return 0
		}
		sockets := 0
		n := run(lines, func(text string) bool {
			if socketLine.MatchString(text) {
				sockets++
				return true
			}
			return strings.HasPrefix(text, "sl ") && strings.Contains(text, "local_address")
		})
		return attach.ClaimIf(sockets > 0, n)
	},
	Read: readNetTCP,
}

// "0: 0100007F:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000 ...": the queues are
// what is to be sent and what was received; of a socket that listens, the connections that wait.
var socketLine = pattern.New(`^\s*\d+: ([0-9A-F]{8}(?:[0-9A-F]{24})?):([0-9A-F]{4}) [0-9A-F]{8}(?:[0-9A-F]{24})?:[0-9A-F]{4} ([0-9A-F]{2}) ([0-9A-F]{8}):([0-9A-F]{8}) [0-9A-F]{2}:[0-9A-F]{8} ([0-9A-F]{8})\b`)

// tcpStates are the kernel's numbers of states (include/net/tcp_states.h).
var tcpStates = map[string]string{"01": "ESTABLISHED", "02": "SYN_SENT", "03": "SYN_RECV",
	"04": "FIN_WAIT1", "05": "FIN_WAIT2", "06": "TIME_WAIT",
	"07": "CLOSE", "08": "CLOSE_WAIT", "09": "LAST_ACK", "0A": "LISTEN", "0B": "CLOSING", "0C": "NEW_SYN_RECV"}

// mostSockets bounds how many lines are read.
const mostSockets = 1 << 20

func readNetTCP(p *attach.Part) attach.Reading {
	states := map[string]int{}
	sockets, again, waiting, datagrams := 0, 0, int64(0), false
	var unread, unsent int64
	port := ""
	for _, l := range p.Lines[:min(len(p.Lines), mostSockets)] {
		m := socketLine.FindStringSubmatch(l.Text)
		if m == nil {
			datagrams = datagrams || strings.Contains(l.Text, "ref pointer drops")
			continue
		}
		sockets++
		if state := tcpStates[m[3]]; datagrams && m[3] == "07" {
			states["unconnected"]++
		} else {
			states[state]++
		}
		sent, received := hex(m[4]), hex(m[5])
		switch {
		case m[3] == "0A" && received > waiting:
			waiting, port = received, strconv.FormatInt(hex(m[2]), 10)
		case m[3] == "01":
			unsent, unread = unsent+sent, unread+received
			if hex(m[6]) > 0 {
				again++
			}
		}
	}
	r := attach.Reading{Title: "/proc/net/tcp, " + plural(sockets, "socket", "sockets"),
		State: attach.CannotTell, Glance: true}
	if datagrams {
		r.Title = "/proc/net/udp, " + plural(sockets, "socket", "sockets")
	}
	var all []string
	for _, s := range attach.Largest(states) {
		if s != "" && len(all) < 4 {
			all = append(all, fmt.Sprintf("%d %s", states[s], s))
		}
	}
	r.Figures = append(r.Figures, strings.Join(all, ", "))
	if unread+unsent > 0 {
		r.Figures = append(r.Figures,
			fmt.Sprintf("established: %s received and not read, %s sent and not acknowledged",
				mem(float64(unread)), mem(float64(unsent))))
	}
	if again > 0 {
		r.Figures = append(r.Figures, plural(again, "established connection sends",
			"established connections send")+" again at this moment")
	}
	r.Means = "It says which connections there are, and nothing of how long anybody waits."
	r.Not = "One look is a glance; data that lies in a queue for a moment is no loss."
	if waiting > 0 {
		r.Figures = append([]string{plural(int(waiting), "connection waits", "connections wait") +
			" to be accepted at port " + port}, r.Figures...)
		r.Means = "Connections wait to be accepted: the program comes late, or a burst has just come."
		r.Next = []attach.Next{{Command: "ss -ltn; sleep 10; ss -ltn",
			Why: "Recv-Q against Send-Q of listening sockets: whether the queue stays full"}}
	}
	return r
}

func hex(s string) int64 {
	v, _ := strconv.ParseInt(s, 16, 64)
	return v
}
