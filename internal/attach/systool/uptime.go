package systool

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var uptime = &attach.Kind{
	Name:  "uptime",
	Hints: []string{"load average"},
	Claim: claimUptime,
	Read:  readUptime,
	When:  whenUp,
}

var uptimeLine = pattern.New(`(?:^|\s)up\s.*load averages?: *[\d.,]+|^\S*,? *load averages?: *[\d.,]+`)

// claimUptime takes the line of uptime, several of them, and the table of w below it.
func claimUptime(lines []paste.Line) int {
	w := false
	return attach.ClaimWhile(lines, func(at int, text string) bool {
		text = strings.TrimSpace(text)
		switch f := fields(text); {
		case topFirst.MatchString(text), strings.HasPrefix(text, "Load average:"):
			return false // top's, and busybox top's
		case len(text) < 160 && uptimeLine.MatchString(text):
			w = false
			return len(loads(text)) == 3
		case len(f) >= 6 && f[0] == "USER" && f[1] == "TTY" && strings.Contains(text, "JCPU"):
			w = true
			return true
		default:
			return w && len(f) >= 7 &&
				(strings.HasPrefix(f[1], "pts/") || strings.HasPrefix(f[1], "tty") ||
					strings.HasPrefix(f[1], ":") || f[1] == "-")
		}
	})
}

func readUptime(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title = "uptime"
	var last []float64
	n, waits, bsd := 0, "ran, waited for a CPU or slept in the kernel (D)", false
	for _, l := range p.Lines {
		if m := loads(l.Text); m != nil {
			last, bsd = m, strings.Contains(l.Text, "load averages:")
			n++
		}
	}
	if last == nil {
		v.unsure = true
		v.means("the load average is cut off")
		return v.done()
	}
	if overflowedLoad(v, last) {
		v.unsure = true
		v.means("the load average is of no use")
		v.next("vmstat 1 10", "r, b and id: whether threads want CPUs or the disk")
		return v.done()
	}
	if n > 1 {
		v.Title = fmt.Sprintf("uptime, %d times; the last counts", n)
	}
	if several(p) {
		return uptimes(v, p)
	}
	v.boot(p)
	v.figure("load average %s, %s, %s over 1, 5 and 15 minutes", fixed(last[0]), fixed(last[1]), fixed(last[2]))
	if bsd {
		waits = "ran or waited for a CPU"
		v.not("what waits for a disk: a system that writes load averages, as BSD and macOS do, need not count it")
	} else {
		v.not("the load average counts threads that want a CPU and threads in D alike")
	}
	most := max(last[0], last[1], last[2])
	switch {
	case most < 1:
		v.means("fewer than one thread on average %s", waits)
		return v.done()
	case last[0] > 2*last[2] && last[0] >= 2:
		v.means("load rises: %s in the mean of 15 minutes, %s in that of the last one; whether it is much depends on the number of CPUs", fixed(last[2]), fixed(last[0]))
	case last[2] > 2*last[0] && last[2] >= 2:
		v.means("load falls: %s in the mean of 15 minutes, %s in that of the last one", fixed(last[2]), fixed(last[0]))
	}
	v.unsure = true
	if most < 2 {
		v.means("one or two threads on average %s", waits)
		return v.done()
	}
	if bsd {
		v.means("whether that is much depends on how many CPUs there are")
		v.next("sysctl -n hw.ncpu", "the load average is to be held against the number of CPUs")
		return v.done()
	}
	v.means("whether that is much depends on how many CPUs there are, and on whether they are R or D")
	v.next("nproc", "the load average is to be held against the number of CPUs")
	v.next("vmstat 1 10", "r, b and id: whether threads want CPUs or the disk")
	return v.done()
}

// several reports whether the lines are not of one machine since it was started.
func several(p *attach.Part) bool {
	least, most, n := secondsOfDay, 0, 0
	for i := range p.Lines {
		if start, _, ok := booted(&attach.Part{Lines: p.Lines[i : i+1]}); ok {
			least, most, n = min(least, start), max(most, start), n+1
		}
	}
	return n > 1 && most-least > sameStart && secondsOfDay-(most-least) > sameStart
}

// sameStart is how far apart two times of one start may be, in seconds: an uptime is in minutes.
const sameStart = 300

// uptimes lists the loads of several machines.
func uptimes(v *verdict, p *attach.Part) attach.Reading {
	n := 0
	for _, l := range p.Lines {
		if m := loads(l.Text); m != nil {
			n++
			v.figure("load average %s, %s, %s", fixed(m[0]), fixed(m[1]), fixed(m[2]))
		}
	}
	v.Title, v.unsure = fmt.Sprintf("uptime, %d lines", n), true
	v.means("the lines are of several machines, or of one that was started or asleep in between: each load is to be held against the CPUs of its own")
	v.not("the load average counts threads that want a CPU and threads in D alike")
	v.next("nproc", "the load average is to be held against the number of CPUs")
	return v.done()
}

// mostThreads is the largest pid_max of Linux: no load is above it.
const mostThreads = 1 << 22

// overflowedLoad reports whether a load average is no number of threads, and says so: a counter of
// the kernel that falls below zero gives 2^32 and some.
func overflowedLoad(v *verdict, load []float64) bool {
	for _, l := range load {
		if l > mostThreads {
			v.Flaws = append(v.Flaws,
				fmt.Sprintf("load average %s: it is no number of threads, since a counter of the kernel fell below zero; it is left out", fixed(l)))
			return true
		}
	}
	return false
}
