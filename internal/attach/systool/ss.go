package systool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var ss = &attach.Kind{
	Name: "ss",
	Hints: []string{"Recv-Q", "Active Internet", "Total:", "rto:", "rtt:", "LISTEN", "ESTAB", "SYN",
		"FIN", "TIME", "CLOS", "LAST", "UNCONN"},
	Claim: claimSS,
	Read:  readSS,
}

var ssStates = []string{"LISTEN", "ESTAB", "ESTABLISHED", "SYN-SENT", "SYN_SENT", "SYN-RECV",
	"SYN_RECV", "FIN-WAIT-1", "FIN_WAIT1", "FIN-WAIT-2", "FIN_WAIT2",
	"TIME-WAIT", "TIME_WAIT", "CLOSE-WAIT", "CLOSE_WAIT", "LAST-ACK", "LAST_ACK", "CLOSING",
	"CLOSED", "CLOSE", "UNCONN"}

// ssRow takes a row of ss apart, or of netstat -ant: protocol first, state last.
func ssRow(f []string) (state string, recv, send int, local, peer string, ok bool) {
	at := 0
	if len(f) > 0 && slices.Contains([]string{"tcp", "tcp6", "udp", "udp6", "u_str", "u_dgr", "raw",
		"nl", "p_raw", "v_str", "mptcp", "sctp", "icmp6"}, f[0]) {
		at = 1
	}
	if len(f) < at+4 {
		return
	}
	num := func(i int) (n int) {
		n, good := whole(f[i])
		ok = ok && good
		return n
	}
	ok = true
	if slices.Contains(ssStates, f[at]) {
		if len(f) < at+5 {
			return "", 0, 0, "", "", false
		}
		state, recv, send, local, peer = f[at], num(at+1), num(at+2), f[at+3], f[at+4]
		return state, recv, send, local, peer, ok && strings.ContainsAny(local, ":*/")
	}
	// netstat: tcp 0 0 local foreign STATE; ss with a state in the filter leaves the column out.
	recv, send, local, peer = num(at), num(at+1), f[at+2], f[at+3]
	if len(f) > at+4 && slices.Contains(ssStates, f[at+4]) {
		state = f[at+4]
	}
	return state, recv, send, local, peer, ok && strings.Contains(local, ":") && strings.Contains(peer, ":")
}

func ssHeader(text string) bool {
	return strings.Contains(text, "Recv-Q") && strings.Contains(text, "Send-Q") &&
		strings.Contains(text, "Local Address")
}

// ssInfo is the second line of a connection, by ss -i.
var ssInfo = pattern.New(`\b(rto:\d|rtt:[\d.]+/|cwnd:\d|mss:\d+|skmem:\(|bytes_acked:|segs_out:|lastsnd:)`)

// ssSums are the lines of ss -s.
var ssSums = pattern.New(`^(Total: \d+|TCP: +\d+ \(estab|Transport +Total|(\*|RAW|UDP|TCP|INET|FRAG)\s+\d+\s+\S+\s+\S+)`)

// timeWaitMany is near the number of local ports that one address has by default.
const timeWaitMany = 20000

var ssTimeWait = pattern.New(`\btimewait (\d+)`)

var ssOrphans = pattern.New(`\borphaned (\d+)`)

// ssPart is one of the figures of a connection.
var ssPart = pattern.New(`^(\w+:\S+|\w+\(\S*\)|bbr|cubic|reno|send|pacing_rate|delivery_rate|app_limited|ts|sack|ecn|ecnseen|fastopen|[\d.]+[KMG]?bps|timer:\S+|users:\S+)$`)

// ssOne is one of those figures that may stand alone in a line.
var ssOne = pattern.New(`^\d+[KMG]?bps\b|\b(data_segs_in|data_segs_out|segs_in|bytes_received|bytes_sent|minrtt|snd_wnd|rcv_wnd|rcv_space|rcv_ssthresh|notsent|delivered|busy|lastack|lastrcv|unacked|reordering|pmtu|bbr):[\d(]`)

// ssMore reports whether a line goes on with the figures of a connection.
func ssMore(f []string) bool {
	if len(f) == 0 || len(f) > 64 {
		return false
	}
	known, keyed := 0, 0
	for _, c := range f {
		if ssPart.MatchString(c) {
			known++
			if strings.Contains(c, ":") || strings.HasSuffix(c, "bps") {
				keyed++
			}
		}
	}
	return keyed >= 1 && known == len(f) &&
		(keyed >= 2 || ssInfo.MatchString(strings.Join(f, " ")) || ssOne.MatchString(strings.Join(f, " ")))
}

func ssLine(text string) bool {
	state, _, _, _, _, ok := ssRow(fields(text))
	return ok && state != ""
}

// ssBroken says how rows look that a mail broke: all other lines are whole.
var ssBroken = broken{whole: func(text string) bool {
	f := fields(text)
	if len(f) == 0 || len(f) > 4 || !slices.Contains(ssStates, f[0]) || !numeric(f[1:min(3, len(f))]) {
		_, _, _, _, _, row := ssRow(f)
		return row || len(f) != 1 || !strings.Contains(text, ":")
	}
	return false
}}

func claimSS(lines []paste.Line) int {
	headed, sums := false, false
	return claimLogical(lines, ssBroken, func(at int, text string) bool {
		f := fields(text)
		trimmed := strings.TrimSpace(text)
		switch {
		case ssHeader(text):
			headed = true
			return true
		case strings.HasPrefix(trimmed, "Active Internet connections"):
			next, ok := following(lines, at+1)
			return ok && ssHeader(next.Text)
		case headed && (strings.HasPrefix(trimmed, "unix ") ||
			strings.HasPrefix(trimmed, "Active UNIX domain") || strings.HasPrefix(trimmed, "Proto RefCnt")):
			return true
		case strings.HasPrefix(trimmed, "Total:"):
			next, ok := following(lines, at+1)
			sums = ok && strings.HasPrefix(strings.TrimSpace(next.Text), "TCP:")
			return sums
		case sums:
			sums = ssSums.MatchString(trimmed)
			return sums
		case at > 0 && ssMore(f), at > 0 && trimmed == "--" && at+1 < len(lines) && ssLine(lines[at+1].Text):
			return true // a person wrapped it; grep -A puts a line between
		case ssInfo.MatchString(text) &&
			(strings.HasPrefix(trimmed, "cubic") || strings.HasPrefix(trimmed, "bbr") ||
				strings.HasPrefix(trimmed, "reno") || headed || strings.Contains(trimmed, "rto:")):
			return true
		}
		state, _, _, _, _, ok := ssRow(f)
		return ok && (headed || state != "")
	})
}

// sockets is what a list of sockets says.
type sockets struct {
	states         map[string]int
	total          int
	full           []string // listeners whose queue is full
	fullest        float64
	unread, unsent int // bytes, the most of one connection
	unreadAt       string
	unsentAt       string
	datagrams      int // bytes, of the UDP socket with most that is unread
	datagramsAt    string
	again          int // connections that sent segments again since they opened
	retrans        int // connections with segments in retransmission
	rtts           []float64
	slow           string // the connection whose round trips are longest above their least
	slowest        float64
	rtt, least     float64 // of the connection that is read, in ms
	at             string
	sent, acked    int      // bytes of the connection that is read; -1: not said
	resent         int      // segments of it, since it opened
	lossy          string   // the connection that sent the largest share of its segments again
	loss           float64  // that share
	silent         []string // connections all of whose bytes are sent again, and none acknowledged
	limited        int      // connections that the receiver's window, or the send buffer, limits
	sums           string
	waiting        string   // connections that wait at a listener whose limit is not printed
	left           []string // connections whose peer has closed, with bytes that nobody reads: whose
	leftMost       int      // bytes, the most of one of them
}

var (
	ssSent    = pattern.New(`\bbytes_sent:(\d+)`)
	ssAcked   = pattern.New(`\bbytes_acked:(\d+)`)
	ssRTT     = pattern.New(`\brtt:([\d.]+)/`)
	ssRetrans = pattern.New(`\bretrans:(\d+)/(\d+)`)
	ssLeast   = pattern.New(`\bminrtt:([\d.]+)`)
	// Those with data are fewer, and stand behind those in all where both are printed.
	ssSegments = pattern.New(`\bsegs_out:(\d+)`)
	ssLimited  = pattern.New(`\brwnd_limited:\d+ms\(([\d.]+)%\)`)
)

func parseSS(p *attach.Part, v *verdict) (s sockets) {
	s.states = map[string]int{}
	for _, text := range logical(p.Lines, ssBroken) {
		text = strings.TrimSpace(text)
		if strings.HasPrefix(text, "TCP:") {
			s.sums = text
		}
		if state, recv, send, local, _, ok := ssRow(fields(text)); ok && !strings.HasPrefix(text, "TCP ") {
			s.total++
			s.states[state]++
			s.rtt, s.least, s.at = 0, 0, local
			s.sent, s.acked, s.resent = -1, -1, 0
			s.row(state, recv, send, local, v)
			if recv > 0 && (state == "CLOSE-WAIT" || state == "CLOSE_WAIT") && len(s.left) < maxTasks {
				s.left, s.leftMost = append(s.left, ssOwner(text)), max(s.leftMost, recv)
			}
		}
		if m := ssRTT.FindStringSubmatch(text); m != nil {
			if f, ok := number(m[1]); ok {
				s.rtts = append(s.rtts, f)
				s.rtt = f
			}
		}
		if m := ssLeast.FindStringSubmatch(text); m != nil {
			s.least, _ = number(m[1])
		}
		s.queued()
		if m := ssRetrans.FindStringSubmatch(text); m != nil {
			if m[1] != "0" {
				s.retrans++
			}
			if m[2] != "0" {
				s.again++
				s.resent, _ = whole(m[2])
			}
		}
		s.unanswered(text)
		s.lost(text)
		if m := ssLimited.FindStringSubmatch(text); m != nil {
			if f, ok := number(m[1]); ok && f >= 20 {
				s.limited++
			}
		}
	}
	return s
}

// unanswered notes a connection that sent its bytes more than once, and none is acknowledged: the
// one byte that is counts the connection's start.
func (s *sockets) unanswered(text string) {
	if m := ssSent.FindStringSubmatch(text); m != nil {
		s.sent, _ = whole(m[1])
	}
	if m := ssAcked.FindStringSubmatch(text); m != nil {
		s.acked, _ = whole(m[1])
	}
	if s.sent > 1 && (s.acked == 0 || s.acked == 1) && s.resent > 0 {
		s.silent = append(s.silent, fmt.Sprintf("%s sent %d bytes, none of which is acknowledged after %s", s.at, s.sent,
			attach.Plural(s.resent, "segment")+" sent again"))
		s.sent = -1
	}
}

// A share of segments that were sent again, and so many of them, are more than a way loses by
// chance.
const (
	lossMuch  = 0.01
	lossLeast = 20
)

// lost notes the connection that sent the largest share of its segments again since it opened.
func (s *sockets) lost(text string) {
	m := ssSegments.FindStringSubmatch(text)
	if m == nil || s.resent < lossLeast {
		return
	}
	sent, _ := whole(m[1])
	if share := float64(s.resent) / float64(max(1, sent)); share >= lossMuch && share > s.loss && share <= 1 {
		s.loss = share
		s.lossy = fmt.Sprintf("%s sent %d of %d segments again since it opened (%s %%)", s.at, s.resent, sent, plain(100*share))
	}
}

// A round trip this much above the least one of its connection is time in queues on the way, in ms.
const (
	queuedTimes = 3
	queuedMore  = 20
)

func (s *sockets) queued() {
	if more := s.rtt - s.least; s.least > 0 && s.rtt >= queuedTimes*s.least && more >= queuedMore && more > s.slowest {
		s.slowest = more
		s.slow = fmt.Sprintf("%s: round trip %s ms, %s ms at best", s.at, plain(s.rtt), plain(s.least))
	}
}

// unsentMuch is bytes in a queue to send that are more than a usual answer.
const unsentMuch = 1 << 20

func (s *sockets) row(state string, recv, send int, local string, v *verdict) {
	switch {
	case state == "LISTEN" && send > 0: // ss prints the queue and its limit there; netstat prints none
		share := float64(recv) / float64(send)
		s.fullest = max(s.fullest, share)
		if recv > 0 && len(v.Facts) < 64 {
			v.factOf(ListenQueueShare, share, local)
		}
		if recv >= send {
			s.full = append(s.full,
				fmt.Sprintf("%s: %d connections wait to be accepted, of %d that fit", local, recv, send))
		}
	case state == "LISTEN" && recv > 0:
		s.waiting = fmt.Sprintf("%s wait to be accepted at %s", attach.Plural(recv, "connection"), local)
	case state == "UNCONN":
		if recv > s.datagrams {
			s.datagrams, s.datagramsAt = recv, local
		}
	case state == "ESTAB" || state == "ESTABLISHED" || state == "":
		if recv > s.unread {
			s.unread, s.unreadAt = recv, local
		}
		if send > s.unsent {
			s.unsent, s.unsentAt = send, local
		}
	}
}

func readSS(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.Glance = "a list of sockets (ss, netstat)", true
	s := parseSS(p, v)
	if s.sums != "" {
		v.Title = "ss -s, sums of sockets"
		v.figure("%s", s.sums)
		if m := ssTimeWait.FindStringSubmatch(s.sums); m != nil {
			n, _ := whole(m[1])
			v.timeWait(n)
		}
		if m := ssOrphans.FindStringSubmatch(s.sums); m != nil {
			n, _ := whole(m[1])
			v.fact(Orphans, float64(n))
		}
	}
	if s.total > 0 {
		v.figure("%s: %s", attach.Plural(s.total, "socket"), stateCounts(s.states))
	}
	if len(s.rtts) > 0 {
		again := ", none of which shows segments sent again"
		if s.again > 0 {
			again = fmt.Sprintf("; %d of them sent segments again since they opened", s.again)
		}
		v.figure("round trip %s ms at the median of %s%s", plain(attach.Median(s.rtts)),
			attach.Plural(len(s.rtts), "connection"), again)
	}
	if s.unread >= 1 {
		v.figure("%s has %d bytes that its program has not read", s.unreadAt, s.unread)
	}
	if s.unsent >= 1 {
		v.figure("%s has %d bytes that the peer has not acknowledged", s.unsentAt, s.unsent)
	}
	if len(s.rtts) == 0 && s.again > 0 {
		v.figure("%s sent segments again since it opened", attach.Plural(s.again, "connection"))
	}
	if s.datagrams > 0 {
		v.figure("%s holds datagrams that its program has not read, %d bytes with their overhead",
			s.datagramsAt, s.datagrams)
	}
	if n := s.states["CLOSE-WAIT"] + s.states["CLOSE_WAIT"]; n >= leakedMany {
		v.unsure = true
		v.means("%d connections in CLOSE-WAIT: the peer hung up, and the program has not closed them", n)
	}
	s.judge(v)
	v.timeWait(s.states["TIME-WAIT"] + s.states["TIME_WAIT"])
	if n := s.states["SYN-RECV"] + s.states["SYN_RECV"]; n >= leakedMany {
		v.unsure = true
		v.means("%d connections are half open (SYN-RECV): the last answer of those who opened them has not come", n)
	}
	s.leftUnread(v)
	v.not("it is a glance: queues fill and empty within milliseconds")
	switch {
	case s.total == 0 && s.sums == "":
		v.unsure = true
		v.means("no socket is listed in it")
	case s.total == 0:
		v.means("sums of sockets are context: they say nothing of slowness")
	case s.states["LISTEN"] > 0:
		v.means("no queue of a listener in it is full at that moment")
	}
	v.means("no connection in it has much waiting in its queues at that moment")
	return v.done()
}

// timeWait says that local ports may run out, where so many closed connections hold one.
func (v *verdict) timeWait(n int) {
	if n < timeWaitMany {
		return
	}
	v.unsure = true
	v.means("%d connections in TIME_WAIT: if most of them go to one address and port, local ports may run out, of which there are 28232 by default", n)
	v.next("sysctl net.ipv4.ip_local_port_range; ss -tan state time-wait | awk '{print $4}' | sort | uniq -c | sort -rn | head",
		"how many ports there are, and to whom most connections were")
}
