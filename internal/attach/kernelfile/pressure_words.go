package kernelfile

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// stallReadings are the readings of one line of one file: the last of them, and what it was before.
type stallReadings struct {
	stall
	n     int
	most  float64 // the largest share of 10 s in any of them
	first stall
}

// readingsOf puts together what was read more than once.
func readingsOf(all []stall) (out []stallReadings) {
	for _, s := range all {
		i := slices.IndexFunc(out, func(o stallReadings) bool {
			return o.place == s.place && o.resource == s.resource && o.kind == s.kind && s.resource != "" &&
				!(o.hasTotal && s.hasTotal && s.total < o.total)
		})
		if i < 0 {
			out = append(out, stallReadings{stall: s, n: 1, most: s.avg[0], first: s})
			continue
		}
		out[i].stall, out[i].n, out[i].most = s, out[i].n+1, max(out[i].most, s.avg[0])
	}
	return out
}

// name is the resource, and whose it is where the paste has it of several groups.
func (s stallReadings) name(all []stallReadings) string {
	switch {
	case s.resource == "":
		return "a resource that the paste does not name"
	case strings.Contains(s.place, "/") && slices.ContainsFunc(all, func(o stallReadings) bool {
		return o.resource == s.resource && o.place != s.place
	}):
		return s.resource + " of " + printed(path.Dir(strings.Trim(s.place, " =<>#:")))
	}
	return s.resource
}

// text writes the last reading, and of several what was between the first and the last.
func (s stallReadings) text(name string, p *attach.Part) string {
	text := fmt.Sprintf("%s, %s: %s of the last 10 s, %s of 60 s, %s of 300 s", name, s.kind,
		percent(s.avg[0]), percent(s.avg[1]), percent(s.avg[2]))
	if s.n == 1 {
		if s.hasTotal && s.total <= mostTotal {
			text += ", " + dur(s.total*1000) + " in all"
		}
		return text
	}
	text = strings.Replace(text, ": ", fmt.Sprintf(": in the last of %d readings ", s.n), 1)
	if s.most > s.avg[0] {
		text += fmt.Sprintf("; %s of 10 s at most", percent(s.most))
	}
	if by := s.total - s.first.total; s.hasTotal && s.first.hasTotal && by >= 0 && s.total <= mostTotal {
		text += fmt.Sprintf("; %s from the first reading to the last", dur(by*1000))
		seconds := 0.0
		for _, v := range sleeps(p, s.n) {
			seconds += v
		}
		if seconds > 0 && by/1e6 <= seconds {
			text += fmt.Sprintf(" (%s of the time)", percent(by/1e6/seconds))
		}
	}
	return text
}

// hostPressure reports whether a path or a command says that the pressure is the host's: the files
// of a cgroup look the same.
func hostPressure(p *attach.Part) bool {
	host := func(text string) bool {
		return strings.Contains(text, "proc/pressure") || strings.Contains(text, "/pressure/")
	}
	f := strings.Fields(p.Command)
	return host(p.Path) || host(p.Command) || host(p.Title) || host(p.Prompt) ||
		len(f) == 2 && f[0] == "cat" && resourceOf(f[1]) != "" && !strings.HasSuffix(f[1], ".pressure") ||
		slices.ContainsFunc(p.Lines, func(l paste.Line) bool { return host(l.Text) || host(l.Path) })
}

// ruledOut are causes that pressure bounds below any matter: over five minutes next to nobody
// waited. Faults that read nothing, and what happens before five minutes, do not show in it.
func ruledOut(all []stall, cgroup bool) (out []attach.Sign) {
	for _, s := range all {
		if s.kind != "some" || max(s.avg[0], s.avg[1], s.avg[2]) >= 0.005 {
			continue
		}
		for _, cause := range causesOf(s, cgroup) {
			if cause != "page-fault" {
				out = append(out, attach.Sign{Cause: cause, Grade: attach.Against,
					Proof: []string{s.resource + " pressure is under 0.5 %"}})
			}
		}
	}
	return out
}

func causesOf(s stall, cgroup bool) []string {
	if s.resource == "cpu" && cgroup {
		return []string{"cpu-contention", "cpu-throttled"}
	}
	return pressureCauses[s.resource]
}

func overNow(s stall) string {
	if s.avg[0] < 0.2*max(s.avg[1], s.avg[2]) {
		return ", and over by now"
	}
	return ""
}

func pressureNot(all []stall, cgroup bool) string {
	has := func(r string) bool {
		return slices.ContainsFunc(all, func(s stall) bool { return s.resource == r })
	}
	switch {
	case has("cpu") && cgroup:
		return "whether tasks were throttled or contended: those out of quota count as waiting for a CPU, and only cpu.stat tells"
	case has("cpu"):
		return "whose tasks waited: 'some' of cpu is the time in which at least one task was ready and had no CPU, which is no loss of throughput"
	case has("memory"):
		return "how much memory is used: pressure is the time of reclaim, compaction, and reading back what was evicted or swapped"
	case has(""):
		return "whose pressure it is: only the file's name does (cpu, memory, io, irq)"
	}
	return "why a device was slow: it is the time of tasks, to which a slow disk and a busy one look the same"
}
