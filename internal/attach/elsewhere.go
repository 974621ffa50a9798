package attach

import (
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// Systems without cgroups, as people name the machine of a text; and words of what has cgroups,
// also on such a machine.
var (
	appleWord  = pattern.New(`\b(?:mac ?OS|Mac OS X|OS X|MacBook(?: Pro| Air)?|iMac|Mac mini|Apple Silicon|Apple M[1-9]|darwin/(?:amd64|arm64)|Darwin Kernel)\b`)
	cgroupWord = pattern.New(`(?i)\b(?:docker|containers?|kubernetes|k8s|pods?|cgroups?|kubectl|systemd|linux)\b`)
)

// machineOf says of which machine lines speak.
func machineOf(lines []paste.Line) (apple, groups bool) {
	for _, l := range lines[:min(len(lines), maxGuess)] {
		apple = apple || appleWord.MatchString(l.Text)
		groups = groups || cgroupWord.MatchString(l.Text)
	}
	return apple, groups
}

// withoutCgroups withdraws what only a cgroup's quota could do, where the text around the parts
// says that the machine has none. What was found stays.
func (a *Answer) withoutCgroups() {
	apple := false
	for _, u := range a.Unknown {
		if u.Groups {
			return
		}
		apple = apple || u.Apple
	}
	if !apple {
		return
	}
	var kept []Verdict
	for _, v := range a.Causes {
		if v.Grade != Candidate || v.Cause != "cpu-throttled" && v.Cause != "gomaxprocs-over-quota" {
			kept = append(kept, v)
		}
	}
	a.Causes = kept
}
