package attach

import (
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
)

// Words finds which of several strings stand in a line, in one pass: a log of a million lines must
// not be searched once for each hint of each kind.
type Words struct {
	first [1 << 16]uint16 // by the first two bytes of a word: one more than its place in lists
	lists [][]int
	words []string
	short []int // words of one byte
}

// NewWords makes the search. An empty word stands in no line.
func NewWords(words []string) *Words {
	w := &Words{words: words}
	for i, s := range words {
		switch {
		case len(s) == 0:
			continue
		case len(s) == 1:
			w.short = append(w.short, i)
			continue
		}
		b := uint16(s[0]) | uint16(s[1])<<8
		if w.first[b] == 0 {
			w.lists = append(w.lists, nil)
			w.first[b] = uint16(len(w.lists))
		}
		list := &w.lists[w.first[b]-1]
		*list = append(*list, i)
	}
	return w
}

// Each calls found with the place of each word that stands in text, once or more, until it returns
// false.
func (w *Words) Each(text string, found func(i int) bool) {
	for _, i := range w.short {
		if strings.IndexByte(text, w.words[i][0]) >= 0 && !found(i) {
			return
		}
	}
	for at := 0; at+1 < len(text); at++ {
		list := w.first[uint16(text[at])|uint16(text[at+1])<<8]
		if list == 0 {
			continue
		}
		for _, i := range w.lists[list-1] {
			if strings.HasPrefix(text[at:], w.words[i]) && !found(i) {
				return
			}
		}
	}
}

// In reports whether any of the words stands in text.
func (w *Words) In(text string) (in bool) {
	w.Each(text, func(int) bool {
		in = true
		return false
	})
	return in
}

// asker says which kinds to ask about a line: those without hints, and those of whose hints one
// stands in it.
type asker struct {
	kinds *Kinds
	asked []bool
	logs  bool // only those that stand in logs are asked
}

func newAsker(kinds *Kinds) *asker { return &asker{kinds: kinds, asked: make([]bool, len(kinds.all))} }

// claim asks which kind these lines start with, and returns the lines that are its.
func (a *asker) claim(lines []paste.Line) (*Kind, []paste.Line) {
	if lines[0].Text == "" {
		return nil, nil
	}
	copy(a.asked, a.kinds.always)
	a.kinds.hints.Each(lines[0].Text, func(i int) bool {
		a.asked[a.kinds.of[i]] = true
		return true
	})
	var best choice
	for i, k := range a.kinds.all {
		if a.asked[i] && (k.Scattered || !a.logs) {
			best.ask(k, lines)
		}
	}
	return best.kind, lines[:best.whole(lines)]
}
