package stackdump

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/attach"
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
