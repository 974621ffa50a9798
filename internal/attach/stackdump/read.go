package stackdump

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// tally is how many threads do what.
type tally struct {
	total, idle, lock, disk, remote, table, room, pooled, signal, running int
	calls                                                                 map[doing]map[string]int
}

func (d *dump) tally() tally {
	t := tally{total: d.total(), calls: map[doing]map[string]int{}}
	for _, th := range d.threads {
		at := map[doing]*int{idle: &t.idle, lock: &t.lock, disk: &t.disk, remote: &t.remote,
			tableLock: &t.table, room: &t.room,
			pooled: &t.pooled, signal: &t.signal, running: &t.running}[th.doing]
		if th.wanted && th.doing == idle && len(th.frames) > 0 {
			at = &t.running
		}
		*at += th.n
		if t.calls[th.doing] == nil {
			t.calls[th.doing] = map[string]int{}
		}
		t.calls[th.doing][th.call] += th.n
	}
	return t
}

// busy is how many threads do more than wait for work.
func (t tally) busy() int { return t.total - t.idle - t.signal }

// many reports whether so many threads are a good part of those that do more than wait for work,
// and no few of all.
func (t tally) many(n int) bool {
	return float64(n) >= 0.2*float64(t.busy()) && float64(n) >= 0.05*float64(t.total)
}

// most is the call that most of these threads are in.
func (t tally) most(w doing) string {
	best, n := "", 0
	for call, k := range t.calls[w] {
		if k > n || k == n && call < best {
			best, n = call, k
		}
	}
	return best
}

// read says what a dump says.
func (d *dump) read() attach.Reading {
	d.dropTorn()
	list := d.convoys()
	for _, c := range list {
		if c.sure && c.holder != nil {
			c.holder.wanted = true // others wait for it: it is not idle, whatever it does
		}
	}
	t := d.tally()
	r := attach.Reading{
		Title:  fmt.Sprintf("%s, %s", d.tool, threads(t.total)),
		Glance: true,
		Who:    attach.Who{PID: d.pid, Name: d.name},
		Facts: []attach.Fact{{Name: FactDumpThreads, Value: float64(t.total)},
			{Name: FactDumpIdle, Value: float64(t.idle)}},
	}
	if n := len(d.heads); n > 0 {
		r.Title += fmt.Sprintf(", and %d of which the frames are cut off", n)
	}
	if d.counted {
		r.Title = fmt.Sprintf("%s, %d stacks counted", d.tool, t.total)
		r.Not = "Stacks are counted, of one sample or of several: how long a thread waits they do not say."
	}
	for _, c := range list {
		of := c.addr
		if c.sym != "" {
			of = c.sym
		}
		r.Facts = append(r.Facts, attach.Fact{Name: FactLockWaiters, Value: float64(c.waiters), Of: of})
		for site, n := range c.sites {
			if site != "" {
				r.Facts = append(r.Facts, attach.Fact{Name: FactSiteWaiters, Value: float64(n), Of: site})
			}
		}
	}
	sortFacts(r.Facts)
	d.judge(&r, t, list)
	d.partial(&r)
	if t.total > 1 {
		r.Figures = append(r.Figures, d.census(t))
	}
	if r.Not == "" {
		r.Not = "A dump is one instant: how long these threads wait, and how often, it does not say."
	}
	return r
}

// judge decides on the dump's state: a lone thread, then convoys, then other waits.
func (d *dump) judge(r *attach.Reading, t tally, list []*convoy) {
	switch {
	case t.total == 0:
		r.State, r.Means = attach.CannotTell, "No thread's stack could be read from it."
		return
	case t.total == 1:
		if !d.ended(r) {
			d.lone(r)
		}
		return
	case d.cycle && !slices.ContainsFunc(list, func(c *convoy) bool { return c.cycle }):
		d.reported(r)
	case len(list) > 0 && (list[0].waiters > 1 || list[0].cycle):
		d.convoyed(r, t, list)
	}
	d.elsewhere(r, t)
	if len(r.Signs) == 0 {
		d.quiet(r, t, list)
	}
	d.crashed(r)
	r.State = worst(r.Signs, r.State)
}

func worst(signs []attach.Sign, s attach.State) attach.State {
	for _, sign := range signs {
		switch sign.Grade {
		case attach.Found:
			return attach.Ill
		case attach.Outside, attach.Candidate, attach.Risk:
			s = attach.CannotTell
		}
	}
	return s
}

// causes of the kinds of locks.
var causes = map[lockKind]string{plainLock: "lock-contention", stackCache: "thread-churn",
	arenaLock: "lock-contention", loaderLock: "lock-contention",
	interpreter: "interpreter-lock", loggerLock: "logger-lock", engineLock: "lock-contention",
	addressSpace: "mmap-lock", kernelLock: "kernel-lock"}

// convoyed reports the locks that several threads wait for.
func (d *dump) convoyed(r *attach.Reading, t tally, list []*convoy) {
	for i, c := range list {
		if c.waiters < 2 && !c.cycle || i > 2 {
			continue
		}
		line := fmt.Sprintf("%s (of %d) for %s, in %s", waits(c.waiters), t.total, c.lockName(), c.sitesText())
		if c.sitesText() == "" {
			line = fmt.Sprintf("%s (of %d) for %s", waits(c.waiters), t.total, c.lockName())
		}
		r.Figures = append(r.Figures, line)
		sign := attach.Sign{Cause: causes[c.kind], Grade: attach.Candidate, Proof: []string{line},
			Share: share(c.waiters, t.total)}
		if h := d.holderLine(c); h != "" {
			r.Figures = append(r.Figures, h)
			sign.Proof = append(sign.Proof, h)
		}
		if !c.shown() {
			continue
		}
		if c.cycle {
			sign.Remedy = deadlockRemedy
		}
		if c.cycle || c.one() && t.many(c.waiters) && (c.waiters > 2 || c.sure || t.total < 20) {
			sign.Grade, sign.Sure = attach.Found, finding.Possible
			if c.cycle || c.sure || c.waiters > 2 && !d.holders {
				sign.Sure = finding.Supported
			}
		}
		if sign.Grade == attach.Candidate &&
			slices.ContainsFunc(r.Signs, func(s attach.Sign) bool { return s.Cause == sign.Cause }) {
			continue
		}
		if c.sure && c.holder.doing == disk && sign.Grade == attach.Found {
			r.Signs = append(slices.DeleteFunc(r.Signs,
				func(s attach.Sign) bool { return s.Cause == "disk-wait" }),
				attach.Sign{Cause: "disk-wait", Grade: attach.Candidate, Proof: []string{c.holderText()}})
			sign.BecauseOf = "disk-wait"
		}
		r.Signs = append(r.Signs, sign)
	}
	c := list[0]
	if !c.one() {
		r.Not = "The dump has no address of the lock: threads in one place may each want another one. And it is one instant."
	}
	r.Means = c.means()
	if line := deadlocks(list); line != "" {
		r.Figures = append([]string{line}, r.Figures...)
	}
	if !c.cycle {
		d.chained(r, t, list)
	}
	if !c.cycle && !c.sure {
		r.Next = append(r.Next, c.next(d))
	}
}

// leastWithoutAddress is how many threads must stand in one function for it to be said that they
// may want one lock, where the dump has no address of it.
const leastWithoutAddress = 3

// shown reports whether the dump shows a queue, or what fits one.
func (c *convoy) shown() bool {
	return c.one() || c.holder != nil || c.waiters >= leastWithoutAddress
}

// one reports whether the waiters certainly want one lock: the dump names it or its holder, or
// there is only one of its sort.
func (c *convoy) one() bool {
	return c.addr != "" || c.sure || c.cycle || c.kind == stackCache || c.kind == loaderLock ||
		c.kind == interpreter || c.kind == addressSpace
}

// means is the sentence about the first lock.
func (c *convoy) means() string {
	switch {
	case c.cycle:
		return "A deadlock: each of these threads holds the lock that the next one wants. They do not go on without a restart."
	case c.kind == stackCache:
		return "Threads are made and ended faster than the lock of the stack cache allows: keep threads, as a pool does."
	case c.kind == interpreter:
		return "Only one thread at a time runs the interpreter's code; the others queue for it."
	case c.kind == arenaLock:
		return "Threads queue to allocate and free memory: the allocator's lock, not one of the program's."
	case c.kind == loaderLock:
		return "Threads queue for the loader's lock; C++ exceptions take it at every throw before glibc 2.35."
	case !c.one():
		return fmt.Sprintf("%d threads stand in one function and wait for a lock: it fits a queue, and each may want another lock.", c.waiters)
	case c.sure && c.holder.doing == lock:
		return "The threads form a convoy, and the holder itself waits for another lock: a chain."
	}
	return "The threads form a convoy: they go through one section one after the other."
}

// next says how to find the holder.
func (c *convoy) next(d *dump) attach.Next {
	pid := "PID"
	if d.pid > 0 {
		pid = fmt.Sprint(d.pid)
	}
	if c.addr != "" && c.what == "" && c.kind != interpreter {
		return attach.Next{Command: fmt.Sprintf("gdb -p %s -batch -ex 'p ((pthread_mutex_t*)%s)->__data.__owner'", pid, c.addr),
			Why: "names the thread that holds the lock, while the convoy lasts"}
	}
	return attach.Next{Command: "whystall diagnose --pid " + pid,
		Why: "measures how long each wait for the lock takes, and what its holder does"}
}

// holderText says who holds the lock, and what that thread does. Where no address tells, the only
// other thread in the function that takes the lock may hold it, or be past it.
func (c *convoy) holderText() string {
	h := c.holder
	switch {
	case h == nil:
		return ""
	case c.sure:
		return fmt.Sprintf("%s holds it: %s", h.who(), h.does())
	case c.kind == interpreter:
		return fmt.Sprintf("%s may hold it, as the only one that runs: %s", h.who(), h.does())
	}
	return fmt.Sprintf("%s may hold it, as the only other one in %s: %s", h.who(), c.site, h.does())
}

// waits is "1 thread waits" or "2 threads wait".
func waits(n int) string {
	if n == 1 {
		return "1 thread waits"
	}
	return fmt.Sprintf("%d threads wait", n)
}

// path is the site and who called it, the nearest first.
func (t *thread) path() string { return t.first(4) }

// first is the site and who called it, no more than n functions.
func (t *thread) first(n int) string { return strings.Join(t.names(n), " <- ") }

// names are the same as a list.
func (t *thread) names(n int) (words []string) {
	some := slices.ContainsFunc(t.frames[max(t.from, 0):], named)
	for _, f := range t.frames[max(t.from, 0):] {
		fn := short(f.fn)
		if some && strings.HasPrefix(fn, "0x") {
			continue // an address says less than who called it
		}
		if first(fn) && fn != "main" {
			break
		}
		if fn != "" && fn != "??" && len(words) < n && (len(words) == 0 || words[len(words)-1] != fn) {
			words = append(words, fn)
		}
	}
	return words
}

func orUnknown(s string) string {
	if s == "" {
		return "a function without a name"
	}
	return s
}

func threads(n int) string {
	if n == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", n)
}

func share(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}
