package systool

import (
	"fmt"
	"math"

	"github.com/whystall/whystall/internal/finding"
)

// sinceBoot reports whether the first report is the one since boot, though no heading says so:
// seconds have whole numbers of requests, and an average has not.
func sinceBoot(all []report) bool {
	broken := func(r report) (n, of int) {
		for _, d := range r.disks {
			for _, column := range []string{"r/s", "w/s", "tps"} {
				if v, ok := d.get(column); ok && v > 0 {
					of++
					if v != math.Trunc(v) {
						n++
					}
				}
			}
		}
		return n, of
	}
	if len(all) < 2 {
		return false
	}
	first, _ := broken(all[0])
	rest, of := 0, 0
	for _, r := range all[1:] {
		n, m := broken(r)
		rest, of = rest+n, of+m
	}
	return first >= 3 && rest == 0 && of >= 3
}

// longAverage reports whether a lone report is of more than ten seconds, so that it is the first
// one of a run, or as good as that: one request in ten seconds is 0.1 a second, and it has less.
func longAverage(all []report) bool {
	if len(all) != 1 {
		return false
	}
	for _, d := range all[0].disks {
		for _, column := range []string{"r/s", "w/s", "d/s", "f/s", "tps", "rrqm/s", "wrqm/s"} {
			if rate, ok := d.get(column); ok && rate > 0 && rate < 0.095 {
				return true
			}
		}
	}
	return false
}

func reportsCPU(all []report) (c cpuUse, known bool) {
	t := table{names: []string{"us", "sy", "wa", "st", "id"}}
	for _, r := range all {
		if r.cpu != nil {
			o := r.cpu
			t.rows = append(t.rows,
				row{cells: []string{fmt.Sprint(o.us), fmt.Sprint(o.sy), fmt.Sprint(o.wa),
					fmt.Sprint(o.st), fmt.Sprint(o.id)}})
		}
	}
	c = t.cpuUse()
	c.runnable, c.blocked = -1, -1
	return c, len(t.rows) > 0
}

// Times of a request from which on a device is slow, in ms. A disk that turns needs 5 to 10.
const (
	awaitSlow = 20
	awaitSome = 10
	awaitFew  = 5 // at the least is worth a word
	awaitNVMe = 3
	utilSome  = 10 // percent: a device less busy than that, without a queue, is at ease
)

// stuck reports whether requests are under way and none is finished.
func (d device) stuck() bool {
	return d.extended && d.util >= 90 && d.reads+d.writes+d.others == 0
}

// atRest reports whether no device served anything, and all that matters of each is shown.
func atRest(all []device) bool {
	for _, d := range all {
		if !d.extended || d.reads+d.writes+d.others > 0 || d.util >= 5 || d.queue >= 1 {
			return false
		}
	}
	return len(all) > 0
}

func (d device) judge(v *verdict, c cpuUse, n int) {
	proof := d.String()
	if d.stuck() {
		v.candidate("disk-wait", c.wa/100, proof)
		v.means("%s is busy all the time and finishes no request: those under way are stuck in it, or below it", d.name)
		v.not("a busy device without requests is not at ease: who waits for those under way is not in it")
		v.next("for i in 1 2 3 4 5; do ps -eLo state,wchan:32,comm | grep ^D; sleep 1; done",
			"which threads stay in D, and where in the kernel")
		v.next("dmesg -T | tail -50", "whether the device, or what it is made of, reports errors")
		return
	}
	// Writes are mostly the kernel's own, behind everybody's back: they are no wait yet.
	waited := max(d.rawait, d.fawait)
	if d.rawait == 0 && d.wawait == 0 && d.reads > 0 {
		waited = d.await
	}
	switch {
	case waited >= awaitSlow && d.queue >= 1 && d.reads >= 1 && n >= enoughSamples:
		sure := finding.Possible
		if c.wa >= iowaitMatters {
			sure = finding.Supported
		}
		v.found("disk-wait", sure, c.wa/100, proof)
		if d.wrote {
			v.means("requests to %s, nearly all of them writes, take %s ms", d.name, plain(waited))
		} else if d.rawait == 0 && d.fawait == 0 {
			v.means("requests to %s take %s ms", d.name, plain(waited))
		} else {
			v.means("reads from %s take %s ms", d.name, plain(waited))
		}
		v.not("which processes wait for it, and whether the service is one of them")
		v.next("pidstat -d 1 10", "which processes read and write")
	case d.worst() >= awaitSlow && d.reads+d.writes >= 1 && (d.queue >= 1 || d.queue >= 0.2 && d.util >= utilSome):
		v.candidate("disk-wait", c.wa/100, proof)
		v.means("%s: whether anybody waits for them is not in it", d.slowest())
		if d.wawait > d.rawait {
			v.not("writes go on behind the programs' backs: only fsync and a limit on dirty pages make a program wait for them")
		}
		v.not("which processes wait for it, and whether the service is one of them")
		v.next("pidstat -d 1 10", "iodelay: which processes wait for the disk")
	case d.util >= 90 && d.queue < 2 && d.rawait >= 1 && d.reads*d.rawait >= 700:
		v.candidate("disk-wait", c.wa/100, proof)
		v.means("reads from %s are served one after another all the time, each in %s ms: who reads waits for it", d.name, plain(d.rawait))
		v.next("pidstat -d 1 10", "which processes read")
	case d.util >= 90 && d.queue < 2 && d.wawait >= awaitFew && d.writes*d.wawait >= 700:
		v.candidate("disk-wait", c.wa/100, proof)
		v.means("writes to %s are served one after another all the time, each in %s ms: who syncs each of them waits for it", d.name, plain(d.wawait))
		v.next("strace -f -T -e trace=fsync,fdatasync -p PID", "whether the service calls fsync, and how long each takes")
	}
}
