package systool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// one is the medians of one device over reports.
func medianDisk(all []report, name string, columns ...string) float64 {
	var list []float64
	left := false // -z
	for i, r := range all {
		d, ok := r.disks[name]
		if !ok && i > 0 && i == len(all)-1 && !left {
			break // the paste ends above it
		}
		if !ok {
			left = true
			list = append(list, 0) // -z leaves out devices that did nothing
			continue
		}
		for _, c := range columns {
			if v, ok := d.get(c); ok {
				list = append(list, v)
				break
			}
		}
	}
	return attach.Median(list)
}

// device is the medians that matter of one device.
type device struct {
	name                          string
	reads, writes, others         float64 // requests a second
	rawait, wawait, fawait, await float64 // ms
	queue, util                   float64
	extended                      bool
	has                           map[string]bool // of r_await and w_await, which are in the paste
	counted                       bool            // its queue is not in the paste, and follows from the rest
	read, written                 float64         // bytes a second
	wrote                         bool            // nearly all of what it moved was written
	peak                          float64         // ms: the longest await of one report in which it was not at ease
	peakRate                      float64         // requests a second then
}

func devices(all []report) (out []device) {
	seen := map[string]bool{}
	for _, r := range all {
		for _, name := range r.order {
			if seen[name] {
				continue
			}
			seen[name] = true
			m := func(c ...string) float64 { return medianDisk(all, name, c...) }
			d := device{name: strings.TrimSuffix(name, ":"), reads: m("r/s"), writes: m("w/s"),
				others: m("d/s") + m("f/s"), rawait: m("r_await"), wawait: m("w_await"),
				fawait: m("f_await"), await: m("await"), queue: m("aqu-sz", "avgqu-sz"), util: m("%util")}
			if d.reads+d.writes == 0 {
				d.reads = m("tps")
			}
			d.read = m("rkB/s", "kB_read/s") + 512*m("rd_sec/s", "rsec/s", "Blk_read/s") + 1<<20*m("rMB/s", "MB_read/s")
			d.written = m("wkB/s", "kB_wrtn/s") + 512*m("wr_sec/s", "wsec/s", "Blk_wrtn/s") + 1<<20*m("wMB/s", "MB_wrtn/s")
			d.wrote = d.written > 0 && d.read < 0.05*d.written
			_, d.extended = r.disks[name].get("%util")
			d.has = map[string]bool{}
			for _, c := range []string{"r_await", "w_await"} {
				_, d.has[c] = r.disks[name].get(c)
			}
			_, queue := r.disks[name].get("aqu-sz")
			_, older := r.disks[name].get("avgqu-sz")
			if !queue && !older { // Little's law: what arrives in a second times how long it stays
				d.counted = true
				d.queue = max(d.reads*d.rawait+d.writes*d.wawait, (d.reads+d.writes)*d.await) / 1000
			}
			d.peaks(all, name)
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b device) int {
		return cmp.Or(cmp.Compare(b.queue, a.queue), cmp.Compare(b.util, a.util),
			cmp.Compare(b.reads+b.writes, a.reads+a.writes))
	})
	return out
}

func (d device) worst() float64 { return max(d.rawait, d.wawait, d.await) }

// slowest says how long its requests take: where reads and writes differ, which of them it is.
func (d device) slowest() string {
	kind := "requests to"
	switch {
	case d.await == d.worst() || d.rawait == d.wawait:
	case d.rawait > d.wawait:
		kind = "reads from"
	default:
		kind = "writes to"
	}
	return fmt.Sprintf("%s %s take %s ms", kind, d.name, plain(d.worst()))
}

func (d device) String() string {
	var parts []string
	if d.rawait > 0 || d.wawait > 0 {
		for _, c := range []string{"r_await", "w_await"} {
			rate := map[string]float64{"r_await": d.reads, "w_await": d.writes}[c]
			if ms := map[string]float64{"r_await": d.rawait, "w_await": d.wawait}[c]; d.has[c] && rate+ms > 0 {
				parts = append(parts, c+" "+plain(ms)+" ms")
			}
		}
	} else if d.await > 0 {
		parts = append(parts, fmt.Sprintf("await %s ms", plain(d.await)))
	}
	if d.extended && !d.counted {
		parts = append(parts, "queue "+plain(d.queue))
	}
	if d.extended {
		parts = append(parts, plain(d.util)+" % util")
	}
	parts = append(parts, fmt.Sprintf("%s requests/s", plain(d.reads+d.writes)))
	if d.read+d.written >= 1<<20 || !d.extended && d.read+d.written > 0 {
		parts = append(parts, fmt.Sprintf("%s/s read and %s/s written", bytes(d.read), bytes(d.written)))
	}
	if d.peak >= awaitSlow && d.peak >= peakTimes*d.worst() {
		parts = append(parts, fmt.Sprintf("in one report %s ms at %s requests/s", plain(d.peak), plain(d.peakRate)))
	}
	return d.name + ": " + strings.Join(parts, ", ")
}

// peakTimes is how many times the median the longest time of a request in one report is that is
// worth a word.
const peakTimes = 3
