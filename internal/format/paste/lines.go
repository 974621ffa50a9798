package paste

import "strings"

// Lines gives the lines of a paste.
func Lines(data []byte) []Line {
	var out []Line
	for text := range strings.Lines(strings.ReplaceAll(string(data), "\r\n", "\n")) {
		out = append(out, Line{N: len(out) + 1, Text: strings.TrimRight(text, " \t\r\n")})
	}
	return out
}
