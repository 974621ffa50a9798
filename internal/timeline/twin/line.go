package twin

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/whystall/whystall/exectrace"
)

// clauses are the words behind a line's verb: "at STACK", "in TASK", and the verb's own.
type clauses struct {
	at, in string
	hasAt  bool
	words  []string
}

// rest is the verb's own words.
func (c *clauses) rest() string { return strings.Join(c.words, " ") }

// clauses reads the words behind a verb. Those that say who, where and how much go into the item.
func (it *item) clauses(f []string) (c clauses, err error) {
	for i := 0; i < len(f); i++ {
		key := f[i]
		switch key {
		case "at", "by", "on", "in", "swept", "reclaimed":
		default:
			c.words = append(c.words, key)
			continue
		}
		if i++; i >= len(f) {
			return c, fmt.Errorf("want a word after %q", key)
		}
		switch key {
		case "at":
			c.at, c.hasAt = f[i], true
		case "by":
			it.actorName = f[i]
		case "in":
			c.in = f[i]
		default:
			u, err := strconv.ParseUint(f[i], 10, 48)
			if err != nil {
				return c, fmt.Errorf("want a number after %q, got %q", key, f[i])
			}
			switch key {
			case "on":
				it.proc = int(min(u, 1<<16))
			case "swept":
				it.arg[0] = u
			case "reclaimed":
				it.arg[1] = u
			}
		}
	}
	if it.verb == "log" { // the message is free text
		c.words = f
	}
	return c, nil
}

// goroutineLine reads one line of a goroutine: a range, a point, or a change of state.
func (p *parser) goroutineLine(n int, f []string) error {
	it, err := p.times(n, f[0])
	if err != nil {
		return err
	}
	if len(f) < 2 {
		return fmt.Errorf("%q says nothing", f[0])
	}
	it.g, it.verb = p.current, f[1]
	c, err := it.clauses(f[2:])
	if err != nil {
		return err
	}
	isRange := it.end != math.MinInt64
	switch it.verb {
	case "assist", "sweep", "stw", "task", "region":
		if !isRange {
			return fmt.Errorf("%s: want begin..end", it.verb)
		}
		return p.rangeLine(it, &c)
	}
	if isRange {
		return fmt.Errorf("%s: want one time, got a range", it.verb)
	}
	switch it.verb {
	case "log", "label", "sample":
		return p.pointLine(it, &c)
	}
	return p.stateLine(it, &c)
}

// rangeLine adds what lasts: GC work of a goroutine, a stop-the-world, a task or a region.
func (p *parser) rangeLine(it item, c *clauses) error {
	rest := c.rest()
	it.stack = p.stack(c.at, it.g)
	switch it.verb {
	case "stw":
		it.name = p.string(rest)
	case "task":
		if rest == "" {
			return fmt.Errorf("want task NAME")
		}
		it.name = p.string(rest)
		it.arg[1] = p.tasks[c.in]
		p.ntasks++
		it.arg[0] = p.ntasks
		p.tasks[rest] = p.ntasks
	case "region":
		if rest == "" {
			return fmt.Errorf("want region NAME")
		}
		it.name = p.string(rest)
		if c.in != "" && p.tasks[c.in] == 0 {
			return fmt.Errorf("region %s: no task %s above", rest, c.in)
		}
		it.arg[0] = p.tasks[c.in]
	}
	p.addRange(it, rankRangeBegin, rankRangeEnd)
	return nil
}

// pointLine adds what happens at an instant and changes no state.
func (p *parser) pointLine(it item, c *clauses) error {
	it.rank = rankRangeBegin
	switch it.verb {
	case "log":
		if len(c.words) == 0 {
			return fmt.Errorf("want log CATEGORY MESSAGE")
		}
		it.name = p.string(c.words[0])
		it.arg[0] = p.tasks[c.in]
		it.arg[1] = uint64(p.string(strings.Join(c.words[1:], " ")))
	case "label":
		it.name = p.string(c.rest())
	case "sample":
		it.stack = p.stack(c.at, it.g)
	}
	p.items = append(p.items, it)
	return nil
}

// stateLine checks a state against the one before and ranks it within its instant.
func (p *parser) stateLine(it item, c *clauses) error {
	g := it.g
	prev := exectrace.Undetermined
	if len(g.states) > 0 {
		l := g.states[len(g.states)-1]
		prev = l.state
		if it.t < l.t {
			return fmt.Errorf("time goes back from %d ns to %d ns", l.t, it.t)
		}
	}
	it.first = prev == exectrace.Undetermined
	to, err := p.enter(&it, prev, c)
	if err != nil {
		return err
	}
	if it.first && it.verb != "created" {
		it.rank = rankStatus
		if to == exectrace.Running {
			it.rank = rankRun // it needs a P that somebody may be leaving
		}
	}
	if (it.verb == "runnable" || it.verb == "created") && it.actorName != "" {
		// The stack is the waker's, whose entry is known when all is read.
		it.name = p.string(c.at)
	}
	// The order of one goroutine's lines at one instant stays.
	if len(g.states) > 0 && it.t == g.last {
		it.rank = max(it.rank, g.rank)
	}
	g.last, g.rank = it.t, it.rank
	g.states = append(g.states, state{it.t, to})
	p.items = append(p.items, it)
	return nil
}

// enter says which state a line's verb enters, and fills the item with what the change says: its
// rank within the instant, the stack, the reason. A change that cannot follow the state before is
// an error.
func (p *parser) enter(it *item, prev exectrace.State, c *clauses) (to exectrace.State, err error) {
	g, rest, at := it.g, c.rest(), c.at
	bad := func() error { return fmt.Errorf("goroutine %s: %s cannot follow %s", g.name, it.verb, stateWord(prev)) }
	switch it.verb {
	case "running":
		to, it.rank = exectrace.Running, rankRun
		if !it.first && prev != exectrace.Runnable && prev != exectrace.Syscall {
			return to, bad()
		}
		if prev == exectrace.Syscall {
			it.rank = rankLeave
		}
	case "waiting":
		to, it.rank = exectrace.Waiting, rankLeave
		if !it.first && prev != exectrace.Running {
			return to, bad()
		}
		r, ok := reasons[rest]
		if !ok {
			if rest == "" {
				r.frame, r.reason = "-", exectrace.ReasonNone
			} else {
				r.frame, r.reason = "-", exectrace.ReasonOther
			}
		}
		if r.reason == exectrace.ReasonOther {
			it.name = p.string(rest)
		}
		it.reason = r.reason
		if !c.hasAt {
			at = r.frame
		}
		it.stack = p.stack(at, g)
	case "syscall":
		to, it.rank = exectrace.Syscall, rankLeave
		if !it.first && prev != exectrace.Running {
			return to, bad()
		}
		if !c.hasAt {
			at = "syscall.Syscall"
		}
		it.stack = p.stack(at, g)
	case "retaken":
		to, it.rank = exectrace.Syscall, rankLeave
		if prev != exectrace.Syscall {
			return to, bad()
		}
	case "runnable":
		to = exectrace.Runnable
		it.yield = rest == "yield"
		switch prev {
		case exectrace.Waiting:
			it.rank = rankWake
			if it.actorName == "" {
				return to, fmt.Errorf("goroutine %s: who woke it? (runnable by NAME, by P or by nobody)", g.name)
			}
		case exectrace.Running, exectrace.Syscall:
			it.rank = rankLeave
			if c.hasAt {
				it.stack = p.stack(at, g)
			}
		case exectrace.Undetermined:
		default:
			return to, bad()
		}
	case "created":
		to, it.rank = exectrace.Runnable, rankWake
		if rest == "blocked" {
			to = exectrace.Waiting
		} else if rest != "" {
			return to, fmt.Errorf("created: unknown %q", rest)
		}
		if !it.first {
			return to, bad()
		}
		if it.actorName == "" {
			return to, fmt.Errorf("goroutine %s: who created it? (created by NAME or by nobody)", g.name)
		}
	case "end":
		to, it.rank = exectrace.NotExist, rankLeave
		if prev != exectrace.Running && prev != exectrace.Syscall {
			return to, bad()
		}
	default:
		return to, fmt.Errorf("unknown %q", it.verb)
	}
	return to, nil
}
