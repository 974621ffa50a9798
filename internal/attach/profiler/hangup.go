package profiler

import (
	"fmt"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// hangUp follows one descriptor of which epoll says that its other end is gone. Until somebody
// reads or closes it, epoll_wait never waits again.
type hangUp struct {
	fd      string // "": none is reported
	since   int    // calls since then
	nothing int    // calls since then, and before, that asked without waiting and got nothing
	touched bool
}

var (
	// "{EPOLLIN|EPOLLHUP, {u32=55," and "{events=EPOLLHUP, data={u32=55,"
	hungUp = pattern.New(`\{(?:events=)?[A-Z|]*EPOLL(?:HUP|ERR)[A-Z|]*, (?:data=)?\{u32=(\d{1,5}),`)
	callOn = pattern.New(`[\w.]+\((\d+)[,)<]|epoll_ctl\(\d+, \w+, (\d+)|\{fd=(\d+),`)
	atOnce = pattern.New(`^poll\(.*, 0\) += 0 `)
)

// line takes a call.
func (h *hangUp) line(text string, c *tracedCall) {
	if c.errno == "EAGAIN" || c.name == "poll" && atOnce.MatchString(text[max(0, len(text)-len(bare(text))):]) {
		h.nothing++
	}
	if m := hungUp.FindStringSubmatch(text); m != nil {
		if h.fd == "" {
			h.fd = m[1]
		}
		return
	}
	if h.fd == "" {
		return
	}
	h.since++
	for _, m := range callOn.FindAllStringSubmatch(text, -1) {
		h.touched = h.touched || m[1] == h.fd || m[2] == h.fd || m[3] == h.fd
	}
}

// bare is a line from the name of its call on.
func bare(text string) string {
	if m := callHead.FindStringSubmatch(text); m != nil {
		return m[8]
	}
	return text
}

// leftAlone is how many calls may follow before one is expected that deals with the descriptor.
const leftAlone = 5

// spins says that a program asks again and again without waiting, if nothing speaks against it.
func (t *callTrace) spins(r *attach.Reading) bool {
	h := &t.spin
	if h.fd == "" || h.touched || h.since < leftAlone || h.nothing < 2 || len(t.threads) > 1 ||
		t.longest.seconds >= 0.001 || t.gap.seconds >= 0.001 || t.idle() >= 0.001 {
		return false
	}
	line := fmt.Sprintf("epoll reports a hang-up of descriptor %s, and none of the %s after it reads or closes that; %s got nothing and did not wait", h.fd, attach.Plural(h.since, "call"), attach.Plural(h.nothing, "call"))
	r.Figures = append(r.Figures, line)
	r.Signs = append(r.Signs, attach.Sign{Cause: "spinning", Grade: attach.Candidate, Proof: []string{line}})
	r.Means = "Nothing in these lines waits: while the hang-up is left, epoll_wait returns at once each time, and the program goes round."
	r.Next = append(r.Next, ask("strace -f -T -tt -p PID", t.pid, "how long each call took, and how often it comes"))
	return true
}

// idle is the longest wait for work that a line says, in s.
func (t *callTrace) idle() (longest float64) {
	for name, s := range t.byName {
		if k := callWaits[name]; k == waitIdle || k == waitLock || k == waitChild {
			for _, d := range s.each {
				longest = max(longest, d)
			}
		}
	}
	return longest
}
