package stackdump

import (
	"fmt"
	"slices"

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
		next := slices.IndexFunc(all, func(o *convoy) bool { return slices.Contains(o.threads, at.holder) })
		if next < 0 {
			return nil
		}
		at = all[next]
	}
	return nil
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
	line := fmt.Sprintf("%s (of %d) for %d locks that end at one thread, %s: %s", waits(behind[root]), t.total, locks[root],
		root.who(), root.does())
	r.Figures = append([]string{line}, r.Figures...)
	r.Means = "The queues are one chain: what holds up its first thread holds up all of them."
}

const deadlockRemedy = "Take these locks in one order everywhere; until then only a restart frees the threads"

// reported says that the dump itself reports a deadlock whose locks are not among its threads'.
func (d *dump) reported(r *attach.Reading) {
	line := "the dump itself reports a deadlock; which thread has which lock is not among the threads of the text"
	r.Figures = append(r.Figures, line)
	r.Signs = append(r.Signs, attach.Sign{Cause: "lock-contention", Grade: attach.Found, Sure: finding.Supported, Proof: []string{line}, Remedy: deadlockRemedy})
	r.Means = "A deadlock, as the runtime itself found it: its threads do not go on without a restart."
}
