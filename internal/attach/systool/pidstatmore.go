package systool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/finding"
)

// oneThread is more than one thread can use, in percent of a CPU, and what is rounded.
const oneThread = 110

// leastListed is how many tasks all other samples list where a short last one is told from tasks
// that did nothing.
const leastListed = 6

// leaveCut leaves out a last sample that was cut off: tasks are listed by rising pids, and it ends
// among the low ones. In it, those cut off would count as tasks that did nothing.
func (t *table) leaveCut() bool {
	var starts []int
	for i, r := range t.rows {
		if r.average {
			return false
		}
		if i == 0 || r.time != t.rows[i-1].time {
			starts = append(starts, i)
		}
	}
	if len(starts) < 2 {
		return false
	}
	last := len(starts) - 1
	from, least := starts[last-1], starts[last]
	for i := range last {
		least = min(least, starts[i+1]-starts[i])
	}
	end, _ := whole(t.cell(t.rows[len(t.rows)-1], "PID", "TGID"))
	middle, _ := whole(t.cell(t.rows[(from+starts[last])/2], "PID", "TGID"))
	if least < leastListed || 2*(len(t.rows)-starts[last]) >= least || end >= middle {
		return false
	}
	t.rows = t.rows[:starts[last]]
	return true
}

// waits judges the wait for a CPU.
func (run *pidstatRun) waits(v *verdict) {
	waiters := programs(run.top(func(t *task) float64 { return t.wait }))
	if len(waiters) == 0 {
		if run.threads { // otherwise it is of main threads only
			v.figure("%%wait 0 for all threads of programs%s", run.medians())
			v.against("cpu-contention", "%wait 0 for all threads of programs")
			return
		}
		v.figure("%%wait 0, which is that of main threads alone")
		v.not("that no thread waits for a CPU: without -t, %wait is the main thread's only")
		if users := run.top(func(t *task) float64 { return t.use }); len(users) > 0 && users[0].use > oneThread {
			v.unsure = true
			v.means("%s computes with several threads, and whether they wait for a CPU is not in it: %%wait is the main thread's only", users[0])
			v.next(fmt.Sprintf("pidstat -u -w -t -p %d 1 10", users[0].pid), "%wait of each thread")
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
		v.Figures[0] += fmt.Sprintf("; %%wait of %d tasks: %s to %s %%", len(waiters),
			plain(low.wait), plain(most.wait))
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
		v.means("no program waits for a CPU longer than %s, %s %% of the time%s: a small cost, and no reason for long stalls",
			most, plain(most.wait), run.medians())
	case known && ran < 0.6*float64(cpus):
		v.unsure = true
		if most.wait < waitMuch {
			v.means("%s waits for a CPU %s %% of the time, though the tasks shown leave CPUs free",
				most, plain(most.wait))
			break
		}
		v.candidate("cpu-throttled", most.wait/100, proof,
			fmt.Sprintf("yet the tasks shown use only %s of %d CPUs", plain(ran), cpus))
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

// medians says that figures are those of the sample in the middle, which others may exceed.
func (run *pidstatRun) medians() string {
	if run.samples < 2 {
		return ""
	}
	return " at the median"
}

// contention: the tasks wait, and they fill the CPUs. Two columns agree.
func (run *pidstatRun) contention(v *verdict, proof string, want, ran float64, cpus int) {
	demand := fmt.Sprintf("%s tasks ran or wanted to on %d CPUs, which they filled to %s %%",
		plain(want), cpus, plain(100*ran/float64(cpus)))
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
		v.figure("no major faults%s", run.medians())
		run.resident(v)
		if !run.columns["%CPU"] && !run.columns["kB_rd/s"] && !run.columns["cswch/s"] {
			v.means("no task waits for pages from disk or swap; that is all that these columns can show")
		}
		return
	}
	one := top[0]
	v.factOf(MajorFaultRate, one.majflt, one.String())
	proof := fmt.Sprintf("%s: %s major faults/s", one, plain(one.majflt))
	v.figure("%s", proof)
	switch {
	case one.majflt >= 100 && (run.samples >= enoughSamples || run.averages):
		v.found("page-fault", finding.Possible, 0, proof)
		v.remedy("page-fault", remedyMajor)
		v.means("%s reads pages from disk or swap %s times a second when it touches memory", one, plain(one.majflt))
		v.next("vmstat 1 10", "si: whether it is swap that comes back, or files")
	case one.majflt >= 10:
		v.candidate("page-fault", 0, proof)
		v.means("%s reads pages from disk or swap %s times a second; a program that starts does so as well", one, plain(one.majflt))
		v.next("perf trace -F maj --no-syscalls", "how long each major fault takes, and of which file")
	}
}

// minorMany is how many minor faults a second are worth a word: a program that fills memory.
const minorMany = 1000

// resident names the task that has most memory, and how it grew.
func (run *pidstatRun) resident(v *verdict) {
	large := run.top(func(t *task) float64 { return t.rssLast })
	if len(large) == 0 {
		return
	}
	one := large[0]
	text := fmt.Sprintf("%s: %s resident", one, bytes(one.rssLast))
	if one.rssFirst > 0 && one.rssLast != one.rssFirst {
		text = fmt.Sprintf("%s: resident %s in the first sample, %s in the last", one,
			bytes(one.rssFirst), bytes(one.rssLast))
	}
	v.figure("%s%s", text, then(large, 1<<20, func(t *task) float64 { return t.rssLast }, bytes))
	if faults := run.top(func(t *task) float64 { return t.minfltMost }); len(faults) > 0 &&
		faults[0].minfltMost >= minorMany {
		v.figure("%s: up to %s minor faults/s: memory that it touches first, and no disk",
			faults[0], plain(faults[0].minfltMost))
	}
}

func (run *pidstatRun) disk(v *verdict) {
	if !run.columns["kB_rd/s"] {
		return
	}
	run.unread(v)
	top := run.top(func(t *task) float64 { return t.read + t.write })
	if len(top) == 0 {
		if !run.unknown() {
			run.bursts(v)
		}
		return
	}
	v.figure("%s: reads %s/s, writes %s/s%s", top[0], kB(top[0].read), kB(top[0].write),
		then(top, 1, func(t *task) float64 { return t.read + t.write }, func(f float64) string { return kB(f) + "/s of both" }))
	run.journal(v)
	waits := programs(run.top(func(t *task) float64 { return t.iodelay }))
	if len(waits) == 0 {
		if top[0].read+top[0].write >= 10<<10 {
			v.unsure = true
			does := moves(top[0].read, top[0].write)
			if run.columns["iodelay"] {
				v.means("%s %s a lot, and iodelay is 0 in all rows: no wait for the disk was counted", top[0], does)
			} else {
				v.means("%s %s a lot: how long it waits for that is not in it", top[0], does)
			}
			v.next("iostat -x 1 10", "r_await and w_await: how long requests take")
		}
		if run.columns["iodelay"] {
			v.not("an iodelay of 0 proves nothing where delay accounting is off, as by default since Linux 5.14")
		}
		return
	}
	one := waits[0]
	share, known := run.waited(one.iodelay)
	proof := fmt.Sprintf("%s waits for the disk %s %% of the time (iodelay %s ticks of 10 ms)", one,
		plain(100*min(1, share)), plain(one.iodelay))
	if !known {
		proof = fmt.Sprintf("%s waited for the disk %s ticks of 10 ms (iodelay), in how long is not in it", one, plain(one.iodelay))
	}
	v.figure("%s", proof)
	switch {
	case share >= 0.2:
		sure := finding.Supported
		if run.samples < enoughSamples {
			sure = finding.Possible // a second or two
		}
		v.found("disk-wait", sure, share, proof, v.Figures[len(v.Figures)-2])
		v.means("%s waits for the disk", one)
	case share >= 0.05 || !known:
		v.candidate("disk-wait", share, proof)
		v.next("iostat -x 1 10", "whether the device is slow")
	}
}

// moves says whether a task reads or writes, or both.
func moves(read, write float64) string {
	switch {
	case read < 0.05*write:
		return "writes"
	case write < 0.05*read:
		return "reads"
	}
	return "reads and writes"
}

// waited turns ticks of waiting into a share of a sample's time. It is not known where the length
// of a sample is not. USER_HZ is 100 on all machines that matter.
func (run *pidstatRun) waited(ticks float64) (share float64, known bool) {
	if run.averages && run.samples == 0 || run.interval == 0 {
		return 0, false
	}
	return ticks / 100 / run.interval, true
}

// unknown reports whether of no task it is known what it reads and writes.
func (run *pidstatRun) unknown() bool {
	return !slices.ContainsFunc(run.tasks, func(t *task) bool { return !t.unread })
}

// unread says of whom it is not known what they read and write. Their waits for the disk are.
func (run *pidstatRun) unread(v *verdict) {
	var names []string
	waits := 0.0
	for _, one := range run.tasks {
		if one.unread {
			names = append(names, one.String())
			waits = max(waits, one.delayMean)
		}
	}
	if len(names) == 0 {
		return
	}
	who := names[0]
	if len(names) > 1 {
		who += fmt.Sprintf(" and %d more", len(names)-1)
	}
	v.unsure = true
	text := "what " + who + " reads and writes is not known: -1 stands where /proc/PID/io could not be read"
	if !run.unknown() {
		v.Flaws = append(v.Flaws, text)
		return
	}
	v.figure("%s", text)
	share, known := run.waited(waits)
	if run.columns["iodelay"] && known {
		v.figure("iodelay %s ticks of 10 ms a sample at most: a wait for the disk of %s %% of the time", plain(waits), plain(100*part(share)))
	}
	if share >= 0.05 {
		v.candidate("disk-wait", part(share), v.Figures[len(v.Figures)-1])
	}
	v.means("%s", text)
	v.not("that it reads and writes nothing: -1 is no rate")
	v.next("sudo pidstat -d 1 10", "the same as root, who may read it where the kernel counts it")
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
	share, known := run.waited(s.delay)
	if s.delay > 0 && known {
		v.figure("they wait for the disk %s ms of each second, taken together (iodelay)", plain(1000*share))
	}
	if share >= 0.2 || s.read+s.write >= 10<<10 {
		v.candidate("disk-wait", part(share), v.Figures[len(v.Figures)-1])
		v.means("%s %s in bursts, and waits for the disk", name, moves(s.read, s.write))
		v.next("iostat -x 1 10", "r_await and w_await: how long requests take")
	}
}

// journal: the journal's thread of a file system waits where others call fsync.
func (run *pidstatRun) journal(v *verdict) {
	for _, one := range run.top(func(t *task) float64 { return t.iodelay }) {
		share, _ := run.waited(one.iodelay)
		if share < 0.5 || !strings.HasPrefix(one.name, "jbd2/") && !strings.HasPrefix(one.name, "xfsaild") {
			continue
		}
		text := fmt.Sprintf("%s waits for the disk %s %% of the time", one, plain(100*min(1, share)))
		v.figure("%s", text)
		v.candidate("disk-wait", part(share), text)
		v.means("%s, the journal's thread: whoever calls fsync waits for it", text)
		v.next("strace -f -T -e trace=fsync,fdatasync -p PID",
			"whether the service calls fsync, and how long each takes")
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
		v.figure("%s: %s involuntary switches/s, %s voluntary", forced[0], plain(forced[0].nvcswch),
			plain(forced[0].cswch))
	} else if len(own) > 0 {
		v.figure("%s: %s voluntary switches/s", own[0], plain(own[0].cswch))
	}
	if len(forced) == 0 || forced[0].nvcswch < 100 || run.columns["%wait"] {
		return
	}
	proof := fmt.Sprintf("%s is taken off its CPU %s times a second", forced[0], plain(forced[0].nvcswch))
	if forced[0].nvcswch >= 1000 {
		v.candidate("cpu-contention", 0, proof)
		v.candidate("runqueue-saturation", 0, proof)
		v.means("%s", proof)
	} else {
		v.unsure = true
		v.means("%s: how long it waits each time is not in it", proof)
	}
	v.next("pidstat -u -t 1 10", "%wait: how long it waits for its turn")
}

// kB writes a figure in units of 1024 bytes.
func kB(f float64) string { return finding.Bytes(bounded(f * 1024)) }
