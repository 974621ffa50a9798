package stackdump

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// lockFiles are functions of libraries that wait for a lock file: another process holds it, or has
// left it behind.
var lockFiles = []struct{ file, fns string }{
	{"torch/utils/file_baton.py", "wait"},
	{"filelock/_api.py", "acquire __enter__"},
	{"filelock/__init__.py", "acquire __enter__"},
	{"lockfile/linklockfile.py", "acquire"},
	{"lockfile/mkdirlockfile.py", "acquire"},
	{"lockfile/pidlockfile.py", "acquire"},
	{"fasteners/process_lock.py", "acquire _do_open"},
	{"portalocker/utils.py", "acquire __enter__"},
	{"zc/lockfile/__init__.py", "__init__"},
}

// lockFile reports whether a thread waits for a lock file.
func (t *thread) lockFile() bool {
	for _, f := range t.frames[:min(len(t.frames), 4)] {
		for _, l := range lockFiles {
			if strings.Contains("/"+f.path, "/"+l.file) && strings.Contains(" "+l.fns+" ", " "+f.fn+" ") {
				return true
			}
		}
	}
	return false
}

// place is a frame of Python as people write it: function, file and line.
func (f frame) place() string {
	if f.args == "" {
		return fmt.Sprintf("%s (%s)", f.fn, f.file)
	}
	return fmt.Sprintf("%s (%s:%s)", f.fn, f.file, f.args)
}

// lonePython reads a dump of one Python thread: where it is and who called that.
func (d *dump) lonePython(r *attach.Reading) {
	t := d.threads[0]
	line := t.frames[0].place()
	switch n := len(t.frames); {
	case n == 2:
		line += ", called from " + t.frames[1].place()
	case n > 2:
		line += fmt.Sprintf(", called from %s, below %s", t.callerOfWaits(), t.frames[n-1].place())
	}
	r.State, r.Signs = attach.CannotTell, nil
	r.Not = "One look at one thread: how long it is there, and how often, is not in it."
	again := attach.Next{Command: fmt.Sprintf("py-spy dump --pid %s; sleep 10; py-spy dump --pid %[1]s", d.pidWord()),
		Why: "whether it still is in the same place"}
	switch {
	case t.lockFile():
		line = "the one thread waits for a lock file, in " + line
		r.Means = "It waits for a lock file: another process holds it, or one that ended has left it behind. The file's age and its owner tell which."
		r.Signs = []attach.Sign{{Grade: attach.Outside,
			Where: "another process that holds a lock file, or has left it behind",
			Proof: []string{line}}}
		r.Not = "That the file is left over is not in it, nor how long the thread waits."
	case t.asyncio():
		line = "the one thread waits for events in its event loop: " + line
		r.Means = "The event loop waits for events, and no Python code runs: which tasks wait, and for what, a dump of threads does not show."
		r.Not = "That anything hangs: tasks that wait have no thread, and so no frames here."
		again = attach.Next{Command: "asyncio.all_tasks() and each task's print_stack(), or python -m asyncio pstree PID (3.14)",
			Why: "lists the tasks and where each waits"}
	case t.inCallback():
		line = "the one thread is within a callback of its event loop: " + line
		r.Means = "It runs, or waits in this call, within a callback of asyncio's event loop: the loop's other tasks do not run meanwhile."
	case t.writesPipe():
		line = "the one thread is off the CPU where it writes to a pipe or a socket: " + line
		r.Means = "It waits until the other end takes what it writes: what that process does meanwhile is not in it."
	case t.joinsChild() >= 0 && !t.active():
		at := t.joinsChild()
		line = "the one thread waits for a child process to end, in " + t.frames[at].place()
		if at+1 < len(t.frames) {
			line += ", called from " + t.frames[at+1].place()
		}
		r.Means = "It waits until a process that it started ends: what that one does meanwhile, its own stack says."
	case t.active():
		line = "the one thread is at work: " + line
		r.Means = strings.Fields(d.tool)[0] +
			" calls it active: it computes at this instant, or is in a call. How much time goes there, samples over some seconds tell."
		r.Not = "One look is no share of the time: it says neither how long nor how often the thread is there."
		again = attach.Next{Command: "py-spy record --duration 30 --pid " + d.pidWord(),
			Why: "which share of the time each function takes"}
	case t.doing == lock, t.doing == remote, t.doing == pooled:
		d.lone(r)
		return
	case t.state == "":
		line = "the one thread is in " + line
		r.Means = "It says where one thread is, and not whether it runs there or waits."
	case t.state == "current":
		line = "the one thread is in " + line
		r.Means = "It says where the thread was that asked for the dump, or that failed."
	default:
		line = "the one thread is off the CPU, in " + line
		r.Means = "It is off the CPU in this place: it waits there, for what its code says."
	}
	r.Figures = []string{line}
	r.Next = []attach.Next{again}
}

// stateless reports whether the dump does not say which threads run.
func (d *dump) stateless() bool {
	return len(d.threads) > 0 && (d.threads[0].state == "" || d.threads[0].state == "current")
}

// stand says where the threads are that are not idle, if there are few.
func (d *dump) stand(r *attach.Reading) {
	const few = 3
	var words []string
	for _, t := range d.threads {
		if t.doing == idle {
			continue
		}
		word := t.frames[0].place()
		if len(t.frames) > 1 && !pythonsOwn(t.frames[1]) {
			word += ", called from " + t.frames[1].place()
		}
		words = append(words, word)
	}
	if len(words) > 0 && len(words) <= few {
		r.Figures = append([]string{"not known to be idle: " + strings.Join(words, "; ")}, r.Figures...)
	}
}

// callerOfWaits is the function that called the innermost one, past Python's own waits.
func (t *thread) callerOfWaits() string {
	for _, f := range t.frames[1 : len(t.frames)-1] {
		if name := f.file[strings.LastIndexByte(f.file, '/')+1:]; name != "threading.py" && name != "queue.py" {
			return f.place()
		}
	}
	return t.frames[1].place()
}

// offCPU names the threads that stand off the CPU in code of the program's, where no rule says for
// what they wait: with them a dump makes nothing healthy.
func (d *dump) offCPU(r *attach.Reading) {
	if len(r.Signs) > 0 || r.State != attach.Healthy {
		return
	}
	var words []string
	for _, t := range d.threads {
		if t.lockFile() {
			line := fmt.Sprintf("%s waits for a lock file, in %s", t.who(), t.frames[0].place())
			r.Figures = append([]string{line}, r.Figures...)
			r.Signs = append(r.Signs, attach.Sign{Grade: attach.Outside,
				Where: "another process that holds a lock file, or has left it behind", Proof: []string{line}})
			r.State, r.Means = attach.CannotTell,
				"A thread waits for a lock file: another process holds it, or one that ended has left it behind."
			return
		}
		if t.doing == signal && len(t.frames) > 2 && t.future() < 0 && !pythonsOwn(t.frames[0]) {
			words = append(words, fmt.Sprintf("%s in %s", t.who(), t.frames[0].place()))
		}
	}
	if len(words) == 0 {
		return
	}
	r.Figures = append([]string{fmt.Sprintf("off the CPU, in no wait that is known: %s",
		strings.Join(words[:min(3, len(words))], "; "))}, r.Figures...)
	r.State = attach.CannotTell
	r.Means = "No threads queue behind one lock. What these wait for, and for how long, one dump does not say."
	r.Next = append(r.Next, attach.Next{Command: fmt.Sprintf("py-spy dump --native --pid %s", d.pidWord()),
		Why: "the calls in C below these lines: a read, a lock, a library that computes"})
}

// atWork names the few threads that py-spy calls active: the others wait, perhaps for them.
func (d *dump) atWork(r *attach.Reading) {
	var words []string
	for _, t := range d.threads {
		if t.active() && !t.gil() && len(t.frames) > 0 {
			words = append(words, fmt.Sprintf("%s in %s", t.who(), t.frames[0].place()))
		}
	}
	if n := len(words); n > 0 && n <= 3 && n < len(d.threads) && len(r.Signs) == 0 {
		r.Figures = append([]string{"at work, or in a call that " + strings.Fields(d.tool)[0] +
			" does not take for a wait: " + strings.Join(words, "; ")}, r.Figures...)
	}
}

// exits reports whether a thread is in the exit of the interpreter, which joins the pools' threads.
func (t *thread) exits() bool {
	return slices.ContainsFunc(t.frames, (pyPlace{file: "concurrent/futures/thread.py", fns: "_python_exit"}).has)
}

// exiting says that the interpreter exits and waits for a pool's thread to end: it joins each.
func (d *dump) exiting(r *attach.Reading) {
	var main *thread
	var others []string
	for _, t := range d.threads {
		if t.exits() {
			main = t
		} else if t.doing != idle && len(t.frames) > 0 {
			others = append(others, fmt.Sprintf("%s in %s, below %s", t.who(), t.frames[0].place(),
				t.frames[len(t.frames)-1].place()))
		}
	}
	if main == nil || len(r.Signs) > 0 {
		return
	}
	r.Figures = append([]string{fmt.Sprintf("the interpreter exits: %s waits for the threads of a pool to end", main.who())}, r.Figures...)
	if len(others) > 0 {
		r.Figures = append(r.Figures, "not idle: "+strings.Join(others[:min(3, len(others))], "; "))
	}
	r.State, r.Means = attach.CannotTell,
		"The process does not end before the work of the pool's threads does: what they wait for decides."
}

// writesPipe reports whether a thread that is off the CPU writes to another process.
func (t *thread) writesPipe() bool {
	return t.state == "idle" && pyBase(t.frames[0]) == "_send" &&
		(strings.HasSuffix(t.frames[0].file, "multiprocessing/connection.py") || t.frames[0].file == "connection.py")
}

// asyncio reports whether a thread waits in asyncio's event loop.
func (t *thread) asyncio() bool {
	if t.active() || len(t.frames) < 2 || t.frames[0].fn != "select" && t.frames[0].fn != "poll" &&
		t.frames[0].fn != "_poll" {
		return false
	}
	for _, f := range t.frames[1:min(len(t.frames), 4)] {
		if f.fn == "_run_once" && (strings.HasSuffix(f.file, "asyncio/base_events.py") || f.file == "base_events.py") {
			return true
		}
	}
	return false
}

// inCallback reports whether a thread is within what asyncio's event loop called, and not in the
// loop's own wait.
func (t *thread) inCallback() bool {
	if len(t.frames) < 2 || t.frames[0].fn == "select" || t.frames[0].fn == "poll" || t.frames[0].fn == "_poll" {
		return false
	}
	return slices.ContainsFunc(t.frames[1:], func(f frame) bool {
		return f.fn == "_run_once" && (strings.HasSuffix(f.file, "asyncio/base_events.py") ||
			f.file == "base_events.py")
	})
}

func (d *dump) pidWord() string {
	if d.pid > 0 {
		return fmt.Sprint(d.pid)
	}
	return "PID"
}
