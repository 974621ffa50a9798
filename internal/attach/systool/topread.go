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
	c, known := screensCPU(judged)
	if known && len(all) == 1 && c.id >= 99 && last.used() >= 50 {
		known = false // the line of the first screen covers an instant in some versions
	}
	if last.load != nil {
		v.figure("load average %s, %s, %s", fixed(last.load[0]), fixed(last.load[1]), fixed(last.load[2]))
	}
	if known {
		v.figure("CPUs: %s", c)
	}
	if last.mem.total > 0 {
		v.figure("memory: %s of %s available", last.mem.show(last.mem.available), last.mem.show(last.mem.total))
		v.fact(MemoryAvailable, part(last.mem.available/last.mem.total))
	}
	last.processes(v, p)
	last.states(v, &c)
	if known {
		c.judge(v)
	}
	last.loaded(v, c, known)
	last.scarce(v)
	if v.Glance {
		v.not("one screen is a glance: states R and D change a thousand times a second, and the line of CPUs covers an instant or all time since boot")
	}
	v.means("the machine is at ease in it")
	return v.done()
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
		us, sy = append(us, mean(func(c cpuUse) float64 { return c.us })), append(sy, mean(func(c cpuUse) float64 { return c.sy }))
		wa, hi = append(wa, mean(func(c cpuUse) float64 { return c.wa })), append(hi, mean(func(c cpuUse) float64 { return c.hi }))
		si, st = append(si, mean(func(c cpuUse) float64 { return c.si })), append(st, mean(func(c cpuUse) float64 { return c.st }))
		id = append(id, mean(func(c cpuUse) float64 { return c.id }))
		c.cpus = s.cpus
	}
	c.us, c.sy, c.wa, c.hi, c.si, c.st, c.id = attach.Median(us), attach.Median(sy), attach.Median(wa), attach.Median(hi), attach.Median(si), attach.Median(st), attach.Median(id)
	c.samples, c.runnable, c.blocked = len(us), -1, -1
	return c, len(us) > 0
}

// processes names the one with most CPU time and the one with most memory.
func (s *screen) processes(v *verdict, p *attach.Part) {
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
	if use := t.num(busy, "%CPU"); use >= 1 {
		v.figure("%s: %s %% CPU, %s resident", name(busy), plain(use), bytes(t.resident(busy)))
		v.factOf(ProcessCPU, use/100, name(busy))
	}
	for _, r := range t.rows {
		v.kernelThread(name(r), t.num(r, "%CPU"))
	}
	large := slices.MaxFunc(t.rows, func(a, b row) int { return cmp.Compare(t.resident(a), t.resident(b)) })
	if share := t.num(large, "%MEM"); share >= 25 {
		text := fmt.Sprintf("%s holds %s, %s %% of the memory", name(large), bytes(t.resident(large)), plain(share))
		v.Figures = slices.Insert(v.Figures, min(2, len(v.Figures)), text)
	}
}

func (t *table) resident(r row) float64 {
	f, _ := size(t.cell(r, "RES"), 1024)
	return f
}

// kernelThread: some threads of the kernel that use much CPU time do so for one reason.
func (v *verdict) kernelThread(name string, use float64) {
	if use < 20 || !strings.HasPrefix(name, "k") {
		return
	}
	proof := fmt.Sprintf("%s uses %s %% of a CPU", name, plain(use))
	switch {
	case strings.HasPrefix(name, "kswapd"), strings.HasPrefix(name, "kcompactd"):
		v.candidate("direct-reclaim", 0, proof)
		v.means("%s: memory is being freed or moved; whether the service's threads have to help is not in it", proof)
		v.next("sar -B 1 10", "pgscand/s: whether threads free memory themselves")
	case strings.HasPrefix(name, "ksoftirqd"):
		v.candidate("softirq", 0, proof)
		v.means("%s: there are more interrupts than are served at once", proof)
		v.next("cat /proc/softirqs; sleep 10; cat /proc/softirqs", "which soft interrupts they are")
	}
}

// used is the CPU time of all processes shown, in percent of one CPU.
func (s *screen) used() (total float64) {
	t := table{names: s.names, rows: s.rows}
	for _, r := range t.rows {
		total += max(0, t.num(r, "%CPU"))
	}
	return total
}

// states counts threads in D, which one screen shows as they were at an instant.
func (s *screen) states(v *verdict, c *cpuUse) {
	at := slices.Index(s.names, "S")
	if at < 0 {
		return
	}
	blocked := 0
	for _, r := range s.rows {
		if at < len(r.cells) && r.cells[at] == "D" {
			blocked++
		}
	}
	if blocked > 0 {
		v.figure("%d in state D at that moment", blocked)
		v.unsure = true
		v.next("for i in 1 2 3 4 5; do ps -eLo state,wchan:32,comm | grep ^D; sleep 1; done", "whether the same threads stay in D, and where in the kernel")
	}
}

// loaded judges the load average, which counts runnable threads and those in D over minutes.
func (s *screen) loaded(v *verdict, c cpuUse, known bool) {
	if s.load == nil || v.has() {
		return
	}
	if known && c.cpus > 0 && c.id <= idleNone && c.wa <= idleNone && s.load[0] >= queueMatters*float64(c.cpus) && s.load[1] >= queueMatters*float64(c.cpus) {
		c.runnable, c.load = min(s.load[0], s.load[1]), true
		v.Means, v.Not, v.unsure = "", "", false
		c.queue(v)
		return
	}
	most := max(s.load[0], s.load[1])
	switch {
	case most < 2:
	case !known:
		v.unsure = true
		v.means("a load average of %s: whether that is much depends on how many CPUs there are", fixed(most))
		v.next("nproc", "the load average is to be held against the number of CPUs")
	case known && c.id >= 80 && most >= 8:
		v.unsure = true
		v.means("a load average of %s with CPUs %s %% idle: it counts threads in D as well, and bursts", plain(most), plain(c.id))
		v.next("ps -eLo state,wchan:32,comm | grep ^[RD]", "which threads it counts: R want a CPU, D wait in the kernel")
		v.next("nproc", "the load average is to be held against the number of CPUs")
	case known && c.id <= idleNone:
		v.unsure = true
		v.means("the CPUs are %s %% busy, and the load average is %s: whether threads queue depends on how many CPUs there are", plain(100-c.id-c.wa), plain(s.load[0]))
		v.next("nproc", "the load average is to be held against the number of CPUs")
	}
}

// scarce judges memory as free does.
func (s *screen) scarce(v *verdict) {
	m := s.mem
	if m.total <= 0 || m.available/m.total >= memoryShort {
		return
	}
	proof := fmt.Sprintf("available %s of %s", bytes(m.available), bytes(m.total))
	v.candidate("direct-reclaim", 0, proof)
	v.candidate("page-fault", 0, proof)
	v.means("memory is nearly used up: %s", proof)
	v.next("vmstat 1 10", "si and so: whether pages come back from swap")
	v.next("sar -B 1 10", "pgscand/s: whether threads free memory themselves; majflt/s")
}
