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
		if w.n < 2 || float64(w.n) < 0.2*float64(t.busy()) {
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
	if t.room > 0 && t.remote > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%s for room in a queue behind them (%s)", waits(t.room), t.most(room)))
	}
	if t.pooled > 1 {
		line := fmt.Sprintf("%s of %d wait for a free connection or object of a pool (%s)", threads(t.pooled), t.total, t.most(pooled))
		sign := attach.Sign{Cause: "pool-exhaustion", Grade: attach.Found, Sure: finding.Possible, Proof: []string{line}, Share: share(t.pooled, t.total)}
		if t.remote > 0 || t.table > 0 {
			sign.Proof = append(sign.Proof, fmt.Sprintf("those which have one: %d wait for another server", t.remote+t.table))
		}
		r.Figures = append(r.Figures, line)
		r.Signs = append(r.Signs, sign)
		r.Means = cmp.Or(r.Means, "The pool is empty at this instant: look at what those do that have its connections.")
	}
	already := slices.ContainsFunc(r.Signs, func(s attach.Sign) bool { return s.Cause == "disk-wait" })
	if t.disk > 1 && float64(t.disk) >= 0.3*float64(t.busy()) && !already {
		line := fmt.Sprintf("%s of %d wait for a file (%s)", threads(t.disk), t.total, t.most(disk))
		r.Figures = append(r.Figures, line)
		r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Candidate, Proof: []string{line}, Share: share(t.disk, t.total)})
		r.Means = cmp.Or(r.Means, "Several threads are in calls of the disk at this instant; one dump does not say for how long.")
		r.Next = append(r.Next, attach.Next{Command: "iostat -x 1 10", Why: "says whether the disk is slow: await and aqu-sz"})
	}
}

// outside is the sign that time is in something which is not ours to explain.
func (d *dump) outside(w doing, call string, n int) attach.Sign {
	where, line := "another server", fmt.Sprintf("%s for another server's answer (%s)", waits(n), call)
	switch w {
	case tableLock:
		where, line = "a lock of the database's own tables", fmt.Sprintf("%s for a lock of the database's own tables (%s)", waits(n), call)
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
	return attach.Next{Command: "ss -tnpo state established", Why: "names the server that these connections go to; look at that server next"}
}

// quiet reads a dump without convoys.
func (d *dump) quiet(r *attach.Reading, t tally, list []*convoy) {
	d.pools(r, t)
	r.State = attach.Healthy
	r.Means = "No threads queue behind one lock; those that wait, wait for work."
	if d.ended(r) || d.spinning(r) {
		return
	}
	switch {
	case d.inCommit() > 0 && d.inCommit()*2 >= d.insideWork():
		d.committing(r)
	case d.insideWork() > 0:
		r.State = attach.CannotTell
		line := fmt.Sprintf("%s for a signal inside a statement or request: %s", waits(d.insideWork()), d.insideWhere())
		r.Figures = append(r.Figures, line)
		r.Means = "They do not wait for work: what they wait for, a row's lock, a commit or another thread, the stacks do not say."
		r.Next = append(r.Next, attach.Next{Command: "the server's own view: SHOW ENGINE INNODB STATUS, pg_stat_activity, or its request log", Why: "says what these requests wait for"})
	case d.python() > 1:
		r.State = attach.CannotTell
		r.Figures = append(r.Figures, fmt.Sprintf("%s in PyThread_acquire_lock: Python's locks and its queues look alike there", waits(d.python())))
		r.Means = "Python threads wait for a lock or for work: their frames in C do not say which."
		r.Next = append(r.Next, attach.Next{Command: "py-spy dump --pid PID", Why: "shows the lines of Python in which they wait"})
	case t.lock > 1 && t.lock == t.busy():
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("All %d threads that are not idle wait for locks, and none goes on: a deadlock fits, or a holder that is not in the dump.", t.lock)
		r.Signs = append(r.Signs, attach.Sign{Cause: "lock-contention", Grade: attach.Candidate, Share: share(t.lock, t.total),
			Proof: []string{fmt.Sprintf("%s for locks%s", waits(t.lock), list0(list))}})
		if d.whole == "" {
			r.Next = append(r.Next, attach.Next{Command: "gdb -p PID -batch -ex 'thread apply all bt' -ex 'thread apply all frame 2' -ex 'info locals'", Why: "the locks' addresses, once the debug symbols of libc and the program are there: who owns each"})
		}
	case t.lock > 1:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s wait for locks, each for another one or without an address: no convoy can be shown.", threads(t.lock))
	case t.lock == 1 && t.busy() == 1 && (len(list) == 0 || list[0].holder == nil):
		r.State = attach.CannotTell
		r.Figures = append(r.Figures, "one thread waits for a lock"+list0(list))
		r.Means = "The one thread that is not idle waits for a lock, and who holds it is not in the dump."
	case t.lock == 1:
		r.Figures = append(r.Figures, "one thread waits for a lock"+list0(list))
		r.Means = "One thread that waits is no convoy."
		if len(list) > 0 && list[0].sure {
			r.Figures = append(r.Figures, list[0].holderText())
		}
	case t.remote > 0:
		r.Figures = append(r.Figures, fmt.Sprintf("%s for another server's answer (%s)", waits(t.remote), t.most(remote)))
	case t.running > 0 && t.running*2 > t.total && t.total > 3:
		r.Means = "No threads queue behind one lock. Most run or are in calls; what that costs, a profile says."
	}
}

// pools names the largest group of threads that wait in one place, and the one thread at work if
// there is only one: the usual misreading is to call the pool slow.
func (d *dump) pools(r *attach.Reading, t tally) {
	n := map[string]int{}
	var at *thread
	for _, th := range d.threads {
		if th.doing == idle {
			n[th.site] += th.n
		} else if th.doing == running {
			at = th
		}
	}
	delete(n, "")
	best := ""
	for site, k := range n {
		if k > n[best] || k == n[best] && site < best {
			best = site
		}
	}
	if n[best] > 2 && !strings.HasPrefix(best, "0x") {
		r.Figures = append(r.Figures, fmt.Sprintf("%d threads wait in %s, as a pool without work does", n[best], best))
	}
	if t.running == 1 && t.total > 2 && at != nil && len(at.frames) > 0 && at.state == "" {
		at.from = 0
		r.Figures = append(r.Figures, "the only thread at work: "+at.path())
	}
}

// workMarks are functions below which a server does a client's work: who waits there is not idle.
var workMarks = rule{names: []string{"mysql_execute_command", "dispatch_command", "mysql_parse", "exec_simple_query", "PortalRun", "handler::*", "process_request", "handle_request",
	"processRequest", "handleRequest", "HandleRequest"}}

// insideWork is how many threads wait for a signal inside a request, without any call that says
// idle.
func (d *dump) insideWork() (n int) {
	for _, t := range d.threads {
		if t.doing == signal && workMarks.find(t.frames, anything) >= 0 {
			n += t.n
		}
	}
	return n
}

// python is how many threads wait in the call that Python's locks, conditions and queues share.
func (d *dump) python() (n int) {
	for _, t := range d.threads {
		if t.doing == signal && (rule{names: []string{"PyThread_acquire_lock*"}}).find(t.frames, anything) >= 0 {
			n += t.n
		}
	}
	return n
}

// insideWhere is the first such place that has a name.
func (d *dump) insideWhere() string {
	for _, t := range d.threads {
		if t.doing != signal {
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

func list0(list []*convoy) string {
	if len(list) == 0 {
		return ""
	}
	return ": " + list[0].lockName() + " in " + orUnknown(list[0].site)
}

// census says how many threads do what.
func (d *dump) census(t tally) string {
	var words []string
	for _, w := range []struct {
		n    int
		text string
	}{{t.lock, "in lock waits"}, {t.disk, "in files' calls"}, {t.remote, "waiting for another server"}, {t.table, "waiting for tables' locks"},
		{t.pooled, "waiting for a pool"}, {t.room, "waiting for room in a queue"}, {t.running, "running or in calls"},
		{d.children(), "waiting for another process"}, {t.idle - d.children(), "idle (waiting for work, asleep)"}, {t.signal, "waiting for a signal"}} {
		if w.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", w.n, w.text))
		}
	}
	return fmt.Sprintf("of %s: %s", threads(t.total), strings.Join(words, ", "))
}

// children is how many threads wait for another process: a child to end, or one that is traced to
// stop.
func (d *dump) children() (n int) {
	for _, t := range d.threads {
		if t.doing == idle && t.child {
			n += t.n
		}
	}
	return n
}

func sortFacts(facts []attach.Fact) {
	slices.SortStableFunc(facts, func(a, b attach.Fact) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.Value, a.Value), cmp.Compare(a.Of, b.Of))
	})
}
