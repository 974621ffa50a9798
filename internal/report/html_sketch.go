package report

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/report/webpage"
)

// dotKey is a request among the dots of the page.
type dotKey struct{ begin, ns, actor int64 }

// slowDots are the numbers of slow requests' dots.
func slowDots(s *account.Series) map[dotKey]int {
	at := map[dotKey]int{}
	for i := range s.Dots {
		if d := &s.Dots[i]; d.Slow {
			at[dotKey{d.Begin, d.NS, d.Actor}] = i
		}
	}
	return at
}

// pageSketches are the slow requests that are dots.
func (r *Report) pageSketches(rows rowIndex, dots map[dotKey]int, frames *frameTable) webpage.Sketches {
	k := &r.ledger.Sketches
	out := webpage.Sketches{Names: slices.Clone(k.Names), Left: k.Left, Lanes: []webpage.Lane{}}
	for _, n := range k.Accounts {
		out.Accounts = append(out.Accounts, webpage.Largest{Leaf: string(n.Leaf), Label: account.Words(n, unchanged),
			Row: rows.of(&account.Account{Class: n.Class, Leaf: n.Leaf, Actor: n.Actor,
				Site: n.Site, Detail: n.Detail})})
	}
	for i := range k.Lanes {
		out.Lanes = append(out.Lanes, webpage.Lane{Kind: string(k.Lanes[i].Kind), ID: k.Lanes[i].ID,
			Name: k.Lanes[i].Name})
	}
	for _, st := range k.Stacks {
		out.Stacks = append(out.Stacks, frames.stack(st))
	}
	titles, leaves := map[string]int{}, leafTable{of: map[account.Leaf]int64{}}
	for i := range k.List {
		s := &k.List[i]
		dot, ok := dots[dotKey{s.Begin, s.End - s.Begin, s.Actor}]
		if !ok {
			continue
		}
		title := cmp.Or(s.Name, s.Entry)
		n, ok := titles[title]
		if !ok {
			n = len(out.Titles)
			titles[title] = n
			out.Titles = append(out.Titles, title)
		}
		parts := []int64{}
		for _, p := range s.Parts {
			parts = append(parts, int64(p.Account), p.NS)
		}
		out.Dots, out.Title, out.When = append(out.Dots, dot), append(out.Title, n), append(out.When, r.at(s.Begin))
		out.Parts, out.Chains = append(out.Parts, parts), append(out.Chains, pageChain(s.Chain, s.Begin, &leaves))
	}
	out.Leaves = leaves.list
	return out
}

// at prints a moment of the recording as the start of a request there.
func (r *Report) at(ns int64) string {
	q := Request{UTC: wallClock{r.ledger.Wall, r.ledger.WallOffset}.utc(ns), OffsetNS: ns - r.ledger.Begin}
	return q.when("")
}

// leafTable numbers leaves.
type leafTable struct {
	of   map[account.Leaf]int64
	list []string
}

func (t *leafTable) number(l account.Leaf) int64 {
	n, ok := t.of[l]
	if !ok {
		n = int64(len(t.list))
		t.of[l] = n
		t.list = append(t.list, string(l))
	}
	return n
}

// pageChain is a chain in the figures of webpage.Story.
func pageChain(chain []account.Link, begin int64, leaves *leafTable) (out [][]int64) {
	at := begin
	for i := range chain {
		l := &chain[i]
		out = append(out, figuresOf(l.Begin-at, l.End-l.Begin, leaves.number(l.Leaf),
			int64(l.Depth), int64(l.Lane), int64(l.Site), int64(l.Detail), int64(l.Stack), int64(l.Several)))
		at = l.End
	}
	return out
}
