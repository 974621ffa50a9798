package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// byThread says which threads used the CPUs, and gives how many all of them used.
func (s *stat) byThread(r *attach.Reading) (used float64) {
	for _, cpus := range s.threads {
		used += cpus / float64(max(s.intervals, 1))
	}
	line := fmt.Sprintf("%s used by %s", cpus(used), attach.Plural(len(s.threads), "thread"))
	var out []string
	for _, name := range attach.Largest(s.threads)[:min(3, len(s.threads))] {
		if cpus := s.threads[name] / float64(max(s.intervals, 1)); cpus > 0 {
			out = append(out, fmt.Sprintf("%.3g %s", cpus, name))
		}
	}
	if len(out) > 0 {
		line += ": " + strings.Join(out, ", ")
	}
	r.Figures = append(r.Figures, line)
	return used
}

// rates adds switches and faults, by the second where the time is known.
func (s *stat) rates(r *attach.Reading) {
	var out []string
	for _, e := range []struct {
		names []string
		say   string
	}{{[]string{"context-switches", "cs"}, "context switches"},
		{[]string{"cpu-migrations", "migrations"}, "migrations"}, {[]string{"page-faults", "faults"}, "page faults"},
		{[]string{"major-faults"}, "major faults"}} {
		v, ok := s.first(e.names...)
		e.say += s.ofCPUs(e.names[0])
		switch {
		case !ok:
		case s.elapsed >= longEnough:
			out = append(out, fmt.Sprintf("%s %s (%s)", count(v), e.say, perSecond(v, s.elapsed)))
		default:
			out = append(out, fmt.Sprintf("%s %s", count(v), e.say))
		}
	}
	if len(out) > 0 {
		r.Figures = append(r.Figures, strings.Join(out, ", "))
	}
}

// ofCPUs says on how many CPUs an event was counted, where another one has rows of more of them.
func (s *stat) ofCPUs(name string) string {
	all := 0
	for _, on := range s.cpus {
		all = max(all, len(on))
	}
	if n := len(s.cpus[name]); n > 0 && n < all {
		return fmt.Sprintf(" on %d of %d CPUs", n, all)
	}
	return ""
}

// statIPC is the ratio that a row's own comment has.
var statIPC = pattern.New(`^#\s+(\d+[.,]\d+)\s+insns? per cycle`)

// statShare is the share that a row's own comment has.
var statShare = pattern.New(`^#\s+(\d+[.,]\d+)\s*%\s+of all `)

// cycles adds instructions per cycle and misses.
func (s *stat) cycles(r *attach.Reading) {
	var out []string
	cycles, ok1 := s.first("cycles", "cpu-cycles", "cpu_core/cycles/")
	insn, ok2 := s.first("instructions", "cpu_core/instructions/")
	if ok1 && ok2 && cycles > 0 {
		out = append(out, fmt.Sprintf("%.2f instructions per cycle", insn/cycles))
	} else if m := statIPC.FindStringSubmatch(s.comment["instructions"]); m != nil {
		ipc, _ := number(m[1])
		out = append(out, fmt.Sprintf("%.2f instructions per cycle", ipc))
	}
	for _, pair := range [][3]string{{"branch-misses", "branches", "branches missed"},
		{"cache-misses", "cache-references", "cache references missed"},
		{"LLC-load-misses", "LLC-loads", "LLC loads missed"}, {"dTLB-load-misses", "dTLB-loads", "dTLB loads missed"},
		{"stalled-cycles-frontend", "cycles", "cycles stalled at the front end"},
		{"stalled-cycles-backend", "cycles", "cycles stalled at the back end"}} {
		part, ok1 := s.counts[pair[0]]
		whole, ok2 := s.counts[pair[1]]
		if ok1 && ok2 && whole > 0 {
			out = append(out, fmt.Sprintf("%s of %s", pct(part/whole), pair[2]))
		} else if m := statShare.FindStringSubmatch(s.comment[pair[0]]); m != nil && !ok2 {
			share, _ := number(m[1])
			out = append(out, fmt.Sprintf("%s of %s", pct(share/100), pair[2]))
		}
	}
	if len(out) > 0 {
		r.Figures = append(r.Figures, strings.Join(out, ", "))
	}
}
