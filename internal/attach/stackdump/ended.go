package stackdump

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// enders are functions by which a program ends itself.
var enders = rule{names: []string{"raise", "abort", "gsignal", "pthread_kill_implementation",
	"assert_fail", "assert_fail_base",
	"fortify_fail", "libc_fatal", "libc_message",
	"std::terminate", "terminatev", "verbose_terminate_handler", "g_assertion_message", "rust_panic", "ABORT_NOW"}}

// ends reports whether a thread is about to end the program.
func ends(frames []frame) bool { return enders.find(frames[:min(len(frames), 4)], anything) >= 0 }

// ended says that a dump is of a program that ended, and not of one that is slow.
func (d *dump) ended(r *attach.Reading) bool {
	at, does := d.hit(), "got the signal"
	aborts := false
	if d.caught != nil {
		at = d.caught
	}
	for _, t := range d.threads {
		if d.caught == nil && t.doing == running && ends(t.frames) {
			at, does, aborts = t, "ends the program", true
			break
		}
	}
	fault := faults.MatchString(d.signal) || d.caught != nil
	if !aborts && d.signal == "" {
		return false
	}
	r.State = attach.CannotTell
	if !aborts && !fault {
		r.Means = fmt.Sprintf("The program ended by %s, which another process may have sent, "+
			"to one that hung as well: no threads queue behind one lock here.", d.signal)
		r.Not = "Why it was ended is not in it, nor whether anything was slow before."
		return true
	}
	by := cmp.Or(d.signal, "its own abort")
	r.Means = fmt.Sprintf("The program ended by %s: these are the stacks of its end, and not of a slow program.", by)
	r.Not = "Whether anything was slow before the end is not in it."
	if at != nil && at == d.caught {
		_, at.from = at.handles()
		r.Figures = append([]string{fmt.Sprintf("%s: %s", at.who(), at.first(4))}, r.Figures...)
	} else if at != nil {
		at.from = 0
		line := fmt.Sprintf("%s %s: %s", at.who(), does, at.first(4))
		if d.doubt {
			line = fmt.Sprintf("%s %s, in %s", at.who(), does, at.first(1))
			r.Not = "gdb warns that the core file may be of another version of the program or of a library: frames may have wrong names."
		}
		r.Figures = append([]string{line}, r.Figures...)
	} else {
		r.Not = "Which thread got the signal is not in it, nor whether anything was slow before."
		if d.total() == 1 {
			d.threads[0].from = 0
			r.Figures = append(r.Figures, "the one stack that is shown: "+d.threads[0].first(4))
		}
	}
	if d.born > d.total() {
		r.Figures = append(r.Figures,
			fmt.Sprintf("gdb announces %s, and the text has the stacks of %d", threads(d.born), d.total()))
	}
	return true
}

// crashed lowers what a dump of a program that crashed says of locks: its threads were at work when
// it ended, and one instant of them is no convoy.
func (d *dump) crashed(r *attach.Reading) {
	if len(r.Signs) == 0 || !faults.MatchString(d.signal) && d.caught == nil {
		return
	}
	for i := range r.Signs {
		if s := &r.Signs[i]; s.Grade == attach.Found {
			s.Grade, s.Sure = attach.Candidate, ""
		}
	}
	r.Next = nil
	d.ended(r)
}

// handled is what gdb prints of a handler's argument.
var handled = pattern.New(`\bsig(?:num|no|nal|naln?o?)?=(\d{1,2})\b`)

// handles returns the signal that a handler of the program's own caught in this thread, and the
// frame at which it came; 0: no handler of a fault is in its stack. A JVM handles faults as it
// runs.
func (t *thread) handles() (name string, at int) {
	at = slices.IndexFunc(t.frames, func(f frame) bool { return strings.Contains(f.fn, "signal handler called") })
	if at < 1 || at+1 >= len(t.frames) {
		return "", 0
	}
	for _, f := range t.frames[:at] {
		low := strings.ToLower(f.fn)
		m := handled.FindStringSubmatch(f.args)
		switch {
		case strings.Contains(low, "jvm_handle"), strings.Contains(low, "javasignal"):
			return "", 0
		case m != nil && (faults.MatchString(numbered[m[1]]) || m[1] == "6"):
			return numbered[m[1]], at + 1
		case strings.Contains(low, "crash"), strings.Contains(low, "segv"):
			name = "a signal that its own handler of crashes caught"
		}
	}
	if name == "" {
		return "", 0
	}
	return name, at + 1
}

// catches takes the end of a program from a stack in which its own handler caught the signal.
func (d *dump) catches(t *thread) {
	if name, at := t.handles(); at > 0 && d.signal == "" {
		d.signal, d.caught = name, t
	}
}

// who is a thread as a dump names it.
func (t *thread) who() string {
	switch {
	case t.name != "":
		return fmt.Sprintf("%q", cutName(t.name))
	case t.num > 0:
		return fmt.Sprintf("thread %d (LWP %d)", t.num, t.id)
	case t.id > 0:
		return fmt.Sprintf("thread %d", t.id)
	}
	return "one thread"
}

// cutName keeps a thread's name short: programs put whole addresses into it.
func cutName(name string) string {
	if r := []rune(name); len(r) > 60 {
		return string(r[:60]) + "..."
	}
	return name
}

// spinning says that several threads read a variable that threads share, in one place, or pause
// between two looks at it: they may wait for one another though none sleeps.
func (d *dump) spinning(r *attach.Reading) bool {
	at, n, where := map[string]int{}, 0, ""
	for _, t := range d.threads {
		if t.doing != running {
			continue
		}
		if place := t.looksAt(); place != "" {
			at[place] += t.n
			if at[place] > n {
				n, where = at[place], place
			}
		}
	}
	if n < 2 {
		return n == 1 && d.spinLock(r)
	}
	r.State = attach.CannotTell
	line := fmt.Sprintf("%s are in the same read of a variable that threads share, or pause there: %s", threads(n), where)
	r.Figures = append(r.Figures, line)
	r.Signs = append(r.Signs, attach.Sign{Cause: "spinning", Grade: attach.Candidate,
		Proof: []string{line}, Share: share(n, d.total())})
	r.Means = "Threads that spin wait without a sleep: whether these go on, or stay where they are, a second dump tells."
	r.Next = append(r.Next, attach.Next{Command: "gdb -p PID -batch -ex 'thread apply all bt'",
		Why: "taken three times: whether the same threads stand at the same line"})
	return true
}

// spinLock says that one thread is inside of a spin lock. Its name tells, so that one is enough.
func (d *dump) spinLock(r *attach.Reading) bool {
	for _, t := range d.threads {
		place := t.looksAt()
		if t.doing != running || place == "" || !spinLock(short(t.frames[0].fn)) {
			continue
		}
		line := fmt.Sprintf("one thread is in %s, called by %s", short(t.frames[0].fn), place)
		r.State = attach.CannotTell
		r.Figures = append(r.Figures, line)
		r.Signs = append(r.Signs, attach.Sign{Cause: "spinning", Grade: attach.Candidate, Proof: []string{line},
			Share: share(t.n, d.total())})
		r.Means = "It wants a spin lock, and uses a CPU while another thread has it: which one has it is not in these stacks."
		r.Next = append(r.Next, attach.Next{Command: "gdb -p PID -batch -ex 'thread apply all bt'",
			Why: "taken three times: whether it stays there, and which threads are inside of the lock"})
		return true
	}
	return false
}

// looksAt is the program's function from which a thread reads an atomic variable or spins; "": it
// does neither.
func (t *thread) looksAt() string {
	found := -1
	for i, f := range t.frames[:min(len(t.frames), 5)] {
		fn := short(f.fn)
		if primOf(fn) != anything {
			return ""
		}
		if strings.Contains(fn, "atomic") && (strings.Contains(fn, "load") || strings.Contains(fn, "operator") ||
			strings.Contains(fn, "compare_exchange")) ||
			spinners.find([]frame{f}, anything) >= 0 || spinLock(fn) {
			found = i
		}
	}
	if found < 0 || found+1 >= len(t.frames) {
		return ""
	}
	f := t.frames[found+1]
	return strings.TrimSpace(short(f.fn) + " " + f.file)
}
