package report

import "strings"

// apart makes labels differ that came out alike when they were cut to a width: of those, what they
// have in common is cut, and where they differ stays. whole are the labels before they were cut.
func apart(labels, whole []string, wide int) {
	for range 3 { // of three alike, two may have more in common
		alike := map[string][]int{}
		for i, s := range labels {
			alike[s] = append(alike[s], i)
		}
		again := false
		for _, l := range alike {
			if len(l) < 2 {
				continue
			}
			n := commonStart(whole, l)
			for _, i := range l {
				if s := tailed(whole[i][:n], whole[i][n:], wide); s != labels[i] {
					labels[i], again = s, true
				}
			}
		}
		if !again {
			return
		}
	}
}

// commonStart is how many bytes the labels with these numbers have in common, up to a word.
func commonStart(whole []string, l []int) int {
	first := whole[l[0]]
	n := len(first)
	for _, i := range l[1:] {
		n = min(n, len(whole[i]))
		for j := range n {
			if first[j] != whole[i][j] {
				n = j
				break
			}
		}
	}
	return strings.LastIndexAny(first[:n], " ") + 1
}

// tailed is start and rest in so many columns. Of the start as much is left as there is room for,
// and of the rest half of the room at least.
func tailed(start, rest string, wide int) string {
	if width(start)+width(rest) <= wide {
		return start + rest
	}
	room := max(wide-width(rest), wide/2)
	if width(start) > room {
		start = strings.TrimRight(cut([]rune(start), room-2), " ,:") + "… "
	}
	if left := wide - width(start); width(rest) > left {
		rest = cut([]rune(rest), left-1) + "…"
	}
	return start + rest
}

// fittedRows are the labels of rows in a width, each unlike the others.
func fittedRows(rows []briefRow, wide int) []string {
	labels, whole := make([]string, len(rows)), make([]string, len(rows))
	for i := range rows {
		labels[i] = rows[i].fitted(wide)
		whole[i] = rows[i].label(func(n string) string { return Printable(shortFunc(n)) })
	}
	apart(labels, whole, wide)
	return labels
}
