package kernelfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// perCPU is a table of the kernel with a column for each CPU: interrupts and softirqs.
var (
	cpuHeader = pattern.New(`^(?:CPU\d+ *)+$`)
	cpuRow    = pattern.New(`^([\w-]{1,12}):((?: +\d+)+)(?: +(.*))?$`)
)

var softirqNames = oneOf("HI TIMER NET_TX NET_RX BLOCK BLOCK_IOPOLL IRQ_POLL TASKLET SCHED HRTIMER RCU")

func claimTable(lines []paste.Line) int {
	text := strings.TrimLeft(lines[0].Text, " \t")
	if colon := strings.IndexByte(text, ':'); (colon < 1 || colon > 12) && !strings.HasPrefix(text, "CPU") {
		return 0
	}
	if !cpuHeader.MatchString(strings.TrimSpace(lines[0].Text)) {
		// A table whose start was cut off is known by its names.
		m := cpuRow.FindStringSubmatch(strings.TrimSpace(lines[0].Text))
		if m == nil || !softirqNames(m[1]) && !strings.Contains(m[3], "-edge") &&
			!strings.Contains(m[3], "-fasteoi") && !strings.HasSuffix(m[3], " interrupts") &&
			!strings.HasSuffix(m[3], " shootdowns") {
			return 0
		}
	}
	rows := 0
	n := run(lines, func(t string) bool {
		if cpuRow.MatchString(t) {
			rows++
			return true
		}
		return cpuHeader.MatchString(t)
	})
	return attach.ClaimIf(rows > 0, n)
}

// tableSample is the sums of rows over CPUs, and the largest CPU's part.
type tableRow struct {
	name, what string
	sum, top   float64
	cpu        int       // whose the largest part is, by its number
	each       []float64 // by CPU
}

// count sums what the CPUs have; names are their numbers, where the paste has them.
func (r *tableRow) count(names []string) {
	r.sum, r.top, r.cpu = 0, 0, 0
	for i, v := range r.each {
		r.sum += v
		if v > r.top {
			r.top, r.cpu = v, i
			if i < len(names) {
				r.cpu, _ = strconv.Atoi(strings.TrimPrefix(names[i], "CPU"))
			}
		}
	}
}

func tableRows(lines []string) (rows []tableRow, cpus int) {
	if !slices.ContainsFunc(lines, cpuHeader.MatchString) {
		cpus = columnsOf(lines)
	}
	var names []string
	for _, t := range lines {
		if cpuHeader.MatchString(t) {
			names = strings.Fields(t)
			cpus = len(names)
			continue
		}
		m := cpuRow.FindStringSubmatch(t)
		if m == nil {
			continue
		}
		r := tableRow{name: m[1], what: m[3]}
		for i, w := range strings.Fields(m[2]) {
			if cpus > 0 && i >= cpus {
				break
			}
			r.each = append(r.each, float(w))
		}
		r.count(names)
		rows = append(rows, r)
	}
	return rows, cpus
}

// columnsOf is how many CPUs a table has whose names were cut off: all its rows have as many
// figures; 0: they have not.
func columnsOf(lines []string) (n int) {
	for _, t := range lines {
		m := cpuRow.FindStringSubmatch(t)
		if m == nil || m[3] == "" {
			continue // of a row without a text behind, more may be cut off
		}
		c := len(strings.Fields(m[2]))
		if n > 0 && c != n {
			return 0
		}
		n = c
	}
	return n
}

// oneCPU is the share of interrupts from which the others take none to speak of.
const oneCPU = 0.95

// busiestCPU says which CPU takes most of what devices interrupt for, where two devices or more
// share it.
func busiestCPU(lines []string, cpus int) (figure string, share float64) {
	name := func(at int) string { return strconv.Itoa(at) }
	if i := slices.IndexFunc(lines, cpuHeader.MatchString); i >= 0 {
		if names := strings.Fields(lines[i]); len(names) == cpus {
			name = func(at int) string { return strings.TrimPrefix(names[at], "CPU") }
		}
	}
	if cpus < 2 {
		return "", 0
	}
	sums, all := make([]float64, cpus), 0.0
	var devices [][]float64
	for _, t := range lines {
		m := cpuRow.FindStringSubmatch(t)
		if m == nil || !isDigits(m[1]) {
			continue
		}
		device := make([]float64, cpus)
		for i, w := range strings.Fields(m[2]) {
			if i < cpus {
				device[i] = float(w)
				sums[i], all = sums[i]+device[i], all+device[i]
			}
		}
		devices = append(devices, device)
	}
	at := 0
	for i := range sums {
		if sums[i] > sums[at] {
			at = i
		}
	}
	several := 0 // one that interrupted a few times only takes nothing of the CPU
	for _, d := range devices {
		if d[at] >= 0.01*sums[at] && d[at] > 0 {
			several++
		}
	}
	if several < 2 || sums[at] < 0.4*all || sums[at] < 3*all/float64(cpus) {
		return "", 0
	}
	share = sums[at] / all
	return fmt.Sprintf("CPU %s took %s of all interrupts of the devices listed, of several of them, on %d CPUs", name(at), nearly(share), cpus), share
}

// architectures reports whether later has the rows of the architecture, and first those with
// numbers: the two halves of one reading, which people part.
func architectures(first, later *attach.Part) bool {
	numbered := func(p *attach.Part) (some, all bool) {
		all = true
		for _, l := range p.Lines {
			if m := cpuRow.FindStringSubmatch(strings.TrimSpace(l.Text)); m != nil {
				some, all = some || isDigits(m[1]), all && isDigits(m[1])
			} else if some && cpuHeader.MatchString(strings.TrimSpace(l.Text)) {
				all = false
			}
		}
		return some, all
	}
	_, first0 := numbered(first)
	later0, _ := numbered(later)
	return first0 && !later0 && first.File == later.File && !cpuHeader.MatchString(strings.TrimSpace(later.Lines[0].Text))
}

var interrupts = &attach.Kind{
	Name: "interrupts", Joins: true, Rest: architectures, Hints: []string{"CPU", ":"}, Claim: repeated(claimTable),
	Read: func(p *attach.Part) attach.Reading {
		all := samples(p, func(_ []string, line string) bool { return cpuHeader.MatchString(line) })
		rows, cpus := tableRows(all[len(all)-1].lines)
		kind := "/proc/interrupts"
		if len(rows) > 0 && softirqNames(rows[0].name) {
			kind = "/proc/softirqs"
		}
		r := attach.Reading{Title: fmt.Sprintf("%s, %s", kind, plural(cpus, "CPU", "CPUs")),
			Boot: true, State: attach.Context, Time: all[0].at}
		if last := all[len(all)-1].lines; !slices.ContainsFunc(last, cpuHeader.MatchString) {
			r.Title = kind + ", without its first line"
			if cpus > 0 {
				r.Title += fmt.Sprintf(", %s by its columns", plural(cpus, "CPU", "CPUs"))
			}
		}
		if text := columnsLeft(all[len(all)-1].lines, cpus); text != "" {
			r.Title += text
		}
		when, dt := "since boot", 0.0
		if len(all) > 1 {
			if d, ok := tableGrowth(all, rows); ok {
				rows, r.Boot, when, dt = d, false, "between the samples", span(all)
				r.State = attach.Healthy
				r.Title += fmt.Sprintf(", %d samples%s", len(all), over(dt))
			}
		}
		slices.SortStableFunc(rows, func(a, b tableRow) int { return cmp.Compare(b.sum, a.sum) })
		shared, share := "", 0.0
		if r.Boot {
			shared, share = busiestCPU(all[len(all)-1].lines, cpus)
		}
		for _, w := range rows[:min(3, len(rows))] {
			text := fmt.Sprintf("%s %s: %s %s", printed(w.name), printed(w.what), number(w.sum), when)
			if dt > 0 {
				text = fmt.Sprintf("%s %s: %s/s", printed(w.name), printed(w.what), number(w.sum/dt))
			}
			if cpus > 1 && w.sum > 0 {
				text += w.spread(cpus)
			}
			r.Figures = append(r.Figures, strings.ReplaceAll(text, " :", ":"))
		}
		if shared != "" {
			r.Figures = slices.Insert(r.Figures, min(2, len(r.Figures)), shared)
		}
		r.Means = "It counts interrupts by kind; how much time they took, and from whom, it does not say."
		if share >= oneCPU && cpus >= 4 {
			r.State = attach.CannotTell
			r.Signs = []attach.Sign{{Cause: "softirq", Grade: attach.Risk, Proof: []string{shared}}}
			r.Means = "One CPU takes nearly all interrupts of these devices, and with them the work on their packets or blocks: if it is full, they wait while the other CPUs idle. That it is full, it does not say."
		}
		r.Not = "how often it happens now, nor that time was lost: these are counters since boot"
		if r.Boot && slices.ContainsFunc(rows, func(w tableRow) bool { return w.top >= wrapsAt/4 }) {
			r.Not += ", of 32 bits each, which start again at 4.3 billion"
		}
		if !r.Boot {
			r.Not = "that time was lost: a high rate alone is none"
		}
		r.Next = []attach.Next{{Command: "grep '^cpu ' /proc/stat; sleep 10; grep '^cpu ' /proc/stat", Why: "the share of time in interrupts and softirqs"}}
		if len(r.Signs) > 0 {
			r.Next = []attach.Next{{Command: "mpstat -P ALL 1 5",
				Why: "%soft and %idle of that CPU: whether it is full"}}
		}
		return r
	},
}

// columnsLeft says that columns of CPUs were left out, or that CPUs are off: their numbers say so.
func columnsLeft(lines []string, cpus int) string {
	i := slices.IndexFunc(lines, cpuHeader.MatchString)
	if i < 0 {
		return ""
	}
	names := strings.Fields(lines[i])
	if last, _ := strconv.Atoi(strings.TrimPrefix(names[len(names)-1], "CPU")); len(names) == cpus && last >= cpus {
		return fmt.Sprintf(" listed, of %d or more", last+1)
	}
	return ""
}

// evenly is how much more than the mean of all CPUs one may have where work is even over them, and
// evenShare the most that it may have of all. No CPU may have less than the evenLeast part of that.
const (
	evenly    = 1.5
	evenShare = 0.6
	evenLeast = 4
)

// spread says which share the busiest CPU has.
func (w tableRow) spread(cpus int) string {
	least := w.top
	for _, v := range w.each {
		least = min(least, v)
	}
	if w.top*float64(cpus) <= evenly*w.sum && w.top <= evenShare*w.sum && least*evenLeast >= w.top {
		return fmt.Sprintf(", even over the CPUs (%s at most, on CPU %d)", percent(w.top/w.sum), w.cpu)
	}
	return fmt.Sprintf(", %s of them on CPU %d", nearly(w.top/w.sum), w.cpu)
}

// wrapsAt is where the kernel's counters of interrupts start again: they have 32 bits.
const wrapsAt = 1 << 32

// tableGrowth subtracts the first sample from the last.
func tableGrowth(all []sample, last []tableRow) (out []tableRow, ok bool) {
	first, _ := tableRows(all[0].lines)
	var names []string
	if i := slices.IndexFunc(all[0].lines, cpuHeader.MatchString); i >= 0 {
		names = strings.Fields(all[0].lines[i])
	}
	for _, w := range last {
		i := slices.IndexFunc(first, func(f tableRow) bool { return f.name == w.name })
		if i < 0 {
			continue
		}
		if len(first[i].each) != len(w.each) {
			return nil, false // a CPU came or went
		}
		w.each = slices.Clone(w.each)
		for c := range w.each {
			if w.each[c] -= first[i].each[c]; w.each[c] < 0 {
				return nil, false
			}
		}
		w.count(names)
		out = append(out, w)
	}
	return out, len(out) > 0
}

var slabLine = pattern.New(`^(\S+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) : tunables +\d+ +\d+ +\d+ : slabdata +(\d+) +(\d+) +\d+`)

var slabinfo = contextKind("/proc/slabinfo", []string{"slabinfo", "# name", ": tunables"},
	func(lines []paste.Line) int {
		return run(lines, func(t string) bool {
			return slabLine.MatchString(t) || strings.HasPrefix(t, "slabinfo - version") ||
				strings.HasPrefix(t, "# name") && strings.Contains(t, "<active_objs>")
		})
	}, func(lines []string) (figures []string, means string) {
		type slab struct {
			name  string
			bytes float64
			objs  float64
		}
		var all []slab
		var total float64
		for _, t := range lines {
			if m := slabLine.FindStringSubmatch(t); m != nil {
				pages := float(m[6])
				slabs := float(m[8])
				objs := float(m[2])
				all = append(all, slab{m[1], pages * slabs * pageSize, objs})
				total += pages * slabs * pageSize
			}
		}
		slices.SortStableFunc(all, func(a, b slab) int { return cmp.Compare(b.bytes, a.bytes) })
		figures = append(figures, fmt.Sprintf("%s in %s", mem(total), plural(len(all), "cache", "caches")))
		for _, s := range all[:min(3, len(all))] {
			figures = append(figures, fmt.Sprintf("%s: %s, %s objects in use", printed(s.name),
				mem(s.bytes), number(s.objs)))
		}
		if len(all) > 0 && all[0].bytes >= 1<<30 && all[0].bytes >= total/2 &&
			strings.HasPrefix(all[0].name, "kmalloc-") && !strings.Contains(all[0].name, "-rcl-") {
			return figures, fmt.Sprintf("Most of it is in %s, which the kernel cannot take back: a leak of a driver looks like this. That it grows, a second reading shows.", printed(all[0].name))
		}
		return figures, "It says what the kernel keeps objects in; memory in slabs is no lost time. How much of it can be given back is in /proc/meminfo (SReclaimable)."
	})
