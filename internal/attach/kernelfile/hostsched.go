package kernelfile

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// hostSched is /proc/schedstat: how long threads ran on each CPU and waited for it, in ns since
// boot. A process' file of that name has one line of three numbers.
var hostSched = &attach.Kind{
	Name: "/proc/schedstat", Joins: true, Hints: []string{"version ", "timestamp ", "cpu", ":"},
	Claim: starting("vtcd", 600, repeated(func(lines []paste.Line) int {
		cpus := 0
		n := run(lines, func(t string) bool {
			if hostSchedCPU.MatchString(t) {
				cpus++
				return true
			}
			return hostSchedRest.MatchString(t)
		})
		return attach.ClaimIf(cpus > 0, n)
	})),
	Read: readHostSched,
}

var (
	hostSchedCPU  = pattern.New(`^cpu(\d+)(?: \d+){6} (\d+) (\d+) (\d+)$`)
	hostSchedRest = pattern.New(`^(?:version \d{1,3}|timestamp \d+|domain\d+(?: \w+)?(?: [0-9a-f,]+)(?: \d+){8,60})$`)
)

func readHostSched(p *attach.Part) attach.Reading {
	all := samples(p, func(sofar []string, line string) bool {
		word, _, _ := strings.Cut(line, " ")
		return word == "version" || strings.HasPrefix(word, "cpu") &&
			len(sofar) > 0 && strings.HasPrefix(sofar[0], word+" ")
	})
	cpus, ran, waited := hostSchedSums(all[len(all)-1].lines)
	r := attach.Reading{Title: fmt.Sprintf("/proc/schedstat, %s, read once", plural(cpus, "CPU", "CPUs")),
		Boot: true, State: attach.CannotTell, Time: all[0].at}
	when := "since boot"
	if n, run0, wait0 := hostSchedSums(all[0].lines); len(all) > 1 && n == cpus && ran >= run0 && waited >= wait0 && !all[0].other {
		ran, waited, when, r.Boot = ran-run0, waited-wait0, "between the samples", false
		r.Title = fmt.Sprintf("/proc/schedstat, %s, %d samples%s", plural(cpus, "CPU", "CPUs"), len(all), over(span(all)))
	}
	share := ratio(waited, ran+waited)
	figure := fmt.Sprintf("threads waited %s for CPUs, %s of the time in which they wanted one, %s", dur(waited), percent(share), when)
	r.Figures = []string{figure, dur(ran) + " of CPU time"}
	r.Not = "whose threads waited, and whether a quota held them back, which counts as well"
	switch {
	case r.Boot:
		r.Means = "It is an average since boot, and says nothing of now."
		r.Next = []attach.Next{{Command: "cat /proc/schedstat; sleep 10; cat /proc/schedstat", Why: "how long threads wait for CPUs now"}}
	case share < waitPart:
		r.State, r.Means = attach.Healthy, "Threads hardly waited for a CPU."
	default:
		r.Means = fmt.Sprintf("Threads waited for a CPU for %s of the time in which they wanted one: others had it, or their group was out of quota.", percent(share))
		for _, cause := range []string{"cpu-contention", "cpu-throttled"} {
			r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Candidate, Share: share, Proof: []string{figure}})
		}
	}
	return r
}

// hostSchedSums adds up the CPUs of one reading; times are in ns.
func hostSchedSums(lines []string) (cpus int, ran, waited float64) {
	for _, t := range lines {
		if m := hostSchedCPU.FindStringSubmatch(t); m != nil {
			cpus, ran, waited = cpus+1, ran+float(m[2]), waited+float(m[3])
		}
	}
	return cpus, ran, waited
}
