package kernelfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// machine is what a log says of the computer: a hypervisor can only take CPUs of a virtual one.
type machine struct{ bare, virtual bool }

var (
	virtualNames = []string{"virt", "qemu", "kvm", "xen", "hvm", "cloud", "compute", "ec2", "openstack", "bochs", "vm"}
	boardNames   = []string{"(dt)", "dell", "hp ", "hpe ", "hewlett", "supermicro", "lenovo",
		"asus", "gigabyte", "asrock", "intel corporation", "fujitsu", "cisco", "raspberry", "micro-star"}
)

var oldVirtual = pattern.New(`\b(?:VMware|KVM|QEMU|Xen|Bochs|VirtualBox|Virtual (?:Platform|Machine))\b`)

// read notes the name that firmware gives a machine, and what the kernel says at boot. A maker that
// is not listed may be a cloud.
func (m *machine) read(text string) {
	if strings.HasPrefix(text, "Hypervisor detected:") ||
		strings.Contains(text, "kvm-clock: using") ||
		strings.HasPrefix(text, "Booting paravirtualized kernel on ") && !strings.Contains(text, "bare hardware") {
		m.virtual, m.bare = true, false
	}
	name, ok := strings.CutPrefix(text, "Hardware name: ")
	if !ok {
		// Kernels before 3.9 put the name behind the release.
		m.virtual = m.virtual || strings.HasPrefix(text, "Pid: ") && oldVirtual.MatchString(text)
		return
	}
	low := strings.ToLower(name)
	in := func(list []string) bool {
		return slices.ContainsFunc(list, func(w string) bool { return strings.Contains(low, w) })
	}
	m.virtual = m.virtual || in(virtualNames)
	m.bare = !m.virtual && in(boardNames)
}

// rcuReport is what stalls of RCU say: which CPUs did not pass through the scheduler, and for how
// long, in jiffies, whose length a kernel does not print.
type rcuReport struct {
	cpus, tasks []string
	jiffies     float64
	thread      string // of RCU itself, that had no CPU
	without     float64
	idle        []string // CPUs that did nothing
	inTask      string   // on which task a CPU that was waited for was traced
	wakeup      float64  // jiffies for which a timer did not wake that thread
	timer       string   // the CPU at which the kernel itself suspects its timers
	up          float64  // s that the machine had run, or a time of day
	passed      bool     // all CPUs had passed through the scheduler
	ready       bool     // the thread that had no CPU could run
	ticked      float64  // ticks of its clock that a CPU took meanwhile, the most
}

var (
	rcuOnCPU = pattern.New(`stall on CPU (\d+)`)
	rcuSet   = pattern.New(`(?:CPUs/tasks:|on CPU) ?\{ ?([^}]*)\}`)
	rcuRow   = pattern.New(`^(?:rcu:\s+)?(\d{1,4})-[^ ]{1,6}: \(`)
	// rcuResting is a row of a CPU that is in no task and no interrupt, by the counts of nesting.
	rcuResting = pattern.New(`^(?:rcu:\s+)?(\d{1,4})-[^ ]{1,6}: \(.{1,40}\) idle=[0-9a-f]{1,4}/0/0x0 `)
	rcuTrace   = pattern.New(`^CPU: (\d{1,4}) PID: (\d{1,9}) (?:UID: \d+ )?Comm: (.{1,20}?) (?:Kdump: \w+ )?(?:Tainted|Not tainted)`)
	rcuTasks   = pattern.New(`^(?:rcu:\s+)?Tasks blocked on level-\d+ rcu_node .*?:((?: P\d+\S*)+)`)
	rcuJiffies = pattern.New(`\bt=(\d{1,12}) jiffies|\} (\d{1,12}) jiffies s:`)
	rcuIdle    = pattern.New(`backtrace for cpu (\d+) skipped: idling at`)
	rcuWakeup  = pattern.New(`kthread timer wakeup didn't happen for (\d{1,12}) jiffies`)
	rcuTimer   = pattern.New(`Possible timer handling issue on cpu=(\d{1,4})`)
	rcuTicks   = pattern.New(`\((\d{1,12}) ticks this GP\)`)
	// rcuActivity is how long ago RCU's thread did anything, by an older kernel.
	rcuActivity = pattern.New(`last (rcu\w*) kthread activity (\d{1,12})`)
	rcuItem     = pattern.New(`[P\d]\d*`)
)

func (r *rcuReport) read(text string) {
	text = strings.TrimSpace(text)
	if m := rcuOnCPU.FindStringSubmatch(text); m != nil {
		r.add(m[1])
	}
	if m := rcuSet.FindStringSubmatch(text); m != nil {
		for _, w := range strings.Fields(m[1]) {
			w, _, _ = strings.Cut(w, "-")
			if m := rcuItem.FindString(w); m != "" {
				r.add(m)
			}
		}
	}
	if m := rcuRow.FindStringSubmatch(text); m != nil {
		r.add(m[1])
	}
	for _, p := range []*pattern.Regexp{rcuIdle, rcuResting} {
		if m := p.FindStringSubmatch(text); m != nil && len(r.idle) < 1024 && !slices.Contains(r.idle, m[1]) {
			r.idle = append(r.idle, m[1])
		}
	}
	if m := rcuTicks.FindStringSubmatch(text); m != nil {
		r.ticked = max(r.ticked, float(m[1]))
	}
	if m := rcuWakeup.FindStringSubmatch(text); m != nil {
		r.wakeup = max(r.wakeup, float(m[1]))
	}
	if m := rcuTimer.FindStringSubmatch(text); m != nil && r.timer == "" {
		r.timer = m[1]
	}
	if m := rcuTrace.FindStringSubmatch(text); m != nil && r.inTask == "" && slices.Contains(r.cpus, m[1]) {
		r.inTask = fmt.Sprintf("the trace of CPU %s was taken in task %s (pid %s)", m[1], printed(m[3]), m[2])
	}
	if m := rcuTasks.FindStringSubmatch(text); m != nil {
		for _, w := range strings.Fields(m[1]) {
			r.add(rcuItem.FindString(w))
		}
	}
	if m := rcuJiffies.FindStringSubmatch(text); m != nil {
		v := float(cmp.Or(m[1], m[2]))
		r.jiffies = max(r.jiffies, v)
	}
}

func (r *rcuReport) add(of string) {
	list := &r.cpus
	if strings.HasPrefix(of, "P") {
		list, of = &r.tasks, of[1:]
	}
	if of != "" && len(*list) < 1024 && !slices.Contains(*list, of) {
		*list = append(*list, of)
	}
}

func (r *rcuReport) starved(m []string) {
	if v := float(m[2]); v > r.without {
		r.thread, r.without = m[1], v
	}
}

// idled reports whether each CPU that was waited for had nothing to do.
func (r *rcuReport) idled() bool {
	return len(r.cpus) > 0 && len(r.tasks) == 0 &&
		!slices.ContainsFunc(r.cpus, func(c string) bool { return !slices.Contains(r.idle, c) })
}

// ticks writes ticks of the kernel, at the rates that distributions and makers of boards choose. It
// is none that would take longer than the machine has run.
func (r *rcuReport) ticks(n float64) string {
	var rates []string
	for _, hz := range []float64{100, 250, 1000} {
		if r.up > 0 && n/hz > r.up {
			continue
		}
		a := ""
		if len(rates) == 0 {
			a = " a second"
		}
		rates = append(rates, fmt.Sprintf("%s at %s%s", dur(n/hz*1e9), number(hz), a))
	}
	if len(rates) == 0 {
		return number(n) + " jiffies"
	}
	return fmt.Sprintf("%s jiffies (%s)", number(n), strings.Join(rates, ", "))
}

func (r *rcuReport) figures(stalls int) (out []string) {
	text := plural(stalls, "RCU stall", "RCU stalls")
	switch {
	case len(r.cpus) == 1:
		text += fmt.Sprintf(": CPU %s did not pass through the scheduler", r.cpus[0])
	case len(r.cpus) > 1:
		slices.SortFunc(r.cpus, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
		text += fmt.Sprintf(": %s did not pass through the scheduler (%s)",
			plural(len(r.cpus), "CPU", "CPUs"), listed(r.cpus, 12))
	}
	if len(r.tasks) > 0 {
		text += ", or was held by a preempted task (pid " + listed(r.tasks, 6) + ")"
	}
	if r.jiffies > 0 {
		text += ", the longest for " + r.ticks(r.jiffies)
	}
	out = append(out, text)
	if r.inTask != "" {
		out = append(out, r.inTask)
	}
	if r.without > 0 {
		out = append(out, fmt.Sprintf("the thread %s of the kernel did not run for %s",
			printed(r.thread), r.ticks(r.without)))
	}
	if r.wakeup > 0 {
		out = append(out, fmt.Sprintf("no timer woke that thread for %s", r.ticks(r.wakeup)))
	}
	if r.timer != "" {
		out = append(out, fmt.Sprintf("the kernel itself suspects the timers of CPU %s", r.timer))
	}
	return out
}

// listed writes the first of some short words.
func listed(words []string, most int) string {
	text := strings.Join(words[:min(most, len(words))], ", ")
	if len(words) > most {
		text += ", ..."
	}
	return printed(text)
}

// jumpLeast is how late a first message of the watchdog is, in s, that a machine which ran would
// have had long before.
const jumpLeast = 300

// stuckCPUs is what several messages of the watchdog say together.
type stuckCPUs struct {
	cpus    []string
	longest float64 // s
}

func (s *stuckCPUs) add(cpu, seconds string) {
	s.longest = max(s.longest, float(seconds))
	if len(s.cpus) < 1024 && !slices.Contains(s.cpus, cpu) {
		s.cpus = append(s.cpus, cpu)
	}
}

func (s *stuckCPUs) tail() string {
	text := fmt.Sprintf(", the longest %s s", number(s.longest))
	if len(s.cpus) < 2 {
		return text
	}
	slices.SortFunc(s.cpus, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return fmt.Sprintf(", from %d CPUs (%s)%s", len(s.cpus), listed(s.cpus, 12), text)
}

func (r *report) readLockups(out *attach.Reading) {
	soft, hard, rcu := r.first[softLockup], r.counts[hardLockup], r.counts[rcuStall]
	if soft == nil && hard+rcu+r.counts[rcuStarved] == 0 {
		return
	}
	var figures []string
	jumped := soft != nil && r.counts[softLockup] == 1 && hard == 0 &&
		float(soft[2]) >= jumpLeast && len(r.rcu.idle) > 0
	if soft != nil {
		stuck := "stuck in the kernel"
		if r.user {
			stuck = "reported as stuck, in user mode,"
		}
		if jumped {
			stuck = "reported as stuck in the kernel"
		}
		figure := fmt.Sprintf("CPU %s %s for %s s", soft[1], stuck, soft[2])
		if soft[4] != "" {
			figure += fmt.Sprintf(", in task %s (pid %s)", printed(soft[3]), soft[4])
		}
		figures = append(figures, figure)
		if n := r.counts[softLockup]; n > 1 {
			figures[0] += fmt.Sprintf(", the first of %d messages%s", n, r.stuck.tail())
		}
	}
	if hard > 0 {
		text := plural(hard, "hard lockup", "hard lockups") + ": a CPU stuck with interrupts off"
		if m := r.first[hardLockup]; m[1] != "" {
			text += ", CPU " + m[1] + map[bool]string{true: " first"}[hard > 1]
		}
		figures = append(figures, text)
	}
	if rcu+r.counts[rcuStarved] > 0 {
		figures = append(figures, r.rcu.figures(rcu)...)
	}
	means := "A CPU was held for seconds: by kernel code that does not give way, or, in a virtual machine, by a hypervisor that did not run it."
	ran := r.irqs.ran() || soft == nil && hard == 0 && r.rcu.ran()
	var causes []string
	switch {
	case r.host.bare || ran: // nobody else has its CPUs, or it had its own all the time
		means = "A CPU was held for seconds by kernel code that does not give way."
	case r.host.virtual:
		means, causes = "A CPU was held for seconds: by kernel code that does not give way, or by the hypervisor that did not run it.", []string{"cpu-steal"}
	}
	idle := soft == nil && hard == 0 && r.rcu.idled()
	if idle {
		means = "No code held the CPU: it was idle, and RCU was told so too late. A timer or a wake-up was late or lost, or, in a virtual machine, the hypervisor did not run the CPU."
	}
	if n := len(r.stuck.cpus); n > 1 {
		means = strings.Replace(means, "A CPU was held", fmt.Sprintf("%d CPUs were held", n), 1)
		means = strings.Replace(means, "that did not run it", "that did not run them", 1)
	}
	if text := r.notHeld(idle, jumped); text != "" {
		idle, causes, means = true, nil, text
	}
	if r.work != "" {
		figures = append(figures, "it was a worker of the kernel, for "+printed(r.work))
	}
	switch {
	case idle:
	case r.spin != "":
		figures = append(figures, "it was in "+printed(r.spin))
		causes = append(causes, spinCauses(r.spin)...)
	case len(r.stuckIn) > 0:
		figures = append(figures, "its stack starts with "+printed(strings.Join(r.stuckIn, ", ")))
	case r.traced:
		means += " Its stack is in the paste."
	case r.frames == 0:
		means += " No stack in this part says in which code."
	}
	if ran && !idle {
		figures = append(figures, r.ranBy())
	}
	for _, c := range causes {
		out.Signs = append(out.Signs, attach.Sign{Cause: c, Grade: attach.Candidate, Proof: figures})
	}
	say(out, attach.CannotTell, means, figures...)
	out.Not = cmp.Or(out.Not, "that the function at which it was caught, or a module that is listed, is at fault: a virtual CPU that is not run stands anywhere")
	if r.host.bare || ran {
		out.Not = "which code that is, unless the trace below it is in the paste; modules that are listed say nothing"
	}
	if r.user {
		out.Not = "what kept the CPU from its scheduler"
	}
	if r.spin != "" && !idle {
		r.caught(out, ran)
	}
	if !r.traced && r.frames == 0 && !idle && (r.host.bare || r.spin == "") {
		out.Next = append(out.Next,
			attach.Next{Command: "dmesg | grep -A 30 -E 'soft lockup|hard LOCKUP|detected.* stall'",
				Why: "the trace of what the CPU did"})
	}
	if !r.host.bare && !ran {
		out.Next = append(out.Next,
			attach.Next{Command: "grep ^cpu /proc/stat; sleep 10; grep ^cpu /proc/stat",
				Why: "in a virtual machine: how much the hypervisor takes (steal)"})
	}
}

// notHeld says what happened where most likely no code of the kernel held a CPU; "": one may have.
func (r *report) notHeld(idle, jumped bool) string {
	onlyRCU := r.first[softLockup] == nil && r.counts[hardLockup] == 0
	switch {
	case jumped:
		return fmt.Sprintf("Most likely no code held a CPU for that long: a watchdog speaks after some 20 s, this one first after %s s, and CPUs that RCU waited for were idle. A machine that was paused or suspended looks like that when it goes on.", r.first[softLockup][2])
	case r.user && r.counts[hardLockup] == 0 && r.frames == 0:
		return "The task was in its own code (user mode), not in the kernel's, when the watchdog saw it. Interrupts that take all the time look like that, and so do a clock or a timer that goes wrong, or a virtual machine that was not run."
	case onlyRCU && r.rcu.passed && len(r.rcu.cpus)+len(r.rcu.tasks) == 0:
		return "No CPU is named that held RCU up: all had passed. Its own thread did not go on, as it got no CPU or its timer was late. A machine that runs far too slowly looks like that as well."
	case onlyRCU && !idle && r.rcu.wakeup+float64(len(r.rcu.timer)) > 0:
		return "A timer that should have gone off did not for seconds: a fault of timers or of a clock looks like that, and so does a CPU that was held with interrupts off, or, in a virtual machine, one that the hypervisor did not run."
	case onlyRCU && !idle && r.rcu.ready && !r.rcu.ran():
		return "RCU waited for seconds, and its own thread could run and got no CPU: threads of a higher priority keep it from running, or code of the kernel that does not give way, or, in a virtual machine, a hypervisor that does not run its CPU."
	}
	return ""
}

// caught says what follows from a function at which a CPU was caught that nobody took away.
func (r *report) caught(out *attach.Reading, ran bool) {
	if ran {
		out.Not = "that the function at which it was caught is at fault: those that call it, in the trace, may do so on and on"
	}
	if r.host.bare || ran {
		out.Next = append(out.Next, attach.Next{Command: "echo l > /proc/sysrq-trigger; dmesg | tail -200",
			Why: "while it is stuck, a few times: what each CPU runs"})
	}
}

// spinCauses says which causes a function fits at which a CPU was stuck. One that gives a lock back
// waits for none: it is where interrupts go on.
func spinCauses(f string) []string {
	switch {
	case strings.Contains(f, "unlock"):
	case strings.Contains(f, "spin_lock") || strings.Contains(f, "_spin_"):
		return []string{"kernel-lock"}
	case strings.HasPrefix(f, "smp_call_function") || strings.HasPrefix(f, "csd_lock") ||
		strings.HasPrefix(f, "flush_tlb"):
		return []string{"tlb-shootdown"}
	}
	return nil
}
