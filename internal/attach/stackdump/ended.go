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
	if !fault {
		r.Means = fmt.Sprintf("The program ended by %s: a check of its own failed, or one found that it hangs.", by)
	}
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
