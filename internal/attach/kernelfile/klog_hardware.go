package kernelfile

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// readHardware reads errors that memory, CPUs and buses report: what was corrected costs next to no
// time, and what was not is an end.
func (r *report) readHardware(out *attach.Reading) {
	corrected, bus, broken := r.counts[hwCorrected], r.counts[busError], r.counts[hwBroken]
	if broken > 0 {
		say(out, attach.CannotTell,
			"The hardware reports errors that it could not correct: a page, a device or the machine fails, which is an end and no slowness.",
			countOf(hwBroken, broken))
	}
	if corrected > 0 {
		figure := countOf(hwCorrected, corrected) + r.memoryModule()
		if r.overflow {
			figure += "; more came than were logged (Over)"
		}
		say(out, attach.CannotTell,
			"The hardware found errors and corrected them, in memory or a cache, as a rule: a part to replace. Nothing in it shows that time was lost.", figure)
	}
	if bus > 0 {
		say(out, attach.CannotTell,
			"A link of PCIe sent again what was broken on the way: a bad slot, cable or power setting. Nothing in it shows that time was lost.",
			countOf(busError, bus)+r.busDevice())
	}
}

var (
	hwPlace = pattern.New(`\b(node \d+|EDAC \S+?:|DIMM\S*|CPU_SrcID#\d+\S*)`)
	hwLabel = pattern.New(`\blabel "([^"]+)"`)
	hwBus   = pattern.New(`\b([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)`)
)

// hardware notes where an error was, and that more came than were kept.
func (r *report) hardware(text string) {
	if strings.Contains(text, "STATUS[Over|") {
		r.overflow = true
	}
	if m := hwLabel.FindStringSubmatch(text); m != nil && r.module == "" {
		r.module = m[1]
	}
	if r.module == "" {
		r.module = strings.TrimSuffix(hwPlace.FindString(text), ":")
	}
	if r.busAt == "" {
		r.busAt = hwBus.FindString(text)
	}
}

func (r *report) memoryModule() string {
	if r.module == "" {
		return ""
	}
	return ", the first at " + printed(r.module)
}

func (r *report) busDevice() string {
	if r.busAt == "" {
		return ""
	}
	return ", the first at " + r.busAt
}

// heat is what messages of heat say: how often a CPU was slowed, and whether it cooled down.
type heat struct {
	events float64 // on one CPU since boot, the most
	normal int     // messages that it is over
}

func (h *heat) figure() string {
	text := ""
	if h.events > 0 {
		text = fmt.Sprintf(", at most %s on one CPU since boot", plural(int(h.events), "event", "events"))
	}
	if h.normal > 0 {
		text += fmt.Sprintf("; %s that it is normal again", plural(h.normal, "message", "messages"))
	}
	return text
}
