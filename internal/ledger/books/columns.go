package books

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/request"
)

// Ledgers makes the columns of all that was kept, and returns the slow one for tables that are
// added up from it.
//
//  1. It is decided who is slow (choose.go). The requests in r are filled in.
//  2. The usual units are those of the sample that took about as long as the median of their group.
//  3. The facts of both are added up by account.
//  4. Each slow unit is compared with usual ones that ran about as long: the excess of an account.
//  5. The columns are written down in words, with the column of all and the ten slowest requests.
//  6. Beside them: when the units were (plot.go).
func (b *Books) Ledgers(r *account.Result, list []request.Group) *Column {
	slow := b.choose(r, list)
	entries := map[string]bool{}
	for id := range list {
		if list[id].Listed && list[id].Count > 0 {
			entries[list[id].Entry] = true
		}
	}
	s, m := b.column(slow, entries), b.column(b.median(list), entries)
	b.excess(s, slow)
	r.Slow, r.Median, r.All = b.write(s), b.write(m), b.columnAll(list)
	b.divide(r, s, m, list)
	r.Requests.Slowest = b.slowest(list)
	r.Series = b.series(list, s)
	return s
}

// median lists the usual units between the 40th and the 60th percentile of their group's wall
// times, by buckets of the histogram.
func (b *Books) median(list []request.Group) (l []*Kept) {
	for _, g := range b.listed(list) {
		lo, hi := g.walls.Quantile(0.4), g.walls.Quantile(0.6)
		for _, k := range g.sampled() {
			if w := bucketStart(bucket(k.Wall())); w >= lo && w <= hi {
				l = append(l, k)
			}
		}
	}
	return l
}

// Amount is how long and how often.
type Amount struct{ NS, N int64 }

// Column is a ledger while it is added up. Its tables are for what the owner of the books lists
// beside the accounts. Their numbers are those that the owner gave in facts.
type Column struct {
	Locks    map[uint32]map[uint32]int64 // by site of a lock, by account: ns
	STW      map[uint32]*Amount          // by number of a stop-the-world; N is requests
	Sweeps   map[uint32]int64            // by number of a sweep: ns
	Barriers map[uint32]int64            // by number of a ragged barrier: ns
	Silence  int64                       // ns without an event of any thread

	requests int
	wall     int64
	sums     []*sum           // by account number; nil: does not occur
	onCPU    map[*Group]int64 // ns of units' accounts on CPU
	entries  map[string]bool
}

// sum is an account while it is added up.
type sum struct {
	key      Key
	ns       int64
	excess   float64
	requests int
	largest  int // in how many requests it is the largest account
	events   int
	eventEnd int64 // of the last of them
	queue    int64
	tags     account.Tags

	// By reference of the facts of that kind. They are nil where there is none, as in most
	// accounts.
	actors    map[uint32]bool
	holds     map[uint32]bool
	occupants map[uint32]int64
	lacked    map[uint32]int64
	behind    map[uint32]int64
	stacks    map[uint32]*Amount
	through   map[uint32]int64
	holders   map[uint32]int64
	works     map[uint32]*Amount
}

// Stacks is where an account's time passed, by stack.
func (c *Column) Stacks(account uint32) map[uint32]*Amount {
	if s := c.sums[account]; s != nil {
		return s.stacks
	}
	return nil
}

// Each calls f with the accounts that occur, each with its time and its stacks, in the order of
// their numbers.
func (c *Column) Each(f func(k Key, ns int64, stacks map[uint32]*Amount)) {
	for _, s := range c.sums {
		if s != nil {
			f(s.key, s.ns, s.stacks)
		}
	}
}

// column adds up units.
func (b *Books) column(list []*Kept, entries map[string]bool) *Column {
	c := &Column{
		requests: len(list), sums: make([]*sum, len(b.accounts.keys)), entries: entries,
		onCPU: map[*Group]int64{}, Locks: map[uint32]map[uint32]int64{}, STW: map[uint32]*Amount{},
		Sweeps: map[uint32]int64{}, Barriers: map[uint32]int64{},
	}
	for _, k := range list {
		c.add(k, b.accounts.keys)
	}
	c.separate(list)
	return c
}

// add adds a unit: to the accounts, and to the tables of locks, pauses, sweeps and barriers.
func (c *Column) add(k *Kept, keys []Key) {
	c.wall += k.Wall()
	var largest *sum
	var most int64
	paused := map[uint32]bool{} // stop-the-worlds that this unit was counted for
	for _, f := range k.facts {
		s := c.sums[f.account]
		if s == nil {
			s = &sum{key: keys[f.account]}
			c.sums[f.account] = s
		}
		ns := f.ns()
		switch f.kind() {
		case FactNS:
			s.ns += ns
			s.requests++
			if s.key.Leaf == LeafOnCPU {
				c.onCPU[k.Group] += ns
			}
			if ns > most {
				largest, most = s, ns
			}
		case FactLock:
			c.Locks[f.ref] = addTo(c.Locks[f.ref], f.account, ns)
		case FactSTW:
			x := amountOf(c.STW, f.ref)
			x.NS += ns
			if !paused[f.ref] {
				paused[f.ref] = true
				x.N++
			}
		case FactSweep:
			c.Sweeps[f.ref] += ns
		case FactBarrier:
			c.Barriers[f.ref] += ns
		default:
			s.add(f)
			if f.kind() == FactSilence {
				c.Silence += ns
			}
		}
	}
	if largest != nil {
		largest.largest++
	}
}

// add adds a fact about the account alone.
func (s *sum) add(f fact) {
	ns := f.ns()
	switch f.kind() {
	case FactActor:
		s.actors = addRef(s.actors, f.ref)
	case FactHold:
		s.holds = addRef(s.holds, f.ref)
	case FactStack, FactStackN:
		if s.stacks == nil {
			s.stacks = map[uint32]*Amount{}
		}
		if x := amountOf(s.stacks, f.ref); f.kind() == FactStack {
			x.NS += ns
		} else {
			x.N += ns
		}
	case FactWork, FactWorkN:
		if s.works == nil {
			s.works = map[uint32]*Amount{}
		}
		addWork(s.works, f)
	case FactThrough:
		s.through = addTo(s.through, f.ref, ns)
	case FactOccupant:
		s.occupants = addTo(s.occupants, f.ref, ns)
	case FactLacked:
		s.lacked = addTo(s.lacked, f.ref, ns)
	case FactHolder:
		s.holders = addTo(s.holders, f.ref, ns)
	case FactBehind:
		s.behind = addTo(s.behind, f.ref, ns)
	case FactQueue:
		s.queue = max(s.queue, ns)
	default:
		s.tag(f.kind(), ns)
	}
}

// addTo adds to m, which it makes where it is nil.
func addTo(m map[uint32]int64, ref uint32, ns int64) map[uint32]int64 {
	if m == nil {
		m = map[uint32]int64{}
	}
	m[ref] += ns
	return m
}

// addRef puts ref into m, which it makes where it is nil.
func addRef(m map[uint32]bool, ref uint32) map[uint32]bool {
	if m == nil {
		m = map[uint32]bool{}
	}
	m[ref] = true
	return m
}

// amountOf is m's amount for ref, which it makes where there is none.
func amountOf(m map[uint32]*Amount, ref uint32) *Amount {
	x := m[ref]
	if x == nil {
		x = &Amount{}
		m[ref] = x
	}
	return x
}

// tag adds to a part of the account's time that has a property.
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
	case FactInterpreter:
		t.InterpreterNS += ns
	case FactSafepoint:
		t.SafepointNS += ns
	case FactReaching:
		t.ReachingNS += ns
	case FactMonitor:
		t.MonitorNS += ns
	case FactEnough:
		t.EnoughNS += ns
	case FactSlices:
		t.Slices += ns
	case FactGCSlices:
		t.GCSlices += ns
	}
}
