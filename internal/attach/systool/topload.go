package systool

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// manyRun is how many running tasks of one screen are worth a word.
const manyRun = 4

// quiet reports whether the load average of the last minute is less than one thread leaves in it
// that ran for some seconds, though the line of CPUs says that they are busy.
func (s *screen) quiet(c cpuUse) bool {
	return s.load != nil && c.id+c.wa <= 50 && max(s.load[0], s.load[1]) < 0.1
}

// manyWait is a load average that few machines have without threads in D, where few threads run.
const manyWait = 8

// iowaitSome is the iowait in percent, of a screen with such a load, that is no chance.
const iowaitSome = 3

// asleep says that most of what the load average counts did not run: it counts threads in D as
// well. Beside iowait that is said first.
func (s *screen) asleep(v *verdict, c cpuUse) {
	if len(s.load) < 3 || s.running == 0 {
		return
	}
	least := slices.Min(s.load)
	if least < manyWait || float64(s.running) > least/4 || c.id+c.wa < 50 {
		return
	}
	if s.running < manyRun {
		v.Figures[0] += fmt.Sprintf("; %d running at that moment", s.running)
	}
	if c.passed {
		return
	}
	v.unsure = true
	v.next("for i in 1 2 3 4 5; do ps -eLo state,wchan:32,comm | grep ^[RD]; sleep 1; done",
		"which threads it counts: R want a CPU, D wait in the kernel")
	if c.wa < iowaitSome {
		v.means("a load average of %s, of which %d run, and CPUs %s %% idle: it counts threads in D as well, and bursts", fixed(s.load[0]), s.running, plain(c.id))
		return
	}
	if c.wa < iowaitMatters && !v.has() {
		v.candidate("disk-wait", c.wa/100,
			fmt.Sprintf("a load average of %s, of which %d run, CPUs %s %% idle, and iowait %s %%",
				fixed(s.load[0]), s.running, plain(c.id), plain(c.wa)))
		v.not("iowait is idle time of CPUs: it does not say which threads wait, for a disk, NFS or io_uring, nor that the service's requests do")
		v.next("iostat -x 1 10", "which device is slow: r_await, w_await, aqu-sz")
	}
	v.means("a load average of %s, of which %d run, and CPUs idle %s %% of the time while threads wait for I/O: most of the threads that it counts sleep in the kernel (D)",
		fixed(s.load[0]), s.running, plain(c.wa))
}

// fullCPUs says that some CPUs are full, which the mean over all of them hides.
func (s *screen) fullCPUs(v *verdict, c cpuUse) {
	if len(s.cpu) < 2 || !s.everyCPU() || c.id < 30 {
		return
	}
	var full []int
	for at, one := range s.cpu {
		if one.id+one.wa <= idleNone {
			full = append(full, at)
		}
	}
	if len(full) == 0 {
		return
	}
	text := fmt.Sprintf("CPU %d is full (%s), and %d others are not", full[0], s.cpu[full[0]], s.cpus-1)
	if len(full) > 1 {
		text = fmt.Sprintf("%d of %d CPUs are full, CPU %d among them (%s)", len(full), s.cpus, full[0], s.cpu[full[0]])
	}
	v.unsure = true
	v.means("%s: threads that compute alone, or interrupts that only this CPU serves", text)
	v.not("whether the service waits for such a thread: the mean of all CPUs hides it, and one screen is a glance")
	v.next("pidstat -u -t 1 10", "which threads fill a CPU")
}

// oneWhole says that a task uses as much as one CPU, which the mean over all CPUs hides: what one
// thread computes is no faster on a machine with room.
func (s *screen) oneWhole(v *verdict, c cpuUse) {
	t := table{names: s.names, rows: s.rows}
	if len(t.rows) == 0 || c.id < 30 || v.Means != "" || v.has() {
		return
	}
	r := slices.MaxFunc(t.rows, func(a, b row) int { return cmp.Compare(t.num(a, "%CPU"), t.num(b, "%CPU")) })
	use, who := t.num(r, "%CPU"), t.cell(r, "COMMAND", "BEFEHL", "Command")
	if use < 90 || use > oneThread {
		return
	}
	v.unsure = true
	if s.threads {
		v.means("the thread %s uses a whole CPU (%s %%), and the CPUs have room otherwise: what it computes is no faster on a machine with more of them", who, plain(use))
	}
	v.means("%s uses as much as one whole CPU (%s %%), and the CPUs have room otherwise: if it is one thread that computes, it gets no more", who, plain(use))
	v.not("whether one thread of it computes all the time: its row sums up all of its threads")
	v.next("pidstat -u -t 1 10", "which threads fill a CPU")
}

// blocked counts the rows in D, of which the load average counts each as it does a thread that
// runs.
func (s *screen) blocked() (n int) {
	at := slices.Index(s.names, "S")
	for _, r := range s.rows {
		if at >= 0 && at < len(r.cells) && r.cells[at] == "D" {
			n++
		}
	}
	return n
}

// calm reports whether iowait lasted for seconds only, by the load average of the last minute.
// Iowait needs threads in D, which it counts: a wait of 6 s leaves a tenth of the share in it.
func (s *screen) calm(c cpuUse) bool {
	at := slices.IndexFunc(s.names, func(name string) bool { return name == "S" || name == "STAT" })
	for _, r := range s.rows {
		if at >= 0 && at < len(r.cells) && strings.HasPrefix(r.cells[at], "D") {
			return false
		}
	}
	return s.load != nil && s.load[0] < c.wa/1000
}

// queuedFor is how many times the busy CPUs a load average is that they do not make.
const queuedFor = 2

// loaded judges the load average, which counts runnable threads and those in D over minutes.
func (s *screen) loaded(v *verdict, c cpuUse, known bool) {
	if s.load == nil || v.has() {
		return
	}
	if known && c.cpus > 0 && c.id <= idleNone && c.wa <= idleNone &&
		s.load[0] >= queueMatters*float64(c.cpus) && s.load[1] >= queueMatters*float64(c.cpus) {
		c.runnable, c.load = min(s.load[0], s.load[1]), true
		c.glance = c.glance || float64(s.blocked()) >= c.runnable/4
		v.Means, v.Not, v.unsure = "", "", false
		c.queue(v)
		return
	}
	most := max(s.load[0], s.load[1])
	switch {
	case known && s.queued(c):
		c.runnable, c.load = min(s.load[0], s.load[1]), true
		if v.pid == 0 {
			v.Means, v.Not = "", ""
		}
		c.queue(v)
	case most < 2:
	case !known:
		v.unsure = true
		v.means("a load average of %s: whether that is much depends on how many CPUs there are", fixed(most))
		v.next("nproc", "the load average is to be held against the number of CPUs")
	case most >= manyWait && (c.cpus == 0 && c.id >= 80 || c.cpus > 0 && c.id+c.wa >= 50 &&
		most >= queuedFor*(100-c.id-c.wa)/100*float64(c.cpus)):
		v.unsure = true
		over := ""
		if s.load[1] > s.load[0] {
			over = fmt.Sprintf(" (%s over 5 minutes)", plain(s.load[1]))
		}
		if s.running >= 4 {
			over += fmt.Sprintf(", while %d tasks ran or wanted a CPU at that moment,", s.running)
		}
		v.means("a load average of %s%s with CPUs %s %% idle: it counts threads in D as well, and bursts", plain(s.load[0]), over, plain(c.id))
		v.next("ps -eLo state,wchan:32,comm | grep ^[RD]",
			"which threads it counts: R want a CPU, D wait in the kernel")
		v.next("nproc", "the load average is to be held against the number of CPUs")
	case c.id <= idleNone:
		v.unsure = true
		v.means("the CPUs are %s %% busy, and the load average is %s: whether threads queue depends on how many CPUs there are", plain(100-c.id-c.wa), plain(s.load[0]))
		v.next("nproc", "the load average is to be held against the number of CPUs")
	}
}

// queued reports whether CPUs are full, nobody says how many there are, and the load average is
// above what the tasks listed use of them by so much that threads may queue.
func (s *screen) queued(c cpuUse) bool {
	least := min(s.load[0], s.load[1])
	return c.cpus == 0 && c.id <= idleNone && c.wa <= idleNone && least >= 2 && least >= queueMatters*s.used()/100
}

// steadyLoad is how much of the largest load average the smallest has where the load lasts.
const steadyLoad = 0.7

// crowded: so many threads run or want to that there are not as many CPUs. CPUs that are all busy
// count as much in the load average, which bounds their number where it lasts.
func (s *screen) crowded(v *verdict, c cpuUse, known bool) {
	if !known || s.load == nil || c.cpus > 0 || c.id > idleNone || c.wa > idleNone || v.has() {
		return
	}
	busy := (100 - c.id - c.wa) / 100
	most := math.Floor(slices.Max(s.load) / busy)
	if slices.Min(s.load) < steadyLoad*slices.Max(s.load) {
		return // they may be busy for seconds
	}
	if most < 1 || float64(s.running-1) < queueMatters*most { // one of them is top itself
		return
	}
	proof := fmt.Sprintf("%d threads run or want to, and by the load average the busy CPUs are %s at most", s.running, plain(most))
	v.candidate("cpu-contention", 0, proof)
	v.candidate("runqueue-saturation", 0, proof)
	if s.running < manyRun {
		v.Figures[0] += fmt.Sprintf("; %d running at that moment", s.running)
	}
	v.next("nproc", "the load average is to be held against the number of CPUs")
}

// few says that the tasks listed are not all of the machine's, whose CPU time is that of all.
func (s *screen) few(v *verdict, known bool) {
	if !known || s.total == 0 || s.total >= fewTasks || len(s.rows) < s.total {
		return
	}
	who := ""
	t := table{names: s.names, rows: s.rows}
	if len(t.rows) == 1 && t.resident(t.rows[0]) > 0 && s.used() < 1 { // otherwise it is said below
		who = fmt.Sprintf(", %s, %s resident", t.cell(t.rows[0], "COMMAND", "BEFEHL", "Command"), bytes(t.resident(t.rows[0])))
	}
	v.Figures = slices.Insert(v.Figures, min(1, len(v.Figures)),
		fmt.Sprintf("%s in all%s, %s %% of a CPU together: those of a container, or those that somebody chose, while the line of CPUs mostly is of the whole machine",
			attach.Plural(s.total, "task"), who, plain(s.used())))
}

// swapped says how much of swap is used, where that is some of it.
func (m memory) swapped() string {
	if m.swap <= 0 || m.swapUsed < swapSome*m.swap {
		return ""
	}
	return fmt.Sprintf("; %s of %s of swap used, now or long ago", bytes(m.swapUsed), bytes(m.swap))
}

// swapSome is the share of swap from which on its use is said.
const swapSome = 0.1
