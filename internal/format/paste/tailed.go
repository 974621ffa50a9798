package paste

import (
	"slices"
	"strings"
)

// untailed is the lines without the two words that what tails the logs of several pods puts before
// each: the pod, which has a mark in its name, and the container. Only runs of lines that have the
// same two are taken for that; nil where there is none.
func untailed(lines []Line) (out []Line) {
	for i := 0; i < len(lines); {
		head := tailHead(lines[i])
		n := 0
		for head != "" && i+n < len(lines) && lines[i+n].Command == "" &&
			(lines[i+n].Text == head || strings.HasPrefix(lines[i+n].Text, head+" ")) {
			n++
		}
		if n >= leastViewed {
			if out == nil {
				out = slices.Clone(lines)
			}
			for j := i; j < i+n; j++ {
				out[j].Text = strings.TrimPrefix(strings.TrimPrefix(out[j].Text, head), " ")
				out[j].Source = head
			}
		}
		i += max(n, 1)
	}
	return out
}

// tailHead is the first two words of a line, where the first may be a pod's name; "": it is none.
func tailHead(l Line) string {
	pod, rest, ok := strings.Cut(l.Text, " ")
	container, _, _ := strings.Cut(rest, " ")
	if !ok || l.Command != "" || len(pod) > 100 || !strings.Contains(pod, "-") || pod[0] < 'a' ||
		pod[0] > 'z' || container == "" ||
		strings.Trim(pod+container, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" {
		return ""
	}
	return pod + " " + container
}
