package books

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/request"
)

// usual lists the sample, without who turned out to be slow, by own running time.
func (g *Group) usual() []*Kept {
	var l []*Kept
	for _, s := range g.others {
		for _, k := range s {
			if !k.slow {
				l = append(l, k)
			}
		}
	}
	slices.SortFunc(l, func(a, b *Kept) int {
		return cmp.Or(cmp.Compare(a.Running, b.Running), cmp.Compare(a.Hash, b.Hash), cmp.Compare(a.Begin, b.Begin))
	})
	return l
}

// choice is the decision who is slow, while it is made.
type choice struct {
	*Books
	out     *account.Requests
	all     Histogram        // of all requests
	leftOut map[string]int64 // by reason
	slow    []*Kept
	next    []candidate // those kept that are not slow so far
}

// candidate is a request of which its group has slower ones.
type candidate struct {
	k     *Kept
	id    int     // of its group
	ratio float64 // to the group's median
}

// choose fills in r.Requests and returns the slow requests, slowest first within each group.
//
//  1. Each group counts its requests and those left out, and names its slow ones.
//  2. If they are too few in all, those that are slowest for their group join them.
//  3. The groups and the totals are written down.
func (p *Books) choose(r *account.Result, list []request.Group) []*Kept {
	c := &choice{Books: p, out: &r.Requests, leftOut: map[string]int64{}}
	groups := make([]account.Group, len(list))
	for id := range list {
		groups[id] = c.group(id, &list[id])
	}
	c.topUp()
	for id := range groups {
		c.list(id, &groups[id], list[id].Listed)
	}
	c.totals()
	if c.out.Count == 0 {
		c.out.NoRequestsCause = noRequests(list)
	}
	return c.slow
}

// groupOf returns what was kept of a group, nil if there is nothing to choose from.
func (c *choice) groupOf(id int, listed bool) *Group {
	if !listed || id >= len(c.Groups) {
		return nil
	}
	return c.Groups[id]
}

// group counts a group's requests and takes its slow ones.
func (c *choice) group(id int, l *request.Group) account.Group {
	out := account.Group{Entry: l.Entry, Kind: l.Kind, Boundary: l.Boundary, Doubt: l.Doubt}
	for why, n := range l.LeftOut {
		if n == 0 || request.LeftOut(why) == request.Kept {
			continue
		}
		text := request.LeftOut(why).String()
		out.LeftOut = append(out.LeftOut, account.Count{Reason: text, N: n})
		if !l.Listed {
			continue
		}
		switch request.LeftOut(why) {
		case request.OpenBegin, request.OpenEnd:
			c.out.Open += n
		default:
			c.leftOut[text] += n
		}
	}
	g := c.groupOf(id, l.Listed)
	if g == nil {
		return out
	}
	out.Count, out.Max = g.count, g.max
	out.P50, out.P99 = g.hist.Quantile(0.5), g.hist.Quantile(0.99)
	c.out.Count += g.count
	c.out.Max = max(c.out.Max, g.max)
	c.all.merge(&g.hist)
	if g.gone > 0 {
		c.leftOut["goroutine not found"] += g.gone
	}
	n, missing := g.slowKept(c.slowOver)
	c.out.NotKept += missing
	for _, k := range g.cands[:n] {
		k.slow = true
	}
	c.slow = append(c.slow, g.cands[:n]...)
	for _, k := range g.cands[n:] {
		c.next = append(c.next, candidate{k, id, float64(k.Wall()) / float64(max(out.P50, 1))})
	}
	return out
}

// slowKept sorts the candidates, slowest first, and returns how many of them are slow, and how many
// slow requests are not among them because they were not kept.
func (g *Group) slowKept(slowOver int64) (n int, missing int64) {
	slices.SortFunc(g.cands, slower)
	n = int(g.slowest())
	if slowOver > 0 {
		n = int(g.over)
	}
	missing = int64(max(0, n-len(g.cands)))
	n = min(n, len(g.cands))
	if n > 0 && slowOver == 0 {
		// A candidate may have been let go while the threshold was higher.
		last := g.cands[n-1].Wall()
		have := int64(0)
		for _, k := range g.cands[:n] {
			if bucket(k.Wall()) > bucket(last) {
				have++
			}
		}
		missing = max(missing, g.hist.above(last)-have)
	}
	return n, missing
}

// topUp adds those that are slowest for their group until there are atLeast. Where the user says what
// is slow, nothing is added.
func (c *choice) topUp() {
	if c.slowOver != 0 || len(c.slow) >= atLeast {
		return
	}
	slices.SortFunc(c.next, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.ratio, a.ratio), slower(a.k, b.k), cmp.Compare(a.id, b.id))
	})
	for _, n := range c.next[:min(len(c.next), atLeast-len(c.slow))] {
		n.k.slow = true
		c.slow = append(c.slow, n.k)
	}
}

// list writes down how many of a group are slow, and from when on they are.
func (c *choice) list(id int, out *account.Group, listed bool) {
	if g := c.groupOf(id, listed); g != nil {
		for _, k := range g.cands {
			if !k.slow {
				continue
			}
			out.Slow++
			if out.SlowOver == 0 || k.Wall() < out.SlowOver {
				out.SlowOver = k.Wall()
			}
		}
	}
	if out.Count > 0 || listed && len(out.LeftOut) > 0 {
		c.out.Groups = append(c.out.Groups, *out)
	}
}

// totals writes down what holds for all groups together.
func (c *choice) totals() {
	slices.SortStableFunc(c.out.Groups, func(a, b account.Group) int { return cmp.Compare(b.Count, a.Count) })
	for _, k := range c.slow {
		if k.Limited {
			c.out.Limited++
		}
	}
	c.out.Slow = len(c.slow)
	c.out.P50, c.out.P99 = c.all.Quantile(0.5), c.all.Quantile(0.99)
	for _, text := range slices.Sorted(maps.Keys(c.leftOut)) {
		c.out.LeftOut = append(c.out.LeftOut, account.Count{Reason: text, N: c.leftOut[text]})
	}
}

// manyOpen is from how many on requests that began and did not end are no few slow ones.
const manyOpen = 10

// noRequests says why there is nothing to explain.
func noRequests(list []request.Group) string {
	if len(list) == 0 {
		return "no goroutine was seen that takes work in a loop, nor tasks, regions or a known server"
	}
	// That requests begin and none ends is the news, whatever else was looked at.
	var most *request.Group
	for i := range list {
		if l := &list[i]; l.Listed && l.LeftOut[request.OpenBegin]+l.LeftOut[request.OpenEnd] > 0 && (most == nil || l.LeftOut[request.OpenEnd] > most.LeftOut[request.OpenEnd]) {
			most = l
		}
	}
	if most != nil {
		begin, end := most.LeftOut[request.OpenBegin], most.LeftOut[request.OpenEnd]
		entry := most.Entry
		if entry == "" { // stacks stand at a generation's end, which a trace that is cut off may lack
			entry = "a function whose name is lost"
		}
		why := fmt.Sprintf("no request began and ended inside the trace; of %s %d were under way at its begin, and %d began and did not end", entry, begin, end)
		if end >= manyOpen {
			why += ": they pile up, and where they wait is in /debug/pprof/goroutine?debug=1"
		}
		return why
	}
	var why []string
	for _, l := range list {
		if l.Why != "" && !slices.Contains(why, l.Why) && len(why) < 3 {
			why = append(why, l.Why)
		}
	}
	if len(why) == 0 {
		return "no request began and ended inside the trace"
	}
	return strings.Join(why, "; ")
}
