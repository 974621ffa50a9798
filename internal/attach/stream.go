package attach

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
)

// Bounds of a file that is too long to be read whole.
const (
	wholeText   = 8 << 20 // a text of this size is cut as a whole
	firstText   = 2 << 20 // of a longer one that is a log, all kinds are asked about so much
	windowSize  = 4 << 20
	behindMark  = 10      // lines behind one with a mark that may belong to it
	mostLines   = 150_000 // of one part
	longestLine = 1 << 20
)

// Stream cuts a text of any length. One of up to 8 MiB is cut as Cut does, and so are the first
// 2 MiB of a longer one, or 8 where they are all of one part. In what follows only
// lines of scattered kinds are looked for, as they stand in logs: by their marks, so that most
// of the text is not divided into lines at all.
func Stream(file string, r io.Reader, kinds []*Kind) (parts []*Part, unknown []Range, err error) {
	c := newCutter(file, kinds)
	head, err := io.ReadAll(io.LimitReader(r, wholeText+1))
	if err != nil || len(head) <= wholeText {
		c.lines(paste.Lines(head))
		return c.parts, c.unknown, err
	}
	end := bytes.LastIndexByte(head[:firstText], '\n') + 1
	if end == 0 {
		end = firstText
	}
	c.lines(paste.Lines(head[:end]))
	if n := len(c.parts); n > 0 && !c.parts[n-1].Kind.Scattered && c.parts[n-1].Last() == bytes.Count(head[:end], []byte{'\n'}) {
		// One text that goes on, such as a dump.
		c = newCutter(file, kinds)
		if end = bytes.LastIndexByte(head, '\n') + 1; end == 0 {
			end = len(head)
		}
		c.lines(paste.Lines(head[:end]))
	}
	s := newStreamer(c, bytes.Count(head[:end], []byte{'\n'}))
	if n := len(c.parts); n > 0 && !c.parts[n-1].Kind.Scattered && c.parts[n-1].Last() == s.line {
		c.parts[n-1].Left = -1 // how many is not known
	}
	err = s.read(io.MultiReader(bytes.NewReader(bytes.Clone(head[end:])), r))
	return c.parts, c.unknown, err
}

// streamer looks for scattered lines.
type streamer struct {
	c     *cutter
	marks *marks
	line  int // lines before the window
}

func newStreamer(c *cutter, line int) *streamer {
	s := &streamer{c: c, line: line}
	var scattered []*Kind
	for _, k := range c.kinds {
		if k.Scattered {
			scattered = append(scattered, k)
		}
	}
	c.kinds, c.prompted, c.asks = scattered, nil, newAsker(scattered)
	c.limit = mostLines
	c.starts = func(l paste.Line) bool {
		at, _ := s.marks.next([]byte(cmp.Or(l.Raw, l.Text)), 0)
		return at >= 0
	}
	s.look()
	return s
}

// look makes the search for the kinds that still want lines.
func (s *streamer) look() {
	full := map[*Kind]bool{}
	for _, p := range s.c.parts {
		if p.Kind.Scattered && len(p.Lines) >= mostLines {
			full[p.Kind] = true
		}
	}
	var all []mark
	for _, k := range s.c.kinds {
		if full[k] {
			continue
		}
		texts := k.Marks
		if len(texts) == 0 {
			texts = k.Hints
		}
		for _, t := range texts {
			all = append(all, mark{t, k.Single})
		}
	}
	s.marks = newMarks(all)
}

// read reads window after window. A line that is cut by the end of one starts the next.
func (s *streamer) read(r io.Reader) error {
	buf := make([]byte, windowSize)
	kept := 0
	for {
		n, err := io.ReadFull(r, buf[kept:])
		data := buf[:kept+n]
		last := err != nil
		end := bytes.LastIndexByte(data, '\n') + 1
		if last || end == 0 { // the last window; or a line longer than it, which is no line
			end = len(data)
		}
		s.window(data[:end])
		s.line += bytes.Count(data[:end], []byte{'\n'})
		kept = copy(buf, data[end:])
		if last {
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				err = nil
			}
			return err
		}
	}
}

// window cuts the lines around marks.
func (s *streamer) window(data []byte) {
	before := len(s.c.parts)
	counted, lines := 0, s.line // newlines in data[:counted], added to s.line
	for at, single := s.marks.next(data, 0); at >= 0; {
		start, end := lineAround(data, at)
		if end-start > longestLine {
			at, single = s.marks.next(data, end)
			continue
		}
		// Lines with marks that stand close together are cut together.
		for seen := 0; seen < behindMark && end < len(data); seen++ {
			_, next := lineAround(data, end)
			if more, alone := s.marks.next(data[end:next], 0); more >= 0 {
				seen, single = 0, single && alone
			} else if single {
				break
			}
			if end = next; end-start > longestLine {
				break
			}
		}
		lines += bytes.Count(data[counted:start], []byte{'\n'})
		counted = start
		group := paste.Lines([]byte(strings.Clone(string(data[start:end]))))
		for i := range group {
			group[i].N += lines
		}
		s.c.lines(group)
		s.c.unknown = nil
		at, single = s.marks.next(data, end)
	}
	if len(s.c.parts) != before || s.full() {
		s.look()
	}
}

// full reports whether a part has just got all the lines that it may have.
func (s *streamer) full() bool {
	for _, p := range s.c.parts {
		if p.Left > 0 {
			return true
		}
	}
	return false
}

// leftText says that a part is not all of its file's lines; "" where it is.
func (p *Part) leftText() string {
	switch {
	case p.Left > 0:
		return fmt.Sprintf("a long file: its lines from %d on are left out", p.Last()+1)
	case p.Left < 0:
		return fmt.Sprintf("a long file: only its first %d MiB are read as one text", wholeText>>20)
	}
	return ""
}
