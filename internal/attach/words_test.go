package attach

import (
	"slices"
	"strings"
	"testing"
)

// The one pass finds what a search for each word finds.
func TestWords(t *testing.T) {
	words := []string{"gc", "gctrace", ":", "", "took too long", "ok", "oo", "long"}
	w := NewWords(words)
	for _, text := range []string{"", "g", "gc 1 @0.1s", "xgctrace", "a: took too long",
		"took too lon", "book", "oooo", "l:long"} {
		var got, want []string
		w.Each(text, func(i int) bool {
			if !slices.Contains(got, words[i]) {
				got = append(got, words[i])
			}
			return true
		})
		for _, s := range words {
			if s != "" && strings.Contains(text, s) {
				want = append(want, s)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || w.In(text) != (len(want) > 0) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
