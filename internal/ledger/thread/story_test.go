package thread

import (
	"context"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/whystall/whystall/internal/account"
)

// A story says of each instant of its unit what the ledger says, and asking for stories changes
// nothing else.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.stream")
	if err != nil || len(files) < 5 {
		t.Fatalf("recordings: %v, %v", files, err)
	}
	for _, file := range files {
		k := fromRecording(t, file)
		r, err := Run(context.Background(), k, Options{Stories: true})
		if err != nil {
			t.Fatal(err)
		}
		plain, err := Run(context.Background(), k, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if plain.Stories != nil || len(r.Stories) != len(r.Requests.Slowest) {
			t.Errorf("%s: %d stories, and %d that nobody asked for", file, len(r.Stories), len(plain.Stories))
		}
		for i, s := range r.Stories {
			checkStory(t, file, s, &r.Requests.Slowest[i])
		}
		if len(r.Sketches.List)+r.Sketches.Left != r.Requests.Slow {
			t.Errorf("%s: %d sketches of %d slow units", file, len(r.Sketches.List), r.Requests.Slow)
		}
		for _, s := range r.Sketches.List {
			at := s.Begin
			for _, l := range s.Chain {
				if l.Begin != at || l.Lane < 0 || l.Lane >= len(r.Sketches.Lanes) {
					t.Fatalf("%s: thread %d: link %+v, want one from %d", file, s.Actor, l, at)
				}
				at = l.End
			}
			if at != s.End || len(s.Chain) > account.MostSketchLinks || len(s.Parts) == 0 {
				t.Errorf("%s: thread %d: %d links to %d of %d, %d parts", file, s.Actor,
					len(s.Chain), at, s.End, len(s.Parts))
			}
		}
		r.Stories, r.Others, r.Sketches = nil, nil, account.Sketches{}
		if !reflect.DeepEqual(r, plain) {
			t.Errorf("%s: stories change the ledger", file)
		}
	}
}

func checkStory(t *testing.T, file string, s *account.Story, q *account.Request) {
	t.Helper()
	at := s.Begin
	got, want := map[account.Leaf]int64{}, map[account.Leaf]int64{}
	for _, l := range s.Chain {
		if l.Begin != at || l.End <= l.Begin || l.Lane >= len(s.Lanes) ||
			max(l.Site, l.Detail) >= len(s.Names) || l.Stack >= len(s.Stacks) {
			t.Fatalf("%s: thread %d: link %+v, want one from %d", file, s.Actor, l, at)
		}
		at = l.End
		got[l.Leaf] += l.End - l.Begin
	}
	for _, a := range q.Accounts {
		want[a.Leaf] += a.NS
	}
	joined := slices.ContainsFunc(s.Chain, func(l account.Link) bool { return l.Several > 0 })
	if at != s.End || !joined && !reflect.DeepEqual(got, want) {
		t.Errorf("%s: thread %d: the chain has %v to %d of %d, the ledger %v", file, s.Actor, got, at, s.End, want)
	}
	if len(s.Lanes) == 0 || s.Lanes[0].ID != s.Actor {
		t.Errorf("%s: thread %d: it has no lane", file, s.Actor)
	}
}
