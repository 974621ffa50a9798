package thread

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/ledger/books"
)

// mostPieces bounds a story before its short pieces are joined.
const mostPieces = 1 << 15

// tell tells the slow units: all of them in short, and those in full that the result lists as the
// slowest or that are the slowest with their largest account. The kernel's records are there as a
// whole, so the walk is made once more when it is known who they are.
func (t *pass) tell(r *account.Result, slow *books.Column) {
	known := map[unitKey]edges{}
	for i := range t.units.Units {
		u := &t.units.Units[i]
		if e := edgesOf(u); e != (edges{}) {
			known[unitKey{int64(u.TID), u.Begin, u.End}] = e
		}
	}
	told := map[unitKey]bool{}
	for i := range r.Requests.Slowest {
		q := &r.Requests.Slowest[i]
		key := unitKey{q.Goroutine, q.Begin, q.End}
		told[key] = true
		r.Stories = append(r.Stories, t.story(key, known[key]))
	}
	r.Sketches = t.sketches(slow, known)
	for _, i := range others(&r.Sketches) {
		s := &r.Sketches.List[i]
		if key := (unitKey{s.Actor, s.Begin, s.End}); !told[key] && len(r.Others) < account.MostOthers {
			r.Others = append(r.Others, t.story(key, known[key]))
		}
	}
}

// unitKey is one unit of work.
type unitKey struct{ tid, begin, end int64 }

// others lists the longest of each largest account, that of most units first.
func others(k *account.Sketches) (list []int) {
	n := map[int]int{}
	for i := range k.List {
		if p := k.List[i].Parts; len(p) > 0 {
			if n[p[0].Account]++; n[p[0].Account] == 1 {
				list = append(list, i)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b int) int {
		return cmp.Compare(n[k.List[b].Parts[0].Account], n[k.List[a].Parts[0].Account])
	})
	return list
}

// sketches are the slow units in short, each with its chain. Where they are very many, chains are
// shorter.
func (t *pass) sketches(slow *books.Column, known map[unitKey]edges) account.Sketches {
	out, _ := t.books.Sketches(t.units.Groups, slow)
	te := NewTeller(t.k, 0, t.words, t.Func)
	lanes := map[uint32]int{}
	room := account.AllSketchLinks
	var chain []account.Link
	for i := range out.List {
		s := &out.List[i]
		chain = chain[:0]
		t.walk.edges = known[unitKey{s.Actor, s.Begin, s.End}]
		t.walk.Thread(uint32(s.Actor), s.Begin, s.End, func(p *Piece) {
			if len(chain) == mostPieces {
				last := &chain[len(chain)-1]
				last.End, last.Leaf = p.Hi, account.LeafLimit
				return
			}
			l := t.link(te, p)
			lane, ok := lanes[p.TID]
			if !ok {
				lane = len(out.Lanes)
				lanes[p.TID] = lane
				out.Lanes = append(out.Lanes, te.laneOf(p.TID, p.Lo))
			}
			l.Lane = lane
			chain = append(chain, l)
		})
		s.Chain = slices.Clone(Shortened(chain,
			min(account.MostSketchLinks, max(room/(len(out.List)-i), account.LeastSketchLinks)), s.End-s.Begin))
		room -= len(s.Chain)
	}
	t.walk.edges = edges{}
	out.Names, out.Stacks = te.Names, te.Stacks
	return out
}

func (t *pass) story(q unitKey, e edges) *account.Story {
	s := &account.Story{Begin: q.begin, End: q.end, Actor: q.tid}
	te := NewTeller(t.k, 0, t.words, t.Func)
	own := uint32(q.tid)
	t.walk.edges = e
	threads := map[uint32]int64{own: q.end - q.begin + 1} // the first lane
	var tids []uint32
	t.walk.Thread(own, q.begin, q.end, func(p *Piece) {
		if len(s.Chain) == mostPieces {
			te.Cut = true
			last := &s.Chain[len(s.Chain)-1]
			last.End, last.Leaf = p.Hi, account.LeafLimit
			return
		}
		threads[p.TID] += p.Hi - p.Lo
		s.Chain, tids = append(s.Chain, t.link(te, p)), append(tids, p.TID)
	})
	t.walk.edges = edges{}
	s.Lanes = te.Lanes(threads, q.begin, q.end)
	for i := range s.Chain {
		s.Chain[i].Lane = slices.IndexFunc(s.Lanes,
			func(l account.Lane) bool { return l.Kind == account.LaneThread && l.ID == int64(tids[i]) })
	}
	s.Chain = Links(s.Chain, q.end-q.begin)
	s.Names, s.Stacks, s.Cut = te.Names, te.Stacks, te.Cut
	return s
}

// link is a piece as a link of the chain.
func (t *pass) link(te *Teller, p *Piece) account.Link {
	hops, unborn := unitHops(p)
	key, _ := t.accountKey(p, 0, hops, unborn)
	l := account.Link{Begin: p.Lo, End: p.Hi, Class: account.Class(key.Class.String()),
		Leaf: account.Leaf(p.Leaf.String()), Depth: len(hops), Lane: -1,
		Site: te.Name(t.Func(key.Site)), Detail: te.Name(t.Func(key.Detail)), Stack: te.stackOf(&p.State)}
	if p.Leaf == books.LeafNoCPU && len(p.Shares) > 0 {
		l.Detail = te.Name(t.Func(t.words.Behind(p.Shares[0].TID, p.Lo).Detail))
	}
	return l
}
