package kernelfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// diskstats has a line for each device and partition. Times are in ms.
var diskstats = counted{name: "/proc/diskstats", hints: []string{" "}, line: diskLine, least: 1, read: readDisks}.kind()

// diskLine wants "major minor name" and 11, 15 or 17 counters: before Linux 4.18, before 5.5, and
// since.
func diskLine(text string) (string, pairs, bool) {
	f := strings.Fields(text)
	if n := len(f) - 3; n != 11 && n != 15 && n != 17 {
		return "", pairs{}, false
	}
	if _, ok := columns(f[:2], "major", "minor"); !ok || f[2][0] >= '0' && f[2][0] <= '9' {
		return "", pairs{}, false
	}
	m, ok := columns(f[3:], "reads", "reads merged", "sectors read", "read ms", "writes", "writes merged", "sectors written", "write ms", "in flight", "busy ms", "queue ms")
	return f[2], m, ok
}

// diskUse is what one device did.
type diskUse struct {
	name                  string
	reads, writes         float64
	readMS, writeMS       float64 // of one request
	busy, queue, inFlight float64 // busy is a share, queue the mean number of requests; -1: not known
}

func (d diskUse) worst() float64 { return max(d.readMS, d.writeMS) }

func (d diskUse) text(when string, seconds float64) string {
	s := fmt.Sprintf("%s: %s reads of %s ms and %s writes of %s ms in the mean", printed(d.name), number(d.reads), number(d.readMS), number(d.writes), number(d.writeMS))
	if seconds > 0 {
		s += fmt.Sprintf(", busy %s of the time, %s requests at once", percent(d.busy), number(d.queue))
	}
	return s + ", " + when
}

func diskUses(c counts) (all []diskUse, when string, boot bool, seconds float64) {
	by, when, boot, seconds := c.since()
	last := c.last()
	for _, k := range c.keys {
		d := diskUse{name: k, reads: by(k + " reads"), writes: by(k + " writes"), busy: -1, queue: -1, inFlight: last.get(k + " in flight")}
		d.readMS, d.writeMS = ratio(by(k+" read ms"), d.reads), ratio(by(k+" write ms"), d.writes)
		if seconds > 0 {
			d.busy, d.queue = min(1, by(k+" busy ms")/seconds/1e3), by(k+" queue ms")/seconds/1e3
		}
		if d.reads+d.writes > 0 {
			all = append(all, d)
		}
	}
	slices.SortStableFunc(all, func(a, b diskUse) int {
		return cmp.Compare(b.reads*b.readMS+b.writes*b.writeMS, a.reads*a.readMS+a.writes*a.writeMS)
	})
	return all, when, boot, seconds
}

// A device is slow from this time of a request on, in ms; below some it is fast.
const (
	diskSlow = 20
	diskSome = 10
	diskFew  = 20 // requests, below which a mean says little
)

func readDisks(p *attach.Part, c counts) attach.Reading {
	all, when, boot, seconds := diskUses(c)
	r := attach.Reading{Title: "/proc/diskstats, " + plural(len(c.keys), "device", "devices"), State: attach.CannotTell, Boot: boot, Time: c.when[0].at}
	if !boot {
		r.Title += fmt.Sprintf(", %d samples%s", len(c.when), over(seconds))
	}
	for _, d := range all[:min(2, len(all))] {
		r.Figures = append(r.Figures, d.text(when, seconds))
	}
	r.Not = "who waited for a disk: write-back waits for nobody, and a busy device may still answer at once"
	if len(all) == 0 {
		r.Means = "No device did anything, as far as this shows."
		if !boot {
			r.State = attach.Healthy
		}
		return r
	}
	if boot {
		r.Means = "Means since boot: they say nothing of now."
		r.Next = []attach.Next{{Command: "date; cat /proc/diskstats; sleep 10; date; cat /proc/diskstats", Why: "what the disks did in ten seconds (iostat -x 10 2 says the same)"}}
		return r
	}
	worst := slices.MaxFunc(all, func(a, b diskUse) int { return cmp.Compare(a.slowness(), b.slowness()) })
	switch {
	case worst.slowness() == 0:
		r.State, r.Means = attach.Healthy, "The disks answered fast."
	case worst.worst() < diskSlow:
		r.Means = fmt.Sprintf("Requests to %s took %s ms in the mean: usual for a disk that turns, and slow for flash.", printed(worst.name), number(worst.worst()))
	default:
		proof := worst.text(when, seconds)
		r.Means = fmt.Sprintf("Requests to %s took %s ms in the mean; whether the service waited for them is not in it.", printed(worst.name), number(worst.worst()))
		r.Signs = []attach.Sign{{Cause: "disk-wait", Grade: attach.Candidate, Share: max(0, worst.busy), Proof: []string{proof}}}
		r.Next = []attach.Next{{Command: "pidstat -d 1 10", Why: "iodelay: which processes wait for the disk"}}
	}
	return r
}

// slowness is the time of a request where it is no fast one, and 0 where requests are few or fast.
func (d diskUse) slowness() (ms float64) {
	if d.reads >= diskFew && d.readMS >= diskSome {
		ms = d.readMS
	}
	if d.writes >= diskFew && d.writeMS >= diskSome {
		ms = max(ms, d.writeMS)
	}
	return ms
}
