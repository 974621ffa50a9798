package systool

import (
	"cmp"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// atopsar prints tables like sar's. The name of each stands at the end of its line of names, and
// only the first row of a moment has its time.
var atopsar = &attach.Kind{
	Name: "atopsar",
	Rows: true,
	Hints: []string{"_dsk_", "_lvm_", "_mdd_", "_cpu_", "_mem_", "_swap_", "_if_", "_ip_", "_tcp_",
		"_nfs_", "_proc_", "_psi_", "analysis date"},
	Claim: claimAtopsar,
	Read:  readAtopsar,
}

var (
	atopsarHead = pattern.New(`^(\d\d:\d\d:\d\d) +(\S.*?) +_(\w+)_ *$`)
	atopsarDate = pattern.New(`^-+ analysis date: \d{4}/\d\d/\d\d -+$`)
	atopsarRow  = pattern.New(`^(?:(\d\d:\d\d:\d\d)| {4,}) *(\S.*)$`)
)

// atopsarCells takes a row apart; nil: it is none. A unit of time stands apart from its figure.
func atopsarCells(text string) (at string, cells []string) {
	m := atopsarRow.FindStringSubmatch(text)
	if m == nil {
		return "", nil
	}
	for _, c := range fields(m[2]) {
		if c == "ms" || c == "us" {
			continue
		}
		cells = append(cells, c)
	}
	return m[1], cells
}

func claimAtopsar(lines []paste.Line) int {
	width := 0
	n := attach.ClaimWhile(lines, func(at int, text string) bool {
		text = strings.TrimRight(text, " \t")
		if m := atopsarHead.FindStringSubmatch(text); m != nil {
			width = len(fields(m[2]))
			return width >= 3
		}
		if at == 0 {
			return atopsarDate.MatchString(strings.TrimSpace(text))
		}
		_, cells := atopsarCells(text)
		figures := 0
		for _, c := range cells {
			if strings.ContainsAny(c[:1], "-0123456789") {
				figures++
			}
		}
		return atopsarDate.MatchString(strings.TrimSpace(text)) || width > 0 && len(cells) >= 2 &&
			len(cells) <= width+1 && figures >= len(cells)-2
	})
	return attach.ClaimIf(width > 0, n)
}

func readAtopsar(p *attach.Part) attach.Reading {
	v := &verdict{}
	tables := map[string]*table{}
	var now *table
	var order, times []string
	for _, l := range p.Lines {
		text := strings.TrimRight(l.Text, " \t")
		if m := atopsarHead.FindStringSubmatch(text); m != nil {
			names := fields(m[2])
			if now = tables[m[3]]; now == nil || !slices.Equal(now.names, names) {
				now = &table{names: names}
				tables[m[3]] = now
				order = append(order, m[3])
			}
			continue
		}
		at, cells := atopsarCells(text)
		if now == nil || len(cells) != len(now.names) {
			continue
		}
		if at != "" && !slices.Contains(times[max(0, len(times)-1):], at) {
			times = append(times, at)
		}
		for i, c := range cells {
			cells[i] = strings.TrimSuffix(c, "%")
		}
		now.rows = append(now.rows, row{time: at, cells: cells})
	}
	v.Title = "atopsar, " + samples(len(times))
	atopsarDisks(v, tables)
	atopsarCPU(v, tables["cpu"])
	if len(v.Figures) == 0 {
		v.unsure = true
		v.figure("tables: %s", strings.Join(order[:min(len(order), 8)], ", "))
		v.means("none of its tables is of CPUs or disks")
	}
	return v.done()
}

// atopsarDisks judges the devices. The time of a request is that on the device: how long it waited
// in the queue before is not in it.
func atopsarDisks(v *verdict, tables map[string]*table) {
	for _, name := range []string{"dsk", "lvm", "mdd"} {
		t := tables[name]
		if t == nil || len(t.rows) == 0 || !t.has("busy") || !t.has("avserv") {
			continue
		}
		busiest := slices.MaxFunc(t.rows, func(a, b row) int { return cmp.Compare(t.num(a, "busy"), t.num(b, "busy")) })
		slowest := slices.MaxFunc(t.rows,
			func(a, b row) int { return cmp.Compare(t.num(a, "avserv"), t.num(b, "avserv")) })
		busy, slow := t.num(busiest, "busy"), t.num(slowest, "avserv")
		v.figure("%s is busiest: %s %%, %s reads/s, %s writes/s, %s ms each", busiest.cells[0], plain(busy),
			plain(t.num(busiest, "read/s")), plain(t.num(busiest, "writ/s")), plain(t.num(busiest, "avserv")))
		v.figure("a request took %s ms on its device at most, on %s", plain(slow), slowest.cells[0])
		v.not("avserv is the time on the device: how long a request waited in the queue before is not in it")
		switch {
		case busy >= 90 && t.num(busiest, "avserv") >= awaitSome/2:
			v.candidate("disk-wait", busy/100, v.Figures[0])
			v.means("%s is busy %s %% of the time: whether anybody waits for it is not in it",
				busiest.cells[0], plain(busy))
			v.next("pidstat -d 1 10", "iodelay: which processes wait for the disk")
		case busy < 50 && slow < awaitSome:
			v.means("the disks are at ease: they are busy %s %% of the time at most, and answer in %s ms", plain(busy), plain(slow))
		default:
			v.unsure = true
			v.means("the disks are busy %s %% of the time at most, and a request takes up to %s ms",
				plain(busy), plain(slow))
		}
	}
}

// atopsarCPU judges the rows of all CPUs.
func atopsarCPU(v *verdict, t *table) {
	if t == nil || !t.has("%idle") {
		return
	}
	all := table{names: t.names}
	for _, r := range t.rows {
		if r.cells[0] == "all" {
			all.rows = append(all.rows, r)
		}
	}
	if len(all.rows) == 0 {
		return
	}
	cpus := 0
	for i, r := range t.rows {
		if r.cells[0] != "all" && i <= maxCPUs {
			n, _ := whole(r.cells[0])
			cpus = max(cpus, n+1)
		}
	}
	// atop sums the shares of all CPUs.
	total := all.median("%idle") + all.median("%usr") + all.median("%sys") + all.median("%wait") +
		all.median("%irq") + all.median("%softirq") + all.median("%steal") + all.median("%nice")
	scale := 100 / max(1, total)
	c := cpuUse{us: scale * (all.median("%usr") + all.median("%nice")),
		sy: scale * all.median("%sys"), wa: scale * all.median("%wait"), hi: scale * all.median("%irq"),
		si: scale * all.median("%softirq"), st: scale * all.median("%steal"),
		id: scale * all.median("%idle"), samples: len(all.rows), cpus: cpus, runnable: -1, blocked: -1}
	v.figure("CPUs: %s", c)
	c.judge(v)
	v.means("the CPUs have room in these samples")
}
