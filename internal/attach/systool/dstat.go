package systool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

var dstat = &attach.Kind{
	Name:  "dstat",
	Hints: []string{"--", "You did not"},
	Claim: claimDstat,
	Read:  readDstat,
}

// dstatGroups is the first of the two lines above the rows.
func dstatGroups(text string) bool {
	t := strings.TrimSpace(text)
	return strings.HasPrefix(t, "--") && strings.Count(t, "-") >= 6 && (strings.Contains(t, "cpu-usage") || strings.Contains(t, "-dsk/") || strings.Contains(t, "-net/") ||
		strings.Contains(t, "---system--") || strings.Contains(t, "memory-usage") || strings.Contains(t, "---paging--") || strings.Contains(t, "---procs---"))
}

// dstatCells splits a row at blanks and at the bars between groups.
func dstatCells(text string) []string {
	return fields(strings.NewReplacer("|", " ", ":", ":").Replace(text))
}

func dstatNames(f []string) bool {
	known := 0
	for _, n := range f {
		if slices.Contains([]string{"usr", "sys", "idl", "wai", "hiq", "siq", "stl", "read", "writ", "recv", "send", "in", "out", "int", "csw", "used", "free", "buff", "cach", "run", "blk", "new", "1m", "5m", "15m", "time"}, n) {
			known++
		}
	}
	return known >= 2 && known*2 >= len(f)
}

func dstatRow(f []string) bool {
	figures := 0
	for _, c := range f {
		if _, ok := size(c, 1); ok {
			figures++
		}
	}
	return figures >= 2 && len(f)-figures <= 2
}

func claimDstat(lines []paste.Line) int {
	names := false
	return attach.ClaimWhile(lines, func(at int, text string) bool {
		if strings.HasPrefix(text, "You did not select any stats") {
			next, ok := following(lines, at+1)
			return ok && dstatGroups(next.Text)
		}
		if dstatGroups(text) {
			return true
		}
		f := dstatCells(text)
		if dstatNames(f) && at > 0 {
			names = true
			return true
		}
		return names && dstatRow(f)
	})
}

func readDstat(p *attach.Part) attach.Reading {
	v := &verdict{}
	t := table{}
	for _, l := range p.Lines {
		f := dstatCells(l.Text)
		switch {
		case dstatGroups(l.Text) || len(f) == 0:
		case dstatNames(f):
			t.names = f
		case t.names != nil && dstatRow(f):
			// A date and a time are two cells below one name.
			for len(f) > len(t.names) {
				f = f[1:]
			}
			t.rows = append(t.rows, row{cells: f})
		}
	}
	if len(t.rows) < 2 {
		v.Title, v.Boot, v.unsure = "dstat, one row", true, true
		v.means("the first row is an average since boot, and says nothing about now")
		v.next("vmstat 1 30", "samples while it is slow")
		return v.done()
	}
	t.rows = t.rows[1:] // since boot
	v.Title = fmt.Sprintf("dstat, %s after the row since boot", samples(len(t.rows)))
	c := cpuUse{us: t.median("usr"), sy: t.median("sys"), id: t.median("idl"), wa: t.median("wai"), hi: t.median("hiq"), si: t.median("siq"), st: t.median("stl"),
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
	if t.has("csw") {
		v.figure("%s context switches/s", plain(amount("csw")))
	}
	if t.has("in") {
		v.fact(SwapInRate, amount("in"))
		v.swapping(amount("in"), amount("out"), len(t.rows), fmt.Sprintf("swap in %s/s, out %s/s", bytes(amount("in")), bytes(amount("out"))))
	}
	if t.has("idl") {
		c.judge(v)
	}
	if len(t.rows) < enoughSamples {
		v.Glance = true
	}
	v.means("CPUs and swap are at ease in these samples")
	v.not("a machine at ease may hold a service which waits for a lock or for another server")
	return v.done()
}
