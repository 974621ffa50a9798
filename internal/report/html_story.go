package report

import (
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/report/webpage"
)

// pageStories are those of the slowest requests that were told.
func (r *Report) pageStories() (out []webpage.Story) {
	for _, s := range r.ledger.Stories {
		i := slices.IndexFunc(r.Requests.Slowest, func(q Request) bool {
			return q.Begin == s.Begin && q.End == s.End && q.Goroutine == s.Actor
		})
		if i >= 0 {
			out = append(out, pageStory(s, i))
		}
	}
	return out
}

func pageStory(s *account.Story, request int) webpage.Story {
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
	for i := range s.Chain {
		l := &s.Chain[i]
		p.Chain = append(p.Chain, [9]int64{l.Begin - s.Begin, l.End - s.Begin, leaf(l.Leaf), int64(l.Depth), int64(l.Lane), int64(l.Site), int64(l.Detail), int64(l.Stack), int64(l.Several)})
	}
	for i := range s.Lanes {
		l := &s.Lanes[i]
		lane := webpage.Lane{Kind: string(l.Kind), ID: l.ID, Name: l.Name}
		for j := range l.Spans {
			x := &l.Spans[j]
			lane.Spans = append(lane.Spans, [8]int64{x.Begin - s.Begin, x.End - s.Begin, leaf(x.State), int64(x.Detail), int64(x.By), int64(x.On), int64(x.Stack), int64(x.Several)})
		}
		p.Lanes = append(p.Lanes, lane)
	}
	for _, st := range s.Stacks {
		frames := []webpage.Frame{}
		for _, f := range st {
			frames = append(frames, frame(f))
		}
		p.Stacks = append(p.Stacks, frames)
	}
	return p
}
