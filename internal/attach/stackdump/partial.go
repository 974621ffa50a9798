package stackdump

import (
	"fmt"

	"github.com/whystall/whystall/internal/attach"
)

// leftOut is how many threads the debugger has numbers for that are not in the part. It numbers
// them from 1 on; the numbers of threads that ended are not given again. So a few may be no more.
func (d *dump) leftOut() (n, last int) {
	seen := map[int]bool{}
	for _, t := range d.threads {
		if t.num == 0 {
			return 0, 0
		}
		seen[t.num] = true
		last = max(last, t.num)
	}
	for _, num := range d.heads {
		seen[num] = true
		last = max(last, num)
	}
	return last - len(seen) - d.bare, last
}

// partial takes back that all is well where the threads in the part are the fewer: the others may
// be what is slow.
func (d *dump) partial(r *attach.Reading) {
	if d.total() == 1 && d.threads[0].num > 0 {
		r.Who.TID = d.threads[0].id
	}
	joins := d.count(func(t *thread) bool { return t.joins })
	if len(r.Signs) == 0 && joins > 0 && joins < d.total() &&
		d.count(func(t *thread) bool { return t.joins || t.doing == signal }) == d.total() {
		r.State = attach.CannotTell
		r.Means = "A thread waits for another one to end, and all others here wait for a signal: where that never comes, they hang."
	}
	n, last := d.leftOut()
	if len(d.threads) < 2 || n < 2 || n <= len(d.threads)+len(d.heads) {
		return
	}
	r.Figures = append(r.Figures, fmt.Sprintf("the threads' numbers go to %d: %d of them are not in this dump, or have ended", last, n))
	if r.State == attach.Healthy {
		r.State = attach.CannotTell
		r.Means = "The threads that are here queue behind no lock. What is slow may be in those that are not."
		r.Next = append(r.Next, attach.Next{Command: "gdb -p PID -batch -ex 'thread apply all bt'", Why: "has all threads"})
	}
}
