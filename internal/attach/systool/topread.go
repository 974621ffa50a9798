package systool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

func readTop(p *attach.Part) attach.Reading { return readScreens(p, parseTop(p)) }

func readScreens(p *attach.Part, all []screen) attach.Reading {
	v := &verdict{}
	v.Title = "top, 1 screen"
	judged := all
	if len(all) > 1 {
		v.Title = fmt.Sprintf("top, %d screens", len(all))
		judged = all[1:] // the first one's CPU time is since boot in some versions
	}
	if len(all) < enoughSamples {
		v.Glance = true
	}
	last := filled(all)
	if !last.mem.knowsAvailable() {
		last.mem.total = 0
	}
	c, known := screensCPU(judged)
	line := last.told(c, known, len(all))
	known = line == cpuRead
	v.tornShares(last.torn)
	if overflowedLoad(v, last.load) {
		last.load, v.unsure = nil, true
	}
	if last.load != nil {
		v.figure("load average %s, %s, %s", fixed(last.load[0]), fixed(last.load[1]), fixed(last.load[2]))
		if last.running >= manyRun {
			last.beside(v, fmt.Sprintf("%d running at that moment", last.running))
		}
	}
	switch line {
	case cpuNone:
	case cpuSome:
		v.figure("those CPUs that are listed: %s", c)
	default:
		v.figure("CPUs: %s", c)
	}
	busy := 0.0
	if known {
		busy = 100 - c.id - c.wa
	}
	last.processes(v, busy)
	if last.mem.total > 0 {
		at := len(v.Figures)
		if last.mem.available < memoryLow*last.mem.total {
			at = min(2, at)
		}
		v.Figures = slices.Insert(v.Figures, at,
			fmt.Sprintf("memory: %s of %s %s%s", last.mem.show(last.mem.available),
				last.mem.show(last.mem.total), last.mem.left(), last.mem.swapped()))
		v.fact(MemoryAvailable, part(last.mem.available/last.mem.total))
	}
	last.few(v, known)
	last.reclaiming(v)
	if known {
		last.unseen(v, c)
	}
	last.oneCPU(v)
	if known {
		last.fullCPUs(v, c)
	}
	last.states(v, &c)
	if known && c.hi >= softMuch && last.load != nil && last.load[0] < 0.5 {
		v.Means = fmt.Sprintf("hard interrupts take %s %% of the CPU time, or are booked for it, and a load average of %s says that hardly a thread wants a CPU meanwhile", plain(c.hi), fixed(last.load[0]))
	}
	if known {
		c.passed = v.Glance && last.calm(c)
		last.asleep(v, c)
		c.judge(v)
	}
	last.crowded(v, c, known)
	last.loaded(v, c, known)
	last.scarce(v)
	if v.Glance {
		v.not("one screen is a glance: states R and D change a thousand times a second, and the line of CPUs covers an instant or all time since boot")
	}
	last.conclude(v, c, line)
	v.boot(p)
	if last.mem.total > 0 {
		v.fact(attach.MemoryTotal, last.mem.total)
	}
	switch rows := len(last.rows); {
	case len(v.Figures) > 0:
	case rows > 0:
		v.figure("%s listed, %s %% of a CPU together", attach.Plural(rows, "task"), plain(last.used()))
	case last.total > 0:
		v.figure("%s, %d running at that moment, %s", attach.Plural(last.total, "task"), last.running, attach.Plural(last.zombies, "zombie"))
	}
	return v.done()
}

// filled is the last screen. What was cut off there is taken from the one before it, some seconds
// earlier.
func filled(all []screen) screen {
	last := all[len(all)-1]
	for i := len(all) - 2; i >= 0; i-- {
		if len(last.rows) == 0 {
			last.rows, last.names = all[i].rows, all[i].names
		}
		if last.load == nil {
			last.load = all[i].load
		}
		if last.mem.total == 0 {
			last.mem = all[i].mem
		}
	}
	return last
}

// cpuTold is what a screen says of all CPUs.
type cpuTold int

const (
	cpuNone    cpuTold = iota // nothing
	cpuRead                   // what they do
	cpuSome                   // what some of them do, and perhaps not all
	cpuInstant                // they are idle, and tasks use them
	cpuQuiet                  // they are busy, and no thread ran through the last minute
)

// told says what is to be believed of the line of CPUs. On a lone screen it covers an instant in
// some versions.
func (s *screen) told(c cpuUse, known bool, screens int) cpuTold {
	switch {
	case !known:
		return cpuNone
	case c.cpus == 0 && len(s.numbers) > 0 && s.numbers[0] >= 0:
		return cpuSome
	case screens == 1 && c.id >= 99 && s.used() >= 50:
		return cpuInstant
	case screens == 1 && s.quiet(c):
		return cpuQuiet
	}
	return cpuRead
}

// conclude says what follows where no sign does.
func (s *screen) conclude(v *verdict, c cpuUse, line cpuTold) {
	switch line {
	case cpuRead:
		s.oneWhole(v, c)
		v.room(c, s.mem.total > 0)
		return
	case cpuSome:
		v.unsure = true
		v.means("whether the CPUs listed are all of the machine is not in it")
		v.next("nproc", "how many CPUs there are")
		return
	case cpuInstant:
		v.unsure = true
		v.means("the tasks listed use %s %% of a CPU together, and the line of CPUs says %s %% idle: it covers an instant, or there are many CPUs", plain(s.used()), plain(c.id))
		return
	case cpuQuiet:
		v.means("the line of CPUs says %s %% busy, and by the load average hardly a thread ran through the last minute: the line covers an instant", plain(100-c.id-c.wa))
		return
	}
	switch {
	case s.unread:
		v.unsure = true
		v.Flaws = append(v.Flaws, "the line of CPUs, which could not be read")
		v.means("how busy the CPUs are could not be read")
	case s.mem.total > 0:
		v.means("memory is not short; how busy the CPUs are is not in it")
	default:
		v.unsure = true
		v.means("how busy the CPUs are is not in it")
	}
}

// room says what a screen without a sign shows.
func (v *verdict) room(c cpuUse, memory bool) {
	ease := "the CPUs have room in it"
	if memory {
		ease = "the machine is at ease in it"
	}
	busy := 100 - c.id - c.wa
	switch {
	case c.passed && c.wa >= iowaitMatters:
		v.means("the CPUs are %s %% busy, and the load average says that hardly a thread waited through the last minute, though this screen has %s %% iowait", plain(busy), plain(c.wa))
	case busy >= 50:
		v.means("the CPUs are %s %% busy, with some room", plain(busy))
	case c.wa < iowaitMatters:
		v.ease("%s", ease)
	default:
		v.means("the CPUs have room: they are %s %% busy", plain(busy))
	}
}

// A CPU with so many percent, and so many times as much as all have in the mean, is worth a figure.
const (
	unevenLeast = 10
	uneven      = 2
)

// namesCPUs reports whether all CPUs are named: none is left out up to the last one, behind which
// the lines of memory follow. A narrow terminal may cut off what some of them do.
func (s *screen) namesCPUs() bool {
	alone := s.load == nil && s.total == 0 // somebody chose these lines
	return s.named == s.cpus && (s.mem.total > 0 || s.mem.hasSwap || alone)
}

// everyCPU reports whether it also says what each of them does.
func (s *screen) everyCPU() bool { return s.namesCPUs() && len(s.cpu) == s.cpus }

// oneCPU names a CPU that is full of what the mean over all of them hides.
func (s *screen) oneCPU(v *verdict) {
	if len(s.cpu) < 2 || len(s.numbers) != len(s.cpu) {
		return
	}
	for _, k := range []struct {
		what string
		of   func(cpuUse) float64
	}{{"iowait", func(c cpuUse) float64 { return c.wa }},
		{"soft interrupts", func(c cpuUse) float64 { return c.si }},
		{"steal", func(c cpuUse) float64 { return c.st }}} {
		most, at, total := 0.0, 0, 0.0
		for i, c := range s.cpu {
			total += k.of(c)
			if k.of(c) > most {
				most, at = k.of(c), s.numbers[i]
			}
		}
		mean := total / float64(len(s.cpu))
		if at >= 0 && (most >= iowaitMuch && most >= 1.3*mean || most >= unevenLeast && most >= uneven*mean) {
			v.Figures = slices.Insert(v.Figures, min(2, len(v.Figures)),
				fmt.Sprintf("CPU %d: %s %% %s", at, plain(most), k.what))
			v.unsure = v.unsure || most >= iowaitMuch
		}
	}
}

// mostOfIt is the share of the CPU time of all processes from which one has nearly all of it.
const mostOfIt = 0.8

// reclaiming notes that the kernel frees memory while little is left: what waits for a disk then
// waits for pages that were given up.
func (s *screen) reclaiming(v *verdict) {
	t := table{names: s.names, rows: s.rows}
	if s.mem.total <= 0 || s.mem.available >= memoryLow*s.mem.total {
		return
	}
	at := t.column("COMMAND", "BEFEHL", "Command")
	for _, r := range t.rows {
		if at < 0 || at >= len(r.cells) || !strings.HasPrefix(strings.TrimPrefix(r.cells[at], "["),
			"kswapd") || t.num(r, "%CPU") < 20 || t.resident(r) > 0 {
			continue
		}
		v.scarce = true
		swap := ""
		if s.mem.swap == 0 {
			swap = ", there is no swap"
		}
		v.Means = fmt.Sprintf("memory is short: %s %% is %s%s, and %s frees what it can; pages that are given up so are read from the disk again when they are touched",
			plain(100*s.mem.available/s.mem.total), s.mem.left(), swap, r.cells[at])
		return
	}
}

// fewTasks is fewer than any machine has: a list of so many is a choice of somebody's.
const fewTasks = 15

// unseen says that processes in a screen do not add up to what CPUs do. A screen shows those first
// that use most, so what follows the last one, which uses next to nothing, cannot make up for it.
func (s *screen) unseen(v *verdict, c cpuUse) {
	t := table{names: s.names, rows: s.rows}
	if len(t.rows) < 3 || !t.has("%CPU", "CPU%") {
		return
	}
	total, least := 0.0, t.num(t.rows[0], "%CPU", "CPU%")
	users := map[string]bool{}
	for _, r := range t.rows {
		use := t.num(r, "%CPU", "CPU%")
		if use > least+1 {
			return // it is sorted by something else, so what is cut off may use more
		}
		total, least = total+use, min(least, use)
		users[t.cell(r, "USER", "BENUTZER")] = true
	}
	if len(users) < 2 || s.total > 0 && s.total < fewTasks {
		return // a filter may leave out who uses it: -u, -p
	}
	cpus := float64(max(1, s.cpus))
	if share := 100 - c.id - c.wa; cpus > 1 && total >= 0.7*share && total <= 1.3*share {
		return // %CPU may be of all CPUs' time, as after the key I
	}
	if busy := (100 - c.id - c.wa) * cpus; busy >= 60 && total < busy/2 && least < 1 {
		v.unsure = true
		v.Figures = slices.Insert(v.Figures, min(1, len(v.Figures)),
			fmt.Sprintf("what is listed uses %s %% of a CPU together, of %s %%", plain(total), plain(busy)))
		v.means("what is listed does not explain it: the CPU time may be of processes that live too shortly to be listed, or of interrupts")
		v.not("that the process at the head is the reason: it is the largest of those that were still there")
		v.next("execsnoop-bpfcc, or: perf trace -e sched:sched_process_exec -a -- sleep 5",
			"which processes start and end all the time")
	}
}

// screensCPU is the medians of the lines of CPUs.
func screensCPU(all []screen) (c cpuUse, known bool) {
	var us, sy, wa, hi, si, st, id []float64
	whole := slices.ContainsFunc(all, func(s screen) bool { return s.namesCPUs() })
	for _, s := range all {
		if len(s.cpu) == 0 || whole && !s.namesCPUs() && s.cpus > 0 {
			continue
		}
		var n = float64(len(s.cpu))
		mean := func(of func(cpuUse) float64) float64 {
			total := 0.0
			for _, one := range s.cpu {
				total += of(one)
			}
			return total / n
		}
		us, sy = append(us, mean(func(c cpuUse) float64 { return c.us })),
			append(sy, mean(func(c cpuUse) float64 { return c.sy }))
		wa, hi = append(wa, mean(func(c cpuUse) float64 { return c.wa })),
			append(hi, mean(func(c cpuUse) float64 { return c.hi }))
		si, st = append(si, mean(func(c cpuUse) float64 { return c.si })),
			append(st, mean(func(c cpuUse) float64 { return c.st }))
		id = append(id, mean(func(c cpuUse) float64 { return c.id }))
		if s.namesCPUs() {
			c.cpus = s.cpus
		}
	}
	c.us, c.sy, c.wa, c.hi, c.si, c.st, c.id = attach.Median(us), attach.Median(sy),
		attach.Median(wa), attach.Median(hi), attach.Median(si), attach.Median(st), attach.Median(id)
	c.samples, c.runnable, c.blocked = len(us), -1, -1
	return c, len(us) > 0
}

// used is the CPU time of all processes shown, in percent of one CPU.
func (s *screen) used() (total float64) {
	t := table{names: s.names, rows: s.rows}
	for _, r := range t.rows {
		total += max(0, t.num(r, "%CPU"))
	}
	return total
}

// beside adds to the figure of the load average, where there is one: few figures are shown.
func (s *screen) beside(v *verdict, text string) {
	if s.load == nil {
		v.figure("%s", text)
		return
	}
	v.Figures[0] += "; " + text
}

// manyZombies is more than come and go in the time a parent needs to ask for them.
const manyZombies = 10

// states counts threads in D, which one screen shows as they were at an instant.
func (s *screen) states(v *verdict, c *cpuUse) {
	if s.zombies >= manyZombies {
		s.beside(v, fmt.Sprintf("%d zombies, whose parent does not ask for them", s.zombies))
	}
	at := slices.Index(s.names, "S")
	if at < 0 {
		return
	}
	blocked := 0
	var names []string
	t := table{names: s.names}
	for _, r := range s.rows {
		if at < len(r.cells) && r.cells[at] == "D" {
			blocked++
			if name := t.cell(r, "COMMAND", "BEFEHL", "Command"); name != "" && len(names) < 3 &&
				!slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if blocked > 0 {
		text := fmt.Sprintf("%d in state D at that moment", blocked)
		if len(names) > 0 {
			text += ": " + strings.Join(names, ", ")
		}
		s.beside(v, text)
		v.unsure = true
		v.next("for i in 1 2 3 4 5; do ps -eLo state,wchan:32,comm | grep ^D; sleep 1; done",
			"whether the same threads stay in D, and where in the kernel")
	}
}

// scarce judges memory as free does.
func (s *screen) scarce(v *verdict) {
	m := s.mem
	if m.swap > 0 && m.swapUsed >= 0.5*m.swap {
		v.unsure = true
		v.not(fmt.Sprintf("whether pages come back from swap now, of which %s of %s is used: they may never be asked for", bytes(m.swapUsed), bytes(m.swap)))
		v.next("vmstat 1 10", "si and so: whether pages come back from swap")
	}
	if share := m.available / m.total; m.total <= 0 || share >= memoryShort {
		if m.total > 0 && share < memoryLow {
			v.unsure = true
			v.means("memory is getting scarce: %s %% is %s", plain(100*share), m.left())
			v.next("vmstat 1 10", "si and so: whether pages come back from swap")
		}
		return
	}
	proof := fmt.Sprintf("%s %s of %s", m.left(), bytes(m.available), bytes(m.total))
	v.candidate("direct-reclaim", 0, proof)
	v.candidate("page-fault", 0, proof)
	v.means("memory is nearly used up: %s", proof)
	v.next("vmstat 1 10", "si and so: whether pages come back from swap")
	v.next("sar -B 1 10", "pgscand/s: whether threads free memory themselves; majflt/s")
}
