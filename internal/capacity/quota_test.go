package capacity

import (
	"slices"
	"testing"

	"github.com/whystall/whystall/internal/evidence"
)

// TestAllowed: lists are read as the kernel writes them; what it never writes is no list.
func TestAllowed(t *testing.T) {
	for text, want := range map[string][]int{"0-1": {0, 1}, "0,2-3": {0, 2, 3}, "7\n": {7}, "": nil,
		"3-1": nil, "0-999999999": nil, "x": nil, "-1": nil} {
		set := &evidence.Set{}
		set.Add(evidence.Record{Stream: "/process/cpus-allowed:list", Shape: evidence.Fact, Text: text})
		if got := allowedCPUs(set); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
