package books

import (
	"cmp"
	"maps"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/request"
)

// atLeast is how many slow requests there are, if there are as many candidates. One per cent of a
// few hundred is two or three, which may be chance.
const atLeast = 10

// choice is the decision who is slow, while it is made.
type choice struct {
	*Books
	out       *account.Requests
	walls     Histogram        // of all requests
	leftOut   map[string]int64 // by reason
	slow      []*Kept
	runnersUp []runnerUp
}

// runnerUp is a candidate that is not slow by the measure of its group.
type runnerUp struct {
	*Kept
	group int
	ratio float64 // of its wall time to the group's median
}

// choose fills in r.Requests and returns the slow requests, slowest first within each group. The
// rule is docs/ledger.md, "8. Slow against usual".
//
//  1. Each group counts its requests and those left out, and names its slow ones.
//  2. If they are too few in all, those that are slowest for their group join them.
//  3. The groups and the totals are written down. That needs steps 1 and 2 of all groups.
func (b *Books) choose(r *account.Result, list []request.Group) []*Kept {
	c := &choice{Books: b, out: &r.Requests, leftOut: map[string]int64{}}
	groups := make([]account.Group, len(list))
	for id := range list {
		groups[id] = c.count(id, &list[id])
	}
	c.topUp()
	for id := range groups {
		c.writeGroup(id, &groups[id], list[id].Listed)
	}
	c.writeTotals()
	if c.out.Count == 0 {
		c.out.NoRequestsCause = noRequests(list)
	}
	return c.slow
}

// shown is the group with that number, nil if it is not listed or has no units.
func (c *choice) shown(id int, listed bool) *Group {
	if !listed || id >= len(c.groups) {
		return nil
	}
	return c.groups[id]
}

// count counts a group's requests and takes its slow ones. Of a group that is not listed only what
// was left out is counted, for itself: nobody would know what the totals stand for.
func (c *choice) count(id int, l *request.Group) account.Group {
	out := account.Group{Entry: l.Entry, Kind: l.Kind, Boundary: l.Boundary, Doubt: l.Doubt}
	c.countLeftOut(&out, l)
	g := c.shown(id, l.Listed)
	if g == nil {
		return out
	}
	out.Count, out.Max = g.count, g.max
	out.P50, out.P99 = g.walls.Quantile(0.5), g.walls.Quantile(0.99)
	c.out.Count += g.count
	c.out.Max = max(c.out.Max, g.max)
	c.walls.merge(&g.walls)
	if g.lost > 0 {
		c.leftOut["goroutine not found"] += g.lost
	}
	n, notKept := g.countSlow(c.slowOver)
	c.out.NotKept += notKept
	for _, k := range g.candidates[:n] {
		c.take(k)
	}
	for _, k := range g.candidates[n:] {
		c.runnersUp = append(c.runnersUp, runnerUp{k, id, float64(k.Wall()) / float64(max(out.P50, 1))})
	}
	return out
}

// take makes a unit slow.
func (c *choice) take(k *Kept) {
	k.slow = true
	c.slow = append(c.slow, k)
}

// countLeftOut counts what was left out of a group, by reason. Units that were open when the
// recording started or ended are no loss; they are counted apart.
func (c *choice) countLeftOut(out *account.Group, l *request.Group) {
	for i, n := range l.LeftOut {
		reason := request.LeftOut(i)
		if n == 0 || reason == request.Kept {
			continue
		}
		out.LeftOut = append(out.LeftOut, account.Count{Reason: reason.String(), N: n})
		switch {
		case !l.Listed:
		case reason == request.OpenBegin || reason == request.OpenEnd:
			c.out.Open += n
		default:
			c.leftOut[reason.String()] += n
		}
	}
}

// countSlow sorts the candidates, slowest first, and returns how many of them are slow. NotKept is
// how many slow units are not among the candidates. There are two ways to miss one, and the larger
// number counts: fewer candidates than slow units, or a longer unit that was let go while the
// threshold was higher. The histogram knows of the second: above the shortest slow unit it has more
// than was kept.
func (g *Group) countSlow(slowOver int64) (n int, notKept int64) {
	slices.SortFunc(g.candidates, slower)
	n = int(g.onePercent())
	if slowOver > 0 {
		n = int(g.over)
	}
	notKept = int64(max(0, n-len(g.candidates)))
	n = min(n, len(g.candidates))
	if n == 0 || slowOver > 0 {
		return n, notKept
	}
	shortest := g.candidates[n-1].Wall()
	longer := g.walls.above(shortest)
	for _, k := range g.candidates[:n] {
		if bucket(k.Wall()) > bucket(shortest) {
			longer--
		}
	}
	return n, max(notKept, longer)
}

// topUp adds those that are slowest for their group until there are atLeast. Where the user said
// what is slow, nothing is added.
func (c *choice) topUp() {
	if c.slowOver > 0 || len(c.slow) >= atLeast {
		return
	}
	slices.SortFunc(c.runnersUp, func(x, y runnerUp) int {
		return cmp.Or(cmp.Compare(y.ratio, x.ratio), slower(x.Kept, y.Kept), cmp.Compare(x.group, y.group))
	})
	for _, k := range c.runnersUp[:min(len(c.runnersUp), atLeast-len(c.slow))] {
		c.take(k.Kept)
	}
}

// writeGroup writes down how many units of a group are slow, and from which length on they are.
func (c *choice) writeGroup(id int, out *account.Group, listed bool) {
	if g := c.shown(id, listed); g != nil {
		for _, k := range g.candidates {
			if !k.slow {
				continue
			}
			out.Slow++
			if out.SlowOver == 0 || k.Wall() < out.SlowOver {
				out.SlowOver = k.Wall()
			}
		}
		if c.works != nil {
			out.OnCPU = g.All.Works.Write(c.works, g.All.onCPU())
		}
	}
	if out.Count > 0 || listed && len(out.LeftOut) > 0 {
		c.out.Groups = append(c.out.Groups, *out)
	}
}

// writeTotals writes down what holds for all groups together.
func (c *choice) writeTotals() {
	slices.SortStableFunc(c.out.Groups, func(x, y account.Group) int { return cmp.Compare(y.Count, x.Count) })
	for _, k := range c.slow {
		if k.Limited {
			c.out.Limited++
		}
	}
	c.out.Slow = len(c.slow)
	c.out.P50, c.out.P99 = c.walls.Quantile(0.5), c.walls.Quantile(0.99)
	for _, reason := range slices.Sorted(maps.Keys(c.leftOut)) {
		c.out.LeftOut = append(c.out.LeftOut, account.Count{Reason: reason, N: c.leftOut[reason]})
	}
}
