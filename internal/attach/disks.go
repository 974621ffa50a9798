package attach

import (
	"cmp"
	"fmt"
	"slices"
)

// DiskUse is what one device did, by the kernel's counters: /proc/diskstats and vmstat -d print the
// same ones.
type DiskUse struct {
	Name            string
	Reads, Writes   float64
	ReadMS, WriteMS float64 // of one request, in the mean
	Busy, Queue     float64 // a share of the time, and requests at once in the mean; negative: not known
}

// A device is slow from this time of a request on, in ms; below some it is fast.
const (
	diskSlow = 20
	diskSome = 10
	diskFew  = 20 // requests, below which a mean says little
)

// Disks says what counters of devices say. They are since boot, or between two readings; again is
// the command that takes two. number writes a figure as the room does.
func Disks(all []DiskUse, boot bool, when, again string, number func(float64) string) (r Reading) {
	r.Boot, r.State = boot, CannotTell
	slices.SortStableFunc(all, func(a, b DiskUse) int {
		return cmp.Compare(b.Reads*b.ReadMS+b.Writes*b.WriteMS, a.Reads*a.ReadMS+a.Writes*a.WriteMS)
	})
	for _, d := range all[:min(2, len(all))] {
		r.Figures = append(r.Figures, d.text(when, number))
	}
	r.Not = "who waited for a disk: write-back waits for nobody, and a busy device may still answer at once"
	switch {
	case len(all) == 0:
		r.Means = "No device did anything, as far as this shows."
		if !boot {
			r.State = Healthy
		}
		return r
	case boot:
		r.Means = "Means since boot: they say nothing of now."
		r.Next = []Next{{Command: again, Why: "what the disks did in ten seconds (iostat -x 10 2 says the same)"}}
		return r
	}
	worst := slices.MaxFunc(all, func(a, b DiskUse) int { return cmp.Compare(a.slowness(), b.slowness()) })
	slow := worst.slowness()
	took := fmt.Sprintf("%s %s took %s ms", worst.slower(), worst.Name, number(slow))
	switch {
	case slow == 0:
		r.State, r.Means = Healthy, "The disks answered fast."
	case slow < diskSlow:
		r.Means = took + " in the mean: usual for a disk that turns, and slow for flash."
	default:
		r.Means = took + " in the mean; whether the service waited for them is not in it."
		r.Signs = []Sign{{Cause: "disk-wait", Grade: Candidate, Share: max(0, worst.Busy),
			Proof: []string{worst.text(when, number)}}}
		r.Next = []Next{{Command: "pidstat -d 1 10", Why: "iodelay: which processes wait for the disk"}}
	}
	return r
}

func (d DiskUse) text(when string, number func(float64) string) string {
	s := fmt.Sprintf("%s: %s reads of %s ms and %s writes of %s ms in the mean", d.Name,
		number(d.Reads), number(d.ReadMS), number(d.Writes), number(d.WriteMS))
	if d.Busy >= 0 {
		s += fmt.Sprintf(", busy %.0f %% of the time, %s requests at once", 100*d.Busy, number(d.Queue))
	}
	return s + ", " + when
}

// slowness is the time of a request where it is no fast one, and 0 where requests are few or fast.
func (d DiskUse) slowness() (ms float64) {
	if d.Reads >= diskFew && d.ReadMS >= diskSome {
		ms = d.ReadMS
	}
	if d.Writes >= diskFew && d.WriteMS >= diskSome {
		ms = max(ms, d.WriteMS)
	}
	return ms
}

// slower says whether reads or writes are those whose time slowness gives.
func (d DiskUse) slower() string {
	if d.Reads >= diskFew && d.ReadMS == d.slowness() {
		return "Reads from"
	}
	return "Writes to"
}
