package kernelfile

import (
	"cmp"
	"strings"
	"unicode"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// klog is what the kernel logs, as dmesg and journals show it. With the kernel's own stamp in front
// every line is known; without, those of events that are known here and what belongs to them.
var klog = &attach.Kind{
	Name: "kernel log", Scattered: true, Yields: []string{"/proc/PID/stack"},
	Marks: []string{"blocked for more than", "likely owned by", "soft lockup", "ard LOCKUP", "detected stall", "All QSes seen, ", "self-detected", "detected expedited",
		"ut of memory: Kill", "ut of memory: kill", "ut of Memory: Kill", "oom-killer", "Message from syslogd@", "page allocation stall", "page allocation failure", "table full", "SYN flooding", "unstable",
		"Emask ", "I/O error", "clock throttled", "clock is throttled", "took too long", "hogged CPU", "NETDEV WATCHDOG", "RT throttling",
		"table overflow", "segfault at", "kernel BUG", "ernel panic", "Show Blocked State", "timing out command",
		"not responding", "orphaned sockets", "consider tuning tcp_mem", "force closing socket", "time wait bucket", "Memory cgroup stats", "Tasks state (memory", "Mem-Info:", "hrtimer: interrupt",
		"QID ", "Device not ready", "controller is down", "not ready; aborting", "task abort", "Timeout waiting for",
		"attempting ", "bort command issued", "uas_eh_", "reset request", "SError: {", "xfs_do_force_shutdown", "Remounting filesystem", "forced readonly", "uncorrectable I/O failure",
		"ping timeout of", "detected conn error", "recovery timed out", "blocked FC remote", "PingAck did not", "memory allocation deadlock", "EDAC ", "[Hardware Error]", "CMCI storm", "PCIe Bus Error", "Correct",
		"TX timeout", "Unit Hang", "wasn't completed on time", "tx timeout", "Link is Down", "backlog limit exceeded", "fork rejected by pids", "file-max limit", "workqueue lockup", "EXT4-fs ", "BTRFS", "XFS ("},
	Claim: func(lines []paste.Line) int {
		if broadcast.MatchString(lines[0].Text) && len(lines) > 1 && strings.HasPrefix(strings.TrimSpace(lines[1].Text), "kernel:") {
			return 2
		}
		text, stamped := kernelText(lines[0])
		if killerLine(lines[0]) || stamped && !ofKernel(lines) {
			return 0
		}
		if !stamped && (eventOf(text) == nil || prose(lines[0])) && !blockHead(text) && !startsDump(text) && !startsTrace(lines) && !(lines[0].Raw != "" && goesOn(text)) {
			return 0
		}
		n := 1
		for n < len(lines) && lines[n].Command == "" && !killerLine(lines[n]) && goesOnAt(lines, n) {
			n++
		}
		return n
	},
	Read: readKlog,
}

// startsTrace knows a stack of the kernel's whose head somebody left out, and the line that says on
// which CPU and in which task it was taken.
func startsTrace(lines []paste.Line) bool {
	text := strings.TrimSpace(lines[0].Text)
	if strings.HasPrefix(text, "CPU: ") {
		return rcuTrace.MatchString(text)
	}
	return (text == "Call Trace:" || text == "Call trace:") && len(lines) > 2 &&
		frameLine.MatchString(lines[1].Text) && frameLine.MatchString(lines[2].Text)
}

// program is how a journal that shows the kernel's stamps names the program that wrote a line. The
// kernel's own log has such lines of systemd, too.
var program = pattern.New(`^(?:[\w.-]+ )?[\w.@:/-]+\[\d{1,7}\]: `)

// ofKernel reports whether one of the stamped lines above the first other line is the kernel's own.
func ofKernel(lines []paste.Line) bool {
	for _, l := range lines[:min(200, len(lines))] {
		text, stamped := kernelText(l)
		if !stamped || killerLine(l) {
			return false
		}
		if !strings.Contains(text, "]: ") || !program.MatchString(text) || eventOf(text) != nil {
			return true
		}
	}
	return len(lines) > 200
}

// broadcast is how syslogd heads what it writes to every terminal; the message stands below it.
var broadcast = pattern.New(`^Message from syslogd@\S+ at .*\.\.\.$`)

// prose reports whether a line without a stamp is somebody's own sentence that quotes the kernel:
// what the kernel says is ASCII, and has no marks of a text's form.
func prose(l paste.Line) bool {
	text, stamped := klogText(l.Text)
	if stamped || l.Raw != "" || strings.Contains(text, "kernel:") {
		return false
	}
	return strings.HasPrefix(text, "#") || strings.IndexFunc(text, func(c rune) bool { return c == '`' || c > unicode.MaxLatin1 && unicode.IsLetter(c) }) >= 0
}

// goesOnAt reports whether line n goes on with what the lines above it report.
func goesOnAt(lines []paste.Line, n int) bool {
	line := lines[n]
	text, stamped := kernelText(line)
	switch {
	case stamped:
		return true
	case strings.TrimSpace(text) == "":
		return false
	case groupStat(text) && (groupStat(lines[n-1].Text) || strings.Contains(lines[n-1].Text, "Memory cgroup stats for ")):
		return true
	case strings.HasPrefix(line.Text, "        "), eventOf(text) != nil && !prose(line), blockHead(text), belongs(text), moduleNames(text):
		return true
	}
	return wrappedAt(lines, n)
}

// groupStat reports whether a line is one of memory.stat, which a report of a group's memory has.
func groupStat(text string) bool {
	name, _, ok := pair(strings.TrimSpace(text))
	return ok && memoryStatKnown(name) && !strings.Contains(text, ":")
}

// wrappedAt reports whether line n is the rest of a line that a terminal or a mail broke: lines
// with a stamp stand above and below.
func wrappedAt(lines []paste.Line, n int) bool {
	if line := lines[n]; line.Raw != "" || len(line.Text) > 160 || n+1 >= len(lines) && !endsWrapped(lines, n) {
		return false
	}
	before := lines[n-1]
	_, above := klogText(before.Text)
	if above = above || before.Raw != ""; !above || len(cmp.Or(before.Raw, before.Text)) < 50 {
		return false
	}
	if n+1 >= len(lines) {
		return true
	}
	_, below := kernelText(lines[n+1])
	return below || lines[n+1].Raw != "" && lines[n+1].Source == before.Source
}

// endsWrapped reports whether the last line repeats what was wrapped before.
func endsWrapped(lines []paste.Line, n int) bool {
	return n >= 3 && lines[n].Text == lines[n-2].Text
}

// moduleNames knows the rest of a list of modules, which is longer than any terminal is wide.
func moduleNames(text string) bool {
	f := strings.Fields(text)
	for _, w := range f {
		w = strings.TrimSuffix(strings.TrimSuffix(w, "]"), ")")
		if strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-(+") != "" {
			return false
		}
	}
	return len(f) >= 4 && strings.Count(text, "_") >= len(f)/4+1
}

// startsDump knows the first line of a report of memory.
func startsDump(text string) bool {
	text = strings.TrimSpace(text)
	return text == "Mem-Info:" || strings.HasPrefix(text, "memory: usage ") && oomUsage.MatchString(text) || strings.HasPrefix(text, "Mem-info:") || strings.HasPrefix(text, "Memory cgroup stats for /") || strings.HasPrefix(text, "Tasks state (memory values in pages)")
}

var stamps = []*pattern.Regexp{
	pattern.New(`^(?:<\d+>)?\[ {0,8}\d{1,9}\.\d{0,6}(?:@\d+)?\](?:\[ *[TC]?\d+\])?(?: |$)`),
	// Days and months are in the language of who ran dmesg -T.
	pattern.New(`^\[\pL[\pL.]{0,11} {1,3}(?:\pL[\pL.]{1,11}|\d{1,2}\pL{1,2}) {1,3}\d{1,2} \d\d:\d\d:\d\d \d{4}\](?: |$)`),
	pattern.New(`^\d{1,9}\.\d{6}\] `), // its start was cut off
}

// relayed is the stamp with its level, as a serial console or a hypervisor's log passes it on.
var relayed = pattern.New(`<\d{1,2}>\[ {0,8}\d{1,9}\.\d{6}\]`)

// klogText takes the kernel's stamp off a line, and reports whether there was one.
func klogText(text string) (rest string, stamped bool) {
	text = strings.TrimLeft(text, " ")
	if i := strings.Index(text, "kernel: ["); i > 0 && i < 64 {
		text = text[i:] // a journal's line without the host, or cut off
	}
	if i := strings.Index(text, ">["); i > 2 && i < 120 {
		if at := relayed.FindStringIndex(text); at != nil && at[0] < 120 {
			text = text[at[0]:]
		}
	}
	text = strings.TrimPrefix(text, "kernel: ")
	if text == "" || text[0] != '[' && text[0] != '<' && (text[0] < '0' || text[0] > '9') {
		return text, false
	}
	for _, re := range stamps {
		if at := re.FindStringIndex(text); at != nil {
			return text[at[1]:], true
		}
	}
	return text, false
}

// kernelText is klogText for a line whose logger's prefix may name the kernel.
func kernelText(l paste.Line) (rest string, own bool) {
	rest, own = klogText(l.Text)
	if !own && l.Raw != "" {
		i := strings.Index(l.Raw, " kernel: ")
		own = i > 0 && i < 100
	}
	return rest, own
}

// frame is a function on a stack; a mark says that it may be left over from an earlier call.
//
// POWER shows the stack's address as well, and a dot before names; syzbot adds the source's line.
var frameLine = pattern.New(`^\s*(?:\[<[0-9a-fA-Fx]+>\] |\[[0-9a-f]{8,16}\] \[[0-9a-f]{8,16}\] )?(?:(?:\([\w.+/ \[\]]+\)|[\w.]+) from (?:\[<[0-9a-f]+>\] )?\(?)?(\? )?\.?([A-Za-z_][\w.]*)\+0x([0-9a-f]+)/0x([0-9a-f]+)(?: \[[\w ]*\]?)?\)?(?: [\w./-]+\.[chS]:\d+)?(?: \(unreliable\))?\s*$`)

// powerFrame is any line of a stack on POWER.
var powerFrame = pattern.New(`^\[c[0-9a-f]{7,15}\] \[[0-9a-f]{8,16}\] `)

// inlined is a function that syzbot adds to a stack, since the compiler put it into the one below.
var inlined = pattern.New(`^\s*[A-Za-z_][\w.]* [\w./-]+\.[chS]:\d+ \[inline\]\s*$`)

// taskLine and oldTaskLine start the dump of one task, which also shows its state.
var (
	taskLine    = pattern.New(`^\s*task:(\S.*?)\s+state:([A-Z])\s.*?pid: *(\d+)`)
	oldTaskLine = pattern.New(`^(\S.{0,15}?)\s+([DRSTZ])(?:\s+[0-9a-f]{4,16}|\s+\([\w ]+\)|\s+running task)?\s+\d+\s+(\d+)\s+\d+ +(?:0x[0-9a-f]+|[0-9a-f]{8})?(?: last_sleep: .*)?$`)
)

// blockHead reports whether a line starts a dump of a task.
func blockHead(text string) bool {
	return strings.Contains(text, "state:") && taskLine.MatchString(text) || strings.Contains(text, "  ") && oldTaskLine.MatchString(text)
}

var belongsTo = []string{"Call Trace:", "Call trace:", "RIP: ", "RSP: ", "RAX: ", "RBP: ", "RDX: ", "R10: ", "R13: ", "CR2: ", "FS: ", "CS: ", "Code: ", "</TASK>", "<TASK>", "</IRQ>", "<IRQ>", "<NMI>", "</NMI>", "ORIG_RAX", "EFLAGS",
	"Tainted: ", "Not tainted ", "Hardware name: ", "CPU: ", "Workqueue: ", "Modules linked in", "Mem-Info:", "Node ", "lowmem_reserve", "active_anon:", "active_file:", "unevictable:", "slab_reclaimable:", "slab_unreclaimable:", "pagetables:", "writeback:",
	"Swap cache stats", "Free swap", "Total swap", "pagecache pages", "pages RAM", "pages HighMem", "pages reserved", "pages hwpoisoned", "pages in swap cache", "total pagecache pages", "swapper", "Tasks state", "[  pid  ]", "[ pid ]",
	"oom_score_adj", "Memory cgroup stats", "memory: usage", "memory+swap: usage", "kmem: usage", "swap: usage", "Memory limit reached", "oom_reaper: ", "\"echo 0 >", "Sending NMI", "NMI backtrace", "irq event stamp",
	"anon ", "rss:", "Showing all locks", "Comm: ", "Pid: ", "NIP: ", "NIP [", "LR [", "GPR", "REGS: ", "MSR: ", "hardirqs last ", "softirqs last ", "warn_alloc", "task                        PC stack", "hi:", "per-cpu:", "DMA: ", "Normal: ", "cache:", "likely owned by", "jiffies", "lr : ", "pc : ", "sp : ", "pstate: ", "x29: ", "---[", "callbacks suppress", "free_cma", "free_pcp", "kernel_misc_reclaimable:", "zspages:", "present:", "managed:", "clocksource", "softreset", "SATA link", "task abort: ", "device reset: ", "target reset: ", "host reset: ", "CDB: ", "SError: {", "failed command: ", "EH complete", "mcelog[", "mcelog: ", "This is not a software error", "THERMAL EVENT", "trip temperature", "temperature/speed normal", "[Hardware Error]", "isolated_file:", "HighMem: ", "DMA32: ",
	"Killed process ", "oom-kill:constraint", "Task in /", "hierarchical_memory_limit", "total_rss", "DMA free:", "DMA32 free:", "Normal free:", "HighMem free:", "all_unreclaimable?", "pages_scanned:", "*4096kB = ", "pages shared", "pages non-shared", "pages of RAM"}

// belongs reports whether a line without a stamp goes on with an event.
func belongs(text string) bool {
	if frameLine.MatchString(text) || strings.HasSuffix(text, "[inline]") && inlined.MatchString(text) ||
		strings.HasPrefix(text, "[c") && powerFrame.MatchString(text) ||
		strings.Contains(text, ": (") && rcuRow.MatchString(strings.TrimSpace(text)) {
		return true
	}
	for _, b := range belongsTo {
		if strings.Contains(text, b) {
			return true
		}
	}
	return hexWords(text)
}

// goesOn reports whether a line of a log, which lines of others may part from its event, can be
// nothing else than the kernel's.
func goesOn(text string) bool {
	for _, b := range []string{"Call Trace:", "Call trace:", "\"echo 0 >", "      Not tainted ", "      Tainted: ", "RIP: 00", "<TASK>", "</TASK>", "callbacks suppress"} {
		if strings.Contains(text, b) {
			return true
		}
	}
	return strings.Contains(text, "+0x") && frameLine.MatchString(text)
}

// hexWords are the raw words of a stack or of registers.
func hexWords(text string) bool {
	f := strings.Fields(text)
	for _, w := range f {
		if len(w) < 8 || strings.Trim(w, "0123456789abcdef") != "" {
			return false
		}
	}
	return len(f) >= 2
}
