package books

import (
	"cmp"
	"slices"

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
	stacks   map[uint32]*Amount
	through  map[uint32]int64
	holders  map[uint32]int64
}

// Amount is time and times.
type Amount struct{ NS, N int64 }

// column is a ledger while it is added up.
type Column struct {
	requests int
	wall     int64
	sums     []*sum // by account number; nil: does not occur
	entries  map[string]bool
	Locks    map[uint32]map[uint32]int64 // site -> account -> ns
	STW      map[uint32]*Amount          // number -> ns, requests
	Sweeps   map[uint32]int64
	Barriers map[uint32]int64
	Silence  int64
}

func (p *Books) column(list []*Kept, entries map[string]bool) *Column {
	c := &Column{
		requests: len(list), sums: make([]*sum, len(p.acc.list)), entries: entries,
		Locks: map[uint32]map[uint32]int64{}, STW: map[uint32]*Amount{}, Sweeps: map[uint32]int64{}, Barriers: map[uint32]int64{},
	}
	for _, k := range list {
		c.wall += k.Wall()
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
					s.stacks = map[uint32]*Amount{}
				}
				x := s.stacks[f.ref]
				if x == nil {
					x = &Amount{}
					s.stacks[f.ref] = x
				}
				if f.kind() == FactStack {
					x.NS += ns
				} else {
					x.N += ns
				}
			case FactThrough:
				s.through = addTo(s.through, f.ref, ns)
			case FactOccupant:
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
					x = &Amount{}
					c.STW[f.ref] = x
				}
				x.NS += ns
				if !stws[f.ref] {
					stws[f.ref] = true
					x.N++
				}
			case FactSweep:
				c.Sweeps[f.ref] += ns
			case FactBarrier:
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

// Stacks is where an account's time passed, by stack.
func (c *Column) Stacks(account uint32) map[uint32]*Amount {
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
	case FactInBarrier:
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
		all := nearestOwn(u, k.Running)
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
	hi, _ := slices.BinarySearchFunc(u, own, func(k *Kept, own int64) int { return cmp.Compare(k.Running, own) })
	lo := hi
	for hi-lo < n {
		switch {
		case lo == 0:
			hi++
		case hi == len(u) || own-u[lo-1].Running <= u[hi].Running-own:
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
