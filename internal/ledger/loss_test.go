package ledger

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"testing"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/timeline"
)

// lossy is a source that lost what happened in [from,to), and says so.
type lossy struct {
	timeline.Source
	from, to exectrace.Time
}

func (l *lossy) Blocks() iter.Seq[[]exectrace.Event] {
	return func(yield func([]exectrace.Event) bool) {
		var out []exectrace.Event
		said := false
		for block := range l.Source.Blocks() {
			out = out[:0]
			for _, ev := range block {
				if !said && ev.Time >= l.from {
					said = true
					gap := exectrace.Event{Kind: exectrace.KindGap, Time: l.from, G: exectrace.NoGoroutine, On: exectrace.NoGoroutine,
						Slot: exectrace.NoSlot, OnSlot: exectrace.NoSlot, P: exectrace.NoProc, Proc: exectrace.NoProc, M: exectrace.NoThread}
					gap.Arg[0] = uint64(l.to)
					out = append(out, gap)
				}
				if ev.Time < l.from || ev.Time >= l.to {
					out = append(out, ev)
				}
			}
			if len(out) > 0 && !yield(out) {
				return
			}
		}
	}
}

// recorded is what the finder said of a trace, to be said again of the same trace with a loss.
func recorded(src timeline.Source) (list []request.Activation, groups []request.Group) {
	f := request.NewFinder(src, request.Options{})
	f.Learn(src.Blocks())
	var end exectrace.Time
	for block := range src.Blocks() {
		for i := range block {
			for _, a := range f.Event(&block[i]) {
				if a.LeftOut == request.Kept {
					list = append(list, a)
				}
			}
			end = block[i].Time
		}
	}
	f.Finish(end)
	return list, f.Groups()
}

// replay gives recorded activations again at the first event after their end.
type replay struct {
	byHand
	groups []request.Group
}

func (r *replay) Groups() []request.Group { return r.groups }

// told is one activation's pieces.
type told map[string]int64

func tellAll(t *testing.T, src timeline.Source, list []request.Activation, groups []request.Group, gapBegin, gapEnd exectrace.Time, only func(*request.Activation) bool) []told {
	t.Helper()
	list = slices.DeleteFunc(slices.Clone(list), func(a request.Activation) bool { return !only(&a) })
	slices.SortStableFunc(list, func(a, b request.Activation) int { return int(a.End - b.End) })
	var out []told
	cur, sum, n := told{}, int64(0), 0
	p := newPass(src, &replay{byHand{list: list, slots: map[exectrace.GoID]uint32{}}, groups}, Options{SlowOver: 1})
	p.look = func(q *piece) {
		leaf := q.leaf
		switch leaf {
		case books.LeafAssist, books.LeafSweep, books.LeafSTWWork: // ranges that began in the gap are not known after it
			leaf = books.LeafOnCPU
		case books.LeafSTW:
			leaf = books.LeafRunnable
		}
		cur[fmt.Sprint(leaf, q.class, q.site)] += q.hi - q.lo
		if inside := min(p.tl.Abs(q.hi), int64(gapEnd)) - max(p.tl.Abs(q.lo), int64(gapBegin)); inside > 0 && !isUnexplained(leaf.String()) {
			cur["inside"] += inside
		}
		sum += q.hi - q.lo
	}
	p.told = func() {
		out = append(out, cur)
		cur, sum = told{}, 0
		n++
	}
	if _, err := p.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return out
}

// A loss may only move time to what is not explained. Activations that a gap touches are compared
// one by one with themselves without the loss.
func TestLossOnlyShrinks(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a trace six times")
	}
	tr, err := exectrace.Open("../../exectrace/testdata/srv-go1.22.12.trace", exectrace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	list, groups := recorded(tr)
	if len(list) < 1000 {
		t.Fatalf("only %d activations", len(list))
	}
	begin, end := list[0].Begin, list[len(list)-1].End
	for i := range 3 {
		from := begin + (end-begin)*exectrace.Time(i+1)/5
		to := from + 3e6
		touched := func(a *request.Activation) bool { return a.Begin < to && a.End > from && a.Begin < from && a.End > to }
		whole := tellAll(t, tr, list, groups, 0, 0, touched)
		lost := tellAll(t, &lossy{tr, from, to}, list, groups, from, to, touched)
		if len(whole) != len(lost) || len(whole) == 0 {
			t.Fatalf("%d activations without the loss, %d with it", len(whole), len(lost))
		}
		grew, moved := 0, int64(0)
		for j := range whole {
			if ns := lost[j]["inside"]; ns > 0 {
				t.Errorf("activation %d: %d ns of what was lost are explained", j, ns)
			}
			for k, ns := range lost[j] {
				if ns > whole[j][k] && !isUnexplained(k) {
					grew++
					if grew < 5 {
						t.Logf("activation %d: %s grew from %d to %d ns", j, k, whole[j][k], ns)
					}
				}
				if isUnexplained(k) {
					moved += ns - whole[j][k]
				}
			}
		}
		if grew > 0 {
			t.Errorf("loss of [%d,%d): %d accounts of %d activations grew", from, to, grew, len(whole))
		}
		if moved <= 0 {
			t.Errorf("loss of [%d,%d): nothing became unexplained", from, to)
		}
	}
}

func isUnexplained(key string) bool {
	return len(key) > 11 && key[:11] == "unexplained" || len(key) > 9 && key[:9] == "lock, hol"
}

// The ledger must not depend on how many workers decoded.
func TestDeterministic(t *testing.T) {
	for _, name := range traces(t) {
		var first string
		for _, workers := range []int{1, 2, 5} {
			tr, err := exectrace.Open(name, exectrace.Options{Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			r, err := Run(context.Background(), tr, Options{})
			tr.Close()
			if err != nil {
				t.Fatal(err)
			}
			r.Reader.NS, r.Reader.MaxHeap = 0, 0
			all := fmt.Sprintf("%+v", *r) // its JSON is the report's, and does not have every field
			if first == "" {
				first = all
			}
			if all != first {
				t.Errorf("%s: %d workers give another ledger: %s", filepath.Base(name), workers, firstDifference(first, all))
			}
		}
	}
}

func firstDifference(a, b string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("%q against %q", a[max(0, i-80):min(len(a), i+80)], b[max(0, i-80):min(len(b), i+80)])
		}
	}
	return "one is longer"
}
