package stackdump

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// root is the thread at which a queue ends: the holder, the holder of the lock that the holder
// waits for, and so on. It is nil where the way has a holder without a name, or a cycle.
func (c *convoy) root(all []*convoy) *thread {
	at := c
	for range 16 {
		if at.holder == nil || !at.sure {
			return nil
		}
		if at.holder.doing != lock {
			return at.holder
		}
		if at = at.behind(all); at == nil {
			return nil
		}
	}
	return nil
}

// behind is the queue in which the holder stands; nil: in none.
func (c *convoy) behind(all []*convoy) *convoy {
	next := slices.IndexFunc(all, func(o *convoy) bool { return slices.Contains(o.threads, c.holder) })
	if next < 0 {
		return nil
	}
	return all[next]
}

// chained says that several queues are one: they end at one thread, which waits for none.
func (d *dump) chained(r *attach.Reading, t tally, list []*convoy) {
	behind, locks := map[*thread]int{}, map[*thread]int{}
	var root *thread
	for _, c := range list {
		if h := c.root(list); h != nil {
			behind[h] += c.waiters
			locks[h]++
			if root == nil || behind[h] > behind[root] {
				root = h
			}
		}
	}
	if root == nil || locks[root] < 2 {
		return
	}
	line := fmt.Sprintf("%s (of %d) for %d locks that end at one thread, %s: %s",
		waits(behind[root]), t.total, locks[root],
		root.who(), root.does())
	r.Figures = append([]string{line}, r.Figures...)
	r.Means = "The queues are one chain: what holds up its first thread holds up all of them."
}

// rings are the deadlocks among the locks: the threads of each, where every one waits for a lock of
// the next one, and the last one for a lock of the first. Threads with one name are told apart.
func rings(all []*convoy) (out [][]*thread) {
	seen := map[*convoy]bool{}
	for _, c := range all {
		var ring []*thread
		for at := c; at.cycle && !seen[at]; {
			seen[at] = true
			ring = append(ring, at.holder)
			if at = at.behind(all); at == nil {
				break
			}
		}
		if len(ring) > 1 {
			out = append(out, ring)
		}
	}
	return out
}

// deadlocks says how many threads are in how many deadlocks, and which; "": none is.
func deadlocks(all []*convoy) string {
	const shown = 6 // deadlocks, and threads of each
	list := rings(all)
	n := 0
	used := map[string]bool{}
	twice := false
	var words []string
	for _, ring := range list {
		var names []string
		for _, t := range ring {
			twice = twice || used[t.who()]
			used[t.who()] = true
			names = append(names, t.who())
		}
		n += len(ring)
		line := strings.Join(names[:min(len(names), shown)], ", ")
		if more := len(names) - shown; more > 0 {
			line += fmt.Sprintf(" and %d more", more)
		}
		words = append(words, line)
	}
	if len(list) == 0 {
		return ""
	}
	if len(list) == 1 {
		return fmt.Sprintf("%d threads are in a deadlock: %s", n, words[0])
	}
	line := fmt.Sprintf("%d threads are in %d deadlocks: %s", n, len(list),
		strings.Join(words[:min(len(words), shown)], "; "))
	if more := len(words) - shown; more > 0 {
		line += fmt.Sprintf("; and %d more", more)
	}
	if twice {
		line += " (several threads have the same name)"
	}
	return line
}

const deadlockRemedy = "Take these locks in one order everywhere; until then only a restart frees the threads"

// reported says that the dump itself reports a deadlock whose locks are not among its threads'.
func (d *dump) reported(r *attach.Reading) {
	line := "the dump itself reports a deadlock; which thread has which lock is not among the threads of the text"
	r.Figures = append(r.Figures, line)
	r.Signs = append(r.Signs, attach.Sign{Cause: "lock-contention", Grade: attach.Found,
		Sure: finding.Supported, Proof: []string{line}, Remedy: deadlockRemedy})
	r.Means = "A deadlock, as the runtime itself found it: its threads do not go on without a restart."
}
