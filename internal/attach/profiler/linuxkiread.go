package profiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// kiReport is what the parts of a LinuxKI report say.
type kiReport struct {
	pid           int
	name          string
	run, sys      float64 // s
	sleep, queue  float64
	sched         bool
	policy        string
	calls         []kiCallRow
	hot, stacks   profile
	funcs         *waiting // sleep functions of a process
	sleepStacks   *waiting
	tasks         []kiTaskRow
	cpus          int
	sysPct        float64
	userPct, idle float64
	usage         bool
	cpuHead       []string // columns of the table of CPUs
	perCPU        []kiCPURow
	profileIdle   float64 // of the profile's samples
	traces        int
	traced        map[string]*kiTraced // calls of a trace, by name
	devices       []kiDeviceRow
	deviceHead    []string
	herds         []kiHerdRow
	waits         []kiWaitRow
	disks         []kiDiskRow
	file          string             // whose calls follow
	cpi, hits     float64            // cycles per instruction; share of reads that the last cache had
	irqs          map[string]float64 // s, by kind
	sections      []string
}

// kiCallRow is a system call of a report, with what its time was.
type kiCallRow struct {
	name, file              string
	count, errs             int
	elapsed, avg, max       float64 // s
	rate                    float64 // calls/s
	asleep, queued, running float64
	sleeps                  *waiting
}

// kiTaskRow is a row of a table of tasks.
type kiTaskRow struct {
	pid                              int
	run, sys, queued, sleep, longest float64 // s
	hasLongest                       bool
	command                          string
}

// modes of the walk: what rows of two numbers and names are.
type kiMode int

const (
	kiOther kiMode = iota
	kiSleeping
	kiProfiling
	kiUsage
	kiBusy
	kiClock
	kiNodes
	kiCPUs
)

func readKIReport(p *attach.Part) *kiReport {
	k := &kiReport{funcs: newWaiting(), sleepStacks: newWaiting(), irqs: map[string]float64{},
		traced: map[string]*kiTraced{}}
	mode := kiOther
	for _, text := range texts(p) {
		switch {
		case header(text, "node", "ncpu"):
			mode = kiNodes
			continue
		case header(text, "cpu", "node"):
			mode = kiCPUs
			k.cpuHead = strings.Fields(text)
			k.cpuHead = k.cpuHead[slices.Index(k.cpuHead, "Busy")+1:]
			continue
		case header(text, "device", "rw"):
			k.deviceHead = strings.Fields(text)[2:]
			continue
		case header(text, "nCPU"):
			mode = kiUsage
			continue
		case header(text, "Busy", "sys", "usr"):
			mode = kiBusy
			continue
		case strings.Contains(text, "leep stack traces"), strings.Contains(text, "wpct"):
			mode = kiSleeping
			continue
		case header(text, "Count", "USER%"):
			mode = kiClock
			continue
		case header(text, "Count", "Pct"), strings.Contains(text, "HARDCLOCK"),
			strings.Contains(text, "non-idle kernel"):
			mode = kiProfiling
			continue
		}
		k.line(text, &mode)
	}
	return k
}

func (k *kiReport) line(text string, mode *kiMode) {
	if m := kiHot.FindStringSubmatch(text); m != nil {
		k.hotRow(m)
		return
	}
	if k.liveRow(text) {
		return
	}
	if m := kiSleepFunc.FindStringSubmatch(text); m != nil {
		seconds, _ := number(m[3])
		k.funcs.add(waitOf([]string{m[8]}), m[8], seconds)
		return
	}
	if m := kiCall.FindStringSubmatch(text); m != nil && len(k.calls) < most {
		c := kiCallRow{name: m[1], file: k.file, sleeps: newWaiting()}
		c.count, _ = whole(m[2])
		c.rate, _ = number(m[3])
		c.elapsed, _ = number(m[4])
		c.avg, _ = number(m[5])
		c.max, _ = number(m[6])
		c.errs, _ = whole(m[7])
		k.calls = append(k.calls, c)
		return
	}
	if kiCallPart.MatchString(text) {
		k.callPart(strings.Fields(text))
		return
	}
	if m := kiTask.FindStringSubmatch(text); m != nil && len(k.tasks) < most {
		t := kiTaskRow{command: m[8], hasLongest: m[7] != ""}
		t.pid, _ = whole(m[1])
		t.run, _ = number(m[2])
		t.sys, _ = number(m[3])
		t.queued, _ = number(m[5])
		t.sleep, _ = number(m[6])
		t.longest, _ = number(m[7])
		k.tasks = append(k.tasks, t)
		return
	}
	if kiTrace.MatchString(text) {
		k.trace(text)
		return
	}
	if !k.moreLine(text, *mode) {
		k.looseLine(text, mode)
	}
}

// looseLine reads the rows that only the table around them tells.
func (k *kiReport) looseLine(text string, mode *kiMode) {
	fields := strings.Fields(text)
	switch {
	case kiProcess.MatchString(text) && k.pid == 0:
		k.pid, _ = whole(fields[1])
		k.name = strings.Join(fields[2:], " ")
	case *mode == kiSleeping:
		if m := kiSleepStack.FindStringSubmatch(text); m != nil {
			k.sleepStack(m[2], m[4])
		}
	case *mode == kiProfiling:
		if m := kiStack.FindStringSubmatch(text); m != nil {
			k.stackRow(m)
		}
	case *mode == kiUsage && kiNumbersOnly(text) && len(fields) >= 4:
		k.usage = true
		k.cpus, _ = whole(fields[0])
		k.sysPct, k.userPct, k.idle = percentOf(fields[1]), percentOf(fields[2]), percentOf(fields[3])
		*mode = kiOther
	case *mode == kiBusy && kiNumbersOnly(text) && len(fields) >= 4:
		k.usage = true
		k.sysPct, k.userPct, k.idle = percentOf(fields[1]), percentOf(fields[2]), percentOf(fields[3])
		*mode = kiOther
	}
	if kiIRQ.MatchString(text) && len(fields) >= 3 {
		seconds, _ := number(fields[len(fields)-1])
		k.irqs[fields[len(fields)-3]] += seconds
	}
	if *mode == kiClock && kiNumbersOnly(text) && len(fields) >= 4 {
		k.usage = true
		k.userPct, k.sysPct, k.idle = percentOf(fields[1]), percentOf(fields[2]), percentOf(fields[len(fields)-1])
		k.profileIdle = k.idle
		*mode = kiOther
	}
	if strings.Contains(text, ":") && !kiSection.MatchString(text) {
		k.pairs(text)
	}
}

func percentOf(s string) float64 {
	f, _ := number(strings.TrimSuffix(s, "%"))
	return f / 100
}

func (k *kiReport) pairs(text string) {
	for _, m := range kiPair.FindAllStringSubmatch(text, 8) {
		v, ok := number(strings.TrimSuffix(m[2], "%"))
		switch strings.ToLower(m[1]) {
		case "runtime":
			if ok && strings.Contains(m[2], ".") && !k.sched {
				k.run = v
			}
		case "systime":
			k.sys = v
		case "sleeptime":
			k.sleep, k.sched = v, true
		case "runqtime":
			k.queue, k.sched = v, true
		case "policy":
			k.policy = m[2]
		}
	}
}

func (k *kiReport) hotRow(m []string) {
	share, _ := percent(m[2] + "%")
	n, _ := number(m[1])
	name, _, _ := strings.Cut(strings.TrimSpace(m[4]), " ")
	s := sample{weight: share}
	switch {
	case m[3] == "IDLE":
		s.comm = "swapper"
	case m[3] == "USER":
		s.program = frames([]string{name}, "")
	default:
		s.kernel, _ = split([]string{strings.TrimPrefix(name, "SYSC_")}, true)
	}
	k.hot.whole = 1
	k.hot.number += int(min(n, 1e9))
	k.hot.samples = append(k.hot.samples, s)
}

func (k *kiReport) stackRow(m []string) {
	share, _ := percent(m[2] + "%")
	n, _ := number(m[1])
	names := strings.Fields(strings.ReplaceAll(m[3], " unknown", ""))
	s := sample{weight: share}
	if len(names) > 0 && !strings.EqualFold(names[0], "unknown") {
		s.kernel, s.program = split(names, true)
	}
	k.stacks.whole, k.stacks.stacks = 1, true
	k.stacks.number += int(min(n, 1e9))
	k.stacks.samples = append(k.stacks.samples, s)
}

// sleepStack reads a stack by its share of the waiting time. Functions of the program follow the
// kernel's, and addresses stand between.
func (k *kiReport) sleepStack(share, stack string) {
	amount, _ := number(share)
	var names []string
	for _, n := range strings.Fields(stack) {
		if n != "unknown" && !strings.HasPrefix(n, "0x") {
			names = append(names, n)
		}
	}
	kind := waitOf(names)
	k.sleepStacks.add(kind, placeOf(kind, names), amount)
}

// placeOf is the function on a stack that says best where it waits.
func placeOf(kind wait, names []string) string {
	if kind == waitedLock {
		for i, n := range names {
			if waitByUser([]string{n}) == waitedLock {
				for _, outer := range names[i+1:] {
					if waitByUser([]string{outer}) != waitedLock {
						return n + " in " + outer
					}
				}
				return n
			}
		}
	}
	for _, n := range names {
		if !schedulerPlumbing[n] && !(kind == waitedBuffer && (n == "down" || n == "__down" || n == "__down_common")) {
			return n
		}
	}
	return ""
}

var schedulerPlumbing = words(`__schedule schedule schedule_timeout schedule_preempt_disabled finish_task_switch context_switch schedule_hrtimeout_range
	schedule_hrtimeout_range_clock io_schedule io_schedule_timeout __sched_text_start schedule_hrtimeout preempt_schedule_common
	preempt_schedule_irq __cond_resched io_schedule_prepare schedule_timeout_interruptible schedule_timeout_uninterruptible`)

func (k *kiReport) callPart(f []string) {
	if len(k.calls) == 0 {
		return
	}
	c := &k.calls[len(k.calls)-1]
	switch f[0] {
	case "SLEEP":
		if f[1] != "Func" && len(f) > 3 {
			c.asleep, _ = number(f[3])
		}
	case "Sleep":
		if len(f) >= 6 { // some versions leave the longest out
			amount, _ := number(f[3])
			name := f[min(len(f)-1, 6)]
			c.sleeps.add(c.waitIn(name), name, amount)
		}
	case "RUNQ":
		c.queued, _ = number(f[1])
	case "CPU":
		c.running, _ = number(f[1])
	}
}

func readKI(p *attach.Part) attach.Reading {
	k := readKIReport(p)
	r := attach.Reading{State: attach.CannotTell, Who: attach.Who{PID: k.pid, Name: k.name}}
	k.readUsage(&r)
	k.readCPUs(&r)
	k.readSched(&r)
	k.readTasks(&r)
	k.readCalls(&r)
	k.readSleep(&r)
	k.readProfile(&r)
	k.readLive(&r)
	if len(k.irqs) > 0 {
		k.says("interrupts")
		total := 0.0
		for _, v := range k.irqs {
			total += v
		}
		top := attach.Largest(k.irqs)[0]
		r.Figures = append(r.Figures, fmt.Sprintf("interrupts: %s of %s in %s", lasts(k.irqs[top]), lasts(total), top))
		if r.Means == "" {
			r.Means = "It sums up interrupts; over how many CPUs and how long is in the report's head."
		}
	}
	if k.traces > 0 {
		k.readTrace(&r)
	}
	k.readDevices(&r)
	k.readHerds(&r)
	r.Title = "LinuxKI"
	if k.pid > 0 {
		r.Title += fmt.Sprintf(", PID %d %s", k.pid, k.name)
	}
	if len(k.sections) > 0 {
		r.Title += ": " + strings.Join(k.sections, ", ")
	}
	if r.Means == "" && k.sched {
		r.Means = "It says how long the thread slept and not what for: the report's sleep functions or system calls do."
	} else if r.Means == "" {
		r.Means = "These figures alone say nothing of a stall."
	}
	if r.State != attach.Healthy && len(r.Next) == 0 {
		r.Next = append(r.Next, record(k.pid, "which requests lose that time"))
	}
	return r
}

func (k *kiReport) says(section string) {
	if !slices.Contains(k.sections, section) {
		k.sections = append(k.sections, section)
	}
}

func (k *kiReport) readUsage(r *attach.Reading) {
	if !k.usage {
		return
	}
	k.says("global CPU usage")
	line := fmt.Sprintf("%s system, %s user, %s idle", pct(k.sysPct), pct(k.userPct), pct(k.idle))
	if k.cpus > 0 {
		line = fmt.Sprintf("%d CPUs: ", k.cpus) + line
	}
	r.Figures = append(r.Figures, line)
	k.readCounters(r)
	switch {
	case k.sysPct >= 0.30 && k.sysPct > k.userPct:
		r.Means = fmt.Sprintf("The kernel takes %s of the CPUs: what it does there is the question, not how many CPUs there are.", pct(k.sysPct))
		r.Not = "The report's own warning of a CPU bottleneck says that CPUs are busy, and not that more of them would help."
	case k.idle < 0.10:
		r.Means = "The CPUs are busy; whether threads wait for them is not in it."
	default:
		r.Means = "There are idle CPUs."
	}
}
