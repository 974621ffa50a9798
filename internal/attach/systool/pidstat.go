package systool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
)

var pidstat = &attach.Kind{
	Name:  "pidstat",
	Rows:  true,
	Hints: []string{"Linux ", "Command", " PID ", " TGID "},
	Claim: claimPidstat,
	Read:  readPidstat,
}

func claimPidstat(lines []paste.Line) int { return claimSysstat(pidstatTool, lines) }

// task is a process or a thread as pidstat saw it: medians over the samples, in which a task that
// a sample leaves out did nothing.
type task struct {
	pid, tid, cpu                  int // cpu is -1 where it is not known
	name                           string
	use, wait                      float64 // percent of a CPU's time
	usr, sys                       float64
	majflt, minflt                 float64 // a second
	cswch, nvcswch                 float64
	read, write                    float64 // kB a second
	iodelay                        float64 // clock ticks a sample
	readMean, writeMean, delayMean float64 // means: a burst in one sample of many has no median
	samples                        int
	lists                          map[string][]float64
}

// pidstatRun is what a part of pidstat says.
type pidstatRun struct {
	tasks    []*task
	threads  bool
	averages bool // no samples are there
	cpus     int
	samples  int
	interval float64
	host     string
	columns  map[string]bool
	sums     map[string]*demand // by time
}

// demand is how much CPU the tasks of one sample had and wanted, in percent of a CPU: of processes,
// and of threads where they are listed as well.
type demand struct{ ran, want, threadsRan, threadsWant float64 }

// maxTasks bounds what one part may name.
const maxTasks = 1 << 16

var pidstatFigures = []string{"%usr", "%system", "%wait", "%CPU", "majflt/s", "minflt/s", "cswch/s", "nvcswch/s", "kB_rd/s", "kB_wr/s", "iodelay"}

func parsePidstat(p *attach.Part) (run pidstatRun) {
	s := parseSysstat(p)
	run.cpus, run.host, run.columns = s.cpus, s.host, map[string]bool{}
	run.sums = map[string]*demand{}
	index := map[string]*task{}
	for _, t := range s.tables {
		n := t.times()
		run.samples = max(run.samples, n)
		if n == 0 {
			run.averages = true
		}
		run.interval = max(run.interval, t.interval())
		for _, name := range t.names {
			run.columns[name] = true
		}
		for _, r := range t.rows {
			if r.average == (n > 0) || len(r.cells) < len(t.names) {
				continue
			}
			run.add(t, r, index)
		}
		for _, one := range run.tasks {
			one.settle(t, max(1, n))
		}
	}
	return run
}

func (run *pidstatRun) add(t *table, r row, index map[string]*task) {
	pid, _ := whole(t.cell(r, "PID", "TGID"))
	tid, thread := whole(t.cell(r, "TID"))
	run.threads = run.threads || thread
	name := strings.Join(r.cells[len(t.names)-1:], " ")
	key := fmt.Sprint(pid, "/", tid, "/", name)
	one := index[key]
	if one == nil {
		if len(run.tasks) >= maxTasks {
			return
		}
		one = &task{pid: pid, tid: tid, cpu: -1, name: strings.TrimPrefix(name, "|__"), lists: map[string][]float64{}}
		index[key] = one
		run.tasks = append(run.tasks, one)
	}
	run.sum(t, r, thread)
	for _, n := range pidstatFigures {
		if t.has(n) {
			one.lists[n] = append(one.lists[n], t.num(r, n))
		}
	}
	if cpu, ok := whole(t.cell(r, "CPU")); ok {
		one.cpu = cpu
	}
}

// settle makes medians of one table's figures, over n samples.
func (one *task) settle(t *table, n int) {
	mid := func(name string, into *float64) {
		list := one.lists[name]
		if !t.has(name) || len(list) == 0 {
			return
		}
		one.samples = max(one.samples, len(list))
		for len(list) < n {
			list = append(list, 0)
		}
		*into = max(0, attach.Median(list))
		delete(one.lists, name)
	}
	for _, m := range []struct {
		name string
		into *float64
	}{{"kB_rd/s", &one.readMean}, {"kB_wr/s", &one.writeMean}, {"iodelay", &one.delayMean}} {
		if list := one.lists[m.name]; t.has(m.name) && len(list) > 0 {
			*m.into = max(0, attach.Sum(list)/float64(n))
		}
	}
	for i, into := range []*float64{&one.usr, &one.sys, &one.wait, &one.use, &one.majflt, &one.minflt, &one.cswch, &one.nvcswch, &one.read, &one.write, &one.iodelay} {
		mid(pidstatFigures[i], into)
	}
}

func (one *task) String() string {
	if one.tid > 0 {
		return fmt.Sprintf("%s (tid %d)", one.name, one.tid)
	}
	return fmt.Sprintf("%s (pid %d)", one.name, one.pid)
}

// kernelThreads are starts of names of the kernel's own threads. Their waits are no service's.
var kernelThreads = []string{"kworker/", "jbd2/", "kswapd", "ksoftirqd/", "flush-", "xfsaild", "xfs-", "kcompactd", "khugepaged", "migration/", "rcu_", "md", "dm-", "loop", "scsi_", "txg_"}

func (one *task) kernel() bool {
	return slices.ContainsFunc(kernelThreads, func(s string) bool { return strings.HasPrefix(one.name, s) })
}

// programs leaves the kernel's own threads out.
func programs(tasks []*task) []*task {
	return slices.DeleteFunc(tasks, (*task).kernel)
}

// top gives the tasks with most of a figure, those without any left out.
func (run *pidstatRun) top(figure func(*task) float64) []*task {
	var out []*task
	for _, one := range run.tasks {
		if figure(one) > 0 {
			out = append(out, one)
		}
	}
	slices.SortStableFunc(out, func(a, b *task) int { return cmp.Compare(figure(b), figure(a)) })
	return out
}

func readPidstat(p *attach.Part) attach.Reading {
	run := parsePidstat(p)
	v := &verdict{}
	v.Who = run.who()
	v.Title = "pidstat, " + samples(run.samples)
	if run.averages && run.samples == 0 {
		v.Title = "pidstat, averages only"
	}
	if run.samples == 1 && run.interval == 0 && !run.averages && pidstatSinceBoot(p) {
		return run.boot(v)
	}
	if len(run.tasks) == 0 {
		v.unsure = true
		v.means("no process is listed")
		return v.done()
	}
	if run.columns["%CPU"] {
		run.cpu(v)
	}
	run.faults(v)
	run.disk(v)
	run.switches(v)
	if len(v.Figures) == 0 {
		v.figure("%d tasks, nothing that moved", len(run.tasks))
	}
	v.means("nothing here holds a task up for more than a few percent of its time")
	v.not("it does not show waits for locks or for other servers")
	return v.done()
}

// pidstatSinceBoot: without an interval, pidstat prints averages since boot. Its names and its row
// have one time then.
func pidstatSinceBoot(p *attach.Part) bool {
	s := parseSysstat(p)
	return len(s.tables) > 0 && bootOnly(p, s.tables[0])
}

func (run *pidstatRun) boot(v *verdict) attach.Reading {
	v.Title = "pidstat, averages since boot"
	v.Boot, v.unsure = true, true
	for _, one := range run.top(func(t *task) float64 { return t.use }) {
		if len(v.Figures) < 3 {
			v.figure("%s: %s %% CPU since boot", one, plain(one.use))
		}
	}
	v.means("without an interval, pidstat prints averages since boot: they say nothing about now")
	v.next("pidstat -u -w -r -d 1 10", "samples while it is slow")
	return v.done()
}

// who names the process where there is only one.
func (run *pidstatRun) who() (w attach.Who) {
	w.Host = run.host
	for _, one := range run.tasks {
		if one.pid == 0 {
			continue
		}
		if w.PID != 0 && w.PID != one.pid {
			return attach.Who{Host: run.host}
		}
		w.PID, w.Name = one.pid, one.name
	}
	return w
}

// sum adds a row to its sample: processes that come and go have no median of their own.
func (run *pidstatRun) sum(t *table, r row, thread bool) {
	if !t.has("%CPU") {
		return
	}
	d := run.sums[r.time]
	if d == nil {
		if len(run.sums) >= maxTasks {
			return
		}
		d = &demand{}
		run.sums[r.time] = d
	}
	ran := max(0, t.num(r, "%CPU"))
	want := ran + max(0, t.num(r, "%wait"))
	if thread {
		d.threadsRan, d.threadsWant = d.threadsRan+ran, d.threadsWant+want
	} else {
		d.ran, d.want = d.ran+ran, d.want+want
	}
}

// demand is how many tasks ran or wanted to, and how many ran: medians over the samples.
func (run *pidstatRun) demand() (want, ran float64) {
	var wants, rans []float64
	for _, d := range run.sums {
		if d.threadsRan > 0 {
			wants, rans = append(wants, d.threadsWant/100), append(rans, d.threadsRan/100)
		} else {
			wants, rans = append(wants, d.want/100), append(rans, d.ran/100)
		}
	}
	return attach.Median(wants), attach.Median(rans)
}

// seenCPUs is the number of CPUs: by the banner, or by the highest that a task ran on where the
// tasks fill all up to it. Then it is so, since tasks of a larger machine would be seen on others.
func (run *pidstatRun) seenCPUs() (n int, known bool) {
	if run.cpus > 0 {
		return run.cpus, true
	}
	highest := -1
	for _, one := range run.tasks {
		highest = max(highest, one.cpu)
	}
	_, ran := run.demand()
	if highest >= 0 && ran >= 0.85*float64(highest+1) {
		return highest + 1, true
	}
	return 0, false
}

// Shares of a task's time that it waits for a CPU, in percent.
const (
	waitSmall = 5
	waitMuch  = 20
)

func (run *pidstatRun) cpu(v *verdict) {
	users := run.top(func(t *task) float64 { return t.use })
	users = slices.DeleteFunc(users, func(t *task) bool { return run.threads && t.tid == 0 })
	for i, one := range users {
		if i < 1 {
			v.figure("%s: %s %% CPU (%s user, %s system)", one, plain(one.use), plain(one.usr), plain(one.sys))
		}
		if i < 8 {
			v.factOf(ProcessCPU, one.use/100, one.String())
		}
	}
	if !run.columns["%wait"] {
		v.not("this version has no column %wait, so a wait for a CPU would not be seen")
	} else {
		run.waits(v)
	}
	if len(users) == 0 {
		return
	}
	for _, one := range users[:min(32, len(users))] {
		v.kernelThread(one.String(), one.use, "a CPU")
	}
	if one := users[0]; one.sys >= 30 && one.sys > one.usr {
		v.unsure = true
		v.next(fmt.Sprintf("perf top -g -p %d", max(one.pid, one.tid)), "what the kernel computes for it")
		v.means("%s computes in the kernel %s %% of the time: what, is not in it", one, plain(one.sys))
	}
}

// waits judges the wait for a CPU.
func (run *pidstatRun) waits(v *verdict) {
	waiters := programs(run.top(func(t *task) float64 { return t.wait }))
	if len(waiters) == 0 {
		v.figure("%%wait 0 for all tasks")
		if run.threads { // otherwise it is of main threads only
			v.against("cpu-contention", "%wait 0 for all threads")
		}
		return
	}
	for i, one := range waiters {
		if i < 8 {
			v.factOf(RunWaitShare, one.wait/100, one.String())
		}
	}
	most := waiters[0]
	low := waiters[len(waiters)-1]
	proof := fmt.Sprintf("%s waits for a CPU %s %% of the time", most, plain(most.wait))
	v.Figures = slices.Insert(v.Figures, 0, proof)
	if len(waiters) > 1 {
		v.Figures[0] += fmt.Sprintf("; %%wait of %d tasks: %s to %s %%", len(waiters), plain(low.wait), plain(most.wait))
	}
	if !run.threads {
		v.not("without -t, %wait is the main thread's only: other threads may wait longer")
	}
	want, ran := run.demand()
	cpus, known := run.seenCPUs()
	switch {
	case most.wait < waitSmall:
		if run.threads {
			v.against("cpu-contention", proof)
		}
		v.means("the wait for a CPU is %s %% at most: a small cost, and no reason for long stalls", plain(most.wait))
	case known && ran < 0.6*float64(cpus):
		v.unsure = true
		if most.wait < waitMuch {
			v.means("%s waits for a CPU %s %% of the time, though the tasks shown leave CPUs free", most, plain(most.wait))
			break
		}
		v.candidate("cpu-throttled", most.wait/100, proof, fmt.Sprintf("yet the tasks shown use only %s of %d CPUs", plain(ran), cpus))
		v.candidate("cpu-contention", most.wait/100, proof, "tasks may be bound to few CPUs")
		v.next("cat /sys/fs/cgroup/CGROUP/cpu.stat", "nr_throttled: a wait for quota counts as %wait as well")
		v.means("%s waits for a CPU %s %% of the time, though the tasks shown leave CPUs free", most, plain(most.wait))
		v.next(fmt.Sprintf("taskset -pc %d", max(most.pid, most.tid)), "which CPUs it may use")
	case known && ran >= 0.93*float64(cpus) && most.wait >= waitMuch:
		run.contention(v, proof, want, ran, cpus)
	default:
		v.candidate("cpu-contention", most.wait/100, proof)
		v.candidate("cpu-throttled", most.wait/100, proof)
		v.next("cat /sys/fs/cgroup/CGROUP/cpu.stat", "nr_throttled: a wait for quota counts as %wait as well")
		v.next("vmstat 1 10", "r against the number of CPUs")
		v.means("%s waits for a CPU %s %% of the time: for its turn, or for its quota", most, plain(most.wait))
	}
}

// contention: the tasks wait, and they fill the CPUs. Two columns agree.
func (run *pidstatRun) contention(v *verdict, proof string, want, ran float64, cpus int) {
	demand := fmt.Sprintf("%s tasks ran or wanted to on %d CPUs, which they filled to %s %%", plain(want), cpus, plain(100*ran/float64(cpus)))
	share := (want - ran) / max(want, 1e-9)
	sure := finding.Possible
	if run.samples >= enoughSamples || run.averages {
		sure = finding.Supported
	}
	v.Figures = slices.Insert(v.Figures, 1, demand)
	v.fact(RunQueuePerCPU, want/float64(cpus))
	v.found("cpu-contention", sure, share, proof, demand)
	if want >= queueMuch*float64(cpus) {
		v.candidate("runqueue-saturation", share, demand)
	}
	v.means("more tasks want to run than there are CPUs: %s on %d", plain(want), cpus)
}

func (run *pidstatRun) faults(v *verdict) {
	if !run.columns["majflt/s"] {
		return
	}
	top := run.top(func(t *task) float64 { return t.majflt })
	if len(top) == 0 {
		v.figure("no major faults (medians)")
		return
	}
	one := top[0]
	v.factOf(MajorFaultRate, one.majflt, one.String())
	proof := fmt.Sprintf("%s: %s major faults/s", one, plain(one.majflt))
	v.figure("%s", proof)
	switch {
	case one.majflt >= 100 && (run.samples >= enoughSamples || run.averages):
		v.found("page-fault", finding.Possible, 0, proof)
		v.means("%s reads pages from disk or swap %s times a second when it touches memory", one, plain(one.majflt))
		v.next("vmstat 1 10", "si: whether it is swap that comes back, or files")
	case one.majflt >= 10:
		v.candidate("page-fault", 0, proof)
		v.means("%s reads pages from disk or swap %s times a second; a program that starts does so as well", one, plain(one.majflt))
		v.next("perf trace -F maj --no-syscalls", "how long each major fault takes, and of which file")
	}
}

func (run *pidstatRun) disk(v *verdict) {
	if !run.columns["kB_rd/s"] {
		return
	}
	top := run.top(func(t *task) float64 { return t.read + t.write })
	if len(top) == 0 {
		run.bursts(v)
		return
	}
	v.figure("%s: reads %s/s, writes %s/s", top[0], kB(top[0].read), kB(top[0].write))
	run.journal(v)
	waits := programs(run.top(func(t *task) float64 { return t.iodelay }))
	if len(waits) == 0 {
		if top[0].read+top[0].write >= 10<<10 {
			v.unsure = true
			v.means("%s reads and writes a lot: how long it waits for that is not in it", top[0])
			v.next("iostat -x 1 10", "r_await and w_await: how long requests take")
		}
		if run.columns["iodelay"] {
			v.not("an iodelay of 0 proves nothing where delay accounting is off, as by default since Linux 5.14")
		}
		return
	}
	one := waits[0]
	seconds := run.interval
	if seconds == 0 {
		seconds = 1
	}
	share := one.iodelay / 100 / seconds // USER_HZ is 100 on all machines that matter
	proof := fmt.Sprintf("%s waits for the disk %s %% of the time (iodelay %s ticks of 10 ms)", one, plain(100*min(1, share)), plain(one.iodelay))
	v.figure("%s", proof)
	switch {
	case share >= 0.2 && !run.averages:
		v.found("disk-wait", finding.Supported, share, proof, v.Figures[len(v.Figures)-2])
		v.means("%s waits for the disk", one)
	case share >= 0.05 || run.averages:
		v.candidate("disk-wait", share, proof)
		v.next("iostat -x 1 10", "whether the device is slow")
	}
}

// bursts reads what no task did in half of the samples: tasks that come and go by turns. They are
// taken together by their name, in means.
func (run *pidstatRun) bursts(v *verdict) {
	type sum struct{ read, write, delay float64 }
	sums := map[string]sum{}
	name, most := "", 0.0
	for _, one := range run.tasks {
		if one.kernel() {
			continue
		}
		s := sums[one.name]
		s = sum{s.read + one.readMean, s.write + one.writeMean, s.delay + one.delayMean}
		sums[one.name] = s
		if all := s.read + s.write + s.delay; all > most || all == most && one.name < name {
			name, most = one.name, all
		}
	}
	if most == 0 {
		v.figure("no task reads from or writes to disk")
		return
	}
	s := sums[name]
	v.figure("%s, all of that name, by turns: reads %s/s, writes %s/s on average", name, kB(s.read), kB(s.write))
	share := s.delay / 100 / max(1, run.interval)
	if s.delay > 0 {
		v.figure("they wait for the disk %s ms of each second, taken together (iodelay)", plain(1000*share))
	}
	if share >= 0.2 || s.read+s.write >= 10<<10 {
		v.candidate("disk-wait", part(share), v.Figures[len(v.Figures)-1])
		v.means("%s reads and writes in bursts, and waits for the disk then", name)
		v.next("iostat -x 1 10", "r_await and w_await: how long requests take")
	}
}

// journal: the journal's thread of a file system waits where others call fsync.
func (run *pidstatRun) journal(v *verdict) {
	for _, one := range run.top(func(t *task) float64 { return t.iodelay }) {
		share := one.iodelay / 100 / max(1, run.interval)
		if share < 0.5 || !strings.HasPrefix(one.name, "jbd2/") && !strings.HasPrefix(one.name, "xfsaild") {
			continue
		}
		text := fmt.Sprintf("%s waits for the disk %s %% of the time", one, plain(100*min(1, share)))
		v.figure("%s", text)
		v.candidate("disk-wait", part(share), text)
		v.means("%s, the journal's thread: whoever calls fsync waits for it", text)
		v.next("strace -f -T -e trace=fsync,fdatasync -p PID", "whether the service calls fsync, and how long each takes")
		return
	}
}

func (run *pidstatRun) switches(v *verdict) {
	if !run.columns["nvcswch/s"] {
		return
	}
	forced := run.top(func(t *task) float64 { return t.nvcswch })
	own := run.top(func(t *task) float64 { return t.cswch })
	if len(forced) > 0 && forced[0].nvcswch >= 1 {
		v.figure("%s: %s involuntary switches/s, %s voluntary", forced[0], plain(forced[0].nvcswch), plain(forced[0].cswch))
	} else if len(own) > 0 {
		v.figure("%s: %s voluntary switches/s", own[0], plain(own[0].cswch))
	}
	if len(forced) > 0 && forced[0].nvcswch >= 1000 && !run.columns["%wait"] {
		v.candidate("cpu-contention", 0, fmt.Sprintf("%s is taken off its CPU %s times a second", forced[0], plain(forced[0].nvcswch)))
		v.candidate("runqueue-saturation", 0, fmt.Sprintf("%s is taken off its CPU %s times a second", forced[0], plain(forced[0].nvcswch)))
		v.next("pidstat -u -t 1 10", "%wait: how long it waits for its turn")
		v.means("%s is taken off its CPU %s times a second", forced[0], plain(forced[0].nvcswch))
	} else if len(forced) > 0 && forced[0].nvcswch >= 100 && !run.columns["%wait"] {
		v.unsure = true
		v.means("%s is taken off its CPU %s times a second: how long it waits each time is not in it", forced[0], plain(forced[0].nvcswch))
		v.next("pidstat -u -t 1 10", "%wait: how long it waits for its turn")
	}
}

// kB writes a figure in units of 1024 bytes.
func kB(f float64) string { return finding.Bytes(bounded(f * 1024)) }
