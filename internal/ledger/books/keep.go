package books

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/whystall/whystall/internal/request"
)

// Who is explained. Only at the end is it known who is slow; explaining must happen when an activation ends. So
// those are explained and kept that are among the slowest 2 % (1.25 % when they are very many), at least 600, of their
// group up to then, thinned out as that moves, and a sample of the others: in each octave of own running time those with the smallest hashes.

const (
	maxKept     = 14 << 20 // bytes of facts
	PerStratum  = 24
	Strata      = 48
	alwaysBelow = 600 // the slowest so many that a group has had are always kept
	maxGroups   = 1 << 14
)

// kept is an explained activation.
type Kept struct {
	Begin, End int64
	Running    int64 // running
	Number     int64
	Hash       uint64
	Group      *Group
	facts      []fact
	Name       request.NameID
	Limited    bool
	slow       bool
}

func (k *Kept) Wall() int64 { return k.End - k.Begin }

func (k *Kept) size() int { return 96 + 16*len(k.facts) }

// slower orders by wall, longest first.
func slower(a, b *Kept) int {
	return cmp.Or(cmp.Compare(b.Wall(), a.Wall()), cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.Number, b.Number))
}

// group is what is known of the activations of one request.GroupID.
type Group struct {
	count  int64
	gone   int64 // whose goroutine was not there any more
	sum    int64 // of wall
	max    int64
	over   int64 // at least Options.SlowOver
	hist   Histogram
	thr    int64 // below it nobody is a candidate
	hot    int64 // from it on it is worth asking who ran instead
	cands  []*Kept
	walls  []int64         // of cands, so that thinning does not look at each
	others [Strata][]*Kept // by hash, smallest first
	floor  int64           // raised for lack of room

	All All
}

func (g *Group) Tally(wall int64) {
	g.count++
	g.sum += wall
	g.max = max(g.max, wall)
	g.hist.Add(wall)
}

// lose counts a unit whose story is not there any more.
func (g *Group) Lose() { g.gone++ }

// isHot reports whether a unit of that length is so slow that it is worth asking who ran instead.
func (g *Group) IsHot(wall int64) bool { return wall >= g.hot }

// fits reports whether a unit of that length is kept as one of the slow, by what has been given up for lack of room.
func (g *Group) Fits(wall int64) bool { return wall >= g.floor }

// settle is called when all units of the group are counted. It returns the length from which on a unit may be slow, and how many
// there are at most.
func (g *Group) Settle(slowOver int64) (least, most int64) {
	most = g.slowest() + atLeast
	g.thr = slowOver
	if slowOver <= 0 {
		g.thr = g.hist.least(most)
	}
	return g.thr, most
}

// slowest is how many are slow, unless told what is.
func (g *Group) slowest() int64 { return (g.count + 50) / 100 }

func (g *Group) Add(wall int64) {
	g.Tally(wall)
	if g.count > alwaysBelow && g.count%64 == 0 {
		n := float64(g.count)
		share := 0.02
		if g.count > 50_000 {
			share = 0.0125 // what it is moves little by then
		}
		q := g.hist.quantiles([3]float64{0.99, 1 - max(0.015, alwaysBelow/2/n), 1 - max(share, alwaysBelow/n)})
		g.hot = min(q[0]*4/5, q[1])
		g.thr = max(g.floor, q[2])
	}
}

// candidate tells whether an activation may turn out to be slow.
func (g *Group) Candidate(wall, slowOver int64) bool {
	if slowOver > 0 {
		if wall >= slowOver {
			g.over++
		}
		return wall >= max(slowOver, g.floor)
	}
	return wall >= g.thr
}

func (g *Group) keep(k *Kept) (bytes int) {
	g.cands, g.walls = append(g.cands, k), append(g.walls, k.Wall())
	bytes = k.size()
	if n := len(g.cands); n >= 2*alwaysBelow && n%64 == 0 {
		bytes -= g.thin(max(g.thr, 0))
	}
	return bytes
}

// thin drops candidates below thr.
func (g *Group) thin(thr int64) (bytes int) {
	n := 0
	for i, wall := range g.walls {
		if wall < thr {
			bytes += g.cands[i].size()
			continue
		}
		if i != n {
			g.cands[n], g.walls[n] = g.cands[i], wall
		}
		n++
	}
	clear(g.cands[n:])
	g.cands, g.walls = g.cands[:n], g.walls[:n]
	return bytes
}

func isUnknown(list []request.Group, id int) bool {
	return id < len(list) && (list[id].Kind == request.KindLoop || list[id].Kind == request.KindGoroutine)
}

// halve drops the faster half of the candidates.
func (g *Group) halve() (bytes int) {
	slices.SortFunc(g.cands, slower)
	n := len(g.cands) / 2
	g.floor = max(g.floor, g.cands[n-1].Wall())
	g.thr = max(g.thr, g.floor)
	for _, k := range g.cands[n:] {
		bytes += k.size()
	}
	clear(g.cands[n:])
	g.cands, g.walls = g.cands[:n], g.walls[:n]
	for i, k := range g.cands {
		g.walls[i] = k.Wall()
	}
	return bytes
}

func Stratum(own int64) int { return min(bits.Len64(uint64(max(own, 0))), Strata-1) }

// wants tells whether the sample of others has room.
func (g *Group) Wants(own int64, hash uint64) bool {
	s := g.others[Stratum(own)]
	return len(s) < PerStratum || hash < s[len(s)-1].Hash
}

func (g *Group) sample(k *Kept) (bytes int) {
	s := &g.others[Stratum(k.Running)]
	i, _ := slices.BinarySearchFunc(*s, k.Hash, func(a *Kept, h uint64) int { return cmp.Compare(a.Hash, h) })
	*s = slices.Insert(*s, i, k)
	bytes = k.size()
	if len(*s) > PerStratum {
		bytes -= (*s)[PerStratum].size()
		(*s)[PerStratum] = nil
		*s = (*s)[:PerStratum]
	}
	return bytes
}

// allColumn adds up every activation of a group by its own states.
type All struct {
	Wall  int64
	t     table
	times []int64
	plain [leaves]uint32 // by leaf, of the goroutine's own time without a stack: index in ns, plus one
}

func (c *All) Add(class Class, leaf Leaf, stack uint32, ns int64) {
	c.Book(class, leaf, stack, 0, ns)
}

// book adds time of a leaf. Stack is where the request's wait or call stands, detail as in account.
func (c *All) Book(class Class, leaf Leaf, stack, detail uint32, ns int64) {
	isPlain := class == ClassOwn && stack == 0 && detail == 0
	if isPlain && c.plain[leaf] != 0 {
		c.times[c.plain[leaf]-1] += ns
		return
	}
	n, isNew := c.t.get(uint64(class)<<8|uint64(leaf), uint64(detail)<<32|uint64(stack))
	if isNew {
		c.times = append(c.times, 0)
	}
	c.times[n] += ns
	if isPlain {
		c.plain[leaf] = n + 1
	}
}
