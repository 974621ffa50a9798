package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// What LinuxKI's report of one task has beside the others: functions that it waited in, with the
// longest wait of each, and what its I/O cost.

var (
	// "79806 5.288981 0.066 579.234 io_schedule_timeout"
	kiWaitFunc = pattern.New(`^(\d+)\s+(\d+\.\d{6})\s+(\d+\.\d{3})\s+(\d+\.\d{3})\s+([A-Za-z_][\w.]*)$`)
	// "sdb 7980 62 8 8.57 0.00 0.08", and the same of writes and of reads alone
	kiDisk = pattern.New(`^([A-Za-z][\w/-]*)\s+(\d+)\s+\d+\s+\d+\s+\d+\.\d\d\s+(\d+\.\d\d)\s+(\d+\.\d\d)(?:\s+\d+\s+\d+\s+\d+\s+\d+\.\d\d\s+\d+\.\d\d\s+\d+\.\d\d){0,2}$`)
	// "148482k 143389k 96.57% 4884.9m 11920.2m 2.44 3200.00 33"
	kiCounters = pattern.New(`^\d+k\s+\d+k\s+\d+\.\d+%\s+\d`)
)

// kiWaitRow is a function that a task slept in.
type kiWaitRow struct {
	name             string
	count            int
	seconds, longest float64 // s
}

// kiDiskRow is what a task's I/O on a device took, in ms.
type kiDiskRow struct {
	name          string
	rate          float64
	wait, service float64
}

// liveRow takes a row of these tables.
func (k *kiReport) liveRow(text string) bool {
	if m := kiWaitFunc.FindStringSubmatch(text); m != nil {
		w := kiWaitRow{name: m[5]}
		w.count, _ = whole(m[1])
		w.seconds, _ = number(m[2])
		w.longest, _ = number(m[4])
		w.longest /= 1000
		if len(k.waits) < most {
			k.waits = append(k.waits, w)
		}
		return true
	}
	m := kiDisk.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	d := kiDiskRow{name: m[1]}
	d.rate, _ = number(m[2])
	d.wait, _ = number(m[3])
	d.service, _ = number(m[4])
	if len(k.disks) < most && !strings.EqualFold(d.name, "all") {
		k.disks = append(k.disks, d)
	}
	return true
}

// longWait is how long one wait is, in s, that a person notices.
const longWait = 0.1

// readLive says where the task slept, and names a wait that is far longer than the others.
func (k *kiReport) readLive(r *attach.Reading) {
	var longest kiWaitRow
	var figures []string
	for i, w := range k.waits {
		if i == 0 {
			figures = append(figures, fmt.Sprintf("it slept %s in %s, %s, the longest of them %s",
				lasts(w.seconds), w.name, attach.Plural(w.count, "time"), lasts(w.longest)))
		}
		if w.longest > longest.longest {
			longest = w
		}
	}
	for _, d := range k.disks[:min(2, len(k.disks))] {
		figures = append(figures,
			fmt.Sprintf("%s: %s I/Os a second of this task, each queued %s ms and served in %s ms on average", d.name, count(d.rate), trim(d.wait), trim(d.service)))
	}
	r.Figures = append(figures, r.Figures...)
	if len(k.waits) > 0 {
		k.says("waits")
	}
	if len(k.disks) > 0 {
		k.says("I/O")
	}
	if longest.longest >= longWait {
		line := fmt.Sprintf("one wait in %s took %s, of %s that took %s on average", longest.name,
			lasts(longest.longest), attach.Plural(longest.count, "wait"),
			lasts(longest.seconds/float64(max(longest.count, 1))))
		r.Means = upper(line) + "."
		r.Not = "That the disk is well because most waits are short: one long wait is a stall of its own."
		if waitOf([]string{longest.name}) == waitedDisk {
			r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Candidate, Proof: []string{line}})
		}
		return
	}
	for _, c := range k.calls {
		if c.max >= longWait && len(r.Signs) == 0 {
			r.Means = strings.TrimSpace(r.Means +
				fmt.Sprintf(" One call of %s took %s, of %s that took %s on average.", c.name,
					lasts(c.max), attach.Plural(c.count, "call"), lasts(c.elapsed/float64(max(c.count, 1)))))
			return
		}
	}
}
