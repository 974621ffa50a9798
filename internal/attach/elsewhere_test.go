package attach

import (
	"slices"
	"testing"

	"github.com/whystall/whystall/internal/format/paste"
)

// A quota is no candidate where the text is of a Mac, unless it speaks of containers as well.
func TestWithoutCgroups(t *testing.T) {
	kind := &Kind{Name: "stretched", Read: func(*Part) Reading {
		return Reading{State: CannotTell, Signs: []Sign{{Cause: "cpu-contention", Grade: Candidate},
			{Cause: "cpu-throttled", Grade: Candidate}, {Cause: "gomaxprocs-over-quota", Grade: Candidate}}}
	}}
	for text, want := range map[string][]string{
		"(All times are from a laptop with Apple Silicon)": {"cpu-contention"},
		"I run this in Docker on my MacBook":               {"cpu-contention", "cpu-throttled", "gomaxprocs-over-quota"},
		"The service got slow after the release":           {"cpu-contention", "cpu-throttled", "gomaxprocs-over-quota"},
	} {
		lines := []paste.Line{{N: 1, Text: text}}
		part := &Part{Kind: kind, Lines: []paste.Line{{N: 2, Text: "x"}}}
		u := Unknown{Range: Range{First: 1, Last: 1}, Sort: SortWords}
		u.Apple, u.Groups = machineOf(lines)
		a := Explain([]*Part{part}, []Unknown{u})
		var got []string
		for _, v := range a.Causes {
			got = append(got, v.Cause)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}
