package kernelfile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// stretch is when messages came, by their stamps.
type stretch struct {
	first, last float64 // s
	timed       bool
}

func (s *stretch) add(at float64) {
	if !s.timed {
		s.first, s.last, s.timed = at, at, true
	}
	// People show dated messages in any order, without a year before 0; uptimes start anew.
	switch date := at > 1e9 || at < 0; {
	case date && at < s.first:
		s.first = at
	case !date || at > s.last:
		s.last = at
	}
}

// over writes how long it was; "" for messages that came together.
func (s stretch) over() string {
	if s.last-s.first < 1 {
		return ""
	}
	return " over " + dur((s.last-s.first)*1e9)
}

// silence is when a file server did not answer, by the stamps of the messages.
type silence struct {
	name string
	stretch
	back float64 // 0: no message that it answers again
}

var (
	suppressedLine = pattern.New(`(\d{1,9}) callbacks suppress`)
	serverBack     = pattern.New(`^(?:nfs4?|lockd|rpc\w*|NFS\w*)\S*:? server (\S+?),? OK\b`)
	kernelStamp    = pattern.New(`\[ {0,8}(\d{1,9}\.\d{1,6})\]`)
	dateStamp      = pattern.New(`\[((?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\]`)
)

// stampOf is when a line was logged, in s of any clock.
func stampOf(l paste.Line) (s float64, ok bool) {
	if m := kernelStamp.FindStringSubmatch(l.Text); m != nil {
		s = float(m[1])
		return s, true
	}
	if m := dateStamp.FindStringSubmatch(l.Text); m != nil {
		if t, err := time.Parse("Mon Jan _2 15:04:05 2006", m[1]); err == nil {
			return float64(t.Unix()), true
		}
	}
	if !l.Time.IsZero() {
		return float64(l.Time.UnixMilli()) / 1000, true
	}
	return 0, false
}

// when notes the time of a server's silence and of a disk's, and how long a machine had run that
// stalled.
func (r *report) when(e *event, l paste.Line, text string) {
	if e.name == rcuStall || e.name == rcuStarved {
		if at, ok := stampOf(l); ok {
			r.rcu.up = max(r.rcu.up, at)
		}
	}
	at, ok := stampOf(l)
	switch e.name {
	case fileServer:
		if m := e.line.FindStringSubmatch(text); r.silent.name == "" {
			r.silent.name = m[2]
		}
		if ok {
			r.silent.add(at)
			r.silent.back = 0
		}
	case diskTimeout, diskError, diskGone, diskFailed, diskPolled, portReset, portFrozen,
		diskAborted, diskReset, usbReset, diskLink, fsDown:
		r.diskEvent(e, text, at, ok)
	}
}

// answered notes that a file server answers again.
func (r *report) answered(l paste.Line, text string) {
	if strings.Contains(text, "OK") && serverBack.MatchString(strings.TrimSpace(text)) {
		if at, ok := stampOf(l); ok && r.silent.back == 0 {
			r.silent.back = at
		}
	}
}

// figure says how long the server was silent.
func (s silence) figure(n int) string {
	text := fmt.Sprintf("%s that %s does not answer", plural(n, "message", "messages"), printed(s.name))
	switch {
	case s.timed && s.back >= s.first && s.back > 0:
		text += fmt.Sprintf(", and it answered again %s after the first", dur((s.back-s.first)*1e9))
	default:
		text += s.over() + "; that it answers again is not in the paste"
	}
	return text
}

// readOutside reads events whose time is in no process.
func (r *report) readOutside(out *attach.Reading) {
	for _, o := range []struct {
		name         eventName
		where, means string
	}{
		{fileServer, "the file server",
			"A file server did not answer for seconds: whoever touched its files stood still."},
		{conntrack, "the host's table of connections (nf_conntrack)",
			"The table of connections is full, and packets are dropped: connections time out that no process has seen. A larger net.netfilter.nf_conntrack_max, or shorter timeouts, give room."},
		{tcpMemory, "the host's limits of TCP, or who fills them: orphaned sockets (tcp_max_orphans) or its memory (tcp_mem)", "TCP reached a limit of its own, and closes connections: that is net.ipv4.tcp_max_orphans or tcp_mem, and not the host's memory. Who leaves so many sockets there is not in it: a program that does not close them, or peers that do not answer."},
		{timeWait, "the host's table of TIME-WAIT sockets (tcp_max_tw_buckets)",
			"More connections are in TIME-WAIT than the host keeps: the rest is closed at once, and nobody waits for that."},
		{synFlood, "the accept queue of a port",
			"More connection requests came than a port's queue holds: the program accepts too slowly, its backlog is small, or it is an attack."},
		{netTimeout, "a network device and its driver",
			"A network device did not send for seconds, until its driver reset it: a fault of the device, its driver or its bus, as a rule, and not of the network behind it."},
		{netReset, "a network device and its driver",
			"A network device was reset by its driver: nothing went over it meanwhile."},
		{netDown, "a network link (cable, switch or device)",
			"A network link was lost: nothing went over it until it was up again."},
		{neighbours, "the host's table of neighbours (ARP)",
			"The table of neighbours overflows, and packets to new hosts are dropped."},
		{thermal, "the speed of the CPUs: heat",
			"CPUs run slower than they could, because they are too hot: all work takes longer while it lasts."},
	} {
		n := r.counts[o.name]
		if n == 0 || o.name == netReset && r.counts[netTimeout] > 0 {
			continue
		}
		figure := countOf(o.name, n)
		if o.name == thermal {
			figure += r.heat.figure()
		}
		if o.name == synFlood {
			figure += ", " + r.tallied(synFlood, "port ")
		}
		if o.name == netTimeout {
			figure += r.nics.figure()
		}
		if r.suppressed > 0 {
			figure += fmt.Sprintf("; %s more of the log were not printed", number(r.suppressed))
		}
		if o.name == fileServer {
			figure = r.silent.figure(n)
			o.where += " " + printed(r.silent.name)
		}
		out.Signs = append(out.Signs, attach.Sign{Grade: attach.Outside, Where: o.where, Proof: []string{figure}})
		say(out, attach.CannotTell, o.means, figure)
	}
	if r.counts[tcpMemory] > 0 {
		out.Next = append(out.Next,
			attach.Next{Command: "cat /proc/net/sockstat; sysctl net.ipv4.tcp_max_orphans net.ipv4.tcp_mem", Why: "orphans and memory of TCP against their limits"})
	}
	if r.counts[conntrack] > 0 {
		out.Next = append(out.Next,
			attach.Next{Command: "sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max", Why: "whether the table is full now"})
	}
}

// clockLine notes which clock the kernel went over to.
func (r *report) clockLine(text string) {
	if m := clockSwitch.FindStringSubmatch(text); m != nil {
		r.clock = m[1] + m[2]
	}
	if strings.Contains(text, "tsc=reliable") {
		r.clockAsked = true
	}
}

var clockSwitch = pattern.New(`^(?:clocksource: )?Switch(?:ed|ing) to (?:clocksource (\S+)|(\S+) clocksource)`)

// readClock: without the TSC, reading the time is a system call, as a rule.
func (r *report) readClock(out *attach.Reading) {
	n := r.counts[clockBad]
	if n == 0 {
		return
	}
	figure := fmt.Sprintf("the clock %s was called unstable (%s)",
		printed(strings.Join(r.first[clockBad][1:], "")), plural(n, "message", "messages"))
	if r.clockAsked {
		figure += ", although the command line has tsc=reliable"
	}
	means := "The kernel gave up its fast clock: from then on reading the time costs a system call"
	switch r.clock {
	case "":
		figure += "; which one is used now is not in the paste"
		means += ", unless the clock that it uses now is one that programs may read themselves."
	case "hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit":
		figure += ", and the kernel went over to " + printed(r.clock)
		means += fmt.Sprintf(", and %s is slow to read besides.", printed(r.clock))
	default:
		figure += ", and the kernel went over to " + printed(r.clock)
		means += ", where programs may not read " + printed(r.clock) + " themselves."
	}
	say(out, attach.CannotTell, means, figure)
	out.Next = append(out.Next,
		attach.Next{Command: "cat /sys/devices/system/clocksource/clocksource0/current_clocksource; perf trace -s -p PID -- sleep 5", Why: "the clock of now, and whether clock_gettime is a frequent system call"})
}

// readNotes reads events that are worth a word and no cause.
func (r *report) readNotes(out *attach.Reading) {
	r.readClock(out)
	for _, o := range []struct {
		name  eventName
		means string
		state attach.State
	}{
		{hogged, "A worker of the kernel held a CPU for more than 10 ms at a time.", attach.CannotTell},
		{usbReset, "A USB device was reset: what used it stood still meanwhile. Which device it is, its port tells.", attach.CannotTell},
		{rtThrottled, "Real-time tasks used up their share of a CPU, and were stopped once: others had no CPU until then.", attach.CannotTell},
		{crashed, "A program or the kernel crashed: that is an end, and no slowness.", attach.CannotTell},
		{perfSlow, "Interrupts of perf took longer than the kernel allows, and it samples less often: usual under virtualisation, and no stall.", attach.Healthy},
		{slowTimer, "A timer's interrupt took longer than any before: a matter of ms at most, and usual under virtualisation.", attach.Healthy},
	} {
		n := r.counts[o.name]
		if n == 0 {
			continue
		}
		i := slices.IndexFunc(events, func(e event) bool { return e.name == o.name })
		figure := plural(n, events[i].words, events[i].many)
		switch m := r.first[o.name]; {
		case o.name == slowTimer:
			figure = "a timer's interrupt took " + dur(float(m[1]))
		case o.name == crashed && strings.HasPrefix(m[0], "Kernel panic"):
			o.means = "The kernel stopped (panic): that is an end, and no slowness."
		}
		say(out, o.state, o.means, figure)
	}
	if r.counts[rtThrottled] > 0 {
		out.Signs = append(out.Signs, attach.Sign{Cause: "cpu-contention", Grade: attach.Candidate,
			Proof: []string{"sched: RT throttling activated"}})
	}
}

// complaint is how messages speak of a fault, whatever the driver.
var complaint = pattern.New(`(?i)\b(?:not respond\w*|timed[ -]?out|time-?out|out of memory|dropp(?:ed|ing)|overflow\w*|stuck|deadlock\w*|lost connection|link (?:is )?(?:lost|not ready)|i/o error|re-?mount\w* [\w ]*read-only|corrupt\w*|exhausted|limit exceeded|too many|hang|hung|starv\w*|reset(?:ting)? (?:adapter|controller|device)|failed to)\b`)

// complain notes a line that speaks of a fault and is in no table: then a log is not healthy.
func (r *report) complain(text string) {
	if len(text) > 400 || r.complaints > 999 || !complaint.MatchString(text) ||
		strings.Contains(text, "module verification") || strings.HasPrefix(text, "systemd[") {
		return
	}
	if r.complaints++; r.complaint == "" {
		r.complaint = strings.TrimSpace(text)
	}
}

// readComplaints: where nothing else is known, it is quoted and not called healthy.
func (r *report) readComplaints(out *attach.Reading) {
	if r.complaints == 0 || out.Means != "" {
		return
	}
	say(out, attach.CannotTell,
		"It has messages of faults that are not known here; nothing else in it is known as a stall.",
		fmt.Sprintf("%s of a fault, the first: %s", plural(r.complaints, "message", "messages"), printed(r.complaint)))
}
