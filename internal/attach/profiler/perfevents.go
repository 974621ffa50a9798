package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// softEvents are names of events without a colon.
var softEvents = words(`cpu-clock task-clock cycles cpu-cycles instructions page-faults faults minor-faults major-faults context-switches cs cpu-migrations migrations
	cache-misses cache-references branches branch-misses branch-instructions bus-cycles ref-cycles stalled-cycles-frontend stalled-cycles-backend offcpu off-cpu
	alignment-faults emulation-faults offcpu-time itimer LLC-load-misses LLC-loads dTLB-load-misses iTLB-load-misses L1-dcache-load-misses`)

// scriptEvent reports whether a name is of an event that perf samples.
func scriptEvent(name string) bool {
	base, sub, ok := strings.Cut(name, ":")
	return softEvents[base] || strings.HasPrefix(base, "cpu_") || strings.HasPrefix(base, "cpu/") ||
		ok && sub != "" && eventSystems[base]
}

// eventSystems are subsystems of tracepoints and probes.
var eventSystems = words(`sched syscalls raw_syscalls block irq kmem net skb sock tcp timer workqueue writeback ext4 xfs btrfs jbd2 nfs vmscan compaction migrate huge_memory
	exceptions power probe probe_libc sdt_libc signal task filemap lock contention mmap_lock irq_vectors tlb ipi rcu kvm kvmmmu napi scsi nvme msr random cgroup oom page_pool
	context_tracking cpuhp fib hwmon i2c iommu mce mdio module netlink pagemap percpu qdisc ras regmap rpm sunrpc thermal udp xdp xen clk fs_dax bpf_trace`)

// cpuEvent reports whether samples of an event stand for CPU time.
func cpuEvent(event string) bool {
	if event == "" {
		return true
	}
	name := strings.ToLower(event)
	return strings.Contains(name, "cycles") && !strings.Contains(name, "stalled") ||
		strings.HasPrefix(name, "cpu-clock") || strings.HasPrefix(name, "task-clock") ||
		strings.HasPrefix(name, "cpu_clk") || name == "itimer" || strings.HasPrefix(name, "cpu/clock")
}

// otherEvent is the reading of samples that stand for something else than CPU time.
func otherEvent(p *profile, title, event string, n float64) attach.Reading {
	t := p.sum()
	r := attach.Reading{Title: title, Figures: t.figures(), State: attach.CannotTell}
	if n > 0 {
		r.Figures = append([]string{count(n) + " events " + event}, r.Figures...)
	}
	r.Means = fmt.Sprintf("The samples are events %s and not CPU time: they say where these happen, and not how long anything takes.", event)
	r.Not = "A count of events is no latency, and no cause of slowness by itself."
	r.Next = append(r.Next, ask("perf record -e cpu-clock -g -p PID -- sleep 10", 0, "where the CPU time goes"))
	return r
}

// scriptEvents is the reading of samples that are no CPU time.
func scriptEvents(e *scriptedEvent, title, event string) attach.Reading {
	e.p.counts = strings.HasPrefix(event, "block:")
	r := otherEvent(&e.p, title, event, e.counted)
	t := e.p.sum()
	if s := t.top(t.comms, 4, 0); s != "" {
		r.Figures = append(r.Figures[:1], "by program: "+s)
	}
	base, _, _ := strings.Cut(event, ":")
	switch {
	case strings.HasPrefix(event, "major-faults"):
		r.Means = "The samples are page faults for which the kernel had to read, and not CPU samples: they say where such memory is touched. No latency is in them."
		r.Not = "How long each read took is not in it."
	case strings.HasPrefix(event, "page-faults"), strings.HasPrefix(event, "faults"), strings.HasPrefix(event, "minor-faults"):
		r.Means = "The samples are page faults and not CPU samples: they say where memory is touched that is not mapped yet, as programs do while they start. No latency is in them."
		r.Not = "Faults by themselves are no cause of slowness: how long they took is not in it."
	case base == "sched":
		r.Means = "These are scheduler events and no CPU samples: a thread that leaves its CPU mostly has nothing to do."
		r.Not = "Time off CPU follows only from pairs of switches, and waits for work are most of it."
		r.Next = []attach.Next{ask("perf sched timehist", 0,
			"it pairs the switches: how long threads waited, and for a CPU"),
			ask("perf sched latency", 0, "the delay of each task")}
	case strings.Contains(event, "offcpu") || strings.Contains(event, "off-cpu"):
		r.Means = "The samples are time off CPU: waits, most of which are for work."
	}
	return r
}

// otherSections says what further events of a report were counted, of which the reading is not.
func otherSections(r *attach.Reading, sections []perfSection, read *perfSection) {
	for i := range sections {
		s := &sections[i]
		if s == read || s.rows == 0 || s.event == "" || s.event == read.event || len(r.Figures) >= 8 {
			continue
		}
		line := fmt.Sprintf("of event %s beside it: %s", s.event, attach.Plural(s.rows, "row"))
		if s.counted > 0 {
			line = fmt.Sprintf("%s events %s beside it", count(s.counted), s.event)
		}
		r.Figures = append(r.Figures[:1:1], append([]string{line}, r.Figures[1:]...)...)
	}
}
