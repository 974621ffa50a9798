package oncpu

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/whystall/whystall/internal/account"
)

const (
	mostListed = 40 // works in a division; the rest is put together by kind
	mostSites  = 5  // of a work
	mostLate   = 5
)

// Sum adds up samples. The zero Sum is empty.
type Sum struct {
	parts map[uint32]part
	all   part
}

// part is samples and what they stand for.
type part struct {
	n  int64
	ns int64
	// square is the sum of the squares of what each stands for, in us: the number of samples of
	// equal weight that would have the same variance is the square of the sum by it.
	square uint64
}

func (p *part) add(q part) {
	p.n += q.n
	p.ns += q.ns
	p.square += min(q.square, math.MaxUint64-p.square)
}

// Add adds a sample that met a work and stands for ns.
func (s *Sum) Add(work uint32, ns int64) {
	if ns <= 0 {
		return
	}
	us := uint64(max(1, ns/1000))
	p := part{1, ns, us * us}
	if us >= 1<<32 {
		p.square = math.MaxUint64
	}
	s.put(work, p)
}

func (s *Sum) put(work uint32, p part) {
	if s.parts == nil {
		s.parts = map[uint32]part{}
	}
	of := s.parts[work]
	of.add(p)
	s.parts[work] = of
	s.all.add(p)
}

// Merge adds all samples of t.
func (s *Sum) Merge(t *Sum) {
	for work, p := range t.parts {
		s.put(work, p)
	}
}

// Samples is how many were added.
func (s *Sum) Samples() int64 { return s.all.n }

// Write divides ns by the samples. With fewer than account.LeastSamples it divides nothing, and
// without any it returns nil.
func (s *Sum) Write(works *Works, ns int64) *account.OnCPU {
	if s.all.n == 0 || ns <= 0 {
		return nil
	}
	o := &account.OnCPU{NS: ns, Samples: s.all.n, SampledNS: s.all.ns}
	if s.all.n < account.LeastSamples {
		return o
	}
	if rest := works.unseenOf(s, ns); rest.ns > 0 {
		whole := Sum{}
		whole.Merge(s)
		whole.put(works.unseen, rest)
		s = &whole
	}
	o.Effective = s.effective()
	l := s.lines(works)
	weights := make([]int64, len(l))
	for i := range l {
		weights[i] = l[i].ns
	}
	for i, ns := range shares(ns, weights) {
		w := account.Work{Kind: l[i].kind, Name: l[i].name, Samples: l[i].n, NS: ns,
			Sites: listed(l[i].sites, float64(ns)/float64(l[i].ns), mostSites)}
		w.Low, w.High = o.Interval(float64(l[i].ns) / float64(s.all.ns))
		if w.Kind == account.WorkUnknown {
			switch w.Name {
			case account.UnseenWork:
				w.Samples = 0
				o.Unseen += ns
			case account.UnnamedWork:
				o.Unseen += ns
			}
		}
		o.Works = append(o.Works, w)
	}
	for work, p := range s.parts {
		if works.Key(work).Leaf {
			o.Leaf += p.n
		}
	}
	o.Late = s.late(works, float64(ns)/float64(s.all.ns))
	return o
}

// unseenOf is what of ns passed in the kernel and has no samples: what the samples do not stand
// for, as if it had been sampled like the rest.
func (w *Works) unseenOf(s *Sum, ns int64) part {
	w.once.Do(w.read)
	if w.unseen == 0 || s.all.ns >= ns {
		return part{}
	}
	rest, one := ns-s.all.ns, max(1, s.all.ns/s.all.n)
	us := uint64(max(1, one/1000))
	return part{max(1, rest/one), rest, uint64(max(1, rest/one)) * min(us, 1<<20) * min(us, 1<<20)}
}

// effective is the number of samples of equal weight that would be as exact.
func (s *Sum) effective() float64 {
	us := float64(s.all.ns) / 1000
	return min(float64(s.all.n), us*us/float64(max(1, s.all.square)))
}

// line is a work of the division.
type line struct {
	kind account.WorkKind
	name string
	part
	sites map[account.Site]part
}

// lines puts the works of one kind and name together, the largest first. Beyond mostListed there
// is one more line for the rest of each kind.
func (s *Sum) lines(works *Works) []*line {
	type id struct {
		kind account.WorkKind
		name string
	}
	by := map[id]*line{}
	put := func(to map[id]*line, k id) *line {
		x := to[k]
		if x == nil {
			x = &line{kind: k.kind, name: k.name, sites: map[account.Site]part{}}
			to[k] = x
		}
		return x
	}
	for work, p := range s.parts {
		key := works.Key(work)
		x := put(by, id{key.Kind, key.Name})
		x.add(p)
		if key.Site.Func != "" {
			at := x.sites[key.Site]
			at.add(p)
			x.sites[key.Site] = at
		}
	}
	l := ordered(by)
	if len(l) <= mostListed {
		return l
	}
	rest := map[id]*line{}
	for _, x := range l[mostListed:] {
		put(rest, id{x.kind, account.OtherWorks}).add(x.part)
	}
	l = append(l[:mostListed:mostListed], ordered(rest)...)
	slices.SortFunc(l, compare)
	return l
}

func ordered[K comparable](by map[K]*line) []*line {
	l := make([]*line, 0, len(by))
	for _, x := range by {
		l = append(l, x)
	}
	slices.SortFunc(l, compare)
	return l
}

func compare(a, b *line) int {
	return cmp.Or(cmp.Compare(b.ns, a.ns), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
}

// listed gives the largest of sites, each with its estimate.
func listed(sites map[account.Site]part, scale float64, most int) []account.Site {
	l := make([]account.Site, 0, len(sites))
	for s, p := range sites {
		s.NS, s.N = int64(float64(p.ns)*scale), p.n
		l = append(l, s)
	}
	slices.SortFunc(l, func(a, b account.Site) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(b.N, a.N), cmp.Compare(a.Func, b.Func),
			cmp.Compare(a.File, b.File))
	})
	if len(l) == 0 {
		return nil
	}
	return l[:min(len(l), most)]
}

// late lists who enabled interrupts where samples waited for it.
func (s *Sum) late(works *Works, scale float64) []account.Site {
	by := map[account.Site]part{}
	for work, p := range s.parts {
		if late := works.Key(work).Late; late != "" {
			of := by[account.Site{Func: late}]
			of.add(p)
			by[account.Site{Func: late}] = of
		}
	}
	return listed(by, scale, mostLate)
}

// shares divides ns by weights, in whole nanoseconds that add up to it. What rounding leaves goes
// to the largest remainders. Weights are not negative, and one is above 0.
func shares(ns int64, weights []int64) []int64 {
	var sum uint64
	for _, w := range weights {
		sum += uint64(w)
	}
	out := make([]int64, len(weights))
	rest := make([]uint64, len(weights))
	order := make([]int, len(weights))
	left := ns
	for i, w := range weights {
		hi, lo := bits.Mul64(uint64(ns), uint64(w))
		q, r := bits.Div64(hi, lo, sum) // a weight is at most sum, and ns below 1<<63
		out[i], rest[i], order[i] = int64(q), r, i
		left -= out[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for _, i := range order[:left] {
		out[i]++
	}
	return out
}

// AddMany adds n samples that met a work and stand for ns together.
func (s *Sum) AddMany(work uint32, n, ns int64) {
	if n <= 0 || ns <= 0 {
		return
	}
	us := float64(ns) / 1000
	s.put(work, part{n, ns, squared(us * us / float64(n))})
}

// MergeAs adds all samples of t, which divide a time of, as samples of a part of it or of another
// time that is divided alike: ns. What they do not stand for is missing in the same share.
func (s *Sum) MergeAs(t *Sum, of, ns int64) {
	if of <= 0 {
		return
	}
	scale := float64(ns) / float64(of)
	for work, p := range t.parts {
		s.put(work, part{p.n, int64(float64(p.ns) * scale), squared(float64(p.square) * scale * scale)})
	}
}

// squared is a square sum in whole numbers, as far as they go.
func squared(us2 float64) uint64 {
	if us2 >= math.MaxUint64/2 {
		return math.MaxUint64
	}
	return uint64(us2)
}
