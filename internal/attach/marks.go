package attach

import "bytes"

// marks finds any of several strings in a long text. It is the search of Wu and Manber ("A fast
// algorithm for multi-pattern searching", 1994) with blocks of two bytes: what two bytes stand
// at the end of a window as long as the shortest mark says how far the window may move.
type marks struct {
	window int
	shift  [1 << 16]uint8
	ends   [1 << 16]uint8 // 1 + index in marks, by the two bytes at the end of a mark's first window
	marks  [][][]byte
}

// leastMark is the shortest mark that is looked for: with shorter ones the window hardly moves.
const leastMark = 4

func newMarks(all []string) *marks {
	m := &marks{window: 255}
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
		if m.ends[end] == 0 {
			if len(m.marks) == 255 {
				continue // more marks than any table of kinds has
			}
			m.marks = append(m.marks, nil)
			m.ends[end] = uint8(len(m.marks))
		}
		list := &m.marks[m.ends[end]-1]
		*list = append(*list, []byte(s))
	}
	return m
}

// next returns where the next mark stands in data at or after from, -1 if none does.
func (m *marks) next(data []byte, from int) int {
	if len(m.marks) == 0 {
		return -1
	}
	for i := from + m.window - 2; i+1 < len(data); {
		b := uint16(data[i]) | uint16(data[i+1])<<8
		if s := m.shift[b]; s > 0 {
			i += int(s)
			continue
		}
		at := i - (m.window - 2)
		n := m.ends[b]
		if n == 0 {
			i++
			continue
		}
		for _, mark := range m.marks[n-1] {
			if bytes.HasPrefix(data[at:], mark) {
				return at
			}
		}
		i++
	}
	return -1
}

// lineAround is the line that stands at a place of a text: from its start to behind its newline.
func lineAround(data []byte, at int) (start, end int) {
	start = bytes.LastIndexByte(data[:at], '\n') + 1
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		return start, at + i + 1
	}
	return start, len(data)
}

// pairs is which pairs of bytes stand in a line, as a filter: there are some hundred hints, and
// most have a pair that a line has not.
type pairs struct {
	bits [64]uint64
	all  bool // the line is so long that it may have any
}

const longForPairs = 2048

func pairsOf(text string) (p pairs) {
	if p.all = len(text) > longForPairs; p.all {
		return p
	}
	for i := 0; i+1 < len(text); i++ {
		h := pairHash(text[i], text[i+1])
		p.bits[h>>6] |= 1 << (h & 63)
	}
	return p
}

func pairHash(a, b byte) uint16 { return (uint16(a)*67 + uint16(b)*31) & 4095 }

// may reports whether the line may have the hint. It looks at the hint's first pair and its last.
func (p *pairs) may(hint string) bool {
	n := len(hint)
	if p.all || n < 2 {
		return true
	}
	first, last := pairHash(hint[0], hint[1]), pairHash(hint[n-2], hint[n-1])
	return p.bits[first>>6]&(1<<(first&63)) != 0 && p.bits[last>>6]&(1<<(last&63)) != 0
}
