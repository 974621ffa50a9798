package systool

import (
	"fmt"
	"path"
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

func claimSS(lines []paste.Line) int {
	headed, sums := false, false
	return attach.ClaimWhile(lines, func(at int, text string) bool {
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
	ssLimited = pattern.New(`\brwnd_limited:\d+ms\(([\d.]+)%\)`)
)

func parseSS(p *attach.Part, v *verdict) (s sockets) {
	s.states = map[string]int{}
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
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
			if n, _ := whole(m[1]); n >= timeWaitMany {
				v.unsure = true
				v.means("%d connections in TIME_WAIT: if most of them go to one address and port, local ports may run out, of which there are 28232 by default", n)
				v.next("sysctl net.ipv4.ip_local_port_range; ss -tan state time-wait | awk '{print $4}' | sort | uniq -c | sort -rn | head",
					"how many ports there are, and to whom most connections were")
			}
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
	s.leftUnread(v)
	v.not("it is a glance: queues fill and empty within milliseconds")
	switch {
	case s.total == 0 && s.sums == "":
		v.unsure = true
		v.means("no socket is listed in it")
	case s.total == 0:
		v.means("sums of sockets are context: they say nothing of slowness")
	case s.states["LISTEN"] > 0:
		v.means("no queue of a listener is full at that moment")
	}
	v.means("no connection has much waiting in its queues at that moment")
	return v.done()
}

// ssOwners is how netstat -p and ss -p write whose a socket is.
var ssOwners = pattern.New(`\b(\d{1,9})/(\S{1,64})\s*$|users:\(\("([^"]{1,64})",pid=(\d{1,9})`)

// ssOwner is the program of a socket; "": its row does not say.
func ssOwner(text string) string {
	m := ssOwners.FindStringSubmatch(text)
	switch {
	case m == nil:
		return ""
	case m[1] != "":
		return fmt.Sprintf("%s (pid %s)", path.Base(m[2]), m[1])
	}
	return fmt.Sprintf("%s (pid %s)", m[3], m[4])
}

// leftUnread: the peer has closed and sent something before, and the program neither reads nor
// closes.
func (s *sockets) leftUnread(v *verdict) {
	if len(s.left) == 0 {
		return
	}
	who, same := "", !slices.ContainsFunc(s.left, func(o string) bool { return o != s.left[0] })
	if same && s.left[0] != "" {
		who = " of " + s.left[0]
	}
	v.unsure = true
	text := fmt.Sprintf("%s%s in CLOSE_WAIT with up to %d bytes unread",
		attach.Plural(len(s.left), "connection"), who, s.leftMost)
	v.Figures = slices.Insert(v.Figures, min(1, len(v.Figures)), text)
	v.means("%s: the peer has closed, and the program neither reads nor closes; if they stay, it leaks descriptors or is stuck", text)
	v.next("ss -tnp state close-wait; sleep 10; ss -tnp state close-wait",
		"whether the same connections stay, and whose they are")
}

func (s *sockets) judge(v *verdict) {
	switch {
	case len(s.full) > 0:
		v.Figures = slices.Insert(v.Figures, 0, s.full[0])
		v.candidate("pool-exhaustion", 0, s.full[0])
		v.means("the accept queue is full: the program accepts too slowly, for whatever reason, and new connections wait or are dropped")
		v.next("nstat -az TcpExtListenOverflows TcpExtListenDrops; sleep 10; nstat -az TcpExtListenOverflows TcpExtListenDrops", "whether it overflows now")
		v.next("ss -lnt", "whether it stays full")
	case s.waiting != "":
		v.unsure = true
		v.means("%s; how many fit is not in it", s.waiting)
		v.next("ss -lnt", "how many fit: Send-Q of a listener")
	case s.states["SYN-SENT"]+s.states["SYN_SENT"] > 0:
		v.unsure = true
		v.means("%s has no answer yet: the way there, or a full accept queue",
			attach.Plural(s.states["SYN-SENT"]+s.states["SYN_SENT"], "connection"))
		v.next("ss -lnt", "on the server: whether the accept queue is full")
	case s.fullest >= 0.5:
		v.unsure = true
		v.means("an accept queue is filled to %s %% at that moment", plain(100*s.fullest))
	}
	if len(s.silent) > 0 {
		v.unsure = true
		v.means("%s: they or their answers are lost on the way, or the peer is gone", s.silent[0])
		v.outside("the network or the peer: what is sent is not acknowledged", 0, s.silent[0])
	}
	if s.retrans > 0 {
		text := fmt.Sprintf("%s with segments sent again", attach.Plural(s.retrans, "connection"))
		v.figure("%s", text)
		v.means("segments of some connections are sent again: the network loses or delays them")
		v.outside("the network: segments of some connections are lost or late", 0, text)
	}
	if s.limited > 0 {
		v.outside("the peer: its receive window is full, so it reads too slowly", 0,
			attach.Plural(s.limited, "connection")+" limited by the receiver for at least a fifth of the time")
	}
	if s.slow != "" {
		v.unsure = true
		v.figure("%s", s.slow)
		v.means("packets queue on the way: %s", s.slow)
	}
	if s.unsent >= unsentMuch {
		v.unsure = true
		v.means("%s of %s wait to be sent or acknowledged: the peer or the way takes less than the program writes", bytes(float64(s.unsent)), s.unsentAt)
		v.not("a transfer that sends all it can fills its queue by design: what matters is whether requests share the connection or the way")
		v.next("ss -tinm dst PEER; sleep 5; ss -tinm dst PEER",
			"whether the queue stays full, and what limits it: rwnd_limited, sndbuf_limited, cwnd")
	}
	if s.unread >= 1<<16 {
		v.unsure = true
		v.means("the program is behind with reading: %d bytes wait at %s", s.unread, s.unreadAt)
		v.next("cat /proc/PID/task/*/wchan", "what its threads do instead")
	}
}

// stateCounts lists states, the most frequent first.
func stateCounts(states map[string]int) string {
	var out []string
	for _, s := range ssStates {
		if states[s] > 0 {
			out = append(out, fmt.Sprintf("%d %s", states[s], s))
		}
	}
	if states[""] > 0 {
		out = append(out, fmt.Sprintf("%d without a state", states[""]))
	}
	return strings.Join(out, ", ")
}
