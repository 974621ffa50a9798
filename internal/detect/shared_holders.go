package detect

import "github.com/whystall/whystall/internal/account"

// A goroutine that waits for a P waits for what holds the Ps. Where the kernel's records show that
// the threads which held them lacked something (memory, quota, a CPU), that part of Go's run queue
// belongs to whatever made them lack it. Goroutines queue behind such a thread as behind a lock.

// lacking sums the part of a run-queue account during which the threads that held the Ps lacked
// something ok accepts. If that is a CPU, who names the thread that had it.
func lacking(a *account.Account, ok func(what account.Leaf, who string) bool) (ns int64) {
	if a.Leaf != account.LeafRunnable {
		return 0
	}
	for i := range a.Instead {
		if w := &a.Instead[i]; w.Lacked() && ok(w.Leaf(), w.Who) {
			ns += w.NS
		}
	}
	return min(ns, a.NS)
}

// notAtWork is all of an account that passed so. Left out is the time in which threads of the
// process itself had the CPUs: those were at work.
func notAtWork(a *account.Account) int64 {
	return lacking(a, func(what account.Leaf, who string) bool { return what != account.LeafNoCPU || !isOwn(who) })
}

// lacks accepts the leaves.
func lacks(ls ...account.Leaf) func(account.Leaf, string) bool {
	return func(what account.Leaf, _ string) bool {
		for _, l := range ls {
			if what == l {
				return true
			}
		}
		return false
	}
}

// ClaimLacking claims the part of Go's run queue during which the threads that held the Ps lacked
// something ok accepts.
func (p *Pass) ClaimLacking(ok func(what account.Leaf, who string) bool) {
	for i := range p.Ledger.Slow.Accounts {
		ns := lacking(&p.Ledger.Slow.Accounts[i], ok)
		p.Claim(i, ns)
		p.lackedQueue += ns
	}
}

// lackedNS is what was granted of the part claimed by ClaimLacking.
func (p *Pass) lackedNS() int64 {
	return scale(p.grantedOf(leaf(account.LeafRunnable)), p.lackedQueue, p.lackedQueue+p.heldQueue+p.goQueue)
}

// lackedLine prints it.
func (p *Pass) lackedLine() {
	if ns := p.lackedNS(); ns > 0 {
		p.Proof(p.column(), "%s of it waiting for a P whose own thread was held up this way (each P counted equally, by the kernel's record of its thread)", p.share(ns))
	}
}
