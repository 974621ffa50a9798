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

// teller keeps the stories of the slowest requests of each group, for a report that shows them. It
// listens to the walk (explain.go), which passes every goroutine of the chain, and copies what the
// ring holds then. Without one nothing is told, and explaining costs no more.
type teller struct {
	p    *pass
	told map[*books.Group][]toldOnce // the slowest first, account.MostStories at most

	// Of the request that is explained.
	open   bool
	lo, hi int64
	*thread.Teller
	links  []account.Link
	idents []uint32         // of links
	met    []actor          // the request's own goroutine first
	hosts  map[uint32]int64 // threads that were met, as the kernel numbers them: ns there
	own    map[uint32]bool  // the same as the trace numbers them
}

type toldOnce struct {
	wall  int64
	name  request.NameID
	story *account.Story
}

// actor is a goroutine of the chain: its segment seg is the last that the chain shows, up to hi.
type actor struct {
	ident uint32
	seg   *timeline.Segment
	hi    int64
}

// mostGroups bounds the groups of which stories are kept, mostPieces the pieces of a story before
// short ones are joined.
const (
	mostGroups = 8
	mostPieces = 1 << 15
)

func newTeller(p *pass) *teller {
	return &teller{p: p, told: map[*books.Group][]toldOnce{}}
}

// start begins the story of k, if it is one of the slowest of its group so far.
func (t *teller) start(k *books.Kept, g *timeline.G) {
	l, known := t.told[k.Group]
	if !known && len(t.told) >= mostGroups || len(l) == account.MostStories && l[len(l)-1].wall >= k.Wall() {
		return
	}
	*t = teller{p: t.p, told: t.told, open: true, lo: k.Begin, hi: k.End, Teller: t.names(), hosts: map[uint32]int64{}, own: map[uint32]bool{}}
	t.met = append(t.met, actor{g.Ident, t.p.tl.Seg(uint32(g.Cur)), k.End})
}

// names starts the names of a story.
func (t *teller) names() *thread.Teller {
	j, tl := t.p.j, t.p.tl
	if j == nil {
		return thread.NewTeller(nil, 0, nil, nil)
	}
	return thread.NewTeller(j.k, tl.Abs(0)-j.base, j.words, func(id uint32) string { return tl.Func(timeline.FuncID(id)) })
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
			t.Cut = true
		}
	}
	tl := t.p.tl
	l := account.Link{Begin: tl.Abs(q.lo), End: tl.Abs(q.hi), Class: account.Class(q.class.String()), Leaf: account.Leaf(q.leaf.String()), Depth: q.depth, Lane: -1,
		Site: t.Name(tl.Func(q.site)), Stack: t.stack(q.stack)}
	if q.leaf.Named() {
		l.Detail = t.Name(tl.Func(q.detail))
	} else if q.kind != 0 {
		l.Detail = t.Name(t.p.src.String(q.kind))
	}
	if n := len(t.links); n > 0 {
		// The walk cuts where a wait was followed or a queue changed. What looks alike is one link.
		last := &t.links[n-1]
		if alike := l; t.idents[n-1] == q.ident && last.Begin == l.End {
			alike.Begin, alike.End = last.Begin, last.End
			if alike == *last {
				last.Begin = l.Begin
				return
			}
		}
	}
	if len(t.links) == mostPieces {
		t.Cut = true
		last := &t.links[len(t.links)-1]
		last.Begin, last.Leaf = l.Begin, account.LeafLimit // and so on to the request's start
		return
	}
	t.links, t.idents = append(t.links, l), append(t.idents, q.ident)
}

// end completes the story.
func (t *teller) end(k *books.Kept) {
	if !t.open {
		return
	}
	t.open = false
	tl := t.p.tl
	s := &account.Story{Begin: tl.Abs(k.Begin), End: tl.Abs(k.End), Actor: k.Number}
	for _, a := range t.met {
		s.Lanes = append(s.Lanes, t.goroutine(a))
	}
	t.ps(s)
	t.threads(s)
	for i := range t.links {
		t.links[i].Lane = slices.IndexFunc(t.met, func(a actor) bool { return a.ident == t.idents[i] })
	}
	slices.Reverse(t.links)
	t.links = thread.Links(t.links, t.hi-t.lo)
	s.Chain, s.Names, s.Stacks, s.Cut = t.links, t.Names, t.Stacks, t.Cut
	l := append(t.told[k.Group], toldOnce{k.Wall(), k.Name, s})
	slices.SortStableFunc(l, func(a, b toldOnce) int { return cmp.Compare(b.wall, a.wall) })
	t.told[k.Group] = l[:min(len(l), account.MostStories)]
}

// stories gives those of the requests that the result lists as the slowest, in their order. One
// goroutine may have two requests of the same time, such as a region that fills its task.
func (t *teller) stories(slowest []account.Request) (out []*account.Story) {
	groups := t.p.f.Groups()
	for i := range slowest {
		q := &slowest[i]
	search:
		for id := range groups {
			if groups[id].Entry != q.Entry {
				continue
			}
			for _, x := range t.told[t.p.books.Group(request.GroupID(id))] {
				if s := x.story; s.Begin == q.Begin && s.End == q.End && s.Actor == q.Goroutine && (x.name == 0 || t.p.f.Name(x.name) == q.Name) {
					out = append(out, s)
					break search
				}
			}
		}
	}
	return out
}

func (t *teller) stack(id exectrace.StackID) int {
	return t.Stack(uint32(id), func() (l []account.Site) {
		for _, f := range t.p.src.Frames(nil, id) {
			l = append(l, account.Site{Func: timeline.Plain(f.Func), File: f.File, Line: f.Line})
		}
		return l
	})
}
