package attach

import (
	"bytes"
	"strings"
)

// marks finds any of several strings in a long text. It is the search of Wu and Manber ("A fast
// algorithm for multi-pattern searching", 1994) with blocks of two bytes: what two bytes stand
// at the end of a window as long as the shortest mark says how far the window may move.
type marks struct {
	window int
	shift  [1 << 16]uint8
	ends   map[uint16][]string // marks by the two bytes at the end of their first window
}

// leastMark is the shortest mark that is looked for: with shorter ones the window hardly moves.
const leastMark = 4

func newMarks(all []string) *marks {
	m := &marks{window: 255, ends: map[uint16][]string{}}
	for _, s := range all {
		if len(s) >= leastMark {
			m.window = min(m.window, len(s))
		}
	}
	for i := range m.shift {
		m.shift[i] = uint8(m.window - 1)
	}
	for _, s := range all {
		if len(s) < leastMark {
			continue
		}
		for i := 0; i+2 <= m.window; i++ {
			b := uint16(s[i]) | uint16(s[i+1])<<8
			m.shift[b] = min(m.shift[b], uint8(m.window-2-i))
		}
		end := uint16(s[m.window-2]) | uint16(s[m.window-1])<<8
		m.ends[end] = append(m.ends[end], s)
	}
	return m
}

// next returns where the next mark stands in data at or after from, -1 if none does.
func (m *marks) next(data []byte, from int) int {
	if len(m.ends) == 0 {
		return -1
	}
	for i := from + m.window - 2; i+1 < len(data); {
		b := uint16(data[i]) | uint16(data[i+1])<<8
		if s := m.shift[b]; s > 0 {
			i += int(s)
			continue
		}
		at := i - (m.window - 2)
		for _, mark := range m.ends[b] {
			if strings.HasPrefix(asString(data, at, len(mark)), mark) {
				return at
			}
		}
		i++
	}
	return -1
}

// asString is at most n bytes of data from at on. The compiler compares without a copy.
func asString(data []byte, at, n int) string { return string(data[at:min(at+n, len(data))]) }

// lineAround is the line that stands at a place of a text: from its start to behind its newline.
func lineAround(data []byte, at int) (start, end int) {
	start = bytes.LastIndexByte(data[:at], '\n') + 1
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		return start, at + i + 1
	}
	return start, len(data)
}
