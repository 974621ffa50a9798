package exectrace

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ref "golang.org/x/exp/trace"
)

// The reference is golang.org/x/exp/trace. Both readers render each event as one canonical line.
// For each thread the lines must be the same in the same order, and the goroutines' totals must
// agree to the nanosecond.
//
// The two differ on purpose in this:
//
//   - The reference gives an event that does not come later than its predecessor the predecessor's
//     time and 1 ns more. With a tick of 1 the same is done to our times here. Then all are equal
//     to the nanosecond, which also holds the two to one order over all threads.
//   - Where threads may tie (a live trace, made-up cases), times are compared in whole ticks. A
//     thread may be preempted between an event and its record, so that more events than a tick has
//     ns had to come after it: then those ticks are compared as one.
//   - Experimental events are not handed out here, only counted.
//   - The reference calls a P in a syscall running; here its end says that it was in a syscall.
//   - Of a status event, the goroutine or P that wrote it, and what its M did, are not compared.
//   - The block of a coroutine switch has no reason there.

var seed = maphash.MakeSeed()

// tally is what is compared of one reader's events.
type tally struct {
	kinds    map[string]int
	totals   map[int64]*[5]int64 // by goroutine: ns by reference state
	lines    map[int64][]uint64  // by thread: hashes of the lines in order
	statuses map[string]int      // lines of status events
	printed  string              // the line asked for, when looking for a difference
	state    map[int64]stateSince

	refStacks map[ref.Stack]uint64
	ourStacks map[StackID]uint64
	last      int64
	tick      int64
	bumped    int64
	crowds    [][2]int64
}

type stateSince struct {
	s  int
	at int64
}

func newTally(tick int64) *tally {
	return &tally{
		kinds: map[string]int{}, totals: map[int64]*[5]int64{}, lines: map[int64][]uint64{},
		statuses: map[string]int{}, state: map[int64]stateSince{}, tick: tick,
		refStacks: map[ref.Stack]uint64{}, ourStacks: map[StackID]uint64{},
	}
}

// quantise gives the time in whole ticks, in ns.
func (y *tally) quantise(t int64) int64 {
	t = t / y.tick * y.tick
	for _, c := range y.crowds {
		if t >= c[0] && t <= c[1] {
			return c[0]
		}
	}
	return t
}

// crowds finds where the reference moved events by a tick or more, each 1 ns behind the one before.
func crowds(tb testing.TB, data []byte, tick int64) (all [][2]int64) {
	tb.Helper()
	r, err := ref.NewReader(bytes.NewReader(data))
	if err != nil {
		tb.Fatal(err)
	}
	var first, last int64
	for {
		ev, err := r.ReadEvent()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			tb.Fatalf("reference: %v", err)
		}
		t := int64(ev.Time())
		switch {
		case t > last+1:
			first = t / tick * tick
		case t-first < tick:
		case len(all) > 0 && all[len(all)-1][0] == first:
			all[len(all)-1][1] = t
		default:
			all = append(all, [2]int64{first, t})
		}
		last = t
	}
}

func (y *tally) line(m int64, wantM int64, wantI int, format string, args ...any) {
	l := fmt.Sprintf(format, args...)
	if m == wantM && len(y.lines[m]) == wantI {
		y.printed = l
	}
	y.lines[m] = append(y.lines[m], maphash.String(seed, l))
}

// move adds the time that g spent in its state. States: 1 runnable, 2 running, 3 waiting, 4
// syscall.
func (y *tally) move(g, t int64, to int) {
	t = y.quantise(t)
	if s, ok := y.state[g]; ok && s.s != 0 {
		if y.totals[g] == nil {
			y.totals[g] = new([5]int64)
		}
		y.totals[g][s.s] += t - s.at
	}
	y.state[g] = stateSince{to, t}
	if to == 0 {
		delete(y.state, g)
	}
}

func (y *tally) finish() {
	for g := range maps.Clone(y.state) {
		y.move(g, y.last, 0)
	}
}

func (y *tally) refStack(s ref.Stack) uint64 {
	if h, ok := y.refStacks[s]; ok {
		return h
	}
	var h maphash.Hash
	h.SetSeed(seed)
	for f := range s.Frames() {
		fmt.Fprintf(&h, "%x %s %s %d\n", f.PC, f.Func, f.File, f.Line)
	}
	y.refStacks[s] = h.Sum64()
	return h.Sum64()
}

func (y *tally) ourStack(t *Trace, id StackID) uint64 {
	if h, ok := y.ourStacks[id]; ok {
		return h
	}
	var h maphash.Hash
	h.SetSeed(seed)
	for _, f := range t.Frames(nil, id) {
		fmt.Fprintf(&h, "%x %s %s %d\n", f.PC, f.Func, f.File, f.Line)
	}
	y.ourStacks[id] = h.Sum64()
	return h.Sum64()
}

var refGoStates = map[ref.GoState]int{ref.GoRunnable: 1, ref.GoRunning: 2, ref.GoWaiting: 3, ref.GoSyscall: 4}

var ourStates = [...]int{Runnable: 1, Running: 2, Waiting: 3, Syscall: 4, Idle: 0}

// tallyReference reads data with the reference.
func tallyReference(tb testing.TB, data []byte, tick int64, crowds [][2]int64, wantM int64, wantI int) *tally {
	tb.Helper()
	y := newTally(tick)
	y.crowds = crowds
	r, err := ref.NewReader(bytes.NewReader(data))
	if err != nil {
		tb.Fatal(err)
	}
	for {
		ev, err := r.ReadEvent()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			tb.Fatalf("reference: %v", err)
		}
		y.reference(ev, wantM, wantI)
	}
	y.finish()
	return y
}

func (y *tally) reference(ev ref.Event, wantM int64, wantI int) {
	t := int64(ev.Time())
	y.last = y.quantise(t)
	m, p, g := int64(ev.Thread()), int64(ev.Proc()), int64(ev.Goroutine())
	put := func(format string, args ...any) {
		y.line(m, wantM, wantI, "%d P%d G%d "+format, append([]any{y.last, p, g}, args...)...)
	}
	kind := ev.Kind().String()
	switch ev.Kind() {
	case ref.EventExperimental:
		return
	case ref.EventSync:
	case ref.EventStateTransition:
		tr := ev.StateTransition()
		switch tr.Resource.Kind {
		case ref.ResourceGoroutine:
			kind = "goroutine"
			id := int64(tr.Resource.Goroutine())
			from, to := tr.Goroutine()
			y.move(id, t, refGoStates[to])
			if from == to || from == ref.GoUndetermined {
				y.statuses[fmt.Sprintf("%d G%d %s %x", y.last, id, to, y.refStack(ev.Stack()))]++
				break
			}
			stack := tr.Stack
			put("G%d %s->%s %q %x %x", id, from, to, tr.Reason, y.refStack(stack), y.refStack(ev.Stack()))
		case ref.ResourceProc:
			kind = "proc"
			id := int64(tr.Resource.Proc())
			from, to := tr.Proc()
			if from == to || from == ref.ProcUndetermined {
				y.statuses[fmt.Sprintf("%d P%d %s", y.last, id, to)]++
				break
			}
			put("P%d %s->%s", id, from, to)
		}
	case ref.EventMetric:
		x := ev.Metric()
		put("%s %d %x", x.Name, x.Value.Uint64(), y.refStack(ev.Stack()))
	case ref.EventLabel:
		put("label %s", ev.Label().Label)
	case ref.EventRangeBegin, ref.EventRangeActive, ref.EventRangeEnd:
		x := ev.Range()
		scope := int64(-1)
		switch x.Scope.Kind {
		case ref.ResourceGoroutine:
			scope = int64(x.Scope.Goroutine())
		case ref.ResourceProc:
			scope = int64(x.Scope.Proc())
		}
		put("%s %s %d %x", kind, x.Name, scope, y.refStack(ev.Stack()))
		if ev.Kind() == ref.EventRangeEnd {
			for _, a := range ev.RangeAttributes() {
				put("%d", a.Value.Uint64())
			}
		}
	case ref.EventStackSample:
		put("sample %x", y.refStack(ev.Stack()))
	case ref.EventTaskBegin, ref.EventTaskEnd:
		x := ev.Task()
		parent := uint64(x.Parent)
		if x.Parent == ref.NoTask {
			parent = 0
		}
		put("%s %d %d %s %x", kind, x.ID, parent, x.Type, y.refStack(ev.Stack()))
	case ref.EventRegionBegin, ref.EventRegionEnd:
		x := ev.Region()
		put("%s %d %s %x", kind, x.Task, x.Type, y.refStack(ev.Stack()))
	case ref.EventLog:
		x := ev.Log()
		put("log %d %s %s %x", x.Task, x.Category, x.Message, y.refStack(ev.Stack()))
	}
	y.kinds[kind]++
}

// tallyOurs reads data with this package.
func tallyOurs(tb testing.TB, tr *Trace, tick int64, crowds [][2]int64, wantM int64, wantI int) *tally {
	tb.Helper()
	y := newTally(tick)
	y.crowds = crowds
	for ev := range tr.Events() {
		y.ours(tr, ev, wantM, wantI)
	}
	if err := tr.Err(); err != nil {
		tb.Fatal(err)
	}
	y.finish()
	return y
}

var refStateNames = [...]string{
	Undetermined: "Undetermined", NotExist: "NotExist", Runnable: "Runnable", Running: "Running",
	Waiting: "Waiting", Syscall: "Syscall", Idle: "Idle",
}

var refRangeNames = [...]string{RangeGC: "GC concurrent mark phase", RangeAssist: "GC mark assist",
	RangeSweep: "GC incremental sweep"}

var refMetricNames = [...]string{
	MetricHeapLive: "/memory/classes/heap/objects:bytes", MetricHeapGoal: "/gc/heap/goal:bytes",
	MetricGOMAXPROCS: "/sched/gomaxprocs:threads",
}

// refReason is the word that the reference has for a reason.
func refReason(tr *Trace, ev *Event) string {
	switch ev.Reason {
	case ReasonOther:
		return tr.String(ev.Name)
	case ReasonTimeslice:
		return "preempted"
	case ReasonYield:
		return "runtime.Gosched"
	}
	for s, r := range reasons {
		if r == ev.Reason && r != ReasonYield && s != "coroutine" {
			return s
		}
	}
	return ""
}

func (y *tally) ours(tr *Trace, ev *Event, wantM int64, wantI int) {
	t := int64(ev.Time)
	if y.tick == 1 {
		// The reference's rule.
		t = max(t, y.bumped+1)
		y.bumped = t
	}
	y.last = y.quantise(t)
	put := func(format string, args ...any) {
		y.line(int64(ev.M), wantM, wantI, "%d P%d G%d "+format, append([]any{y.last, ev.P, ev.On}, args...)...)
	}
	kind := ""
	switch ev.Kind {
	case KindSync:
		kind = "Sync"
	case KindGoroutine:
		kind = "goroutine"
		y.move(int64(ev.G), t, ourStates[ev.To])
		if ev.Reason == ReasonStatus {
			y.statuses[fmt.Sprintf("%d G%d %s %x", y.last, ev.G, refStateNames[ev.To], y.ourStack(tr, ev.Stack))]++
			break
		}
		stack, at := ev.Stack, ev.Stack
		if ev.Reason == ReasonCreate || ev.Reason == ReasonUnblock {
			at = ev.OnStack
		}
		put("G%d %s->%s %q %x %x", ev.G, refStateNames[ev.From], refStateNames[ev.To],
			refReason(tr, ev), y.ourStack(tr, stack), y.ourStack(tr, at))
	case KindProc:
		kind = "proc"
		from, to := ev.From, ev.To
		if from == Syscall {
			from = Running
		}
		if to == Syscall {
			to = Running
		}
		if from == to || from == Undetermined {
			y.statuses[fmt.Sprintf("%d P%d %s", y.last, ev.Proc, refStateNames[to])]++
			break
		}
		put("P%d %s->%s", ev.Proc, refStateNames[from], refStateNames[to])
	case KindMetric:
		kind = "Metric"
		put("%s %d %x", refMetricNames[ev.Metric], ev.Arg[0], y.ourStack(tr, ev.Stack))
	case KindLabel:
		kind = "Label"
		put("label %s", tr.String(ev.Name))
	case KindRangeBegin, KindRangeActive, KindRangeEnd:
		kind = map[Kind]string{KindRangeBegin: "RangeBegin", KindRangeActive: "RangeActive",
			KindRangeEnd: "RangeEnd"}[ev.Kind]
		name, scope := "", int64(-1)
		switch ev.Range {
		case RangeSTW:
			name, scope = "stop-the-world ("+tr.String(ev.Name)+")", int64(ev.G)
		case RangeAssist:
			name, scope = refRangeNames[ev.Range], int64(ev.G)
		case RangeSweep:
			name, scope = refRangeNames[ev.Range], int64(ev.Proc)
		default:
			name = refRangeNames[ev.Range]
		}
		put("%s %s %d %x", kind, name, scope, y.ourStack(tr, ev.Stack))
		if ev.Kind == KindRangeEnd && ev.Range == RangeSweep {
			put("%d", ev.Arg[0])
			put("%d", ev.Arg[1])
		}
	case KindSample:
		kind = "StackSample"
		put("sample %x", y.ourStack(tr, ev.Stack))
	case KindTaskBegin, KindTaskEnd:
		kind = map[Kind]string{KindTaskBegin: "TaskBegin", KindTaskEnd: "TaskEnd"}[ev.Kind]
		put("%s %d %d %s %x", kind, ev.Arg[0], ev.Arg[1], tr.String(ev.Name), y.ourStack(tr, ev.Stack))
	case KindRegionBegin, KindRegionEnd:
		kind = map[Kind]string{KindRegionBegin: "RegionBegin", KindRegionEnd: "RegionEnd"}[ev.Kind]
		put("%s %d %s %x", kind, ev.Arg[0], tr.String(ev.Name), y.ourStack(tr, ev.Stack))
	case KindLog:
		kind = "Log"
		put("log %d %s %s %x", ev.Arg[0], tr.String(ev.Name), tr.String(StringID(ev.Arg[1])), y.ourStack(tr, ev.Stack))
	default:
		kind = fmt.Sprintf("kind %d", ev.Kind)
	}
	y.kinds[kind]++
}

// compareWithReference holds one trace of format 1.22 or later to the reference.
func compareWithReference(t *testing.T, data []byte, tick int64) {
	t.Helper()
	tr, err := FromBytes(data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var apart [][2]int64
	if tick > 1 {
		apart = crowds(t, data, tick)
		t.Logf("the reference moved events by a tick or more %d times", len(apart))
	}
	want, got := tallyReference(t, data, tick, apart, 0, -1), tallyOurs(t, tr, tick, apart, 0, -1)
	if !maps.Equal(want.kinds, got.kinds) {
		t.Errorf("events by kind: want %v, got %v", want.kinds, got.kinds)
	}
	if g := tr.Gaps(); len(g) > 0 {
		t.Errorf("%d gaps, the first: %+v", len(g), g[0])
	}
	if len(want.totals) != len(got.totals) {
		t.Errorf("want %d goroutines, got %d", len(want.totals), len(got.totals))
	}
	bad := 0
	for g, w := range want.totals {
		if x := got.totals[g]; x == nil || *x != *w {
			if bad++; bad < 4 {
				t.Errorf("goroutine %d: runnable, running, waiting, syscall ns: want %v, got %v", g, *w, x)
			}
		}
	}
	if !maps.Equal(want.statuses, got.statuses) {
		for l := range want.statuses {
			if got.statuses[l] == 0 {
				t.Errorf("%d statuses, got %d; missing: %s", len(want.statuses), len(got.statuses), l)
				break
			}
		}
	}
	ms := slices.Sorted(maps.Keys(want.lines))
	for _, m := range ms {
		w, g := want.lines[m], got.lines[m]
		for i := range max(len(w), len(g)) {
			if i < len(w) && i < len(g) && w[i] == g[i] {
				continue
			}
			a := tallyReference(t, data, tick, apart, m, i).printed
			b := tallyOurs(t, tr, tick, apart, m, i).printed
			t.Errorf("thread %d, event %d of %d (got %d):\nwant %s\ngot  %s", m, i, len(w), len(g), a, b)
			break
		}
	}
}

func TestReference(t *testing.T) {
	names, err := filepath.Glob("testdata/*.trace")
	if err != nil || len(names) == 0 {
		t.Fatal("no traces in testdata")
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := sniff(data); err != nil || v < 22 || testing.Short() && len(data) > shortBytes {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".trace"), func(t *testing.T) {
			compareWithReference(t, data, 1)
		})
	}
}

// TestReferenceFile compares the trace that EXECTRACE_TRACE names: it may be larger than what a
// repository holds.
func TestReferenceFile(t *testing.T) {
	name := os.Getenv("EXECTRACE_TRACE")
	if name == "" {
		t.Skip("EXECTRACE_TRACE names no trace")
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	compareWithReference(t, data, 1)
}
