package systool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// treeMark reports whether a word is part of the lines that htop, and top with its forest, draw
// before a command.
func treeMark(word string) bool {
	return word != "" && strings.Trim(word, "├─│└┬┼`-|") == "" && strings.ContainsAny(word, "├│└`|")
}

// treeTop reports whether a line without names above it is a row of htop's tree. top draws trees
// too, of other marks.
func treeTop(f []string) bool {
	at := len(topDefault) - 1
	return len(f) > at && (strings.HasPrefix(f[at], "├─") || strings.HasPrefix(f[at], "└─") ||
		f[at] == "│") && topRow(topDefault, f)
}

// untree takes the marks of a tree off a row, and says how many they are.
func untree(names, f []string) ([]string, int) {
	at, n := len(names)-1, 0
	for at+n < len(f) && treeMark(f[at+n]) {
		n++
	}
	if n == 0 || at < 0 {
		return f, 0
	}
	return slices.Concat(f[:at], f[at+n:]), n
}

// family says of the busiest row whether it is a process with its own threads below it: its share
// is then that of all threads. Threads stand deeper, and have the memory of their process.
func (s *screen) family(v *verdict, deep []int) {
	t := table{names: s.names, rows: s.rows}
	if len(t.rows) < 2 || len(deep) != len(t.rows) {
		return
	}
	var order []int
	for i := range t.rows {
		order = append(order, i)
	}
	at := slices.MaxFunc(order,
		func(a, b int) int { return cmp.Compare(t.num(t.rows[a], "%CPU"), t.num(t.rows[b], "%CPU")) })
	threads, sum := 0, 0.0
	for i := at + 1; i < len(t.rows) && deep[i] > deep[at]; i++ {
		if !t.sameMemory(t.rows[at], t.rows[i]) {
			return // processes that it started are no threads
		}
		threads, sum = threads+1, sum+t.num(t.rows[i], "%CPU")
	}
	use := t.num(t.rows[at], "%CPU")
	if threads == 0 || use < 1 {
		return
	}
	text := fmt.Sprintf("%s %% CPU is that of the whole process with all of its threads; the %d listed below it have %s %% together", plain(use), threads, plain(sum))
	if sum < 0.8*use {
		text += ", and the rest is of threads that are not listed, or have ended"
	}
	v.figure("%s", text)
	v.not("that the main thread computes: the row of a process has the CPU time of all of its threads, each of which has the same memory")
}

func (t *table) sameMemory(a, b row) bool {
	return t.cell(a, "VIRT") == t.cell(b, "VIRT") && t.cell(a, "RES") == t.cell(b, "RES")
}
