package kernelfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// Facts of /proc/stat between two samples, as shares of all CPU time.
const (
	FactStealShare attach.FactName = "/host/cpu/steal:ratio"
	FactIdleShare  attach.FactName = "/host/cpu/idle:ratio"
)

var cpuLine = pattern.New(`^cpu(\d*)((?: +\d+){7,10})$`)

var procStat = &attach.Kind{
	Name: "/proc/stat", Joins: true, Hints: []string{"cpu", ":"},
	Claim: starting("c", 400, repeated(func(lines []paste.Line) int {
		cpus := 0
		n := run(lines, func(t string) bool {
			if cpuLine.MatchString(t) {
				cpus++
				return true
			}
			first, rest, _ := strings.Cut(t, " ")
			switch first {
			case "intr", "ctxt", "btime", "processes", "procs_running", "procs_blocked", "softirq", "preempt":
				return cpus > 0 && strings.Trim(rest, "0123456789 ") == ""
			}
			return false
		})
		return attach.ClaimIf(cpus > 0, n)
	})),
	Read: readProcStat,
}

// cpuTimes are user, nice, system, idle, iowait, irq, softirq, steal in ticks.
type cpuTimes [8]float64

func (c cpuTimes) sum() (all float64) {
	for _, v := range c {
		all += v
	}
	return all
}

func readProcStat(p *attach.Part) attach.Reading {
	all := samples(p, func(sofar []string, line string) bool {
		word, _, _ := strings.Cut(line, " ")
		return slices.ContainsFunc(sofar, func(s string) bool { return strings.HasPrefix(s, word+" ") })
	})
	last := all[len(all)-1]
	times, cpus := totalTimes(last.lines)
	of := plural(cpus, "CPU", "CPUs")
	if cpus == 0 {
		of = "the row of all CPUs" // a person took that row alone
	}
	r := attach.Reading{Title: fmt.Sprintf("/proc/stat, %s, read once", of), Boot: true,
		State: attach.Healthy, Time: all[0].at}
	when := "since boot"
	if len(all) > 1 {
		from, _ := totalTimes(all[0].lines)
		now := times
		fell := false
		for i := range now {
			now[i] -= from[i]
			fell = fell || now[i] < 0 && i != 4 && i != 3 // idle and iowait may fall a little
		}
		if !fell && now.sum() > 0 {
			times, r.Boot, when = now, false, "between the samples"
			r.Title = fmt.Sprintf("/proc/stat, %s, %d samples%s", of, len(all), over(span(all)))
		}
	}
	total := times.sum()
	busy := total - times[3] - times[4]
	steal := ratio(times[7], busy)
	r.Figures = []string{
		fmt.Sprintf("%s idle, %s user, %s system, %s iowait, %s", percent(ratio(times[3], total)),
			percent(ratio(times[0]+times[1], total)), percent(ratio(times[2], total)),
			percent(ratio(times[4], total)), when),
		fmt.Sprintf("%s steal (%s of the time in which CPUs were not idle)",
			percent(ratio(times[7], total)), percent(steal)),
		fmt.Sprintf("%s in softirqs, %s in interrupts", percent(ratio(times[6], total)),
			percent(ratio(times[5], total))),
	}
	r.Not = "that anybody waited for a disk: iowait is idle time of CPUs while a task waits for I/O, of NFS as well"
	if r.Boot {
		r.Not = "what happens now, since these are averages since boot; nor " + r.Not
		r.Next = []attach.Next{{Command: "grep '^cpu ' /proc/stat; sleep 10; grep '^cpu ' /proc/stat", Why: "the shares of now"}}
		r.State, r.Means = attach.CannotTell, "Since boot, on average: which of it happens now it cannot say."
		if steal >= 0.10 {
			r.State = attach.CannotTell
			r.Means = fmt.Sprintf("Since boot the hypervisor took %s of the time in which this machine had work.", percent(steal))
			r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-steal", Grade: attach.Candidate,
				Share: steal, Proof: r.Figures[1:2]})
		}
		return r
	}
	r.Facts = append(r.Facts, attach.Fact{Name: FactStealShare, Value: ratio(times[7], total)},
		attach.Fact{Name: FactIdleShare, Value: ratio(times[3], total)})
	judgeTimes(&r, times, steal)
	return r
}

// judgeTimes says what shares between two samples mean.
func judgeTimes(r *attach.Reading, times cpuTimes, steal float64) {
	total := times.sum()
	switch {
	case steal >= 0.10 && ratio(times[7], total) >= 0.02:
		r.State = attach.Ill
		r.Means = fmt.Sprintf("The hypervisor took %s of the time in which this machine had work.", percent(steal))
		r.Signs = []attach.Sign{{Cause: "cpu-steal", Grade: attach.Found, Sure: finding.Possible,
			Share: steal, Proof: r.Figures[1:2]}}
	case ratio(times[6], total) < 0.10 && ratio(times[5], total) >= 0.20:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("Hard interrupts take %s of the CPU time, or are booked for it: some kernels book idle time so.", percent(ratio(times[5], total)))
	case ratio(times[6]+times[5], total) >= 0.20:
		r.State = attach.CannotTell
		r.Means = "Much of the CPU time goes to interrupts and softirqs, which may be of the service's own packets."
		r.Signs = []attach.Sign{{Cause: "softirq", Grade: attach.Candidate, Proof: r.Figures[2:3]}}
	case ratio(times[3]+times[4], total) < 0.05:
		r.State = attach.CannotTell
		r.Means = "The CPUs are all but fully used: who uses them, and who waits, it does not say."
		r.Next = []attach.Next{{Command: "cat /proc/pressure/cpu; top -b -n 1 | head -20",
			Why: "who wants the CPUs, and for how long tasks wait for them"}}
	default:
		r.Means = fmt.Sprintf("CPUs are %s idle: as a whole they are not short. A quota or a single full CPU does not show here.", percent(ratio(times[3]+times[4], total)))
	}
}

// totalTimes reads the line of all CPUs, or adds up those of each.
func totalTimes(lines []string) (sum cpuTimes, cpus int) {
	hasAll := false
	for _, t := range lines {
		m := cpuLine.FindStringSubmatch(t)
		if m == nil {
			continue
		}
		if m[1] != "" {
			cpus++
		}
		if hasAll && m[1] != "" {
			continue
		}
		hasAll = hasAll || m[1] == ""
		for i, w := range strings.Fields(m[2]) {
			if v, err := strconv.ParseFloat(w, 64); err == nil && i < len(sum) {
				sum[i] += v
			}
		}
	}
	return sum, cpus
}

var loadavgLine = pattern.New(`^(\d{1,10}[.,]\d\d) (\d{1,10}[.,]\d\d) (\d{1,10}[.,]\d\d) (\d{1,7})/(\d{1,8}) \d{1,9}(?:\s+(?:<|#|←|//).{0,80})?$`)

var loadavg = &attach.Kind{
	Name: "/proc/loadavg", Hints: []string{"/"},
	Claim: func(lines []paste.Line) int {
		if len(lines[0].Text) > 140 {
			return 0
		}
		return run(lines, loadavgLine.MatchString)
	},
	Read: func(p *attach.Part) attach.Reading {
		m := loadavgLine.FindStringSubmatch(strings.TrimSpace(p.Lines[len(p.Lines)-1].Text))
		if whole, _, _ := strings.Cut(strings.ReplaceAll(m[1], ",", "."), "."); len(whole) > len("4194304") {
			return attach.Reading{
				Title: "/proc/loadavg", State: attach.CannotTell, Glance: true,
				Figures: []string{fmt.Sprintf("%s runnable at this moment, of %s", m[4], m[5])},
				Means:   "A load of " + m[1] + " is no number of tasks: a counter of the kernel fell below zero.",
				Not:     "that anything queues: the averages are of no use",
				Next: []attach.Next{{Command: "vmstat 1 10; cat /proc/pressure/*",
					Why: "r and b: what tasks wait for, without the load average"}},
			}
		}
		means := "Load counts tasks that run, are queued, or sleep for a disk or a lock of the kernel: alone it tells no shortage, and needs the number of CPUs."
		if load, now := float(strings.Replace(m[1], ",", ".", 1)), float(m[4]); load >= 4 && now <= load/3 {
			means = fmt.Sprintf("Only %s runnable at this moment, against a load of %s over the last minute: either that demand for CPUs is over, or most of the load is tasks in uninterruptible sleep (D).", plural(int(now), "task is", "tasks are"), m[1])
		}
		return attach.Reading{
			Title: "/proc/loadavg", State: attach.CannotTell, Glance: true,
			Figures: []string{
				fmt.Sprintf("%s tasks running or in uninterruptible sleep over 1 minute, %s over 5, %s over 15", m[1], m[2], m[3]),
				fmt.Sprintf("%s runnable at this moment, of %s", m[4], m[5]),
			},
			Means: means,
			Not:   "that CPUs are short: tasks that wait for a disk or NFS, and kernel threads parked in D, count as well",
			Next:  []attach.Next{{Command: "nproc; ps -eLo state,wchan:32,comm | grep ^D; cat /proc/pressure/*", Why: "what tasks wait for"}},
		}
	},
}

// contextKind makes a kind of lines of which only context follows.
func contextKind(name string, hints []string, claim func([]paste.Line) int,
	read func(lines []string) (figures []string, means string)) *attach.Kind {
	return &attach.Kind{
		Name: name, Hints: hints, Claim: claim, Context: true,
		Read: func(p *attach.Part) attach.Reading {
			var lines []string
			for _, l := range p.Lines {
				if t := strings.TrimSpace(l.Text); t != "" {
					lines = append(lines, t)
				}
			}
			figures, means := read(lines)
			return attach.Reading{Title: name, Figures: figures, Means: means, State: attach.Healthy}
		},
	}
}

var nodeCounters = oneOf("numa_hit numa_miss numa_foreign interleave_hit local_node other_node")

// nodeStat is the file numastat that sysfs has for each NUMA node; its counters are since boot.
var nodeStat = contextKind("numastat of a NUMA node (sysfs)",
	[]string{"numa_", "interleave_hit", "local_node", "other_node"}, func(lines []paste.Line) int {
		return claimPairs(lines, nodeCounters, oneOf("local_node other_node"), nil, 7)
	}, func(lines []string) (figures []string, means string) {
		m := parsePairs(lines)
		for _, n := range []string{"local_node", "other_node", "numa_miss", "numa_foreign"} {
			if m.has(n) {
				figures = append(figures, fmt.Sprintf("%s pages: %s", number(m.get(n)), map[string]string{
					"local_node":   "given to tasks of the node itself (local_node)",
					"other_node":   "given to tasks of other nodes (other_node)",
					"numa_miss":    "given here though another node was wanted (numa_miss)",
					"numa_foreign": "wanted here and given elsewhere (numa_foreign)",
				}[n]))
			}
		}
		return figures, "Counters since boot of where pages were given out: how often tasks touch memory of another node they do not say."
	})
