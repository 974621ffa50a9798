package profiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var (
	// "-   61.20%     0.00%  prog  libc.so.6  [.] start", a row that was opened on perf's screen
	opened = pattern.New(`^(\s*)-\s+\d+\.\d\d%\s`)
	// "      - 41.05% handle_mm_fault", or without the sign or the share
	screenBranch = pattern.New(`^(\s*)([-+] )?(?:(\d+\.\d\d)% )?\s*(\S.*)$`)
	// "4.20% main;work;lookup"
	foldedChain = pattern.New(`^(\d+\.\d\d%) ([^;\s]+|[^;\s][^;]*(?:;[^;]+)+)$`)
)

// openedAt is the column of the sign before a row that was opened on the screen; -1: none.
func openedAt(text string) int {
	if m := opened.FindStringSubmatch(text); m != nil {
		return len(m[1])
	}
	return -1
}

// onScreen reports whether a line is of the tree below a row whose sign is in column at.
func onScreen(text string, at int) bool {
	trimmed := strings.TrimLeft(text, " ")
	return at >= 0 && trimmed != "" && len(text)-len(trimmed) > at+2 &&
		!strings.HasPrefix(trimmed, "|") && !strings.HasPrefix(trimmed, "--")
}

// printed gives the tree below a row of perf's screen as perf report prints it. A branch that is
// closed, or open with nothing below it, goes on in functions that are not in the text.
func printed(tree []string) []string {
	var out []string
	for i, line := range tree {
		m := screenBranch.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		blanks, sign, share, name := m[1], m[2], m[3], strings.TrimSpace(m[4])
		if sign == "" && len(blanks) > 2 {
			blanks = blanks[2:]
		}
		switch {
		case share != "":
			out = append(out, fmt.Sprintf("%s--%s%%--%s", blanks, share, name))
		case i == 0:
			out = append(out, blanks+"---"+name)
		default:
			out = append(out, blanks+"  "+name)
		}
		if sign == "+ " || sign == "- " && i+1 == len(tree) {
			out = append(out, blanks+"  [unknown]")
		}
	}
	return out
}

// foldedChains reads chains that perf report writes in one line each, below the row of a function
// (-g folded). Their shares are of all.
func foldedChains(lines []string) (paths []path) {
	for _, line := range lines {
		if m := foldedChain.FindStringSubmatch(strings.TrimSpace(line)); m != nil && len(paths) < most {
			share, _ := percent(m[1])
			paths = append(paths, path{names: strings.Split(m[2], ";"), share: share})
		}
	}
	if n := len(paths) - 1; n > 0 && cutName(paths[n].names, paths[:n]) {
		paths[n].names[len(paths[n].names)-1] = "[unknown]"
	}
	return paths
}

// withRest adds what chains leave of a share, as those do that are too small to print or were cut
// off. It is below what all chains start with, in a function that is not in the text.
func withRest(paths []path, whole float64) []path {
	shown, common := 0.0, paths[0].names
	for _, p := range paths {
		shown += p.share
		n := 0
		for n < min(len(common), len(p.names)) && common[n] == p.names[n] {
			n++
		}
		common = common[:n]
	}
	if shown < whole/2 { // too little for a guess at the rest
		common = common[:min(1, len(common))]
	}
	if whole-shown > 0.0002 {
		paths = append(paths, path{names: append(slices.Clone(common), "[unknown]"), share: whole - shown})
	}
	return paths
}

// cutName reports whether the last function of a chain is only the start of a name: another chain
// is the same down to there, and has the whole name.
func cutName(names []string, others []path) bool {
	at := len(names) - 1
	return at > 0 && slices.ContainsFunc(others, func(p path) bool {
		return len(p.names) > at && slices.Equal(p.names[:at], names[:at]) &&
			p.names[at] != names[at] && strings.HasPrefix(p.names[at], names[at])
	})
}
