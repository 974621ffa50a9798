package stackdump

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// elsewhere reports waits that are not for a lock: other servers, tables, pools, disks.
func (d *dump) elsewhere(r *attach.Reading, t tally) {
	for _, w := range []struct {
		doing doing
		n     int
	}{{remote, t.remote}, {tableLock, t.table}} {
		if w.n < 2 || !t.many(w.n) {
			continue
		}
		s := d.outside(w.doing, t.most(w.doing), w.n)
		r.Signs = append(r.Signs, s)
		r.Figures = append(r.Figures, s.Proof...)
		if r.Means == "" {
			r.Means = "The time is in " + s.Where + ", outside what whystall can look into."
			r.Next = append(r.Next, d.lookAt(w.doing))
		}
	}
	if t.room > 0 {
		line := fmt.Sprintf("%s for room in a full queue, or for its taker (%s)", waits(t.room), t.most(room))
		r.Figures = append(r.Figures, line)
		if t.room > 1 {
			r.Means = cmp.Or(r.Means,
				"They wait where they put into a queue, as into a full one: look at what its takers do, not at those that put.")
			r.State = attach.CannotTell
		}
	}
	if t.pooled > 1 {
		line := fmt.Sprintf("%s of %d wait for a free connection or object of a pool (%s)",
			threads(t.pooled), t.total, t.most(pooled))
		sign := attach.Sign{Cause: "pool-exhaustion", Grade: attach.Candidate,
			Proof: []string{line}, Share: share(t.pooled, t.total)}
		if t.many(t.pooled) && (t.pooled > 2 || t.total < wholeDump) {
			sign.Grade, sign.Sure = attach.Found, finding.Possible
		}
		r.Figures = append(r.Figures, line)
		r.Signs = append(r.Signs, sign)
		r.Means = cmp.Or(r.Means, "The pool is empty at this instant: look at what those do that have its connections.")
	}
	already := slices.ContainsFunc(r.Signs, func(s attach.Sign) bool { return s.Cause == "disk-wait" })
	if files := t.disk - d.streams(); files > 1 && float64(files) >= 0.3*float64(t.busy()) && !already {
		line := fmt.Sprintf("%s of %d are in a call on a file (%s)", threads(t.disk), t.total, t.most(disk))
		if n := d.afterFiles(); n > 0 {
			line = fmt.Sprintf("%s of %d are in a call on a file, or wait for one that is (%d)",
				threads(t.disk), t.total, n)
		}
		r.Figures = append(r.Figures, line)
		r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Candidate,
			Proof: []string{line}, Share: share(t.disk, t.total)})
		r.Means = cmp.Or(r.Means,
			"Several threads are in calls of the disk at this instant; one dump does not say for how long.")
		r.Next = append(r.Next,
			attach.Next{Command: "iostat -x 1 10", Why: "says whether the disk is slow: await and aqu-sz"})
	}
}

// outside is the sign that time is in something which is not ours to explain.
func (d *dump) outside(w doing, call string, n int) attach.Sign {
	where, line := "another server", fmt.Sprintf("%s for another server's answer (%s)", waits(n), call)
	switch w {
	case tableLock:
		where, line = "a lock of the database's own tables",
			fmt.Sprintf("%s for a lock of the database's own tables (%s)", waits(n), call)
	case pooled:
		where, line = "a pool", fmt.Sprintf("%s for a free object of a pool (%s)", waits(n), call)
	}
	return attach.Sign{Grade: attach.Outside, Where: where, Proof: []string{line}, Share: share(n, d.total())}
}

// lookAt says where to look for time outside.
func (d *dump) lookAt(w doing) attach.Next {
	if w == tableLock {
		return attach.Next{Command: "mysql -e 'SHOW ENGINE INNODB STATUS\\G' -e 'SHOW FULL PROCESSLIST'", Why: "names the transaction that holds the table's or row's lock"}
	}
	return attach.Next{Command: "ss -tnpo state established",
		Why: "names the server that these connections go to; look at that server next"}
}

// quiet reads a dump without convoys.
func (d *dump) quiet(r *attach.Reading, t tally, list []*convoy) {
	d.pools(r, t)
	full := r.Means
	r.State, r.Means = attach.Healthy, d.calm(t)
	if d.frameless() == t.total {
		r.State = attach.CannotTell
		if line := d.states(); line != "" {
			r.Figures = append(r.Figures, "their states: "+line)
		}
	}
	if d.ended(r) || d.spinning(r) {
		return
	}
	switch {
	case d.nameless() > 0 && d.nameless()*2 >= t.total:
		r.State = attach.CannotTell
		r.Figures = append(r.Figures,
			fmt.Sprintf("%s without any function of the program's that has a name", threads(d.nameless())))
		r.Means = "The stacks do not name who called the system's functions: pools that wait for work look so, and so do threads that wait for others."
		r.Not = "Whose waits these are: without symbols or tables to unwind by, frames above the library are guesses."
		if !slices.ContainsFunc(d.threads, func(t *thread) bool { return len(t.frames) > 1 || t.guessed }) {
			r.Means = "Only the innermost frame of each thread is in the text: who called it, and so what it waits for, is not."
			r.Not = ""
			r.Next = append(r.Next,
				attach.Next{Command: cmp.Or(d.whole, "gdb -p PID -batch -ex 'thread apply all bt'"),
					Why: "has the whole stacks"})
			return
		}
		r.Next = append(r.Next,
			attach.Next{Command: "eu-stack -p PID",
				Why: "reads the tables to unwind by itself; the packages with debug symbols name the functions"})
	case t.room > 1:
		r.State, r.Means = attach.CannotTell, full
	case d.inCommit() > 0 && d.inCommit()*2 >= d.insideWork():
		d.committing(r)
	case d.insideWork() > 0:
		r.State = attach.CannotTell
		line := fmt.Sprintf("%s for a signal inside a statement or request: %s", waits(d.insideWork()), d.insideWhere())
		r.Figures = append(r.Figures, line)
		r.Means = "They do not wait for work: what they wait for, a row's lock, a commit or another thread, the stacks do not say."
		next := attach.Next{Command: "the server's own view: SHOW ENGINE INNODB STATUS, pg_stat_activity, or its request log", Why: "says what these requests wait for"}
		if d.whole != "" {
			next = attach.Next{Command: d.whole, Why: "taken three times: which of them stay where they are"}
		}
		r.Next = append(r.Next, next)
	case d.python() > 1:
		r.State = attach.CannotTell
		r.Figures = append(r.Figures,
			fmt.Sprintf("%s in PyThread_acquire_lock: Python's locks and its queues look alike there", waits(d.python())))
		r.Means = "Python threads wait for a lock or for work: their frames in C do not say which."
		r.Next = append(r.Next, attach.Next{Command: "py-spy dump --pid PID",
			Why: "shows the lines of Python in which they wait"})
	case t.lock > 1 && t.lock == t.busy() && d.frameless() == 0:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("All %d threads that are shown and not idle wait for locks, and none goes on: a deadlock fits, or a holder that is not in the dump.", t.lock)
		r.Signs = append(r.Signs, attach.Sign{Cause: "lock-contention", Grade: attach.Candidate,
			Share: share(t.lock, t.total),
			Proof: []string{fmt.Sprintf("%s for locks%s", waits(t.lock), list0(list))}})
		if d.whole == "" {
			r.Next = append(r.Next,
				attach.Next{Command: "gdb -p PID -batch -ex 'thread apply all bt' -ex 'thread apply all frame 2' -ex 'info locals'", Why: "the locks' addresses, once the debug symbols of libc and the program are there: who owns each"})
		} else {
			r.Next = append(r.Next,
				attach.Next{Command: d.whole, Why: "all threads, taken three times: which of them stay where they are"})
		}
	case t.lock > 1:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s wait for locks, each for another one or without an address: no convoy can be shown.", threads(t.lock))
	case t.lock == 1 && t.busy() == 1 && (len(list) == 0 || list[0].holder == nil):
		r.State = attach.CannotTell
		r.Figures = append(r.Figures, "one thread waits for a lock"+list0(list))
		r.Means = "The one thread that is not idle waits for a lock, and who holds it is not in the dump."
	case t.lock == 1:
		d.oneWaits(r, list)
	case t.remote > 0:
		r.Figures = append(r.Figures, fmt.Sprintf("%s for another server's answer (%s)",
			waits(t.remote), t.most(remote)))
	case t.signal*2 > t.total && t.total > 3:
		r.State = attach.CannotTell
	case d.sleepsWithLock(r):
	case t.running > 0 && t.running*2 > t.total:
		r.Means = "No threads queue behind one lock. Most run or are in calls; what that costs, a profile says."
		d.callsOf(r)
	case t.running > 0 && t.total < wholeDump:
		d.callsOf(r)
	}
	if !d.interpreted {
		d.open(r, t)
	}
}

// fewThreads is how many threads a text has at least that says something of a program's health.
const fewThreads = 3

// open takes back that all is well where a thread does more than wait for work: whether it always
// stands there, and for what it waits deep in its work, one dump does not say.
func (d *dump) open(r *attach.Reading, t tally) {
	if r.State != attach.Healthy {
		return
	}
	works := d.count(func(th *thread) bool {
		return th.doing == running && (len(th.frames) == 0 || dumpers.find(th.frames[:1], anything) < 0) ||
			(th.doing == signal || th.events) && th.deep()
	})
	shown := t.total - d.frameless()
	if works == 0 && shown >= fewThreads && t.signal*2 < shown &&
		t.lock+t.remote+t.table+t.disk+t.pooled+t.room == 0 {
		return
	}
	r.State = attach.CannotTell
	if len(r.Next) == 0 {
		r.Next = append(r.Next, attach.Next{Command: cmp.Or(d.whole, "gdb -p PID -batch -ex 'thread apply all bt'"),
			Why: "taken three times: which of the threads at work stay where they are"})
	}
}

// calm is the sentence about a dump in which no threads queue.
func (d *dump) calm(t tally) string {
	switch joins := d.joining(); {
	case d.frameless() == t.total:
		return "No frames of these threads could be read: what they do is not known."
	case t.signal > 0:
		return fmt.Sprintf("No threads queue behind one lock. What %s for, the stacks do not say: pools without work look so.", waitFor(t.signal))
	case joins > 0:
		return fmt.Sprintf("No threads queue behind one lock. What %s for is that another thread ends: what that one does decides.", waitFor(joins))
	case t.remote+t.table+t.disk+t.pooled+t.room+t.lock > 0:
		return "No threads queue behind one lock."
	}
	return "No threads queue behind one lock; those that wait, wait for work, for events or for a time."
}

// wholeDump is how many threads with frames a text has at least that is more than a few of them.
const wholeDump = 5

// sleepsWithLock says that a thread sleeps by its own code and keeps a lock meanwhile. Whoever
// wants it then waits for as long.
func (d *dump) sleepsWithLock(r *attach.Reading) bool {
	for _, t := range d.threads {
		if t.doing == idle && len(t.holds) > 0 && t.sleeps() {
			r.Figures = append([]string{fmt.Sprintf("%s sleeps in %s, and holds %s", t.who(),
				t.call, t.holds[0])}, r.Figures...)
			r.Means = "No threads queue behind one lock. One sleeps with a lock: who wants it meanwhile waits as long."
			if d.total()-d.frameless() < wholeDump {
				r.State = attach.CannotTell
			}
			return true
		}
	}
	return false
}

func waitFor(n int) string {
	if n == 1 {
		return "one thread waits"
	}
	return fmt.Sprintf("%d threads wait", n)
}

// sleeps reports whether a thread sleeps for a time that its own code gave.
func (t *thread) sleeps() bool {
	p, _ := sleepsIn(t.frames)
	return p == inSleep && !like(t.call, "*sig") || strings.Contains(t.call, "Thread.sleep")
}

// nameless is how many threads wait below the system's functions, and have no function of the
// program's with a name.
func (d *dump) nameless() int {
	return d.count(func(t *thread) bool {
		p, _ := sleepsIn(t.frames)
		return p != anything && (t.doing == signal || t.guessed) && !slices.ContainsFunc(t.frames, named)
	})
}

// named reports whether a frame is of the program and has a name.
func named(f frame) bool {
	fn := short(f.fn)
	return fn != "" && fn != "??" && !strings.HasPrefix(fn, "0x") && !wrapper(fn) &&
		fn != "start_thread" && fn != "start" &&
		!strings.HasPrefix(fn, "clone") && !strings.HasPrefix(fn, "libc_start") && !strings.HasPrefix(fn, "syscall")
}

// pools names the largest groups of threads that wait in one place, and the few threads at work:
// the usual misreading is to call the pool slow.
func (d *dump) pools(r *attach.Reading, t tally) {
	n, asleep, signals := map[string]int{}, map[string]int{}, map[string]int{}
	polls, sockets := map[string]int{}, map[string]int{}
	var at *thread
	for _, th := range d.threads {
		unnamed := th.site == "" || strings.HasPrefix(th.site, "0x")
		switch {
		case th.doing == idle && th.site != "" && th.sleeps():
			asleep[th.site] += th.n
		case th.doing == signal && th.socket != "":
			sockets[th.socket] += th.n
		case th.events && !unnamed:
			polls[th.site] += th.n
		case th.doing == signal && th.shared != "": // permits says it
		case th.doing == signal && !unnamed:
			signals[th.site] += th.n
		case th.doing == idle && !unnamed && !th.joins && !th.child:
			n[th.site] += th.n
		case th.doing == running && !th.nameless():
			at = th
		}
	}
	var words []string
	for _, site := range attach.Largest(n) {
		if n[site] > 2 && len(words) < 3 {
			words = append(words, fmt.Sprintf("%d threads wait in %s", n[site], site))
		}
	}
	if len(words) == 1 {
		r.Figures = append(r.Figures, words[0]+", as a pool without work does")
	} else if len(words) > 1 {
		r.Figures = append(r.Figures, strings.Join(words, ", ")+", as pools without work do")
	}
	if sites := attach.Largest(signals); len(sites) > 0 && (signals[sites[0]] > 2 || signals[sites[0]] > 1 && signals[sites[0]] == t.total) {
		r.Figures = append(r.Figures,
			fmt.Sprintf("%d threads wait for a signal, or for what others do, in %s", signals[sites[0]], sites[0]))
	}
	if sites := attach.Largest(polls); len(sites) > 0 && polls[sites[0]] > 2 {
		r.Figures = append(r.Figures, fmt.Sprintf("%d threads wait in a poll for what may come, in %s",
			polls[sites[0]], sites[0]))
	}
	if sites := attach.Largest(sockets); len(sites) > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%s a socket within their work, of a client or of another server, in %s",
			readThreads(sockets[sites[0]]), sites[0]))
	}
	if sites := attach.Largest(asleep); len(sites) > 0 && asleep[sites[0]] > 2 {
		r.Figures = append(r.Figures, fmt.Sprintf("%d threads sleep in %s, by their own code",
			asleep[sites[0]], sites[0]))
	}
	if t.running-d.unnamed() == 1 && t.total > 2 && at != nil && !at.atZero() && d.hit() == nil && len(at.frames) > 0 && at.state == "" {
		at.from = 0
		r.Figures = append(r.Figures, "the only thread that "+d.knownToRun()+": "+at.path())
	}
	if t.running > 1 && t.running <= 3 && t.running*4 < t.total {
		var words []string
		for _, th := range d.threads {
			if th.doing == running && len(th.frames) > 0 && th.state == "" {
				th.from = 0
				words = append(words, th.who()+" in "+th.first(3))
			}
		}
		if len(words) == t.running {
			r.Figures = append([]string{fmt.Sprintf("%d of %s run or are in calls: %s", t.running,
				threads(t.total), strings.Join(words, "; "))}, r.Figures...)
		}
	}
}

// knownToRun says what is known of a thread at work, where the functions of others have no names.
func (d *dump) knownToRun() string {
	if d.unnamed() > 0 {
		return "is known to run or to be in a call"
	}
	return "runs or is in a call"
}

// workMarks are functions below which a server does a client's work: who waits there is not idle.
var workMarks = rule{names: []string{"mysql_execute_command", "dispatch_command", "mysql_parse",
	"exec_simple_query", "PortalRun", "handler::*", "process_request", "handle_request",
	"processRequest", "handleRequest", "HandleRequest", "HttpServlet.service", "doFilter", "doDispatch"}}

// insideWork is how many threads wait for a signal inside a request, without any call that says
// idle.
func (d *dump) insideWork() int {
	return d.count(func(t *thread) bool {
		return t.doing == signal && t.socket == "" && workMarks.find(t.frames, anything) >= 0
	})
}

// python is how many threads wait in the call that Python's locks, conditions and queues share.
func (d *dump) python() int {
	return d.count(func(t *thread) bool {
		return t.doing == signal && (rule{names: []string{"PyThread_acquire_lock*"}}).find(t.frames, anything) >= 0
	})
}

// insideWhere is the first such place that has a name.
func (d *dump) insideWhere() string {
	for _, t := range d.threads {
		if t.doing != signal || t.socket != "" {
			continue
		}
		if i := workMarks.find(t.frames, anything); i >= 0 {
			for _, f := range t.frames[max(0, t.from):] {
				if fn := short(f.fn); fn != "" && fn != "??" && !strings.HasPrefix(fn, "0x") {
					return fn
				}
			}
		}
	}
	return "a function without a name"
}
