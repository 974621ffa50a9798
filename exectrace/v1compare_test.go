package exectrace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"strings"
	"testing"

	ref "golang.org/x/exp/trace"
)

// v1Line is one event as both readers give it, without its time.
type v1Line struct {
	text string
	time int64
	back bool // from a syscall that did not block
}

// v1Streams are the events by actor. Within one the order is the same in both readers. Between two,
// events of one tick may stand either way.
type v1Streams map[string][]v1Line

const v1FakeP = 1_000_000 // the reference moves some events to Ps of its own making

// TestV1Reference holds formats 1.11 to 1.21 to golang.org/x/exp/trace, event by event. The
// reference differs from this reader in these ways, and in no other:
//
//   - It drops the first GOMAXPROCS.
//   - It puts an event that does not come after its predecessor 1 ns after it.
//   - A syscall that did not block ends 1 ns after its start. Here it takes no time, as in the
//     trace.
//   - It converts ticks to ns in floating point. Here the result is exact, rounded down.
//   - It takes the runtime's number of an M for a thread.
//   - It moves what timers, the network poller, syscalls and the GC did to invented Ps.
//
// The times are computed again by these rules, so each event's time is checked to the nanosecond.
func TestV1Reference(t *testing.T) {
	for _, name := range v1Fixtures {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile("testdata/" + name)
			if err != nil {
				t.Fatal(err)
			}
			if testing.Short() && len(data) > shortBytes/2 {
				t.Skip("4 s; without -short")
			}
			v1Compare(t, data)
		})
	}
}

// The odd ones are of testdata/odd: CPU samples, logs, stop-the-worlds of all kinds, many Ps, calls
// that block.
var v1Fixtures = []string{
	"odd-go1.13.15.trace", "odd-go1.20.14.trace", "odd-go1.21.13.trace",
	"srv-go1.13.15.trace", "srv-go1.16.15.trace", "srv-go1.20.14.trace", "srv-go1.21.13.trace",
}

func v1Compare(t *testing.T, data []byte) {
	tr, err := FromBytes(data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ours, n := v1Ours(t, tr)
	if len(tr.Gaps()) > 0 {
		t.Fatalf("gaps in a whole trace: %v", tr.Gaps())
	}
	r, err := ref.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	freq, last, bumped, m := tr.v1.freq, int64(-1), 0, 0
	// A goroutine's time by state, from either reader. Of the reference it is by the events' own
	// times.
	type totals [5]int64
	refTotals, ourTotals := map[string]*totals{}, map[string]*totals{}
	add := func(to map[string]*totals, key, from string, d int64) {
		if to[key] == nil {
			to[key] = new(totals)
		}
		for i, s := range []string{"Runnable", "Running", "Waiting", "Syscall"} {
			if strings.Contains(from, "->"+s+" ") {
				to[key][i] += d
			}
		}
	}
	type prior struct {
		text      string
		ref, ours int64
	}
	prev := map[string]prior{}
	rules := map[string]struct {
		back   int64
		floats int
	}{}
	for {
		ev, err := r.ReadEvent()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind() == ref.EventSync {
			continue
		}
		m++
		key, text := v1RefLine(t, ev)
		q := ours[key]
		if len(q) == 0 {
			t.Fatalf("event %d: the reference has %s: %s, here is none", m, key, text)
		}
		if q[0].text != text {
			t.Fatalf("event %d: %s:\nreference %s\nhere      %s", m, key, text, q[0].text)
		}
		want := v1FloatTime(q[0].time, freq)
		rule := rules[key]
		if want != q[0].time {
			rule.floats++
		}
		if q[0].back {
			want++
			rule.back++
		}
		rules[key] = rule
		if p := prev[key]; strings.HasPrefix(key, "goroutine") {
			if p.text != "" {
				add(refTotals, key, p.text, want-p.ref)
				add(ourTotals, key, p.text, q[0].time-p.ours)
			}
			prev[key] = prior{text, want, q[0].time}
		}
		if want <= last {
			want = last + 1
			bumped++
		}
		if got := int64(ev.Time()); got != want {
			t.Fatalf("event %d: %s: %s: the reference has time %d, by the rules it is %d, here %d",
				m, key, text, got, want, q[0].time)
		}
		last = want
		ours[key] = q[1:]
	}
	for key, q := range ours {
		if len(q) > 0 && key != "first" {
			t.Errorf("%d events more than the reference has: %s: %s", len(q), key, q[0].text)
		}
	}
	if n != m+1 || len(ours["first"]) != 1 {
		t.Errorf("%d events, the reference has %d and must have one less", n, m)
	}
	// With the moves undone, a goroutine's totals differ by two things: the ns of each syscall that
	// did not block, which is running time here, and what floating point rounds.
	floats := 0
	for key, a := range refTotals {
		b, r := ourTotals[key], rules[key]
		floats += r.floats
		for i, want := range [4]int64{0, -r.back, 0, r.back} {
			if d := a[i] - b[i] - want; d > int64(r.floats) || d < -int64(r.floats) {
				t.Errorf("%s: state %d: reference %d ns, here %d, of which %d by the rules", key, i, a[i], b[i], want)
			}
		}
	}
	t.Logf("%d events, %d goroutines; %d times moved by the reference, %d rounded otherwise", n,
		len(refTotals), bumped, floats)
}

// v1FloatTime is the reference's conversion of the tick whose exact time, rounded down, is ns.
func v1FloatTime(ns int64, freq uint64) int64 {
	hi, lo := bits.Mul64(uint64(ns), freq)
	d, rem := bits.Div64(hi, lo, 1e9)
	if rem > 0 {
		d++
	}
	return int64(float64(d) * (1e9 / float64(freq)))
}

func v1Funcs(frames []Frame) string {
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&b, "%x %s %s:%d;", f.PC, f.Func, f.File, f.Line)
	}
	return b.String()
}

func v1RefFuncs(s ref.Stack) string {
	var b strings.Builder
	for f := range s.Frames() {
		fmt.Fprintf(&b, "%x %s %s:%d;", f.PC, f.Func, f.File, f.Line)
	}
	return b.String()
}

func v1RefLine(t *testing.T, ev ref.Event) (key, text string) {
	p := int64(ev.Proc())
	if p >= v1FakeP {
		p = -1
	}
	g := int64(ev.Goroutine())
	at := v1RefFuncs(ev.Stack())
	switch ev.Kind() {
	case ref.EventStateTransition:
		tr := ev.StateTransition()
		if tr.Resource.Kind == ref.ResourceProc {
			from, to := tr.Proc()
			return fmt.Sprint("proc ", tr.Resource.Proc()), fmt.Sprintf("%s->%s", from, to)
		}
		from, to := tr.Goroutine()
		key = fmt.Sprint("goroutine ", tr.Resource.Goroutine())
		if from == ref.GoUndetermined {
			return key, fmt.Sprintf("%s->%s ", from, to)
		}
		on := ""
		if from == ref.GoWaiting || from == ref.GoNotExist {
			on = fmt.Sprintf("on G%d", g)
		}
		return key, fmt.Sprintf("%s->%s %q %s %s %s", from, to, tr.Reason, on, v1RefFuncs(tr.Stack), at)
	case ref.EventMetric:
		x := ev.Metric()
		return fmt.Sprint("metric ", x.Name, p), fmt.Sprintf("%d %s", x.Value.Uint64(), at)
	case ref.EventLabel:
		return fmt.Sprint("label ", g), ev.Label().Label
	case ref.EventRangeBegin, ref.EventRangeEnd:
		x := ev.Range()
		switch x.Scope.Kind {
		case ref.ResourceGoroutine:
			key = fmt.Sprint("range of G", x.Scope.Goroutine())
		case ref.ResourceProc:
			key = fmt.Sprint("range of P", x.Scope.Proc())
		default:
			key = "range"
		}
		text = fmt.Sprintf("%s %s %s", ev.Kind(), x.Name, at)
		if ev.Kind() == ref.EventRangeEnd {
			for _, a := range ev.RangeAttributes() {
				text += fmt.Sprint(" ", a.Value.Uint64())
			}
		}
		return key, text
	case ref.EventStackSample:
		return fmt.Sprint("sample ", g, " ", p), at
	case ref.EventTaskBegin:
		x := ev.Task()
		parent := uint64(x.Parent)
		if x.Parent == ref.NoTask {
			parent = 0
		}
		return fmt.Sprint("task ", x.ID), fmt.Sprintf("begin %d %s %d %s", parent, x.Type, g, at)
	case ref.EventTaskEnd:
		return fmt.Sprint("task ", ev.Task().ID), fmt.Sprintf("end %d %s", g, at)
	case ref.EventRegionBegin, ref.EventRegionEnd:
		x := ev.Region()
		return fmt.Sprint("user ", g), fmt.Sprintf("%s %d %s %s", ev.Kind(), x.Task, x.Type, at)
	case ref.EventLog:
		x := ev.Log()
		return fmt.Sprint("user ", g), fmt.Sprintf("log %d %s %s %s", x.Task, x.Category, x.Message, at)
	}
	t.Fatalf("the reference has an event of kind %s", ev.Kind())
	return "", ""
}

func v1Ours(t *testing.T, tr *Trace) (v1Streams, int) {
	s, n := v1Streams{}, 0
	var buf []Frame
	stack := func(id StackID) string {
		buf = tr.Frames(buf[:0], id)
		return v1Funcs(buf)
	}
	syncs, last := 0, Time(0)
	for ev := range tr.Events() {
		if ev.Time < last {
			t.Fatalf("time goes back from %d to %d", last, ev.Time)
		}
		last = ev.Time
		if ev.M != NoThread {
			t.Fatalf("thread %d in a format that has none", ev.M)
		}
		if (ev.G == NoGoroutine) != (ev.Slot == NoSlot) || (ev.On == NoGoroutine) != (ev.OnSlot == NoSlot) {
			t.Fatalf("slots do not go with goroutines: %+v", ev)
		}
		key, text, back := "", "", false
		p, on, at := int64(ev.P), int64(ev.On), stack(ev.Stack)
		switch ev.Kind {
		case KindSync:
			syncs++
			continue
		case KindProc:
			key, text = fmt.Sprint("proc ", ev.Proc), refStateNames[ev.From]+"->"+refStateNames[ev.To]
		case KindGoroutine:
			key = fmt.Sprint("goroutine ", ev.G)
			text = refStateNames[ev.From] + "->" + refStateNames[ev.To] + " "
			if ev.Reason == ReasonStatus {
				break
			}
			who, stk := "", at
			if ev.From == Waiting || ev.From == NotExist {
				who, at = fmt.Sprintf("on G%d", on), stack(ev.OnStack)
			}
			text += fmt.Sprintf("%q %s %s %s", refReason(tr, ev), who, stk, at)
			back = ev.From == Syscall && ev.To == Running
		case KindMetric:
			key, text = fmt.Sprint("metric ", refMetricNames[ev.Metric], p), fmt.Sprintf("%d %s", ev.Arg[0], at)
			if ev.Metric == MetricGOMAXPROCS && len(s["first"]) == 0 {
				key = "first"
			}
		case KindLabel:
			key, text = fmt.Sprint("label ", ev.G), tr.String(ev.Name)
		case KindRangeBegin, KindRangeEnd:
			name := refRangeNames[min(int(ev.Range), len(refRangeNames)-1)]
			switch ev.Range {
			case RangeSTW:
				key, name = fmt.Sprint("range of G", ev.G), "stop-the-world ("+tr.String(ev.Name)+")"
			case RangeAssist:
				key = fmt.Sprint("range of G", ev.G)
			case RangeSweep:
				key = fmt.Sprint("range of P", ev.Proc)
			default:
				key = "range"
			}
			kind := map[Kind]string{KindRangeBegin: "RangeBegin", KindRangeEnd: "RangeEnd"}[ev.Kind]
			text = fmt.Sprintf("%s %s %s", kind, name, at)
			if ev.Range == RangeSweep && ev.Kind == KindRangeEnd {
				text += fmt.Sprintf(" %d %d", ev.Arg[0], ev.Arg[1])
			}
		case KindSample:
			key, text = fmt.Sprint("sample ", int64(ev.G), " ", p), at
		case KindTaskBegin:
			key, text = fmt.Sprint("task ", ev.Arg[0]), fmt.Sprintf("begin %d %s %d %s", ev.Arg[1],
				tr.String(ev.Name), on, at)
		case KindTaskEnd:
			key, text = fmt.Sprint("task ", ev.Arg[0]), fmt.Sprintf("end %d %s", on, at)
		case KindRegionBegin, KindRegionEnd:
			kind := map[Kind]string{KindRegionBegin: "RegionBegin", KindRegionEnd: "RegionEnd"}[ev.Kind]
			key, text = fmt.Sprint("user ", on), fmt.Sprintf("%s %d %s %s", kind, ev.Arg[0], tr.String(ev.Name), at)
		case KindLog:
			key = fmt.Sprint("user ", on)
			text = fmt.Sprintf("log %d %s %s %s", ev.Arg[0], tr.String(ev.Name), tr.String(StringID(ev.Arg[1])), at)
		default:
			t.Fatalf("event of kind %d in a whole trace", ev.Kind)
		}
		n++
		s[key] = append(s[key], v1Line{text, int64(ev.Time), back})
	}
	if err := tr.Err(); err != nil {
		t.Fatal(err)
	}
	if syncs != 2 {
		t.Errorf("%d syncs, want one at each end", syncs)
	}
	return s, n
}
