package ledger

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime/metrics"
	"time"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/ledger/thread"
	"github.com/whystall/whystall/internal/oncpu"
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/timeline"
)

// One pass, in steps:
//   1. The finder looks at a bounded part at the start of the trace to learn what its loops are.
//   2. Each event goes to the finder, which may report activations that ended, and then to the
//      timeline.
//   3. Each activation that ended is added to the column of all by its own states (own.go). If it
//      may be printed, because it is slow in its group or in the sample of usual ones, the walk
//      explains it now (explain.go). The books keep what was found as a few facts.
//   4. At the end the books decide which requests are slow and which are usual, and add up the
//      columns.

// Options of Run. The zero value is right for most.
type Options struct {
	Entry    *regexp.Regexp // only groups whose entry function, or requests whose name, matches
	SlowOver int64          // ns: slow is what took at least as long; 0: the slowest 1 % of each group, at least 10 in all
	Bytes    int            // of history to keep; 0: 24 MiB
	Stories  bool           // tell slow requests, some of them in full; without it nothing of that is computed

	Kernel *sched.Timeline // what the kernel recorded of the same process; nil without it
	Set    *evidence.Set   // small readings beside it: quota, allowed CPUs; nil without them
}

// finder finds the units of work. It is a [request.Finder], and in tests a list written by hand.
type finder interface {
	Event(*exectrace.Event) []request.Activation
	Finish(end exectrace.Time) []request.Activation
	Groups() []request.Group
	Name(request.NameID) string
	Launchers() []string
}

// Run reads src once, after a look at its start, and accounts for it. What the trace lost is part
// of the result and no error. An error beside a result means that the trace ended early or, worse,
// that a sum is wrong.
func Run(ctx context.Context, src timeline.Source, o Options) (*account.Result, error) {
	src, clock := onKernelClock(src, o.Kernel)
	f := request.NewFinder(src, request.Options{Entry: o.Entry})
	f.Learn(src.Blocks())
	p := newPass(src, f, o)
	p.clock = clock
	return p.run(ctx)
}

// pass is the state of one pass.
type pass struct {
	o     Options
	src   timeline.Source
	tl    *timeline.Timeline
	f     finder
	locks locks
	x     explainer
	y     explainer // of the column of all: books a request's own states only
	j     *joiner   // nil without kernel records on the same clock
	books *books.Books
	who   []timeline.Occupant // scratch
	held  []heldNS            // likewise

	wrong error // the first sum that was wrong

	hops []int64 // when the activation was handed on, relative

	clock    *account.OldClock // of a trace before Go 1.22
	flight   capacity.Flight
	align    alignment
	ownGroup *books.Group // scratch of the column of all
	ownRan   int64

	// what the kernel's records add up to, whoever the requests are; another core adds it up
	// meanwhile
	sums    func() *account.Kernel
	works   *oncpu.Works // nil without kernel records
	instead bool         // the books want to know who ran while this activation could have
	tell    *teller      // nil: no stories are asked for
	curves  curves       // likewise empty
	look    func(*piece) // the teller and tests: sees every piece
	told    func()       // tests: an activation was explained
}

func newPass(src timeline.Source, f finder, o Options) *pass {
	to := timeline.Options{Bytes: o.Bytes}
	if f != nil { // nil: there is no trace
		to.Launchers = f.Launchers()
	}
	threads := o.Kernel != nil && namesThreads(src)
	to.Threads, to.Holds, to.Ps = threads, threads || o.Stories, o.Stories
	tl := timeline.New(src, to)
	p := &pass{o: o, src: src, tl: tl, f: f, locks: locks{tl: tl}}
	p.books = books.New(p, p, o.SlowOver, uint32(tl.Name("(others)")))
	p.x = explainer{tl: tl, locks: &p.locks, out: p.piece}
	if threads {
		p.j = newJoiner(o.Kernel, tl)
	} else if o.Kernel != nil {
		if shift, ok := sharedClock(src, o.Kernel); ok {
			p.j = newJoiner(o.Kernel, tl)
			p.j.whole, p.j.shift = true, shift
		}
	}
	if o.Stories {
		p.tell = newTeller(p)
		p.look = p.tell.piece
	}
	if p.j != nil {
		p.y = explainer{tl: tl, out: p.ownPiece}
	}
	return p
}

func (p *pass) run(ctx context.Context) (*account.Result, error) {
	began := time.Now()
	if p.o.Kernel != nil {
		p.works = oncpu.New(p.o.Kernel)
		p.sums = thread.Beside(p.o.Kernel, p.works, p.o.Set)
	}
	src, tl, f := p.src, p.tl, p.f
	var begin, end exectrace.Time
	var events int64
	heap := newHeapGauge()
	known, _ := f.(*request.Finder) // its calls are direct, and are not made for events that it does not need
	packed, _ := src.(batcher)
	err := func() error {
		if known != nil && packed != nil && p.j == nil {
			return p.batches(ctx, packed, known, func(at exectrace.Time, n int) {
				if events == 0 {
					begin = at
				}
				events += int64(n)
				end = max(end, at)
				heap.look()
				p.sample()
			})
		}
		for block := range src.Blocks() {
			if err := ctx.Err(); err != nil {
				return err
			}
			if len(block) == 0 {
				continue
			}
			if events == 0 {
				begin, end = block[0].Time, block[0].Time
				p.join(begin)
			}
			events += int64(len(block))
			for i := range block {
				ev := &block[i]
				if known == nil || request.Telling(ev) {
					var acts []request.Activation
					if known != nil {
						acts = known.Event(ev)
					} else {
						acts = f.Event(ev)
					}
					if len(acts) > 0 {
						p.ended(ev.Time, acts)
					}
				}
				tl.Apply(ev)
				if tl.Woken.Lock {
					p.locks.woken(&tl.Woken)
				}
				if p.j != nil {
					if !p.j.whole {
						p.align.event(p.j, ev)
					}
					if ev.Kind == exectrace.KindGoroutine && ev.To == exectrace.Runnable &&
						ev.From == exectrace.Waiting {
						p.j.woken(ev)
					}
				}
			}
			end = max(end, block[len(block)-1].Time)
			heap.look()
			p.sample()
		}
		return nil
	}()
	if err != nil {
		return nil, fmt.Errorf("account for trace: %w", err)
	}
	tl.Advance(end)
	for _, a := range f.Finish(end) {
		p.activation(&a)
	}
	r := p.result()
	r.Begin, r.End = int64(begin), int64(end)
	st := src.Stats()
	r.Reader = account.Reader{
		Format: int(src.Version()), Bytes: st.Bytes, Events: events, Generations: st.Generations, Repaired: st.Repaired,
		Experimental: st.Experimental, Visits: p.x.total, MaxHeap: heap.max, NS: time.Since(began).Nanoseconds(),
	}
	return r, errors.Join(src.Err(), p.wrong)
}

// heapGauge watches the size of the heap: the promise of bounded memory is one for the whole
// process.
type heapGauge struct {
	s   []metrics.Sample
	n   int
	max int64
}

func newHeapGauge() *heapGauge {
	return &heapGauge{s: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}}
}

func (h *heapGauge) look() {
	if h.n++; h.n%16 != 1 {
		return
	}
	metrics.Read(h.s)
	if h.s[0].Value.Kind() == metrics.KindUint64 {
		h.max = max(h.max, int64(h.s[0].Value.Uint64()))
	}
}

// join starts to join, if the trace's clock is the kernel's and the two recordings overlap.
func (p *pass) join(begin exectrace.Time) {
	if p.j == nil {
		return
	}
	if !p.src.Clock().Monotonic && !p.j.whole {
		p.j = nil
		return
	}
	p.tl.Advance(begin)
	p.j.start(p.tl.Abs(0) + p.j.shift)
	p.x.j, p.y.j = p.j, p.j
	if !p.j.whole {
		p.j.samples = oncpu.NewSamples(p.o.Kernel, p.works)
		p.books.Sampled(p.works)
	}
}

// activation takes a unit of work that ended.
func (p *pass) activation(a *request.Activation) {
	grp := p.books.Group(a.Group)
	if grp == nil || a.LeftOut != request.Kept {
		return
	}
	g := p.tl.Slot(a.Slot)
	b, e := p.tl.Rel(a.Begin), p.tl.Rel(a.End)
	e = min(e, p.tl.Now())
	if g == nil || p.tl.Identity(g.Ident).GoID != a.G || e < b {
		grp.Lose()
		return
	}
	p.hops = p.hops[:0]
	for _, at := range a.Hops {
		if at == 0 {
			break
		}
		p.hops = append(p.hops, p.tl.Rel(at))
	}
	own, b := p.own(grp, g, b, e, p.tl.Rel(a.PrevEnd))
	wall := e - b
	grp.Add(wall)
	p.books.Plot(grp, b, wall, int64(a.G))
	if p.j != nil {
		p.flight.Add(b, e)
	}

	h := books.Hash(uint64(a.G), uint64(b))
	cand := grp.Candidate(wall, p.o.SlowOver)
	other := grp.Wants(own, h)
	if !cand && !other {
		return
	}
	k := &books.Kept{Begin: b, End: e, Running: own, Number: int64(a.G), Name: a.Name, Hash: h, Group: grp}
	if p.tell != nil && cand {
		p.tell.start(k, g)
	}
	p.explain(k, g, p.tl.Rel(a.PrevEnd), cand && (grp.IsHot(wall) || p.o.SlowOver > 0))
	p.books.Keep(k, cand, other, p.f.Groups)
}

// explain fills in k's facts.
func (p *pass) explain(k *books.Kept, g *timeline.G, prevEnd int64, instead bool) {
	p.books.Facts().Reset()
	p.instead = instead
	p.x.hops = p.hops
	p.x.explain(g, k.Begin, k.End, prevEnd)
	k.Limited = p.x.limit
	sum := p.books.TakeFacts(k)
	if p.tell != nil {
		p.tell.end(k)
	}
	if p.wrong == nil && (sum != k.End-k.Begin || p.x.cursor != k.Begin && k.Begin != k.End) {
		p.wrong = fmt.Errorf("account for goroutine %d from %d ns: internal error: pieces add up to %d ns of %d", k.Number, k.Begin, sum, k.End-k.Begin)
	}
	if p.told != nil {
		p.told()
	}
}

// result adds everything up.
func (p *pass) result() *account.Result {
	r := &account.Result{Monotonic: p.src.Clock().Monotonic}
	for _, text := range p.src.Lacks() {
		r.Lacks = append(r.Lacks, account.Lack{Text: text, OffCPU: text == exectrace.LacksOffCPU})
	}
	if c := p.src.Clock(); c.Wall {
		r.Wall, r.WallOffset = true, c.WallNS-c.MonoNS
	}
	s := p.books.Ledgers(r, p.f.Groups())
	p.tables(r, s)
	p.capacity(r)
	p.kernel(r, s)
	p.series(r)
	if p.tell != nil {
		p.tell.write(r, s)
		r.Waits = p.waits(s)
		p.curves.write(r)
	}
	return r
}
