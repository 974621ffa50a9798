package books

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/whystall/whystall/internal/request"
)

// Which units are explained and kept. Who is slow is known only at the end, but a unit must be
// explained when it ends, while its story is still there. So two kinds are kept (docs/ledger.md,
// "11. One pass, bounded memory"):
//
//   - candidates: those among the slowest 2 % of their group so far, 1.25 % when there are very
//     many, and always the slowest 600. As that limit rises, candidates below it are dropped.
//   - a sample of the others: in each octave of running time those with the smallest hashes. It
//     does not depend on the order in which units end.
//
// An owner that knows all units before it explains any does better: it counts them (Tally, Draw),
// asks Settle for the final limit, and explains only those above it and those drawn.

const (
	maxKept     = 14 << 20 // bytes of facts
	octaves     = 48       // the last one has all that ran for 2^46 ns or more: 20 hours
	alwaysBelow = 600      // the slowest so many that a group has had are always kept
	maxGroups   = 1 << 14
	leastHalved = 32 // candidates that a group has at least to be asked for half of them
)

// PerOctave is how many units of each octave of running time are in a group's sample.
const PerOctave = 24

// Kept is a unit of work that was explained.
type Kept struct {
	Begin, End int64 // in the books' time
	Running    int64 // ns that its own goroutine or thread ran
	Number     int64 // of its goroutine or thread
	Hash       uint64
	Group      *Group
	Name       request.NameID // 0: none
	Limited    bool           // the walk met one of its limits
	Steps      []Step         // its chain in short; nil where no sketches are asked for

	facts []fact
	slow  bool // it turned out to be slow
}

// Wall is how long the unit took.
func (k *Kept) Wall() int64 { return k.End - k.Begin }

// size is about how many bytes the unit takes.
func (k *Kept) size() int { return 96 + 16*len(k.facts) }

// slower orders by wall time, longest first.
func slower(a, b *Kept) int {
	return cmp.Or(cmp.Compare(b.Wall(), a.Wall()), cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.Number, b.Number))
}

// Group is what is known of the units of one request.GroupID.
type Group struct {
	// All is the group's part of the column of all. The owner adds to it for every unit.
	All All

	count int64
	lost  int64 // units whose goroutine was not there any more
	max   int64 // the longest wall time
	over  int64 // units that took at least Options.SlowOver
	walls Histogram

	threshold int64 // a unit below it is no candidate
	hot       int64 // from it on it is worth asking who ran instead
	floor     int64 // units below it were given up for lack of room

	plot plot // when its units were

	candidates []*Kept
	lengths    []int64            // wall times of candidates, so that thinning does not look at each
	usual      [octaves][]*Kept   // the sample, by hash, smallest first
	draw       *[octaves][]uint64 // the hashes of the sample, where they are drawn before any is kept
}

// Tally counts a unit.
func (g *Group) Tally(wall int64) {
	g.count++
	g.max = max(g.max, wall)
	g.walls.Add(wall)
}

// Lose counts a unit whose story is not there any more.
func (g *Group) Lose() { g.lost++ }

// Add counts a unit and now and then moves the limits, for an owner that explains units as they
// end. Quantiles are dear, so they are asked for at every 64th unit. Slow in the end is 1 %. The
// limit of candidates is about twice as wide, since the slowest units so far may not be the slowest
// of all.
func (g *Group) Add(wall int64) {
	g.Tally(wall)
	if g.count > alwaysBelow && g.count%64 == 0 {
		n := float64(g.count)
		share := 0.02
		if g.count > 50_000 {
			share = 0.0125 // the quantile moves little by then
		}
		q := g.walls.quantiles([3]float64{0.99, 1 - max(0.015, alwaysBelow/2/n), 1 - max(share, alwaysBelow/n)})
		g.hot = min(q[0]*4/5, q[1])
		g.threshold = max(g.floor, q[2])
	}
}

// Candidate reports whether a unit may turn out to be slow. It also counts the units of at least
// slowOver, so it is to be called once for each unit.
func (g *Group) Candidate(wall, slowOver int64) bool {
	if slowOver > 0 {
		if wall >= slowOver {
			g.over++
		}
		return wall >= max(slowOver, g.floor)
	}
	return wall >= g.threshold
}

// IsHot reports whether a unit of that length is so slow that it is worth asking who ran instead.
// The answer costs more than the rest of the explanation.
func (g *Group) IsHot(wall int64) bool { return wall >= g.hot }

// Fits reports whether a unit of that length is still kept as a candidate: units that are shorter
// than some others were given up for lack of room.
func (g *Group) Fits(wall int64) bool { return wall >= g.floor }

// settle is Settle for one group.
func (g *Group) settle(slowOver int64) (least, most int64) {
	most = g.onePercent() + atLeast
	g.threshold = slowOver
	if slowOver <= 0 {
		g.threshold = g.walls.least(most)
	}
	return g.threshold, most
}

// onePercent is how many units are slow where nobody said which are.
func (g *Group) onePercent() int64 { return (g.count + 50) / 100 }

// keep takes a candidate and returns how many bytes more the group holds.
func (g *Group) keep(k *Kept) (bytes int) {
	g.candidates, g.lengths = append(g.candidates, k), append(g.lengths, k.Wall())
	bytes = k.size()
	if n := len(g.candidates); n >= 2*alwaysBelow && n%64 == 0 {
		bytes -= g.thin()
	}
	return bytes
}

// thin drops the candidates that are below the threshold by now. It returns the bytes that they
// took.
func (g *Group) thin() (bytes int) {
	n := 0
	for i, wall := range g.lengths {
		if wall < g.threshold {
			bytes += g.candidates[i].size()
			continue
		}
		if i != n {
			g.candidates[n], g.lengths[n] = g.candidates[i], wall
		}
		n++
	}
	clear(g.candidates[n:])
	g.candidates, g.lengths = g.candidates[:n], g.lengths[:n]
	return bytes
}

// halve drops the faster half of the candidates. It returns the bytes that they took.
func (g *Group) halve() (bytes int) {
	slices.SortFunc(g.candidates, slower)
	n := len(g.candidates) / 2
	g.floor = max(g.floor, g.candidates[n-1].Wall())
	g.threshold = max(g.threshold, g.floor)
	for _, k := range g.candidates[n:] {
		bytes += k.size()
	}
	clear(g.candidates[n:])
	g.candidates, g.lengths = g.candidates[:n], g.lengths[:n]
	for i, k := range g.candidates {
		g.lengths[i] = k.Wall()
	}
	return bytes
}

// size is how many bytes the candidates and the sample take.
func (g *Group) size() (candidates, usual int) {
	for _, k := range g.candidates {
		candidates += k.size()
	}
	for _, s := range g.usual {
		for _, k := range s {
			usual += k.size()
		}
	}
	return candidates, usual
}

// octave is the part of the sample that a unit with that running time belongs to. By octaves, since
// a slow unit is compared with usual ones that ran about as long: the sample must have some of
// each.
func octave(running int64) int { return min(bits.Len64(uint64(max(running, 0))), octaves-1) }

// Wants reports whether the sample has room for a unit.
func (g *Group) Wants(running int64, hash uint64) bool {
	s := g.usual[octave(running)]
	return len(s) < PerOctave || hash < s[len(s)-1].Hash
}

// sample takes a unit that the sample wants and returns how many bytes more the group holds.
func (g *Group) sample(k *Kept) (bytes int) {
	s := &g.usual[octave(k.Running)]
	i, _ := slices.BinarySearchFunc(*s, k.Hash, func(a *Kept, h uint64) int { return cmp.Compare(a.Hash, h) })
	*s = slices.Insert(*s, i, k)
	bytes = k.size()
	if len(*s) > PerOctave {
		bytes -= (*s)[PerOctave].size()
		(*s)[PerOctave] = nil
		*s = (*s)[:PerOctave]
	}
	return bytes
}

// thinSample leaves two units of each octave. It returns the bytes that the others took.
func (g *Group) thinSample() (bytes int) {
	for i := range g.usual {
		for len(g.usual[i]) > 2 {
			n := len(g.usual[i]) - 1
			bytes += g.usual[i][n].size()
			g.usual[i][n] = nil
			g.usual[i] = g.usual[i][:n]
		}
	}
	return bytes
}

// sampled lists the sample by running time, without the units that turned out to be slow.
func (g *Group) sampled() []*Kept {
	var l []*Kept
	for _, s := range g.usual {
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

// Draw puts a unit into the draw for the sample. Only hashes are remembered.
func (g *Group) Draw(running int64, hash uint64) {
	if g.draw == nil {
		g.draw = new([octaves][]uint64)
	}
	if l := &g.draw[octave(running)]; len(*l) < PerOctave || hash < (*l)[len(*l)-1] {
		i, _ := slices.BinarySearch(*l, hash)
		*l = slices.Insert(*l, i, hash)
		*l = (*l)[:min(len(*l), PerOctave)]
	}
}

// Drawn reports whether a unit was drawn. All units of the group must have been put into the draw.
func (g *Group) Drawn(running int64, hash uint64) bool {
	l := g.draw[octave(running)]
	return hash <= l[len(l)-1]
}
