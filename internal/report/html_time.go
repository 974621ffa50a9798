package report

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/report/webpage"
)

// pageLatency is when requests were, nil where nothing is known of it.
func pageLatency(l *account.Result, rows rowIndex) *webpage.Latency {
	s := &l.Series
	if len(s.Dots) == 0 && len(s.Bands) == 0 && len(s.Levels) == 0 {
		return nil
	}
	out := &webpage.Latency{Whole: s.Whole, NotShown: s.NotShown,
		Entries: append([]string{}, s.Entries...), Length: l.End - l.Begin}
	explained := make([]bool, len(s.Largest))
	for i := range s.Dots {
		d := &s.Dots[i]
		c, slow := &out.Dots, 0
		if d.Slow {
			slow, explained[d.Largest] = 1, true
		}
		c.At, c.NS, c.Actor = append(c.At, d.Begin-l.Begin), append(c.NS, d.NS), append(c.Actor, d.Actor)
		c.Entry, c.Largest, c.Slow = append(c.Entry, d.Entry), append(c.Largest, d.Largest), append(c.Slow, slow)
	}
	for i, n := range s.Largest {
		g := webpage.Largest{Row: -1, Leaf: string(n.Leaf), Label: string(n.Leaf)}
		if explained[i] {
			g.Label = account.Words(n, unchanged)
			g.Row = rows.of(&account.Account{Class: n.Class, Leaf: n.Leaf, Actor: n.Actor,
				Site: n.Site, Detail: n.Detail})
		}
		out.Largest = append(out.Largest, g)
	}
	if d := &s.Density; len(d.Cells) > 0 {
		out.Density = webpage.Density{Begin: d.Begin - l.Begin, Width: d.Width}
		for _, c := range d.Cells {
			out.Density.Cells = append(out.Density.Cells, [4]int64{int64(c.Column), c.Low, c.Up, c.N})
		}
	}
	for _, b := range s.Bands {
		out.Bands = append(out.Bands, webpage.Band{Kind: string(b.Kind), Begin: b.Begin - l.Begin,
			End: b.End - l.Begin, Detail: b.Detail, Ours: b.Ours})
	}
	for _, v := range s.Levels {
		p := webpage.Level{Name: v.Stream}
		for _, q := range v.Points {
			p.Points = append(p.Points, [3]float64{float64(q.Begin - l.Begin), float64(q.End - l.Begin), q.Share})
		}
		out.Levels = append(out.Levels, p)
	}
	return out
}
