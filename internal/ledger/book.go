package ledger

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/oncpu"
	"github.com/whystall/whystall/internal/timeline"
)

// piece books one piece of the activation that is explained.
func (p *pass) piece(q *piece) {
	if p.look != nil {
		p.look(q)
	}
	key := books.Key{Class: q.class, Leaf: q.leaf, Detail: uint32(q.kind)}
	if q.leaf.Named() {
		key.Detail = uint32(q.detail)
	}
	key.Site = uint32(q.site)
	id := p.tl.Identity(q.ident)
	if q.depth > 0 {
		key.Actor = uint32(id.Entry)
	} else if q.class == books.ClassOwn && !q.leaf.HasSite() || q.path != nil &&
		(q.leaf.OffCPU() || q.leaf == books.LeafAsleep) {
		key.Site = 0 // what the thread of a path lacks has nothing to do with where this request stands
	}
	ns := q.hi - q.lo
	acct := p.books.Number(key)
	c := p.books.Facts()
	c.Add(acct, books.FactNS, 0, ns)
	if q.depth > 0 {
		c.Add(acct, books.FactActor, uint32(id.GoID), 0)
		if q.queue > 0 {
			c.Add(acct, books.FactQueue, 0, int64(q.queue))
		}
	}
	if q.stack != 0 {
		c.Add(acct, books.FactStack, uint32(q.stack), ns)
		switch q.leaf {
		case books.LeafSyscall, books.LeafAssist, books.LeafSweep, books.LeafAssistCredit,
			books.LeafDisk, books.LeafPipe, books.LeafLock:
			c.Add(acct, books.FactStackN, uint32(q.stack), 1)
		}
	}
	if q.lock != 0 {
		c.Add(acct, books.FactLock, uint32(q.lock), ns)
		if q.flags&pieceInferred != 0 {
			c.Add(acct, books.FactInferred, 0, ns)
		}
		if q.flags&pieceHandoff != 0 {
			c.Add(acct, books.FactHandoff, 0, ns)
		}
	}
	if q.lock != 0 && q.hold != 0 {
		c.Add(acct, books.FactHold, q.hold, 0)
	}
	if q.through != 0 {
		c.Add(acct, books.FactThrough, uint32(q.through), ns)
	}
	if q.leaf == books.LeafOnCPU && q.tid != 0 {
		if l := p.sampledIn(q); len(l) > 0 {
			c.Sampled(acct, l)
		}
	}
	p.tags(acct, q, ns)
}

// tags books what else is true of a piece.
func (p *pass) tags(acct uint32, q *piece, ns int64) {
	c, tl := p.books.Facts(), p.tl
	tag := func(kind books.FactKind, ns int64) {
		if ns > 0 {
			c.Add(acct, kind, 0, ns)
		}
	}
	switch {
	case q.path != nil: // whatever the leaf is: a stop-the-world is a path
		if !q.path.barrier {
			c.Add(acct, books.FactSTW, q.n, ns)
		} else {
			c.Add(acct, books.FactBarrier, q.path.n, ns)
		}
	case (q.leaf == books.LeafSTW || q.leaf == books.LeafSTWWork) && q.kind != 0:
		c.Add(acct, books.FactSTW, q.n, ns)
	case q.leaf == books.LeafSweep:
		c.Add(acct, books.FactSweep, q.n, ns)
	}
	if q.leaf == books.LeafNoCPU {
		c.Add(acct, books.FactBehind, p.j.words.Ref(q.tid), ns)
	}
	if q.flags&(pieceMeasured|pieceStopped|pieceBarrier|pieceSocket|pieceDue) != 0 {
		for flag, kind := range joinTags {
			if q.flags&flag != 0 {
				c.Add(acct, kind, 0, ns)
			}
		}
	}
	switch {
	case q.held:
		tag(books.FactPermit, min(q.hi, q.turn)-q.lo)
	case q.asked:
		tag(books.FactServing, min(q.hi, q.turn)-q.lo)
		tag(books.FactAsked, min(q.hi, q.turn)-q.lo)
	// Otherwise the goroutine may be a reader that hands out answers: it waits for this request's
	// answer as for the others'.
	case q.leaf != books.LeafNetwork || q.serves:
		tag(books.FactServing, min(q.hi, q.turn)-q.lo)
	}
	if !p.instead {
		return // a usual request, or one that will soon prove to be usual
	}
	tag(books.FactSilence, tl.SilenceIn(q.lo, q.hi))
	gc := tl.MarkNS(q.lo, q.hi)
	tag(books.FactGC, gc)
	switch {
	case p.j == nil:
		tag(books.FactInSTW, tl.RangeNS(q.lo, q.hi))
	case p.j.whole:
		tag(books.FactEnough, p.j.enough(q.lo, q.hi))
	}
	if q.class == books.ClassLock && q.holder != 0 {
		if h := tl.EntryOf(q.holder); h != tl.EntryOf(q.ident) {
			c.Add(acct, books.FactHolder, uint32(h), ns)
		}
	}
	if s := q.seg; s != nil {
		if s.Assist() {
			tag(books.FactInAssist, ns)
		}
		if s.Sweep() {
			tag(books.FactInSweep, ns)
		}
		if w := s.State(); w == timeline.Waiting && s.EnderKind() == timeline.EnderGoroutine &&
			q.leaf >= books.LeafMarkTermQueue && q.leaf <= books.LeafSTWQueue ||
			q.leaf == books.LeafAssistCredit && s.EnderKind() == timeline.EnderGoroutine {
			c.Add(acct, books.FactHolder, uint32(tl.EntryOf(s.Ender)), ns)
		}
	}
	if q.leaf == books.LeafRunnable {
		tag(books.FactSlices, 1)
		if gc > 0 {
			tag(books.FactGCSlices, 1)
		}
		switch q.seg.Why() {
		case timeline.WhyNewborn:
			tag(books.FactNewborn, ns)
		case timeline.WhyPreempted:
			tag(books.FactPreempt, ns)
		case timeline.WhySyscall:
			tag(books.FactSyscall, ns)
		}
		p.ranInstead(acct, q, ns)
	}
}

// sampledIn lists the samples that fell into a piece on a CPU whose thread is known: of that
// thread, whoever the request is.
func (p *pass) sampledIn(q *piece) []oncpu.Sample {
	return p.j.samples.In(q.tid, p.j.base+q.lo, p.j.base+q.hi)
}

// joinTags are the facts that a piece's flags stand for.
var joinTags = map[pieceFlags]books.FactKind{
	pieceMeasured: books.FactMeasured, pieceStopped: books.FactInSTW,
	pieceBarrier: books.FactInBarrier, pieceSocket: books.FactSocket, pieceDue: books.FactDue,
}

// ranInstead splits a runnable piece by who held the Ps, and by what their threads lacked where
// that is known. Each P counts the same. What rounding leaves is idle time.
func (p *pass) ranInstead(acct uint32, q *piece, ns int64) {
	if p.j != nil && !p.j.whole {
		p.heldInstead(acct, q, ns)
		return
	}
	list, total := p.tl.Occupants(q.lo, q.hi, p.who[:0])
	p.who = list
	if total <= 0 {
		p.books.Facts().Add(acct, books.FactOccupant, whoUnknown, ns)
		return
	}
	left := ns
	for _, o := range list {
		share := min(left, account.MulDiv(o.NS, ns, total))
		if share > 0 {
			p.books.Facts().Add(acct, books.FactOccupant, o.Holder, share)
			left -= share
		}
	}
	if left > 0 {
		p.books.Facts().Add(acct, books.FactOccupant, whoIdle, left)
	}
}

// heldInstead does the same where the kernel's records show what threads did.
func (p *pass) heldInstead(acct uint32, q *piece, ns int64) {
	h := &p.j.holders
	list, total := h.during(q.lo, q.hi, p.held[:0])
	p.held = list
	if total <= 0 {
		p.books.Facts().Add(acct, books.FactOccupant, whoUnknown, ns)
		return
	}
	left := ns
	for _, x := range list {
		share := min(left, account.MulDiv(x.ns, ns, total))
		if share <= 0 {
			continue
		}
		left -= share
		if l := h.list[x.ref]; l.leaf == books.LeafOnCPU {
			p.books.Facts().Add(acct, books.FactOccupant, l.who, share)
		} else {
			p.books.Facts().Add(acct, books.FactLacked, x.ref, share)
		}
	}
	if left > 0 {
		p.books.Facts().Add(acct, books.FactOccupant, whoIdle, left)
	}
}

// Besides timeline's numbers: nobody held a P, or it is not known who did.
const (
	whoIdle    = ^uint32(0) - 16
	whoUnknown = capacity.NoRef
)
