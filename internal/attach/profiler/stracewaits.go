package profiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// waits says what the time of calls was.
func (t *callTrace) waits(r *attach.Reading, byKind map[waitKind]*callSum, total float64) {
	slow, names := t.slowOnFiles()
	idle := 0.0
	for _, k := range []waitKind{waitIdle, waitLock, waitChild} {
		if s := byKind[k]; s != nil {
			idle += s.seconds
		}
	}
	span := max(t.span, total)
	switch {
	case slow.n >= 3 && slow.seconds >= 0.1*span, slow.n > 0 && slow.seconds >= 0.1 && slow.seconds >= 0.1*span:
		longest := t.slowest(waitSync, waitDisk)
		proof := fmt.Sprintf("%s on files took 5 ms or longer, %s in all; the longest is %s",
			attach.Plural(slow.n, "call"), lasts(slow.seconds), longest.says())
		r.Means = upper(proof) + "."
		sign := attach.Sign{Cause: "disk-wait", Grade: attach.Candidate,
			Share: min(1, slow.seconds/max(span, 1e-9)), Proof: []string{proof}}
		if names < slow.seconds/2 { // to look up names, and to open, waits for locks and servers as well
			r.State, sign.Grade, sign.Sure = attach.Ill, attach.Found, finding.Possible
		}
		r.Signs = append(r.Signs, sign)
		r.Next = append(r.Next,
			ask("biolatency-bpfcc -m 10 1", 0, "whether the disk took that time, or a lock of the file"))
	case byKind[waitNetwork] != nil && byKind[waitNetwork].seconds >= 0.3*span && t.longest.seconds >= 0.01:
		share, longest := byKind[waitNetwork].seconds/max(span, 1e-9), t.slowest(waitNetwork)
		r.Signs = append(r.Signs, attach.Sign{Grade: attach.Outside, Share: min(1, share),
			Where: "the peer: calls wait for the other end of sockets (the longest is " + longest.says() + ")"})
		r.Means = fmt.Sprintf("Calls on sockets took %s in all: they wait for the other end, which may be a client that asks nothing.", lasts(byKind[waitNetwork].seconds))
	case idle >= 0.5*total && total > 0:
		r.Means = fmt.Sprintf("%s of the time in calls is in calls that wait for work, for time to pass or for a lock (epoll_wait, poll, sleeps, futex); which of them is not in it.", pct(idle/total))
		if t.n >= 50 && t.longest.seconds < 0.010 && byKind[waitLock] == nil {
			r.Means = fmt.Sprintf("%s of the time in calls is in calls that wait for work or for time to pass, and no other call took 10 ms.", pct(idle/total))
		}
	case t.n >= 50 && t.longest.seconds < 0.010: // many short ones may add up all the same
		r.Means = fmt.Sprintf("No call that does not idle took 10 ms; the longest is %s.", t.longest.says())
	default:
		r.Means = fmt.Sprintf("The longest call that does not idle is %s.", t.longest.says())
	}
	if blockingCalls[t.longest.name] && t.longest.seconds >= 0.010 && len(r.Signs) == 0 {
		r.Means += fmt.Sprintf(" A call of %s may wait for the other end of a socket, a pipe or a terminal, and so for work.", t.longest.name)
	}
}

// slowOnFiles adds up calls of 5 ms or longer that a disk makes slow, and those of them that look
// up or open names.
func (t *callTrace) slowOnFiles() (slow callSum, names float64) {
	for _, name := range slices.Sorted(mapNames(t.byName)) {
		s, k := t.byName[name], callWaits[name]
		if k != waitSync && k != waitDisk {
			continue
		}
		for _, d := range s.each {
			if d < 0.005 {
				continue
			}
			slow.n++
			slow.seconds += d
			if k == waitDisk && !strings.HasPrefix(name, "p") {
				names += d
			}
		}
	}
	return slow, names
}

// slowest is the longest call of some kinds.
func (t *callTrace) slowest(kinds ...waitKind) (longest tracedCall) {
	for _, name := range slices.Sorted(mapNames(t.byName)) {
		for _, d := range t.byName[name].each {
			if slices.Contains(kinds, callWaits[name]) && d > longest.seconds {
				longest = tracedCall{name: name, seconds: d}
			}
		}
	}
	return longest
}

func (c *tracedCall) says() string {
	if c.name == "" {
		return "none"
	}
	return c.name + " with " + lasts(max(c.seconds, 0))
}
