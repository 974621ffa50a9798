package systool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var busyboxTop = &attach.Kind{
	Name:  "busybox top",
	Hints: []string{"Mem:", "CPU:", "%VSZ"},
	Claim: claimBusyboxTop,
	Read:  readBusyboxTop,
}

var (
	busyboxMem = pattern.New(`^Mem: (\d+)K used, (\d+)K free, (\d+)K shrd, (\d+)K buff, (\d+)K cached`)
	busyboxCPU = pattern.New(`^CPU\d*: +([\d.]+)% usr *([\d.]+)% sys *([\d.]+)% nic *([\d.]+)% idle *([\d.]+)% io *([\d.]+)% irq *([\d.]+)% sirq`)
	busyboxRow = pattern.New(`^(\d+) +\d+ +\S+ +([RSDZTtXIW][WN<]*) +[<N]? *([\d.]+[mg]?) +(?:[\d.]+%|\d+\.\d) +(?:\d+ +)?([\d.]+%|\d+\.\d) +(.*)$`)
)

func claimBusyboxTop(lines []paste.Line) int {
	sure := false
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		text = strings.TrimSpace(text)
		switch {
		case busyboxMem.MatchString(text), busyboxCPU.MatchString(text),
			strings.Contains(text, "%VSZ") && strings.Contains(text, "PPID"),
			sure && strings.Contains(text, "%MEM") && strings.Contains(text, "PPID"):
			sure = true
			return true
		case strings.HasPrefix(text, "Load average:"):
			return sure
		}
		return sure && busyboxRow.MatchString(text)
	})
	return n
}

func readBusyboxTop(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.Glance = "busybox top", true
	var all []screen
	s := screen{}
	type use struct {
		name  string
		share float64
	}
	var threads []use // of the kernel
	command, most, blocked, broken := "", 0.0, false, ""
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if m := busyboxMem.FindStringSubmatch(text); m != nil {
			var kb [6]float64
			for i := 1; i < 6; i++ {
				kb[i], _ = number(m[i])
			}
			s = screen{mem: memory{total: (kb[1] + kb[2]) * 1024, free: kb[2] * 1024,
				available: (kb[2] + max(0, kb[4]+kb[5]-kb[3])) * 1024}}
			broken = ""
			if kb[4]+kb[5] > kb[1]+kb[2] {
				broken = fmt.Sprintf("%sK buff and %sK cached are more than all memory, %.0fK: a bug of this top, and they are left out", m[4], m[5], kb[1]+kb[2])
			}
		}
		if m := busyboxCPU.FindStringSubmatch(text); m != nil {
			s.busyboxShares(m)
		}
		if strings.HasPrefix(text, "Load average:") {
			s.load = loads(text)
			all = append(all, s)
		}
		if m := busyboxRow.FindStringSubmatch(text); m != nil {
			blocked = blocked || strings.HasPrefix(m[2], "D")
			f, ok := number(strings.TrimSuffix(m[4], "%"))
			if name := strings.Trim(firstWord(m[5]), "[]"); ok && strings.HasPrefix(m[5], "[") {
				threads = append(threads, use{fmt.Sprintf("%s (pid %s)", name, m[1]), f})
			}
			if ok && f > most {
				most = f
				command = fmt.Sprintf("%s (pid %s): %s %% of all CPUs' time", firstWord(m[5]), m[1], plain(f))
			}
		}
	}
	if len(all) == 0 {
		all = append(all, s)
	}
	last := all[len(all)-1]
	c, known := screensCPU(all)
	if last.load != nil {
		v.figure("load average %s, %s, %s", fixed(last.load[0]), fixed(last.load[1]), fixed(last.load[2]))
	}
	if known {
		v.figure("CPUs: %s", c)
	}
	v.tornShares(last.torn)
	switch {
	case broken != "":
		v.Flaws = append(v.Flaws, broken)
		v.figure("memory: %s of %s free; how much more the page cache would give is not known",
			bytes(last.mem.free), bytes(last.mem.total))
		last.mem = memory{}
	case last.mem.total > 0:
		v.figure("memory: %s of %s free or cached", bytes(last.mem.available), bytes(last.mem.total))
	}
	if command != "" { // before memory, unless that is short
		at := len(v.Figures)
		if m := last.mem; m.total > 0 && m.available >= memoryLow*m.total {
			at--
		}
		v.Figures = slices.Insert(v.Figures, at, command)
	}
	if known {
		c.passed = len(all) < enoughSamples && !blocked && last.calm(c)
		c.judge(v)
	}
	last.loaded(v, c, known)
	last.scarce(v)
	for _, t := range threads {
		v.kernelThread(t.name, t.share, "all CPUs' time")
	}
	v.not("one screen is a glance; busybox counts %CPU against all CPUs, and its %VSZ is address space, which is no memory in use")
	switch {
	case known:
		v.room(c, last.mem.total > 0)
	case last.mem.total > 0:
		v.means("memory is not short; how busy the CPUs are is not in it")
	default:
		v.unsure = true
		v.means("how busy the CPUs are in all is not in it")
	}
	return v.done()
}

// busyboxShares reads a line of CPUs.
func (s *screen) busyboxShares(m []string) {
	var f [8]float64
	for i := 1; i < 8; i++ {
		f[i], _ = number(m[i])
	}
	if all := attach.Sum(f[1:]); all > impossibleShares {
		s.torn = all
		return
	}
	s.cpu = append(s.cpu, cpuUse{us: f[1] + f[3], sy: f[2], id: f[4], wa: f[5], hi: f[6], si: f[7]})
}

func firstWord(s string) string {
	f := strings.Fields(s)
	if len(f) == 0 {
		return ""
	}
	if len(f[0]) > 40 {
		return f[0][:40]
	}
	return f[0]
}

// foreignTop is top of macOS and the BSDs: whystall is about Linux.
var foreignTop = &attach.Kind{
	Name:    "top (macOS, BSD)",
	Hints:   []string{"Processes:", "last pid:"},
	Claim:   claimForeignTop,
	Refused: "It is top of macOS or a BSD. whystall explains services on Linux: run top -b -n 3 there.",
}

var foreignLine = pattern.New(`^(Processes: \d+ total|last pid: +\d+;|Load Avg: |CPU usage: [\d.]+% user|SharedLibs: |MemRegions: |PhysMem: |VM: .*vsize|Networks: packets|Disks: \d+/|\d+ processes: |CPU: +[\d.]+% user|Mem: [\d.]+[KMG] Active|ARC: |Swap: |\d{4}/\d\d/\d\d \d\d:\d\d:\d\d$)`)

func claimForeignTop(lines []paste.Line) int {
	first := strings.TrimSpace(lines[0].Text)
	if !strings.HasPrefix(first, "Processes: ") && !strings.HasPrefix(first, "last pid:") {
		return 0
	}
	rows := false
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		text = strings.TrimSpace(text)
		f := fields(text)
		if foreignLine.MatchString(text) {
			return true
		}
		if strings.HasPrefix(text, "PID ") {
			rows = true
			return true
		}
		_, ok := whole(strings.TrimRight(f[0], "*-+"))
		return rows && ok
	})
	if n < 2 {
		return 0
	}
	return n
}

// foreignSar is sar of HP-UX, AIX and Solaris: as with top, whystall is about Linux.
var foreignSar = &attach.Kind{
	Name:    "sar (HP-UX, AIX, Solaris)",
	Hints:   []string{"HP-UX ", "SunOS ", "AIX ", "%wio"},
	Claim:   claimForeignSar,
	Refused: "It is sar of HP-UX, AIX or Solaris. whystall explains services on Linux: run sar -u -q -B -W -d 1 10 there.",
}

var (
	foreignBanner = pattern.New(`^(?:HP-UX|SunOS|AIX) \S+ \S+ `)
	foreignRow    = pattern.New(`^(?:\d\d:\d\d:\d\d|Average|[Aa]verage:?)(?: +[\d.]+)+$`)
)

func claimForeignSar(lines []paste.Line) int {
	rows, names := 0, false
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		text = strings.TrimSpace(text)
		switch {
		case foreignBanner.MatchString(text):
		case strings.Contains(text, "%wio") && strings.Contains(text, "%idle"):
			names = true
		case names && foreignRow.MatchString(text):
			rows++
		default:
			return false
		}
		return true
	})
	if !names || rows == 0 {
		return 0
	}
	return n
}
