package profiler

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	// "-   61.20%     0.00%  prog  libc.so.6  [.] start", a row that was opened on perf's screen
	opened = regexp.MustCompile(`^(\s*)-\s+\d+\.\d\d%\s`)
	// "      - 41.05% handle_mm_fault", or without the sign or the share
	screenBranch = regexp.MustCompile(`^(\s*)([-+] )?(?:(\d+\.\d\d)% )?\s*(\S.*)$`)
	// "4.20% main;work;lookup"
	foldedChain = regexp.MustCompile(`^(\d+\.\d\d%) ([^;\s]+|[^;\s][^;]*(?:;[^;]+)+)$`)
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
	return at >= 0 && trimmed != "" && len(text)-len(trimmed) > at+2 && !strings.HasPrefix(trimmed, "|") && !strings.HasPrefix(trimmed, "--")
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
	return paths
}
