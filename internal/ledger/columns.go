package ledger

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

// result decides who is slow, who is usual, and adds up.
func (p *pass) result() *account.Result {
	r := &account.Result{Lacks: p.src.Lacks(), Monotonic: p.src.Clock().Monotonic}
	if c := p.src.Clock(); c.Wall {
		r.Wall, r.WallOffset = true, c.WallNS-c.MonoNS
	}
	s := p.ledgers(r)
	p.tables(r, s)
	p.capacity(r)
	p.kernel(r, s)
	return r
}

// ledgers fills in the requests and the three columns, and gives the slow one for what else is added up from it.
func (p *pass) ledgers(r *account.Result) *column {
	list := p.f.Groups()
	slow := p.choose(r, list)
	var median []*kept
	for id, g := range p.groups {
		if g == nil || id >= len(list) || !list[id].Listed {
			continue
		}
		lo, hi := g.hist.quantile(0.4), g.hist.quantile(0.6)
		for _, k := range g.usual() {
			if w := k.wall(); bucketAt(bucket(w)) >= lo && bucketAt(bucket(w)) <= hi {
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
	r.Slow, r.Median = s.done(p), m.done(p)
	r.All = p.columnAll(list)
	p.slowest(r, list)
	return s
}

// usual lists the sample, without who turned out to be slow, by own running time.
func (g *group) usual() []*kept {
	var l []*kept
	for _, s := range g.others {
		for _, k := range s {
			if !k.slow {
				l = append(l, k)
			}
		}
	}
	slices.SortFunc(l, func(a, b *kept) int {
		return cmp.Or(cmp.Compare(a.own, b.own), cmp.Compare(a.hash, b.hash), cmp.Compare(a.begin, b.begin))
	})
	return l
}

// choose fills in r.Requests and returns who is slow, slowest first within each group.
func (p *pass) choose(r *account.Result, list []request.Group) (slow []*kept) {
	q := &r.Requests
	leftOut := map[string]int64{}
	var all histogram
	type rest struct {
		k     *kept
		g     *group
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
		if !l.Listed || id >= len(p.groups) || p.groups[id] == nil {
			continue
		}
		g := p.groups[id]
		out.Count, out.Max = g.count, g.max
		out.P50, out.P99 = g.hist.quantile(0.5), g.hist.quantile(0.99)
		q.Count += g.count
		q.Max = max(q.Max, g.max)
		all.merge(&g.hist)
		if g.gone > 0 {
			leftOut["goroutine not found"] += g.gone
		}
		slices.SortFunc(g.cands, slower)
		n := int(g.slowest())
		if p.o.SlowOver > 0 {
			n = int(g.over)
		}
		missing := int64(max(0, n-len(g.cands)))
		n = min(n, len(g.cands))
		if n > 0 && p.o.SlowOver == 0 {
			// a candidate that was let go while the threshold was higher
			last := g.cands[n-1].wall()
			have := int64(0)
			for _, k := range g.cands[:n] {
				if bucket(k.wall()) > bucket(last) {
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
			next = append(next, rest{k, g, id, float64(k.wall()) / float64(max(out.P50, 1))})
		}
	}
	if p.o.SlowOver == 0 && len(slow) < atLeast {
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
		if id < len(p.groups) && p.groups[id] != nil && list[id].Listed {
			for _, k := range p.groups[id].cands {
				if k.slow {
					gs[id].Slow++
					if gs[id].SlowOver == 0 || k.wall() < gs[id].SlowOver {
						gs[id].SlowOver = k.wall()
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
		if k.limited {
			q.Limited++
		}
	}
	q.Slow = len(slow)
	q.P50, q.P99 = all.quantile(0.5), all.quantile(0.99)
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
	key      accountKey
	ns       int64
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
type SiteNS struct{ ns, n int64 }

// column is a ledger while it is added up.
type column struct {
	requests int
	wall     int64
	sums     []*sum // by account number; nil: does not occur
	entries  map[string]bool
	locks    map[uint32]map[uint32]int64 // site -> account -> ns
	stw      map[uint32]*SiteNS          // number -> ns, requests
	sweeps   map[uint32]int64
	barriers map[uint32]int64
	silence  int64
}

func (p *pass) column(list []*kept, entries map[string]bool) *column {
	c := &column{
		requests: len(list), sums: make([]*sum, len(p.acc.list)), entries: entries,
		locks: map[uint32]map[uint32]int64{}, stw: map[uint32]*SiteNS{}, sweeps: map[uint32]int64{}, barriers: map[uint32]int64{},
	}
	for _, k := range list {
		c.wall += k.wall()
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
			case factNS:
				s.ns += ns
				s.requests++
				if ns > most {
					largest, most = s, ns
				}
			case factActor:
				if s.actors == nil {
					s.actors = map[uint32]bool{}
				}
				s.actors[f.ref] = true
			case factHold:
				if s.holds == nil {
					s.holds = map[uint32]bool{}
				}
				s.holds[f.ref] = true
			case factStack, factStackN:
				if s.stacks == nil {
					s.stacks = map[uint32]*SiteNS{}
				}
				x := s.stacks[f.ref]
				if x == nil {
					x = &SiteNS{}
					s.stacks[f.ref] = x
				}
				if f.kind() == factStack {
					x.ns += ns
				} else {
					x.n += ns
				}
			case factThrough:
				s.through = addTo(s.through, f.ref, ns)
			case factWho:
				s.who = addTo(s.who, f.ref, ns)
			case factLacked:
				s.lacked = addTo(s.lacked, f.ref, ns)
			case factHolder:
				s.holders = addTo(s.holders, f.ref, ns)
			case factLock:
				c.locks[f.ref] = addTo(c.locks[f.ref], f.account, ns)
			case factSTW:
				x := c.stw[f.ref]
				if x == nil {
					x = &SiteNS{}
					c.stw[f.ref] = x
				}
				x.ns += ns
				if !stws[f.ref] {
					stws[f.ref] = true
					x.n++
				}
			case factSweep:
				c.sweeps[f.ref] += ns
			case factOfBarrier:
				c.barriers[f.ref] += ns
			case factBehind:
				s.behind = addTo(s.behind, f.ref, ns)
			case factQueue:
				s.queue = max(s.queue, ns)
			default:
				s.tag(f.kind(), ns)
				if f.kind() == factSilence {
					c.silence += ns
				}
			}
		}
		if largest != nil {
			largest.largest++
		}
	}
	return c
}

func addTo(m map[uint32]int64, k uint32, ns int64) map[uint32]int64 {
	if m == nil {
		m = map[uint32]int64{}
	}
	m[k] += ns
	return m
}

func (s *sum) tag(k factKind, ns int64) {
	t := &s.tags
	switch k {
	case factSilence:
		t.SilenceNS += ns
	case factGC:
		t.GCNS += ns
	case factInSTW:
		t.STWNS += ns
	case factInAssist:
		t.AssistNS += ns
	case factInSweep:
		t.SweepNS += ns
	case factNewborn:
		t.NewbornNS += ns
	case factPreempt:
		t.PreemptNS += ns
	case factSyscall:
		t.SyscallNS += ns
	case factHandoff:
		t.HandoffNS += ns
	case factInferred:
		t.InferredNS += ns
	case factMeasured:
		t.MeasuredNS += ns
	case factSocket:
		t.SocketNS += ns
	case factDue:
		t.DueNS += ns
	case factBarrier:
		t.BarrierNS += ns
	case factPermit:
		t.PermitNS += ns
	case factServing:
		t.ServingNS += ns
	case factAsked:
		t.AskedNS += ns
	case factEnough:
		t.EnoughNS += ns
	case factSlices:
		t.Slices += ns
	case factGCSlices:
		t.GCSlices += ns
	}
}

// excess compares each slow request with the middle fifth, by duration, of those of its group that have
// the nearest own running time. See docs/ledger.md, "8. Slow against usual".
func (p *pass) excess(c *column, slow []*kept) {
	usual := map[*group][]*kept{}
	fifths := map[*kept][]*kept{} // by the first of those it is the middle fifth of
	for _, s := range c.sums {
		if s != nil {
			s.excess = float64(s.ns)
		}
	}
	for _, k := range slow {
		u, ok := usual[k.group]
		if !ok {
			u = k.group.usual()
			usual[k.group] = u
		}
		if len(u) == 0 {
			continue
		}
		all := nearestOwn(u, k.own)
		near, ok := fifths[all[0]]
		if !ok {
			near = middleFifth(all)
			fifths[all[0]] = near
		}
		for _, n := range near {
			for _, f := range n.facts {
				if f.kind() != factNS {
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
func nearestOwn(u []*kept, own int64) []*kept {
	n := max(nearest, len(u)/50)
	if len(u) <= n {
		return u
	}
	hi, _ := slices.BinarySearchFunc(u, own, func(k *kept, own int64) int { return cmp.Compare(k.own, own) })
	lo := hi
	for hi-lo < n {
		switch {
		case lo == 0:
			hi++
		case hi == len(u) || own-u[lo-1].own <= u[hi].own-own:
			lo--
		default:
			hi++
		}
	}
	return u[lo:hi]
}

func middleFifth(l []*kept) []*kept {
	if len(l) == 0 {
		return nil
	}
	l = slices.Clone(l)
	slices.SortFunc(l, slower)
	lo := len(l) * 2 / 5
	return l[lo:max(lo+1, len(l)*3/5)]
}
