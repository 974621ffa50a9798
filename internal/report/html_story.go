package report

import (
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/report/webpage"
)

// pageStories are those of the slowest requests that were told, and the frames of their stacks.
func (r *Report) pageStories() (out []webpage.Story, frames []webpage.Frame) {
	f := frameTable{of: map[webpage.Frame]int{}}
	for _, s := range r.ledger.Stories {
		i := slices.IndexFunc(r.Requests.Slowest, func(q Request) bool {
			return q.Begin == s.Begin && q.End == s.End && q.Goroutine == s.Actor
		})
		if i >= 0 {
			out = append(out, pageStory(s, i, &f))
		}
	}
	return out, f.list
}

// frameTable numbers frames: all stories of a server have much the same.
type frameTable struct {
	of   map[webpage.Frame]int
	list []webpage.Frame
}

func (t *frameTable) stack(l []account.Site) []int {
	out := []int{}
	for _, site := range l {
		f := frame(site)
		n, ok := t.of[f]
		if !ok {
			n = len(t.list)
			t.of[f] = n
			t.list = append(t.list, f)
		}
		out = append(out, n)
	}
	return out
}

func pageStory(s *account.Story, request int, frames *frameTable) webpage.Story {
	p := webpage.Story{Request: request, Length: s.End - s.Begin, Names: slices.Clone(s.Names), Cut: s.Cut}
	leaves := map[account.Leaf]int64{}
	leaf := func(l account.Leaf) int64 {
		n, ok := leaves[l]
		if !ok {
			n = int64(len(p.Leaves))
			leaves[l] = n
			p.Leaves = append(p.Leaves, string(l))
		}
		return n
	}
	at := s.Begin
	for i := range s.Chain {
		l := &s.Chain[i]
		p.Chain = append(p.Chain, figuresOf(l.Begin-at, l.End-l.Begin, leaf(l.Leaf), int64(l.Depth), int64(l.Lane), int64(l.Site), int64(l.Detail), int64(l.Stack), int64(l.Several)))
		at = l.End
	}
	for i := range s.Lanes {
		l := &s.Lanes[i]
		lane := webpage.Lane{Kind: string(l.Kind), ID: l.ID, Name: l.Name}
		at := s.Begin
		for j := range l.Spans {
			x := &l.Spans[j]
			lane.Spans = append(lane.Spans, figuresOf(x.Begin-at, x.End-x.Begin, leaf(x.State), int64(x.Detail), int64(x.By), int64(x.On), int64(x.Stack), int64(x.Several)))
			at = x.End
		}
		p.Lanes = append(p.Lanes, lane)
	}
	for _, st := range s.Stacks {
		p.Stacks = append(p.Stacks, frames.stack(st))
	}
	return p
}

// figuresOf leaves out zeros at the end.
func figuresOf(figures ...int64) []int64 {
	n := len(figures)
	for n > 0 && figures[n-1] == 0 {
		n--
	}
	return figures[:n:n]
}
