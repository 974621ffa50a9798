package systool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

func readTop(p *attach.Part) attach.Reading {
	all := parseTop(p)
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
	last := all[len(all)-1]
	if !last.mem.knowsAvailable() {
		last.mem.total = 0
	}
	c, known := screensCPU(judged)
	if known && len(all) == 1 && c.id >= 99 && last.used() >= 50 {
		known = false // the line of the first screen covers an instant in some versions
	}
	v.tornShares(last.torn)
	if overflowedLoad(v, last.load) {
		last.load, v.unsure = nil, true
	}
	if last.load != nil {
		v.figure("load average %s, %s, %s", fixed(last.load[0]), fixed(last.load[1]), fixed(last.load[2]))
	}
	if known {
		v.figure("CPUs: %s", c)
	}
	last.processes(v, known && c.id+c.wa < 50)
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
	switch {
	case known:
		v.room(c, last.mem.total > 0)
	case last.mem.total > 0:
		v.means("memory is not short; how busy the CPUs are is not in it")
	default:
		v.unsure = true
		v.means("how busy the CPUs are is not in it")
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

// oneCPU names a CPU that is full of what the mean over all of them hides.
func (s *screen) oneCPU(v *verdict) {
	if len(s.cpu) < 2 || len(s.cpu) != s.cpus { // some lines are left out, and the others have no number here
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
				most, at = k.of(c), i
			}
		}
		mean := total / float64(len(s.cpu))
		if most >= iowaitMuch && most >= 1.3*mean || most >= unevenLeast && most >= uneven*mean {
			v.Figures = slices.Insert(v.Figures, min(2, len(v.Figures)),
				fmt.Sprintf("CPU %d: %s %% %s", at, plain(most), k.what))
			v.unsure = v.unsure || most >= iowaitMuch
		}
	}
}

// programs sums the CPU time of processes by their names. Many small ones may fill a machine.
func (t *table) programs() (name string, use float64, count int) {
	sums, counts := map[string]float64{}, map[string]int{}
	at := t.column("COMMAND", "BEFEHL", "Command")
	for _, r := range t.rows {
		i := at
		if i < 0 || i >= len(r.cells) {
			i = len(r.cells) - 1
		}
		n := r.cells[i]
		sums[n] += max(0, t.num(r, "%CPU"))
		counts[n]++
		if sums[n] > use || sums[n] == use && n < name {
			name, use = n, sums[n]
		}
	}
	return name, use, counts[name]
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
			"kswapd") || t.num(r, "%CPU") < 20 {
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
	for _, s := range all {
		if len(s.cpu) == 0 {
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
		c.cpus = s.cpus
	}
	c.us, c.sy, c.wa, c.hi, c.si, c.st, c.id = attach.Median(us), attach.Median(sy),
		attach.Median(wa), attach.Median(hi), attach.Median(si), attach.Median(st), attach.Median(id)
	c.samples, c.runnable, c.blocked = len(us), -1, -1
	return c, len(us) > 0
}

// processes names the one with most CPU time and the one with most memory.
func (s *screen) processes(v *verdict, loaded bool) {
	t := table{names: s.names, rows: s.rows}
	if len(t.rows) == 0 {
		return
	}
	name := func(r row) string {
		at := t.column("COMMAND", "BEFEHL", "Command")
		if at < 0 || at >= len(r.cells) {
			at = len(r.cells) - 1
		}
		return fmt.Sprintf("%s (pid %s)", strings.Join(r.cells[at:min(len(r.cells), at+1)], " "), t.cell(r, "PID"))
	}
	busy := slices.MaxFunc(t.rows, func(a, b row) int { return cmp.Compare(t.num(a, "%CPU"), t.num(b, "%CPU")) })
	if program, all, n := t.programs(); !s.threads && (loaded || all >= 200) && n > 1 && all > 1.5*t.num(busy, "%CPU") {
		text := fmt.Sprintf("%d processes %s: %s %% CPU", n, program, plain(all))
		if use := t.num(busy, "%CPU"); use >= 1 && !strings.HasPrefix(name(busy), program+" ") {
			text += fmt.Sprintf("; most of a single one: %s %s %%", name(busy), plain(use))
		}
		v.Figures = slices.Insert(v.Figures, min(2, len(v.Figures)), text)
	} else if use := t.num(busy, "%CPU"); use >= 1 {
		holds := ""
		if size := t.resident(busy); size > 0 && !s.threads {
			holds = fmt.Sprintf(", %s resident", bytes(size))
		}
		text := fmt.Sprintf("%s: %s %% CPU%s%s", name(busy), plain(use), holds, t.next(busy, name))
		if n, sum := t.busy(); s.threads && n > 1 {
			of := ""
			if s.total > n {
				of = fmt.Sprintf(" of %d", s.total)
			}
			text = fmt.Sprintf("%d%s threads use a fifth of a CPU or more, %s %% together, the most %s with %s %%", n, of, plain(sum), name(busy), plain(use))
			v.Figures = slices.Insert(v.Figures, min(2, len(v.Figures)), text)
		} else {
			v.figure("%s", text)
		}
		v.factOf(ProcessCPU, use/100, name(busy))
		if used := s.used(); loaded && use >= 100 && use >= mostOfIt*used && len(t.rows) > 2 {
			v.means("the CPUs are nearly all busy in this one screen, and %.0f %% of what the tasks listed use is %s", 100*use/used, name(busy))
			v.pid, _ = whole(t.cell(busy, "PID"))
		}
	}
	for _, r := range t.rows {
		v.kernelThread(name(r), t.num(r, "%CPU"), "a CPU")
	}
	s.reclaimed(v)
	large := slices.MaxFunc(t.rows, func(a, b row) int { return cmp.Compare(t.resident(a), t.resident(b)) })
	if share := t.num(large, "%MEM"); share >= 25 && s.threads {
		v.figure("the process of %s holds %s, %s %% of the memory", name(large), bytes(t.resident(large)), plain(share))
	} else if share >= 25 {
		text := fmt.Sprintf("%s holds %s, %s %% of the memory", name(large), bytes(t.resident(large)), plain(share))
		v.Figures = slices.Insert(v.Figures, min(2, len(v.Figures)), text)
	}
}

// next names the two rows that use most CPU time behind the first one, where they use much of it
// too.
func (t *table) next(first row, name func(row) string) (text string) {
	rows := slices.Clone(t.rows)
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(t.num(b, "%CPU"), t.num(a, "%CPU")) })
	for i, r := range rows[min(1, len(rows)):min(3, len(rows))] {
		use := t.num(r, "%CPU")
		if use < worthNaming*t.num(first, "%CPU") || use < 5 {
			break
		}
		text += []string{"; then ", ", "}[i] + fmt.Sprintf("%s %s %%", name(r), plain(use))
	}
	return text
}

// busy counts rows that use a fifth of a CPU or more, and sums their use.
func (t *table) busy() (n int, use float64) {
	for _, r := range t.rows {
		if one := t.num(r, "%CPU"); one >= 20 {
			n, use = n+1, use+one
		}
	}
	return n, use
}

func (t *table) resident(r row) float64 {
	f, _ := size(t.cell(r, "RES"), 1024)
	return f
}

// kernelThread: some threads of the kernel that use much CPU time do so for one reason. The use is
// in percent, of one CPU or of the time of all.
func (v *verdict) kernelThread(name string, use float64, of string) {
	name = strings.NewReplacer("[", "", "]", "").Replace(name) // of kernel threads, with command lines
	if use < 20 || !strings.HasPrefix(name, "k") {
		return
	}
	proof := fmt.Sprintf("%s uses %s %% of %s", name, plain(use), of)
	switch {
	case strings.HasPrefix(name, "khugepaged"):
		v.means("%s: it looks for memory in one piece, for huge pages; whether the service's threads do so as well is not in it", proof)
		v.next("grep . /sys/kernel/mm/transparent_hugepage/{enabled,defrag}; grep -E 'compact|thp_fault' /proc/vmstat; sleep 10; grep -E 'compact|thp_fault' /proc/vmstat", "compact_stall: whether threads move memory themselves to get huge pages")
	case strings.HasPrefix(name, "kswapd"), strings.HasPrefix(name, "kcompactd"):
		v.proves("direct-reclaim", proof)
		v.means("%s: it looks for memory to free or to move; whether the service's threads have to help is not in it", proof)
		v.next("sar -B 1 10", "pgscand/s: whether threads free memory themselves")
	case strings.HasPrefix(name, "ksoftirqd"):
		v.candidate("softirq", 0, proof)
		v.means("%s: there are more interrupts than are served at once", proof)
		v.next("cat /proc/softirqs; sleep 10; cat /proc/softirqs", "which soft interrupts they are")
	}
}

// reclaimed adds to the proof of reclaim how much memory is left: little, or enough for all but one
// node, one group or huge pages.
func (s *screen) reclaimed(v *verdict) {
	if s.mem.total <= 0 || !v.accuses("direct-reclaim") {
		return
	}
	share := s.mem.available / s.mem.total
	if share < memoryShort { // scarce says it
		return
	}
	text := fmt.Sprintf("%s of %s are %s", bytes(s.mem.available), bytes(s.mem.total), s.mem.left())
	switch {
	case share < 0.15 && s.mem.hasSwap && s.mem.swap == 0:
		text += ", and there is no swap: only pages of files can be given up, programs' own among them"
	case share >= 0.3:
		text += ": memory as a whole is not short, so it is a node's, a group's, or in too small pieces"
	}
	v.proves("direct-reclaim", text)
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
		s.beside(v, fmt.Sprintf("%d in state D at that moment", blocked))
		if len(names) > 0 {
			v.Figures[0] += ": " + strings.Join(names, ", ")
		}
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
	if m.total <= 0 || m.available/m.total >= memoryShort {
		return
	}
	proof := fmt.Sprintf("%s %s of %s", m.left(), bytes(m.available), bytes(m.total))
	v.candidate("direct-reclaim", 0, proof)
	v.candidate("page-fault", 0, proof)
	v.means("memory is nearly used up: %s", proof)
	v.next("vmstat 1 10", "si and so: whether pages come back from swap")
	v.next("sar -B 1 10", "pgscand/s: whether threads free memory themselves; majflt/s")
}
