package systool

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// androidCPU is what Android writes of the CPUs when an app does not answer: the load, processes by
// their CPU time, and the sum of all.
var androidCPU = &attach.Kind{
	Name:  "CPU usage (Android)",
	Hints: []string{"CPU usage", "% TOTAL", "Load: ", "% "},
	Claim: claimAndroidCPU,
	Read:  readAndroidCPU,
}

var (
	androidLoad  = pattern.New(`^Load: ([\d.]+) / ([\d.]+) / ([\d.]+)$`)
	androidSpan  = pattern.New(`^CPU usage from -?(\d+)ms to -?(\d+)ms (?:ago|later)\b`)
	anrRow       = pattern.New(`^[+-]? *([\d.]+)% (?:(\d+)/)?([A-Za-z][\w.:/@-]*?):?(?: +[(\d].*\b(?:user|kernel|faults)\b.*)?$`)
	androidFault = pattern.New(`\b(\d+) major\b`)
	androidTotal = pattern.New(`^(?:CPU usage )?(?:([\d.]+)% TOTAL:|TOTAL: ([\d.]+)%) (.*\b(?:user|kernel|iowait)\b.*)$`)
	androidPart  = pattern.New(`([\d.]+)% (user|kernel|iowait|irq|softirq)\b`)
)

func claimAndroidCPU(lines []paste.Line) int {
	sure := false
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		text = strings.TrimSpace(text)
		if androidTotal.MatchString(text) || androidSpan.MatchString(text) {
			sure = true
			return true
		}
		return androidLoad.MatchString(text) || anrRow.MatchString(text) && len(text) < 200
	})
	return attach.ClaimIf(sure && n > 1, n)
}

func readAndroidCPU(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title = "CPU usage of Android"
	c, known := cpuUse{samples: 1, runnable: -1, blocked: -1}, false
	var tasks []string
	type thread struct {
		name string
		use  float64
	}
	var threads []thread
	major := 0.0
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		switch {
		case androidLoad.MatchString(text):
			m := androidLoad.FindStringSubmatch(text)
			v.figure("load average %s, %s, %s", m[1], m[2], m[3])
		case androidTotal.MatchString(text):
			if !known { // the first one is of the longest time
				c, known = anrShares(androidTotal.FindStringSubmatch(text)), true
			}
		case !androidSpan.MatchString(text) && anrRow.MatchString(text) && !known:
			m := anrRow.FindStringSubmatch(text)
			use, _ := number(m[1])
			if m[2] != "" {
				threads = append(threads, thread{m[3], use})
			}
			tasks = append(tasks, fmt.Sprintf("%s %s %%", m[3], plain(use)))
			if f := androidFault.FindStringSubmatch(text); f != nil {
				n, _ := number(f[1])
				major += n
			}
		}
	}
	if known {
		v.figure("CPUs: %s", c)
	}
	if len(tasks) > 0 {
		v.figure("most CPU time, in percent of a CPU: %s", strings.Join(tasks[:min(4, len(tasks))], ", "))
	}
	if major > 0 {
		v.figure("%s major faults of the processes listed", plain(major))
	}
	for _, t := range threads {
		v.kernelThread(t.name, t.use, "a CPU")
	}
	if known {
		c.judge(v)
		v.means("the CPUs are %s %% busy over that time", plain(100-c.id-c.wa))
	}
	v.unsure = true
	v.means("how busy the CPUs are in all is cut off")
	v.not("which thread did not answer, and what it waited for: its stack says that")
	return v.done()
}

// anrShares reads the sum of all CPUs. Its first figure counts iowait as well.
func anrShares(m []string) (c cpuUse) {
	c = cpuUse{samples: 1, runnable: -1, blocked: -1}
	sum := 0.0
	for _, part := range androidPart.FindAllStringSubmatch(m[3], 8) {
		f, _ := number(part[1])
		sum += f
		switch part[2] {
		case "user":
			c.us = f
		case "kernel":
			c.sy = f
		case "iowait":
			c.wa = f
		case "irq":
			c.hi = f
		case "softirq":
			c.si = f
		}
	}
	all, _ := number(m[1] + m[2])
	c.id = max(0, 100-max(all, sum))
	return c
}
