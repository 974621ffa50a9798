package systool

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// glances is its screen as a terminal shows it, and the values of --stdout.
var glances = &attach.Kind{
	Name:  "glances",
	Hints: []string{"Uptime: ", "ctx_sw", "cpu.", "mem.", "load: {"},
	Claim: claimGlances,
	Read:  readGlances,
}

var (
	glancesValue = pattern.New(`^(?:cpu|percpu|mem|memswap|load|diskio|fs|network|processcount|quicklook)(?:\.\w+)?: (?:-?[\d.]+|\{.*\}|\[.*\])$`)
	glancesPart  = pattern.New(`\b(idle|user|system|iowait|steal|irq) +([\d.]+)%`)
	glancesCores = pattern.New(`\bLOAD +(\d+)-?core`)
	glancesLoad  = pattern.New(`\b1 min:? +([\d.]+)|'min1': ([\d.]+)`)
	glancesTask  = pattern.New(`(?:^|\s)>?(\d+\.\d) +\d+\.\d +\S+ +\S+ +(\d+) \S+ +\d+:\d+ +\d+ +-?\d+ [A-Z] +\S+ +\S+ (\S+)`)
)

// glancesHead is how many lines from the first on a screen may need to be known.
const glancesHead = 6

func claimGlances(lines []paste.Line) int {
	if glancesValue.MatchString(lines[0].Text) {
		n := attach.ClaimWhile(lines, func(_ int, text string) bool { return glancesValue.MatchString(text) })
		if n < 2 {
			return 0
		}
		return n
	}
	if !strings.Contains(lines[0].Text, "Uptime: ") && !strings.Contains(lines[0].Text, "ctx_sw") {
		return 0
	}
	head := ""
	for _, l := range lines[:min(len(lines), glancesHead)] {
		head += l.Text + "\n"
	}
	if !strings.Contains(head, "ctx_sw") || !glancesCores.MatchString(head) {
		return 0
	}
	return attach.ClaimWhile(lines, func(_ int, text string) bool {
		return len(text) < 500 &&
			(strings.Contains(text, "  ") || strings.HasPrefix(text, " ")) // a screen's columns, and no prose
	})
}

func readGlances(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.Glance = "glances, 1 screen", true
	percent := map[string]float64{}
	c := cpuUse{samples: 1, runnable: -1, blocked: -1}
	most, who := 0.0, ""
	values := map[string][]float64{}
	for _, l := range p.Lines {
		if name, value, ok := strings.Cut(l.Text, ": "); ok && glancesValue.MatchString(l.Text) {
			if f, ok := number(value); ok {
				values[name] = append(values[name], f)
			}
		}
		for _, m := range glancesPart.FindAllStringSubmatch(l.Text, -1) {
			if _, ok := percent[m[1]]; !ok {
				percent[m[1]], _ = number(m[2])
			}
		}
		if m := glancesCores.FindStringSubmatch(l.Text); m != nil {
			c.cpus, _ = whole(m[1])
		}
		if m := glancesLoad.FindStringSubmatch(l.Text); m != nil && c.runnable < 0 {
			c.runnable, _ = number(cmp.Or(m[1], m[2]))
			c.load = true
		}
		if m := glancesTask.FindStringSubmatch(l.Text); m != nil {
			if cpu, _ := number(m[1]); cpu > most {
				most, who = cpu, fmt.Sprintf("%s (pid %s): %s %% of a CPU", m[3], m[2], m[1])
			}
		}
	}
	v.not("a screen is a glance: a load average counts threads that wait for disks as well, and who waited is not in it")
	if _, ok := percent["idle"]; !ok {
		v.Title = "glances --stdout"
		v.unsure = true
		for _, name := range attach.Largest(lengths(values))[:min(3, len(values))] {
			v.figure("%s: %s in the median of %s", name, plain(attach.Median(values[name])), samples(len(values[name])))
		}
		v.means("it prints the values that were asked for, and nothing of who waited")
		v.next("vmstat 1 10", "r, wa and st: whether threads wait for CPUs or disks")
		return v.done()
	}
	c.us, c.sy, c.id, c.wa, c.st, c.hi = percent["user"], percent["system"], percent["idle"],
		percent["iowait"], percent["steal"], percent["irq"]
	v.figure("CPUs: %s", c)
	if c.runnable >= 0 {
		v.figure("load %s on %s", fixed(c.runnable), attach.Plural(c.cpus, "CPU"))
	}
	if who != "" {
		v.figure("%s", who)
	}
	c.judge(v)
	for i := range v.Signs { // of one screen nothing is found
		if s := &v.Signs[i]; s.Grade == attach.Found {
			s.Grade, s.Sure = attach.Candidate, ""
		}
	}
	v.means("at this moment the CPUs had room")
	return v.done()
}

func lengths(of map[string][]float64) map[string]int {
	out := map[string]int{}
	for k, v := range of {
		out[k] = len(v)
	}
	return out
}
