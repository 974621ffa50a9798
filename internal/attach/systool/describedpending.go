package systool

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// neverRan reports whether no container of a pod ran yet, and says what it waits for: what does not
// run reaches no limit.
func (v *verdict) neverRan(p *attach.Part) bool {
	pending, tries, message := false, 0.0, ""
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if e, ok := eventRow(l.Text); ok && strings.EqualFold(e.reason, "FailedScheduling") {
			tries += e.n
			message = e.message
			continue
		}
		switch key, value, _ := strings.Cut(text, ":"); key {
		case "Status":
			pending = pending || strings.TrimSpace(value) == "Pending"
		case "Started", "Container ID": // one of an init container counts as well
			if strings.TrimSpace(value) != "" {
				return false
			}
		}
	}
	if !pending {
		return false
	}
	if tries > 0 {
		v.figure("FailedScheduling %s: %s", times(plain(tries)), shortened(message))
		v.Means = "no node has room for what the pod asks for, or may run it: it does not run"
		v.not("how much room a node has, and what takes it")
		v.next("kubectl describe nodes", "Allocatable, and what is requested of it already")
		return true
	}
	v.Means = "no container of the pod has run yet: no limit of it can stop anything"
	v.not("what it waits for: a node, a volume or an image")
	v.next("kubectl describe pod POD", "its events: FailedScheduling, FailedMount, or an image that is pulled")
	return true
}
