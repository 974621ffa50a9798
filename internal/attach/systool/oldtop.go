package systool

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// oldTop is top before procps 3.2, of the years up to 2004: its words are others.
var oldTop = &attach.Kind{
	Name:  "top (before 2004)",
	Rows:  true,
	Hints: []string{"load average", "processes: ", "CPU states", "K av,", "PRI"},
	Claim: claimOldTop,
	Read:  func(p *attach.Part) attach.Reading { return readScreens(p, parseOldTop(p)) },
	When:  whenUp,
}

var (
	oldTasks  = pattern.New(`^(\d+) processes: (\d+) sleeping, (\d+) running, (\d+) zombie, (\d+) stopped$`)
	oldCPU    = pattern.New(`^CPU(\d*) states: +[\d.,]+% user`)
	oldNames  = pattern.New(`^CPU states: +cpu +user +nice +system +irq +softirq +iowait +idle$`)
	oldTotal  = pattern.New(`^(?:total|cpu\d+)(?: +[\d.,]+%){7}$`)
	oldShare  = pattern.New(`([\d.,]+)% (user|system|nice|idle|iowait|irq|softirq)`)
	oldMem    = pattern.New(`^(Mem|Swap): +([\d.]+)([KMG]) av, +([\d.]+)([KMG]) used, +([\d.]+)([KMG]) free`)
	oldBuff   = pattern.New(`([\d.]+)([KMG]) (buff|cached)`)
	oldMore   = pattern.New(`^[\d.]+[KMG] (?:actv|active)\b`)
	oldHeader = pattern.New(`^PID USER +PRI +NI +SIZE +RSS +SHARE +STAT .*%CPU +%MEM +TIME`)
	oldRow    = pattern.New(`^(\d+) (\S+) (-?\d+|RT) (-?\d+) ([\d.]+[KMG]?) ([\d.]+[KMG]?) ([\d.]+[KMG]?) ([RSDZT])[WN]*(?: ?[<NL])* ([\d.,]+) ([\d.,]+) (\S+) (?:\d+ )?(\S.*)$`)
)

func claimOldTop(lines []paste.Line) int {
	sure, rows := false, false
	n := attach.ClaimWhile(lines, func(at int, text string) bool {
		text = strings.TrimSpace(text)
		switch {
		case oldTasks.MatchString(text), oldCPU.MatchString(text), oldNames.MatchString(text), oldMem.MatchString(text):
			sure = true
			return true
		case oldHeader.MatchString(text):
			sure, rows = true, true
			return true
		case uptimeLine.MatchString(text) && len(text) < mailWidth+8:
			next, ok := following(lines, at+1)
			return ok && oldTasks.MatchString(strings.TrimSpace(next.Text))
		}
		return sure && (oldTotal.MatchString(text) || oldMore.MatchString(text)) ||
			rows && oldRow.MatchString(strings.Join(fields(text), " "))
	})
	return attach.ClaimIf(sure, n)
}

func parseOldTop(p *attach.Part) (all []screen) {
	s := &screen{names: topDefault}
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if load := loads(text); load != nil {
			if s.total > 0 {
				all = append(all, *s)
				s = &screen{names: topDefault}
			}
			s.load = load
			continue
		}
		s.old(text)
	}
	return append(all, *s)
}

// old reads one line.
func (s *screen) old(text string) {
	if m := oldTasks.FindStringSubmatch(text); m != nil {
		s.total, _ = whole(m[1])
		s.running, _ = whole(m[3])
		s.zombies, _ = whole(m[4])
		return
	}
	if m := oldMem.FindStringSubmatch(text); m != nil {
		s.oldMemory(m, text)
		return
	}
	if oldCPU.MatchString(text) || strings.HasPrefix(text, "total ") && oldTotal.MatchString(text) {
		s.oldShares(text)
		return
	}
	if m := oldRow.FindStringSubmatch(strings.Join(fields(text), " ")); m != nil {
		s.rows = append(s.rows, row{cells: slices.Clone(m[1:])})
	}
}

// oldPlaces are the names that its shares have today.
var oldPlaces = map[string]string{"user": "us", "nice": "ni", "system": "sy", "irq": "hi",
	"softirq": "si", "iowait": "wa", "idle": "id"}

func (s *screen) oldShares(text string) {
	c := cpuUse{samples: 1, runnable: -1, blocked: -1}
	add := func(name, value string) {
		f, _ := number(value)
		c.share(oldPlaces[name], f)
	}
	one := -1
	if f := fields(text); f[0] == "total" {
		for i, name := range []string{"user", "nice", "system", "irq", "softirq", "iowait", "idle"} {
			add(name, strings.TrimSuffix(f[i+1], "%"))
		}
	} else {
		for _, m := range oldShare.FindAllStringSubmatch(text, 8) {
			add(m[2], m[1])
		}
		if m := oldCPU.FindStringSubmatch(text); m[1] != "" {
			one, _ = whole(m[1])
			s.cpus, s.named = min(max(s.cpus, one+1), maxCPUs), s.named+1
		}
	}
	if len(s.cpu) < maxCPUs {
		s.cpu, s.numbers = append(s.cpu, c), append(s.numbers, one)
	}
}

func (s *screen) oldMemory(m []string, text string) {
	amount := func(i int) float64 { f, _ := size(m[i]+m[i+1], 1); return f }
	if m[1] == "Swap" {
		s.mem.swap, s.mem.swapUsed, s.mem.hasSwap = amount(2), amount(4), true
	} else {
		s.mem.total, s.mem.used, s.mem.free, s.mem.hasFree = amount(2), amount(4), amount(6), true
	}
	for _, b := range oldBuff.FindAllStringSubmatch(text, 4) {
		f, _ := size(b[1]+b[2], 1)
		s.mem.cache += f
		s.mem.hasCache = s.mem.hasCache || b[3] == "cached"
	}
	s.mem.available = s.mem.free + s.mem.cache
}
