package kernelfile

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// report is what one kernel log says, by the events in it.
type report struct {
	lines  int
	counts map[eventName]int
	first  map[eventName][]string // the groups of its first line
	tasks  []*task                // that hung, or were dumped as blocked
	owners []owner
	zones  []zone // of a Mem-Info dump
	stalls []float64
	atomic bool
	spin   string   // where a CPU was stuck
	bare   bool     // the machine is named, and is no virtual one
	below  []string // zones of a Mem-Info dump whose free memory is below its min watermark
	killed []string
}

// owner is who most likely holds a lock that a hung task waits for.
type owner struct{ waiter, lock, name, pid string }

func (o owner) String() string {
	return fmt.Sprintf("%s waits for the %s that %s (pid %s) most likely holds", printed(o.waiter), printed(o.lock), printed(o.name), o.pid)
}

// task is one that the kernel dumped.
type task struct {
	name  string
	pid   string
	state string
	hung  bool
	sure  []string // functions, innermost first
	maybe []string // those that may be left over
}

func readKlog(p *attach.Part) attach.Reading {
	rep := &report{lines: len(p.Lines), counts: map[eventName]int{}, first: map[eventName][]string{}}
	var now *task
	tracing := false
	for _, l := range p.Lines {
		text, _ := klogText(l.Text)
		if m := frameLine.FindStringSubmatch(text); m != nil {
			rep.frame(m, now, tracing || strings.Contains(text, ") from ")) // ARM has no heading
			continue
		}
		if strings.Contains(text, "Call Trace:") || strings.Contains(text, "Call trace:") {
			tracing = true
			continue
		}
		if e := eventOf(text); e != nil {
			tracing = false
			now = rep.event(e, text, now)
			continue
		}
		if t := taskHead(text); t != nil {
			tracing = false
			if now == nil || now.pid != t.pid || len(now.sure)+len(now.maybe) > 0 {
				now = t
				rep.tasks = append(rep.tasks, t)
			}
			now.state = t.state
			continue
		}
		rep.other(text)
	}
	return rep.read(p)
}

func taskHead(text string) *task {
	m := taskLine.FindStringSubmatch(text)
	if m == nil {
		if m = oldTaskLine.FindStringSubmatch(text); m == nil {
			return nil
		}
	}
	return &task{name: m[1], state: m[2], pid: m[3]}
}

func (r *report) frame(m []string, now *task, tracing bool) {
	if now == nil || !tracing || len(now.sure)+len(now.maybe) > 256 {
		return
	}
	if m[1] != "" {
		now.maybe = append(now.maybe, m[2])
	} else {
		now.sure = append(now.sure, m[2])
	}
}

// event counts an event, and returns the task whose dump may follow.
func (r *report) event(e *event, text string, now *task) *task {
	m := e.line.FindStringSubmatch(text)
	r.counts[e.name]++
	if r.first[e.name] == nil {
		r.first[e.name] = m
	}
	switch e.name {
	case hungTask:
		t := &task{name: m[1], pid: m[2], hung: true}
		r.tasks = append(r.tasks, t)
		return t
	case lockOwner:
		r.owners = append(r.owners, owner{m[1], m[3], m[4], m[5]})
		return now
	case allocStall:
		ms, _ := strconv.ParseFloat(m[2], 64)
		r.stalls = append(r.stalls, ms*1e6)
	case allocFail:
		r.atomic = r.atomic || strings.Contains(m[3], "GFP_ATOMIC") || strings.Contains(m[3], "GFP_NOWAIT") || m[3] == "0x20" || m[3] == "0x4020"
	case oomKill, oomGroup:
		r.killed = append(r.killed, printed(m[2]+" (pid "+m[1]+")")+residentOf(m[3]))
	}
	return nil
}

var anonRSS = regexp.MustCompile(`anon-rss:(\d+)kB`)

func residentOf(text string) string {
	m := anonRSS.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	v, _ := strconv.ParseFloat(m[1], 64)
	return ", " + mem(v*1024) + " anonymous"
}

var (
	ripLine   = regexp.MustCompile(`^(?:RIP: \S+?:|pc : |EIP: \S+?:)\s*(?:\[<[0-9a-f]+>\]\s*(?:\[<[0-9a-f]+>\]\s*)?)?([A-Za-z_][\w.]*)\+0x`)
	zoneOrder = regexp.MustCompile(`^(?:Node (\d+) )?(DMA|DMA32|Normal|HighMem|Movable): ((?:\d+\*\d+kB (?:\([A-Z]*\) )?)+)= \d+kB`)
	orderItem = regexp.MustCompile(`(\d+)\*(\d+)kB`)
)

// other reads what stands between: the machine, where a CPU was stuck, what a Mem-Info dump says of
// zones, and the size of what was killed, which kernels before 5.0 print in a line of its own.
func (r *report) other(text string) {
	text = strings.TrimSpace(text)
	if name, ok := strings.CutPrefix(text, "Hardware name: "); ok {
		r.bare = bareMetal(name)
	}
	if m := killedLine.FindStringSubmatch(text); m != nil {
		head := printed(m[2] + " (pid " + m[1] + ")")
		if i := slices.Index(r.killed, head); i >= 0 {
			r.killed[i] = head + residentOf(m[3])
		}
	}
	r.watermark(text)
	if m := ripLine.FindStringSubmatch(text); m != nil && r.spin == "" && r.counts[softLockup]+r.counts[hardLockup]+r.counts[rcuStall] > 0 {
		r.spin = m[1]
	}
	if m := zoneOrder.FindStringSubmatch(text); m != nil {
		z := zone{node: cmp.Or(m[1], "0"), name: m[2]}
		for _, o := range orderItem.FindAllStringSubmatch(m[3], 24) {
			n, _ := strconv.ParseFloat(o[1], 64)
			z.blocks = append(z.blocks, n)
		}
		if i := slices.IndexFunc(r.zones, func(o zone) bool { return o.String() == z.String() }); i >= 0 {
			r.zones[i] = z
		} else if len(r.zones) < 64 {
			r.zones = append(r.zones, z)
		}
	}
}

var (
	killedLine = regexp.MustCompile(`^Killed process (\d+) \(([^)]*)\)(.*)`)
	zoneMarks  = regexp.MustCompile(`^(?:Node (\d+) )?(DMA32|Normal|HighMem|Movable) free:(\d+)kB (?:boost:\d+kB )?min:(\d+)kB `)
)

// watermark notes a zone that has less free than its min watermark: below it threads free memory
// themselves.
func (r *report) watermark(text string) {
	m := zoneMarks.FindStringSubmatch(text)
	if m == nil || len(r.below) >= 8 {
		return
	}
	free, _ := strconv.ParseFloat(m[3], 64)
	least, _ := strconv.ParseFloat(m[4], 64)
	if free < least {
		r.below = append(r.below, fmt.Sprintf("node %s %s: %s free, below its min watermark of %s", cmp.Or(m[1], "0"), m[2], mem(free*1024), mem(least*1024)))
	}
}

// bareMetal reports whether the name that firmware gives a machine is that of a board or a server,
// and of no hypervisor. A maker that is not listed may be a cloud.
func bareMetal(name string) bool {
	low := strings.ToLower(name)
	for _, v := range []string{"virt", "qemu", "kvm", "xen", "hvm", "cloud", "compute", "ec2", "openstack", "bochs", "vm"} {
		if strings.Contains(low, v) {
			return false
		}
	}
	for _, b := range []string{"(dt)", "dell", "hp ", "hpe ", "hewlett", "supermicro", "lenovo", "asus", "gigabyte", "asrock", "intel corporation", "fujitsu", "cisco", "raspberry", "micro-star"} {
		if strings.Contains(low, b) {
			return true
		}
	}
	return false
}

// read puts the events in words, the gravest first.
func (r *report) read(p *attach.Part) attach.Reading {
	out := attach.Reading{Title: fmt.Sprintf("kernel log, %s", plural(r.lines, "line", "lines")), State: attach.Healthy, Time: p.Lines[0].Time}
	var said []string
	for _, e := range events {
		n := r.counts[e.name]
		if n == 1 {
			said = append(said, "1 "+e.words)
		} else if n > 1 {
			said = append(said, number(float64(n))+" "+e.many)
		}
	}
	if len(said) > 0 {
		out.Title += ": " + strings.Join(said[:min(4, len(said))], ", ")
	}
	r.readTasks(&out)
	r.readLockups(&out)
	r.readAllocations(&out)
	r.readDisks(&out)
	r.readOOM(&out)
	r.readOutside(&out)
	r.readNotes(&out)
	if out.Means == "" {
		out.Means = "Nothing in it is known as a stall: no hung task, lockup, failed allocation, or error of a disk."
		out.Not = "that nothing stalled for less: a wait is logged from two minutes on, a stuck CPU from some 20 s on"
	}
	out.Means = strings.TrimSpace(out.Means)
	for _, s := range out.Signs {
		if s.Grade == attach.Found {
			out.State = attach.Ill
		}
	}
	return out
}

// say adds to a reading what one kind of event says.
func say(out *attach.Reading, state attach.State, means string, figures ...string) {
	if out.State == attach.Healthy {
		out.State = state
	}
	if len(out.Means) < 400 {
		out.Means += " " + means
	}
	out.Figures = append(out.Figures, figures...)
}

func (r *report) readTasks(out *attach.Reading) {
	var all []wait
	hung, stacks := 0, 0
	for _, t := range r.tasks {
		stack := t.sure
		if len(stack) == 0 {
			stack = t.maybe
		}
		if t.hung {
			hung++
		}
		if len(stack) > 0 && (t.hung || t.state == "" || t.state == "D") {
			stacks++
			all = append(all, waitOf(stack))
		}
	}
	if len(r.tasks) == 0 {
		return
	}
	counts := countWaits(all)
	signs, outside := waitSigns(counts, len(all), hung > 0)
	if hung > 0 {
		r.blame(&signs)
	}
	out.Signs = append(out.Signs, signs...)
	var figures []string
	if m := r.first[hungTask]; m != nil {
		figures = append(figures, fmt.Sprintf("%s without a wake-up for %s s or more, the first %s (pid %s)", plural(hung, "task", "tasks"), m[3], printed(m[1]), m[2]))
	}
	for _, c := range counts {
		figures = append(figures, c.String())
	}
	for _, o := range r.owners {
		figures = append(figures, o.String())
	}
	means := fmt.Sprintf("%s in the kernel and cannot go on", plural(max(hung, len(r.tasks)), "task waits", "tasks wait"))
	switch {
	case len(outside) > 0:
		means += fmt.Sprintf(": for %s, outside what whystall can look into.", outside[0])
	case len(counts) > 0:
		means += fmt.Sprintf(": for %s, in %s.", counts[0].words, printed(counts[0].in[0]))
	default:
		means += "; the stacks that would say for what are not in the paste."
	}
	say(out, attach.CannotTell, means, figures...)
	out.Not = "who holds a lock that is waited for, unless an owner is named: the holder's own stack decides"
	if stacks == 0 {
		out.Next = append(out.Next, attach.Next{Command: "echo w > /proc/sysrq-trigger; dmesg | tail -200", Why: "the stacks of all blocked tasks"})
	} else {
		out.Next = append(out.Next, attach.Next{Command: "cat /proc/pressure/io; iostat -x 1 5", Why: "whether a disk is the one that does not answer"})
	}
}

// blame follows a named owner of a lock to what the owner itself waits for.
func (r *report) blame(signs *[]attach.Sign) {
	for _, t := range r.tasks {
		for _, o := range r.owners {
			if o.pid != t.pid || len(t.sure) == 0 {
				continue
			}
			cause := causeOf(waitOf(t.sure).block)
			for i := range *signs {
				if s := &(*signs)[i]; cause != "" && s.Cause != cause && (s.Cause == "kernel-lock" || s.Cause == "mmap-lock") {
					s.BecauseOf = cause
				}
			}
		}
	}
}

func (r *report) readLockups(out *attach.Reading) {
	soft, hard, rcu := r.first[softLockup], r.counts[hardLockup], r.counts[rcuStall]
	if soft == nil && hard+rcu == 0 {
		return
	}
	var figures []string
	if soft != nil {
		figures = append(figures, fmt.Sprintf("CPU %s stuck in the kernel for %s s, in task %s (pid %s)", soft[1], soft[2], printed(soft[3]), soft[4]))
	}
	if hard > 0 {
		figures = append(figures, plural(hard, "CPU", "CPUs")+" stuck with interrupts off (hard lockup)")
	}
	if rcu > 0 {
		figures = append(figures, plural(rcu, "RCU stall", "RCU stalls")+": a CPU did not pass through the scheduler for 21 s or more, by the default")
	}
	means := "A CPU was held for seconds: by kernel code that does not give way, or by a hypervisor that did not run it."
	causes := []string{"cpu-steal"}
	if r.bare { // nobody else has its CPUs
		means, causes = "A CPU was held for seconds by kernel code that does not give way.", nil
	}
	if r.spin != "" {
		figures = append(figures, "it was in "+printed(r.spin))
		switch {
		case strings.Contains(r.spin, "spin_lock") || strings.Contains(r.spin, "_spin_"):
			causes = append(causes, "kernel-lock")
		case strings.HasPrefix(r.spin, "smp_call_function") || strings.HasPrefix(r.spin, "csd_lock") || strings.HasPrefix(r.spin, "flush_tlb"):
			causes = append(causes, "tlb-shootdown")
		}
	}
	for _, c := range causes {
		out.Signs = append(out.Signs, attach.Sign{Cause: c, Grade: attach.Candidate, Proof: figures})
	}
	say(out, attach.CannotTell, means, figures...)
	out.Not = cmp.Or(out.Not, "that the function at which it was caught is at fault: a virtual CPU that is not run stands anywhere")
	if r.bare {
		out.Not = "which code that is, unless the trace below it is in the paste"
		out.Next = append(out.Next, attach.Next{Command: "dmesg | grep -A 30 'soft lockup'", Why: "the trace of what the CPU did"})
		return
	}
	out.Next = append(out.Next, attach.Next{Command: "grep ^cpu /proc/stat; sleep 10; grep ^cpu /proc/stat", Why: "how much the hypervisor takes (steal)"})
}

func (r *report) readAllocations(out *attach.Reading) {
	if len(r.stalls) > 0 {
		slices.Sort(r.stalls)
		figure := fmt.Sprintf("%s: %s at the median, %s at most", plural(len(r.stalls), "allocation stalled", "allocations stalled"), dur(r.stalls[len(r.stalls)/2]), dur(r.stalls[len(r.stalls)-1]))
		out.Signs = append(out.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Found, Sure: finding.Supported, Proof: []string{figure}})
		say(out, attach.Ill, "Threads waited for seconds until the kernel had freed memory for them.", figure)
	}
	m := r.first[allocFail]
	if m == nil {
		if len(r.zones) > 0 && r.counts[oomKill]+r.counts[oomGroup]+len(r.stalls) == 0 {
			z := judgeZones(r.zones)
			out.Signs = append(out.Signs, z.Signs...)
			out.Facts = append(out.Facts, z.Facts...)
			if len(r.below) == 0 {
				say(out, z.State, "Mem-Info: "+z.Means, z.Figures...)
			} else {
				say(out, attach.CannotTell, "Mem-Info: "+belowMeans, append(r.below, z.Figures...)...)
				out.Signs = append(out.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Candidate, Proof: r.below})
				out.Next = append(out.Next, nextStalls)
			}
		}
		return
	}
	order, _ := strconv.Atoi(m[2])
	figures := append([]string{fmt.Sprintf("%s failed, the first for order %d (%s in one piece), by %s", plural(r.counts[allocFail], "allocation", "allocations"), order, mem(pageSize*float64(int64(1)<<min(order, 20))), printed(m[1]))}, r.below...)
	if len(r.zones) > 0 {
		var free, fits float64
		for _, z := range r.zones {
			free += z.free(0)
			fits += z.free(order)
		}
		figures = append(figures, fmt.Sprintf("%s free, %s of it in blocks of that order or larger", mem(free), mem(fits)))
	}
	means := "The kernel found no block of that size: memory was free in small pieces, or not at all."
	sign := attach.Sign{Cause: "direct-reclaim", Grade: attach.Candidate, Proof: figures}
	if r.atomic {
		means = "An allocation that may not wait found nothing: the caller, as a rule a network driver, drops a packet or tries again. Nobody waited here for memory."
		sign.Grade = attach.Risk
	}
	out.Signs = append(out.Signs, sign)
	say(out, attach.CannotTell, means, figures...)
	out.Not = cmp.Or(out.Not, "how often threads free or compact memory themselves: /proc/vmstat read twice tells")
	out.Next = append(out.Next, nextStalls)
}

// belowMeans is what a zone below its min watermark means.
const belowMeans = "A zone has less free than its min watermark: threads that want memory from it have to free some themselves, and those that may not wait get none."

var nextStalls = attach.Next{Command: "sysctl vm.min_free_kbytes; grep -E 'allocstall|compact_stall' /proc/vmstat; sleep 10; grep -E 'allocstall|compact_stall' /proc/vmstat", Why: "whether threads have to free memory themselves now"}

func (r *report) readDisks(out *attach.Reading) {
	timeouts, errors := r.counts[diskTimeout], r.counts[diskError]
	if timeouts+errors == 0 {
		return
	}
	figure := fmt.Sprintf("%s, %s", plural(timeouts, "command timed out or a link was reset", "commands timed out or links were reset"), plural(errors, "error of a disk or file system", "errors of disks or file systems"))
	grade, sure := attach.Candidate, finding.Confidence("")
	means := "A disk or a file system reports errors: commands that are tried again wait for seconds."
	if timeouts > 0 {
		grade, sure = attach.Found, finding.Possible
		means = "A disk did not answer in time, and what waited for it stood still meanwhile."
	}
	out.Signs = slices.DeleteFunc(out.Signs, func(s attach.Sign) bool { return s.Cause == "disk-wait" && s.Grade == attach.Candidate })
	if !slices.ContainsFunc(out.Signs, func(s attach.Sign) bool { return s.Cause == "disk-wait" }) {
		out.Signs = append(out.Signs, attach.Sign{Cause: "disk-wait", Grade: grade, Sure: sure, Proof: []string{figure}})
	}
	say(out, attach.CannotTell, means, figure)
}

func (r *report) readOOM(out *attach.Reading) {
	group, host := r.counts[oomGroup], r.counts[oomKill]
	if group+host+r.counts[oomDetail] == 0 {
		return
	}
	var figures []string
	if len(r.killed) > 0 {
		figures = append(figures, "killed: "+strings.Join(r.killed[:min(3, len(r.killed))], "; "))
	}
	switch {
	case group > 0 && host == 0:
		say(out, attach.CannotTell, "A cgroup reached its memory limit, and a process in it was killed: an end and a restart, and by itself no cause of latency.", figures...)
	case host > 0:
		say(out, attach.CannotTell, "The host ran out of memory, and a process was killed: an end and a restart; what other processes waited for before that, it does not say.", figures...)
	default:
		say(out, attach.CannotTell, "The kernel had to kill a process for lack of memory; which one is not in the paste.", figures...)
	}
	out.Not = cmp.Or(out.Not, "how slow requests were before the kill")
}

// readOutside reads events whose time is in no process.
func (r *report) readOutside(out *attach.Reading) {
	for _, o := range []struct {
		name         eventName
		where, means string
	}{
		{conntrack, "the host's table of connections (nf_conntrack)", "The table of connections is full, and packets are dropped: connections time out that no process has seen."},
		{synFlood, "the accept queue of a port", "More connection requests came than a port's queue holds: the program accepts too slowly, its backlog is small, or it is an attack."},
		{netTimeout, "a network device and its driver", "A network device did not send for seconds."},
		{neighbours, "the host's table of neighbours (ARP)", "The table of neighbours overflows, and packets to new hosts are dropped."},
		{thermal, "the speed of the CPUs: heat", "CPUs run slower than they could, because they are too hot: all work takes longer."},
	} {
		n := r.counts[o.name]
		if n == 0 {
			continue
		}
		figure := plural(n, "message", "messages") + " of it"
		if m := r.first[o.name]; len(m) > 1 && m[1] != "" {
			figure += map[eventName]string{synFlood: ", port " + printed(m[1]), thermal: ", " + printed(m[1]) + " events in all"}[o.name]
		}
		out.Signs = append(out.Signs, attach.Sign{Grade: attach.Outside, Where: o.where, Proof: []string{figure}})
		say(out, attach.CannotTell, o.means, figure)
	}
}

// readNotes reads events that are worth a word and no cause.
func (r *report) readNotes(out *attach.Reading) {
	for _, o := range []struct {
		name  eventName
		means string
		state attach.State
	}{
		{clockBad, "The kernel gave up its fast clock: from then on reading the time costs a system call.", attach.CannotTell},
		{hogged, "A worker of the kernel held a CPU for more than 10 ms at a time.", attach.CannotTell},
		{rtThrottled, "Real-time tasks used up their share of a CPU, and were stopped once: others had no CPU until then.", attach.CannotTell},
		{crashed, "A program or the kernel crashed: that is an end, and no slowness.", attach.CannotTell},
		{perfSlow, "Interrupts of perf took longer than the kernel allows, and it samples less often: usual under virtualisation, and no stall.", attach.Healthy},
	} {
		if n := r.counts[o.name]; n > 0 {
			say(out, o.state, o.means, plural(n, "such message", "such messages"))
		}
	}
	if r.counts[rtThrottled] > 0 {
		out.Signs = append(out.Signs, attach.Sign{Cause: "cpu-contention", Grade: attach.Candidate, Proof: []string{"sched: RT throttling activated"}})
	}
}
