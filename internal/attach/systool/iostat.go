package systool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var iostat = &attach.Kind{
	Name:  "iostat",
	Rows:  true,
	Hints: []string{"Linux ", "avg-cpu", "Device", "Disk:", "sd", "vd", "nvme", "dm-", "mmcblk"},
	Claim: claimIostat,
	Read:  readIostat,
	Apart: newRun,
}

// iostatDate is the line of iostat -t above each report.
var iostatDate = pattern.New(`^\d{1,4}[./-]\d{1,2}[./-]\d{1,4} \d{2}:\d{2}:\d{2}( [AP]M)?$`)

// iostatDevices gives the columns of devices. The device is the first of them, or with -h the last.
func iostatDevices(f []string) bool {
	if len(f) < 3 || figures(f) {
		return false
	}
	has := func(n ...string) bool {
		return slices.ContainsFunc(n, func(s string) bool { return slices.Contains(f, s) })
	}
	first := strings.TrimRight(f[0], ":：") == "Device" || f[0] == "Disk:"
	last := f[len(f)-1] == "Device"
	return first && has("tps", "r/s", "await", "rrqm/s") || last &&
		has("r/s", "w/s", "d/s", "f/s", "tps", "aqu-sz", "%util")
}

func iostatCPU(f []string) bool {
	return len(f) >= 3 && strings.HasPrefix(f[0], "avg-cpu") && f[1] == "%user" && !figures(f)
}

// iostatTable is the columns that stand above, devices' and those of CPUs.
type iostatTable struct {
	names  []string
	shares int
}

// whole reports whether a line is complete: some mails break each.
func (t *iostatTable) whole(text string) bool {
	f := fields(text)
	return banner(text) != nil || iostatDate.MatchString(strings.TrimSpace(text)) || iostatDevices(f) || iostatCPU(f) ||
		t.shares > 0 && len(f) == t.shares && numeric(f) || t.names != nil &&
		len(f) == len(t.names) && iostatRow(t.names, f)
}

func claimIostat(lines []paste.Line) int {
	t := iostatTable{names: iostatBareNames(lines)}
	return claimLogical(lines, broken{whole: t.whole}, func(at int, text string) bool {
		f := fields(text)
		switch {
		case at > 0 && banner(text) != nil:
			return false // another run
		case banner(text) != nil, iostatDate.MatchString(strings.TrimSpace(text)):
			next, ok := following(lines, at+1)
			n := fields(next.Text)
			return ok && (iostatDevices(n) || iostatCPU(n) || iostatDate.MatchString(strings.TrimSpace(next.Text)))
		case iostatDevices(f):
			t.names = f
			return true
		case iostatCPU(f):
			t.shares = len(f) - 1
			return true
		case t.shares > 0 && len(f) == t.shares && numeric(f):
			t.shares = 0
			return true
		}
		return t.names != nil && len(f) == len(t.names) && iostatRow(t.names, f)
	})
}

func iostatRow(names, f []string) bool {
	for i, n := range names {
		if strings.HasPrefix(n, "Device") || n == "Disk:" {
			continue
		}
		if _, ok := size(strings.TrimSuffix(f[i], "%"), 1); !ok {
			return false
		}
	}
	return true
}

// disk is what one report says of a device: its rows as they stand, with the names of their
// columns, which are one list for all devices and reports of a table. Figures are read when asked
// for: kept, they took more memory than the text.
type disk []diskRow

type diskRow struct {
	names []string
	text  string
}

// get is the figure of a column; ok: it is there. Where two tables have it, the later one counts.
func (d disk) get(column string) (v float64, ok bool) {
	for _, r := range slices.Backward(d) {
		if i := slices.Index(r.names, column); i >= 0 {
			unit := 1.0
			if strings.HasPrefix(column, "rkB") || strings.HasPrefix(column, "wkB") || strings.HasPrefix(column, "kB") {
				unit = 1024
			}
			v, _ = size(strings.TrimSuffix(nth(r.text, i), "%"), unit)
			return v, true
		}
	}
	return 0, false
}

// report is one report of iostat.
type report struct {
	disks map[string]disk
	order []string
	cpu   *cpuUse
	boot  bool // the first one below a heading, which is an average since boot
}

// maxDisks bounds what one report may name.
const maxDisks = 4096

func parseIostat(p *attach.Part) (all []report, headed bool, cpus int) {
	var names []string
	var shares []string
	var r *report
	first := false
	open := func() {
		all = append(all, report{disks: map[string]disk{}, boot: first})
		r, first = &all[len(all)-1], false
	}
	now := iostatTable{names: iostatBareNames(p.Lines)}
	names = now.names
	bare := names != nil
	headed = bare && filtered(p.Command)
	for _, text := range logical(p.Lines, broken{whole: now.whole}) {
		f := fields(text)
		switch {
		case len(f) == 0 || iostatDate.MatchString(strings.TrimSpace(text)):
		case banner(text) != nil:
			headed, first = true, true
			cpus, _ = whole(banner(text)[3])
		case iostatCPU(f):
			shares, now.shares = f[1:], len(f)-1
			open()
		case iostatDevices(f):
			names, now.names, bare = f, f, false
			// -d leaves out the CPUs, -h prints four tables of devices.
			if r == nil || len(r.order) > 0 && f[0] != "w/s" && f[0] != "d/s" && f[0] != "f/s" &&
				!slices.Contains(f[:1], "aqu-sz") {
				open()
			}
		case len(shares) > 0 && len(f) == len(shares) && numeric(f):
			t := table{names: shares, rows: []row{{cells: f}}}
			one := t.byShares()
			r.cpu, shares, now.shares = &one, nil, 0
		case bare && len(f) == len(names) && iostatRow(names, f):
			if r == nil || r.disks[f[0]] != nil { // each device comes once in a report
				open()
			}
			r.add(names, f, text)
		case r != nil && len(f) == len(names) && iostatRow(names, f):
			r.add(names, f, text)
		}
	}
	for n := len(all) - 1; n > 0 && all[n].cpu == nil && len(all[n].order) == 0; n-- {
		all = all[:n] // names at the end, whose rows are cut off
	}
	return all, headed, cpus
}

func (t *table) byShares() cpuUse {
	r := t.rows[0]
	return cpuUse{us: t.num(r, "%user") + t.num(r, "%nice"), sy: t.num(r, "%system", "%sys"), wa: t.num(r, "%iowait"),
		st: t.num(r, "%steal"), id: t.num(r, "%idle"), samples: 1, runnable: -1, blocked: -1}
}

func (r *report) add(names, f []string, text string) {
	at := 0
	if names[len(names)-1] == "Device" {
		at = len(names) - 1
	}
	name := f[at]
	d, known := r.disks[name]
	switch {
	case !known && len(r.order) >= maxDisks:
		return
	case !known:
		r.order = append(r.order, name)
	}
	r.disks[name] = append(d, diskRow{names, text})
}

func readIostat(p *attach.Part) attach.Reading {
	all, headed, cpus := parseIostat(p)
	v := &verdict{}
	boot := (headed || sinceBoot(all) || longAverage(all)) && !option(p, 'y') && len(all) > 0
	judged := all
	if boot {
		judged = slices.DeleteFunc(slices.Clone(all[1:]), func(r report) bool { return r.boot })
	}
	if !slices.ContainsFunc(all, func(r report) bool { return r.cpu != nil || len(r.disks) > 0 }) {
		v.cutOff("iostat")
		v.next("iostat -x 1 10", "reports of single seconds while it is slow")
		return v.done()
	}
	if len(judged) == 0 {
		v.Title, v.Boot, v.unsure = "iostat, one report since boot", true, true
		when := "since boot"
		if !headed {
			v.Title, when = "iostat, one report: an average of a long time", "on average"
		}
		longAverages(v, devices(all[:1]), when)
		if c, known := reportsCPU(all[:1]); known {
			v.figure("%s: CPUs %s", when, c)
		}
		if !headed {
			v.means("a request in more than ten seconds says that it is an average of a long time: since boot, if it is the first report of its run")
		}
		v.means("the first report is an average since boot, and says nothing about now")
		v.not("that a disk is slow: in an average since boot, the time of a request may be of few requests long ago")
		v.next("iostat -x 1 10", "reports of single seconds while it is slow")
		return v.done()
	}
	v.Title = "iostat, " + samples(len(judged))
	if boot {
		v.Title += " after the report since boot"
	}
	if !headed && len(all) == 1 && !option(p, 'y') {
		v.Title += ", which is an average since boot if it is the first of its run"
	}
	c, known := reportsCPU(judged)
	disks := devices(judged)
	for i, d := range disks {
		if i < 2 && d.reads+d.writes > 0 || i == 0 {
			v.figure("%s", d)
		}
		if i < 16 {
			v.factOf(DeviceAwait, d.worst(), d.name)
		}
	}
	if known {
		v.figure("CPUs: %s", c)
	}
	judgeAll(v, disks, c, len(judged))
	if known {
		c.cpus = cpus
		if atRest(disks) && c.wa >= iowaitMatters {
			v.unsure = true
			v.against("disk-wait", "no disk of iostat serves a request")
			v.means("CPUs are idle %s %% of the time with threads that wait for I/O, and no disk in it serves a request: it is waited for elsewhere", plain(c.wa))
			v.not("iowait is no proof of a slow disk: a thread that sleeps in the kernel for memory, for a server of files or for a device that is not listed counts likewise")
			v.next("for i in 1 2 3 4 5; do ps -eLo state,wchan:32,comm | grep ^D; sleep 1; done",
				"where in the kernel they wait")
			c.wa = 0
		}
		c.judge(v)
	}
	if len(disks) > 0 && !disks[0].extended {
		v.unsure = true
		waits := ""
		if known {
			waits = fmt.Sprintf("; iowait is %s %%", plain(c.wa))
		}
		v.means("without -x it shows how much is read and written, and not how long that takes%s", waits)
		v.next("iostat -x 1 10", "r_await and w_await: how long requests take")
	}
	for _, d := range disks {
		d.lateForSSD(v)
	}
	for _, d := range disks {
		if d.worst() >= awaitSlow && d.reads+d.writes >= 1 && v.Means == "" {
			v.means("%s, but they are few, less than one at a time on average: it is busy %s %% of the time", d.slowest(), plain(d.util))
		}
	}
	for _, d := range disks {
		d.lateByOne(v)
	}
	if atRest(disks) {
		v.means("no disk served a request in it: how fast they answer is not in it")
	}
	if late := latest(disks); late.worst() >= awaitFew {
		v.means("the longest requests are those of %s, %s ms at the median: what a rotating or a remote disk needs, and more than an SSD", late.name, plain(late.worst()))
	}
	v.means("the disks answer fast")
	v.not("what is read and written says nothing of who waits for it")
	return v.done()
}
