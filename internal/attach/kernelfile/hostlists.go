package kernelfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// swaps is /proc/swaps, "swapon -s" and "swapon --show".
var swaps = contextKind("swaps", []string{"Filename", "NAME"}, func(lines []paste.Line) int {
	if f := strings.Fields(lines[0].Text); !slices.Equal(f,
		[]string{"Filename", "Type", "Size", "Used", "Priority"}) &&
		!slices.Equal(f, []string{"NAME", "TYPE", "SIZE", "USED", "PRIO"}) {
		return 0
	}
	return 1 + run(lines[1:], func(t string) bool {
		f := strings.Fields(t)
		return len(f) == 5 && (f[1] == "partition" || f[1] == "file" || f[1] == "zram")
	})
}, func(lines []string) (figures []string, means string) {
	for _, t := range lines[1:] {
		f := strings.Fields(t)
		if size, err := strconv.ParseFloat(f[2], 64); err == nil {
			used := float(f[3])
			figures = append(figures, fmt.Sprintf("%s: %s of %s used (%s)", printed(f[0]),
				mem(used*1024), mem(size*1024), percent(ratio(used, size))))
			continue
		}
		figures = append(figures, printed(fmt.Sprintf("%s: %s of %s used", f[0], f[3], f[2])))
	}
	if len(figures) == 0 {
		return []string{"no swap"},
			"There is no swap: memory that is short is taken from the page cache, or a process is killed."
	}
	return figures, "It says how full swap is, and nothing of how much is read back now: pages that nobody uses may stay there for ever (vmstat 1 has si and so)."
})

// cgroupControllers is /proc/cgroups.
var cgroupControllers = contextKind("/proc/cgroups", []string{"#subsys_name"}, func(lines []paste.Line) int {
	if !slices.Equal(strings.Fields(lines[0].Text), []string{"#subsys_name", "hierarchy", "num_cgroups", "enabled"}) {
		return 0
	}
	return 1 + run(lines[1:], func(t string) bool {
		f := strings.Fields(t)
		_, ok := columns(f[min(1, len(f)):], "hierarchy", "number", "enabled")
		return len(f) == 4 && ok
	})
}, func(lines []string) (figures []string, means string) {
	var off []string
	most, name := 0.0, ""
	version := "2"
	for _, t := range lines[1:] {
		f := strings.Fields(t)
		if f[3] == "0" {
			off = append(off, printed(f[0]))
		}
		if f[1] != "0" {
			version = "1"
		}
		if v, _ := count(f[2]); v > most {
			most, name = v, f[0]
		}
	}
	figures = append(figures, fmt.Sprintf("%s; %s groups at most (%s)",
		plural(len(lines)-1, "controller", "controllers"), number(most), printed(name)))
	if len(lines) > 1 {
		figures = append(figures, "hierarchies of version "+version+" are in use")
	}
	if len(off) > 0 {
		figures = append(figures, "switched off: "+strings.Join(off[:min(4, len(off))], ", "))
	}
	return figures, "It says which controllers the kernel has, and nothing of slowness; thousands of memory groups may make their accounting slow."
})

// fileLocks is /proc/locks: locks of files that processes hold, and who waits ("->").
var fileLocks = &attach.Kind{
	Name: "/proc/locks", Hints: []string{" FLOCK ", " POSIX ", " OFDLCK ", " LEASE "},
	Claim: func(lines []paste.Line) int { return run(lines, fileLock.MatchString) },
	Read: func(p *attach.Part) attach.Reading {
		waits, held := 0, 0
		for _, l := range p.Lines {
			switch {
			case strings.Contains(l.Text, "-> "):
				waits++
			case strings.TrimSpace(l.Text) != "":
				held++
			}
		}
		r := attach.Reading{Title: "/proc/locks, " +
			plural(held, "lock of a file", "locks of files"), State: attach.Healthy, Glance: true}
		r.Figures = append([]string{plural(waits, "process waits for one",
			"processes wait for one")}, lockQueues(p.Lines)...)
		r.Means = "No process waits for a lock of a file at this instant."
		if waits > 0 {
			r.State = attach.CannotTell
			r.Means = "Processes wait for a lock of a file that another one holds: for how long is not in it."
			r.Not = "that it costs anybody time: servers let their workers queue for a lock of a file until work comes; locks inside of a process are not here"
			r.Next = []attach.Next{{Command: "lslocks", Why: "names the file, its holder, and who waits (BLOCKER)"}}
		}
		return r
	},
}

var fileLock = pattern.New(`^(\d+): +(-> +)?(FLOCK|POSIX|OFDLCK|LEASE|ACCESS|DELEG) +(ADVISORY|MANDATORY|MSNFS|ACTIVE|BREAKING|BREAKER|UNLCK) +(READ|WRITE|NONE|RW|UNLCK) +(-?\d+) +([0-9a-f]+:[0-9a-f]+:\d+|<none>:\d+) +\d+ +(\d+|EOF)$`)

// lockQueues says of each lock with waiters who holds it and who waits. Waiters follow the holder,
// with its number.
func lockQueues(lines []paste.Line) (out []string) {
	held := map[string][]string{}
	waits := map[string][]string{}
	var order []string
	for _, l := range lines {
		m := fileLock.FindStringSubmatch(strings.TrimSpace(l.Text))
		switch {
		case m == nil:
		case m[2] == "":
			held[m[1]] = m
		default:
			if waits[m[1]] == nil {
				order = append(order, m[1])
			}
			waits[m[1]] = append(waits[m[1]], m[6])
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(len(waits[b]), len(waits[a])) })
	for _, n := range order[:min(2, len(order))] {
		who := plural(len(waits[n]), "process", "processes") + " (" + listed(waits[n], 8) + ")"
		if m := held[n]; m != nil {
			out = append(out, fmt.Sprintf("%s for the %s %s lock that pid %s holds on %s", who,
				m[3], strings.ToLower(m[5]), m[6], m[7]))
		} else {
			out = append(out, who+" for a lock whose holder is not in the paste")
		}
	}
	return out
}

// schedDebug is /proc/sched_debug, or sched/debug of debugfs: the run queue of each CPU.
var schedDebug = &attach.Kind{
	Name: "sched_debug", Hints: []string{"Sched Debug Version:", "cpu#", "runnable tasks:", "cfs_rq["},
	Claim: func(lines []paste.Line) int {
		text := strings.TrimSpace(lines[0].Text)
		if !strings.HasPrefix(text, "Sched Debug Version: ") && !schedCPU.MatchString(text) &&
			!strings.HasPrefix(text, "cfs_rq[") && text != "runnable tasks:" {
			return 0
		}
		own := 0
		n := attach.ClaimWhile(lines, func(_ int, text string) bool {
			t := strings.TrimSpace(text)
			if schedCPU.MatchString(t) || schedGroup.MatchString(t) {
				own++
				return true
			}
			return schedPair.MatchString(t) || schedTask(t) ||
				strings.HasPrefix(t, "Sched Debug Version: ") ||
				strings.HasPrefix(t, "sysctl_sched") || t == "runnable tasks:" ||
				strings.HasPrefix(t, "----------") || strings.HasPrefix(t, "S ") || strings.HasPrefix(t, "task ")
		})
		return attach.ClaimIf(own > 0, n)
	},
	Read: readSchedDebug,
}

var (
	schedCPU   = pattern.New(`^cpu#(\d+)(, [\d.]+ MHz)?$`)
	schedGroup = pattern.New(`^(cfs|rt|dl|scx)_rq\[(\d+)\]:`)
	schedPair  = pattern.New(`^\.?[\w.>()/-]+ *: -?[\d.+-]+( \(\w+\))?$`)
)

// schedTask reports whether a line is a task: a state (">R" runs now), or none before Linux 5.6, a
// name that may have blanks, a pid, and many numbers.
func schedTask(text string) bool {
	f := strings.Fields(text)
	if len(f) < 8 || len(text) > 400 {
		return false
	}
	numbers := 0
	for _, w := range f {
		if _, err := strconv.ParseFloat(w, 64); err == nil {
			numbers++
		}
	}
	return numbers >= 6
}

func readSchedDebug(p *attach.Part) attach.Reading {
	r := attach.Reading{Title: "sched_debug, one glance at the run queues", State: attach.CannotTell, Glance: true}
	type queue struct {
		cpu     string
		running float64
	}
	var all []queue
	throttled := 0
	host := false // the lines of a CPU come first, those of its groups below it
	for _, l := range p.Lines {
		t := strings.TrimSpace(l.Text)
		if m := schedCPU.FindStringSubmatch(t); m != nil {
			all = append(all, queue{cpu: m[1]})
			host = true
			continue
		}
		if schedGroup.MatchString(t) {
			host = false
		}
		name, value, ok := strings.Cut(t, ":")
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			continue
		}
		switch strings.TrimSpace(name) {
		case ".nr_running":
			if host && len(all) > 0 {
				all[len(all)-1].running = v
			}
		case ".throttled":
			if v > 0 {
				throttled++
			}
		}
	}
	busy, waiting := 0, 0.0
	for _, q := range all {
		if q.running > 0 {
			busy++
		}
		waiting += max(0, q.running-1)
	}
	slices.SortStableFunc(all, func(a, b queue) int { return cmp.Compare(b.running, a.running) })
	if len(all) > 0 {
		r.Figures = append(r.Figures,
			fmt.Sprintf("%d of %s busy, %s threads wait behind those that run", busy,
				plural(len(all), "CPU", "CPUs"), number(waiting)))
		r.Figures = append(r.Figures, fmt.Sprintf("longest queue: %s on CPU %s", number(all[0].running), all[0].cpu))
	}
	if throttled > 0 {
		r.Figures = append(r.Figures, plural(throttled, "queue of a cgroup is",
			"queues of cgroups are")+" throttled at this instant")
	}
	r.Means = "It lists who can run on which CPU at one instant; how long they waited, it does not say."
	r.Not = "a queue at one instant is no proof that threads wait for CPUs all the time"
	if throttled > 0 {
		r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-throttled", Grade: attach.Candidate,
			Proof: r.Figures[len(r.Figures)-1:]})
	}
	if len(all) > 0 && waiting >= float64(len(all)) {
		r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-contention", Grade: attach.Candidate, Proof: r.Figures[:1]})
		r.Means = "At this instant more threads wait for a CPU than there are CPUs: a glance, which a burst explains as well."
	}
	r.Next = []attach.Next{{Command: "vmstat 1 10", Why: "r against the number of CPUs, second by second"}}
	return r
}
