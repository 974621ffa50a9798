package goruntime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
)

// scvg is what the runtime says of memory that it gives back: a part of gctrace until Go 1.15,
// GODEBUG=scavtrace=1 since.
var scvg = &attach.Kind{
	Name:      "Go scavenger lines",
	Marks:     []string{"released: ", " KiB work", "MiB work"},
	Hints:     []string{"scvg", "scav "},
	Single:    true,
	Claim:     func(lines []paste.Line) int { return while(lines, func(s string) bool { return scvgLine(s) != "" }) },
	Scattered: true,
	Read:      readScvg,
}

// while counts the lines at the start that a kind's lines are like.
func while(lines []paste.Line, is func(string) bool) int {
	n := 0
	for n < len(lines) && lines[n].Command == "" && is(lines[n].Text) {
		n++
	}
	return n
}

// scvgLine returns what follows the head of such a line: "scvg3: ", "scvg: ", "scav 7 ", "scav ".
func scvgLine(s string) string {
	i := strings.Index(s, "sc")
	if i < 0 || i > 0 && !strings.ContainsRune(" \t:|", rune(s[i-1])) {
		return ""
	}
	s = s[i:]
	if rest, ok := strings.CutPrefix(s, "scvg"); ok {
		rest = strings.TrimLeft(rest, "-0123456789")
		if rest, ok = strings.CutPrefix(rest, ": "); ok && (strings.HasSuffix(rest, "B released") ||
			strings.Contains(rest, "consumed: ")) {
			return rest
		}
		return ""
	}
	if rest, ok := strings.CutPrefix(s, "scav "); ok && strings.Contains(rest, " KiB work") &&
		strings.Contains(rest, "% util") {
		return rest
	}
	return ""
}

func readScvg(p *attach.Part) attach.Reading {
	r := attach.Reading{
		Title: fmt.Sprintf("Go's scavenger, %s", count(len(p.Lines), "line", "lines")),
		State: attach.Context,
		Means: "these lines say how much unused heap memory the runtime gave back to the system",
		Not:   "anything about latency: no time is in these lines",
	}
	asked := 0
	for i := len(p.Lines) - 1; i >= 0; i-- {
		s := scvgLine(p.Lines[i].Text)
		if strings.Contains(p.Lines[i].Text, "scvg-1: ") { // debug.FreeOSMemory, until Go 1.12
			asked++
		}
		if len(r.Figures) == 0 && (strings.Contains(s, "consumed: ") || strings.Contains(s, "% util")) {
			r.Figures = []string{"last: " + s}
			r.Means = givenBack(s, r.Means)
		}
	}
	if text := workText(p.Lines); text != "" {
		r.Means = text
	}
	if slices.ContainsFunc(p.Lines, func(l paste.Line) bool { return scvgField(scvgLine(l.Text), "released: ") > 0 }) {
		r.Not += "; nor that the system has it: from Go 1.12 to 1.15 Linux takes such pages only when it needs them (MADV_FREE), and until then they count as resident (RSS)"
	}
	if asked == len(p.Lines) {
		r.Means += "; the program asked for it (debug.FreeOSMemory)"
	}
	return r
}

// workText says how much the lines of scavtrace=1 gave back, and how much the system has now: "scav
// 0 KiB work (bg), 186960 KiB work (eager), 208712 KiB now, 9% util (forced)". "": there are none.
func workText(lines []paste.Line) string {
	work, now, forced, n := 0.0, -1.0, false, 0
	for _, line := range lines {
		s := scvgLine(line.Text)
		if !strings.Contains(s, " KiB work") {
			continue
		}
		n++
		for _, part := range strings.Split(s, ", ") {
			f := strings.Fields(part)
			if len(f) > 3 && digits(f[0]) == len(f[0]) && digits(f[1]) == len(f[1]) {
				f = f[1:] // until Go 1.18 a number of the cycle stands first
			}
			v, isNumber := number(f[0])
			switch {
			case !isNumber || len(f) < 3 || f[1] != "KiB":
			case f[2] == "work":
				work += v
			case f[2] == "now" || f[2] == "total":
				now = v
			}
		}
		forced = forced || strings.HasSuffix(s, "(forced)")
	}
	if n == 0 {
		return ""
	}
	text := fmt.Sprintf("in these lines the runtime gave %s of heap back to the system", finding.Bytes(int64(work*1024)))
	if now >= 0 {
		text += fmt.Sprintf("; it has %s of it at the end", finding.Bytes(int64(now*1024)))
	}
	if forced {
		text += "; once or more the program asked for it (debug.FreeOSMemory)"
	}
	return text
}

// givenBack says how much of the memory that is not in use the system has back.
func givenBack(s, otherwise string) string {
	idle, released := scvgField(s, "idle: "), scvgField(s, "released: ")
	switch {
	case idle < 0 || released < 0:
		return otherwise
	case idle == 0 && scvgField(s, "inuse: ") == 0:
		return "the heap has less than 1 MB in use, and less than 1 MB not in use"
	case idle == 0:
		return "all of the heap but less than 1 MB is in use"
	case released == idle:
		return fmt.Sprintf("of the heap %.0f MB are not in use, and all of it has been given back to the system", idle)
	case released == 0:
		return fmt.Sprintf("of the heap %.0f MB are not in use, and none of it has been given back to the system", idle)
	}
	return fmt.Sprintf("of the heap %.0f MB are not in use, of which %.0f MB have been given back to the system", idle, released)
}

// scvgField is a field of "inuse: 4, idle: 59, sys: 63, released: 58, consumed: 4 (MB)"; -1: not
// in it.
func scvgField(s, name string) float64 {
	_, rest, ok := strings.Cut(s, name)
	if v, isNumber := number(rest[:digits(rest)]); ok && isNumber {
		return v
	}
	return -1
}

// pacer is GODEBUG=gcpacertrace=1.
var pacer = &attach.Kind{
	Name:      "gcpacertrace",
	Hints:     []string{"pacer: "},
	Single:    true,
	Claim:     func(lines []paste.Line) int { return while(lines, func(s string) bool { return pacerLine(s) != "" }) },
	Scattered: true,
	Read:      readPacer,
}

func pacerLine(s string) string {
	_, rest, ok := strings.Cut(s, "pacer: ")
	for _, head := range []string{"assist ratio=", "H_m_prev=", "sweep done at heap size ", "allocated "} {
		if ok && strings.HasPrefix(rest, head) {
			return rest
		}
	}
	if ok && strings.Contains(rest, "% CPU (") && strings.Contains(rest, " exp.)") {
		return rest
	}
	return ""
}

// pacerAim is the most of the CPU in percent that the pacer plans for a cycle: 25 for workers, and
// 5 for assists.
const pacerAim = 32

func readPacer(p *attach.Part) attach.Reading {
	var used, assist []float64
	cycles := 0
	for _, line := range p.Lines {
		s := pacerLine(line.Text)
		if rest, ok := strings.CutPrefix(s, "assist ratio="); ok {
			if v, isNumber := number(strings.TrimPrefix(firstWord(rest), "+")); isNumber {
				assist = append(assist, v)
			}
		}
		if head, _, ok := strings.Cut(s, "% CPU ("); ok {
			if v, isNumber := number(head); isNumber {
				used = append(used, v)
			}
		}
		if _, rest, ok := strings.Cut(s, " u_a="); ok {
			if v, isNumber := number(strings.TrimPrefix(firstWord(rest), "+")); isNumber {
				used = append(used, 100*v)
			}
		}
		if strings.HasPrefix(s, "sweep done") {
			cycles++
		}
	}
	r := attach.Reading{
		Title: fmt.Sprintf("gcpacertrace, %s", count(max(cycles, len(used), len(assist)), "cycle", "cycles")),
		State: attach.Context,
		Means: "this is how the pacer set assists and workers for each cycle while it marked",
		Not:   "what GC takes of all time: 25 to 30 % while it marks is what the pacer aims at",
	}
	if attach.Median(used) > pacerAim {
		r.State = attach.CannotTell
		r.Means = "GC used more CPU while it marked than the 25 to 30 % that the pacer aims at: goroutines that allocate had to help"
		r.Next = []attach.Next{{Command: "whystall diagnose --pid PID",
			Why: "shows what slow requests lost to mark assist, and the sites that allocate"}}
	}
	if len(used) > 0 {
		r.Figures = append(r.Figures,
			fmt.Sprintf("GC used %.0f %% of the CPU while it marked (median)", attach.Median(used)))
	}
	if len(assist) > 0 {
		r.Figures = append(r.Figures,
			fmt.Sprintf("assist ratio %.2g bytes to scan for each byte allocated (median)", attach.Median(assist)))
	}
	return r
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}
