package systool

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// nmonScreen is what nmon shows, as people copy it from a terminal: boxes of lines.
var nmonScreen = &attach.Kind{
	Name:  "nmon screen",
	Hints: []string{"nmon-", "nmon──", "CPU Utilisation", "CPU  User%", "CPU User%"},
	Claim: claimNmonScreen,
	Read:  readNmonScreen,
}

var (
	nmonTop   = pattern.New(`^\W*nmon\W.*Hostname=(\S+?)-*[─q]*-? ?Refresh`)
	nmonHead  = pattern.New(`^ *CPU +User% +Sys% +Wait% +Idle%`)
	nmonTitle = pattern.New(`^\W*CPU Utili[sz]ation`)
	nmonAvg   = pattern.New(`^ *Avg +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)`)
	nmonCPU   = pattern.New(`^ *(\d+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) *[|x│]`)
	nmonDisk  = pattern.New(`^ *([a-z][\w.-]*) +(\d+)% +([\d.]+) +([\d.]+) *[|x│]`)
)

// nmonInner takes the box from a line; false: there is none.
func nmonInner(text string) (string, bool) {
	text = strings.TrimSpace(text)
	for _, edge := range []string{"|", "│", "x", "+", "┌", "├", "└", "l", "m", "t", "─", "q"} {
		if rest, ok := strings.CutPrefix(text, edge); ok {
			return rest, true
		}
	}
	return text, false
}

func claimNmonScreen(lines []paste.Line) int {
	known := func(text string) bool {
		inner, boxed := nmonInner(text)
		return nmonTop.MatchString(strings.TrimSpace(text)) || boxed &&
			(nmonHead.MatchString(inner) || nmonTitle.MatchString(inner))
	}
	if !known(lines[0].Text) {
		return 0
	}
	rows := 0
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		inner, boxed := nmonInner(text)
		if nmonCPU.MatchString(inner) || nmonAvg.MatchString(inner) || nmonDisk.MatchString(inner) {
			rows++
		}
		return boxed && len(text) < 400 || nmonTop.MatchString(strings.TrimSpace(text))
	})
	return attach.ClaimIf(rows > 0, n)
}

func readNmonScreen(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.Glance = "nmon, 1 screen", true
	c := cpuUse{samples: 1, runnable: -1, blocked: -1}
	known, name, busy, all := false, "", -1.0, ""
	for _, l := range p.Lines {
		if m := nmonTop.FindStringSubmatch(strings.TrimSpace(l.Text)); m != nil {
			v.Who.Host = strings.TrimRight(m[1], "-")
		}
		inner, _ := nmonInner(l.Text)
		if m := nmonCPU.FindStringSubmatch(inner); m != nil {
			n, _ := whole(m[1])
			c.cpus = max(c.cpus, min(n, maxCPUs))
			if !known {
				c.shares(m[2:])
			}
		}
		if m := nmonAvg.FindStringSubmatch(inner); m != nil {
			known = true
			c.shares(m[1:])
		}
		if m := nmonDisk.FindStringSubmatch(inner); m != nil {
			if f, _ := number(m[2]); f > busy {
				name, busy = m[1], f
				all = m[1] + ": " + m[2] + " % busy, reads " + m[3] + " KB/s, writes " + m[4] + " KB/s"
			}
		}
	}
	if known || c.cpus == 1 {
		v.figure("CPUs: %s", c)
		c.judge(v)
	} else {
		v.unsure = true
		v.means("the row of all CPUs is not in it")
	}
	if name != "" {
		v.figure("the busiest disk is %s", all)
		if busy >= 90 {
			v.proves("disk-wait", all)
		}
	}
	v.means("the CPUs have room at that moment")
	v.not("one screen is a glance, and a busy disk may be fast")
	return v.done()
}

// shares sets user, system, iowait and idle.
func (c *cpuUse) shares(cells []string) {
	for i, f := range []*float64{&c.us, &c.sy, &c.wa, &c.id} {
		*f, _ = number(cells[i])
	}
}
