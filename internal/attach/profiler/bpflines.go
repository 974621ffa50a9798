package profiler

import (
	"fmt"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// A lineTool is a BPF tool without columns: each of its rows is of one form.
type lineTool struct {
	name  string
	hints []string
	row   *pattern.Regexp
	note  *pattern.Regexp // lines that may stand beside rows; nil: those that all tools have
	inner bool            // such lines stand between rows only
	read  func(r *attach.Reading, p *attach.Part, rows [][]string)
}

var lineTools = []lineTool{
	{name: "cpuunclaimed", hints: []string{"unclaimed idle", "Sampling run queues"},
		row: pattern.New(`^(?:\d\d:\d\d:\d\d )?%CPU +([\d.]+)%, unclaimed idle ([\d.]+)%$`), read: readUnclaimed},
	{name: "runqlen, occupancy", hints: []string{"runqocc", "Sampling run queue length"},
		row: pattern.New(`^runqocc(?:, CPU (\d+) *|: )([\d.]+)%$`), read: readOccupancy},
	{name: "pidpersec", hints: []string{"PIDs/sec", "Tracing ", "Tracing...", "Attaching "},
		row: pattern.New(`^\d\d:\d\d:\d\d:? PIDs/sec: (?:@: )?(\d+)$`), read: readNewPIDs},
	{name: "oomkill", hints: []string{"Triggered by PID", "Tracing ", "Attaching "},
		row: pattern.New(`^\d\d:\d\d:\d\d Triggered by PID (\d+) \("(.*?)"\), OOM kill of PID (\d+) \("(.*?)"\), (\d+) pages`), read: readKills},
	{name: "tcpsubnet", hints: []string{"/32", "/24", "/16", "Tracing..."},
		row:  pattern.New(`^(\d+\.\d+\.\d+\.\d+/\d+) +(\d+)$`),
		note: pattern.New(`^\[.*\d\d:\d\d:\d\d\]$`), read: readSubnets},
	{name: "criticalstat", hints: []string{"Total Time:", "Finding critical section"},
		row:  pattern.New(`^TASK: (.*?) \(pid +(\d+) tid +\d+\) Total Time: ([\d.]+) *us$`),
		note: pattern.New(`^(=+|Section (start|end):.*|\S+\+0x[0-9a-f]+|Finding critical section .*|NO STACK FOUND.*)$`), read: readCritical},
	{name: "biolatpcts", hints: []string{"p50", "p99", "99.9", "flush  "},
		row:  pattern.New(`^(read|write|discard|flush)((?: +(?:-|[\d.]+(?:us|ms|s))){3,})$`),
		note: percentiles, read: readPercentiles},
	{name: "netqtop", hints: []string{"QueueID", "Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ",
		"Sun "}, row: pattern.New(`^(\d+|Total)((?: +[\d.]+[KMG]?){5,8})$`),
		note: pattern.New(`^(TX|RX|-+|QueueID +avg_size .*|\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4})$`), read: readQueues},
	{name: "futexctn", hints: []string{" contended ", "Summarize futex"},
		row:  pattern.New(`^(.{1,16})\[(\d+)\] lock (0x[0-9a-f]+) contended (\d+) times, (\d+) avg ([un]?m?sec?s?|us|ms|ns) \[max: (\d+) \w+, min (\d+) \w+\]$`),
		note: pattern.New(`^(-|#\d+ +0x[0-9a-f]+.*|\[unknown\]|\S+|\S+\(.*\))$`), inner: true, read: readFutexes},
	{name: "deadlock", hints: []string{"Potential Deadlock Detected"},
		row:  pattern.New(`^(Potential Deadlock Detected)!$`),
		note: pattern.New(`^(-+|Cycle in lock order graph: .*|Mutex M\d+ \(.*|@ [0-9a-f]{8,} .*|Thread \d+ .*)$`), read: readDeadlock},
	{name: "load averages, bpftrace", hints: []string{"load averages: ", "Reading load averages",
		"Attaching "}, row: pattern.New(`^\d\d:\d\d:\d\d load averages: ([\d.]+) ([\d.]+) ([\d.]+)$`), read: readLoads},
}

// percentiles is the heading of biolatpcts: a device, and percentiles as a person asked for them.
var percentiles = pattern.New(`^[\w/-]+((?: +p?\d+(?:\.\d+)?){3,})$`)

// lineKinds makes a kind of each.
func lineKinds() (out []*attach.Kind) {
	for i := range lineTools {
		tool := &lineTools[i]
		out = append(out, &attach.Kind{Name: tool.name, Hints: tool.hints, Claim: tool.claim, Read: tool.part})
	}
	return out
}

func (tool *lineTool) claim(lines []paste.Line) int {
	rows, end, notes := 0, 0, 0
	claimed(lines, func(i int, text string) bool {
		switch {
		case len(text) > 400:
			return false
		case tool.row.MatchString(text):
			rows, notes, end = rows+1, 0, i+1
			return true
		case tool.note != nil && tool.note.MatchString(text):
			if rows > 0 && !tool.inner {
				end = i + 1
			}
		case tableNote(text):
		case rows == 0:
			return false
		default:
			row, own := histLine(text, false)
			if !own {
				return false
			}
			if row {
				end = i + 1
			}
		}
		notes++
		return notes < 200 && (rows > 0 || notes < 6)
	})
	return attach.ClaimIf(rows > 0, end)
}

func (tool *lineTool) part(p *attach.Part) attach.Reading {
	var rows [][]string
	for _, text := range texts(p) {
		if m := tool.row.FindStringSubmatch(text); m != nil && len(rows) < most {
			rows = append(rows, m)
		}
	}
	r := attach.Reading{Title: tool.name + ", " + attach.Plural(len(rows), "row"), State: attach.CannotTell}
	tool.read(&r, p, rows)
	return r
}

// column reads one of the groups of all rows.
func column(rows [][]string, group int) (out []float64) {
	for _, m := range rows {
		if f, ok := number(m[group]); ok {
			out = append(out, f)
		}
	}
	return out
}

// unclaimedMuch is the share of idle CPUs, with threads that wait for another one, which the tool's
// manual calls more than affinity to a warm cache.
const unclaimedMuch = 2

func readUnclaimed(r *attach.Reading, _ *attach.Part, rows [][]string) {
	busy, idle := attach.Median(column(rows, 1)), attach.Median(column(rows, 2))
	r.Figures = append(r.Figures,
		fmt.Sprintf("CPUs: %.3g %% busy, %.3g %% idle while threads waited for another CPU (medians)", busy, idle))
	r.Not = "How long the threads waited is not in it."
	if idle < unclaimedMuch {
		r.Means = "Threads that waited for a CPU could hardly have had another one: no CPU was left idle beside them."
		return
	}
	r.Means = "Threads wait for CPUs which they may not use, while others are idle: they are bound to some (taskset, a cpuset), or the scheduler is late to move them."
	r.Next = append(r.Next, ask("taskset -pc PID; cat /sys/fs/cgroup/CGROUP/cpuset.cpus.effective",
		0, "which CPUs the threads may use"))
}

func readOccupancy(r *attach.Reading, _ *attach.Part, rows [][]string) {
	most, where := 0.0, ""
	for _, m := range rows {
		if f, _ := number(m[2]); f >= most {
			most, where = f, m[1]
		}
	}
	r.Figures = append(r.Figures,
		fmt.Sprintf("threads were queued in %.3g %% of the samples in the median of %s",
			attach.Median(column(rows, 2)), attach.Plural(len(rows), "row")))
	if where != "" {
		r.Figures = append(r.Figures, fmt.Sprintf("most on CPU %s: %.3g %%", where, most))
	}
	r.Means = "It is how often a thread waited behind another, and not how long."
	r.Next = append(r.Next, ask("runqlat-bpfcc 10 1", 0, "how long they waited"))
	if most < 5 {
		r.State, r.Means, r.Next = attach.Healthy, "Nearly no sample found a thread that waited behind another.", nil
	}
}

func readNewPIDs(r *attach.Reading, _ *attach.Part, rows [][]string) {
	rate := attach.Median(column(rows, 1))
	r.State = attach.Context
	r.Figures = append(r.Figures, fmt.Sprintf("%s new processes a second in the median of %s",
		trim(rate), attach.Plural(len(rows), "second")))
	r.Means = "It counts new processes."
	r.Not = "What they cost is not in it."
	if rate >= manyThreads {
		r.State = attach.CannotTell
	}
	churn(r, rate, "processes")
}

func readKills(r *attach.Reading, _ *attach.Part, rows [][]string) {
	for _, m := range rows[:min(3, len(rows))] {
		r.Figures = append(r.Figures,
			fmt.Sprintf("%s (pid %s) was killed, as %s (pid %s) asked for memory", m[4], m[3], m[2], m[1]))
	}
	r.Means = "Memory ran out, of the host or of a cgroup, and a process was killed: an end and a restart, and by itself no cause of latency."
	r.Not = "How slow requests were before the kill is not in it, nor whether a cgroup's limit was reached: dmesg says that."
	r.Next = append(r.Next, attach.Next{Command: "dmesg -T | grep -i -A 30 'out of memory'",
		Why: "whose limit was reached, and what used the memory"})
}

func readSubnets(r *attach.Reading, _ *attach.Part, rows [][]string) {
	by, total := map[string]float64{}, 0.0
	for _, m := range rows {
		f, _ := number(m[2])
		by[m[1]] += f
		total += f
	}
	r.State = attach.Context
	for _, name := range attach.Largest(by)[:min(3, len(by))] {
		r.Figures = append(r.Figures, fmt.Sprintf("%s: %s of %s bytes sent", name, count(by[name]), count(total)))
	}
	r.Means = "It says to which networks bytes went."
	r.Not = "No time is in it."
}

func readCritical(r *attach.Reading, _ *attach.Part, rows [][]string) {
	l, who := column(rows, 3), ""
	longest := 0.0
	for _, m := range rows {
		if f, _ := number(m[3]); f > longest {
			longest, who = f, m[1]
		}
	}
	r.Figures = append(r.Figures, fmt.Sprintf("%s: median %s, longest %s (%s)",
		attach.Plural(len(rows), "long section"), lasts(attach.Median(l)*1e-6), lasts(longest*1e-6), who))
	r.Means = "So long the kernel kept a CPU with interrupts or preemption off: whoever wanted that CPU meanwhile waited."
	r.Not = "Only sections above the threshold are listed, so they are no share of all; who waited is not in it."
	if longest < 1000 {
		r.Means = "The kernel kept CPUs with interrupts or preemption off for less than a millisecond at a time: real-time programs feel that, and services hardly do."
	}
}

// readPercentiles reads the last report of biolatpcts: it has no number of I/Os.
func readPercentiles(r *attach.Reading, p *attach.Part, _ [][]string) {
	var heads []string
	slow, reports := "", 0
	worst, others := time.Duration(0), false
	by := map[string]string{}
	for _, text := range texts(p) {
		f := strings.Fields(text)
		if percentiles.MatchString(text) {
			heads, reports = f[1:], reports+1
			continue
		}
		if len(f) != len(heads)+1 || f[0] != "read" && f[0] != "write" && f[0] != "flush" {
			continue
		}
		for i, h := range heads {
			pct, _ := number(strings.TrimPrefix(h, "p"))
			d, err := time.ParseDuration(f[i+1])
			if err != nil || pct > 99 || pct < 50 {
				continue
			}
			if pct == 50 || i+1 == len(heads) || h == "p99" || h == "99" {
				by[f[0]] += fmt.Sprintf(" p%.4g %s", pct, f[i+1])
			}
			if f[0] == "read" && d > worst {
				worst, slow = d, fmt.Sprintf("reads: p%.4g is %s", pct, f[i+1])
			}
			others = others || f[0] != "read" && d >= 10*time.Millisecond
		}
	}
	for _, kind := range []string{"read", "write", "flush"} {
		if by[kind] != "" && reports == 1 {
			r.Figures = append(r.Figures, kind+":"+by[kind])
		}
	}
	if slow != "" && len(r.Figures) == 0 {
		r.Figures = append(r.Figures, "the worst "+slow+" of "+attach.Plural(reports, "report"))
	}
	r.Title = "biolatpcts, " + attach.Plural(max(reports, 1), "report")
	r.Not = "How many I/Os there were is not in it, nor who waited: write-back waits for nobody."
	switch {
	case worst >= 10*time.Millisecond:
		r.Means = "Some reads took 10 ms or longer, which rotating and remote disks do without being ill."
		r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Candidate, Proof: []string{slow}})
		r.Next = append(r.Next, record(0, "whether requests waited for it"))
	case worst > 0 && others:
		r.Means = "The disk answered reads in time; some writes or flushes took 10 ms or longer, for which only those wait who sync."
	case worst > 0:
		r.State, r.Means = attach.Healthy, "The disk answered in time, up to the 99th percentile of what is here."
		r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Against})
	default:
		r.Means = "It has no percentile of reads up to the 99th."
	}
}

func readQueues(r *attach.Reading, _ *attach.Part, rows [][]string) {
	queues := map[string]bool{}
	for _, m := range rows {
		if m[1] != "Total" {
			queues[m[1]] = true
		}
	}
	r.State = attach.Context
	r.Figures = append(r.Figures, attach.Plural(len(queues), "queue")+" of a network device")
	r.Means = "It says how packets were spread over the queues of a network device."
	r.Not = "How long a packet waited, and whether one was dropped, is not in it: ip -s link says that."
}

// readFutexes reads futexctn. Waits of idle threads for work go through futexes as well.
func readFutexes(r *attach.Reading, _ *attach.Part, rows [][]string) {
	by, says, total := map[string]float64{}, map[string]string{}, 0.0
	for _, m := range rows {
		times, _ := number(m[4])
		avg, _ := number(m[5])
		unit := map[byte]float64{'n': 1e-9, 'u': 1e-6, 'm': 1e-3, 's': 1}[m[6][0]]
		s := times * avg * unit
		by[m[3]] += s
		total += s
		says[m[3]] = m[1]
	}
	for _, lock := range attach.Largest(by)[:min(3, len(by))] {
		r.Figures = append(r.Figures, fmt.Sprintf("%s: %s waited %s in all", lock, says[lock], lasts(by[lock])))
	}
	r.Title = "futexctn, " + attach.Plural(len(by), "futex")
	r.Means = fmt.Sprintf("Threads waited %s on futexes: for locks, or for work to do.", lasts(total))
	r.Not = "An idle thread that waits for work waits on a futex as well: only the stack tells the two apart."
	if total >= 0.1 && len(r.Figures) > 0 {
		r.Signs = append(r.Signs, attach.Sign{Cause: "lock-contention", Grade: attach.Candidate, Proof: r.Figures[:1]})
		r.Next = append(r.Next, record(0, "whose requests waited, and who held the lock"))
	}
}

func readDeadlock(r *attach.Reading, _ *attach.Part, rows [][]string) {
	r.Title = "deadlock, " + attach.Plural(len(rows), "cycle of locks")
	r.Means = "Threads take the same locks in different orders: two of them may wait for each other for ever."
	r.Not = "It does not say that they did so, nor that anybody waited: a dump of all stacks does."
	r.Next = append(r.Next, ask("gdb -p PID -batch -ex 'thread apply all bt'", 0,
		"whether two threads hold what the other wants"))
}

func readLoads(r *attach.Reading, _ *attach.Part, rows [][]string) {
	r.State = attach.Context
	r.Figures = append(r.Figures, fmt.Sprintf("load over one minute: %.3g in the median of %s",
		attach.Median(column(rows, 1)), attach.Plural(len(rows), "sample")))
	r.Means = "A load average counts threads that run, want to run, or sleep in the kernel without being woken by signals."
	r.Not = "Without the number of CPUs, and what the threads wait for, nothing follows from it."
	r.Next = append(r.Next, ask("vmstat 1 10; nproc", 0, "r against the number of CPUs, b and wa"))
}
