package ledger

import (
	"cmp"
	"slices"
	"strings"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/timeline"
)

const (
	leastSTW = 100e3 // ns
	mostSTWs = 1000
)

// tables fills in what is listed beside the columns.
func (p *pass) tables(r *account.Result, slow *books.Column) {
	p.stws(r, slow)
	p.gc(r)
	for _, s := range p.tl.Sweeps() {
		r.Sweeps = append(r.Sweeps, account.Sweep{
			Begin: p.tl.Abs(s.Begin), End: p.tl.Abs(s.End), Swept: s.Swept, Reclaimed: s.Reclaimed,
			Goroutine: int64(s.GoID), Site: p.site(s.Stack).Func, SlowNS: slow.Sweeps[s.N],
		})
	}
	p.lockTable(r, slow)
	q := p.tl.Silence
	r.Silences = account.Silences{N: q.N, NS: q.NS, FewNS: q.FewNS, Max: q.Max, SlowNS: slow.Silence}
	r.Sockets, r.Wakes = account.Moments(p.tl.Calls), account.Moments(p.tl.Wakes())
	p.naps(r)
	for _, g := range p.src.Gaps() {
		r.Gaps = append(r.Gaps, account.Gap{Begin: int64(g.Begin), End: int64(g.End), Reason: g.Reason})
	}
}

func (p *pass) stws(r *account.Result, slow *books.Column) {
	list, base := p.tl.STWs()
	for i, s := range list {
		end := s.End
		if end == 0 {
			end = p.tl.Now()
		}
		x := slow.STW[base+uint32(i)]
		if end-s.Begin < leastSTW && x == nil {
			continue
		}
		o := account.STW{
			Begin: p.tl.Abs(s.Begin), Start: p.tl.Abs(cmp.Or(s.Start, end)), End: p.tl.Abs(end),
			Kind:      p.src.String(s.Kind),
			Goroutine: int64(s.GoID), Initiator: p.tl.Func(s.Initiator), Awaited: p.tl.Func(s.Awaited),
		}
		if s.LastStop != 0 {
			o.LastStop = p.tl.Abs(s.LastStop)
		}
		o.Site, o.Ours = stwSite(p.src.Frames(nil, s.Stack))
		for _, f := range p.src.Frames(nil, s.AwaitedStack) {
			o.AwaitedStack = append(o.AwaitedStack, f.Func)
		}
		switch o.Kind {
		case account.StopStartTrace, account.StopStopTrace:
			o.Ours = true
		}
		if x != nil {
			o.SlowNS, o.SlowRequests = x.NS, int(x.N)
		}
		r.STWs = append(r.STWs, o)
	}
	slices.SortStableFunc(r.STWs, func(a, b account.STW) int { return cmp.Compare(b.End-b.Begin, a.End-a.Begin) })
	r.STWs = r.STWs[:min(len(r.STWs), mostSTWs)]
}

// stwSite is the function that had the world stopped, and whether that was to record this trace.
// Profiles are somebody else's: the recorder asks for none while it traces.
func stwSite(stack []exectrace.Frame) (site string, ours bool) {
	named := false
	for _, f := range stack {
		name := f.Func
		switch pkg, _, _ := strings.Cut(name, "."); {
		case pkg == "runtime":
		case pkg == "runtime/trace":
			ours = true
			fallthrough
		case pkg == "runtime/pprof", pkg == "runtime/debug":
			site = cmp.Or(site, name) // its caller says more
		case !named:
			site, named = name, true
		}
	}
	return site, ours
}

func (p *pass) gc(r *account.Result) {
	g := p.tl.GC()
	r.GC = account.GC{Cycles: g.Cycles, MarkNS: g.MarkNS, GoalMin: g.GoalMin, GoalMax: g.GoalMax, LiveMax: g.LiveMax,
		Marked: g.Marked, Goal: g.Goal, AssistNS: g.AssistNS}
	if wall := p.tl.Now(); wall > 0 {
		r.GC.PerSecond = float64(g.Cycles) / (float64(wall) / 1e9)
	}
	sum := func(m map[exectrace.StackID]*timeline.SiteSum) []account.Site {
		by := map[uint32]*books.Amount{}
		for id, s := range m {
			by[uint32(id)] = &books.Amount{NS: s.NS, N: s.N}
		}
		l := books.SitesBy(by, func(stack uint32) account.Site { return p.allocSite(exectrace.StackID(stack)) })
		slices.SortStableFunc(l,
			func(a, b account.Site) int { return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(b.N, a.N)) })
		return l
	}
	r.GC.AssistSites, r.GC.TriggerSites = sum(g.Assists), sum(g.Triggers)
	for id, s := range g.Triggers {
		for _, f := range p.src.Frames(nil, id) {
			if f.Func == "runtime.GC" || f.Func == "runtime/debug.freeOSMemory" {
				r.GC.Forced += s.N
				break
			}
		}
	}
	for _, o := range p.tl.RunningBy() {
		switch o.Holder {
		case timeline.HolderGCDedicated, timeline.HolderGCFractional:
			r.GC.DedicatedNS += o.NS
		case timeline.HolderGCIdle:
			r.GC.IdleNS += o.NS
		}
	}
}

// mostNaps is how many places are listed at which goroutines sleep for a moment.
const mostNaps = 5

func (p *pass) naps(r *account.Result) {
	n := &p.tl.Naps
	by := map[uint32]*books.Amount{}
	for stack, s := range n.Sites {
		by[uint32(stack)] = &books.Amount{NS: s.NS, N: s.N}
	}
	sites := books.SitesBy(by, p.Place)
	slices.SortStableFunc(sites, func(a, b account.Site) int { return cmp.Compare(b.N, a.N) })
	r.Naps = account.Naps{N: n.N, Wakes: n.Wakes, Sites: sites[:min(len(sites), mostNaps)]}
}

// lockTable adds up the locks that slow requests waited for, by class, and of the others those most
// waited for.
func (p *pass) lockTable(r *account.Result, slow *books.Column) {
	type row struct {
		class uint32
		ns    map[uint32]int64 // account -> ns
	}
	byClass := map[uint32]*row{}
	for site, accounts := range slow.Locks {
		c := p.locks.class(timeline.FuncID(site))
		x := byClass[c]
		if x == nil {
			x = &row{class: c, ns: map[uint32]int64{}}
			byClass[c] = x
		}
		for a, ns := range accounts {
			x.ns[a] += ns
		}
	}
	for c := range p.locks.classes {
		if k := &p.locks.classes[c]; byClass[uint32(c)] == nil && k.waits > 0 {
			byClass[uint32(c)] = &row{class: uint32(c)}
		}
	}
	for _, x := range byClass {
		k := &p.locks.classes[x.class]
		l := account.Lock{Waits: k.waits, WaitNS: k.waitNS, Handoffs: k.handoffs, MaxQueue: int(k.maxQueue)}
		for _, s := range k.sites {
			l.Sites = append(l.Sites, p.tl.Func(s))
		}
		slices.Sort(l.Sites)
		l.Stack = p.stackOf(k.stacks)
		sleeping := map[uint32]*books.Amount{}
		p.books.SumLock(&l, x.ns, books.LeafLockUnseen, func(a uint32, key books.Key) {
			if key.Leaf == books.LeafOnCPU || key.Class != books.ClassLock {
				return
			}
			for id, y := range slow.Stacks(a) {
				z := sleeping[id]
				if z == nil {
					z = &books.Amount{}
					sleeping[id] = z
				}
				z.NS += y.NS
				z.N += y.N
			}
		})
		l.Sleeping = books.SitesBy(sleeping, p.Place)
		r.Locks = append(r.Locks, l)
	}
	slices.SortFunc(r.Locks, func(a, b account.Lock) int {
		return cmp.Or(cmp.Compare(b.SlowNS, a.SlowNS), cmp.Compare(b.WaitNS, a.WaitNS),
			slices.Compare(a.Sites, b.Sites))
	})
	r.Locks = r.Locks[:min(len(r.Locks), books.MostLocks)]
}

// stackOf has the frames of the stack that waited most often.
func (p *pass) stackOf(stacks map[exectrace.StackID]int64) []account.Site {
	var best exectrace.StackID
	var most int64
	for id, n := range stacks {
		if n > most || n == most && id < best {
			best, most = id, n
		}
	}
	var l []account.Site
	for _, f := range p.src.Frames(nil, best) {
		l = append(l, account.Site{Func: f.Func, File: f.File, Line: f.Line})
	}
	return l
}

// capacity writes down what the Ps did. The parts add up to TotalNS by construction, and tests
// check it.
func (p *pass) capacity(r *account.Result) {
	c := p.tl.Capacity()
	r.Capacity = account.Capacity{
		Procs: p.tl.Procs(), WallNS: p.tl.Now(), TotalNS: c.Total, RunningNS: c.Running, GCNS: c.GC,
		SyscallNS: c.Syscall,
		StoppedNS: c.Stopped, IdleWorkNS: c.IdleWork, IdleNS: c.Idle, UnknownNS: c.Unknown, IdleGCNS: c.IdleGC,
	}
	r.Capacity.RunnableMax, r.Capacity.RunnableAvg = p.tl.Runnable()
	for _, o := range p.tl.RunningBy() {
		r.Capacity.Running = append(r.Capacity.Running, account.Site{Func: p.Occupant(o.Holder, nil).Who, NS: o.NS})
	}
	slices.SortFunc(r.Capacity.Running,
		func(a, b account.Site) int { return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Func, b.Func)) })
	r.Capacity.Running = r.Capacity.Running[:min(len(r.Capacity.Running), 20)]
}
