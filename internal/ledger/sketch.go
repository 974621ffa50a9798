package ledger

import (
	"math"
	"slices"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/ledger/thread"
	"github.com/whystall/whystall/internal/timeline"
)

// steps is the chain in hand in short. Goroutines are noted by what they are: the timeline gives
// the number of a dead one to another.
func (t *teller) steps() []books.Step {
	t.short = append(t.short[:0], t.links...)
	l := thread.Coarse(t.short, account.MostSketchLinks, t.hi-t.lo,
		func(l *link) (begin, end *int64, several *int) { return &l.lo, &l.hi, &l.several })
	out := make([]books.Step, len(l))
	for i := range l {
		x := &l[i]
		id := t.p.tl.Identity(x.ident)
		out[i] = books.Step{NS: x.hi - x.lo, Actor: int64(id.GoID), Entry: uint32(id.Entry),
			Site: x.site, Detail: x.detail, Stack: uint32(x.stack),
			Leaf: x.leaf, Class: x.class, Depth: uint16(min(x.depth, math.MaxUint16)),
			Several: uint16(min(x.several, math.MaxUint16))}
	}
	return out
}

// sketches are the slow requests in short, each with its chain. Where they are very many, chains
// are shorter.
func (t *teller) sketches(slow *books.Column) (account.Sketches, []*books.Kept) {
	out, units := t.p.books.Sketches(t.p.f.Groups(), slow)
	names, lanes := t.names(), map[actorKey]int{}
	room := account.AllSketchLinks
	var chain []account.Link
	for i := range out.List {
		s := &out.List[i]
		at := s.Begin
		chain = chain[:0]
		for _, x := range units[i].Steps {
			key := actorKey{x.Actor, x.Entry}
			lane, ok := lanes[key]
			if key == (actorKey{}) {
				lane = -1 // nobody's time
			} else if !ok {
				lane = len(out.Lanes)
				lanes[key] = lane
				out.Lanes = append(out.Lanes, account.Lane{Kind: account.LaneGoroutine, ID: x.Actor,
					Name: t.p.tl.Func(timeline.FuncID(x.Entry))})
			}
			l := account.Link{Begin: at, End: at + x.NS, Class: account.Class(x.Class.String()),
				Leaf: account.Leaf(x.Leaf.String()), Depth: int(x.Depth), Lane: lane,
				Site:   names.Name(t.p.tl.Func(timeline.FuncID(x.Site))),
				Detail: names.Name(t.detail(x.Leaf, x.Detail)), Several: int(x.Several),
				Stack: t.stackIn(names, exectrace.StackID(x.Stack))}
			chain = append(chain, l)
			at = l.End
		}
		s.Chain = slices.Clone(thread.Shortened(chain,
			min(account.MostSketchLinks, max(room/(len(out.List)-i), account.LeastSketchLinks)), s.End-s.Begin))
		room -= len(s.Chain)
	}
	out.Names, out.Stacks = names.Names, names.Stacks
	return out, units
}

type actorKey struct {
	id    int64
	entry uint32
}
