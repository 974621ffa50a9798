package systool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// peaks notes the report in which requests took longest.
func (d *device) peaks(all []report, name string) {
	for _, r := range all {
		one := r.disks[name]
		rate, worst := 0.0, 0.0
		for _, c := range []string{"r/s", "w/s"} {
			v, _ := one.get(c)
			rate += v
		}
		for _, c := range []string{"await", "r_await", "w_await"} {
			v, _ := one.get(c)
			worst = max(worst, v)
		}
		if util, _ := one.get("%util"); rate >= 1 && util >= utilSome && worst > d.peak {
			d.peak, d.peakRate = worst, rate
		}
	}
}

// lateForSSD says that requests queue and take longer than an SSD needs. That it is one is known of
// NVMe only.
func (d device) lateForSSD(v *verdict) {
	if d.reads+d.writes < 1 || d.queue < 1 || v.Means != "" {
		return
	}
	switch {
	case d.worst() >= awaitSome:
		v.means("%s: usual for a rotating or a remote disk, late for an SSD", d.slowest())
	case d.worst() >= awaitNVMe && strings.HasPrefix(d.name, "nvme"):
		v.candidate("disk-wait", 0, d.String())
		v.means("%s, and requests queue for it: late for NVMe, unless they are large", d.slowest())
	default:
		return
	}
	v.unsure = true
	v.next("pidstat -d 1 10", "iodelay: which processes wait for the disk")
}

// latest is the device whose requests take longest, of those that serve any to speak of.
func latest(disks []device) (late device) {
	for _, d := range disks {
		if d.reads+d.writes >= 1 && d.worst() > late.worst() {
			late = d
		}
	}
	return late
}

// lateByOne says that a disk is slow for whoever waits for each request, though little is asked of
// it.
func (d device) lateByOne(v *verdict) {
	switch {
	case v.Means != "":
		return
	case d.peak >= awaitSlow:
		v.candidate("disk-wait", 0,
			fmt.Sprintf("%s: %s ms a request in one report, at %s requests/s; %s ms at the median of all", d.name, plain(d.peak), plain(d.peakRate), plain(d.worst())))
	case d.worst() >= awaitSome && d.reads+d.writes >= 1 && d.util >= utilSome:
		v.unsure = true
	default:
		return
	}
	v.means("%s at the median, and in one report requests take up to %s ms, though few are asked: who waits for each, as for writes of a log that is synced, waits as long",
		d.slowest(), plain(max(d.peak, d.worst())))
	v.not("%util and the queue say how much is asked of a disk, and not how fast it answers")
	v.next("biolatency-bpfcc -D 10 1", "how long single requests take")
}

// longAverages lists the busiest devices of a long time, and the one with the longest requests. One
// that serves next to nothing may have any time of a request.
func longAverages(v *verdict, disks []device, when string) {
	slices.SortStableFunc(disks, func(a, b device) int { return cmp.Compare(b.util, a.util) })
	for _, d := range disks[:min(2, len(disks))] {
		v.figure("%s: %s", when, d)
	}
	if len(disks) < 3 {
		return
	}
	late := slices.MaxFunc(disks, func(a, b device) int { return cmp.Compare(a.worst(), b.worst()) })
	if late.worst() >= awaitSlow && late.worst() > max(disks[0].worst(), disks[1].worst()) {
		v.figure("%s: %s", when, late)
	}
}

// judgeAll judges each device. The sentence is of the first that is late, and names the others.
func judgeAll(v *verdict, disks []device, c cpuUse, reports int) {
	of := ""
	for _, d := range disks {
		before := v.Means
		d.judge(v, c, reports)
		if before == "" && v.Means != "" && d.late() {
			of = d.name
		}
	}
	for _, d := range disks {
		if d.util >= 90 && d.worst() < awaitSome && !v.accuses("disk-wait") {
			many := ""
			if d.queue > 1 {
				many = "serves several requests at once, and "
			}
			v.not(fmt.Sprintf("%s %% util is no proof of a slow disk: %s %sanswers in %s ms", plain(d.util), d.name, many, plain(d.worst())))
		}
	}
	var others []string
	for _, d := range disks {
		if of != "" && d.name != of && d.late() {
			others = append(others, d.slowest())
		}
	}
	if len(others) > 0 {
		v.Means += ". Of the others, " + strings.Join(others[:min(3, len(others))], ", ")
	}
}

// late reports whether requests queue for a device and take long.
func (d device) late() bool {
	return d.worst() >= awaitSlow && d.reads+d.writes >= 1 && d.queue >= 1
}
