package profiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var (
	straceLines = &attach.Kind{Name: "strace", Claim: claimStrace, Read: readStrace, Reports: true}
	ltraceLines = &attach.Kind{Name: "ltrace", Claim: claimLtrace, Read: readLtrace, Yields: []string{"strace"}, Reports: true}
	perfTrace   = &attach.Kind{Name: "perf trace", Claim: claimPerfTrace, Read: readPerfTrace,
		Hints: []string{" ms): ", "): ", ": ... [continued]"}}
)

// tracedCall is a line of strace, ltrace or perf trace.
type tracedCall struct {
	tid      int
	at       float64 // s, by whatever clock; -1: none
	name     string
	seconds  float64 // -1: not said
	errno    string  // "": none
	open     bool    // unfinished
	restart  bool    // a signal ended it, or strace; it goes on afterwards
	resumed  bool
	relative bool // at is the distance from the line before
	marked   bool // ltrace -S marks system calls
	futex    futexWait
	torn     bool   // the text ends within the line
	addr     string // of a futex
}

var (
	callHead = pattern.New(`^(?:\[pid\s+(\d+)\] |(\d+)\s+)?(?:(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))? (?:\(\+ +\d+\.\d{1,9}\) )?|(\d+\.\d{6}) )?\s*(?:\[(?:[0-9a-f]{8}|[0-9a-f]{16}|\?{8}|\?{16})\] )?(.*)$`)
	callName = pattern.New(`^(?:<\.\.\. )?((?:[\w.+-]+->)?[A-Za-z_][\w@.:~]*)(?:\(| resumed>)`)
	callTime = pattern.New(`<(\d+\.\d{3,9})>$`)
	callEnd  = pattern.New(`\)\s*= `)
	// the lock or condition of a futex call
	futexAddr = pattern.New(`^futex\((0x[0-9a-f]+),`)
	callErr   = pattern.New(`= -1 (E[A-Z0-9]+)(?: |$)`)
	// "     0.060 ( 0.082 ms): redis/12 openat(dfd: CWD) = 3"
	perfCall = pattern.New(`^(\d+[.,]\d{3}|\?)\s+\(\s*(\d+[.,]\d{3}|[^)]*)(?: ms)?\s*\):\s+(?:(\S+)/(\d+)\s+)?(?:\.\.\. \[continued\]: )?(\w+)\(`)
)

// tracedCallOf reads a line of strace or ltrace.
func tracedCallOf(text string) (c tracedCall, ok bool) {
	if len(text) > 1<<16 || strings.IndexByte(text, '(') < 0 && !strings.Contains(text, " resumed>") {
		return c, false
	}
	if !strings.Contains(text, "= ") && !strings.Contains(text, "<unfinished") &&
		!strings.Contains(text, " resumed>") && !strings.HasSuffix(text, "<no return ...>") {
		return c, false // most lines of a log
	}
	m := callHead.FindStringSubmatch(text)
	if m == nil {
		return c, false
	}
	n := callName.FindStringSubmatch(m[8])
	if n == nil {
		return c, false
	}
	c = tracedCall{name: n[1], at: -1, seconds: -1, resumed: strings.HasPrefix(m[8], "<... ")}
	if _, after, ok := strings.Cut(c.name, "->"); ok {
		c.name = after
	}
	c.name, c.marked = strings.CutPrefix(c.name, "SYS_")
	c.tid, _ = whole(m[1] + m[2])
	if m[3] != "" {
		h, _ := number(m[3])
		min, _ := number(m[4])
		s, _ := number(m[5] + "." + m[6] + "0")
		c.at = h*3600 + min*60 + s
	} else if m[7] != "" {
		c.at, _ = number(m[7])
		c.relative = c.at < 1e6
	}
	c.open = strings.Contains(text, "<unfinished") || strings.HasSuffix(text, "<no return ...>")
	c.restart = strings.Contains(text, ") = ? ERESTART")
	if a := futexAddr.FindStringSubmatch(m[8]); a != nil {
		c.addr = a[1]
	}
	if (c.open || c.restart) && c.name == "futex" {
		c.futex = futexWaitOf(m[8])
	}
	if t := callTime.FindStringSubmatch(text); t != nil {
		c.seconds, _ = number(t[1])
	}
	if e := callErr.FindStringSubmatch(text); e != nil {
		c.errno = e[1]
	}
	return c, c.open || c.resumed || c.seconds >= 0 || strings.HasSuffix(m[8], " = ?") || callEnd.MatchString(m[8])
}

// systemCalls are names by which a trace is known as one of system calls, beside those that wait.
var systemCalls = words(`read write readv writev mmap munmap mprotect brk mremap madvise ioctl fcntl lseek dup dup2 dup3 pipe pipe2 socket bind listen getsockopt setsockopt
	getsockname getpeername shutdown clone clone3 fork execve exit exit_group kill tgkill tkill rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack getpid gettid
	getppid getuid geteuid getgid getegid getrusage getrlimit setrlimit prlimit64 uname arch_prctl prctl set_tid_address set_robust_list rseq getrandom sysinfo times
	gettimeofday clock_gettime time epoll_create epoll_create1 epoll_ctl eventfd eventfd2 timerfd_create timerfd_settime signalfd4 inotify_init1 inotify_add_watch
	fstat fstatfs statfs fadvise64 chdir fchdir getcwd chmod fchmod chown umask link symlink utimensat sendfile splice tee membarrier sched_getaffinity sched_setaffinity
	semget semctl shmget shmat shmdt shmctl msgget msgsnd sched_setscheduler sched_getparam socketpair mlock capget capset setsid setitimer getitimer alarm io_setup
	io_destroy io_uring_setup memfd_create copy_file_range process_vm_readv unlinkat mknod ptrace setuid setgid seccomp bpf perf_event_open quotactl mount umount2`)

func isSystemCall(name string) bool {
	_, waits := callWaits[name]
	return waits && !strings.HasPrefix(name, "pthread") && name != "sleep" || systemCalls[name]
}

// traceNote reports whether a line is what strace prints between calls.
func traceNote(text string) bool {
	if i := strings.Index(text, "+++ "); i >= 0 && i < 40 {
		return strings.HasSuffix(text, " +++")
	}
	if i := strings.Index(text, "--- SIG"); i >= 0 && i < 40 {
		return strings.HasSuffix(text, " ---")
	}
	return straceNote(text) || strings.HasPrefix(text, "strace: ") || text == "..." ||
		strings.HasPrefix(text, "[pid ") && strings.HasSuffix(text, "???")
}

func claimCalls(lines []paste.Line, wanted func(c *tracedCall) bool) int {
	first := cmp.Or(wrappedCall(lines), strings.TrimSpace(lines[0].Text))
	c, ok := tracedCallOf(first)
	stopped := false // a lone line of a call that did not end, with a time or a thread
	if !ok {
		c, stopped = stoppedCallOf(first)
		stopped = stopped && !c.torn && (c.at >= 0 || c.tid > 0)
	}
	if !ok && !stopped && !traceNote(first) || (ok || stopped) && !wanted(&c) {
		return 0
	}
	calls, sure, rest, ended := 0, false, -1, false
	n := claimed(lines, func(i int, text string) bool {
		if i == rest {
			return true
		}
		if w := wrappedCall(lines[i:]); w != "" {
			text, rest = w, i+1
		}
		if calls > 0 && (straceStack.MatchString(text) || lateWord(text)) {
			ended = false
			return true
		}
		c, ok := tracedCallOf(text)
		if !ok && !ended && (i > 0 || stopped) {
			c, ended = stoppedCallOf(text)
			ok = ended && wanted(&c)
			sure = sure || ok && (i == 0 || traceNote(strings.TrimSpace(lines[i-1].Text)))
		} else if ended {
			return false
		}
		if c.torn {
			return true
		}
		sure = sure || strings.HasPrefix(text, "strace: Process ")
		if ok {
			calls++
			sure = sure || c.seconds >= 0 || c.tid > 0 || c.at >= 0
		}
		return ok || traceNote(text)
	})
	if calls == 0 || calls < 2 && !sure {
		return 0
	}
	return n
}

// straceStack is a function of the stack that strace -k prints below a call.
var straceStack = pattern.New(`^> ?\S+\(\S*(?:\+0x[0-9a-f]+)?\) \[0x[0-9a-f]+\]$`)

// lateWord reports whether a line is only what strace says of a call whose line a person's typing,
// or a message, had ended.
func lateWord(text string) bool { return text == "<unfinished ...>" || text == "<detached ...>" }

// wrappedCall is the call of two lines, of which the second stands further in; "": the first line
// has a whole call, or none.
func wrappedCall(lines []paste.Line) string {
	if len(lines) < 2 || lines[1].Command != "" || len(lines[0].Text) > 4096 ||
		!strings.HasSuffix(strings.TrimRight(lines[1].Text, " \t"), ">") ||
		indent(lines[1].Text) <= indent(lines[0].Text) {
		return ""
	}
	text, next := strings.TrimSpace(lines[0].Text), strings.TrimSpace(lines[1].Text)
	m := callHead.FindStringSubmatch(text)
	if m == nil || m[3]+m[7] == "" || callTime.MatchString(text) || !callTime.MatchString(next) ||
		!callName.MatchString(m[8]) {
		return ""
	}
	if _, own := tracedCallOf(next); own {
		return ""
	}
	if c, ok := tracedCallOf(text + " " + next); !ok || c.seconds < 0 {
		return ""
	}
	return text + " " + next
}

func indent(text string) int { return len(text) - len(strings.TrimLeft(text, " \t")) }

// callTexts are the lines of a trace, each with a whole call.
func callTexts(p *attach.Part) []string {
	var out []string
	for i := 0; i < len(p.Lines); i++ {
		text := strings.TrimSpace(p.Lines[i].Text)
		if w := wrappedCall(p.Lines[i:]); w != "" {
			text = w
			i++
		}
		out = append(out, text)
	}
	return out
}

func claimStrace(lines []paste.Line) int {
	n := claimCalls(lines, func(c *tracedCall) bool { return isSystemCall(c.name) && !c.marked })
	return attach.ClaimIf(!mostlyFunctions(lines[:n]), n)
}

// claimLtrace takes calls of functions, among which may be those that have a system call's name.
func claimLtrace(lines []paste.Line) int {
	n := claimCalls(lines, func(*tracedCall) bool { return true })
	return attach.ClaimIf(n >= 3 && mostlyFunctions(lines[:n]), n)
}

// mostlyFunctions reports whether a trace is of functions: more than a few of its calls are none of
// the system's, or the system's are marked.
func mostlyFunctions(lines []paste.Line) bool {
	calls, functions := 0, 0
	for _, l := range lines {
		if c, ok := tracedCallOf(strings.TrimSpace(l.Text)); ok {
			if calls++; c.marked || !isSystemCall(c.name) {
				functions++
			}
		}
	}
	return functions*4 > calls
}

func readCallLines(p *attach.Part) *callTrace {
	t := newCallTrace()
	first, last := -1.0, -1.0
	inCalls, longest := map[int]float64{}, 0.0 // a thread's calls follow one another
	before := tracedCall{at: -1}
	for _, text := range callTexts(p) {
		c, ok := tracedCallOf(text)
		if !ok {
			c, ok = stoppedCallOf(text)
		}
		if !ok || c.torn {
			continue
		}
		t.limits.line(text, &c)
		if d := c.at - before.at; before.name != "" && before.at >= 0 && c.at >= 0 && !c.relative &&
			c.tid == before.tid && d > t.gap.seconds {
			t.gap = tracedCall{name: before.name, seconds: d}
		}
		if k := callWaits[before.name]; before.at >= 0 && c.at >= before.at && !c.relative &&
			c.tid == before.tid && (k == waitIdle || k == waitLock || k == waitChild) {
			t.between += c.at - before.at
		}
		before = c
		t.spin.line(text, &c)
		t.ready.line(text, &c)
		t.add(&c)
		inCalls[c.tid] += max(c.seconds, 0)
		longest = max(longest, inCalls[c.tid])
		switch {
		case c.at < 0:
		case c.relative:
			t.span += c.at
		default:
			if first < 0 {
				first = c.at
			}
			last = c.at + max(c.seconds, 0)
		}
	}
	if last > first && first >= 0 {
		t.span = last - first
	}
	if t.span > 0 { // stamps may be of lines that were left out
		t.span = max(t.span, longest)
	}
	return t
}

func (t *callTrace) title(tool, what string) string {
	title := fmt.Sprintf("%s, %s", tool, attach.Plural(t.n, what))
	if t.n == 0 && t.pending > 0 {
		title = fmt.Sprintf("%s, %s that did not end", tool, attach.Plural(t.pending, what))
	}
	if n := len(t.threads); n > 1 {
		title += " of " + attach.Plural(n, "thread")
	}
	if t.span > 0 {
		title += " in " + lasts(t.span)
	}
	return title
}

func readStrace(p *attach.Part) attach.Reading {
	t := readCallLines(p)
	t.pid, t.command = targetOf(p), p.Command
	return t.reading(t.title("strace", "system call"),
		"strace slows each call down by tens of microseconds, so rates differ without it")
}

func readLtrace(p *attach.Part) attach.Reading {
	t := readCallLines(p)
	r := attach.Reading{Title: t.title("ltrace", "call"), State: attach.CannotTell}
	for _, s := range t.sums()[:min(3, len(t.byName))] {
		r.Figures = append(r.Figures, s.says())
	}
	if ending(&r, texts(p)) {
		return r
	}
	r.Means = "It lists calls of library functions, or of the system where they are marked. ltrace stops the program at each, so their times and rates are mostly its own."
	r.Next = append(r.Next, ask("perf record -e cpu-clock -g -p PID -- sleep 10", 0,
		"where CPU time goes, without stopping the program"))
	return r
}

// reading is what a trace of system calls says.
func (t *callTrace) reading(title, slows string) attach.Reading {
	r := attach.Reading{Title: title, State: attach.CannotTell, Who: attach.Who{PID: t.pid}}
	sums := t.sums()
	byKind := map[waitKind]*callSum{}
	total := 0.0
	for _, s := range sums {
		k := callWaits[s.name]
		if byKind[k] == nil {
			byKind[k] = &callSum{}
		}
		byKind[k].n += s.n
		byKind[k].seconds += s.seconds
		byKind[k].each = append(byKind[k].each, s.each...)
		total += s.seconds
	}
	figures := 3
	if line := t.limits.says(); line != "" && !t.timed {
		figures = 2
		r.Figures = append(r.Figures, line)
	}
	for _, s := range sums[:min(figures, len(sums))] {
		r.Figures = append(r.Figures, s.says())
	}
	if line := t.limits.says(); t.timed && t.limits.most() >= leastPolls {
		r.Figures = slices.Insert(r.Figures, 1, line)
	}
	if line := t.unended(); line != "" {
		r.Figures = append(r.Figures, line)
	}
	r.Not = upper(slows) + "; a wait in epoll_wait, poll, futex or nanosleep is no loss by itself."
	if t.waitForOne(&r) {
		return r
	}
	if t.spins(&r) || t.loops(&r, t.command) {
		return r
	}
	if !t.timed {
		r.Means = "No line says how long its call took (strace -T)."
		if t.gap.seconds > 0 {
			line := fmt.Sprintf("most time between two lines: %s from %s on", lasts(t.gap.seconds), t.gap.name)
			if len(t.threads) == 1 && t.between >= 0.5*t.span {
				line += fmt.Sprintf("; %s of %s passed from calls on that wait for work, for time to pass or for a lock", lasts(min(t.between, t.span)), lasts(t.span))
			}
			r.Figures = append(r.Figures, line)
			r.Means += " Between two lines of a thread its call ran, and what the program did after it."
			if k := callWaits[t.gap.name]; k == waitIdle || k == waitLock || k == waitChild {
				r.Means += fmt.Sprintf(" The longest such time is behind %s, which waits for work, for time to pass or for a lock.", t.gap.name)
			}
		}
		r.Next = append(r.Next, ask("strace -f -T -tt -p PID", t.pid, "how long each call took"))
		return r
	}
	t.waits(&r, byKind, total)
	return r
}
