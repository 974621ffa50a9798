package systool

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// turbostat shows how fast the CPUs run and how deep they sleep.
var turbostat = &attach.Kind{
	Name:  "turbostat",
	Hints: []string{"Avg_MHz", "Bzy_MHz"},
	Claim: claimTurbostat,
	Read:  readTurbostat,
}

func claimTurbostat(lines []paste.Line) int {
	width := 0
	return attach.ClaimWhile(lines, func(_ int, text string) bool {
		f := fields(text)
		if slices.Contains(f, "Avg_MHz") && slices.Contains(f, "Bzy_MHz") {
			width = len(f)
			return true
		}
		figures := 0
		for _, c := range f {
			if _, ok := number(c); ok {
				figures++
			}
		}
		return width > 0 && len(f) <= width && figures >= 3 && figures >= len(f)-4
	})
}

func readTurbostat(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.unsure = "turbostat", true
	t := table{}
	for _, l := range p.Lines {
		f := fields(l.Text)
		switch {
		case slices.Contains(f, "Bzy_MHz"):
			t.names = f
		case len(f) == len(t.names) && slices.Contains(f, "-"): // the row of all CPUs
			t.rows = append(t.rows, row{cells: f})
		}
	}
	if len(t.rows) == 0 {
		v.means("the row of all CPUs is not in it")
		return v.done()
	}
	busy, mhz, tsc := t.median("Busy%"), t.median("Bzy_MHz"), t.median("TSC_MHz")
	v.figure("CPUs %s %% busy", plain(busy))
	v.figure("%s MHz while busy, %s MHz by the TSC", plain(mhz), plain(tsc))
	for _, c := range []string{"CPU%c6", "CPU%c7", "C6%", "C6P%", "POLL%"} {
		if t.has(c) && len(v.Figures) < 3 {
			v.figure("%s %% of the time in %s", plain(t.median(c)),
				strings.Trim(strings.ReplaceAll(c, "CPU%", ""), "%"))
		}
	}
	if tsc > 0 && mhz > 0 && mhz < 0.6*tsc && busy > 20 {
		v.means("busy CPUs run at %s of %s MHz: a governor, heat or a limit of power holds them back", plain(mhz), plain(tsc))
		v.next("cpupower frequency-info", "which governor, and which limits")
	}
	v.means("it says how fast the CPUs run; how long requests wait for a CPU to wake is not in it")
	v.not("a low clock makes all computing slower, and is no wait")
	return v.done()
}

// cpupower shows the settings of the clock.
var cpupower = &attach.Kind{
	Name:  "cpupower frequency-info",
	Hints: []string{"analyzing CPU ", "analysing CPU "},
	Claim: claimCpupower,
	Read:  readCpupower,
}

var cpupowerRow = pattern.New(`^(analy[sz]ing CPU |driver: |no or unknown cpufreq driver|CPUs which (run|need)|maximum transition latency|hardware limits|available (frequency|cpufreq)|current (policy|CPU frequency)|The governor |within this range|boost state|Supported:|Active:|Boost States:|Total States:|Pstate-|Unable to determine|Not Available|\d+ MHz max turbo|AMD PSTATE|energy performance|cpufreq stats|frequency should be)`)

func claimCpupower(lines []paste.Line) int {
	if !strings.HasPrefix(lines[0].Text, "analy") {
		return 0
	}
	return attach.ClaimWhile(lines,
		func(_ int, text string) bool { return cpupowerRow.MatchString(strings.TrimSpace(text)) })
}

var (
	governorLine = pattern.New(`The governor "(\w+)"`)
	freqNow      = pattern.New(`^current CPU frequency(?: is|:) +([\d.]+) (MHz|GHz|kHz)`)
	freqLimits   = pattern.New(`^hardware limits: +([\d.]+) (MHz|GHz|kHz) - ([\d.]+) (MHz|GHz|kHz)`)
	freqLine     = pattern.New(`(current CPU frequency|hardware limits|current policy): (.*)`)
)

func readCpupower(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title = "cpupower frequency-info"
	slowClock(p, v)
	governor := ""
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if m := governorLine.FindStringSubmatch(text); m != nil && m[1] != governor {
			governor = m[1]
			v.figure("governor %s", m[1])
			if m[1] == "powersave" || m[1] == "conservative" || m[1] == "ondemand" {
				v.unsure = true
				v.means("the governor %s may run the CPUs slowly at low load; whether it does is not in it", m[1])
				v.next("turbostat --quiet -i 1 -n 5", "Bzy_MHz: how fast busy CPUs run")
			}
		}
		if m := freqLine.FindStringSubmatch(text); m != nil && len(v.Figures) < 6 &&
			len(m[2]) < 80 && !strings.Contains(m[2], "Unable") {
			v.figure("%s: %s", m[1], m[2])
		}
	}
	v.means("it is a setting: it says nothing of slowness by itself")
	v.not("powersave of intel_pstate is its usual governor, and does not mean a low clock")
	return v.done()
}

// megahertz reads a clock.
func megahertz(figure, unit string) float64 {
	f, _ := number(figure)
	return f * map[string]float64{"kHz": 1e-3, "MHz": 1, "GHz": 1e3}[unit]
}

// slowClock compares the clock of each CPU at that moment with what its hardware lists. Below the
// least of it no governor goes: heat or power does.
func slowClock(p *attach.Part, v *verdict) {
	least, most, low, cpus := 0.0, 0.0, 0.0, 0
	full := false
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if m := freqLimits.FindStringSubmatch(text); m != nil {
			least, most = megahertz(m[1], m[2]), megahertz(m[3], m[4])
		}
		if m := governorLine.FindStringSubmatch(text); m != nil {
			full = m[1] == "performance"
		}
		if m := freqNow.FindStringSubmatch(text); m != nil {
			now := megahertz(m[1], m[2])
			cpus++
			if low == 0 || now < low {
				low = now
			}
		}
	}
	if low == 0 {
		return
	}
	v.figure("%s MHz at that moment, the least of %s; the hardware does %s to %s MHz", plain(low),
		attach.Plural(cpus, "CPU"), plain(least), plain(most))
	switch {
	case least > 0 && low < 0.95*least:
		v.unsure = true
		v.means("a CPU runs at %s MHz, below the %s MHz that its hardware lists as the least: no governor does that, but heat, a limit of power or the board's signal for one (PROCHOT)", plain(low), plain(least))
		v.not("a low clock makes all computing slower, and is no wait")
	case full && most > 0 && low < 0.5*most:
		v.unsure = true
		v.means("a CPU runs at %s of %s MHz although its governor is performance: if it computes at that moment, heat or a limit of power holds it back", plain(low), plain(most))
	default:
		return
	}
	v.next("turbostat --quiet -i 1 -n 5", "Bzy_MHz, PkgTmp and PkgWatt while it computes")
	v.next("grep . /sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count", "whether heat holds the CPUs back")
}
