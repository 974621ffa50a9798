package ledger

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/timeline"
)

// curves samples the timeline while it is read.
type curves struct {
	every      int64 // ns between samples; it doubles when there are too many
	next       int64
	last       int64 // when the last sample was taken
	waited     int64 // ns of goroutines runnable up to then
	run        []account.CurvePoint
	heap, goal []account.CurvePoint
}

// sample takes a sample where a report asks for stories.
func (p *pass) sample() {
	if p.tell != nil {
		p.curves.sample(p.tl)
	}
}

// sample is called after each block of events.
func (c *curves) sample(tl *timeline.Timeline) {
	now := tl.Now()
	if now < c.next || now <= c.last {
		return
	}
	waited := tl.RunnableNS()
	c.run = append(c.run, account.CurvePoint{At: tl.Abs(c.last), Value: float64(waited-c.waited) / float64(now-c.last)})
	live, goal := tl.Heap()
	if live > 0 {
		c.heap = append(c.heap, account.CurvePoint{At: tl.Abs(now), Value: float64(live)})
	}
	if goal > 0 {
		c.goal = append(c.goal, account.CurvePoint{At: tl.Abs(now), Value: float64(goal)})
	}
	c.last, c.waited, c.next = now, waited, now+c.every
	if len(c.run) >= account.MostPoints {
		c.every = max(1, 2*c.every, now/(account.MostPoints/2))
		c.run, c.heap, c.goal = halved(c.run, true), halved(c.heap, false), halved(c.goal, false)
	}
}

// halved leaves out every second point. An average becomes that of both, as if they were as long.
func halved(l []account.CurvePoint, mean bool) []account.CurvePoint {
	out := l[:0]
	for i := 0; i < len(l); i += 2 {
		p := l[i]
		if mean && i+1 < len(l) {
			p.Value = (p.Value + l[i+1].Value) / 2
		}
		out = append(out, p)
	}
	return out
}

func (c *curves) write(r *account.Result) {
	for _, x := range []account.Curve{{Kind: account.CurveRunnable, Points: c.run},
		{Kind: account.CurveHeap, Points: c.heap}, {Kind: account.CurveGoal, Points: c.goal}} {
		if len(x.Points) > 1 {
			r.Curves = append(r.Curves, x)
		}
	}
}

// waits is the tree of where slow requests waited. Time whose stack is not known stays with whose
// it is.
func (p *pass) waits(slow *books.Column) account.Waits {
	t := waitTree{list: account.Waits{{Parent: -1}}, child: map[waitChild]int{}}
	slow.Each(func(k books.Key, ns int64, stacks map[uint32]*books.Amount) {
		if k.Leaf == books.LeafOnCPU && k.Class == books.ClassOwn {
			return // no wait
		}
		leaf := account.Leaf(k.Leaf.String())
		path := []string{string(leaf)}
		switch actor := p.tl.Func(timeline.FuncID(k.Actor)); {
		case actor != "":
			path = append(path, actor)
		case k.Class == books.ClassOwn:
			path = append(path, "the request itself")
		}
		t.add(leaf, path, ns)
		for id, a := range stacks {
			if a.NS > 0 {
				t.below(leaf, path, p.tl.Funcs(exectrace.StackID(id)), p.tl.Func, min(a.NS, ns))
			}
		}
	})
	return t.pruned()
}

// waitTree is the tree while it is made.
type waitTree struct {
	list  account.Waits
	child map[waitChild]int
}

type waitChild struct {
	parent int
	name   string
}

// mostNodes bounds the tree before what is small is left out.
const mostNodes = 1 << 17

func (t *waitTree) step(at int, name string, leaf account.Leaf, ns int64) int {
	key := waitChild{at, name}
	n, ok := t.child[key]
	if !ok {
		if len(t.list) == mostNodes {
			return at
		}
		n = len(t.list)
		t.child[key] = n
		t.list = append(t.list, account.WaitNode{Parent: at, Name: name, Leaf: leaf})
	}
	t.list[n].NS += ns
	return n
}

func (t *waitTree) add(leaf account.Leaf, path []string, ns int64) {
	t.list[0].NS += ns
	at := 0
	for _, name := range path {
		at = t.step(at, name, leaf, ns)
	}
}

// below adds a stack under a path that is there.
func (t *waitTree) below(leaf account.Leaf, path []string, stack []timeline.FuncID,
	name func(timeline.FuncID) string, ns int64) {
	at := 0
	for _, n := range path {
		at = t.step(at, n, leaf, 0)
	}
	for _, fn := range slices.Backward(stack) {
		at = t.step(at, name(fn), leaf, ns)
	}
}

// pruned leaves out what is less than a thousandth, and more where there is still too much, and
// puts the children of a node in order.
func (t *waitTree) pruned() account.Waits {
	if len(t.list) == 1 {
		return nil
	}
	least := t.list[0].NS / 1000
	for {
		n := 0
		for i := range t.list {
			if t.list[i].NS >= least {
				n++
			}
		}
		if n <= account.MostWaitNodes {
			break
		}
		least = max(1, 2*least)
	}
	var order []int
	for i := range t.list {
		if t.list[i].NS >= least {
			order = append(order, i)
		}
	}
	depth := func(i int) (n int) {
		for ; t.list[i].Parent >= 0; i = t.list[i].Parent {
			n++
		}
		return n
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &t.list[a], &t.list[b]
		return cmp.Or(cmp.Compare(depth(a), depth(b)), cmp.Compare(y.NS, x.NS),
			cmp.Compare(x.Name, y.Name), cmp.Compare(x.Leaf, y.Leaf))
	})
	number := map[int]int{-1: -1}
	out := make(account.Waits, 0, len(order))
	for _, i := range order {
		n := t.list[i]
		parent, ok := number[n.Parent]
		if !ok {
			continue // damaged sums: a child larger than its parent
		}
		n.Parent = parent
		number[i] = len(out)
		out = append(out, n)
	}
	return out
}
