package paste

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// untailed is the lines without the two words that what tails the logs of several pods puts before
// each: the pod, which has a mark in its name, and the container. Only runs of lines that have the
// same two are taken for that; nil where there is none.
func untailed(lines []Line) []Line { return unheaded(lines, tailHead, leastViewed) }

// unpodded is the same where only the pod stands before each line.
func unpodded(lines []Line) []Line { return unheaded(lines, podHead, leastViewed) }

// unhosted is the lines without the host that a shell for many hosts puts before each, "node7: ".
// Only runs that are a paragraph of their own are taken for that; nil where there is none.
func unhosted(lines []Line) []Line { return unheaded(lines, hostHead, 0) }

// unheaded takes off what runs of lines start with, so many lines at least; 0: two, without other
// lines next to them. nil: there is no such run.
func unheaded(lines []Line, headOf func(Line) string, least int) (out []Line) {
	apart := func(at int) bool {
		return at < 0 || at >= len(lines) || lines[at].Text == "" || lines[at].Command != ""
	}
	for i := 0; i < len(lines); {
		head := headOf(lines[i])
		n := 0
		for head != "" && i+n < len(lines) && lines[i+n].Command == "" &&
			(lines[i+n].Text == head || strings.HasPrefix(lines[i+n].Text, head+" ")) {
			n++
		}
		if least > 0 && n >= least || least == 0 && n >= 2 && apart(i-1) && apart(i+n) {
			if out == nil {
				out = slices.Clone(lines)
			}
			for j := i; j < i+n; j++ {
				out[j].Text = strings.TrimPrefix(strings.TrimPrefix(out[j].Text, head), " ")
				out[j].Source = strings.TrimSuffix(head, ":")
			}
		}
		i += max(n, 1)
	}
	return out
}

// hostHead is the first word of a line, where it may be a host's name with a colon; "": it is none.
func hostHead(l Line) string {
	host, _, ok := strings.Cut(l.Text, ": ")
	if !ok || l.Command != "" || len(host) > 64 || host == "" || !('a' <= host[0] && host[0] <= 'z') ||
		strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" ||
		!strings.ContainsAny(host, "0123456789-.") {
		return ""
	}
	return host + ":"
}

// podHead is the first word of a line, where it may be a pod's name, which ends with letters and
// digits of its own, or with a number; "": it is none.
func podHead(l Line) string {
	pod, _, _ := strings.Cut(l.Text, " ")
	if l.Command != "" || len(pod) > 100 || !podName.MatchString(pod) {
		return ""
	}
	return pod
}

var podName = pattern.New(`^[a-z][a-z0-9.-]*-(?:[a-z0-9]{8,10}-[a-z0-9]{5}|[0-9]{1,4})$`)

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
