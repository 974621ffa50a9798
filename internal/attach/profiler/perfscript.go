package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var perfScript = &attach.Kind{Name: "perf script", Claim: claimPerfScript, Read: readPerfScript}

var (
	// "java 43869/44 [025] 51499.133872:          1 page-faults: ", with or without most of it
	scriptHead = pattern.New(`^(\S.{0,30}?)\s+(\d+)(?:/\s*(\d+))?\s+(?:\[(\d+)\]\s+)?(?:(\d+\.\d+):\s+)?(?:(\d+)\s+)?([A-Za-z][\w./,=-]*(?::[\w-]+){0,2}):(?:\s+(.*))?$`)
	// "   80786 _int_malloc+0x28 (/lib/libc.so)"
	scriptFrame = pattern.New(`^([0-9a-f]{1,16})\s+(\S.*?)\s+\((.*)\)$`)
	scriptCut   = pattern.New(`^[0-9a-f]{6,16}\s+\S.*\s+\([^)]*$`) // its end was cut off
	inlined     = pattern.New(`^\S.*\s+\(inlined\)$`)
)

// softEvents are names of events without a colon.
var softEvents = words(`cpu-clock task-clock cycles cpu-cycles instructions page-faults faults minor-faults major-faults context-switches cs cpu-migrations migrations
	cache-misses cache-references branches branch-misses branch-instructions bus-cycles ref-cycles stalled-cycles-frontend stalled-cycles-backend offcpu off-cpu
	alignment-faults emulation-faults offcpu-time itimer LLC-load-misses LLC-loads dTLB-load-misses iTLB-load-misses L1-dcache-load-misses`)

// scriptEvent reports whether a name is of an event that perf samples.
func scriptEvent(name string) bool {
	base, sub, ok := strings.Cut(name, ":")
	return softEvents[base] || strings.HasPrefix(base, "cpu_") || strings.HasPrefix(base, "cpu/") || ok && sub != "" && eventSystems[base]
}

// eventSystems are subsystems of tracepoints and probes.
var eventSystems = words(`sched syscalls raw_syscalls block irq kmem net skb sock tcp timer workqueue writeback ext4 xfs btrfs jbd2 nfs vmscan compaction migrate huge_memory
	exceptions power probe probe_libc sdt_libc signal task filemap lock contention mmap_lock irq_vectors tlb ipi rcu kvm kvmmmu napi scsi nvme msr random cgroup oom page_pool
	context_tracking cpuhp fib hwmon i2c iommu mce mdio module netlink pagemap percpu qdisc ras regmap rpm sunrpc thermal udp xdp xen clk fs_dax bpf_trace`)

func scriptHeadOf(text string) []string {
	if !namesEvent(text) {
		return nil
	}
	m := scriptHead.FindStringSubmatch(text)
	if m == nil || !scriptEvent(m[7]) || m[4] == "" && m[5] == "" && m[6] == "" && m[8] != "" && !scriptFrame.MatchString(m[8]) {
		return nil
	}
	return m
}

// namesEvent reports whether a word of a line is an event with a colon after it. It is what spares
// the lines of a long log the expression.
func namesEvent(text string) bool {
	for at := 0; at < min(len(text), 160); {
		i := strings.IndexByte(text[at:], ':')
		if i < 0 {
			return false
		}
		i += at
		if i+1 == len(text) || text[i+1] == ' ' {
			if scriptEvent(text[strings.LastIndexByte(text[:i], ' ')+1 : i]) {
				return true
			}
		}
		at = i + 1
	}
	return false
}

func claimPerfScript(lines []paste.Line) int {
	first := strings.TrimSpace(lines[0].Text)
	if scriptHeadOf(first) == nil && !scriptFrame.MatchString(first) && !scriptComment(first) {
		return 0
	}
	heads, frames := 0, 0
	n := claimed(lines, func(_ int, text string) bool {
		switch {
		case scriptHeadOf(text) != nil:
			heads++
		case heads > 0 && scriptCut.MatchString(text):
		case scriptFrame.MatchString(text) && (heads > 0 || !strings.HasPrefix(text, "0 ") || strings.Contains(text, "[unknown]")):
			frames++
		case heads+frames > 0 && inlined.MatchString(text):
		case scriptComment(text):
		default:
			return heads+frames > 0 && text == "..."
		}
		return true
	})
	if heads == 0 && frames < 3 {
		return 0
	}
	return n
}

// scriptComment reports whether a line is of the header that perf script prints.
func scriptComment(text string) bool {
	rest, ok := strings.CutPrefix(text, "#")
	if !ok {
		return false
	}
	rest = strings.TrimSpace(rest)
	return rest == "" || rest == "========" || perfHeaderField(rest) || strings.HasPrefix(rest, "HEADER_") || strings.HasPrefix(rest, "contains ")
}

// scripted is what a part of perf script holds, by events.
type scripted struct {
	order  []string
	events map[string]*scriptedEvent
}

type scriptedEvent struct {
	p           profile
	counted     float64 // periods: of events that are counted, how many there were
	first, last float64 // s
}

func readScript(p *attach.Part) *scripted {
	s := &scripted{events: map[string]*scriptedEvent{}}
	var now *scriptedEvent
	for _, text := range texts(p) {
		if m := scriptHeadOf(text); m != nil {
			now = s.head(m)
			if now != nil && m[8] != "" {
				now.frame(m[8])
			}
			continue
		}
		if now != nil {
			now.frame(text)
		}
	}
	return s
}

func (s *scripted) head(m []string) *scriptedEvent {
	e := s.events[m[7]]
	if e == nil {
		if len(s.order) >= 256 {
			return nil
		}
		e = &scriptedEvent{}
		s.events[m[7]] = e
		s.order = append(s.order, m[7])
	}
	if at, ok := number(m[5]); ok && m[5] != "" {
		if e.first == 0 {
			e.first = at
		}
		e.last = at
	}
	period, ok := number(m[6])
	if !ok || m[6] == "" {
		period = 1
	}
	e.counted += period
	e.p.number++
	e.p.pid, _ = whole(m[2])
	if len(e.p.samples) < most {
		e.p.samples = append(e.p.samples, sample{weight: 1, comm: strings.TrimSpace(m[1])})
	}
	return e
}

// frame adds a function to the last sample.
func (e *scriptedEvent) frame(text string) {
	m := scriptFrame.FindStringSubmatch(text)
	if m == nil || len(e.p.samples) == 0 {
		return
	}
	s := &e.p.samples[len(e.p.samples)-1]
	name := m[2]
	if i := strings.LastIndex(name, "+0x"); i > 0 {
		name = name[:i]
	}
	if name == "[unknown]" {
		name = ""
	}
	f := kernel.Frame{Func: name, Module: m[3]}
	if len(s.kernel)+len(s.program) > 0 {
		e.p.stacks = true
	}
	switch {
	case kernelModule(m[3]) && len(s.program) == 0 && len(s.kernel) < 256:
		f.Module = "kernel"
		s.kernel = append(s.kernel, f)
	case len(s.program) < 256:
		s.program = append(s.program, f)
	}
}

// kernelModule reports whether perf names the kernel or a module of it.
func kernelModule(module string) bool {
	switch {
	case strings.HasPrefix(module, "[kernel"), strings.Contains(module, "vmlinux"), strings.HasSuffix(module, ".ko"), strings.Contains(module, ".ko."):
		return true
	case strings.HasPrefix(module, "["):
		return module != "[unknown]" && module != "[vdso]" && module != "[heap]" && module != "[stack]" && module != "[vsyscall]" && !strings.HasPrefix(module, "[anon")
	}
	return false
}

func readPerfScript(p *attach.Part) attach.Reading {
	s := readScript(p)
	var best string
	for _, name := range s.order {
		b, e := s.events[best], s.events[name]
		if b == nil || cpuEvent(name) && !cpuEvent(best) || cpuEvent(name) == cpuEvent(best) && e.p.number > b.p.number {
			best = name
		}
	}
	if best == "" {
		return attach.Reading{Title: "perf script, a stack without its event", State: attach.CannotTell,
			Means: "The line that names the event of this stack was cut off: it may be CPU time, a fault or a switch."}
	}
	e := s.events[best]
	one := true
	for i := range e.p.samples {
		one = one && e.p.samples[i].comm == e.p.samples[0].comm
	}
	if !one {
		e.p.pid = 0
	}
	title := fmt.Sprintf("perf script, %s of event %s", attach.Plural(e.p.number, "sample"), best)
	if d := e.last - e.first; d > 0 {
		title += " in " + lasts(d)
	}
	if len(s.order) > 1 {
		title += fmt.Sprintf(", and %s", attach.Plural(len(s.order)-1, "other event"))
	}
	if cpuEvent(best) {
		r := e.p.reading()
		r.Title = title
		return r
	}
	return scriptEvents(e, title, best)
}

// scriptEvents is the reading of samples that are no CPU time.
func scriptEvents(e *scriptedEvent, title, event string) attach.Reading {
	r := otherEvent(&e.p, title, event, e.counted)
	t := e.p.sum()
	if s := t.top(t.comms, 4, 0); s != "" {
		r.Figures = append(r.Figures[:1], "by program: "+s)
	}
	base, _, _ := strings.Cut(event, ":")
	switch {
	case strings.HasSuffix(event, "faults"):
		r.Means = "The samples are page faults and not CPU samples: they say where memory is touched for the first time, as programs do while they start. No latency is in them."
		r.Not = "Faults by themselves are no cause of slowness: how long they took is not in it."
	case base == "sched":
		r.Means = "These are scheduler events and no CPU samples: a thread that leaves its CPU mostly has nothing to do."
		r.Not = "Time off CPU follows only from pairs of switches, and waits for work are most of it."
		r.Next = []attach.Next{ask("perf sched timehist", 0, "it pairs the switches: how long threads waited, and for a CPU"),
			ask("perf sched latency", 0, "the delay of each task")}
	case strings.Contains(event, "offcpu") || strings.Contains(event, "off-cpu"):
		r.Means = "The samples are time off CPU: waits, most of which are for work."
	}
	return r
}
