package ledger

import (
	"context"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/ledger/thread"
)

func runStories(t *testing.T, file string, stories bool) *account.Result {
	t.Helper()
	tr, err := exectrace.Open(file, exectrace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	r, err := Run(context.Background(), tr, Options{Stories: stories})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A story says of each instant of its request what the ledger says, and asking for stories changes
// nothing else.
func TestStories(t *testing.T) {
	for _, file := range traces(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r, plain := runStories(t, file, true), runStories(t, file, false)
			if plain.Stories != nil {
				t.Error("stories that nobody asked for")
			}
			if len(r.Stories) != len(r.Requests.Slowest) {
				t.Errorf("%d stories of %d requests", len(r.Stories), len(r.Requests.Slowest))
			}
			checkWaits(t, r.Waits)
			checkSketches(t, r)
			for i, s := range r.Stories {
				checkStory(t, s, &r.Requests.Slowest[i])
			}
			for _, x := range []*account.Result{r, plain} {
				x.Stories, x.Others, x.Waits, x.Curves, x.Reader.NS, x.Reader.MaxHeap = nil, nil, nil, nil, 0, 0
				x.Sketches = account.Sketches{}
			}
			if !reflect.DeepEqual(r, plain) {
				t.Error("stories change the ledger")
			}
		})
	}
}

func checkStory(t *testing.T, s *account.Story, q *account.Request) {
	t.Helper()
	at := s.Begin
	got, want := map[account.Leaf]int64{}, map[account.Leaf]int64{}
	for _, l := range s.Chain {
		if l.Begin != at || l.End <= l.Begin || l.Lane >= len(s.Lanes) || l.Site >= len(s.Names) ||
			l.Detail >= len(s.Names) || l.Stack >= len(s.Stacks) {
			t.Fatalf("goroutine %d: link %+v, want one from %d", s.Actor, l, at)
		}
		at = l.End
		got[l.Leaf] += l.End - l.Begin
	}
	if at != s.End {
		t.Errorf("goroutine %d: the chain ends at %d of %d", s.Actor, at, s.End)
	}
	for _, a := range q.Accounts {
		want[a.Leaf] += a.NS
	}
	joined := slices.ContainsFunc(s.Chain, func(l account.Link) bool { return l.Several > 0 })
	if !joined && !reflect.DeepEqual(got, want) {
		t.Errorf("goroutine %d: the chain has %v, the ledger %v", s.Actor, got, want)
	}
	for n, l := range s.Lanes {
		last := s.Begin
		for _, x := range l.Spans {
			if x.Begin < last || x.End <= x.Begin || x.End > s.End ||
				max(x.Detail, x.By, x.On) >= len(s.Names) || x.Stack >= len(s.Stacks) {
				t.Fatalf("goroutine %d: lane %d has %+v after %d", s.Actor, n, x, last)
			}
			last = x.End
		}
		if len(l.Spans) > account.MostSpans || len(l.Spans) == 0 && l.Kind == account.LaneGoroutine {
			t.Errorf("goroutine %d: lane %d has %d spans", s.Actor, n, len(l.Spans))
		}
	}
	if len(s.Chain) > account.MostLinks || len(s.Lanes) > 4*account.MostLanes ||
		len(s.Lanes) == 0 || s.Lanes[0].ID != s.Actor {
		t.Errorf("goroutine %d: %d links, %d lanes", s.Actor, len(s.Chain), len(s.Lanes))
	}
}

// checkSketches: each slow request has a sketch, whose chain tiles it, and what is told in full is
// slow.
func checkSketches(t *testing.T, r *account.Result) {
	t.Helper()
	k := &r.Sketches
	if len(k.List)+k.Left != r.Requests.Slow {
		t.Errorf("%d sketches of %d slow requests", len(k.List), r.Requests.Slow)
	}
	full := map[[3]int64]bool{}
	for _, s := range slices.Concat(r.Stories, r.Others) {
		full[[3]int64{s.Begin, s.End, s.Actor}] = true
	}
	told := map[int]bool{} // largest accounts of which a request is told in full
	slow := map[[3]int64]bool{}
	for _, s := range k.List {
		at := s.Begin
		for _, l := range s.Chain {
			if l.Begin != at || l.End <= l.Begin || l.Lane >= len(k.Lanes) ||
				max(l.Site, l.Detail) >= len(k.Names) || l.Stack >= len(k.Stacks) {
				t.Fatalf("goroutine %d: link %+v, want one from %d", s.Actor, l, at)
			}
			at = l.End
		}
		if at != s.End || len(s.Chain) > account.MostSketchLinks {
			t.Errorf("goroutine %d: %d links to %d of %d", s.Actor, len(s.Chain), at, s.End)
		}
		var sum int64
		for _, p := range s.Parts {
			sum += p.NS
		}
		if sum > s.End-s.Begin || len(s.Parts) == 0 || s.Parts[0].Account >= len(k.Accounts) {
			t.Errorf("goroutine %d: parts %v of %d", s.Actor, s.Parts, s.End-s.Begin)
			continue
		}
		key := [3]int64{s.Begin, s.End, s.Actor}
		slow[key] = true
		told[s.Parts[0].Account] = told[s.Parts[0].Account] || full[key]
	}
	for key := range full {
		if !slow[key] {
			t.Errorf("a story of %v, which is not slow", key)
		}
	}
	if len(k.List) > 0 && !slices.Contains(slices.Collect(maps.Values(told)), true) {
		t.Error("no slow request is told in full")
	}
}

// checkWaits holds the tree of waits to what it says: children are no more than their parent.
func checkWaits(t *testing.T, w account.Waits) {
	t.Helper()
	below := make([]int64, len(w))
	for i, n := range w {
		if n.Parent >= i || i > 0 && n.Parent < 0 {
			t.Fatalf("node %d has the parent %d", i, n.Parent)
		}
		if i > 0 {
			below[n.Parent] += n.NS
		}
	}
	for i, n := range w {
		if below[i] > n.NS {
			t.Errorf("%s: %d ns, and %d below", n.Name, n.NS, below[i])
		}
	}
}

// Short spans are joined until there are few enough, and no time is lost.
func TestCoarse(t *testing.T) {
	var l []account.Span
	for i := range int64(5000) {
		s := account.Span{Begin: i * 200, End: i*200 + 150, State: account.LeafOnCPU}
		if i == 2500 {
			s.Begin, s.State = s.Begin-40, account.LeafSyscall
		}
		l = append(l, s)
	}
	out := thread.Spans(l, 1_000_000)
	if len(out) > account.MostSpans {
		t.Fatalf("%d spans", len(out))
	}
	several := 0
	for i, s := range out {
		several += max(1, s.Several)
		if i > 0 && s.Begin < out[i-1].End {
			t.Errorf("%+v starts before %+v ends", s, out[i-1])
		}
	}
	if several != 5000 || out[0].Begin != 0 || out[len(out)-1].End != 5000*200-50 {
		t.Errorf("%d spans from %d to %d", several, out[0].Begin, out[len(out)-1].End)
	}
}
