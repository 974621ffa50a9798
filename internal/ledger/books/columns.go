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

const (
	atLeast  = 10 // slow ones in all
	slowestN = 10
	topSites = 5
	nearest  = 20 // usual requests that a slow one is matched with, or 2 %
)

// ledgers decides who is slow and who is usual, fills in the requests and the three columns, and returns the slow one for
// what else is added up from it.
func (p *Books) Ledgers(r *account.Result, list []request.Group) *Column {
	slow := p.choose(r, list)
	var median []*Kept
	for id, g := range p.Groups {
		if g == nil || id >= len(list) || !list[id].Listed {
			continue
		}
		lo, hi := g.hist.Quantile(0.4), g.hist.Quantile(0.6)
		for _, k := range g.usual() {
			if w := k.Wall(); bucketAt(bucket(w)) >= lo && bucketAt(bucket(w)) <= hi {
				median = append(median, k)
			}
		}
	}
	entries := map[string]bool{}
	for id := range list {
		if list[id].Listed && list[id].Count > 0 {
			entries[list[id].Entry] = true
		}
	}
	s := p.column(slow, entries)
	m := p.column(median, entries)
	p.excess(s, slow)
	r.Slow, r.Median = p.done(s), p.done(m)
	r.All = p.columnAll(list)
	p.slowest(r, list)
	return s
}

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
		return cmp.Or(cmp.Compare(a.Own, b.Own), cmp.Compare(a.Hash, b.Hash), cmp.Compare(a.Begin, b.Begin))
	})
	return l
}

// choose fills in r.Requests and returns who is slow, slowest first within each group.
func (p *Books) choose(r *account.Result, list []request.Group) (slow []*Kept) {
	q := &r.Requests
	leftOut := map[string]int64{}
	var all Histogram
	type rest struct {
		k     *Kept
		g     *Group
		id    int
		ratio float64
	}
	var next []rest
	gs := make([]account.Group, len(list))
	for id, l := range list {
		out := &gs[id]
		*out = account.Group{Entry: l.Entry, Kind: l.Kind, Boundary: l.Boundary, Doubt: l.Doubt}
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
				q.Open += n
			default:
				leftOut[text] += n
			}
		}
		if !l.Listed || id >= len(p.Groups) || p.Groups[id] == nil {
			continue
		}
		g := p.Groups[id]
		out.Count, out.Max = g.count, g.max
		out.P50, out.P99 = g.hist.Quantile(0.5), g.hist.Quantile(0.99)
		q.Count += g.count
		q.Max = max(q.Max, g.max)
		all.merge(&g.hist)
		if g.gone > 0 {
			leftOut["goroutine not found"] += g.gone
		}
		slices.SortFunc(g.cands, slower)
		n := int(g.slowest())
		if p.slowOver > 0 {
			n = int(g.over)
		}
		missing := int64(max(0, n-len(g.cands)))
		n = min(n, len(g.cands))
		if n > 0 && p.slowOver == 0 {
			// a candidate that was let go while the threshold was higher
			last := g.cands[n-1].Wall()
			have := int64(0)
			for _, k := range g.cands[:n] {
				if bucket(k.Wall()) > bucket(last) {
					have++
				}
			}
			missing = max(missing, g.hist.above(last)-have)
		}
		q.NotKept += missing
		for _, k := range g.cands[:n] {
			k.slow = true
		}
		slow = append(slow, g.cands[:n]...)
		for _, k := range g.cands[n:] {
			next = append(next, rest{k, g, id, float64(k.Wall()) / float64(max(out.P50, 1))})
		}
	}
	if p.slowOver == 0 && len(slow) < atLeast {
		// those that are slowest for their group
		slices.SortFunc(next, func(a, b rest) int {
			return cmp.Or(cmp.Compare(b.ratio, a.ratio), slower(a.k, b.k), cmp.Compare(a.id, b.id))
		})
		for _, n := range next[:min(len(next), atLeast-len(slow))] {
			n.k.slow = true
			slow = append(slow, n.k)
		}
	}
	for id := range gs {
		if id < len(p.Groups) && p.Groups[id] != nil && list[id].Listed {
			for _, k := range p.Groups[id].cands {
				if k.slow {
					gs[id].Slow++
					if gs[id].SlowOver == 0 || k.Wall() < gs[id].SlowOver {
						gs[id].SlowOver = k.Wall()
					}
				}
			}
		}
		if gs[id].Count > 0 || list[id].Listed && len(gs[id].LeftOut) > 0 {
			q.Groups = append(q.Groups, gs[id])
		}
	}
	slices.SortStableFunc(q.Groups, func(a, b account.Group) int { return cmp.Compare(b.Count, a.Count) })
	for _, k := range slow {
		if k.Limited {
			q.Limited++
		}
	}
	q.Slow = len(slow)
	q.P50, q.P99 = all.Quantile(0.5), all.Quantile(0.99)
	for _, text := range slices.Sorted(maps.Keys(leftOut)) {
		q.LeftOut = append(q.LeftOut, account.Count{Reason: text, N: leftOut[text]})
	}
	if q.Count == 0 {
		q.NoRequestsCause = noRequests(list)
	}
	return slow
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

// sum is an account while it is added up.
type sum struct {
	key      Key
	time     int64
	excess   float64
	requests int
	largest  int
	queue    int64
	tags     account.Tags
	actors   map[uint32]bool
	holds    map[uint32]bool
	who      map[uint32]int64
	lacked   map[uint32]int64
	behind   map[uint32]int64 // who had the CPU
	stacks   map[uint32]*SiteNS
	through  map[uint32]int64
	holders  map[uint32]int64
}

// SiteNS is time and times.
type SiteNS struct{ NS, N int64 }

// column is a ledger while it is added up.
type Column struct {
	requests int
	Wall     int64
	sums     []*sum // by account number; nil: does not occur
	entries  map[string]bool
	Locks    map[uint32]map[uint32]int64 // site -> account -> ns
	STW      map[uint32]*SiteNS          // number -> ns, requests
	Sweeps   map[uint32]int64
	Barriers map[uint32]int64
	Silence  int64
}

func (p *Books) column(list []*Kept, entries map[string]bool) *Column {
	c := &Column{
		requests: len(list), sums: make([]*sum, len(p.acc.list)), entries: entries,
		Locks: map[uint32]map[uint32]int64{}, STW: map[uint32]*SiteNS{}, Sweeps: map[uint32]int64{}, Barriers: map[uint32]int64{},
	}
	for _, k := range list {
		c.Wall += k.Wall()
		var largest *sum
		var most int64
		stws := map[uint32]bool{}
		for _, f := range k.facts {
			s := c.sums[f.account]
			if s == nil {
				s = &sum{key: p.acc.list[f.account]}
				c.sums[f.account] = s
			}
			ns := f.ns()
			switch f.kind() {
			case FactNS:
				s.time += ns
				s.requests++
				if ns > most {
					largest, most = s, ns
				}
			case FactActor:
				if s.actors == nil {
					s.actors = map[uint32]bool{}
				}
				s.actors[f.ref] = true
			case FactHold:
				if s.holds == nil {
					s.holds = map[uint32]bool{}
				}
				s.holds[f.ref] = true
			case FactStack, FactStackN:
				if s.stacks == nil {
					s.stacks = map[uint32]*SiteNS{}
				}
				x := s.stacks[f.ref]
				if x == nil {
					x = &SiteNS{}
					s.stacks[f.ref] = x
				}
				if f.kind() == FactStack {
					x.NS += ns
				} else {
					x.N += ns
				}
			case FactThrough:
				s.through = addTo(s.through, f.ref, ns)
			case FactWho:
				s.who = addTo(s.who, f.ref, ns)
			case FactLacked:
				s.lacked = addTo(s.lacked, f.ref, ns)
			case FactHolder:
				s.holders = addTo(s.holders, f.ref, ns)
			case FactLock:
				c.Locks[f.ref] = addTo(c.Locks[f.ref], f.account, ns)
			case FactSTW:
				x := c.STW[f.ref]
				if x == nil {
					x = &SiteNS{}
					c.STW[f.ref] = x
				}
				x.NS += ns
				if !stws[f.ref] {
					stws[f.ref] = true
					x.N++
				}
			case FactSweep:
				c.Sweeps[f.ref] += ns
			case FactOfBarrier:
				c.Barriers[f.ref] += ns
			case FactBehind:
				s.behind = addTo(s.behind, f.ref, ns)
			case FactQueue:
				s.queue = max(s.queue, ns)
			default:
				s.tag(f.kind(), ns)
				if f.kind() == FactSilence {
					c.Silence += ns
				}
			}
		}
		if largest != nil {
			largest.largest++
		}
	}
	return c
}

// StacksOf is where an account's time passed, by stack.
func (c *Column) StacksOf(account uint32) map[uint32]*SiteNS {
	if s := c.sums[account]; s != nil {
		return s.stacks
	}
	return nil
}

// addTo adds to m, which it makes where it is nil.
func addTo(m map[uint32]int64, k uint32, ns int64) map[uint32]int64 {
	if m == nil {
		m = map[uint32]int64{}
	}
	m[k] += ns
	return m
}

func (s *sum) tag(k FactKind, ns int64) {
	t := &s.tags
	switch k {
	case FactSilence:
		t.SilenceNS += ns
	case FactGC:
		t.GCNS += ns
	case FactInSTW:
		t.STWNS += ns
	case FactInAssist:
		t.AssistNS += ns
	case FactInSweep:
		t.SweepNS += ns
	case FactNewborn:
		t.NewbornNS += ns
	case FactPreempt:
		t.PreemptNS += ns
	case FactSyscall:
		t.SyscallNS += ns
	case FactHandoff:
		t.HandoffNS += ns
	case FactInferred:
		t.InferredNS += ns
	case FactMeasured:
		t.MeasuredNS += ns
	case FactSocket:
		t.SocketNS += ns
	case FactDue:
		t.DueNS += ns
	case FactBarrier:
		t.BarrierNS += ns
	case FactPermit:
		t.PermitNS += ns
	case FactServing:
		t.ServingNS += ns
	case FactAsked:
		t.AskedNS += ns
	case FactEnough:
		t.EnoughNS += ns
	case FactSlices:
		t.Slices += ns
	case FactGCSlices:
		t.GCSlices += ns
	}
}

// excess compares each slow request with the middle fifth, by duration, of those of its group that have
// the nearest own running time. See docs/ledger.md, "8. Slow against usual".
func (p *Books) excess(c *Column, slow []*Kept) {
	usual := map[*Group][]*Kept{}
	fifths := map[*Kept][]*Kept{} // by the first of those it is the middle fifth of
	for _, s := range c.sums {
		if s != nil {
			s.excess = float64(s.time)
		}
	}
	for _, k := range slow {
		u, ok := usual[k.Group]
		if !ok {
			u = k.Group.usual()
			usual[k.Group] = u
		}
		if len(u) == 0 {
			continue
		}
		all := nearestOwn(u, k.Own)
		near, ok := fifths[all[0]]
		if !ok {
			near = middleFifth(all)
			fifths[all[0]] = near
		}
		for _, n := range near {
			for _, f := range n.facts {
				if f.kind() != FactNS {
					continue
				}
				if s := c.sums[f.account]; s != nil {
					s.excess -= float64(f.ns()) / float64(len(near))
				}
			}
		}
	}
}

// nearestOwn are the 2 %, at least 20, of u, which is ordered by own running time, whose own is nearest.
func nearestOwn(u []*Kept, own int64) []*Kept {
	n := max(nearest, len(u)/50)
	if len(u) <= n {
		return u
	}
	hi, _ := slices.BinarySearchFunc(u, own, func(k *Kept, own int64) int { return cmp.Compare(k.Own, own) })
	lo := hi
	for hi-lo < n {
		switch {
		case lo == 0:
			hi++
		case hi == len(u) || own-u[lo-1].Own <= u[hi].Own-own:
			lo--
		default:
			hi++
		}
	}
	return u[lo:hi]
}

func middleFifth(l []*Kept) []*Kept {
	if len(l) == 0 {
		return nil
	}
	l = slices.Clone(l)
	slices.SortFunc(l, slower)
	lo := len(l) * 2 / 5
	return l[lo:max(lo+1, len(l)*3/5)]
}
