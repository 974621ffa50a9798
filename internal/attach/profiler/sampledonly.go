package profiler

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// only says whose code alone was sampled.
type only int

const (
	ofAll        only = iota // or nothing says
	ofPrograms               // cycles:u, as perf does for users without rights
	ofKernelCode             // cycles:k
	ofRows                   // rows without a head, of the kernel alone: the text does not say
)

// sampledOnly reads the modifiers behind an event's name, such as those of "cycles:u" and
// "cpu_core/cycles/k".
func sampledOnly(event string) only {
	at := strings.LastIndexAny(event, ":/")
	mods := event[at+1:]
	if at < 0 || mods == "" || strings.Trim(mods, "ukhGHIpPSDWeb") != "" {
		return ofAll
	}
	switch user, inKernel := strings.Contains(mods, "u"), strings.Contains(mods, "k"); {
	case user && !inKernel:
		return ofPrograms
	case inKernel && !user:
		return ofKernelCode
	}
	return ofAll
}

// time names what the shares of a profile are parts of.
func (t *tally) time() string {
	switch t.p.only {
	case ofPrograms:
		return "the CPU time outside the kernel"
	case ofKernelCode:
		return "the kernel's own CPU time"
	case ofRows:
		return "what was sampled"
	}
	return "the busy CPU time"
}

// ofKernelAlone takes back what shares of the kernel's own time seem to say: it may have had little
// of the CPUs.
func ofKernelAlone(r *attach.Reading, which only) {
	for i := range r.Signs {
		if r.Signs[i].Grade == attach.Found {
			r.Signs[i].Grade, r.Signs[i].Sure = attach.Candidate, ""
		}
	}
	if r.State == attach.Ill {
		r.State = attach.CannotTell
	}
	r.Not = "Only the kernel was sampled (:k): what share of the CPU time it had is not in it, nor any waiting."
	if which == ofRows {
		r.Not = "All rows are the kernel's, and no head says whether programs were sampled as well, and at which event."
	}
}

// ofRowsAlone reports whether rows of the kernel stand without the line that names their event: at
// all without a head, or as nearly all that was sampled.
func (s *perfSection) ofRowsAlone() bool {
	sum := 0.0
	for i := range s.p.samples {
		if len(s.p.samples[i].kernel) == 0 {
			return false
		}
		sum += s.p.samples[i].weight
	}
	return s.event == "" && s.samples == 0 && !s.top && !s.p.stacks && sum > 0 &&
		(s.shares == unnamedShares || sum >= 0.9)
}
