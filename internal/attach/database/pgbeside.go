package database

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var (
	pgTrigger = pattern.New(`^\s*Trigger (?:for constraint )?"?(\S+?)"?(?: on \S+)?: time=([\d.]+) calls=(\d+)`)
	pgJIT     = pattern.New(`^\s*Timing: .*\bTotal ([\d.]+) ms`)
	pgWanted  = pattern.New(`^\s*Workers Planned: (\d+)`)
	pgChanges = pattern.New(`^(?:Update|Insert|Delete|Merge) on `)
)

// fewRows is up to how many rows a statement changes at once, as a rule.
const fewRows = 100

// besides is what a plan says below its nodes.
type besides struct {
	trigger         string
	calls, trig     float64 // the longest trigger
	jit             float64
	wanted, started float64 // workers: of the Gather that lacks most
}

func pgBesides(lines []paste.Line) (b besides) {
	wanted := 0.0
	for _, l := range lines {
		if m := pgTrigger.FindStringSubmatch(l.Text); m != nil {
			if ms, _ := number(m[2]); ms/1e3 > b.trig {
				b.trigger, b.trig = m[1], ms/1e3
				b.calls, _ = number(m[3])
			}
		}
		if m := pgJIT.FindStringSubmatch(l.Text); m != nil {
			ms, _ := number(m[1])
			b.jit = max(b.jit, ms/1e3)
		}
		if m := pgWanted.FindStringSubmatch(l.Text); m != nil {
			wanted, _ = number(m[1])
		}
		if m := pgWorkers.FindStringSubmatch(l.Text); m != nil {
			if v, _ := number(m[1]); wanted-v > b.wanted-b.started {
				b.wanted, b.started = wanted, v
			}
			wanted = 0
		}
	}
	return b
}

// say gives the figures of what is much beside the whole.
func (b besides) say(r *result, total float64) {
	if b.trig >= 0.1*total {
		r.figure(fmt.Sprintf("the trigger %s took %s, in %s", b.trigger, dur(b.trig), attach.Plural(int(min(b.calls, 1e9)), "call")))
	}
	if b.jit >= 0.1*total {
		r.figure(fmt.Sprintf("compiling parts of the statement (JIT) took %s", dur(b.jit)))
	}
	if b.wanted > b.started {
		r.figure(fmt.Sprintf("%s of %s workers were started: the others were in use, or the server allows no more", count(b.started), count(b.wanted)))
	}
}

// where says that a trigger or compiling has half of the time or more.
func (b besides) where(r *result, total float64, again string) bool {
	switch {
	case b.trig >= 0.5*total:
		r.outside("the trigger "+b.trigger, fmt.Sprintf("the trigger %s took %s of %s", b.trigger, dur(b.trig), dur(total)), ratio(b.trig, total))
		r.next("auto_explain with log_nested_statements", "shows the plans of the statements that a trigger runs")
	case b.jit >= 0.5*total:
		r.outside("compiling the statement (JIT)", fmt.Sprintf("JIT took %s of %s", dur(b.jit), dur(total)), ratio(b.jit, total))
		r.next("SET jit = off, then "+again, "whether it is faster without")
	default:
		return false
	}
	return true
}

// amongAlike is what tells a node from others of its name: its condition or its keys; "": it needs
// none, or has none.
func amongAlike(nodes []*node, at *node) string {
	alike := slices.ContainsFunc(nodes, func(n *node) bool { return n != at && n.name == at.name })
	if !alike || at.cond == "" {
		return ""
	}
	return " (" + short(at.cond) + ")"
}

// waitsToChange reports whether a node changes few rows, and has time that these do not explain.
func waitsToChange(nodes []*node, at *node) bool {
	for i, n := range nodes[:len(nodes)-1] {
		if in := nodes[i+1]; n == at && pgChanges.MatchString(n.name) {
			return in.depth > n.depth && in.act >= 0 && in.act*max(1, in.loops) <= fewRows && !n.cut
		}
	}
	return false
}
