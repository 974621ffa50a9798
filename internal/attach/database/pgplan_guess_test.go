package database

import (
	"strings"
	"testing"
)

// TestGoodGuesses: what a limit cut short, and few rows, say nothing of estimates.
func TestGoodGuesses(t *testing.T) {
	for _, c := range []struct {
		n    node
		want string
	}{
		{node{est: 900, act: 901}, "no estimate is more than ten times off"},
		{node{est: 10000, act: 50, stopped: true}, "a limit ended nodes"},
		{node{name: "Sort", est: 10000, act: 50, stopped: true}, "of nodes that gave all of their rows, no estimate"},
		{node{est: 1, act: 14}, "only estimates of few rows"},
		{node{est: -1, act: 14}, "EXPLAIN with COSTS on"},
	} {
		if got := goodGuesses([]*node{&c.n}); !strings.HasPrefix(got, c.want) {
			t.Errorf("estimated %v, found %v: got %q", c.n.est, c.n.act, got)
		}
	}
}
