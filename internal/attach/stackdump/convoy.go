package stackdump

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// convoy is threads that wait for one lock.
type convoy struct {
	addr, sym, site string // addr is "" where the dump has none: then the site tells locks apart
	what            string // the lock's type, where the dump says it
	kind            lockKind
	waiters         int
	threads         []*thread
	sites           map[string]int
	holder          *thread
	sure            bool // the dump names the holder; otherwise it is inferred from the stacks
	cycle           bool // a deadlock
}

// key tells locks apart. Locks of the library without an address are one each, since there is only
// one of each in a process.
func (t *thread) key() string {
	switch {
	case t.kind == stackCache, t.kind == loaderLock, t.kind == interpreter:
		return fmt.Sprint("kind ", t.kind)
	case t.kind == addressSpace:
		return "mmap_lock of " + t.name // one in each process
	case t.addr != "":
		return t.addr
	case t.site != "":
		return "site " + t.site
	}
	return "" // it waits for a lock of which nothing is known
}

// convoys groups the threads that wait for locks, the longest queue first.
func (d *dump) convoys() []*convoy {
	byKey := map[string]*convoy{}
	var list []*convoy
	for _, t := range d.threads {
		if t.doing != lock || t.key() == "" {
			continue
		}
		c := byKey[t.key()]
		if c == nil {
			c = &convoy{addr: t.addr, sym: t.sym, site: t.site, kind: t.kind, what: t.what, sites: map[string]int{}}
			byKey[t.key()] = c
			list = append(list, c)
		}
		c.waiters += t.n
		c.threads = append(c.threads, t)
		c.sites[t.site] += t.n
		c.sym = cmp.Or(c.sym, t.sym)
		if c.sites[t.site] > c.sites[c.site] {
			c.site = t.site
		}
	}
	for _, c := range list {
		c.holder, c.sure = d.holder(c)
	}
	for _, c := range list {
		c.cycle = c.inCycle(list)
	}
	slices.SortStableFunc(list, func(a, b *convoy) int {
		if a.cycle != b.cycle {
			return cmp.Compare(b2i(b.cycle), b2i(a.cycle))
		}
		return cmp.Compare(b.waiters, a.waiters)
	})
	return list
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// holder finds the thread that holds the lock: as the dump says it, or the only thread that is past
// the lock in the function that the others wait in.
func (d *dump) holder(c *convoy) (*thread, bool) {
	if c.addr != "" {
		if tid := d.owners[c.addr]; tid != 0 {
			for _, t := range d.threads {
				if t.id == tid {
					return t, true
				}
			}
		}
		for _, t := range d.threads {
			if slices.Contains(t.holds, c.addr) && !slices.Contains(c.threads, t) {
				return t, true
			}
		}
	}
	if c.kind == interpreter {
		return d.only(func(t *thread) bool { return t.doing == running && interpreted(t) }), false
	}
	if c.site == "" || c.kind != plainLock && c.kind != loggerLock {
		return nil, false
	}
	return d.only(func(t *thread) bool {
		if slices.Contains(c.threads, t) || t.n > 1 {
			return false
		}
		return slices.ContainsFunc(t.frames, func(f frame) bool { return short(f.fn) == c.site })
	}), false
}

// holderLine says who holds a lock, also where that thread is not in the text.
func (d *dump) holderLine(c *convoy) string {
	if line := c.holderText(); line != "" {
		return line
	}
	if id := d.owners[c.addr]; id != 0 && c.addr != "" {
		return fmt.Sprintf("thread %d holds it, and is not in the text", id)
	}
	for _, t := range c.threads {
		if t.owner != "" {
			return fmt.Sprintf("%q holds it: its stack is not in the text", cutName(t.owner))
		}
	}
	if c.addr != "" && d.holders {
		return "no thread of this text is shown to hold it"
	}
	return ""
}

// only returns the thread that fits, if there is exactly one.
func (d *dump) only(fits func(*thread) bool) (found *thread) {
	for _, t := range d.threads {
		if fits(t) {
			if found != nil {
				return nil
			}
			found = t
		}
	}
	return found
}

func interpreted(t *thread) bool {
	return slices.ContainsFunc(t.frames, func(f frame) bool {
		fn := short(f.fn)
		return strings.HasPrefix(fn, "PyEval_EvalFrame") || strings.HasPrefix(fn, "rb_vm_exec") || fn == "vm_exec_core"
	})
}

// inCycle reports whether the holder of the lock waits, through others, for a lock that one of the
// lock's own waiters holds.
func (c *convoy) inCycle(all []*convoy) bool {
	at := c
	for range 16 {
		if !at.sure || at.holder == nil || at.holder.doing != lock {
			return false
		}
		switch at = at.behind(all); at {
		case nil:
			return false
		case c:
			return true
		}
	}
	return false
}

// lockName is the lock as people know it.
func (c *convoy) lockName() string {
	switch c.kind {
	case stackCache:
		return "the lock of glibc's cache of thread stacks"
	case arenaLock:
		return "a lock of the allocator"
	case loaderLock:
		return "the dynamic loader's lock"
	case interpreter:
		return "the interpreter's lock (GIL, GVL)"
	case loggerLock:
		return "a logger's or stdio's lock" + c.address()
	case engineLock:
		return "a lock of the database engine" + c.address()
	case addressSpace:
		return "the lock of the process' address space (mmap_lock)"
	case kernelLock:
		return "a lock of the kernel" + c.address()
	}
	if c.what != "" {
		return c.what + c.address()
	}
	if c.addr != "" {
		return "the lock" + c.address()
	}
	return "a lock"
}

func (c *convoy) address() string {
	switch {
	case c.sym != "":
		return fmt.Sprintf(" %s (%s)", c.sym, c.addr)
	case c.addr != "":
		return " " + c.addr
	}
	return ""
}

// sitesText lists the functions that want the lock, the one with most threads first.
func (c *convoy) sitesText() string {
	type site struct {
		name string
		n    int
	}
	var list []site
	for name, n := range c.sites {
		if name != "" {
			list = append(list, site{name, n})
		}
	}
	slices.SortFunc(list, func(a, b site) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name)) })
	var words []string
	for i, s := range list {
		if i == 3 {
			words = append(words, fmt.Sprintf("%d more", len(list)-3))
			break
		}
		words = append(words, fmt.Sprintf("%s (%d)", s.name, s.n))
	}
	return strings.Join(words, ", ")
}

// oneWaits reads a dump in which one thread waits for a lock. A holder that sleeps or waits keeps
// the lock for as long, though nobody works below it.
func (d *dump) oneWaits(r *attach.Reading, list []*convoy) {
	line := "one thread waits for a lock" + list0(list)
	r.Figures = append(r.Figures, line)
	r.Means = "One thread that waits is no convoy."
	if d.total()-d.frameless() < wholeDump {
		r.State = attach.CannotTell
	}
	if len(list) == 0 || !list[0].sure || list[0].holder == nil {
		if len(list) > 0 {
			r.Figures = appendLine(r.Figures, d.holderLine(list[0]))
		}
		return
	}
	holds := list[0].holderText()
	r.Figures = append(r.Figures, holds)
	if list[0].holder.doing == running {
		return
	}
	r.State = attach.CannotTell
	r.Means = "One thread waits for a lock whose holder sleeps or waits meanwhile: how often, and for how long, one dump does not say."
	r.Signs = append(r.Signs, attach.Sign{Cause: "lock-contention", Grade: attach.Candidate,
		Share: share(1, d.total()), Proof: []string{line, holds}})
	if d.whole != "" {
		r.Next = append(r.Next, attach.Next{Command: d.whole,
			Why: "taken three times: whether the same thread still holds the lock"})
	}
}

func appendLine(lines []string, line string) []string {
	if line == "" {
		return lines
	}
	return append(lines, line)
}

// keepers is how many threads sleep or wait while they hold a lock that others wait for.
func (d *dump) keepers() int {
	return d.count(func(t *thread) bool { return t.doing == idle && t.wanted && len(t.frames) > 0 })
}

func sortFacts(facts []attach.Fact) {
	slices.SortStableFunc(facts, func(a, b attach.Fact) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.Value, a.Value), cmp.Compare(a.Of, b.Of))
	})
}

func list0(list []*convoy) string {
	if len(list) == 0 {
		return ""
	}
	var words []string
	for _, c := range list[:min(len(list), 3)] {
		word := c.lockName()
		if c.site != "" || c.address() == "" {
			word += " in " + orUnknown(c.site)
		}
		words = append(words, word)
	}
	if more := len(list) - 3; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return ": " + strings.Join(words, ", ")
}
