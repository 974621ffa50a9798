package detect

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// Goroutines wait for a P while the Ps are at work. Where a part of that work is no work of the
// program (page faults of memory that was given back, garbage collection), they would wait less
// without it, and by more than that part: the Ps would also be free more often.

// busiestPs is how busy Ps may be in that estimate. A queue that never empties has no mean.
const busiestPs = 0.95

// dueTo is the part of the mean wait in a queue that is due to work which takes this share of the
// servers' time, where they are busy for so much of it. In a queue with one server and random
// arrivals the mean wait is S*b/(1-b), with S the time that each takes. Without that work both S
// and b are smaller by its share.
func dueTo(share, busy float64) float64 {
	left := 1 - min(max(share, 0), 1)
	busy = min(max(busy, 0), busiestPs)
	return 1 - left*left*(1-busy)/(1-busy*left)
}

// claimRunQueue claims the part of Go's run queue that is due to work which takes w of all the
// process' CPU time, of what passed while other requests had the Ps. GC that is too much has its
// part of the rest, for which frequent-gc looks.
func (p *Pass) claimRunQueue(w account.Work) {
	c, on := &p.Ledger.Capacity, p.Ledger.Kernel.OnCPU
	if p.Scope() != finding.Slow || !joined(p.Ledger) || c.TotalNS <= 0 || on == nil || w.NS <= 0 {
		return
	}
	// Below the floor of sched-latency it is the queue that every busy program has a little of.
	if p.board.below(queueFloor, queueAtWork(p.Column())) != "" {
		return
	}
	share := ratio(w.NS, on.NS)
	all := share
	if gcTooMuch(p.Ledger) {
		all += gcPart(p.Ledger)
	}
	part := dueTo(all, ratio(used(c), c.TotalNS)) * share / all
	for i := range p.Column().Accounts {
		a := &p.Column().Accounts[i]
		if a.Leaf != account.LeafRunnable {
			continue
		}
		// What an earlier cause took is no queue of this one: the estimate makes no claim to it.
		due := min(int64(part*float64(atWork(a))), max(0, p.board.left[i]-p.claimed(i)))
		p.claimGoQueue(i, due)
	}
}

// claimGoQueue claims a part of Go's run queue that passed while the Ps were at work.
func (p *Pass) claimGoQueue(account int, ns int64) {
	p.Claim(account, ns)
	p.goQueue += ns
	if p.goQueued == nil {
		p.goQueued = map[int]int64{}
	}
	p.goQueued[account] += ns
}

// queueLeft is what is left of a run-queue account while the Ps were at work, beside what earlier
// causes claimed of that. What else is left of it passed while threads that held Ps lacked
// something.
func (b *board) queueLeft(p *Pass, account int) int64 {
	left := b.left[account]
	at, ok := p.queueAtWork[account]
	if !ok {
		return left
	}
	for _, q := range b.passes {
		if q != p && q.outcome == found && q.root == nil {
			at -= q.goQueued[account]
		}
	}
	return max(0, min(left, at))
}

// queueAtWork is how long requests waited for Ps that other requests had.
func queueAtWork(c *account.Column) (ns int64) {
	for i := range c.Accounts {
		if a := &c.Accounts[i]; a.Leaf == account.LeafRunnable {
			ns += atWork(a)
		}
	}
	return ns
}

// atWork is the part of a run-queue account during which other requests had the Ps, on a CPU or
// queued for one behind threads of the process. A job in the background is none of these: it takes
// whatever time others leave.
func atWork(a *account.Account) int64 {
	var own int64
	for i := range a.Instead {
		if w := &a.Instead[i]; w.Lacked() && w.Leaf() == account.LeafNoCPU && isOwn(w.Who) {
			own += w.NS
		}
	}
	requests, jobs := instead(a, account.InsteadRequest), instead(a, account.InsteadBackground)
	if jobs > 0 {
		own = scale(own, requests, requests+jobs)
	}
	return max(0, min(requests+own, a.NS-a.Tags.SilenceNS))
}

// runQueueLine says what was claimed of Go's run queue, and why.
func runQueueLine(p *Pass, what string) {
	if p.goQueue == 0 {
		return
	}
	c := &p.Ledger.Capacity
	p.Proof("inferred", "%s of it waiting for Ps that other requests had: without %s these would have taken less time, and the Ps, busy %s of the time, would have been free more often",
		p.share(p.grantedRunQueue()), what, percent(ratio(used(c), c.TotalNS)))
	if 2*p.grantedRunQueue() > p.NS() {
		p.Cap("how much of the queue for Ps is due to it is inferred from its part of the CPU time")
	}
}

// grantedRunQueue is what was granted of claimRunQueue's part.
func (p *Pass) grantedRunQueue() int64 {
	return scale(p.grantedOf(leaf(account.LeafRunnable)), p.goQueue, p.goQueue+p.lackedQueue+p.heldQueue)
}
