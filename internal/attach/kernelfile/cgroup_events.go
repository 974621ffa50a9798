package kernelfile

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// readFails reads memory.failcnt of v1: how often the group was at its limit.
func (g memGroup) readFails(r *attach.Reading) {
	n := len(g.fails)
	if n == 0 {
		return
	}
	last := g.fails[n-1]
	r.Facts = append(r.Facts, attach.Fact{Name: factGroupFails, Value: last})
	if by := last - g.fails[0]; n > 1 && by >= 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("the limit was hit %s times between the readings (failcnt), %s since the group was made", number(by), number(last)))
		if by == 0 {
			r.Means = "Between the readings the group did not hit its memory limit."
			return
		}
		last = by
	} else {
		r.Figures = append(r.Figures, fmt.Sprintf("the limit was hit %s times since the group was made (failcnt)", number(last)))
		r.Boot = true
	}
	if last < fewStalls {
		return
	}
	r.State = attach.CannotTell
	r.Means = "The group has hit its memory limit and had to free memory within; whether it still does, a second reading tells."
	if !r.Boot {
		r.Means = "Between the readings the group hit its memory limit and had to free memory within."
	}
	if g.limit > 0 && ratio(g.used, g.limit) >= 0.95 {
		r.Signs = append(r.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Candidate, Counter: factGroupFails, Proof: r.Figures})
		r.Not = "that the program lacks memory: page cache alone takes a group to its limit, and is given back at no great cost"
	}
}

func (g memGroup) readEvents(r *attach.Reading) {
	g.readFails(r)
	if len(g.events) == 0 {
		return
	}
	last := g.events[len(g.events)-1]
	r.Title += ": memory.events"
	text := func(m func(...string) float64) string {
		var said []string
		if last.has("max") {
			said = append(said, fmt.Sprintf("limit hit %s times (max)", number(m("max"))))
		}
		if last.has("high") {
			said = append(said, fmt.Sprintf("memory.high %s times", number(m("high"))))
		}
		if last.has("oom_kill") {
			said = append(said, plural(int(m("oom_kill")), "process", "processes")+" killed")
		}
		if len(said) == 0 {
			return "no counter of its limit"
		}
		return strings.Join(said, ", ")
	}
	limited := last.has("max") || last.has("high")
	grow, ok := growth(g.all, g.events, "low", "high", "max", "oom", "oom_kill")
	if ok && grow.fell == "" {
		by := func(n ...string) float64 { return grow.by(n[0]) }
		r.Title += fmt.Sprintf(", %d samples%s", len(g.events), over(grow.seconds))
		last = grow.to
		limited = last.has("max") || last.has("high")
		r.Figures = append([]string{text(by) + " between the samples"}, r.Figures...)
		if grow.seconds > 0 {
			r.Facts = append(r.Facts, attach.Fact{Name: FactGroupMaxRate, Value: grow.by("max") / grow.seconds})
		}
		if n := grow.by("max") + grow.by("high"); enough(n, grow.seconds, stallRate, stallTotal) {
			r.State = attach.Ill
			r.Means = fmt.Sprintf("Between the samples the group %s again and again, and its threads had to free memory themselves.",
				limitOf(grow.by("high"), grow.by("max")))
			r.Signs = append(r.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Found,
				Sure: finding.Possible, Proof: r.Figures[:1]})
			return
		}
		if !limited {
			r.State, r.Means = attach.CannotTell, "How often the limit was hit is not in the paste."
			return
		}
		r.Means = "Between the samples the group hit its memory limit next to never."
		return
	}
	r.Boot = true
	if n := len(g.events); n > 1 {
		r.Title += ", " + onceOf(n)
	}
	r.Figures = append([]string{text(last.get) + " since the group was made"}, r.Figures...)
	switch n := last.get("max") + last.get("high"); {
	case n >= fewStalls:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("The group %s %s times and had to free memory within; whether it still does, a second reading tells.",
			limitOf(last.get("high"), last.get("max")), number(max(last.get("high"), last.get("max"))))
	case last.get("oom_kill") > 0:
		r.State = attach.CannotTell
		where := "for lack of memory"
		switch {
		case last.get("oom") > 0 || last.get("max") > 0:
			where = "at the memory limit"
		case last.has("oom") && last.has("max"):
			where = "for lack of memory above this level, in a group around it or of the host: its own limit was never hit"
		}
		r.Means = fmt.Sprintf("Processes were killed %s. That is an end and a restart, and by itself no cause of latency.", where)
	case !limited:
		r.State, r.Means = attach.CannotTell, "How often the limit was hit is not in the paste."
	default:
		r.Means = "The group hardly ever hit its memory limit."
		if n == 0 {
			r.Means = "The group never hit its memory limit."
		}
	}
}

// limitOf says which of its limits a group was at more often: above memory.high its threads are
// slowed down, at memory.max they get nothing before something was freed.
func limitOf(high, most float64) string {
	if high > most {
		return "went above memory.high"
	}
	return "hit its memory limit"
}
