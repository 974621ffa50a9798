package systool

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

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
	if s.lossy != "" {
		v.unsure = true
		v.figure("%s", s.lossy)
		v.means("%s: the way lost them or delayed them, now or earlier", s.lossy)
	}
	if s.limited > 0 {
		v.outside("the peer: its receive window limits what is sent", 0,
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
