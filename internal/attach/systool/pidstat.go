package systool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

var pidstat = &attach.Kind{
	Name:     "pidstat",
	Rows:     true,
	Prompted: true,
	Hints:    []string{"Linux ", "Command", " PID ", " TGID ", "pidstat "},
	Claim:    claimPidstat,
	Read:     readPidstat,
	Apart:    newRun,
	When:     sysstatWhen,
}

func claimPidstat(lines []paste.Line) int {
	if lines[0].Command != "" {
		return claimFiltered(lines)
	}
	return claimSysstat(pidstatTool, lines)
}

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
	rssFirst, rssLast              float64 // bytes; 0: not printed
	minfltMost                     float64
	useMost, useLast               float64 // percent of a CPU, of one sample
	at                             string  // the time of its last row
	samples                        int
	unread                         bool // -1 stands where /proc/PID/io could not be read
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
	cut      bool // the last sample is: its rows are left out
	columns  map[string]bool
	divided  []float64          // of rows whose %CPU is less than its parts, by how much it was divided
	capped   bool               // %CPU of a process is 100 % at most, whatever its parts are
	sums     map[string]*demand // by time
}

// demand is how much CPU the tasks of one sample had and wanted, in percent of a CPU: of processes,
// and of threads where they are listed as well.
type demand struct{ ran, want, threadsRan, threadsWant float64 }

// maxTasks bounds what one part may name.
const maxTasks = 1 << 16

var pidstatFigures = []string{"%usr", "%system", "%wait", "%CPU", "majflt/s", "minflt/s", "cswch/s",
	"nvcswch/s", "kB_rd/s", "kB_wr/s", "iodelay"}

func parsePidstat(p *attach.Part) (run pidstatRun) {
	s := parseSysstat(p)
	run.cpus, run.host, run.columns = s.cpus, s.host, map[string]bool{}
	run.sums = map[string]*demand{}
	index := map[string]*task{}
	for _, t := range s.tables {
		run.cut = t.leaveCut() || run.cut
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
	one.at = r.time
	own := run.ownUse(t, r)
	run.sum(t, r, thread, own)
	if t.has("RSS") {
		one.rssLast, _ = size(t.cell(r, "RSS"), 1024)
		one.rssFirst = cmp.Or(one.rssFirst, one.rssLast)
	}
	if t.has("minflt/s") {
		one.minfltMost = max(one.minfltMost, t.num(r, "minflt/s"))
	}
	one.unread = one.unread || t.num(r, "kB_rd/s") < 0 || t.num(r, "kB_wr/s") < 0
	for _, n := range pidstatFigures {
		if t.has(n) {
			f := t.num(r, n)
			if n == "%CPU" {
				f = own
			}
			one.lists[n] = append(one.lists[n], f)
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
		if name == "%CPU" {
			one.useMost = max(one.useMost, slices.Max(list))
			if i := slices.IndexFunc(t.rows, func(r row) bool { return r.average }); i < 0 && one.at == t.rows[len(t.rows)-1].time ||
				i > 0 && one.at == t.rows[i-1].time {
				one.useLast = list[len(list)-1]
			}
		}
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
	for i, into := range []*float64{&one.usr, &one.sys, &one.wait, &one.use, &one.majflt,
		&one.minflt, &one.cswch, &one.nvcswch, &one.read, &one.write, &one.iodelay} {
		mid(pidstatFigures[i], into)
	}
}

func (one *task) String() string {
	if one.tid > 0 && one.name == "" { // cut off
		return fmt.Sprintf("thread %d", one.tid)
	}
	if one.tid > 0 {
		return fmt.Sprintf("%s (tid %d)", one.name, one.tid)
	}
	return fmt.Sprintf("%s (pid %d)", one.name, one.pid)
}

// kernelThreads are starts of names of the kernel's own threads. Their waits are no service's.
var kernelThreads = []string{"kworker/", "jbd2/", "kswapd", "ksoftirqd/", "flush-", "xfsaild",
	"xfs-", "kcompactd", "khugepaged", "migration/", "rcu_", "dm-", "scsi_", "txg_"}

// numberedThreads are the kernel's as well, where a number follows: md0_raid1, loop3.
var numberedThreads = []string{"md", "loop"}

func (one *task) kernel() bool {
	for _, s := range numberedThreads {
		if rest, ok := strings.CutPrefix(one.name, s); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			return true
		}
	}
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

// worthNaming is the part of the first one's figure from which on the next tasks are named as well.
const worthNaming = 0.25

// then names the two tasks behind the first one of a list, where they have much of its figure too,
// and so much at least.
func then(list []*task, least float64, figure func(*task) float64, write func(float64) string) (text string) {
	for i, one := range list[min(1, len(list)):min(3, len(list))] {
		if figure(one) < max(least, worthNaming*figure(list[0])) {
			break
		}
		text += []string{"; then ", ", "}[i] + fmt.Sprintf("%s %s", one, write(figure(one)))
	}
	return text
}

func readPidstat(p *attach.Part) attach.Reading {
	run := parsePidstat(p)
	v := &verdict{}
	v.Who = run.who()
	if run.cpus > 0 {
		v.fact(CPUs, float64(run.cpus))
	}
	v.Title = "pidstat, " + samples(run.samples)
	if run.averages && run.samples == 0 {
		v.Title = "pidstat, averages only"
	}
	if run.samples == 1 && run.interval == 0 && !run.averages && pidstatSinceBoot(p) {
		return run.boot(v)
	}
	if run.cut {
		v.Title += ", and one that is cut off"
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
	if !run.columns["%CPU"] && !run.columns["kB_rd/s"] && !run.columns["majflt/s"] {
		v.unsure = true
		v.means("it counts switches: how long a task waited before each, for a CPU or for anything else, is not in it")
		v.next("pidstat -u -w -t 1 10", "%wait: how long tasks wait for a CPU")
	}
	if !run.columns["%wait"] && !run.columns["iodelay"] && run.columns["%CPU"] {
		v.means("it says who uses the CPUs; this version has no column of waits")
	}
	run.ease(v)
	v.not("it does not show waits for locks or for other servers")
	return v.done()
}

// ease says what of waits the columns show, where none of them is long.
func (run *pidstatRun) ease(v *verdict) {
	var all []string
	if run.columns["%wait"] {
		who := "main thread"
		if run.threads {
			who = "thread"
		}
		all = append(all, "no "+who+" of a program waits for a CPU for more than a few percent of its time")
	}
	if run.columns["majflt/s"] {
		all = append(all, "few pages or none come from disk or swap")
	}
	if _, known := run.waited(1); run.columns["iodelay"] {
		text := "no long wait for the disk is counted"
		if !known && len(programs(run.top(func(t *task) float64 { return t.iodelay }))) > 0 {
			text = "waits for the disk are counted over a time that is not in it"
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		v.unsure = v.unsure || !run.columns["%CPU"] && !run.columns["kB_rd/s"]
		all = append(all, "it has no column of waits")
	}
	v.means("%s", strings.Join(all, "; "))
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
	run.ownSums(v)
	for _, one := range run.top(func(t *task) float64 { return t.use }) {
		if len(v.Figures) < 3 {
			v.figure("%s: %s %% CPU since boot", one, plain(one.use))
		}
	}
	for _, one := range run.top(func(t *task) float64 { return t.read + t.write }) {
		if len(v.Figures) < 3 {
			v.figure("%s: read %s/s and wrote %s/s on average since boot", one, kB(one.read), kB(one.write))
		}
	}
	if run.columns["majflt/s"] {
		for _, one := range run.top(func(t *task) float64 { return max(t.rssLast, t.majflt) }) {
			if len(v.Figures) < 3 {
				v.figure("%s: %s major faults/s on average since boot; %s resident now", one,
					plain(one.majflt), bytes(one.rssLast))
			}
		}
	}
	if len(v.Figures) == 0 {
		v.figure("%s, which did next to nothing since boot", attach.Plural(len(run.tasks), "task"))
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

// sum adds a row to its sample: processes that come and go have no median of their own. own is its
// CPU time in percent of a CPU.
func (run *pidstatRun) sum(t *table, r row, thread bool, own float64) {
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
	ran := max(0, own)
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
	run.crowds(v)
	run.ownSums(v)
	for i, one := range users {
		if i < 1 {
			least := ""
			if run.capped && one.tid == 0 && one.usr >= 100 {
				least = "at least "
			}
			v.figure("%s: %s%s %% CPU (%s user, %s system)%s", one, least, plain(one.use), plain(one.usr), plain(one.sys),
				then(users, 5, func(t *task) float64 { return t.use }, func(f float64) string { return plain(f) + " %" }))
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
	run.hidden(v, users)
	for _, one := range users[:min(32, len(users))] {
		v.kernelThread(one.String(), one.use, "a CPU")
	}
	if one := users[0]; one.sys >= 30 && one.sys > one.usr {
		v.unsure = true
		v.next(fmt.Sprintf("perf top -g -p %d", max(one.pid, one.tid)), "what the kernel computes for it")
		v.means("%s computes in the kernel %s %% of the time: what, is not in it", one, plain(one.sys))
	}
}
