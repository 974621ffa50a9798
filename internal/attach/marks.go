package attach

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// marks finds any of several strings in a long text. It is the search of Wu and Manber ("A fast
// algorithm for multi-pattern searching", 1994) with blocks of two bytes: what two bytes stand
// at the end of a window as long as the shortest mark says how far the window may move.
type marks struct {
	window int
	shift  [1 << 16]uint8
	ends   [1 << 16]uint16 // one more than the place in lists of marks, by the two bytes at the end of their first window
	lists  [][]mark
}

// mark is a string to look for. Its line may stand for itself.
type mark struct {
	text   string
	single bool
}

// leastMark is the shortest mark that is looked for: with shorter ones the window hardly moves.
const leastMark = 5

func newMarks(all []mark) *marks {
	m := &marks{window: 255}
	for _, s := range all {
		if len(s.text) >= leastMark {
			m.window = min(m.window, len(s.text))
		}
	}
	for i := range m.shift {
		m.shift[i] = uint8(m.window - 1)
	}
	for _, mark := range all {
		s := mark.text
		if len(s) < leastMark {
			continue
		}
		for i := 0; i+2 <= m.window; i++ {
			b := uint16(s[i]) | uint16(s[i+1])<<8
			m.shift[b] = min(m.shift[b], uint8(m.window-2-i))
		}
		end := uint16(s[m.window-2]) | uint16(s[m.window-1])<<8
		if m.ends[end] == 0 {
			m.lists = append(m.lists, nil)
			m.ends[end] = uint16(len(m.lists))
		}
		m.lists[m.ends[end]-1] = append(m.lists[m.ends[end]-1], mark)
	}
	return m
}

// next returns where the next mark stands in data at or after from, -1 if none does, and whether
// its line stands for itself.
func (m *marks) next(data []byte, from int) (at int, single bool) {
	if len(m.lists) == 0 {
		return -1, false
	}
	for i, last := from+m.window-2, len(data)-1; i < last; {
		b := binary.LittleEndian.Uint16(data[i:])
		if s := m.shift[b]; s > 0 {
			i += int(s)
			continue
		}
		at := i - (m.window - 2)
		for _, mark := range m.lists[m.ends[b]-1] {
			if strings.HasPrefix(asString(data, at, len(mark.text)), mark.text) {
				return at, mark.single
			}
		}
		i++
	}
	return -1, false
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
