package kernelfile

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// oomdLog is what systemd-oomd and oomctl say. It kills a whole cgroup, for pressure: time that
// tasks waited for memory; or for swap that is used up.
type oomdLog struct {
	killed    []oomdKill
	processes string
	groups    []*oomdGroup
	system    string // "1.7G of 3.8G"
	swap      string
	watching  bool     // oomctl: it kills nothing
	over      oomdKill // pressure over its limit, whoever is killed for it
}

type oomdKill struct {
	group, of, pressure, limit, during string
	bare                               bool // why is not in the paste
}

type oomdGroup struct {
	path, usage, total string
	avg                [3]float64 // percent
}

var (
	oomdPressure = pattern.New(`(?:(?:Killed|Marked) (\S+) (?:for killing )?due to )?[Mm]emory pressure for (\S+) (?:being|is) ([\d.]+%) > ([\d.]+%)(?: for > (\S+))?`)
	oomdSwap     = pattern.New(`(?:Killed|Marked) (\S+) (?:for killing )?due to (?:memory used|swap used).*?(\d+(?:\.\d+)?%)`)
	oomdBare     = pattern.New(`^(?:Killed|Marked) (/\S*)(?: for killing)?(?: due to.*)?$`) // cut off, or a reason of another release
	oomdCount    = pattern.New(`systemd-oomd killed (\d+) process`)
	oomdAvg      = pattern.New(`^Pressure: Avg10: ([\d.]+) Avg60: ([\d.]+) Avg300: ([\d.]+)(?: Total: (.+))?`)
	oomdUsed     = pattern.New(`^(Memory|Swap): Used: (\S+) Total: (\S+)`)
)

func (o *oomdLog) read(text string) bool {
	if m := oomdPressure.FindStringSubmatch(text); m != nil {
		k := oomdKill{group: m[1], of: m[2], pressure: m[3], limit: m[4], during: m[5]}
		switch {
		case m[1] == "":
			o.over = k
		case len(o.killed) < 256:
			o.killed = append(o.killed, k)
		}
		return true
	}
	if m := oomdSwap.FindStringSubmatch(text); m != nil {
		if len(o.killed) < 256 {
			o.killed = append(o.killed, oomdKill{group: m[1], limit: m[2]})
		}
		return true
	}
	if m := oomdBare.FindStringSubmatch(text); m != nil {
		if len(o.killed) < 256 {
			o.killed = append(o.killed, oomdKill{group: m[1], bare: true})
		}
		return true
	}
	if m := oomdCount.FindStringSubmatch(text); m != nil {
		o.processes = m[1]
		return true
	}
	if m := oomdUsed.FindStringSubmatch(text); m != nil {
		if m[1] == "Memory" {
			o.system = m[2] + " of " + m[3]
		} else {
			o.swap = m[2] + " of " + m[3]
		}
		return true
	}
	if p, ok := strings.CutPrefix(text, "Path: "); ok {
		if len(o.groups) < 1024 {
			o.groups = append(o.groups, &oomdGroup{path: p})
		}
		return true
	}
	if n := len(o.groups); n > 0 {
		g := o.groups[n-1]
		if m := oomdAvg.FindStringSubmatch(text); m != nil {
			g.avg, g.total = [3]float64{float(m[1]), float(m[2]), float(m[3])}, m[4]
			return true
		}
		if u, ok := strings.CutPrefix(text, "Current Memory Usage: "); ok {
			g.usage = u
			return true
		}
	}
	o.watching = o.watching || strings.HasPrefix(text, "Dry Run: ") ||
		strings.HasPrefix(text, "Default Memory Pressure")
	return oomdField.MatchString(text) || oomctlTop.MatchString(text) ||
		oomdLine.MatchString(text) || oomdUnit.MatchString(text)
}

func (k oomdKill) String() string {
	if k.bare {
		return fmt.Sprintf("killed %s", printed(tail(k.group)))
	}
	if k.of == "" {
		return fmt.Sprintf("killed %s: memory and swap were used up beyond %s",
			printed(path.Base(k.group)), printed(k.limit))
	}
	text := ""
	if k.group != "" {
		text = "killed " + printed(path.Base(k.group)) + ": "
	}
	text += fmt.Sprintf("pressure of %s was %s, over its limit of %s", printed(tail(k.of)),
		printed(k.pressure), printed(k.limit))
	if k.during != "" {
		text += ", for " + printed(k.during) + " and more"
	}
	return text
}

func (g *oomdGroup) String() string {
	return fmt.Sprintf("%s: tasks waited for memory %s of the last 10 s, %s of 60 s, %s of 300 s; it uses %s", printed(path.Base(g.path)), percent(g.avg[0]/100), percent(g.avg[1]/100), percent(g.avg[2]/100), printed(cmp.Or(g.usage, "an amount that is not in the paste")))
}

// worst is the group whose tasks waited most.
func (o *oomdLog) worst() (out *oomdGroup) {
	for _, g := range o.groups {
		if g.avg != [3]float64{} && (out == nil || g.avg[0] > out.avg[0]) {
			out = g
		}
	}
	return out
}

func (o *oomdLog) say(out *attach.Reading) {
	if len(o.killed) == 0 && len(o.groups) == 0 && o.processes == "" && o.system == "" && o.over.of == "" {
		return
	}
	for _, k := range o.killed[:min(2, len(o.killed))] {
		out.Figures = append(out.Figures, k.String())
	}
	if len(o.killed) == 0 && o.over.of != "" {
		out.Figures = append(out.Figures, o.over.String())
	}
	if o.processes != "" {
		out.Figures = append(out.Figures, o.processes+
			map[bool]string{true: " process", false: " processes"}[o.processes == "1"]+" of the unit killed")
	}
	worst := o.worst()
	if worst != nil {
		out.Figures = append(out.Figures, worst.String())
	}
	if o.system != "" {
		out.Figures = append(out.Figures, "memory used: "+printed(o.system)+", swap "+
			printed(cmp.Or(o.swap, "not said")))
	}
	for _, g := range o.groups {
		if years, _, ok := strings.Cut(g.total, "y "); ok && float(years) > 5 {
			out.Figures = append(out.Figures, "the total of pressure is "+printed(g.total)+
				", which no machine has run: that counter is broken")
			break
		}
	}
	o.judge(out, worst)
}

func (o *oomdLog) judge(out *attach.Reading, worst *oomdGroup) {
	switch {
	case len(o.killed) > 0 && o.killed[0].bare:
		say(out, attach.CannotTell, "A group was killed by systemd-oomd, not by the kernel; why is not in the paste.")
	case len(o.killed) > 0 && o.killed[0].of == "":
		say(out, attach.CannotTell,
			"A group was killed by systemd-oomd since memory and swap were used up: an end, and by itself no cause of latency.")
		shortOfMemory(out, out.Figures[0])
		out.Not = cmp.Or(out.Not, "who used the memory: the group that is killed is the one with most in swap")
	case len(o.killed) > 0:
		say(out, attach.CannotTell,
			"A group was killed by systemd-oomd, not by the kernel: tasks had waited for memory for so large a part of the time. That is time, and not that memory was full.")
		shortOfMemory(out, out.Figures[0])
	case o.over.of != "":
		say(out, attach.CannotTell,
			"Tasks of a group wait for memory for a larger part of the time than systemd-oomd allows. That is time, and not that memory is full.")
		shortOfMemory(out, out.Figures[0])
	case o.processes != "":
		say(out, attach.CannotTell, "A unit was killed by systemd-oomd, not by the kernel; why is not in the paste.")
	case worst != nil && worst.avg[0] >= 5:
		say(out, attach.CannotTell, "Tasks of a watched group wait for memory.")
		shortOfMemory(out, worst.String())
	case worst == nil:
		say(out, attach.CannotTell, "No figure of pressure is in it.")
		return
	default:
		say(out, attach.Healthy, "No group that the paste shows waits for memory now, by its averages.")
		return
	}
	out.Not = cmp.Or(out.Not, "that memory was exhausted, nor that the killed group made others wait: it is the one that reclaimed most")
}
