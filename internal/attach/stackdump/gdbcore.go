package stackdump

import (
	"cmp"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// dropShown drops the one frame that gdb prints above the threads of a core file or a stop: its
// thread comes again below, with its whole stack. Of a core file it is where the thread was that
// got the signal.
func (d *dump) dropShown() {
	if len(d.threads) < 2 || d.threads[0].headed || len(d.threads[0].frames) != 1 {
		return
	}
	first := &d.threads[0].frames[0]
	for _, t := range d.threads[1:] {
		if d.signal != "" || t.headed && short(t.frames[0].fn) == short(first.fn) {
			d.shown, d.threads = first, d.threads[1:]
			return
		}
	}
}

// dropReprinted drops the one frame that gdb prints below the last thread: the frame of the thread
// that it had selected before, which stands above with its whole stack.
func (d *dump) dropReprinted() {
	if len(d.threads) < 2 {
		return
	}
	last := d.threads[len(d.threads)-1]
	if last.headed || len(last.frames) != 1 || last.frames[0].at == "" {
		return
	}
	top := last.frames[0]
	if slices.ContainsFunc(d.threads, func(t *thread) bool {
		return t.headed && len(t.frames) > 1 && t.frames[0].at == top.at && t.frames[0].fn == top.fn
	}) {
		d.threads = d.threads[:len(d.threads)-1]
	}
}

// hit is the thread that got the signal which ended the program, if gdb shows its frame and exactly
// one thread is there.
func (d *dump) hit() *thread {
	if d.shown == nil || d.signal == "" {
		return nil
	}
	return d.only(func(t *thread) bool {
		top := t.frames[0]
		if top.at != "" && d.shown.at != "" {
			return top.at == d.shown.at
		}
		return short(top.fn) == short(d.shown.fn)
	})
}

var (
	terminated = pattern.New(`^Program (terminated with|received) signal (SIG[A-Z0-9]+|\d{1,2})\b`)
	// numbered are signals whose numbers are the same on every system.
	numbered = map[string]string{"3": "SIGQUIT", "4": "SIGILL", "5": "SIGTRAP", "6": "SIGABRT",
		"8": "SIGFPE", "9": "SIGKILL",
		"11": "SIGSEGV", "15": "SIGTERM"}
	// faults are the signals which a program gets for what it did itself, and no person sends.
	faults = pattern.New(`^(?:SIG(?:SEGV|BUS|FPE|ILL|SYS)|EXC_BAD_ACCESS)$`)
)

// notes takes what gdb says of the program above its stacks: the signal by which it ended, whether
// the core file may be of another program, and how many threads there are. A signal that a person
// stops a program with ends none.
func (d *dump) notes(lines []paste.Line) {
	for _, l := range lines {
		text := strings.TrimSpace(l.Text)
		switch {
		case strings.HasPrefix(text, "[New "):
			d.born++
		case strings.Contains(text, "may not match specified executable"),
			strings.Contains(text, "wrong library or version mismatch"):
			d.doubt = true
		}
		m := terminated.FindStringSubmatch(text)
		if m == nil || d.signal != "" {
			continue
		}
		name := m[2]
		if name[0] != 'S' {
			name = cmp.Or(numbered[m[2]], "signal "+m[2])
		}
		if m[1] == "terminated with" || faults.MatchString(name) || name == "SIGABRT" {
			d.signal = name
		}
	}
}

// dropGuessed drops frames that gdb found by a search for words that look like places in a program.
// Without tables to unwind by, such a stack ends at address 0, never in a thread's first function.
func (t *thread) dropGuessed() {
	last := t.frames[len(t.frames)-1]
	if strings.TrimLeft(strings.TrimPrefix(last.at, "0x"), "0") != "" || last.at == "" {
		return
	}
	cut := -1
	for i, f := range t.frames {
		fn := short(f.fn)
		if fn == "start_thread" || fn == "main" || strings.HasPrefix(fn, "clone") ||
			strings.HasPrefix(fn, "libc_start") || fn == "start" {
			return
		}
		if cut < 0 && (f.fn == f.at || fn == "??") {
			cut = i
		}
	}
	if cut > 0 {
		t.frames = t.frames[:cut]
		t.guessed = true
	}
}
