package stackdump

import (
	"cmp"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// crash reads "bt -a" and "foreach bt" of the crash utility: the kernel's stacks of tasks.
var crash = &attach.Kind{
	Name:  "crash bt",
	Hints: []string{"PID: ", " #"},
	Claim: func(lines []paste.Line) int {
		return claimStacks(lines, crashTask.MatchString, func(t string) bool {
			return crashFrame.MatchString(t) || crashRegs.MatchString(t) || crashSource.MatchString(t)
		})
	},
	Read: func(p *attach.Part) attach.Reading {
		d := parseStacks(p.Lines, "crash utility, kernel stacks", crashTask, crashFrame)
		died := ""
		for _, t := range d.threads {
			place(t, kernelRules)
			if died == "" && (rule{names: []string{"die", "oops_end", "panic", "crash_kexec",
				"machine_kexec", "do_invalid_op", "bad_area_nosemaphore"}}).find(t.frames, anything) >= 0 {
				died = t.name
			}
		}
		d.whole = "crash vmlinux vmcore: foreach bt"
		r := d.read()
		if died != "" && len(r.Signs) == 0 {
			r.State, r.Next = attach.CannotTell, nil
			r.Means = "The kernel itself crashed, in " + orUnknown(died) + ": a fault or a BUG, and nothing about time."
		}
		return r
	},
}

// crashSource is the place in the source below a frame, as bt -l prints it.
var crashSource = pattern.New(`^\s+/\S+: \d+$`)

// dotnet reads dotnet-stack report.
var dotnet = &attach.Kind{
	Name:  "dotnet-stack",
	Hints: []string{"Thread (0x"},
	Claim: func(lines []paste.Line) int {
		return claimStacks(lines, dotnetTask.MatchString, func(t string) bool {
			return dotnetFrame.MatchString(t) || strings.Contains(t, "Child SP") ||
				strings.Contains(t, "[Native Frames]")
		})
	},
	Read: func(p *attach.Part) attach.Reading {
		d := parseStacks(p.Lines, "dotnet-stack", dotnetTask, dotnetFrame)
		for _, t := range d.threads {
			place(t, dotnetRules)
		}
		d.whole = "dotnet-stack report --process-id PID"
		return d.read()
	},
}

// ruby reads sigdump, and Thread.list with its backtraces.
var ruby = &attach.Kind{
	Name:  "Ruby thread dump",
	Hints: []string{"#<Thread:"},
	Claim: func(lines []paste.Line) int {
		return claimStacks(lines, rubyTask.MatchString, rubyFrame.MatchString)
	},
	Read: func(p *attach.Part) attach.Reading {
		d := parseStacks(p.Lines, "Ruby thread dump", rubyTask, rubyFrame)
		for _, t := range d.threads {
			t.placeRuby()
		}
		r := d.read()
		r.Not = "Ruby's frames do not show whether a thread waits for the GVL: only native stacks do."
		return r
	},
}

// oneTrace reads a backtrace of one thread as glibc, Rust and C++ programs print it when they fail.
var oneTrace = &attach.Kind{
	Name:    "backtrace of a crash",
	Hints:   []string{"(+0x", "[0x", "stack backtrace:", "panicked at", "*** Aborted", "Backtrace:"},
	Refused: "A program printed this stack when it failed: one thread, once, and nothing about time. For a slow process: gdb -p PID -batch -ex 'thread apply all bt'.",
	Claim:   claimOneTrace,
}

// hsMemory is the head of what a JVM writes when it gets no memory from the system: its own heap
// need not be full.
var hsMemory = &attach.Kind{
	Name:     "JVM without memory (hs_err)",
	Hints:    []string{"There is insufficient memory for the Java Runtime"},
	Prompted: true, // a line that starts with # looks like root's prompt
	Claim: func(lines []paste.Line) int {
		if !hsShort.MatchString(lines[0].Text) {
			return 0
		}
		n := 1
		for i := 1; i < min(len(lines), 64); i++ {
			text := strings.TrimSpace(lines[i].Text)
			if text != "" && !strings.HasPrefix(text, "#") {
				break
			}
			if text != "" {
				n = i + 1
			}
		}
		return n
	},
	Read: func(p *attach.Part) attach.Reading {
		r := attach.Reading{Title: "a JVM ended without memory", State: attach.CannotTell,
			Means: "The system gave the JVM no more memory: the machine or its cgroup had none left, or a limit of mappings or threads was met. Its heap need not be full.",
			Not:   "That anybody was slow before: memory that runs out often makes threads free some first, and what the JVM's end itself shows is no latency.",
			Next:  []attach.Next{{Command: "cat /proc/pressure/memory; grep -E 'allocstall|compact_stall' /proc/vmstat; dmesg -T | grep -i oom", Why: "whether threads wait for memory now, and who was killed for it"}}}
		for _, l := range p.Lines {
			if m := hsFailed.FindStringSubmatch(l.Text); m != nil {
				r.Figures = append(r.Figures, m[1])
			}
			if m := hsPID.FindStringSubmatch(l.Text); m != nil {
				r.Who.PID = atoi(m[1])
			}
		}
		r.Signs = append(r.Signs,
			attach.Sign{Grade: attach.Outside,
				Where: "the memory of the machine or of the cgroup, or a limit of the system: a JVM got no more, and ended", Proof: r.Figures})
		return r
	},
}

// hsErr is the head of what a JVM writes when it crashes.
var hsErr = &attach.Kind{
	Name:    "crash of a JVM (hs_err)",
	Hints:   []string{"# A fatal error has been detected by the Java Runtime"},
	Refused: "A JVM wrote this when it crashed: an end, and nothing about time. For a slow one: jcmd PID Thread.print -l.",
	Claim: func(lines []paste.Line) int {
		if !strings.HasPrefix(strings.TrimSpace(lines[0].Text),
			"# A fatal error has been detected by the Java Runtime") {
			return 0
		}
		return attach.ClaimWhile(lines, func(_ int, text string) bool {
			t := strings.TrimSpace(text)
			return strings.HasPrefix(t, "#") || strings.HasPrefix(t, "---------------") || hsErrLine.MatchString(t)
		})
	},
}

var (
	hsShort     = pattern.New(`^\s*(?:# )?There is insufficient memory for the Java Runtime Environment to continue`)
	hsFailed    = pattern.New(`(Native memory allocation \(\w+\) failed to (?:map|allocate) \d+ bytes.*)$`)
	hsPID       = pattern.New(`\bpid=(\d{1,9})\b`)
	hsErrLine   = pattern.New(`^(?:Command Line|Host|Time|Current thread|Stack: \[|Native frames|siginfo|Registers|Top of Stack|Instructions|Java frames|V  \[|C  \[|J \d+|j  |v  ~)`)
	crashTask   = pattern.New(`^PID: (\d+)\s+TASK: [0-9a-f]+\s+CPU: \d+\s+COMMAND: "(.*)"`)
	crashFrame  = pattern.New(`^ ?#\d+ \[[0-9a-f]{8,}\] ([\w.]+)(?: \(via \w+\))? at [0-9a-f]+`)
	crashRegs   = pattern.New(`^\s+(RIP|RSP|RAX|RDX|RBP|R8|R10|R11|R13|R12|ORIG_RAX|RBX|RCX|RSI|RDI|R14|R9|R15|CS|\[exception RIP)|^--- <|^ +bt: |^\(active\)`)
	dotnetTask  = pattern.New(`^Thread (?:Id: )?\(?(0x[0-9A-Fa-f]+)\)?(?: \(\d+\))?:?()$`)
	dotnetFrame = pattern.New(`^\s+(?:[0-9A-F]{16} [0-9A-F]{16} )?([\w.` + "`" + `<>+\[\]]+!?[\w.` +
		"`" + `<>+\[\],|$]+)\(.*\)$`)
	rubyTask   = pattern.New(`^\s*(?:Thread )?#<Thread:(0x[0-9a-f]+)(?:@?\S*)?(?: \S+:\d+)?(?: (\w+))?>(?: status=(\w+))?.*$`)
	rubyFrame  = pattern.New("^\\s+(\\S+:\\d+:in [`'].+')$")
	innermost  = pattern.New(`# ?0\b`)
	glibcFrame = pattern.New(`^\s*(?:\[?\d+\]?:? +)?(\S+)\(([\w.$]*)([+-]0x[0-9a-f]+)?\) ?\[0x[0-9a-f]+\]$|^\[0x[0-9a-f]+\]$`)
	rustFrame  = pattern.New(`^\s+\d+: +(?:0x[0-9a-f]+ - )?[\w<]\S*::.+$|^\s+\d+: +(?:0x[0-9a-f]+ - )?(?:rust_begin_unwind|main|_start|__libc_start_main\S*|<unknown>|clone3?|start_thread)$|^\s+at \S+:\d+(:\d+)?$`)
)

// claimStacks takes headers with frames below them; both must be there.
func claimStacks(lines []paste.Line, header, frame func(string) bool) int {
	if !header(lines[0].Text) && !(frame(lines[0].Text) && len(lines) > 1 && frame(lines[1].Text)) {
		return 0
	}
	frames := 0
	n := claimSure(lines, header, func(text string) bool {
		if frame(text) {
			frames++
			return true
		}
		return strings.TrimSpace(text) == "..."
	})
	return attach.ClaimIf(frames > 0, n)
}

// claimSure takes lines that are of a kind, one of which nothing else has.
func claimSure(lines []paste.Line, sure, other func(string) bool) int {
	found := false
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		if sure(text) {
			found = true
			return true
		}
		return other(text)
	})
	return attach.ClaimIf(found, n)
}

func parseStacks(lines []paste.Line, tool string, header, frameRE *pattern.Regexp) *dump {
	d := &dump{tool: tool}
	var t *thread
	for _, l := range lines {
		if m := header.FindStringSubmatch(l.Text); m != nil {
			t = &thread{n: 1, id: hex(strings.ToLower(m[1])), name: m[2]}
			if header == rubyTask {
				t.name, t.state = m[1], cmp.Or(m[2], m[3])
			}
			d.threads = append(d.threads, t)
			continue
		}
		m := frameRE.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		if t == nil {
			t = &thread{n: 1, cropped: !innermost.MatchString(l.Text)}
			d.threads = append(d.threads, t)
		}
		if len(t.frames) < 400 {
			t.frames = append(t.frames, frame{fn: m[1]})
		}
	}
	d.dropEmpty()
	return d
}

// dotnetRules are .NET's own names of its waits. A thread's first functions, such as a pool's
// worker, say nothing of what it does: they count only where it sleeps right above them.
var dotnetRules = []rule{
	{lock, plainLock, anything, 4, []string{"*Monitor.Enter", "*Monitor.ReliableEnter",
		"*Monitor.Enter_Slowpath", "*SpinLock.", "*ReaderWriterLockSlim.", "*Lock.TryEnterSlow", "*Lock.Enter"}},
	{remote, 0, anything, 0, []string{"*SqlCommand.", "*NpgsqlCommand", "*HttpClient.Send",
		"*MySqlCommand", "*StackExchange.Redis"}},
	{disk, 0, anything, 4, []string{"*RandomAccess.", "*FileStream.Flush", "*FileStream.Read", "*FileStream.Write"}},
	{idle, 0, anything, 5, []string{"*LowLevelLifoSemaphore", "*PortableThreadPool+GateThread",
		"*PortableThreadPool+WaitThread", "*SocketAsyncEngine.EventLoop", "*TimerQueue.TimerThread", "*TimerThread",
		"*ConsoleLifetime", "*BlockingCollection", "*Thread.Sleep", "*FinalizerThread",
		"*Host.RunAsync", "*WebHost.Run", "*HostingAbstractionsHostExtensions.Run",
		"*HostingAbstractionsHostExtensions.WaitForShutdown"}},
	{signal, 0, anything, 4, []string{"*Monitor.Wait", "*WaitHandle.", "*ManualResetEventSlim.",
		"*SemaphoreSlim.", "*Task.Wait", "*Task.SpinThenBlockingWait"}},
}

// rubyFetches reports whether a frame of Ruby waits for the next job of a queue in Redis.
func rubyFetches(f frame) bool {
	_, method, _ := strings.Cut(f.fn, ":in ")
	return strings.Contains(method, "brpop") || strings.Contains(method, "retrieve_work")
}

// rubyPool reports whether a frame of Ruby waits for a connection of a pool.
func rubyPool(f frame) bool {
	_, method, _ := strings.Cut(f.fn, ":in ")
	return strings.Contains(f.fn, "connection_pool") &&
		(strings.Contains(method, "wait") || strings.Contains(method, "checkout"))
}

// placeRuby says what a Ruby thread does by its innermost frames.
func (t *thread) placeRuby() {
	t.from = -1
	if t.state == "run" && len(t.frames) > 0 && !strings.Contains(t.frames[0].fn, "backtrace'") {
		return // it runs, whatever stands below
	}
	if i := slices.IndexFunc(t.frames[:min(len(t.frames), 24)], rubyFetches); i >= 0 {
		t.doing, t.call = idle, t.frames[i].fn
		return
	}
	if i := slices.IndexFunc(t.frames[:min(len(t.frames), 8)], rubyPool); i >= 0 {
		t.doing, t.call = pooled, t.frames[i].fn
		return
	}
	for i, f := range t.frames[:min(len(t.frames), 6)] {
		fn := f.fn
		switch {
		case strings.Contains(fn, "synchronize'") && i == 0, strings.Contains(fn, "in `lock'"),
			strings.Contains(fn, "Mutex#lock'"), strings.Contains(fn, "Mutex#synchronize'") && i == 0:
			t.doing = lock
			if i+1 < len(t.frames) {
				t.site = t.frames[i+1].fn
			}
			return
		case strings.Contains(fn, "`sleep'"), strings.Contains(fn, "sleep'") &&
			i == 0, strings.Contains(fn, "`pop'"), strings.Contains(fn, "Queue#pop'"),
			strings.Contains(fn, "`select'"), strings.Contains(fn, "IO.select'"),
			strings.Contains(fn, "`accept"), strings.Contains(fn, "`join'"),
			strings.Contains(fn, "Thread#join'"), strings.Contains(fn, "nio4r"):
			t.doing, t.call = idle, fn
			return
		case strings.Contains(fn, "mysql2/"), strings.Contains(fn, "/pg-"),
			strings.Contains(fn, "net/protocol"),
			strings.Contains(fn, "exec_params"), strings.Contains(fn, "/redis/"), strings.Contains(fn, "/redis-"):
			t.doing, t.call = remote, fn
			return
		}
	}
	if strings.Contains(t.state, "sleep") {
		t.doing = signal
	}
}

func claimOneTrace(lines []paste.Line) int {
	n, frames := 0, 0
	for i, l := range lines {
		t := l.Text
		switch {
		case i > 0 && l.Command != "":
			return atLeast(n, frames, 2)
		case glibcFrame.MatchString(t), rustFrame.MatchString(t):
			frames++
			n = i + 1
		case i == 0 && !strings.Contains(t, "panicked at") &&
			!strings.Contains(t, "stack backtrace:") && !strings.HasPrefix(t, "*** Aborted") &&
			!strings.HasPrefix(t, "Backtrace:"):
			return 0
		case strings.Contains(t, "stack backtrace:"), strings.HasPrefix(t, "note: "),
			strings.Contains(t, "panicked at"), i == 0:
			n = i + 1
		case strings.TrimSpace(t) == "":
		case frames == 0 && i < 6:
		default:
			return atLeast(n, frames, 2)
		}
	}
	return atLeast(n, frames, 2)
}

func atLeast(n, have, want int) int {
	if have < want {
		return 0
	}
	return n
}
