package stackdump

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// pySpy reads "py-spy dump": it says which thread runs, and which has the GIL.
var pySpy = &attach.Kind{
	Name:  "py-spy dump",
	Hints: []string{"Process ", "Thread ", "Python v"},
	Claim: claimPySpy,
	Read: func(p *attach.Part) attach.Reading {
		d := parsePython(p.Lines)
		d.tool, d.whole = "py-spy dump", "py-spy dump --pid "+d.pidWord()
		return d.readPython()
	},
}

var (
	spyHeader  = pattern.New(`^Thread (?:(?:0x)?([0-9A-Fa-f]+)(?:\.\.\.)?(?:/0x[0-9a-fA-F]+)? )?\(([a-z+]+)\)(?:: "(.*?)")?(?:\s+(?:#|<-|←).*)?$`)
	spyProcess = pattern.New(`^Process (\d+): (.*)$`)
	spyFrame   = pattern.New(`^ {4}(\S.*?) \(([^()]*?)(?::(\d+))?\)(?:\s+(?:#|<-|←).*)?$`)
	spyNative  = pattern.New(`^ {4}([A-Za-z_][\w:~.@<>]*)(?: \(\))?$`) // of a library whose name is not printed
)

func claimPySpy(lines []paste.Line) int {
	frames, heads := 0, 0
	if spyProcess.MatchString(lines[0].Text) {
		frames = 1 // py-spy says so itself: a thread in no Python code has no frames
	}
	n := attach.ClaimWhile(lines, func(i int, text string) bool {
		switch {
		case spyHeader.MatchString(text):
			heads++
		case i < 2 && spyProcess.MatchString(text), strings.HasPrefix(text, "Python v") &&
			(i == 1 || strings.Contains(text, " (")):
		case heads > 0 && (spyFrame.MatchString(text) || strings.HasPrefix(text, "    0x") || spyNative.MatchString(text)):
			frames++
		default:
			return frames > 0 && (strings.HasPrefix(text, "        Arguments:") ||
				strings.HasPrefix(text, "        Locals:") || strings.HasPrefix(text, "            "))
		}
		return true
	})
	return done(n, min(frames, heads))
}

func parsePython(lines []paste.Line) *dump {
	d := &dump{interpreted: true}
	var t *thread
	outermost := false // stands first in each stack
	start := func(name, state string, id int) {
		t = &thread{name: name, state: state, id: id, n: 1}
		d.threads = append(d.threads, t)
	}
	for _, l := range lines {
		text := l.Text
		if m := spyProcess.FindStringSubmatch(text); m != nil {
			d.pid = atoi(m[1])
		} else if m := spyHeader.FindStringSubmatch(text); m != nil {
			start(m[3], m[2], atoi(m[1]))
		} else if m := pyHeader.FindStringSubmatch(text); m != nil {
			start(m[3], "", len(d.threads)+1)
			if m[1] == "Current thread" {
				t.state = "current"
			}
		} else if m := stackPID.FindStringSubmatch(text); m != nil {
			d.pid = atoi(m[1])
		} else if name, state, id, ok := stackHeader(text); ok {
			start(name, state, id)
			outermost = true
		} else if t == nil || len(t.frames) > 400 {
			continue
		} else if m := stackFrame.FindStringSubmatch(text); m != nil {
			t.frames = append(t.frames, frame{fn: m[4], file: tail(m[2]), path: m[2], args: m[3]})
		} else if m := pyFrame.FindStringSubmatch(text); m != nil {
			t.frames = append(t.frames, frame{fn: m[3], file: tail(m[1]), path: m[1], args: m[2]})
		} else if m := spyFrame.FindStringSubmatch(text); m != nil {
			t.frames = append(t.frames, frame{fn: m[1], file: tail(m[2]), path: m[2], args: m[3]})
		} else if m := spyNative.FindStringSubmatch(text); m != nil {
			t.frames = append(t.frames, frame{fn: m[1]})
		}
	}
	all := len(d.threads)
	d.dropEmpty()
	d.bare = all - len(d.threads)
	old := slices.ContainsFunc(lines, func(l paste.Line) bool { return strings.HasPrefix(l.Text, "Python v2") })
	for _, t := range d.threads {
		if outermost {
			slices.Reverse(t.frames)
		}
		t.old = old
		t.placePython()
	}
	return d
}

// tail is the last two parts of a path: "logging/__init__.py".
func tail(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		if j := strings.LastIndexByte(path[:i], '/'); j >= 0 {
			return path[j+1:]
		}
	}
	return path
}

// placePython says what a Python thread does. "idle" is py-spy's word for a thread that was off the
// CPU, whatever it waited for.
func (t *thread) placePython() {
	if t.state == wantsGIL {
		t.doing, t.kind, t.site = lock, interpreter, "take_gil"
		return
	}
	if t.placeKnown() {
		if t.exits() && t.doing == idle {
			t.doing = signal // it waits for other threads, not for work
		}
		return
	}
	t.site, t.call = t.where(), ""
	if t.state == "idle" || t.state == "current" || t.state == "" {
		t.doing = signal
	}
	if len(t.frames) > 0 {
		switch pyBase(t.frames[0]) {
		case "acquire":
			if t.permit(0) {
				return
			}
			fallthrough
		case "__enter__":
			if at := slices.IndexFunc(t.frames,
				func(f frame) bool { return !strings.HasSuffix(f.file, "threading.py") }); at > 0 {
				t.doing, t.site = lock, t.frames[at].fn
			}
		case "wait":
			if strings.HasSuffix(t.frames[0].file, "threading.py") {
				t.doing, t.site = signal, t.pyCaller()
				t.permit(1)
			}
		case "time_sleep", "clock_nanosleep":
			t.doing = idle
		}
	}
}

func (t *thread) active() bool { return strings.HasPrefix(t.state, "active") }
func (t *thread) gil() bool    { return strings.HasSuffix(t.state, "gil") }

// where is the innermost frame of the program: function, file and line.
func (t *thread) where() string {
	if len(t.frames) == 0 {
		return ""
	}
	for _, f := range t.frames {
		if strings.Contains(f.file, ".py") {
			return fmt.Sprintf("%s (%s:%s)", f.fn, f.file, f.args)
		}
	}
	return t.frames[0].fn
}

// passes reports whether a thread is in the function of a place such as "crunch (app.py:9)".
func (t *thread) passes(place string) bool {
	fn, _, _ := strings.Cut(place, " (")
	fn, _, _ = strings.Cut(fn, ".<locals>")
	for _, f := range t.frames {
		if in, _, _ := strings.Cut(f.fn, ".<locals>"); in == fn {
			return true
		}
	}
	return false
}

// noFrames counts threads that have no frames: they are in code that is not Python's.
func (d *dump) noFrames(r *attach.Reading) {
	if d.bare == 0 {
		return
	}
	r.Title = fmt.Sprintf("%s, %s", d.tool, threads(len(d.threads)+d.bare))
	line := fmt.Sprintf("%s without frames of Python", threads(d.bare))
	r.Figures = append(r.Figures, line)
	if len(d.threads) == 0 {
		r.Means = line + ": in code of C, which may wait for a request as well as for anything else."
		r.Next = append(r.Next, attach.Next{Command: "py-spy dump --native --pid PID", Why: "shows the frames of C"})
	}
}

// readPython reads threads of which only Python's frames are known. A thread that stands off the
// CPU in a line of its own code may wait for a lock, a call in C, or the GIL: the dump does not say
// which.
func (d *dump) readPython() attach.Reading {
	same := map[string]int{}
	var gil *thread
	off, on, native := 0, 0, 0
	for _, t := range d.threads {
		switch {
		case t.gil():
			gil = t
			on++
		case t.active():
			on++
		case t.doing == signal:
			off++
			// Below Python's own waits it waits for what others do, or for work.
			if len(t.frames) > 0 && !pythonsOwn(t.frames[0]) {
				same[t.site]++
			}
		}
		for _, f := range t.frames {
			if rule := (rule{names: []string{"take_gil",
				"PyEval_RestoreThread"}}); rule.find([]frame{f}, anything) >= 0 && !t.gil() {
				t.doing, t.kind, t.site = lock, interpreter, "take_gil"
				native++
			}
		}
	}
	r := d.read()
	d.noFrames(&r)
	if len(d.threads) == 1 && d.bare == 0 {
		d.lonePython(&r)
		return r
	}
	if gil != nil {
		r.Figures = append([]string{fmt.Sprintf("%q has the GIL, in %s", gil.name, gil.where())}, r.Figures...)
	}
	top, n := "", 0
	for site, k := range same {
		if k > n || k == n && site < top {
			top, n = site, k
		}
	}
	switch {
	case len(d.threads) < 2 || len(r.Signs) > 0:
	case d.permits(&r):
	case gil != nil && off+on >= 3 && n > 1 && gil.passes(top):
		d.candidate(&r, "interpreter-lock",
			fmt.Sprintf("%d threads stand off the CPU in the line where the one with the GIL runs: %s", n, top))
	case gil != nil && on >= 2 && native == 0:
		d.candidate(&r, "interpreter-lock",
			fmt.Sprintf("%q has the GIL while %s active as well: in native code, or wanting the GIL", gil.name, are(on-1)))
		r.Means = "More than one thread is at work, and one has the GIL: whether the others wait for it, a dump of one instant cannot tell."
	case d.stateless():
		r.State = attach.CannotTell
		d.stand(&r)
		if n >= 3 {
			line := fmt.Sprintf("%d threads stand in one line: %s", n, top)
			d.candidate(&r, "lock-contention", line)
			r.Signs = append(r.Signs,
				attach.Sign{Cause: "interpreter-lock", Grade: attach.Candidate, Proof: []string{line}})
		}
	case gil == nil && n >= 3:
		d.candidate(&r, "lock-contention",
			fmt.Sprintf("%d threads stand off the CPU in one line, and none has the GIL: %s", n, top))
	}
	d.atWork(&r)
	d.offCPU(&r)
	if t := d.awaits(); t != nil && len(r.Signs) == 0 && r.State == attach.Healthy {
		line := fmt.Sprintf("%q waits for the result of work that it gave to other threads, from %s", t.name, t.caller())
		r.Figures = append([]string{line}, r.Figures...)
		r.State, r.Means = attach.CannotTell,
			"A thread waits for a result of others: who works on it is not among the threads that are at work here."
		r.Next = append(r.Next,
			attach.Next{Command: "py-spy dump --pid PID; sleep 10; py-spy dump --pid PID",
				Why: "whether it still waits in the same call, and what the pool's threads do"})
	}
	d.exiting(&r)
	d.open(&r, d.tally())
	r.Not = "Python's frames do not show whether a line waits for a lock, a call in C or the GIL: py-spy's \"idle\" is only \"off the CPU\"."
	return r
}

// awaits is the thread that waits for a future, if no thread is at work.
func (d *dump) awaits() (found *thread) {
	for _, t := range d.threads {
		if t.active() {
			return nil
		}
		if i := t.future(); i >= 0 && found == nil {
			found = t
		}
	}
	return found
}

// future is the frame in which a thread waits for the result of a future; -1: it does not.
func (t *thread) future() int {
	for i, f := range t.frames[:min(len(t.frames), 4)] {
		if (f.fn == "result" || f.fn == "exception" || f.fn == "Future.result") &&
			(strings.HasSuffix(f.file, "futures/_base.py") || f.file == "_base.py") {
			return i
		}
	}
	return -1
}

// caller is who waits for a future: the frame that called it.
func (t *thread) caller() string {
	if i := t.future() + 1; i < len(t.frames) {
		return fmt.Sprintf("%s (%s:%s)", t.frames[i].fn, t.frames[i].file, t.frames[i].args)
	}
	return "a function that was cut off"
}

func are(n int) string {
	if n == 1 {
		return "another one is"
	}
	return fmt.Sprintf("%d others are", n)
}

// candidate adds what one dump of Python's frames only hints at.
func (d *dump) candidate(r *attach.Reading, cause, line string) {
	r.Figures = append([]string{line}, r.Figures...)
	r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Candidate, Proof: []string{line}})
	r.State = attach.CannotTell
	r.Means = "Several threads stand in one line: it fits a queue, and a dump of one instant cannot tell."
	pid := "PID"
	if d.pid > 0 {
		pid = fmt.Sprint(d.pid)
	}
	r.Next = append(r.Next, attach.Next{Command: "py-spy dump --native --pid " + pid,
		Why: "shows the calls in C below that line: take_gil is the GIL, PyThread_acquire_lock a lock"})
}
