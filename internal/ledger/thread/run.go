package thread

import (
	"context"
	"fmt"
	"regexp"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/oncpu"
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/unit"
)

// The pass over native threads:
//
//  1. Package unit finds the units of work.
//  2. Each unit is added to the column of all, by its thread's own states (all.go).
//  3. The units that may be printed are picked (pick.go) and explained (explain.go).
//  4. The books add up the columns, as they do for goroutines.
//  5. The locks (locks.go) and the CPUs' unused time (unused.go) are added up beside them.

// Options of Run. The zero value is right for most.
type Options struct {
	Entry    *regexp.Regexp // only groups whose entry function, or units whose name, matches
	SlowOver int64          // ns: slow is what took at least as long; 0: the slowest 1 % of each group, at least 10 in all
	Stories  bool           // tell the slowest requests in full
	Set      *evidence.Set  // small readings beside the kernel's records: quota, allowed CPUs; nil without them
}

// Run accounts for a program of which only the kernel's records of its threads are known. An error
// with a result means that a sum is wrong.
func Run(ctx context.Context, k *sched.Timeline, o Options) (*account.Result, error) {
	return newPass(k, o).run(ctx)
}

// pass is the state of one pass over threads.
type pass struct {
	o       Options
	k       *sched.Timeline
	base    int64 // CLOCK_MONOTONIC of the books' 0
	books   *books.Books
	walk    *Walk
	units   *unit.Set
	turns   *turns
	words   *capacity.Words
	names   books.NameList // of actors, sites and details
	samples *oncpu.Samples

	actors  map[uint32]uint32 // by TID
	jvm     map[placeKey]sched.JVMWait
	napping map[uint32]sched.JVMWait // nil: not asked for yet
	// starter is the thread of the last piece, and reaching whether it waits for threads to reach a
	// safepoint.
	starter  uint32
	reaching bool
	sites    map[placeKey]*site
	usual    map[usualKey]usualPlace // nil: not asked for yet
	locks    map[uint64]uint32       // number of a lock by its address
	addrs    []uint64                // of locks, by number
	buf      []sched.Stretch

	explained *unit.Unit
	booked    int64 // ns of the explained unit that are in the books
	cursor    int64 // the pieces of the explained unit tile it up to here
	err       error // the first sum that was wrong
}

func newPass(k *sched.Timeline, o Options) *pass {
	t := &pass{
		o: o, k: k, walk: NewWalk(k), actors: map[uint32]uint32{}, locks: map[uint64]uint32{},
		sites: map[placeKey]*site{}, jvm: map[placeKey]sched.JVMWait{},
	}
	t.base, _ = k.Span()
	t.books = books.New(t, nil, o.SlowOver, t.names.Number("(others)"))
	t.samples = oncpu.NewSamples(k, oncpu.New(k))
	t.books.Sampled(t.samples.Works)
	t.words = capacity.NewWords(k, t.names.Number)
	t.units = unit.Find(k, request.Options{Entry: o.Entry})
	t.turns, t.walk.long = newTurns(t.walk, t.units), t.units.InLong
	return t
}

func (t *pass) run(ctx context.Context) (*account.Result, error) {
	sums := Beside(t.k, t.samples.Works, t.o.Set)
	begin, end := t.k.Span()
	running := make([]int64, len(t.units.Units))
	for i := range t.units.Units {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, fmt.Errorf("account for threads: %w", ctx.Err())
		}
		running[i] = t.addUnit(&t.units.Units[i])
	}
	for n, c := range t.pick(running) {
		if n%64 == 0 && ctx.Err() != nil {
			return nil, fmt.Errorf("account for threads: %w", ctx.Err())
		}
		t.keep(&t.units.Units[c.unit], running[c.unit], c)
	}
	r := &account.Result{Native: true, Monotonic: true, Begin: begin, End: end, Loop: account.Loop(t.units.Loop)}
	slow := t.books.Ledgers(r, t.units.Groups)
	if r.Requests.Count == 0 && t.units.Cause != "" {
		r.Requests.NoRequestsCause = t.units.Cause
	}
	t.lockTable(r, slow)
	r.Kernel = sums()
	waits, instead := t.lockWaits(r.Kernel)
	instead = append(instead, capacity.Waited(&r.All)...)
	account.SortInstead(instead)
	r.CPUs = capacity.CPUs(t.k, t.o.Set, append(t.flight(), waits...).Merge(), instead)
	capacity.AddSeries(r, t.o.Set, 0)
	if t.o.Stories {
		t.tell(r, slow)
	}
	return r, t.err
}

// flight is when units of the listed groups were under way.
func (t *pass) flight() (l capacity.Times) {
	for i := range t.units.Units {
		if u := &t.units.Units[i]; t.units.Groups[u.Group].Listed {
			l = append(l, capacity.Span{Lo: u.Begin, Hi: u.End})
		}
	}
	return l.Merge()
}

// Func is the name with a number. It and the next four are what the books ask: see books.Names.
func (t *pass) Func(id uint32) string { return t.names.Name(id) }

// Place is a place in the program. Places are names here.
func (t *pass) Place(stack uint32) account.Site { return account.Site{Func: t.names.Name(stack)} }

// SiteOf is the place itself.
func (t *pass) SiteOf(stack uint32, _ bool) uint32 { return stack }

// Behind is the thread that had a CPU.
func (t *pass) Behind(ref uint32) account.Instead { return t.words.Instead(ref) }

// Time is CLOCK_MONOTONIC.
func (t *pass) Time(at int64) int64 { return t.base + at }
