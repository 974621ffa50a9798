package thread

import (
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/ledger/books"
)

// mostPieces bounds a story before its short pieces are joined.
const mostPieces = 1 << 15

// stories tells the slowest requests in full. The kernel's records are there as a whole, so the
// walk is made once more when it is known who they are.
func (t *pass) stories(slowest []account.Request) (out []*account.Story) {
	for i := range slowest {
		out = append(out, t.story(&slowest[i]))
	}
	return out
}

func (t *pass) story(q *account.Request) *account.Story {
	s := &account.Story{Begin: q.Begin, End: q.End, Actor: q.Goroutine}
	te := NewTeller(t.k, 0, t.words, t.Func)
	own := uint32(q.Goroutine)
	for i := range t.units.Units {
		if u := &t.units.Units[i]; u.TID == own && u.Begin == q.Begin && u.End == q.End {
			t.walk.joiner = u.Joiner
		}
	}
	threads := map[uint32]int64{own: q.End - q.Begin + 1} // the first lane
	var tids []uint32
	t.walk.Thread(own, q.Begin, q.End, func(p *Piece) {
		if len(s.Chain) == mostPieces {
			te.Cut = true
			last := &s.Chain[len(s.Chain)-1]
			last.End, last.Leaf = p.Hi, account.LeafLimit
			return
		}
		threads[p.TID] += p.Hi - p.Lo
		s.Chain, tids = append(s.Chain, t.link(te, p)), append(tids, p.TID)
	})
	t.walk.joiner = 0
	s.Lanes = te.Lanes(threads, q.Begin, q.End)
	for i := range s.Chain {
		s.Chain[i].Lane = slices.IndexFunc(s.Lanes, func(l account.Lane) bool { return l.Kind == account.LaneThread && l.ID == int64(tids[i]) })
	}
	s.Chain = Links(s.Chain, q.End-q.Begin)
	s.Names, s.Stacks, s.Cut = te.Names, te.Stacks, te.Cut
	return s
}

// link is a piece as a link of the chain.
func (t *pass) link(te *Teller, p *Piece) account.Link {
	hops, unborn := unitHops(p)
	key, _ := t.accountKey(p, 0, hops, unborn)
	l := account.Link{Begin: p.Lo, End: p.Hi, Class: account.Class(key.Class.String()), Leaf: account.Leaf(p.Leaf.String()), Depth: len(hops), Lane: -1,
		Site: te.Name(t.Func(key.Site)), Detail: te.Name(t.Func(key.Detail)), Stack: te.stackOf(&p.State)}
	if p.Leaf == books.LeafNoCPU && len(p.Shares) > 0 {
		l.Detail = te.Name(t.Func(t.words.Behind(p.Shares[0].TID, p.Lo).Detail))
	}
	return l
}
