package kernelfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// ioLine is a line of io.stat or of io.max: a device, and pairs of names and values.
var ioLine = pattern.New(`^\d{1,4}:\d{1,7}(?: [a-z][\w.]*=(?:\d+|max))+$`)

// groupIO is io.stat and io.max of cgroup v2: what a group read and wrote by device since it was
// made, and how much it may.
var groupIO = &attach.Kind{
	Name: "io.stat", Joins: true,
	Claim: starting("0-9", 1000, repeated(func(lines []paste.Line) int {
		return run(lines, func(t string) bool {
			return (strings.Contains(t, "rbytes=") || strings.Contains(t, "rios=") ||
				strings.Contains(t, "rbps=") || strings.Contains(t, "riops=")) && ioLine.MatchString(t)
		})
	})),
	Read: readGroupIO,
}

// deviceIO is one line, by its names; "max" is no limit, and left out.
type deviceIO struct {
	device string
	values map[string]float64
}

func readGroupIO(p *attach.Part) attach.Reading {
	all := samples(p, nil)
	r := attach.Reading{Title: "io.stat of a cgroup", State: attach.Context, Boot: true, Time: all[0].at}
	first, last := ioOf(all[0].lines), ioOf(all[len(all)-1].lines)
	when, dt := "since the group was made", 0.0
	if len(all) > 1 && ioGrew(first, last) {
		when, dt, r.Boot, r.State = "between the samples", span(all), false, attach.Healthy
		r.Title += fmt.Sprintf(", %d samples%s", len(all), over(dt))
	} else {
		first = nil
	}
	var limits []string
	for _, d := range last {
		by := func(name string) float64 { return d.values[name] - ioFind(first, d.device).values[name] }
		if text := ioLimit(d); text != "" {
			limits = append(limits, text)
		}
		if by("rios")+by("wios") == 0 {
			continue
		}
		text := fmt.Sprintf("device %s: %s read in %s reads, %s written in %s writes, %s", d.device,
			mem(by("rbytes")), number(by("rios")), mem(by("wbytes")), number(by("wios")), when)
		if dt > 0 {
			text += fmt.Sprintf(" (%s a second)", plural(int((by("rios")+by("wios"))/dt), "request", "requests"))
		}
		r.Figures = append(r.Figures, text)
		if wait := by("cost.wait"); wait > 0 {
			r.Figures = append(r.Figures,
				fmt.Sprintf("device %s: its requests were held back for %s by its share (cost.wait), %s", d.device, dur(wait*1000), when))
		}
	}
	r.Means = "It says how much the group read and wrote; how long it waited for that, io.pressure tells."
	r.Not = "how long a request waited for the disk"
	r.Next = []attach.Next{{Command: "cd /sys/fs/cgroup/CGROUP; cat io.pressure io.max",
		Why: "how long its tasks wait, and whether a limit of its own is why"}}
	if len(limits) > 0 {
		r.State = attach.CannotTell
		r.Figures = append(limits, r.Figures...)
		r.Means = "The group may use a device only so much (io.max): what goes beyond waits, although the device may be idle."
		r.Signs = []attach.Sign{{Cause: "disk-wait", Grade: attach.Risk, Proof: limits[:1]}}
	}
	return r
}

// ioOf reads lines; io.stat and io.max of one device become one.
func ioOf(lines []string) (out []deviceIO) {
	for _, t := range lines {
		f := strings.Fields(t)
		if len(f) < 2 || len(out) >= 4096 {
			continue
		}
		at := slices.IndexFunc(out, func(d deviceIO) bool { return d.device == f[0] })
		if at < 0 {
			at = len(out)
			out = append(out, deviceIO{f[0], map[string]float64{}})
		}
		for _, w := range f[1:] {
			if name, v, _ := strings.Cut(w, "="); v != "max" {
				out[at].values[name] = float(v)
			}
		}
	}
	return out
}

func ioFind(all []deviceIO, device string) deviceIO {
	if at := slices.IndexFunc(all, func(d deviceIO) bool { return d.device == device }); at >= 0 {
		return all[at]
	}
	return deviceIO{}
}

// ioGrew reports whether no counter fell.
func ioGrew(first, last []deviceIO) bool {
	return !slices.ContainsFunc(last, func(d deviceIO) bool {
		before := ioFind(first, d.device).values
		return slices.ContainsFunc([]string{"rbytes", "wbytes", "rios", "wios"},
			func(n string) bool { return d.values[n] < before[n] })
	})
}

// ioLimit says how much a group may use a device; "": as much as it likes.
func ioLimit(d deviceIO) string {
	var said []string
	for _, l := range []struct{ name, say string }{{"rbps", "read %s a second"},
		{"wbps", "write %s a second"}, {"riops", "read %s times a second"}, {"wiops", "write %s times a second"}} {
		v, ok := d.values[l.name]
		if !ok {
			continue
		}
		text := number(v)
		if strings.HasSuffix(l.name, "bps") {
			text = mem(v)
		}
		said = append(said, fmt.Sprintf(l.say, text))
	}
	if len(said) == 0 {
		return ""
	}
	return fmt.Sprintf("on device %s it may %s (io.max)", d.device, strings.Join(said, ", "))
}
