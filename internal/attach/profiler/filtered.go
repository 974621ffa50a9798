package profiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// Fewest rows and letters by which a filter is told: two functions have a word in common by chance.
const (
	filteredRows    = 5
	filteredLetters = 4
)

// filterOf gives the word that a person filtered the rows by: all functions have it in their names,
// not all at one place as a package's, and yet their shares add up to all there is. "": none.
func (t *tally) filterOf() string {
	names, sum := slices.Sorted(mapNames(t.funcs)), 0.0
	for _, name := range names {
		sum += t.funcs[name]
	}
	if len(names) < filteredRows || t.p.stacks || t.whole <= 0 || sum < 0.97*t.whole || sum > 1.03*t.whole {
		return ""
	}
	least := slices.MinFunc(names, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	least = least[:min(len(least), 64)]
	for n := len(least); n >= filteredLetters; n-- {
		for from := range len(least) - n + 1 {
			if word := least[from : from+n]; strings.Trim(word, "_.:") == word && apart(word, names) {
				return word
			}
		}
	}
	return ""
}

// apart reports whether all names have a word, and at more than one place.
func apart(word string, names []string) bool {
	places := map[int]bool{}
	for _, name := range names {
		at := strings.Index(strings.TrimLeft(name, "_"), word)
		if at < 0 {
			return false
		}
		places[at] = true
	}
	return len(places) > 1
}

// ofFilter takes back what shares of a filter seem to say: they are no parts of the CPU time.
func ofFilter(r *attach.Reading, word string, n int) {
	r.State = attach.CannotTell
	r.Means = fmt.Sprintf("All %d functions have %q in their names and yet make 100 %%: the view was filtered by that word. The shares are of what the filter let through, and not of the CPU time.", n, word)
	for i := range r.Signs {
		s := &r.Signs[i]
		s.Grade, s.Sure, s.Share = attach.Candidate, "", 0
		s.Proof = []string{fmt.Sprintf("CPUs were found in functions with %q in their names: in which part of the time is not in it", word)}
	}
	r.Facts = nil
	r.Next = []attach.Next{{Command: "perf report --stdio --no-children",
		Why: "all functions, so that the shares are of the CPU time"}}
}
