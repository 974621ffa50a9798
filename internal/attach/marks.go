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
	ends   [1 << 16]uint16 // one more than the place in lists of marks, by the last two bytes of their windows
	lists  [][]mark
}

// mark is a string to look for. Its line may stand for itself.
type mark struct {
	text   string
	single bool
	at     int // where the window lies in text
}

const (
	leastMark  = 5 // the shortest mark that is looked for: with shorter ones the window hardly moves
	markSample = 64 << 10
)

// newMarks makes the search. The sample is of the text that will be searched: of each mark, the
// window is what is rarest there, so that the search seldom stops.
func newMarks(all []mark, sample []byte) *marks {
	m := &marks{window: 255}
	for _, s := range all {
		if len(s.text) >= leastMark {
			m.window = min(m.window, len(s.text))
		}
	}
	for i := range m.shift {
		m.shift[i] = uint8(m.window - 1)
	}
	var often [1 << 16]uint32
	for i := 0; i+2 <= len(sample); i++ {
		often[pair(sample, i)]++
	}
	for _, s := range all {
		if len(s.text) >= leastMark {
			s.at = rarest(s.text, m.window, &often)
			m.add(s)
		}
	}
	return m
}

func pair[T string | []byte](text T, at int) uint16 { return uint16(text[at]) | uint16(text[at+1])<<8 }

// rarest is where the window of a text lies best: its last two bytes stop the search, the others
// shorten its way.
func rarest(text string, window int, often *[1 << 16]uint32) (at int) {
	least := ^uint64(0)
	for i := 0; i+window <= len(text); i++ {
		cost := 4 * uint64(window) * uint64(often[pair(text, i+window-2)])
		for j := 0; j < window-2; j++ {
			cost += uint64(j+1) * uint64(often[pair(text, i+j)])
		}
		if cost < least {
			least, at = cost, i
		}
	}
	return at
}

func (m *marks) add(s mark) {
	for i := 0; i+2 <= m.window; i++ {
		b := pair(s.text, s.at+i)
		m.shift[b] = min(m.shift[b], uint8(m.window-2-i))
	}
	end := pair(s.text, s.at+m.window-2)
	if m.ends[end] == 0 {
		m.lists = append(m.lists, nil)
		m.ends[end] = uint16(len(m.lists))
	}
	m.lists[m.ends[end]-1] = append(m.lists[m.ends[end]-1], s)
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
		for _, mark := range m.lists[m.ends[b]-1] {
			at := i - (m.window - 2) - mark.at
			if at >= from && strings.HasPrefix(asString(data, at, len(mark.text)), mark.text) {
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
