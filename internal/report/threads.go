package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// running describes the run queue.
func (k *Kernel) running() string {
	s := fmt.Sprintf("on a CPU or queued at once: %.1f on average, %d at most", k.RunnableAvg, k.RunnableMax)
	if k.GlanceAvg > 0 {
		s += fmt.Sprintf(" (a single look, like top's, would have seen %.1f running)", k.GlanceAvg)
	}
	s += fmt.Sprintf("; %s switches, %s of them involuntary", count(k.Switches), count(k.Involuntary))
	if k.StoodNS > 0 {
		s += "; for " + finding.Duration(k.StoodNS) + " no thread ran while one was throttled"
	}
	return s
}

// who names what ran while threads were queued.
func (k *Kernel) who() string {
	var whole int64
	var l []account.Instead
	for _, n := range k.Neighbours {
		whole += n.NS
		who := fmt.Sprintf("%s (pid %d)", n.Comm, n.PID)
		if n.Own {
			who = "own threads"
		} else if n.PID == 0 {
			who = n.Comm
		}
		if i := slices.IndexFunc(l, func(w account.Instead) bool { return w.Who == who }); i >= 0 {
			l[i].NS += n.NS
			continue
		}
		l = append(l, account.Instead{Who: who, NS: n.NS})
	}
	if whole == 0 {
		return ""
	}
	return whoList(l, whole, 5)
}

// ran names what had the CPUs, where only samples show it.
func (k *Kernel) ran() string {
	var whole int64
	for _, w := range k.Ran {
		whole += w.NS
	}
	if whole == 0 {
		return ""
	}
	return whoList(k.Ran, whole, 5) + " (by " + plural(k.RanN, "sample", "samples") + ")"
}

// standstills says when the whole process had work and no thread of it ran.
func (k *Kernel) standstills() string {
	if len(k.Standstills) == 0 {
		return ""
	}
	more := ""
	if len(k.Standstills) == account.MostStandstills {
		more = " or more"
	}
	s := &k.Standstills[0]
	t := fmt.Sprintf("no thread ran for 10 ms or more although one was queued or throttled: %s%s, the longest %s",
		plural(int64(len(k.Standstills)), "time", "times"), more, finding.Duration(s.End-s.Begin))
	if s.UTC != nil {
		t += ", at " + timeOfDay(*s.UTC)
	}
	return t + ", " + share2(s.ThrottledNS, s.End-s.Begin) + " of it throttled"
}

// timeOfDay is the part of an RFC 3339 time that differs between moments of one recording.
func timeOfDay(utc string) string {
	const day = len("2006-01-02 ")
	t := clock(utc, len("2006-01-02T15:04:05.000"))
	return t[min(day, len(t)):] + " UTC"
}

func (s *Stretches) words() string {
	t := fmt.Sprintf("%s: %s", s.Kind, plural(s.N, "time", "times"))
	if s.NS > 0 {
		t += fmt.Sprintf(", %s in all", finding.Duration(s.NS))
	}
	if s.Max > 0 { // what is known by samples has none
		t += fmt.Sprintf(", the longest %s", finding.Duration(s.Max))
	}
	if s.Order > 0 {
		t += fmt.Sprintf(", order %d", s.Order)
	}
	if len(s.Sites) > 0 && s.Sites[0].Func != "" {
		t += ", most in " + middle(Printable(shortFunc(s.Sites[0].Func)), 40)
	}
	return t
}

// rest reports threads that were started, and lateness, where there were any.
func (k *Kernel) rest() string {
	var parts []string
	if c := &k.Churn; c.Created > 0 {
		s := plural(c.Created, "thread", "threads") + " started"
		if c.FirstMax > 0 {
			s += fmt.Sprintf(" (first run after %s at p50, after %s at most)",
				finding.Duration(c.FirstP50), finding.Duration(c.FirstMax))
		}
		parts = append(parts, s+fmt.Sprintf(", %s ended", count(c.Exited)))
	}
	for _, l := range []struct {
		what string
		l    *account.LateSum
	}{{"from data at a socket until its goroutine was runnable", &k.SocketsLate},
		{"from a timer's due time until its goroutine was runnable", &k.TimersLate}} {
		if l.l.N > 0 {
			parts = append(parts, fmt.Sprintf("%s: p50 %s, p99 %s, max %s", l.what,
				finding.Duration(l.l.P50), finding.Duration(l.l.P99), finding.Duration(l.l.Max)))
		}
	}
	return strings.Join(parts, "; ")
}
