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

// toyboxTop is Android's top. Its shares of CPU time are of all CPUs together: 800 % on eight.
var toyboxTop = &attach.Kind{
	Name:  "toybox top",
	Hints: []string{"Tasks:", "Threads:", "Mem:", "%cpu", "[%CPU]"},
	Claim: claimToyboxTop,
	Read:  readToyboxTop,
}

var (
	toyboxCPU   = pattern.New(`^(\d+)%cpu +(\d+)%user +(\d+)%nice +(\d+)%sys +(\d+)%idle +(\d+)%iow +(\d+)%irq +(\d+)%sirq(?: +(\d+)%host)?$`)
	toyboxMem   = pattern.New(`^(Mem|Swap): +([\d.]+[KMGT]?) total, +([\d.]+[KMGT]?) used, +([\d.]+[KMGT]?) free, +([\d.]+[KMGT]?) (buffers|cached)$`)
	toyboxTasks = pattern.New(`^(Tasks|Threads): \d+ total, +(\d+) running, +\d+ sleeping, +\d+ stopped, +\d+ zombie$`)
)

// androidTop is top of Android before it had toybox' one.
var androidTop = &attach.Kind{
	Name:  "top (Android)",
	Hints: []string{"User ", "#THR"},
	Claim: claimAndroidTop,
	Read:  readAndroidTop,
}

var (
	androidShares = pattern.New(`^User (\d+)%, System (\d+)%, IOW (\d+)%, IRQ (\d+)%$`)
	androidTicks  = pattern.New(`^User (\d+) \+ Nice (\d+) \+ Sys (\d+) \+ Idle (\d+) \+ IOW (\d+) \+ IRQ (\d+) \+ SIRQ (\d+) = (\d+)$`)
	androidRow    = pattern.New(`^(\d+) +(?:\d+ +)?(\d+)% ([RSDTZ]) +(\d+) +(\d+)K +(\d+)K +(?:(?:fg|bg|unk) +)?(\S+) +(\S.*)$`)
)

func claimAndroidTop(lines []paste.Line) int {
	sure := false
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		text = strings.TrimSpace(text)
		if androidShares.MatchString(text) || androidTicks.MatchString(text) ||
			strings.Contains(text, "#THR") && strings.Contains(text, "CPU%") {
			sure = true
			return true
		}
		return sure && androidRow.MatchString(text)
	})
	return attach.ClaimIf(sure, n)
}

func readAndroidTop(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.Glance = "top of Android", true
	c, seen := cpuUse{samples: 1, runnable: -1, blocked: -1}, false
	most, command := 0.0, ""
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if m := androidTicks.FindStringSubmatch(text); m != nil {
			var f [9]float64
			for i := 1; i < 9; i++ {
				f[i], _ = number(m[i])
			}
			of := func(n float64) float64 { return 100 * n / max(1, f[8]) }
			c.us, c.sy, c.id, c.wa, c.hi, c.si = of(f[1]+f[2]), of(f[3]), of(f[4]), of(f[5]), of(f[6]), of(f[7])
			seen, most, command = f[8] > 0, 0, ""
		} else if m := androidRow.FindStringSubmatch(text); m != nil {
			if use, _ := number(m[2]); use > most {
				most, command = use, fmt.Sprintf("%s (pid %s): %s %% of all CPUs' time, %s threads",
					firstWord(m[8]), m[1], m[2], m[4])
			}
		}
	}
	if seen {
		v.figure("CPUs: %s", c)
		c.judge(v)
	}
	if command != "" {
		v.figure("%s", command)
	}
	v.not("one screen is a glance; this top counts CPU% against all CPUs")
	if seen {
		v.room(c, false)
	} else {
		v.unsure = true
		v.means("how busy the CPUs are in all is not in it")
	}
	return v.done()
}

// toyboxNames gives the columns of processes. Brackets mark the one that rows are sorted by, and
// take the place of the blank before it.
func toyboxNames(text string) []string {
	f := fields(strings.NewReplacer("[", " ", "]", " ").Replace(text))
	if len(f) < 6 || f[0] != "PID" && f[0] != "TID" || !strings.Contains(text, "[") ||
		!slices.Contains(f, "%CPU") || !slices.Contains(f, "TIME+") {
		return nil
	}
	return f
}

func toyboxRow(names, f []string) bool {
	if len(f) == 0 {
		return false
	}
	// The names of thread and process may be cut off, of the last row.
	known := names[:min(len(names), slices.Index(names, "TIME+")+1)]
	_, ok := whole(f[0])
	return ok && len(f) >= len(known) && topRow(known, f[:len(known)])
}

func claimToyboxTop(lines []paste.Line) int {
	sure := false
	var names []string
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		text = strings.TrimSpace(text)
		if f := toyboxNames(text); f != nil {
			names, sure = f, true
			return true
		}
		if toyboxCPU.MatchString(text) {
			sure = true
			return true
		}
		return toyboxMem.MatchString(text) || toyboxTasks.MatchString(text) || names != nil &&
			toyboxRow(names, fields(text))
	})
	return attach.ClaimIf(sure, n)
}

// parseToyboxTop reads the last screen. all is the CPU time that there was, in percent of a CPU.
func parseToyboxTop(p *attach.Part) (s screen, c cpuUse, all float64) {
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if m := toyboxTasks.FindStringSubmatch(text); m != nil {
			s = screen{threads: m[1] == "Threads"}
			s.running, _ = whole(m[2])
		} else if m := toyboxMem.FindStringSubmatch(text); m != nil {
			s.toyboxMemory(m)
		} else if m := toyboxCPU.FindStringSubmatch(text); m != nil {
			all, c = toyboxShares(m)
			s.cpus = c.cpus
		} else if names := toyboxNames(text); names != nil {
			s.names, s.rows = names, nil
			s.threads = s.threads || names[0] == "TID"
		} else if f := fields(text); s.names != nil && toyboxRow(s.names, f) {
			s.rows = append(s.rows, row{cells: f})
		}
	}
	return s, c, all
}

// toyboxMemory reads a line of memory or swap. An amount without a unit is of bytes; the page cache
// stands in the line of swap.
func (s *screen) toyboxMemory(m []string) {
	total, _ := size(m[2], 1)
	used, _ := size(m[3], 1)
	rest, _ := size(m[5], 1)
	if m[1] == "Swap" {
		s.mem.swap, s.mem.swapUsed, s.mem.hasSwap = total, used, true
	} else {
		s.mem.total, s.mem.used = total, used
		s.mem.free, _ = size(m[4], 1)
	}
	s.mem.cache += rest
	s.mem.available = min(s.mem.free+s.mem.cache, s.mem.total)
}

// toyboxShares makes shares of all CPU time of those of one CPU's.
func toyboxShares(m []string) (all float64, c cpuUse) {
	var f [10]float64
	for i := 1; i < 10; i++ {
		f[i], _ = number(m[i])
	}
	if all = f[1]; all < 1 {
		return 0, c
	}
	of := func(v float64) float64 { return 100 * v / all }
	c = cpuUse{us: of(f[2] + f[3]), sy: of(f[4]), id: of(f[5]), wa: of(f[6]), hi: of(f[7]), si: of(f[8]), st: of(f[9]),
		samples: 1, runnable: -1, blocked: -1}
	if n := f[1] / 100; n == float64(int(n)) && n <= maxCPUs {
		c.cpus = int(n)
	}
	return all, c
}

func readToyboxTop(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.Glance = "top of toybox (Android)", true
	s, c, all := parseToyboxTop(p)
	if sum := c.us + c.sy + c.id + c.wa + c.hi + c.si + c.st; sum > impossibleShares {
		v.tornShares(sum)
		all = 0
	}
	if all > 0 {
		v.figure("CPUs: %s of %s %%, all CPUs together", c, plain(all))
		c.judge(v)
	}
	if wrong := s.impossible(all); wrong != "" {
		v.figure("%s%s", wrong, s.longest())
		v.not("which row uses the CPUs: in its first screen top divides by intervals that it did not measure")
	} else {
		busy := 0.0
		if all > 0 {
			busy = 100 - c.id - c.wa
		}
		s.processes(v, busy)
	}
	if s.mem.total > 0 && s.mem.hasSwap {
		v.figure("memory: %s free, %s page cache, of %s; swap %s of %s used", bytes(s.mem.free),
			bytes(s.mem.cache), bytes(s.mem.total), bytes(s.mem.swapUsed), bytes(s.mem.swap))
		v.fact(MemoryAvailable, part(s.mem.available/s.mem.total))
		s.scarce(v)
	}
	v.not("one screen is a glance: states R and D change a thousand times a second")
	switch {
	case all > 0 && c.id < 50:
		v.means("the CPUs are %s %% busy in this one screen, with %s %% idle", plain(100-c.id-c.wa), plain(c.id))
	case all > 0:
		v.means("the machine is at ease in it")
	default:
		v.unsure = true
		v.means("how busy the CPUs are is not in it")
	}
	return v.done()
}

// impossible says why the shares of rows cannot be right; "": they may be. all is what there is of
// CPU time, in percent of a CPU; 0: not known.
func (s *screen) impossible(all float64) string {
	t := table{names: s.names, rows: s.rows}
	if len(t.rows) == 0 || !t.has("%CPU") {
		return ""
	}
	most := slices.MaxFunc(t.rows, func(a, b row) int { return cmp.Compare(t.num(a, "%CPU"), t.num(b, "%CPU")) })
	sum, top := s.used(), t.num(most, "%CPU")
	switch {
	case all > 0 && sum > all*1.1:
		return fmt.Sprintf("the %%CPU of the %d rows shown sums to %s %%, and there are %s %%: it cannot be right", len(t.rows), plain(sum), plain(all))
	case s.threads && top > oneThread:
		return fmt.Sprintf("a row has %s %%CPU, and a thread cannot use more than 100 %%: it cannot be right", plain(top))
	}
	return ""
}

// longest names the row with most CPU time since its start, to stand behind a figure.
func (s *screen) longest() string {
	t := table{names: s.names, rows: s.rows}
	time := func(r row) float64 { return clockSeconds(t.cell(r, "TIME+")) }
	most := slices.MaxFunc(t.rows, func(a, b row) int { return cmp.Compare(time(a), time(b)) })
	if time(most) == 0 {
		return ""
	}
	return fmt.Sprintf("; most CPU time since its start has %s %s, %s s",
		strings.ToLower(t.names[0]), most.cells[0], plain(time(most)))
}

// clockSeconds reads a CPU time as top writes it: minutes and seconds, 1:02.03; or, when it is
// long, hours, minutes and seconds, 13h10:22. 0: it is none.
func clockSeconds(s string) float64 {
	hours, rest, long := strings.Cut(s, "h")
	if !long {
		hours, rest = "0", s
	}
	minutes, seconds, _ := strings.Cut(rest, ":")
	h, _ := number(hours)
	m, _ := number(minutes)
	f, _ := number(seconds)
	return h*3600 + m*60 + f
}
