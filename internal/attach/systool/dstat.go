package systool

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var dstat = &attach.Kind{
	Name:  "dstat",
	Rows:  true,
	Hints: []string{"--", "You did not"},
	Claim: claimDstat,
	Read:  readDstat,
}

// dstatGroups is the first of the two lines above the rows.
func dstatGroups(text string) bool {
	t := strings.TrimSpace(text)
	return strings.HasPrefix(t, "--") && strings.Count(t, "-") >= 6 &&
		(strings.Contains(t, "cpu-usage") || strings.Contains(t, "-dsk/") || strings.Contains(t, "-net/") ||
			strings.Contains(t, "---system--") || strings.Contains(t, "memory-usage") ||
			strings.Contains(t, "---paging--") || strings.Contains(t, "---procs---"))
}

// dstatCells splits a row at blanks and at the bars between groups.
func dstatCells(text string) []string {
	return fields(strings.NewReplacer("|", " ", ":", ":").Replace(text))
}

func dstatNames(f []string) bool {
	known := 0
	for _, n := range f {
		if slices.Contains([]string{"usr", "sys", "idl", "wai", "hiq", "siq", "stl", "read", "writ",
			"recv", "send", "in", "out", "int", "csw", "used", "free", "buff", "cach", "run", "blk",
			"new", "1m", "5m", "15m", "time", "rawa", "wawa"}, n) {
			known++
		}
	}
	return known >= 2 && known*2 >= len(f)
}

// dstatColumns is the line of names: groups of columns, with bars between. A plug-in's group may
// have blanks in its cells, so each group is read for itself.
type dstatColumns [][]string

// dstatGroup divides a line at the bars, and where a group is of several devices, between these.
func dstatGroup(text string) (out [][]string) {
	for _, g := range strings.Split(strings.Trim(strings.TrimSpace(text), "|"), "|") {
		if parts := strings.Split(g, ":"); len(parts) > 1 && !dstatTime.MatchString(g) {
			for _, p := range parts {
				out = append(out, fields(p))
			}
			continue
		}
		out = append(out, fields(strings.TrimSuffix(strings.TrimSpace(g), ":")))
	}
	return out
}

// dstatTime is a clock time, which has the sign that otherwise stands between devices.
var dstatTime = pattern.New(`(?:^|[\sT])\d\d:\d\d:\d\d(?:\s|$)`)

// dstatDisk is a disk in the line of groups.
var dstatDisk = pattern.New(`-dsk/([a-z]+[a-z0-9]*)`)

// aside leaves the columns of disks out that are parts of another one listed, whose figures have
// theirs: sda1 beside sda.
func (h dstatColumns) aside(groups string) {
	var disks []string
	for _, m := range dstatDisk.FindAllStringSubmatch(groups, 64) {
		disks = append(disks, m[1])
	}
	n := 0
	for i, names := range h {
		if !slices.Equal(names, []string{"read", "writ"}) || n >= len(disks) {
			continue
		}
		if slices.ContainsFunc(disks, func(d string) bool { return d != disks[n] && strings.HasPrefix(disks[n], d) }) {
			h[i] = make([]string, len(names))
		}
		n++
	}
}

func dstatHeader(text string) (dstatColumns, bool) {
	if !dstatNames(dstatCells(text)) && !strings.Contains(text, "|") {
		return nil, false
	}
	groups, known := dstatGroup(text), false
	for _, g := range groups {
		known = known || dstatNames(g)
	}
	return groups, known
}

// row gives the figures of a line by name; nil: it is no row. What several devices or CPUs have is
// summed up, but the shares of CPUs, of which it is the mean.
func (h dstatColumns) row(text string) map[string]float64 {
	groups := dstatGroup(text)
	if len(groups) > len(h) || len(groups)*2 < len(h) {
		return nil // a row may be cut at the right
	}
	out, cpus := map[string]float64{}, 0.0
	for i, cells := range groups {
		names := h[i]
		if len(cells) != len(names) || !dstatNames(names) {
			continue
		}
		if slices.Contains(names, "idl") {
			cpus++
		}
		for j, c := range cells {
			f, ok := size(c, 1)
			if !ok && c != "-" {
				return nil
			}
			if strings.HasSuffix(names[j], "awa") {
				out[names[j]] = max(out[names[j]], f) // ms a request: of the slowest
			} else {
				out[names[j]] += f
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	for _, n := range []string{"usr", "sys", "idl", "wai", "hiq", "siq", "stl"} {
		if cpus > 1 {
			out[n] /= cpus
		}
	}
	return out
}

func claimDstat(lines []paste.Line) int {
	var names dstatColumns
	return attach.ClaimWhile(lines, func(at int, text string) bool {
		if strings.HasPrefix(text, "You did not select any stats") {
			next, ok := following(lines, at+1)
			return ok && dstatGroups(next.Text)
		}
		if dstatGroups(text) {
			return true
		}
		if h, ok := dstatHeader(text); ok && at > 0 {
			names = h
			return true
		}
		return names != nil && names.row(text) != nil
	})
}

func readDstat(p *attach.Part) attach.Reading {
	v := &verdict{}
	t := table{}
	var columns dstatColumns
	groups := ""
	for _, l := range p.Lines {
		if dstatGroups(l.Text) {
			groups = l.Text
			continue
		}
		if h, ok := dstatHeader(l.Text); ok {
			columns = h
			columns.aside(groups)
			continue
		}
		figures := columns.row(l.Text)
		if figures == nil {
			continue
		}
		if t.names == nil {
			t.names = slices.Sorted(maps.Keys(figures))
		}
		r := row{}
		for _, n := range t.names {
			r.cells = append(r.cells, strconv.FormatFloat(figures[n], 'f', -1, 64))
		}
		t.rows = append(t.rows, r)
	}
	if len(t.rows) < 2 {
		v.Title, v.Boot, v.unsure = "dstat, one row", true, true
		v.means("the first row is an average since boot, and says nothing about now")
		v.next("vmstat 1 30", "samples while it is slow")
		return v.done()
	}
	t.rows = t.rows[1:] // since boot
	v.Title = fmt.Sprintf("dstat, %s after the row since boot", samples(len(t.rows)))
	c := cpuUse{us: t.median("usr"), sy: t.median("sys"), id: t.median("idl"), wa: t.median("wai"),
		hi: t.median("hiq"), si: t.median("siq"), st: t.median("stl"),
		samples: len(t.rows), runnable: -1, blocked: -1}
	if t.has("run") {
		c.runnable, c.blocked = t.median("run"), t.median("blk")
	}
	amount := func(name string) float64 {
		var all []float64
		for _, r := range t.rows {
			f, _ := size(t.cell(r, name), 1)
			all = append(all, f)
		}
		return attach.Median(all)
	}
	if t.has("idl") {
		v.figure("CPUs: %s (medians)", c)
	}
	if t.has("read") {
		v.figure("disks: reads %s/s, writes %s/s", bytes(amount("read")), bytes(amount("writ")))
	}
	if t.has("rawa") {
		v.figure("requests take %s ms (reads) and %s ms (writes) on the slowest disk listed",
			plain(amount("rawa")), plain(amount("wawa")))
	}
	if t.has("csw") {
		v.figure("%s context switches/s", plain(amount("csw")))
	}
	if t.has("in") {
		v.fact(SwapInRate, amount("in"))
		v.swapping(amount("in"), amount("out"), len(t.rows),
			fmt.Sprintf("swap in %s/s, out %s/s", bytes(amount("in")), bytes(amount("out"))))
	}
	if t.has("idl") {
		c.judge(v)
	}
	if len(t.rows) < enoughSamples {
		v.Glance = true
	}
	switch {
	case t.has("idl") && t.has("in"):
		v.ease("CPUs and swap are at ease in these samples")
	case t.has("idl"):
		v.ease("the CPUs are at ease in these samples")
	case t.has("in"):
		v.ease("swap is at ease in these samples")
	default:
		v.unsure = true
		v.means("how busy the CPUs are, and who waits, is not in it")
	}
	v.not("a machine at ease may hold a service which waits for a lock or for another server")
	return v.done()
}
