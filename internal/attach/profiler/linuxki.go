package profiler

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var linuxKI = &attach.Kind{Name: "LinuxKI report", Claim: claimKI, Read: readKI, Reports: true}

// kiLine is what a line of a LinuxKI report is.
type kiLine int

const (
	kiNone kiLine = iota
	kiWeak        // may stand in other texts too
	kiSure
)

var (
	kiProcess = pattern.New(`^[PT]ID:?\s+\d+\s+\S`)
	kiParent  = pattern.New(`^PPID:?\s+\d+(\s|$)`)
	// "  24425  57.34%  SYS    native_queued_spin_lock_slowpath [kernel]"
	kiHot = pattern.New(`^(\d+)\s+(\d+[.,]\d+)%\s+(SYS|USER|INTR|IDLE|HARDIRQ|SOFTIRQ|GUEST)\s+(\S.*)$`)
	// "  21652  50.83%  f  g  h"
	kiStack = pattern.New(`^(\d+)\s+(\d+[.,]\d+)%\s+([\w.\[].*)$`)
	// "  14.12  0.132  f g h", with a count before it in later versions
	kiSleepStack = pattern.New(`^(?:(\d+)\s+)?(\d+[.,]\d+)%?\s+(\d+[.,]\d+)\s+([A-Za-z_].*)$`)
	// "806 7.12% 5.9461 32.03% 29.75% 7.377 80.777 sleep_on_page"
	kiSleepFunc = pattern.New(`^(?:(\d+)\s+)?(\d+[.,]\d+)%\s+(\d+[.,]\d+)\s+(\d+[.,]\d+)%\s+(\d+[.,]\d+)%\s+(\d+[.,]\d+)\s+(\d+[.,]\d+)\s+(\S+)$`)
	// "pread64  152041  7602.0  207.595974  0.001365  0.033280  0  8192  60816.0"
	kiCall = pattern.New(`^([A-Za-z_]\w*)\s+(\d+)\s+(\d+[.,]\d+)\s+(\d+[.,]\d+)\s+(\d+[.,]\d+)\s+(\d+[.,]\d+)\s+(\d+)(\s+\d.*)?$`)
	// "SLEEP 1437 71.8 2.926927 0.002037", and its functions:
	// "Sleep Func 1424 2.817186 0.001978 0.017275 io_schedule_timeout"
	kiCallPart = pattern.New(`^(SLEEP\s+\d+\s+\d+[.,]\d+\s+\d|Sleep Func\s+\d+\s+\d+[.,]\d|RUNQ\s+\d+[.,]\d+$|CPU\s+\d+[.,]\d+$|AIO (Reads|Writes)\s+\d)`)
	// "10434 0.433559 0.432090 0.000000 1.952888 17.606416 0.012748 [kworker/29:256]"
	kiTask = pattern.New(`^(\d+)\s+(\d+\.\d{6})\s+(\d+\.\d{6})\s+(\d+\.\d{6})\s+(\d+\.\d{6})\s+(\d+\.\d{6})(?:\s+(\d+\.\d{6}))?\s+(\S.*)$`)
	// "RunQTime : 0.408500 Switch Cnt: 32598 PreemptCnt : 1469"
	kiPair = pattern.New(`([A-Za-z][A-Za-z-]*(?: (?:CPU|Cnt|Migrs))?)\s*:\s*([-+\w.,%]+)`)
	kiIRQ  = pattern.New(`^(\d+\s+)?[A-Z][A-Z_]+\s+\d+\s+\d+\.\d{6}$`)
	// "0.100159 cpu=2 pid=1026 recvfrom ret=0xd68 syscallbeg= 0.000802 fd=9"
	// "0x00800010 w 0.55 0.05 718 108100 150 0.01 0.95 14352"
	kiDevice = pattern.New(`^0x[0-9a-f]{6,}\s+(?:[rwt]\s+\d+\.\d|/dev/\S+$)`)
	// "0 [ 20] : 34.63% 7.50% 26.90% 65.20%"
	kiNode = pattern.New(`^(?:\d+ \[\s*(\d+)\]\s*:|Total)\s+\d+\.\d+%`)
	// "7186 9 28.55% 3.598721 [kworker/11:281]", of who woke whom
	kiWaker = pattern.New(`^\d+\s+\d+\s+\d+\.\d+%\s+\d+\.\d{6}\s+\S`)
	// "393545 1267 1258 1 0.694290 /usr/lib/program", of who woke many at once
	kiHerd    = pattern.New(`^(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+\d+\.\d{6}\s+(\S.*)$`)
	kiTrace   = pattern.New(`^\d+\.\d{6} cpu=\d+ [pt]id=\d+ `)
	kiSection = pattern.New(`^\d+\.\d+(\.\d+)*\s+[A-Z][\w ]+`)
)

// kiHeads are lines that only LinuxKI prints, by what they have in them.
var kiHeads = []string{"SCHEDULER ACTIVITY REPORT", "SYSTEM CALL REPORT", "CPU ACTIVITY REPORT",
	"HARDCLOCK REPORT", "HARDCLOCK STACK TRACES", "HARDCLOCK entries",
	"SLEEP REPORT", "PHYSICAL DEVICE REPORT", "FILE ACTIVITY REPORT",
	"Kernel Functions executed during profile", "functions calling sleep()", "Functions calling sleep()",
	"leep stack traces (sort by", "Report of non-idle kernel", "PIDs Waiting on RunQ",
	"Tasks sorted by System Time", "Tasks sorted by", "Top Files sorted by", "PROCESS MEMORY REPORT",
	"NETWORK ACTIVITY REPORT", "COOP REPORT", "RUNQ LATENCY REPORT", "COOPERATING/COMPETING TASKS",
	"Tasks woken up by this task", "Tasks that have woken up this task", "Soft IRQ events",
	"Hard IRQ events", "Thundering Herd Detection", "- Top Wait Functions -",
	"- Top Hardclock Functions -", "- Top System Calls -", "- Total I/O -"}

// kiWords are headers of its tables.
var kiWords = [][]string{{"System", "Call", "Name", "Count", "Rate"},
	{"Count", "Pct", "State", "Function"}, {"Count", "Pct", "Function"},
	{"Count", "Pct", "Stack", "trace"}, {"Count", "Pct", "HARDCLOCK"},
	{"node", "ncpu"}, {"cpu", "node", "Total", "Busy"}, {"cpu", "node", "Busy"},
	{"device", "rw", "avque"}, {"PID", "Count", "SlpPcnt"},
	{"nCPU", "sys%"}, {"Busy", "sys", "usr", "idle"}, {"Pct", "SlpTime", "Slp%"},
	{"Count", "Pct", "SlpTime"}, {"PID", "RunTime", "SysTime"}, {"wpct", "avg"}, {"count", "wpct", "avg"},
	{"Count", "USER%", "SYS%"}, {"IRQ", "Name", "Count", "ElpTime"}, {"IRQ", "Name", "Count"},
	{"PID", "Wakeups", "MaxWakeups"},
	{"Count", "SlpTime", "Msec/Slp"}, {"Device", "IO/s", "MB/s", "AvIOsz"}, {"LLC_ref", "LLC_hits"}}

// mostKI is longer than any line of LinuxKI: a stack has at most 16 functions.
const mostKI = 4 << 10

func kiLineOf(text string) kiLine {
	if len(text) > mostKI {
		return kiNone
	}
	for _, h := range kiHeads {
		if strings.Contains(text, h) {
			return kiSure
		}
	}
	for _, w := range kiWords {
		if header(text, w...) {
			return kiSure
		}
	}
	switch {
	case strings.HasPrefix(text, "RunTime") && strings.Contains(text, ":"),
		strings.HasPrefix(text, "RunQTime"), kiHot.MatchString(text), kiSleepFunc.MatchString(text),
		kiCallPart.MatchString(text), kiCall.MatchString(text), kiTask.MatchString(text),
		kiTrace.MatchString(text), kiDevice.MatchString(text),
		kiNode.MatchString(text), kiWaitFunc.MatchString(text), kiWaker.MatchString(text),
		kiHerd.MatchString(text), strings.HasPrefix(text, "SleepTime"):
		return kiSure
	case kiDisk.MatchString(text), kiCounters.MatchString(text), kiProcess.MatchString(text),
		kiParent.MatchString(text), kiStack.MatchString(text), kiSleepStack.MatchString(text), kiIRQ.MatchString(text),
		strings.Contains(text, "[Next") || strings.Contains(text, "[Prev") ||
			strings.Contains(text, "[Table of"), kiSection.MatchString(text),
		strings.Trim(text, "^=*- .…") == "", strings.HasPrefix(text, "Warning: "),
		header(text, "Count", "USER", "SYS", "INTR"),
		strings.HasPrefix(text, "device: 0x"), kiFile.MatchString(text), kiWrapped(text),
		strings.HasPrefix(text, "The percentages below"),
		strings.HasPrefix(text, "of the Thread's total"), strings.HasPrefix(text, "User code or System"),
		strings.HasPrefix(text, "%") && strings.Contains(text, "msecs"), kiNumbersOnly(text), kiPairs(text):
		return kiWeak
	}
	return kiNone
}

// kiNumbersOnly reports whether a line has only numbers and percents, as rows without a name.
func kiNumbersOnly(text string) bool {
	for _, f := range strings.Fields(text) {
		if _, ok := number(strings.TrimSuffix(f, "%")); !ok {
			return false
		}
	}
	return true
}

// kiPairs reports whether a line is pairs such as "busy : 31.21%" of a scheduler report.
func kiPairs(text string) bool {
	key, _, ok := strings.Cut(text, ":")
	return ok && kiKeys[strings.ToLower(strings.TrimSpace(key))]
}

var kiKeys = map[string]bool{"busy": true, "sys": true, "user": true, "irq": true, "runq": true,
	"sleep": true, "hardirq": true, "softirq": true, "last cpu": true,
	"policy": true, "runqpri": true, "runqidle": true, "runtime": true, "sleeptime": true,
	"runqtime": true, "total": true, "hardirq_s": true}

func claimKI(lines []paste.Line) int {
	if first := strings.TrimSpace(lines[0].Text); !mayStartKI(first) || kiLineOf(first) == kiNone {
		return 0
	}
	sure, weak := false, 0
	n := claimed(lines, func(_ int, text string) bool {
		switch kiLineOf(text) {
		case kiNone:
			return false
		case kiSure:
			sure = true
		default:
			weak++
		}
		return sure || weak < 12
	})
	return attach.ClaimIf(sure, n)
}

// mayStartKI spares most lines of a long log the expressions: it looks at a line's first word.
func mayStartKI(text string) bool {
	if text == "" {
		return false
	}
	word := text
	if i := strings.IndexAny(text, " :\t"); i >= 0 {
		word = text[:i]
	}
	c := text[0]
	switch {
	case c >= '0' && c <= '9':
		word, _, _ := strings.Cut(text, " ")
		_, ok := number(strings.TrimSuffix(word, "%"))
		return ok || strings.Count(word, ".") > 1
	case c == '[':
		return strings.Contains(text, "[Next") || strings.Contains(text, "[Prev") || strings.Contains(text, "[Table")
	case c == '^', c == '=', c == '*', c == '-', c == '%', c == '.':
		return true
	case kiFirst[word]:
		return true
	}
	rest := strings.TrimLeft(text[len(word):], " ") // a row of a table of system calls
	return rest != "" && rest[0] >= '0' && rest[0] <= '9' && (kiCall.MatchString(text) || kiIRQ.MatchString(text))
}

var kiFirst = words(`PID TID PPID RunTime SleepTime RunQTime HardIRQ SoftIRQ Last Policy busy sys user irq runQ sleep nCPU Busy Count Pct count wpct System
	Kernel Process Global GLOBAL non-idle functions Functions Sleep SLEEP RUNQ CPU AIO Warning device The of User Soft Hard IRQ Report Top Total SysTime SCHEDULER FD FD: node cpu Tasks`)
