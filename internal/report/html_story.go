package report

import (
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/report/webpage"
)

// mostFigures bounds the numbers of the stories of requests that are not among the slowest: each
// takes about four bytes of the page.
const mostFigures = 300_000

// pageStories are the requests that were told in full: the slowest, and others of the dots.
func (r *Report) pageStories(dots map[dotKey]int, f *frameTable) (out []webpage.Story) {
	for _, s := range r.ledger.Stories {
		i := slices.IndexFunc(r.Requests.Slowest, func(q Request) bool {
			return q.Begin == s.Begin && q.End == s.End && q.Goroutine == s.Actor
		})
		if i >= 0 {
			out = append(out, pageStory(s, f))
			out[len(out)-1].Request = i
		}
	}
	room := mostFigures
	for _, s := range r.ledger.Others {
		if i, ok := dots[dotKey{s.Begin, s.End - s.Begin, s.Actor}]; ok {
			p := pageStory(s, f)
			if room -= figuresIn(&p); room < 0 {
				break
			}
			p.Request, p.Dot = -1, i
			out = append(out, p)
		}
	}
	return out
}

func figuresIn(p *webpage.Story) (n int) {
	for _, x := range p.Chain {
		n += len(x)
	}
	for i := range p.Lanes {
		for _, x := range p.Lanes[i].Spans {
			n += len(x)
		}
	}
	return n
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

func pageStory(s *account.Story, frames *frameTable) webpage.Story {
	leaves := leafTable{of: map[account.Leaf]int64{}}
	p := webpage.Story{Length: s.End - s.Begin, Names: slices.Clone(s.Names), Cut: s.Cut,
		Chain: pageChain(s.Chain, s.Begin, &leaves)}
	for i := range s.Lanes {
		l := &s.Lanes[i]
		lane := webpage.Lane{Kind: string(l.Kind), ID: l.ID, Name: l.Name}
		at := s.Begin
		for j := range l.Spans {
			x := &l.Spans[j]
			lane.Spans = append(lane.Spans,
				figuresOf(x.Begin-at, x.End-x.Begin, leaves.number(x.State), int64(x.Detail),
					int64(x.By), int64(x.On), int64(x.Stack), int64(x.Several)))
			at = x.End
		}
		p.Lanes = append(p.Lanes, lane)
	}
	for _, st := range s.Stacks {
		p.Stacks = append(p.Stacks, frames.stack(st))
	}
	p.Leaves = leaves.list
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
