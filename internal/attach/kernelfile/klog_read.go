package kernelfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
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
	// Stalls of threads that nobody waits for, and the last of these threads.
	background []float64
	worker     string
	sleeps     bool // an allocation failed that may wait for memory
	vmallocs   vmallocs
	spin       string   // where a CPU was stuck
	traced     bool     // the stack of a lockup is in the paste
	stuckIn    []string // its first functions
	frames     int      // functions on stacks
	user       bool     // it was in user mode
	inIRQ      bool     // it starts with those of the interrupt that saw it
	work       string   // the function of the worker that was stuck
	below      []string // zones of a Mem-Info dump whose free memory is below its min watermark
	killed     []string
	freed      float64 // bytes, the most that one kill gave back; 0: not said
	chosen     string  // whose death was announced and is not yet reported: a child may die for it

	each map[eventName][]tally // events of one name, by what they name

	host       machine
	rcu        rcuReport
	irqs       irqEvents
	stuck      stuckCPUs
	devices    []string // disks that errors name
	disks      stretch  // of commands that came late, and of what the kernel did about it
	freezes    stretch  // of ports
	failures   failures
	nics       nics
	heat       heat
	module     string // of memory, that reports errors
	busAt      string // a device on a bus, likewise
	overflow   bool   // more errors came than were logged
	oom        oomReport
	sums       memSums
	interrupt  bool    // an allocation failed in an interrupt
	clock      string  // what was switched to
	clockAsked bool    // the command line calls the TSC reliable
	silent     silence // of a file server
	usbDisk    bool    // a USB device is a disk
	suppressed float64 // messages that the kernel did not print
	complaints int     // lines of a fault that no table knows
	complaint  string  // the first of them
}

// owner is who most likely holds a lock that a hung task waits for.
type owner struct{ waiter, lock, name, pid string }

func (o owner) String() string {
	return fmt.Sprintf("%s waits for the %s that %s (pid %s) most likely holds", printed(o.waiter),
		printed(o.lock), printed(o.name), o.pid)
}

// task is one that the kernel dumped.
type task struct {
	name   string
	pid    string
	state  string
	hung   bool
	asleep float64  // s that it had not run, at least, as the last report of it says
	times  int      // how often it was reported
	sure   []string // functions, innermost first
	maybe  []string // those that may be left over
}

func readKlog(p *attach.Part) attach.Reading {
	rep := &report{lines: len(p.Lines), counts: map[eventName]int{}, first: map[eventName][]string{}}
	var now *task
	tracing, before := false, ""
	shown, again := quotes{}, false
	for i := 0; i < len(p.Lines); i++ {
		l := p.Lines[i]
		text, stamped := kernelText(l)
		if stamped && breaks(text) {
			var more int
			text, more = unbroken(text, p.Lines[i+1:])
			i += more
		}
		if !stamped && l.Raw == "" && before != "" && eventOf(before) == nil && eventOf(text) == nil {
			if joined := before + " " + strings.TrimSpace(text); eventOf(joined) != nil {
				text = joined // a broken line
			}
		}
		before = text
		if m := frameLine.FindStringSubmatch(text); m != nil {
			rep.frame(m, now, tracing || strings.Contains(text, " from ")) // ARM has no heading
			continue
		}
		if strings.Contains(text, "Call Trace:") || strings.Contains(text, "Call trace:") {
			tracing = true
			continue
		}
		if e := eventOf(text); e != nil {
			tracing = false
			if again = shown.again(l); again {
				now = nil
				continue
			}
			now = rep.event(e, text, now)
			rep.when(e, l, text)
			continue
		}
		if t := taskHead(text); t != nil {
			tracing = false
			if again {
				continue // the dump of a task that is shown twice
			}
			if now != nil && !isDigits(now.pid) && len(now.sure)+len(now.maybe) == 0 {
				now.name, now.pid = t.name, t.pid // somebody put a word for them into the line above
			}
			if now == nil || now.pid != t.pid && now.name != t.name || len(now.sure)+len(now.maybe) > 0 {
				now = t
				rep.tasks = append(rep.tasks, t)
			}
			now.state = t.state
			continue
		}
		rep.other(text)
		rep.answered(l, text)
		if stamped {
			rep.complain(text)
		}
	}
	return rep.read(p)
}

// breaks knows long lines of reports of memory, which mails and terminals break.
func breaks(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "[") || strings.HasPrefix(text, "Node ") ||
		strings.HasPrefix(text, "Killed process ") || strings.HasPrefix(text, "Out of memory: Kill") || strings.HasPrefix(text, "Out of memory: kill") ||
		strings.HasPrefix(text, "Memory cgroup out of memory: Kill") || strings.HasPrefix(text, "oom-kill:")
}

// unbroken joins the lines below, up to the next with a stamp, to one that was broken.
func unbroken(text string, below []paste.Line) (joined string, more int) {
	joined = strings.TrimRight(text, " ")
	for _, l := range below {
		rest, stamped := kernelText(l)
		if stamped || l.Raw != "" || strings.TrimSpace(rest) == "" || len(joined) > 1500 ||
			more >= 12 || eventOf(rest) != nil || blockHead(rest) {
			break
		}
		joined += " " + strings.TrimSpace(rest)
		more++
	}
	return joined, more
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
	r.frames++
	if now == nil && r.counts[softLockup]+r.counts[hardLockup] > 0 {
		r.traced = true
		if tracing && m[1] == "" && len(r.stuckIn) < 3 && !r.inIRQ {
			r.stuckIn = append(r.stuckIn, m[2])
		}
	}
	r.interrupt = r.interrupt || r.counts[allocFail] > 0 && inInterrupt(m[2])
	if now == nil || !tracing || len(now.sure)+len(now.maybe) > 256 {
		return
	}
	if m[1] != "" || leftOver(m[3], m[4]) {
		now.maybe = append(now.maybe, m[2])
	} else {
		now.sure = append(now.sure, m[2])
	}
}

// event counts an event, and returns the task whose dump may follow.
func (r *report) event(e *event, text string, now *task) *task {
	m := e.line.FindStringSubmatch(text)
	if e.name == allocFail && r.vmallocs.open { // the rest of its report, of order 0
		r.vmallocs.by, r.vmallocs.open = cmp.Or(r.vmallocs.by, m[1]), false
		return nil
	}
	r.counts[e.name]++
	if r.first[e.name] == nil {
		r.first[e.name] = m
	}
	if e.name == synFlood || e.name == diskFailed {
		r.count(e.name, strings.TrimSpace(m[1]))
	}
	switch e.name {
	case hungTask:
		if i := len(r.tasks) - 1; i >= 0 && !isDigits(m[2]) && r.tasks[i].name == m[1] && r.tasks[i].hung {
			r.counts[hungTask]-- // a title of the same words
			return r.tasks[i]
		}
		t := &task{name: m[1], pid: m[2], hung: true, asleep: float(m[3]), times: 1}
		r.tasks = append(r.tasks, t)
		return t
	case lockOwner:
		r.owners = append(r.owners, owner{m[1], m[3], m[4], m[5]})
		return now
	case allocStall:
		ms := float(m[2])
		if inBackground(m[1]) {
			r.background, r.worker = append(r.background, ms*1e6), printed(m[1])
			return nil
		}
		r.stalls = append(r.stalls, ms*1e6)
	case vmallocFail:
		r.vmallocs.add(m[1], m[2], text)
	case allocFail:
		r.sleeps = r.sleeps || maySleep(m[3])
	case thermal:
		r.heat.events = max(r.heat.events, float(m[1]))
	case hwCorrected, hwBroken, busError:
		r.hardware(text)
	case netTimeout, netReset:
		r.nics.late(text)
	case netDown:
		if !r.nics.lost(text) {
			r.counts[netDown]--
		}
	case softLockup:
		r.stuck.add(m[1], m[2])
	case hardLockup:
		r.stuck.add(m[1], "0")
	case rcuStall:
		if strings.HasPrefix(m[0], "All QSes seen") {
			r.rcu.passed = true
			if f := rcuActivity.FindStringSubmatch(m[0]); f != nil {
				r.rcu.starved(f)
			}
			r.counts[rcuStall] = max(1, r.counts[rcuStall]-1) // a line of the report above
		}
		r.rcu.read(text)
	case rcuStarved:
		r.rcu.starved(m)
		r.rcu.ready = r.rcu.ready || strings.Contains(text, "->state=0x0 ") || strings.Contains(text, "->state=R")
	case oomDetail:
		r.oom.read(text)
		asked := strings.Contains(text, "invoked oom-killer")
		if !asked && r.oom.open { // the same report goes on
			r.counts[oomDetail]--
		}
		r.oom.open = asked
	case oomKill, oomGroup:
		head := printed(m[2] + " (pid " + m[1] + ")")
		r.killed = append(r.killed, head+r.residentOf(m[3]))
		if r.chosen = ""; strings.Contains(text, "Kill process") || strings.Contains(text, "kill process") {
			r.chosen = head
		}
	}
	return nil
}

var anonRSS = pattern.New(`anon-rss:(\d+)kB`)

func (r *report) residentOf(text string) string {
	m := anonRSS.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	v := float(m[1]) * 1024
	r.freed = max(r.freed, v)
	return ", " + mem(v) + " anonymous"
}

var ripLine = pattern.New(`^(?:RIP: \S+?:|pc : |EIP: \S+?:|NIP \[[0-9a-f]+\] \.?)\s*(?:\[<[0-9a-f]+>\]\s*(?:\[<[0-9a-f]+>\]\s*)?)?([A-Za-z_][\w.]*)\+0x`)

// other reads what stands between: the machine, where a CPU was stuck, what a Mem-Info dump says of
// zones, and the size of what was killed, which kernels before 5.0 print in a line of its own.
func (r *report) other(text string) {
	text = strings.TrimSpace(text)
	r.host.read(text)
	r.nics.came(text)
	if strings.HasSuffix(text, "temperature/speed normal") {
		r.heat.normal++
	}
	if strings.Contains(text, "[Hardware Error]") {
		r.hardware(text)
	}
	if strings.Contains(text, "CDB: ") && r.counts[diskAborted]+r.counts[diskReset] > 0 {
		r.device(deviceOf(text))
	}
	r.oom.read(text)
	r.sums.read(text)
	r.clockLine(text)
	r.usbDisk = r.usbDisk || strings.Contains(text, "usb-storage") || strings.Contains(text, "uas") ||
		strings.Contains(text, "USB Mass Storage") || strings.HasPrefix(text, "sd ")
	if r.counts[rcuStall] > 0 {
		r.rcu.read(text)
	}
	if r.counts[softLockup] > 0 {
		r.irqs.read(text)
	}
	r.inIRQ = r.inIRQ || strings.Contains(text, "<IRQ>") || strings.Contains(text, "<NMI>")
	if r.counts[allocFail] > 0 && strings.Contains(text, "<IRQ>") {
		r.interrupt = true
	}
	if m := suppressedLine.FindStringSubmatch(text); m != nil {
		n := float(m[1])
		r.suppressed += n
	}
	if m := killedLine.FindStringSubmatch(text); m != nil {
		head := printed(m[2] + " (pid " + m[1] + ")")
		if i := slices.Index(r.killed, head); i >= 0 {
			r.killed[i] = head + r.residentOf(m[3])
		} else if i := slices.Index(r.killed, r.chosen); i >= 0 {
			r.killed[i] = head + r.residentOf(m[3]) + "; chosen was " + r.chosen
		} else if !slices.ContainsFunc(r.killed, func(k string) bool { return strings.HasPrefix(k, head) }) {
			r.killed = append(r.killed, head+r.residentOf(m[3]))
			r.oom.seen = true
		}
		r.chosen = ""
	}
	if w, ok := strings.CutPrefix(text, "Workqueue: "); ok && r.work == "" && r.counts[softLockup] > 0 {
		_, r.work, _ = strings.Cut(w, " ")
	}
	r.watermark(text)
	if r.counts[softLockup] > 0 && r.spin == "" && r.frames == 0 && userMode.MatchString(text) {
		r.user = true
	}
	if m := ripLine.FindStringSubmatch(text); m != nil && r.spin == "" && r.counts[softLockup]+
		r.counts[hardLockup]+r.counts[rcuStall] > 0 {
		r.spin = m[1]
	}
	r.blocks(text)
}

// userMode knows where a task was that was in no call of the kernel: by the segment on x86, by the
// address on RISC-V, whose kernel is at the top.
var userMode = pattern.New(`^(?:RIP: 0033:|epc ?: ?0000[0-9a-f]{12} )`)

var (
	killedLine = pattern.New(`^Killed process (\d+) \((\(?[^)]*\)?)\)(.*)`)
)

// fewLogLines is less than anybody shows to prove that a log is quiet.
const fewLogLines = 10

// read puts the events in words, the gravest first.
func (r *report) read(p *attach.Part) attach.Reading {
	out := attach.Reading{Title: fmt.Sprintf("kernel log, %s", plural(r.lines, "line", "lines")),
		State: attach.Healthy, Time: p.Lines[0].Time}
	var said []string
	if r.usbDisk {
		r.counts[diskReset] += r.counts[usbReset]
		r.counts[usbReset] = 0
	}
	for _, e := range events {
		n := r.counts[e.name]
		if n == 1 {
			said = append(said, "1 "+e.words)
		} else if n > 1 {
			said = append(said, number(float64(n))+" "+e.many)
		}
	}
	if len(said) == 0 && r.oom.seen {
		said = []string{"a report of memory that ran out"}
	}
	if len(said) > 0 {
		out.Title += ": " + strings.Join(said[:min(4, len(said))], ", ")
	}
	r.readTasks(&out)
	r.readLockups(&out)
	r.readAllocations(&out)
	r.readDisks(&out)
	r.readFarDisks(&out)
	r.readOOM(&out)
	r.readOutside(&out)
	r.readLimits(&out)
	r.readHardware(&out)
	r.readNotes(&out)
	r.readComplaints(&out)
	if out.Means == "" && r.frames >= 3 {
		out.State = attach.CannotTell
		out.Means = "It has a stack of the kernel's, and the line that says why it was printed is not in the paste."
	} else if out.Means == "" && r.lines < fewLogLines {
		out.State = attach.CannotTell
		out.Means = "Nothing in so little of a log is known as a stall; what it says besides is not in the paste."
	} else if out.Means == "" {
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
