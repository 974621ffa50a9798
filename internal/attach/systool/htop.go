package systool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var htop = &attach.Kind{
	Name:  "htop",
	Hints: []string{"%]", "[|", "B]", "G]", "M]", "K]", "Tasks: ", "├─", "└─"},
	Claim: claimHtop,
	Read:  readHtop,
}

var (
	// htopBar is a bar: a CPU's number, or Mem and Swp, and what is in its brackets. Two columns of
	// bars make two in a line.
	htopBar   = pattern.New(`(?:^|\s)(\d{1,4}|Mem|Swp|CPU|Avg)\s*\[([|#* :!.\w,%/-]*?)([\d.,]+%|[\d.,]+[KMGT]?i?B?/[\d.,]+[KMGT]?i?B?)\s*\]`)
	htopTasks = pattern.New(`Tasks: (\d+), (\d+) thr(?:, \d+ kthr)?; (\d+) running`)
	htopLoad  = pattern.New(`Load average: ([\d.,]+) ([\d.,]+) ([\d.,]+)`)
)

func htopSummary(text string) bool {
	return htopBar.MatchString(text) || htopTasks.MatchString(text) || htopLoad.MatchString(text) &&
		!strings.Contains(text, "/") || strings.HasPrefix(strings.TrimSpace(text), "Uptime: ")
}

// htopWords makes top's names of htop's. A mark of the order stands right behind a name, where a
// blank would be.
var htopWords = strings.NewReplacer("CPU%-", "%CPU ", "MEM%-", "%MEM ", "CPU%+", "%CPU ", "MEM%+",
	"%MEM ", "CPU%", "%CPU", "MEM%", "%MEM", "PRI", "PR", "△", " ", "▽", " ", "▼", " ", "▲", " ")

// htopNames gives the columns of processes, by top's names.
func htopNames(text string) ([]string, bool) {
	return topHeader(htopWords.Replace(text))
}

func claimHtop(lines []paste.Line) int {
	var names []string
	bars, keys := 0, false
	n := attach.ClaimWhile(lines, func(at int, text string) bool {
		if htopBar.MatchString(text) || htopTasks.MatchString(text) {
			bars++
			return true
		}
		if htopSummary(text) {
			return bars > 0
		}
		f := fields(text)
		if h, ok := htopNames(text); ok && bars > 0 {
			names = h
			return true
		}
		if strings.HasPrefix(strings.TrimSpace(text), "F1Help") {
			keys = true
			return bars > 0
		}
		if slices.Contains(f, "Main") && slices.Contains(f, "I/O") ||
			strings.HasPrefix(strings.TrimSpace(text), "[Main]") {
			return bars > 0 // the tabs of htop 3.2
		}
		if names == nil && treeTop(f) {
			names = topDefault
		}
		return names != nil && !keys && len(f) >= len(names)-1 && topRow(names, f)
	})
	return attach.ClaimIf(bars > 0 || names != nil, n)
}

func readHtop(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.Glance = "htop, 1 screen", true
	s := screen{}
	if treeTop(fields(p.Lines[0].Text)) {
		s.names = topDefault
	}
	var busy []float64
	var deep []int
	for _, l := range p.Lines {
		for _, m := range htopBar.FindAllStringSubmatch(l.Text, 32) {
			if share, ok := number(m[3]); ok && strings.HasSuffix(m[3], "%") {
				if m[1] != "Mem" && m[1] != "Swp" && m[1] != "Avg" {
					busy = append(busy, share)
				}
				continue
			}
			used, all, ok := strings.Cut(m[3], "/")
			if !ok {
				continue
			}
			a, _ := size(all, 1)
			u, _ := size(used, htopUnit(used, all))
			if m[1] == "Swp" {
				s.mem.swapUsed, s.mem.swap = u, a
			} else {
				s.mem.total, s.mem.used, s.mem.available = a, u, a-u
			}
		}
		if h, ok := htopNames(l.Text); ok {
			s.names = h
		} else if f := fields(l.Text); s.names != nil && topRow(s.names, f) {
			f, depth := untree(s.names, f)
			s.rows, deep = append(s.rows, row{cells: f}), append(deep, depth)
		}
		if m := htopLoad.FindStringSubmatch(l.Text); m != nil {
			s.load = nil
			for _, c := range m[1:] {
				f, _ := number(c)
				s.load = append(s.load, f)
			}
		}
	}
	c := cpuUse{id: 100, samples: 1, runnable: -1, blocked: -1, cpus: len(busy), glance: true}
	if len(busy) > 0 {
		c.us = attach.Sum(busy) / float64(len(busy))
		c.id = 100 - c.us
		v.figure("%s, %s %% busy on average, %s %% the busiest", attach.Plural(len(busy), "CPU"),
			plain(c.us), plain(slices.Max(busy)))
		v.fact(CPUs, float64(len(busy)))
	}
	if s.load != nil {
		v.figure("load average %s, %s, %s", fixed(s.load[0]), fixed(s.load[1]), fixed(s.load[2]))
	}
	if s.mem.total > 0 {
		v.figure("memory: %s of %s used, cache not counted", bytes(s.mem.used), bytes(s.mem.total))
		v.fact(attach.MemoryTotal, s.mem.total)
	}
	s.cpus = len(busy)
	s.processes(v, 0) // a process stands beside its own threads: nothing is summed
	s.mostOf(v, c)
	s.family(v, deep)
	if len(busy) > 0 {
		s.unseen(v, c)
	}
	s.loaded(v, c, len(busy) > 0)
	if len(busy) > 0 && c.id <= idleNone {
		v.unsure = true
		v.means("the CPUs are %s %% busy in this one screen", plain(c.us))
		v.next("vmstat 1 10", "r against the number of CPUs")
	}
	s.scarce(v)
	v.not("one screen is a glance, and a bar does not say what a CPU is used for")
	full := 0
	for _, one := range busy {
		if one >= 100-idleNone {
			full++
		}
	}
	switch {
	case full > 0 && c.id >= 30:
		v.unsure = true
		v.means("%d of %d CPUs full in this one screen, while the others have room: threads that compute alone", full, len(busy))
		v.next("pidstat -u -t 1 10", "which threads fill a CPU")
	case len(busy) == 0:
		v.unsure = true
		v.means("how busy the CPUs are in all is not in it")
	default:
		v.room(c, s.mem.total > 0)
	}
	return v.done()
}

// htopUnit is the unit of what is used. Older versions write it once, behind all of it: 581/3916MB.
func htopUnit(used, all string) float64 {
	digits := strings.TrimRight(all, "KMGTiB")
	if _, bare := number(used); !bare || digits == all {
		return 1
	}
	unit, _ := size("1"+all[len(digits):], 1)
	return unit
}

// mostOf says that one process uses nearly all of what the CPUs do. Its row has the CPU time of all
// of its threads.
func (s *screen) mostOf(v *verdict, c cpuUse) {
	t := table{names: s.names, rows: s.rows}
	if len(t.rows) == 0 || c.cpus == 0 || !t.has("%CPU") {
		return
	}
	top := slices.MaxFunc(t.rows, func(a, b row) int { return cmp.Compare(t.num(a, "%CPU"), t.num(b, "%CPU")) })
	use, busy := t.num(top, "%CPU"), (100-c.id)*float64(c.cpus)
	if use < 100 || use < mostOfIt*busy {
		return
	}
	v.pid, _ = whole(t.cell(top, "PID"))
	v.Figures = slices.Insert(v.Figures, min(1, len(v.Figures)),
		fmt.Sprintf("%s %% of the %s %% that are busy are of the process %d", plain(use), plain(busy), v.pid))
}
