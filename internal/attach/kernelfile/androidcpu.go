package kernelfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// androidCPU is what Android logs of the CPUs where an application does not respond: each process'
// share of the time of one CPU, and the sum over all of them, from /proc/stat and its like.
var androidCPU = &attach.Kind{
	Name: "CPU usage of Android", Reports: true,
	Hints: []string{"CPU usage from ", "% TOTAL: ", "TOTAL: ", "% user + ", "% ", "Load: ", "ActivityManager"},
	Claim: func(lines []paste.Line) int {
		if text := androidText(lines[0].Text); len(text) > 400 || !androidLine(text) && !anrHead(lines[0].Text) {
			return 0
		}
		sure := anrHead(lines[0].Text)
		n := run(lines, func(t string) bool {
			if anrHead(t) {
				return true
			}
			t = androidText(t)
			sure = sure || androidHead.MatchString(t) || androidSum.MatchString(t) || androidLoad.MatchString(t) ||
				androidRow.MatchString(t) && strings.Contains(t, "% user + ")
			return androidLine(t)
		})
		return attach.ClaimIf(sure, n)
	},
	Read: readAndroidCPU,
}

var (
	androidTag  = pattern.New(`^(?:.{0,60}\b)?ActivityManager(?:\( *\d+\))?: +`)
	androidHead = pattern.New(`^CPU usage from -?(\d+)ms to -?(\d+)ms (later|ago)\b`)
	androidLoad = pattern.New(`^Load: (\d+\.?\d*) / (\d+\.?\d*) / (\d+\.?\d*)$`)
	// A process: "47% 1234/system_server: 30% user + 17% kernel / faults: 546 minor 2 major".
	// People shorten what stands behind its name.
	androidRow = pattern.New(`^[+-]?(\d{1,5}(?:\.\d+)?)% (?:(\d{1,7})/)?([\w.:@/{}\[\] -]{1,80}?)(?:: \d[\d.]*% (?:user|kernel).*| \(\d[\d.]*% (?:user|kernel).*\)|:?)$`)
	androidSum = pattern.New(`^(?:\d[\d.]*% |CPU usage )?TOTAL: (?:\d[\d.]*% )?(\d[\d.]*% (?:user|kernel|iowait|irq|softirq)(?: \+ \d[\d.]*% (?:user|kernel|iowait|irq|softirq))*)$`)
	majorPart  = pattern.New(`(\d+) major`)
	sharePart  = pattern.New(`(\d[\d.]*)% (user|kernel|iowait|irq|softirq)`)
)

// anrLine is what Android says of an application that does not respond, above the load.
var anrLine = pattern.New(`^(?:ANR in (\S+)(?: .*)?|PID: \d+|Reason: (.+)|Parent: .*|ErrorId: .*|Frozen: .*)$`)

// anrHead reports whether Android itself logged such a line.
func anrHead(text string) bool {
	return strings.Contains(text, "ActivityManager") && anrLine.MatchString(androidText(text))
}

func androidText(text string) string {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "ActivityManager") {
		if at := androidTag.FindStringIndex(text); at != nil {
			text = strings.TrimSpace(text[at[1]:])
		}
	}
	return text
}

// androidLine reports whether a line is of such a report. A process without a pid is known by what
// stands behind its name.
func androidLine(t string) bool {
	if m := androidRow.FindStringSubmatch(t); m != nil && (m[2] != "" || strings.Contains(t, "% user") || strings.Contains(t, "% kernel")) {
		return true
	}
	return androidSum.MatchString(t) || androidHead.MatchString(t) || androidLoad.MatchString(t)
}

// What counts: the thread that frees memory, for so much of a CPU, has no end in sight.
const (
	androidFreeing = 20 // % of a CPU
	androidIOWait  = 20 // % of all CPUs
)

func readAndroidCPU(p *attach.Part) attach.Reading {
	r := attach.Reading{State: attach.CannotTell}
	type process struct {
		name   string
		share  float64
		indent int // threads stand below their process, further in
	}
	var all []process
	major, sums := 0.0, map[string]float64{}
	load, reason, during, silent := "", "", "", ""
	for _, l := range p.Lines {
		t := androidText(l.Text)
		if m := anrLine.FindStringSubmatch(t); m != nil && m[1] != "" {
			silent = fmt.Sprintf(": %s did not respond", printed(m[1]))
		} else if m != nil && m[2] != "" {
			reason = "Android's reason: " + printed(m[2])
		}
		if m := androidHead.FindStringSubmatch(t); m != nil {
			span := float(m[1]) - float(m[2])
			during = " over " + dur(max(span, -span)*1e6)
		}
		if m := androidLoad.FindStringSubmatch(t); m != nil {
			load = fmt.Sprintf("load %s over 1 minute, %s over 5, %s over 15", m[1], m[2], m[3])
		}
		if m := androidSum.FindStringSubmatch(t); m != nil {
			clear(sums) // the last report counts
			for _, s := range sharePart.FindAllStringSubmatch(m[1], 8) {
				sums[s[2]] = float(s[1])
			}
		} else if m := androidRow.FindStringSubmatch(t); m != nil && androidLine(t) {
			at := strings.Index(l.Text, t)
			if t[0] == '+' || t[0] == '-' {
				at++
			}
			all = append(all, process{printed(m[3]), float(m[1]), at})
			if f := majorPart.FindStringSubmatch(t); f != nil {
				major += float(f[1])
			}
		}
	}
	r.Title = fmt.Sprintf("CPU usage%s, as Android reports it%s", during, silent)
	busy := sums["user"] + sums["kernel"] + sums["irq"] + sums["softirq"]
	if len(sums) > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("CPUs %s %% in programs, %s %% in the kernel, %s %% idle while threads wait for a disk (iowait)",
			number(sums["user"]), number(busy-sums["user"]), number(sums["iowait"])))
	}
	least := 1 << 10
	for _, o := range all {
		least = min(least, o.indent)
	}
	all = slices.DeleteFunc(all, func(o process) bool { return o.indent > least })
	slices.SortStableFunc(all, func(a, b process) int { return cmp.Compare(b.share, a.share) })
	var said []string
	freeing := 0.0
	for i, o := range all {
		if i < 3 {
			said = append(said, fmt.Sprintf("%s %s %%", o.name, number(o.share)))
		}
		if strings.HasPrefix(o.name, "kswapd") {
			freeing = max(freeing, o.share)
		}
	}
	if len(said) > 0 {
		r.Figures = append(r.Figures, "most by "+strings.Join(said, ", ")+"; of one CPU each")
	}
	if load != "" {
		r.Figures = append(r.Figures, load)
	}
	if reason != "" {
		r.Figures = append(r.Figures, reason)
	}
	if major > 0 {
		r.Figures = append(r.Figures, number(major)+" major faults of the processes listed")
	}
	r.Not = "what the application that did not respond waited for: its stack does"
	var means []string
	if freeing >= androidFreeing {
		means = append(means, fmt.Sprintf("The kernel's thread that frees memory took %s %% of a CPU: memory is short, and others may have to free it themselves.", number(freeing)))
		r.Signs = append(r.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Candidate, Proof: r.Figures[:min(2, len(r.Figures))]})
	}
	if sums["iowait"] >= androidIOWait {
		means = append(means, "CPUs were idle for much of the time while threads waited for a disk.")
		r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Candidate, Proof: r.Figures[:1]})
	}
	switch {
	case len(means) > 0:
	case len(sums)+len(all) == 0:
		means = []string{"Load counts tasks that run, are queued, or sleep for a disk or a lock of the kernel: alone it tells no shortage."}
	case len(sums) == 0:
		means = []string{"It says who used CPU time, and nothing of who waited for it."}
	case busy >= 90:
		means = []string{"The CPUs were all but full: who waited for one it does not say."}
	default:
		r.State = attach.Healthy
		means = []string{"As a whole the CPUs were not short; a single full one does not show in the sum."}
	}
	r.Means = strings.Join(means, " ")
	return r
}
