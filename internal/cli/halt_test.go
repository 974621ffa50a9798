package cli

import (
	"testing"

	"github.com/whystall/whystall/internal/evidence"
)

func TestLongerHalt(t *testing.T) {
	request := verdict{What: "request", Name: "serve", NS: 3e8}
	for _, c := range []struct {
		name  string
		h     *evidence.Halt
		words string
	}{
		{"none", nil, "a request took 300 ms (serve)"},
		{"a shorter one", &evidence.Halt{NS: 2e8, By: "a signal"}, "a request took 300 ms (serve)"},
		{"a longer one", &evidence.Halt{NS: 15e8, By: "a signal"}, "the target was stopped for 1.50 s by a signal"},
	} {
		if got := longerHalt(request, c.h).words(); got != c.words {
			t.Errorf("%s: %q, want %q", c.name, got, c.words)
		}
	}
}
