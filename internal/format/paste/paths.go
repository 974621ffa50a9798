package paste

import "strings"

// paths takes off the names of files that grep puts before each line where it reads several. All
// lines of a run have one.
func paths(lines []Line) {
	for i := 0; i < len(lines); {
		name, _ := grepped(lines[i].Text)
		end := i
		for name != "" && end < len(lines) {
			if n, _ := grepped(lines[end].Text); n == "" {
				break
			}
			end++
		}
		for j := i; j < end; j++ {
			l := &lines[j]
			name, rest := grepped(l.Text)
			l.take(prefix{rest: rest})
			l.Path = name
		}
		i = max(end, i+1)
	}
}

// grepped divides "/proc/7/status:Name: x" into the path and the line. Only paths below these
// folders are known for sure: stacks name files as well.
func grepped(text string) (name, rest string) {
	if !strings.HasPrefix(text, "/proc/") && !strings.HasPrefix(text, "/sys/") &&
		!strings.HasPrefix(text, "/var/log/") {
		return "", ""
	}
	name, rest, ok := strings.Cut(text, ":")
	if !ok || rest == "" || strings.ContainsAny(name, " \t") {
		return "", ""
	}
	return name, rest
}
