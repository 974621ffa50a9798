package ledger

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/ledger/thread"
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/timeline"
)

// teller keeps the stories of the slowest requests, for a report that shows them. It listens to the
// walk (explain.go), which passes every goroutine of the chain, and copies what the ring holds
// then. Without one nothing is told, and explaining costs no more.
//
// Who is slow, and for what, is known only at the end. So the chain of every candidate is noted in
// short (sketch.go), and those are told in full that are the slowest of their group so far, or much
// slower than any before whose largest account is the same: to tell one takes long.
type teller struct {
	p    *pass
	told map[*books.Group]*toldGroup

	// Of the request that is explained.
	open   bool
	lo, hi int64
	*thread.Teller
	links []link
	short []link           // scratch
	cut   bool             // there were more links than are noted
	met   []actor          // the request's own goroutine first
	hosts map[uint32]int64 // threads that were met, as the kernel numbers them: ns there
	own   map[uint32]bool  // the same as the trace numbers them
}

// toldGroup is the stories of a group.
type toldGroup struct {
	slowest []toldOnce           // the slowest first, account.MostStories at most
	by      map[uint32]*toldOnce // one of the slowest by the number of its largest account
}

type toldOnce struct {
	*books.Kept
	story *account.Story
}

// link is an account.Link whose names are not looked up yet: most are never shown.
type link struct {
	lo, hi       int64
	ident        uint32
	site, detail uint32
	stack        exectrace.StackID
	leaf         books.Leaf
	class        books.Class
	depth        int
	several      int
}

// actor is a goroutine of the chain: its segment seg is the last that the chain shows, up to hi.
type actor struct {
	ident uint32
	seg   *timeline.Segment
	hi    int64
}

// mostGroups bounds the groups of which stories are kept, mostAccounts the accounts of a group by
// which some are, mostPieces the pieces of a story before short ones are joined.
const (
	mostGroups   = 8
	mostAccounts = account.MostOthers + 5
	mostPieces   = 1 << 15
)

func newTeller(p *pass) *teller {
	return &teller{p: p, told: map[*books.Group]*toldGroup{}, hosts: map[uint32]int64{}, own: map[uint32]bool{}}
}

// start listens to the walk of k, which may turn out to be slow.
func (t *teller) start(k *books.Kept, g *timeline.G) {
	t.open, t.cut, t.lo, t.hi = true, false, k.Begin, k.End
	t.links = t.links[:0]
	t.met = append(t.met[:0], actor{g.Ident, t.p.tl.Seg(uint32(g.Cur)), k.End})
}

// names starts the names of a story.
func (t *teller) names() *thread.Teller {
	j, tl := t.p.j, t.p.tl
	if j == nil {
		return thread.NewTeller(nil, 0, nil, nil)
	}
	return thread.NewTeller(j.k, tl.Abs(0)-j.base, j.words,
		func(id uint32) string { return tl.Func(timeline.FuncID(id)) })
}

// piece hears a piece of the walk, the latest first.
func (t *teller) piece(q *piece) {
	if !t.open {
		return
	}
	if q.seg != nil && q.ident != 0 && !slices.ContainsFunc(t.met, func(a actor) bool { return a.ident == q.ident }) {
		if len(t.met) < account.MostLanes {
			t.met = append(t.met, actor{q.ident, q.seg, q.hi})
		} else {
			t.cut = true
		}
	}
	l := link{lo: q.lo, hi: q.hi, ident: q.ident, site: uint32(q.site), detail: uint32(q.kind),
		stack: q.stack, leaf: q.leaf, class: q.class, depth: q.depth}
	if q.leaf.Named() {
		l.detail = uint32(q.detail)
	}
	if n := len(t.links); n > 0 {
		// The walk cuts where a wait was followed or a queue changed. What looks alike is one link.
		last := &t.links[n-1]
		if alike := l; last.lo == l.hi {
			alike.lo, alike.hi = last.lo, last.hi
			if alike == *last {
				last.lo = l.lo
				return
			}
		}
	}
	if len(t.links) == mostPieces {
		t.cut = true
		last := &t.links[len(t.links)-1]
		last.lo, last.leaf = l.lo, books.LeafLimit // and so on to the request's start
		return
	}
	t.links = append(t.links, l)
}

// end notes the chain of k in short, and tells k in full where that is wanted. Its facts have been
// taken.
func (t *teller) end(k *books.Kept) {
	if !t.open {
		return
	}
	t.open = false
	slices.Reverse(t.links)
	k.Steps = t.steps()
	g := t.told[k.Group]
	if g == nil {
		if len(t.told) >= mostGroups {
			return
		}
		g = &toldGroup{by: map[uint32]*toldOnce{}}
		t.told[k.Group] = g
	}
	slow := len(g.slowest) < account.MostStories || g.slowest[len(g.slowest)-1].Wall() < k.Wall()
	largest, ok := k.Largest()
	first := ok && g.wants(largest, k)
	if !slow && !first {
		return
	}
	x := toldOnce{k, t.story(k)}
	if first {
		g.by[largest] = &x
	}
	if slow {
		g.slowest = append(g.slowest, x)
		slices.SortStableFunc(g.slowest, func(a, b toldOnce) int { return cmp.Compare(b.Wall(), a.Wall()) })
		g.slowest = g.slowest[:min(len(g.slowest), account.MostStories)]
	}
}

// wants reports whether k is much slower than any before with that largest account, and makes room
// for it: there are as many accounts as the input likes.
func (g *toldGroup) wants(largest uint32, k *books.Kept) bool {
	if x := g.by[largest]; x != nil {
		return x.muchFasterThan(k)
	}
	if len(g.by) < mostAccounts {
		return true
	}
	var id uint32
	var least *toldOnce
	for i, x := range g.by {
		if least == nil || x.Wall() < least.Wall() || x.Wall() == least.Wall() && i < id {
			id, least = i, x
		}
	}
	if !least.muchFasterThan(k) {
		return false
	}
	delete(g.by, id)
	return true
}

// muchFasterThan keeps the number of stories small where each request is a little slower than the
// one before.
func (x *toldOnce) muchFasterThan(k *books.Kept) bool { return x.Wall()+x.Wall()/4 < k.Wall() }

// story is the story of k in full.
func (t *teller) story(k *books.Kept) *account.Story {
	clear(t.hosts)
	clear(t.own)
	t.Teller = t.names()
	tl := t.p.tl
	s := &account.Story{Begin: tl.Abs(k.Begin), End: tl.Abs(k.End), Actor: k.Number}
	for _, a := range t.met {
		s.Lanes = append(s.Lanes, t.goroutine(a))
	}
	t.ps(s)
	t.threads(s)
	for i := range t.links {
		l := &t.links[i]
		x := account.Link{Begin: tl.Abs(l.lo), End: tl.Abs(l.hi),
			Class: account.Class(l.class.String()), Leaf: account.Leaf(l.leaf.String()), Depth: l.depth,
			Lane:   slices.IndexFunc(t.met, func(a actor) bool { return a.ident == l.ident }),
			Site:   t.Name(tl.Func(timeline.FuncID(l.site))),
			Detail: t.Name(t.detail(l.leaf, l.detail)), Stack: t.stack(l.stack)}
		s.Chain = append(s.Chain, x)
	}
	s.Chain = thread.Links(s.Chain, k.Wall())
	s.Names, s.Stacks, s.Cut = t.Names, t.Stacks, t.Cut || t.cut
	return s
}

// detail is the word for the detail of a link.
func (t *teller) detail(leaf books.Leaf, id uint32) string {
	switch {
	case leaf.Named():
		return t.p.tl.Func(timeline.FuncID(id))
	case id != 0:
		return t.p.src.String(exectrace.StringID(id))
	}
	return ""
}

// write writes down what was told. Who is slow has been decided; slow is the column of them.
func (t *teller) write(r *account.Result, slow *books.Column) {
	r.Stories = t.stories(r.Requests.Slowest)
	var units []*books.Kept
	r.Sketches, units = t.sketches(slow)
	r.Others = t.others(units, r.Stories)
}

// stories gives those of the requests that the result lists as the slowest, in their order. One
// goroutine may have two requests of the same time, such as a region that fills its task.
func (t *teller) stories(slowest []account.Request) (out []*account.Story) {
	groups := t.p.f.Groups()
	for i := range slowest {
		q := &slowest[i]
	search:
		for id := range groups {
			g := t.told[t.p.books.Group(request.GroupID(id))]
			if g == nil || groups[id].Entry != q.Entry {
				continue
			}
			for _, x := range g.slowest {
				if s := x.story; s.Begin == q.Begin && s.End == q.End && s.Actor == q.Goroutine &&
					(x.Name == 0 || t.p.f.Name(x.Name) == q.Name) {
					out = append(out, s)
					break search
				}
			}
		}
	}
	return out
}

// others gives one of the slowest requests of each largest account that none in told has: the
// accounts that are the largest of most slow requests first.
func (t *teller) others(slow []*books.Kept, told []*account.Story) (out []*account.Story) {
	n := map[uint32]int{}
	for _, k := range slow {
		if id, ok := k.Largest(); ok {
			n[id]++
		}
	}
	type other struct {
		toldOnce
		account uint32
	}
	var l []other
	best := map[uint32]*toldOnce{} // over all groups
	for _, g := range t.told {
		for id, x := range g.by {
			if b := best[id]; x.Slow() &&
				(b == nil || b.Wall() < x.Wall() || b.Wall() == x.Wall() && x.Begin < b.Begin) {
				best[id] = x
			}
		}
	}
	for id, x := range best {
		if !slices.ContainsFunc(told, func(s *account.Story) bool {
			return s.Begin == x.story.Begin && s.End == x.story.End && s.Actor == x.story.Actor
		}) {
			l = append(l, other{*x, id})
		}
	}
	slices.SortFunc(l, func(a, b other) int {
		return cmp.Or(cmp.Compare(n[b.account], n[a.account]), cmp.Compare(b.Wall(), a.Wall()),
			cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.Number, b.Number))
	})
	for _, x := range l[:min(len(l), account.MostOthers)] {
		out = append(out, x.story)
	}
	return out
}

func (t *teller) stack(id exectrace.StackID) int { return t.stackIn(t.Teller, id) }

// stackIn numbers a stack among those of a story, or of all sketches.
func (t *teller) stackIn(names *thread.Teller, id exectrace.StackID) int {
	return names.Stack(uint32(id), func() (l []account.Site) {
		for _, f := range t.p.src.Frames(nil, id) {
			l = append(l, account.Site{Func: timeline.Plain(f.Func), File: f.File, Line: f.Line})
		}
		return l
	})
}
