package kernelfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// tally counts the events of one name that name the same.
type tally struct {
	what string
	n    int
}

func (r *report) count(name eventName, what string) {
	if r.each == nil {
		r.each = map[eventName][]tally{}
	}
	list := r.each[name]
	if i := slices.IndexFunc(list, func(t tally) bool { return t.what == what }); i >= 0 {
		list[i].n++
	} else if len(list) < 64 {
		r.each[name] = append(list, tally{what, 1})
	}
}

// tallied writes what events name, the most frequent first; with numbers where they are several.
func (r *report) tallied(name eventName, word string) string {
	list := slices.Clone(r.each[name])
	slices.SortStableFunc(list, func(a, b tally) int { return cmp.Compare(b.n, a.n) })
	var out []string
	for _, t := range list[:min(4, len(list))] {
		text := word + printed(t.what)
		if len(list) > 1 {
			text = fmt.Sprintf("%d of %s", t.n, text)
		}
		out = append(out, text)
	}
	if len(list) > 4 {
		out = append(out, "...")
	}
	return strings.Join(out, ", ")
}

// countOf writes how many events there were, in the words of the table.
func countOf(name eventName, n int) string {
	for _, e := range events {
		if e.name == name {
			return plural(n, e.words, e.many)
		}
	}
	return plural(n, "message", "messages")
}
