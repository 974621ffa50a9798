package detect

import "github.com/whystall/whystall/internal/account"

// What waits for a P waits for what holds the Ps. Where the kernel tells of their threads, the part of Go's run queue in which those lacked something
// (memory, quota, a CPU) is of the cause that made them lack it: the others stand behind it as behind a lock.

// lacking sums what of an account of Go's run queue passed while threads that held the Ps lacked what ok accepts. Who is behind whom where that is a CPU.
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

// notAtWork is all of an account that passed so, but for what the process itself had the CPUs for: those are at work.
func notAtWork(a *account.Account) int64 {
	return lacking(a, func(what account.Leaf, who string) bool { return what != account.LeafNoCPU || !isOwn(who) })
}

// lacks accepts some leaves.
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

// ClaimLacking claims of Go's run queue what passed while threads that held the Ps lacked what ok accepts.
func (p *Pass) ClaimLacking(ok func(what account.Leaf, who string) bool) {
	for i := range p.Ledger.Slow.Accounts {
		ns := lacking(&p.Ledger.Slow.Accounts[i], ok)
		p.Claim(i, ns)
		p.lacked += ns
	}
}

// lackedNS is what was granted of that.
func (p *Pass) lackedNS() int64 {
	return scale(p.grantedOf(leaf(account.LeafRunnable)), p.lacked, p.lacked+p.held)
}

// lackedLine says it.
func (p *Pass) lackedLine() {
	if ns := p.lackedNS(); ns > 0 {
		p.Proof("ledger: slow column", "%s of it ready to run, for a P whose thread was held up so: each P counts the same, by what the kernel tells of the thread that had it", p.share(ns))
	}
}
