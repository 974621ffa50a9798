package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var (
	// "poll([{fd=7, events=POLLOUT}], 1, 1000) = 0 (Timeout)"
	pollInVain = pattern.New(`^poll\(\[(.*)\], \d+, (\d+)\)\s*= 0 \(Timeout\)`)
	// "epoll_pwait(4, [], 128, 2, NULL, 8) = 0"
	epollInVain = pattern.New(`^epoll_p?wait\(\d+(?:<[^>]*>)?, \[?\]?, \d+, (\d+)(?:, [^()]*)?\)\s*= 0(?: |$)`)
	// "<... epoll_wait resumed> [], 64, 500) = 0"
	resumedInVain = pattern.New(`^<\.\.\. epoll_p?wait resumed> ?(?:\[\]|\{\}), \d+, (\d+)(?:, [^()]*)?\)\s*= 0(?: |$)`)
	// "nanosleep({tv_sec=0, tv_nsec=20000}, NULL) = 0", and old ones without names
	sleptFor = pattern.New(`^nanosleep\(\{(?:tv_sec=)?(\d+), (?:tv_nsec=)?(\d+)\}.*\)\s*= 0(?: |$)`)
	// "futex(0x7f, FUTEX_WAIT_PRIVATE, 0, {tv_sec=0, tv_nsec=77}) = -1 ETIMEDOUT"
	futexInVain = pattern.New(`^futex\(0x[0-9a-f]+, FUTEX_WAIT(?:_PRIVATE)?, \d+, \{(?:tv_sec=)?(\d+), (?:tv_nsec=)?(\d+)\}\)\s*= -1 ETIMEDOUT`)
	polledFD    = pattern.New(`\{fd=(\d+)(?:<[^>]*>)?, events=([A-Z|]+)\}`)
)

// ownLimit is calls of one name that ended when the time was over which they had been given.
type ownLimit struct {
	n              int
	least, longest float64 // s
	what           string  // of poll: the descriptors, of the longest
}

// ownLimits are these calls by name, in their order.
type ownLimits struct {
	names []string
	by    map[string]*ownLimit
}

// line takes a call's line. A limit of 0 asks and does not wait.
func (l *ownLimits) line(text string, c *tracedCall) {
	m := callHead.FindStringSubmatch(text)
	if c.open || m == nil || c.resumed && !strings.HasPrefix(c.name, "epoll_") {
		return
	}
	limit, what := 0.0, ""
	seconds := func(s, nanos string) float64 {
		whole, _ := number(s)
		part, _ := number(nanos)
		return whole + part/1e9
	}
	if p := pollInVain.FindStringSubmatch(m[8]); p != nil {
		limit, _ = number(p[2])
		limit, what = limit/1e3, polledFor(p[1])
	} else if p := resumedInVain.FindStringSubmatch(m[8]); p != nil {
		limit, _ = number(p[1])
		limit /= 1e3
	} else if p := epollInVain.FindStringSubmatch(m[8]); p != nil {
		limit, _ = number(p[1])
		limit /= 1e3
	} else if p := futexInVain.FindStringSubmatch(m[8]); p != nil {
		limit = seconds(p[1], p[2])
	} else if p := sleptFor.FindStringSubmatch(m[8]); p != nil {
		limit = seconds(p[1], p[2])
	}
	if limit <= 0 {
		return
	}
	o := l.by[c.name]
	if o == nil {
		if l.by == nil {
			l.by = map[string]*ownLimit{}
		}
		o = &ownLimit{least: limit}
		l.by[c.name] = o
		l.names = append(l.names, c.name)
	}
	if limit > o.longest {
		o.longest, o.what = limit, what
	}
	o.n, o.least = o.n+1, min(o.least, limit)
}

// leastPolls is how many calls in vain are a loop that polls, and worth a word beside their times.
const leastPolls = 3

// most is how many calls of one name ended so.
func (l *ownLimits) most() (n int) {
	for _, o := range l.by {
		n = max(n, o.n)
	}
	return n
}

// polledFor says what a poll waits for: "POLLOUT of fd 7, POLLIN of fd 9".
func polledFor(set string) string {
	var out []string
	for _, m := range polledFD.FindAllStringSubmatch(set, 4) {
		out = append(out, m[2]+" of fd "+m[1])
	}
	return strings.Join(out, ", ")
}

// says is the line of figures; "": no call ended so.
func (l *ownLimits) says() string {
	var out []string
	for _, name := range l.names {
		o := l.by[name]
		line := fmt.Sprintf("%s %s, after %s", name, attach.Plural(o.n, "time"), lasts(o.least))
		if o.longest > o.least {
			line += " to " + lasts(o.longest)
		}
		if o.what != "" {
			line += " (" + o.what + ")"
		}
		out = append(out, line)
	}
	if len(out) == 0 {
		return ""
	}
	return "ended by their own limit of time: " + strings.Join(out, "; ")
}
