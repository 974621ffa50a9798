package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/ledger/thread"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/timeline"
)

// A stop-the-world is a path and no leaf. While a thread is awaited, the awaited thread explains
// the path; before and after that the initiator does. The parts that the walk of a thread finds
// (room thread) tile the path exactly. The phases are docs/join.md, "4. Anatomy of a
// stop-the-world"; the rules are docs/join.md, "5. Who is to blame for a pause".

// path is one stop-the-world or barrier. Times are relative.
type path struct {
	n         uint32 // the number of a stop-the-world, or of a barrier in the list
	barrier   bool
	kind      exectrace.StringID
	kindName  string
	how       string // how it is known which thread was awaited
	begin     int64
	await     int64 // the initiator waits for the others
	stop      int64 // the awaited thread woke it
	start     int64 // the world starts again; of a barrier its end
	end       int64
	initiator uint32
	awaited   uint32
	byNote    bool
	parts     []part
	hops      []hop
	inferred  bool // a hop is inferred
	byGroup   bool // throttling is known by the group's count alone
	missing   int64
}

// hop is one event on a path, for the proof.
type hop struct {
	at, until int64
	text      string
}

const (
	maxHops     = 24
	hopShare    = 20 // the proof has a stretch that is this part of the path, or a ms
	namedPct    = 80 // grades: docs/join.md, "6. How sure"
	supportPct  = 50
	unknownPct  = 5
	mostPaths   = 1000
	mostDelayNS = 1e6
)

// paths has the paths that were looked at.
type paths struct {
	j        *joiner
	walk     *thread.Walk
	stws     map[uint32]*path
	barriers []*path            // in order, disjoint
	signals  map[uint32][]int64 // SIGURG, by the thread that it was sent to
	asked    bool               // the records have the sending of signals at all
}

func (p *paths) init(j *joiner) {
	p.j, p.stws, p.walk, p.signals = j, map[uint32]*path{}, thread.NewWalk(j.k), map[uint32][]int64{}
	b, e := j.k.Span()
	j.k.Events(b, e+1, func(e *sched.Event) bool {
		p.signals[e.Other] = append(p.signals[e.Other], e.Begin)
		return true
	}, kernel.Signal)
	p.asked = len(p.signals) > 0 || slices.Contains(j.k.Header().Recorded, kernel.SightPreemptionAsked)
	p.findBarriers()
}

// stw is the path of stop-the-world n.
func (p *paths) stw(n uint32) *path {
	if t := p.stws[n]; t != nil {
		return t
	}
	j := p.j
	list, base := j.tl.STWs()
	if n < base || int(n-base) >= len(list) {
		return nil
	}
	s := list[n-base]
	open := s.End == 0
	if open {
		s.End = j.tl.Now()
	}
	t := &path{n: n, kind: s.Kind}
	if s.Begin < j.begin || s.End > j.end || s.Thread == 0 || j.host(s.Thread) == 0 {
		// The runtime's word is all there is.
		t.begin, t.start, t.end = s.Begin, cmp.Or(s.Start, s.End), s.End
		t.parts = []part{{lo: s.Begin, hi: s.End, leaf: books.LeafOnCPU, on: true}}
	} else {
		pause := j.k.Pause(pauseRange(j.tl, j.k, &s))
		p.tell(t, &pause)
	}
	if !open { // one that is open changes once it has ended
		p.stws[n] = t
	}
	return t
}

// findBarriers lists the ragged barriers that the notes show.
func (p *paths) findBarriers() {
	for _, b := range p.j.k.Barriers() {
		t := &path{n: uint32(len(p.barriers)), barrier: true}
		if n := len(p.barriers); n > 0 { // a thread that comes back late from one may overlap with the next
			b.Begin = max(b.Begin, p.barriers[n-1].end+p.j.base)
		}
		if b.Begin < b.End {
			p.tell(t, &b)
			p.barriers = append(p.barriers, t)
		}
	}
}

// tell fills t in from the phases of a pause: the initiator's story, and the awaited thread's while
// the initiator waits for that one.
func (p *paths) tell(t *path, b *sched.Pause) {
	base := p.j.base
	t.kindName = b.Kind
	t.begin, t.end = b.Begin-base, b.End-base
	within := func(at, from int64) int64 { return min(max(at-base, from), t.end) }
	t.await = within(b.Await, t.begin)
	t.stop = within(b.Stopped, t.await)
	t.start = within(b.Starting, t.stop)
	if t.barrier {
		t.start = t.end
	}
	t.initiator, t.awaited, t.how = b.Initiator, b.Awaited, b.How
	t.byNote = b.Known == sched.KnownWake || b.Known == sched.KnownWaking
	for _, h := range b.Hops {
		text := h.What
		if h.TID != 0 {
			text = fmt.Sprintf("thread %d %s", h.TID, h.What)
		}
		t.hop(h.Time-base, h.Time-base, "%s (%s)", text, h.How)
	}
	p.thread(t, t.initiator, t.begin, t.await, "")
	if t.awaited != 0 {
		p.thread(t, t.awaited, t.await, t.stop, "awaited ")
	} else {
		p.thread(t, t.initiator, t.await, t.stop, "")
	}
	p.thread(t, t.initiator, t.stop, t.end, "")
	slices.SortStableFunc(t.hops, func(a, b hop) int { return cmp.Compare(a.at, b.at) })
}

func (t *path) hop(at, until int64, format string, args ...any) {
	if len(t.hops) < 4*maxHops {
		t.hops = append(t.hops, hop{at, until, fmt.Sprintf(format, args...)})
	}
}

// thread appends what kept tid in [lo,hi).
func (p *paths) thread(t *path, tid uint32, lo, hi int64, who string) {
	j := p.j
	if lo >= hi {
		return
	}
	if tid == 0 { // not in the records: the runtime's word is all
		t.parts = append(t.parts, part{lo: lo, hi: hi, leaf: books.LeafMissing})
		t.missing += hi - lo
		return
	}
	first := len(t.parts)
	take := func(q *thread.Piece) {
		b, e := q.Lo-j.base, q.Hi-j.base
		x := part{lo: b, hi: e, leaf: q.Leaf, measured: !q.State.Sampled}
		for _, h := range q.Hops {
			if h.Inferred {
				t.inferred, x.measured = true, false
			}
		}
		name := who + fmt.Sprintf("thread %d", q.TID)
		switch q.Leaf {
		case books.LeafOnCPU:
			x.on, x.tid = true, q.TID
		case books.LeafNoCPU:
			t.parts = j.byShares(t.parts, q.Shares, b, e)
			t.stretch(b, e, "%s: no CPU", name)
			return
		case books.LeafThrottled:
			x.measured = !q.State.ByGroup
			t.byGroup = t.byGroup || q.State.ByGroup
		case books.LeafAsleep:
			x.detail = j.slept(&q.State)
		case books.LeafMissing, books.LeafUnknown, books.LeafLimit:
			x.leaf, x.measured = books.LeafMissing, false
			t.missing += e - b
		}
		t.parts = append(t.parts, x)
		text := x.leaf.String()
		if x.leaf == books.LeafAsleep && x.detail != 0 {
			text += " in " + j.name(x.detail)
		}
		t.stretch(b, e, "%s: %s", name, text)
	}
	p.walk.Thread(tid, j.base+lo, j.base+hi, take)
	if who != "" {
		p.preemptible(t, tid, first, lo, hi)
	}
}

// stretch adds a stretch to the proof if it matters.
func (t *path) stretch(lo, hi int64, format string, args ...any) {
	if ns := hi - lo; ns*hopShare >= t.end-t.begin || ns >= mostDelayNS {
		t.hop(lo, hi, format, args...)
	}
}

// askedBeforeNS is how long before its sleep, at most, the initiator asks the others to stop.
const askedBeforeNS = 1e6

// preemptible finds out why an awaited thread that was on a CPU did not stop. The parts from first
// on are that thread's. Either the thread was on a CPU long after it got the signal that asks it to
// stop, or no signal was sent. A function is named where most samples agree.
func (p *paths) preemptible(t *path, tid uint32, first int, lo, hi int64) {
	j := p.j
	onAfter := func(at int64) (on int64) {
		for _, q := range t.parts[first:] {
			if q.on && q.tid == tid {
				on += max(0, q.hi-max(q.lo, at))
			}
		}
		return on
	}
	matters := func(on int64) bool { return on >= mostDelayNS || on >= mostDelayNS/10 && on*hopShare >= hi-lo }
	if !p.asked || !matters(onAfter(lo)) {
		return
	}
	from := j.base + lo - askedBeforeNS
	l := p.signals[tid]
	sent := 0
	for i, _ := slices.BinarySearch(l, from); i < len(l) && l[i] < j.base+hi; i++ {
		sent++
	}
	delivered, told := 0, hi
	where := map[string]int{}
	best, total := "", 0
	j.k.EventsOf(tid, from, j.base+hi, func(e *sched.Event) bool {
		switch {
		case e.Kind == kernel.Delivered:
			delivered++
			told = min(told, max(lo, e.Begin-j.base))
		case e.Begin >= j.base+lo:
			total++
			if f := sched.PlaceOf(j.k, e.User); f.Func != "" {
				if where[f.Func]++; where[f.Func] > where[best] || where[f.Func] == where[best] && f.Func < best {
					best = f.Func
				}
			}
		}
		return true
	}, kernel.Sample, kernel.Delivered)
	what := ""
	switch {
	case delivered > 0 && matters(onAfter(told)):
		what = "not preemptible"
	case sent == 0 && delivered == 0:
		what, told = "on CPU (no signal sent)", lo
	default:
		return
	}
	said := fmt.Sprintf("%d signals sent, %d delivered", sent, delivered)
	agreed := where[best]*2 > total
	if agreed {
		what += " in " + best
		said += fmt.Sprintf("; %d of %d samples", where[best], total)
	}
	t.hop(told, hi, "awaited thread %d: %s: %s", tid, what, said)
	id := timeline.FuncID(j.words.Detail(what))
	for i := first; i < len(t.parts); i++ {
		if q := &t.parts[i]; q.on && q.tid == tid && q.hi > told {
			q.detail, q.named = id, delivered > 0 || agreed
		}
	}
}

// cut appends the path's parts within [lo,hi), which it covers.
func (t *path) cut(dst []part, lo, hi int64) []part {
	i := sort.Search(len(t.parts), func(i int) bool { return t.parts[i].hi > lo })
	at := lo
	for ; i < len(t.parts) && t.parts[i].lo < hi; i++ {
		q := t.parts[i]
		q.lo, q.hi = max(q.lo, at), min(q.hi, hi)
		if q.lo > at {
			dst = append(dst, part{lo: at, hi: q.lo, leaf: books.LeafMissing})
		}
		at = q.hi
		dst = append(dst, q)
	}
	if at < hi {
		dst = append(dst, part{lo: at, hi: hi, leaf: books.LeafMissing})
	}
	return dst
}

// stopped returns the latest stretch of [lo,hi) in which the world was being stopped or was
// stopped, with its path.
func (p *paths) stopped(lo, hi int64) (t *path, b, e int64, ok bool) {
	for hi > lo {
		b, e, n, ok := p.j.tl.Stopped(lo, hi)
		if !ok {
			return nil, 0, 0, false
		}
		t := p.stw(n)
		if t == nil {
			return nil, 0, 0, false
		}
		if e = min(e, t.start); b < e {
			return t, b, e, true
		}
		hi = b
	}
	return nil, 0, 0, false
}

// of returns the latest stretch of [lo,hi) in which thread tid was the initiator of a path and
// waited for it. stw means that the goroutine stops the world.
func (p *paths) of(tid uint32, lo, hi int64, stw bool) (t *path, b, e int64, ok bool) {
	if stw {
		if n, found := p.j.tl.STWBefore(lo, hi); found {
			if t = p.stw(n); t != nil && t.initiator == tid {
				if b, e = max(lo, t.begin), min(hi, t.start); b < e {
					return t, b, e, true
				}
			}
		}
	}
	for {
		if t, b, e, ok = p.barrier(lo, hi); !ok || t.initiator == tid {
			return t, b, e, ok
		}
		hi = b
	}
}

// barrier returns the latest stretch of [lo,hi) in a ragged barrier.
func (p *paths) barrier(lo, hi int64) (t *path, b, e int64, ok bool) {
	if len(p.barriers) == 0 || hi <= lo {
		return nil, 0, 0, false
	}
	i := sort.Search(len(p.barriers), func(i int) bool { return p.barriers[i].begin >= hi }) - 1
	if i < 0 || p.barriers[i].end <= lo {
		return nil, 0, 0, false
	}
	t = p.barriers[i]
	b, e = max(lo, t.begin), min(hi, t.end)
	return t, b, e, b < e
}

// pauseRange puts a stop-the-world of the trace that has ended on the kernel's clock.
func pauseRange(t *timeline.Timeline, k *sched.Timeline, s *timeline.STW) sched.PauseRange {
	r := sched.PauseRange{
		Begin: t.Abs(s.Begin), End: t.Abs(s.End), Kind: t.Word(s.Kind),
		Initiator: k.FromNS(s.Thread), Start: t.Abs(s.Start),
	}
	if s.LastStop != 0 {
		r.LastStop, r.LastThread = t.Abs(s.LastStop), k.FromNS(s.AwaitedThread)
	}
	return r
}
