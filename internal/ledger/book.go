package ledger

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/timeline"
)

// piece books one piece of the activation that is explained.
func (p *pass) piece(q *piece) {
	if p.look != nil {
		p.look(q)
	}
	key := accountKey{class: q.class, leaf: q.leaf, detail: uint32(q.kind)}
	if q.leaf.named() {
		key.detail = uint32(q.detail)
	}
	key.site = q.site
	id := p.tl.Who(q.ident)
	if q.depth > 0 {
		key.actor = id.Entry
	} else if q.class == classOwn && !q.leaf.hasSite() || q.path != nil && (q.leaf.offCPU() || q.leaf == codeAsleep) {
		key.site = 0 // what the thread of a path lacks has nothing to do with where this request stands
	}
	ns := q.Hi - q.Lo
	acct := p.acc.id(key)
	c := &p.cur
	c.add(acct, factNS, 0, ns)
	if q.depth > 0 {
		c.add(acct, factActor, uint32(id.GoID), 0)
		if q.queue > 0 {
			c.add(acct, factQueue, 0, int64(q.queue))
		}
	}
	if q.stack != 0 {
		c.add(acct, factStack, uint32(q.stack), ns)
		switch q.leaf {
		case codeSyscall, codeAssist, codeSweep, codeAssistCredit, codeDisk, codePipe, codeLock:
			c.add(acct, factStackN, uint32(q.stack), 1)
		}
	}
	if q.lock != 0 {
		c.add(acct, factLock, uint32(q.lock), ns)
		if q.flags&pieceInferred != 0 {
			c.add(acct, factInferred, 0, ns)
		}
		if q.flags&pieceHandoff != 0 {
			c.add(acct, factHandoff, 0, ns)
		}
	}
	if q.lock != 0 && q.hold != 0 {
		c.add(acct, factHold, q.hold, 0)
	}
	if q.through != 0 {
		c.add(acct, factThrough, uint32(q.through), ns)
	}
	p.tags(acct, q, ns)
}

// tags books what else is true of a piece.
func (p *pass) tags(acct uint32, q *piece, ns int64) {
	c, tl := &p.cur, p.tl
	tag := func(kind factKind, ns int64) {
		if ns > 0 {
			c.add(acct, kind, 0, ns)
		}
	}
	switch {
	case q.path != nil: // whatever the leaf: a stop-the-world is a path
		if !q.path.barrier {
			c.add(acct, factSTW, q.n, ns)
		} else {
			c.add(acct, factOfBarrier, q.path.n, ns)
		}
	case (q.leaf == codeSTW || q.leaf == codeSTWWork) && q.kind != 0:
		c.add(acct, factSTW, q.n, ns)
	case q.leaf == codeSweep:
		c.add(acct, factSweep, q.n, ns)
	}
	if q.leaf == codeNoCPU {
		c.add(acct, factBehind, p.j.refOf(q.tid), ns)
	}
	if q.flags&(pieceMeasured|pieceStopped|pieceBarrier|pieceSocket|pieceDue) != 0 {
		for flag, kind := range joinTags {
			if q.flags&flag != 0 {
				c.add(acct, kind, 0, ns)
			}
		}
	}
	switch {
	case q.held:
		tag(factPermit, min(q.Hi, q.turn)-q.Lo)
	case q.asked:
		tag(factServing, min(q.Hi, q.turn)-q.Lo)
		tag(factAsked, min(q.Hi, q.turn)-q.Lo)
	case q.leaf != codeNetwork || q.serves: // else it may be a reader that hands out answers, and waits for this request's like for the others'
		tag(factServing, min(q.Hi, q.turn)-q.Lo)
	}
	if !p.instead {
		return // a usual one, or soon to be known as one
	}
	tag(factSilence, tl.SilenceIn(q.Lo, q.Hi))
	gc := tl.MarkNS(q.Lo, q.Hi)
	tag(factGC, gc)
	switch {
	case p.j == nil:
		tag(factInSTW, tl.RangeNS(q.Lo, q.Hi))
	case p.j.whole:
		tag(factEnough, p.j.enough(q.Lo, q.Hi))
	}
	if q.class == classLock && q.holder != 0 {
		if h := tl.EntryOf(q.holder); h != tl.EntryOf(q.ident) {
			c.add(acct, factHolder, uint32(h), ns)
		}
	}
	if s := q.seg; s != nil {
		if s.Assist() {
			tag(factInAssist, ns)
		}
		if s.Sweep() {
			tag(factInSweep, ns)
		}
		if w := s.State(); w == timeline.Waiting && s.By() == timeline.EnderGoroutine && q.leaf >= codeMarkTermQueue && q.leaf <= codeSTWQueue ||
			q.leaf == codeAssistCredit && s.By() == timeline.EnderGoroutine {
			c.add(acct, factHolder, uint32(tl.EntryOf(s.Ender)), ns)
		}
	}
	if q.leaf == codeRunnable {
		tag(factSlices, 1)
		if gc > 0 {
			tag(factGCSlices, 1)
		}
		switch q.seg.Why() {
		case timeline.WhyNewborn:
			tag(factNewborn, ns)
		case timeline.WhyPreempted:
			tag(factPreempt, ns)
		case timeline.WhySyscall:
			tag(factSyscall, ns)
		}
		p.ranInstead(acct, q, ns)
	}
}

// joinTags are the facts that a piece's flags say of it.
var joinTags = map[pieceFlags]factKind{
	pieceMeasured: factMeasured, pieceStopped: factInSTW, pieceBarrier: factBarrier, pieceSocket: factSocket, pieceDue: factDue,
}

// ranInstead splits a runnable piece by who held the Ps, and by what their threads lacked where that is known: each P counts the same, what rounding leaves is idle.
func (p *pass) ranInstead(acct uint32, q *piece, ns int64) {
	if p.j != nil && !p.j.whole {
		p.heldInstead(acct, q, ns)
		return
	}
	list, total := p.tl.Occupants(q.Lo, q.Hi, p.who[:0])
	p.who = list
	if total <= 0 {
		p.cur.add(acct, factWho, whoUnknown, ns)
		return
	}
	left := ns
	for _, o := range list {
		share := min(left, account.MulDiv(o.NS, ns, total))
		if share > 0 {
			p.cur.add(acct, factWho, o.Who, share)
			left -= share
		}
	}
	if left > 0 {
		p.cur.add(acct, factWho, whoIdle, left)
	}
}

// heldInstead is ranInstead where the kernel tells of threads.
func (p *pass) heldInstead(acct uint32, q *piece, ns int64) {
	h := &p.j.holders
	list, total := h.during(q.Lo, q.Hi, p.held[:0])
	p.held = list
	if total <= 0 {
		p.cur.add(acct, factWho, whoUnknown, ns)
		return
	}
	left := ns
	for _, x := range list {
		share := min(left, account.MulDiv(x.ns, ns, total))
		if share <= 0 {
			continue
		}
		left -= share
		if l := h.list[x.ref]; l.leaf == codeOnCPU {
			p.cur.add(acct, factWho, l.who, share)
		} else {
			p.cur.add(acct, factLacked, x.ref, share)
		}
	}
	if left > 0 {
		p.cur.add(acct, factWho, whoIdle, left)
	}
}

// Besides timeline's: nobody held a P, or it is not known who did.
const (
	whoIdle    = ^uint32(0) - 16
	whoUnknown = ^uint32(0) - 17
)
