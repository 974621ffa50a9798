package kernelfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
	"github.com/whystall/whystall/internal/sched"
)

// stackLine is "[<0>] do_select+0x63a/0x930 [module]", with an address in the brackets before 4.14.
var stackLine = pattern.New(`^\[<[0-9a-fx]+>\] (0xffffffffffffffff|\??\s*([\w.]+)(?:\+0x([0-9a-f]+)/0x([0-9a-f]+))?(?: \[\w*\]?)?)$`)

// bareStack is such a line of which somebody cut off the brackets.
var bareStack = pattern.New(`^(([\w.]+)\+0x([0-9a-f]+)/0x([0-9a-f]+)(?: \[\w+\])?)$`)

// stackEnd is the function at which the kernel's part of a stack ends.
func stackEnd(f string) bool {
	return strings.HasPrefix(f, "entry_SYSCALL") || strings.HasPrefix(f, "ret_from_fork") ||
		f == "system_call_fastpath" || f == "el0_svc_naked" || f == "el0t_64_sync"
}

// claimBareStack takes such lines where they are a whole stack: they end where a system call or a
// thread starts, and one of them is known to wait. In the kernel's log a trace of an error has
// lines of the same form.
func claimBareStack(lines []paste.Line) int {
	ends, waits := false, false
	n := run(lines, func(t string) bool {
		m := bareStack.FindStringSubmatch(t)
		if m != nil {
			ends, waits = stackEnd(m[2]), waits || knownWait(m[2])
		}
		return m != nil
	})
	return attach.ClaimIf(n > 2 && ends && waits, n)
}

var procStack = &attach.Kind{
	Name: "/proc/PID/stack", Yields: []string{"kernel log"},
	Claim: func(lines []paste.Line) int {
		if strings.Contains(lines[0].Text, "+0x") && bareStack.MatchString(strings.TrimSpace(lines[0].Text)) {
			return claimBareStack(lines)
		}
		if !strings.Contains(lines[0].Text, "[<") && (len(lines) < 2 || !strings.Contains(lines[1].Text, "[<")) {
			return 0
		}
		first := strings.TrimSpace(lines[0].Text)
		titled := stackTitle.MatchString(first) && len(lines) > 1 && lines[1].Command == "" &&
			stackLine.MatchString(strings.TrimSpace(lines[1].Text))
		if !titled && !stackLine.MatchString(first) {
			return 0
		}
		return run(lines, func(t string) bool { return stackLine.MatchString(t) || stackTitle.MatchString(t) })
	},
	Read: readStacks,
}

// leftOver knows a word on a stack that is no return address: one of a call stands within its
// function, and neither at its start nor at its end.
func leftOver(offset, size string) bool {
	return size != "" && strings.Trim(size, "0") != "" && (offset == size || strings.Trim(offset, "0") == "")
}

// stackTitle is what people put between stacks: "== 1234 nginx ==", "/proc/1234/task/1240/stack".
var stackTitle = pattern.New(`^(?:[=#*-]+ ?)?(?:(?:/proc/)?(?:PID|pid|TID|tid|task|/|:|=| )*\d+[\w/ ().:=-]{0,60}|/proc/\S+/stack:?)(?: ?[=#*-]+)?$`)

func readStacks(p *attach.Part) attach.Reading {
	var all []wait
	var stack []string
	end := func() {
		if len(stack) > 0 {
			all = append(all, waitOf(stack))
			stack = nil
		}
	}
	last := 0
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		m := stackLine.FindStringSubmatch(text)
		if m == nil {
			m = bareStack.FindStringSubmatch(text)
		}
		if m == nil || last > 0 && l.N > last+1 {
			end()
		}
		last = l.N
		if m == nil {
			continue
		}
		if m[2] == "" {
			end()
			continue
		}
		if marked := strings.HasPrefix(m[1], "?"); !marked && !leftOver(m[3], m[4]) {
			stack = append(stack, m[2])
		}
		if stackEnd(m[2]) {
			end()
		}
	}
	end()
	r := readWaits(all)
	r.Title = "kernel stacks of " + plural(len(all), "thread", "threads")
	r.Who.PID = p.PID
	return r
}

// readWaits reads what threads sleep in, at one moment.
func readWaits(all []wait) attach.Reading {
	counts := countWaits(all)
	r := attach.Reading{
		State: attach.CannotTell, Glance: true,
		Not:  "how long each thread has waited, and whether requests wait with it: it is a glance",
		Next: []attach.Next{{Command: "for i in 1 2 3 4 5; do cat /proc/PID/task/*/stack; sleep 1; done", Why: "whether the same threads stay in the same place"}},
	}
	for _, c := range counts {
		r.Figures = append(r.Figures, c.String())
	}
	signs, outside := waitSigns(counts, len(all), false)
	r.Signs = signs
	switch {
	case len(all) == 0:
		r.Means = "No function in it is sure: what a thread waits for it does not say."
	case len(outside) > 0:
		r.Means = fmt.Sprintf("At this moment threads wait for %s, outside what whystall can look into.", outside[0])
	case len(signs) > 0:
		r.Means = fmt.Sprintf("At this moment threads wait in the kernel: %s.",
			strings.ToLower(signs[0].Proof[0][:1])+signs[0].Proof[0][1:])
	case slices.ContainsFunc(counts, func(c waitCount) bool {
		return c.wait.fills
	}):
		r.Means = "A thread writes to a pipe that is full: it goes on when the reader at the other end reads, which may be at fault."
	case slices.ContainsFunc(counts, func(c waitCount) bool { return c.wait.asks }):
		r.Means = "A thread waits for a program that the kernel has started in user space: what that program waits for is not on this stack."
	case idleOnly(counts):
		r.Means = "Threads sleep in the ways in which threads at rest do; a lock of the program looks the same as waiting for work."
	default:
		r.Means = "Nothing in it is known as a wait that costs time."
	}
	return r
}

var wchan = &attach.Kind{
	Name: "wchan list", Prompted: true,
	Claim: func(lines []paste.Line) int {
		if lines[0].Command != "" {
			return wchanPrompt(lines)
		}
		known, names, n, entries := 0, 0, 0, 0
		seen, listed := map[string]bool{}, false // a list of threads repeats itself; a stack does not
		n = run(lines, func(t string) bool {
			f, count, ok := wchanLine(t)
			if !ok {
				return false
			}
			if f == "WCHAN" {
				listed = true
				return entries == 0
			}
			entries += count
			listed = listed || seen[f] || count > 1
			seen[f] = true
			if f != "-" && f != "0" {
				names++
			}
			if knownWait(f) {
				known++
			}
			return true
		})
		if headed := strings.TrimSpace(lines[0].Text) == "WCHAN"; headed && known >= 1 && known*2 >= names {
			return n // ps says what it is
		}
		if known < 2 || n < 3 || known*2 < names || !listed {
			return 0
		}
		return n
	},
	Read: func(p *attach.Part) attach.Reading {
		var all []wait
		running := 0
		counted := wchanCounted(p)
		for _, l := range p.Lines {
			f, count, ok := wchanLine(strings.TrimSpace(l.Text))
			if !ok || f == "WCHAN" {
				continue
			}
			if !counted {
				count = 1 // what stands in front is the number of a thread
			}
			if f == "-" || f == "0" {
				running += count
				continue
			}
			for range min(count, 10000) {
				all = append(all, waitOf([]string{f}))
			}
		}
		r := readWaits(all)
		r.Title = fmt.Sprintf("wait channels (wchan) of %s", plural(len(all)+running, "thread", "threads"))
		if running > 0 {
			r.Figures = append(r.Figures, plural(running, "thread has", "threads have")+
				" none: they run, or the kernel does not say")
		}
		return r
	},
}

var wchanCommand = pattern.New(`(?:^|[\s;|&])(?:cat\s[^;|&]*/wchan\b|ps\s[^;|&]*\bwchan\b)`)

// wchanPrompt knows what a command that prints wait channels alone printed: one line is enough.
func wchanPrompt(lines []paste.Line) int {
	if !wchanCommand.MatchString(lines[0].Command) {
		return 0
	}
	known, names := 0, 0
	n := 1 + run(lines[1:], func(t string) bool {
		f, _, ok := wchanLine(t)
		if ok && knownWait(f) {
			known++
		}
		if ok && f != "-" && f != "0" && f != "WCHAN" {
			names++
		}
		return ok
	})
	if known == 0 || known*2 < names {
		return 0
	}
	return n
}

// wchanCounted reports whether numbers in front of functions are how often each was there: the
// command says so, or there is none and no function comes twice.
func wchanCounted(p *attach.Part) bool {
	if p.Command != "" {
		return strings.Contains(p.Command, "uniq -c")
	}
	seen := map[string]bool{}
	for _, l := range p.Lines {
		f, _, ok := wchanLine(strings.TrimSpace(l.Text))
		if ok && seen[f] {
			return false
		}
		seen[f] = ok || seen[f]
	}
	return true
}

// wchanLine reads a function's name, also behind a count as uniq -c writes it.
func wchanLine(t string) (function string, count int, ok bool) {
	if len(t) > 80 {
		return "", 0, false
	}
	f := strings.Fields(t)
	count = 1
	if len(f) == 2 {
		n, err := strconv.Atoi(f[0])
		if err != nil || n < 1 || n > 1<<20 {
			return "", 0, false
		}
		f, count = f[1:], n
	}
	if len(f) != 1 || len(f[0]) > 64 {
		return "", 0, false
	}
	w := f[0]
	if w == "-" || w == "0" || w == "WCHAN" {
		return w, count, true
	}
	return w, count, strings.Trim(w,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") == "" &&
		strings.Trim(w, "0123456789_.") != "" && functionName(w)
}

// functionName refuses names of files: after a dot only a compiler's suffix may stand.
func functionName(w string) bool {
	_, suffix, dotted := strings.Cut(w, ".")
	return !dotted || strings.HasPrefix(suffix, "isra") || strings.HasPrefix(suffix, "constprop") ||
		strings.HasPrefix(suffix, "part") || strings.HasPrefix(suffix, "cold") || strings.HasPrefix(suffix, "llvm")
}

// knownWait reports whether the kernel's waits have this function.
func knownWait(f string) bool {
	b := sched.BlockOf([]kernel.Frame{{Func: f}})
	return b != sched.BlockOther && b != sched.BlockUnknown
}
