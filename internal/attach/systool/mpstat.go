package systool

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
)

var mpstat = &attach.Kind{
	Name:  "mpstat",
	Rows:  true,
	Hints: []string{"Linux ", "CPU", "NODE", " all ", "    0.00    0.00"},
	Claim: claimMpstat,
	Read:  readMpstat,
	Apart: newRun,
	When:  sysstatWhen,
}

func claimMpstat(lines []paste.Line) int { return claimSysstat(mpstatTool, lines) }

// cpuRows is the median use of one CPU, or of all.
type cpuRows struct {
	cpu string
	use cpuUse
}

// byCPU gives the medians for each CPU. A line of averages counts where no samples are there.
func (t *table) byCPU() (all []cpuRows) {
	index := map[string]*table{}
	var order []string
	sampled := t.times() > 0
	for _, r := range t.rows {
		if r.average && sampled || len(r.cells) == 0 || t.overflowed(r) != "" {
			continue
		}
		one := index[r.cells[0]]
		if one == nil {
			if len(order) >= maxCPUs {
				continue
			}
			one = &table{names: t.names}
			index[r.cells[0]] = one
			order = append(order, r.cells[0])
		}
		one.rows = append(one.rows, r)
	}
	for _, cpu := range order {
		one := index[cpu]
		c := cpuUse{
			us: one.median("%usr", "%user") + one.median("%nice") + one.median("%guest") + one.median("%gnice"),
			sy: one.median("%sys", "%system"), wa: one.median("%iowait"),
			hi: one.median("%irq"), si: one.median("%soft"), st: one.median("%steal"), id: one.median("%idle"),
			samples: len(one.rows), runnable: -1, blocked: -1, average: !sampled,
		}
		if one.has("%user") { // sar -u and old mpstat count guests there already.
			c.us = one.median("%user") + one.median("%nice")
		}
		all = append(all, cpuRows{cpu, c})
	}
	return all
}

// everyCPU reports whether the rows are of all CPUs: a row of all stands above them, and they are
// numbered from 0 on. No end is cut off where each comes again, or the row of all is their mean.
func (t *table) everyCPU(all []cpuRows) bool {
	if len(all) < 2 || all[0].cpu != "all" || len(t.rows) < 2*len(all) && !sumUp(all) {
		return false
	}
	for i, c := range all[1:] {
		if c.cpu != strconv.Itoa(i) {
			return false
		}
	}
	return true
}

// sumUp reports whether CPUs that differ have the row of all as their mean.
func sumUp(all []cpuRows) bool {
	const near, differ = 0.3, 2
	mean, ok := meanOf(all)
	whole := all[0].use
	least, most := 100.0, 0.0
	for _, c := range all[1:] {
		least, most = min(least, c.use.id), max(most, c.use.id)
	}
	return ok && most-least >= differ && math.Abs(mean.id-whole.id) <= near &&
		math.Abs(mean.us-whole.us) <= near && math.Abs(mean.sy-whole.sy) <= near
}

// overflowed is a share of a CPU's time that is far above all of it; "": none is. A counter that
// fell between two readings gives one.
func (t *table) overflowed(r row) string {
	for i, n := range t.names {
		if f, ok := 0.0, false; strings.HasPrefix(n, "%") && i < len(r.cells) {
			if f, ok = number(r.cells[i]); ok && f > 110 {
				return n + " " + r.cells[i]
			}
		}
	}
	return ""
}

// flaw says that rows are left out.
func (t *table) flaw(v *verdict) {
	for _, r := range t.rows {
		if bad := t.overflowed(r); bad != "" && len(r.cells) > 0 {
			v.Flaws = append(v.Flaws,
				fmt.Sprintf("CPU %s at %s: %s is no share: a counter fell, and the row is left out",
					r.cells[0], r.time, bad))
			return
		}
	}
}

// maxCPUs is more than Linux supports: NR_CPUS is 8192 at most.
const maxCPUs = 8192

func readMpstat(p *attach.Part) attach.Reading {
	s := parseSysstat(p)
	v := &verdict{}
	v.Who.Host = s.host
	v.Title = "mpstat"
	t := s.with("%idle")
	if t == nil {
		return interrupts(v, &s)
	}
	all := t.byCPU()
	t.flaw(v)
	n := t.times()
	v.Title += ", " + samples(max(1, n))
	if n == 0 {
		v.Title = "mpstat, averages"
	}
	if len(all) == 0 {
		v.cutOff("mpstat")
		return v.done()
	}
	if s.cpus == 0 && t.everyCPU(all) {
		s.cpus = len(all) - 1
	}
	v.cpus(all, s.cpus)
	if n == 1 && t.interval() == 0 && bootOnly(p, t) {
		v.Boot, v.unsure = true, true
		v.Title = "mpstat, one report since boot"
		v.Signs, v.Facts = nil, nil
		v.Means = "a single report is an average since boot, and says nothing about now"
		v.next("mpstat -P ALL 1 10", "samples while it is slow")
	}
	return v.done()
}

// bootOnly reports whether the part is one report without an average below it: mpstat and sar
// without an interval print it since boot.
func bootOnly(p *attach.Part, t *table) bool {
	for _, r := range t.rows {
		if r.average {
			return false
		}
	}
	command, _, _ := strings.Cut(p.Command, "|")
	words := fields(command)
	for i, w := range words {
		if _, ok := whole(w); ok && !(i > 0 && ofOption(words[i-1])) {
			return false
		}
	}
	if slices.Contains(words, "pidstat") || slices.Contains(words, "mpstat") {
		return len(t.rows) > 0 // the command has no interval
	}
	// The names' line and the row have one time then: there was no interval to wait for.
	names := ""
	for _, l := range p.Lines {
		at, _, rest, ok := sysstatTime(fields(l.Text))
		if ok && sysstatNames(rest) != noTool {
			names = at
		}
	}
	return len(t.rows) > 0 && names != "" && names == t.rows[0].time
}

// ofOption reports whether the word behind this one belongs to it: a process, a CPU, a node.
func ofOption(word string) bool {
	return len(word) > 1 && word[0] == '-' && word[1] != '-' && strings.ContainsAny(word[len(word)-1:], "pPCGUNIT")
}

// cpus judges the use of all CPUs and of each.
func (v *verdict) cpus(all []cpuRows, count int) {
	each, whole := 0, -1
	for i, c := range all {
		switch c.cpu {
		case "all", "-1":
			whole = i
		default:
			each++
		}
	}
	busiest := busiestCPU(all)
	if whole >= 0 {
		c := all[whole].use
		if sum, ok := meanOf(all); ok && (each >= count || count == 0) && each > 1 &&
			max(sum.id-c.id, c.id-sum.id) >= contradicts {
			v.Flaws = append(v.Flaws,
				fmt.Sprintf("its row of all CPUs (%s %% idle), which contradicts their own rows (%s %% in the mean)", plain(c.id), plain(sum.id)))
			c, v.torn, v.unsure = sum, true, true
		}
		c.cpus = count
		of := ""
		if count > 0 {
			of = " of " + attach.Plural(count, "CPU")
		}
		v.figure("%s%s", c, of)
		one := oneCPU(all)
		if one != nil && one.use.wa >= 50 && c.wa < 50 {
			v.figure("CPU %s: %s %% iowait, %s %% system", one.cpu, plain(one.use.wa),
				plain(one.use.sy+one.use.hi+one.use.si))
			c.oneWaits(v, one)
		}
		evenSoft(v, all, c)
		c.judge(v)
		v.skew(all, busiest, c)
		if v.torn {
			v.means("by the CPUs' own rows %s %% of their time is idle; their sum in it says otherwise", plain(c.id))
		}
	} else if busiest != nil {
		v.figure("CPU %s: %s", busiest.cpu, busiest.use)
		if c, ok := meanOf(all); ok && each == count {
			c.cpus = count
			c.judge(v)
		} else {
			v.fewCPUs(busiest)
		}
	}
	v.ease("the CPUs have room in these samples")
	v.not("shares of CPU time do not say who waits for a CPU: pidstat's %wait does")
}

// evenSoft says how soft interrupts are spread, where they are much of the time.
func evenSoft(v *verdict, all []cpuRows, c cpuUse) {
	var each []float64
	for _, one := range all {
		if one.cpu != "all" && one.cpu != "-1" {
			each = append(each, one.use.si)
		}
	}
	if c.si < softMuch || len(each) < 2 {
		return
	}
	lo, hi := slices.Min(each), slices.Max(each)
	how := "they are not even over the CPUs"
	if hi <= 1.5*lo {
		how = "they are even over the CPUs"
	}
	v.figure("soft interrupts take %s %% of each CPU's time: %s", between(lo, hi), how)
}

// contradicts is by how many percent of time the row of all CPUs may differ from theirs.
const contradicts = 20

// meanOf is what CPUs did in the mean, by their own rows.
func meanOf(all []cpuRows) (sum cpuUse, ok bool) {
	n := 0.0
	for _, c := range all {
		u := c.use
		if c.cpu == "all" || c.cpu == "-1" || u.id+u.wa+u.us+u.sy+u.si+u.hi+u.st < 50 {
			continue
		}
		if n == 0 {
			sum = u
		} else {
			sum.us, sum.sy, sum.wa, sum.st, sum.id = sum.us+u.us, sum.sy+u.sy, sum.wa+u.wa, sum.st+u.st, sum.id+u.id
			sum.hi, sum.si = sum.hi+u.hi, sum.si+u.si
		}
		n++
	}
	if n == 0 {
		return sum, false
	}
	sum.us, sum.sy, sum.wa, sum.st, sum.id, sum.hi, sum.si = sum.us/n, sum.sy/n, sum.wa/n, sum.st/n,
		sum.id/n, sum.hi/n, sum.si/n
	return sum, true
}

// oneWaits: a CPU whose last thread waits for the disk most of the time.
func (c cpuUse) oneWaits(v *verdict, one *cpuRows) {
	proof := fmt.Sprintf("CPU %s: iowait %s %%, %s", one.cpu, plain(one.use.wa), one.use.basis())
	if one.use.samples >= enoughSamples {
		v.found("disk-wait", finding.Possible, one.use.wa/100, proof)
	} else {
		v.candidate("disk-wait", one.use.wa/100, proof)
	}
	v.means("a thread of CPU %s waits for I/O %s %% of the time", one.cpu, plain(one.use.wa))
	v.not("iowait is idle time of CPUs: it does not say which threads wait, nor that the service's requests do")
	v.next("pidstat -d 1 10", "which processes wait for the disk")
	v.next("iostat -x 1 10", "which device is slow: r_await, w_await, aqu-sz")
}

// fewCPUs judges CPUs that somebody chose, or that are left of a list: they are not the machine.
func (v *verdict) fewCPUs(one *cpuRows) {
	v.unsure = one.use.id < 50 || one.use.wa >= iowaitMatters
	if one.use.wa >= 50 {
		one.use.oneWaits(v, one)
	}
	if one.use.st >= stealMatters {
		v.candidate("cpu-steal", one.use.st/100, fmt.Sprintf("CPU %s: steal %s %%", one.cpu, plain(one.use.st)))
	}
	v.means("not all CPUs are in it: of these, CPU %s is busiest, %s %% of the time", one.cpu,
		plain(100-one.use.id-one.use.wa))
	v.next("mpstat -P ALL 1 10", "what all CPUs do")
}

// oneCPU is the CPU with most iowait.
func oneCPU(all []cpuRows) (most *cpuRows) {
	for i, c := range all {
		if c.cpu != "all" && (most == nil || c.use.wa > most.use.wa) {
			most = &all[i]
		}
	}
	return most
}

func busiestCPU(all []cpuRows) (most *cpuRows) {
	busy := func(c cpuUse) float64 { return 100 - c.id - c.wa }
	for i, c := range all {
		if c.cpu != "all" && c.use.id+c.use.wa+c.use.us+c.use.sy+c.use.si+c.use.hi > 1 &&
			(most == nil || busy(c.use) > busy(most.use)) {
			most = &all[i]
		}
	}
	return most
}

// skew names one full CPU among others with room.
func (v *verdict) skew(all []cpuRows, busiest *cpuRows, c cpuUse) {
	if busiest == nil || len(all) < 3 || busiest.use.id+busiest.use.wa > idleNone || c.id < 30 {
		return
	}
	v.figure("CPU %s is full (%s), the others are not", busiest.cpu, busiest.use)
	v.unsure = true
	if busiest.use.si >= 30 {
		v.candidate("softirq", busiest.use.si/100, fmt.Sprintf("CPU %s: %s %% in soft interrupts",
			busiest.cpu, plain(busiest.use.si)))
		v.next("cat /proc/softirqs /proc/interrupts", "which interrupts CPU "+busiest.cpu+" serves")
		v.means("CPU %s is full, %s %% of its time in soft interrupts, while the others have room",
			busiest.cpu, plain(busiest.use.si))
	}
	v.means("CPU %s is full while the others have room: one thread, or interrupts that only it serves", busiest.cpu)
	v.next("pidstat -t 1 10", "which thread runs on CPU "+busiest.cpu)
}

// interrupts reads mpstat -I: counts of interrupts are context.
func interrupts(v *verdict, s *sysstatTables) attach.Reading {
	v.Title = "mpstat -I, interrupts"
	for _, t := range s.tables {
		for _, r := range t.rows {
			if len(r.cells) == 2 && len(v.Figures) < 3 && !(r.average && t.times() > 0) {
				v.figure("CPU %s: %s interrupts/s", r.cells[0], r.cells[1])
			}
		}
	}
	v.means("rates of interrupts alone say nothing of slowness")
	v.unsure = true
	v.next("mpstat -P ALL 1 10", "how much time interrupts take: %irq and %soft")
	return v.done()
}
