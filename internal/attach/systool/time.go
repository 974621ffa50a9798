package systool

import (
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// timed is what the shell's time says of one command: how long it took, and the CPU time of it.
var timed = &attach.Kind{
	Name:    "time",
	Reports: true, // each is of a run of its own
	Hints:   []string{"real", "elapsed", " cpu "},
	Claim:   claimTime,
	Read:    readTime,
}

var (
	timeLine = pattern.New(`^(real|user|sys)\s+(?:(\d+)m ?)?([\d.,]+)s?$`)
	timeGNU  = pattern.New(`^([\d.]+)user ([\d.]+)system (?:(\d+):)?(\d+):([\d.]+)elapsed \d+%CPU`)
	timeZsh  = pattern.New(`\b([\d.]+)s user ([\d.]+)s system \d+% cpu (?:(\d+):)?([\d.:]+) total$`)
	timeMore = pattern.New(`^\(?\d+inputs\+\d+outputs \(`)
)

// timeNames are the shell's lines, in its order.
var timeNames = []string{"real", "user", "sys"}

func claimTime(lines []paste.Line) int {
	text := strings.TrimSpace(lines[0].Text)
	if timeGNU.MatchString(text) || timeZsh.MatchString(text) {
		if len(lines) > 1 && lines[1].Command == "" && timeMore.MatchString(strings.TrimSpace(lines[1].Text)) {
			return 2
		}
		return 1
	}
	if len(lines) < len(timeNames) {
		return 0
	}
	for i, name := range timeNames {
		m := timeLine.FindStringSubmatch(strings.TrimSpace(lines[i].Text))
		if m == nil || m[1] != name || i > 0 && lines[i].Command != "" {
			return 0
		}
	}
	return len(timeNames)
}

// timeOf adds minutes and seconds.
func timeOf(minutes, s string) float64 {
	m, _ := strconv.ParseFloat(minutes, 64)
	v, _ := strconv.ParseFloat(strings.Replace(s, ",", ".", 1), 64)
	return 60*m + v
}

func readTime(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.unsure = "time of one command", true
	var real, cpu float64
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if m := timeLine.FindStringSubmatch(text); m != nil {
			if m[1] == "real" {
				real = timeOf(m[2], m[3])
			} else {
				cpu += timeOf(m[2], m[3])
			}
		} else if m := timeGNU.FindStringSubmatch(text); m != nil {
			real, cpu = 60*timeOf(m[3], m[4])+timeOf("", m[5]), timeOf("", m[1])+timeOf("", m[2])
		} else if m := timeZsh.FindStringSubmatch(text); m != nil {
			minutes, s, ok := strings.Cut(m[4], ":")
			if !ok {
				minutes, s = "", m[4]
			}
			real, cpu = 3600*timeOf("", "0"+m[3])+timeOf(minutes, s), timeOf("", m[1])+timeOf("", m[2])
		}
	}
	v.figure("it took %s s", plain(real))
	if real > 0 {
		v.figure("it used %s s of CPU itself, %s %% of one CPU", plain(cpu), plain(100*cpu/real))
	}
	v.not("what a server did for it: CPU time of other processes is not in it")
	switch {
	case real < leastTimed:
		v.means("it was over at once")
	case cpu < real/2:
		v.means("it waited for %s s: for a server, a disk, a lock, or its own sleep; what for is not in it", plain(real-cpu))
		v.next("strace -c -w -f the same command", "which calls it waits in")
	case cpu > 1.5*real:
		v.means("it computed on several CPUs at once")
	default:
		v.means("it computed most of the time")
	}
	return v.done()
}

// leastTimed is a time in s that nobody calls slow.
const leastTimed = 0.1
