package attach

import (
	"bytes"
	"encoding/binary"

	"github.com/whystall/whystall/internal/format/paste"
)

// shapes tells lines that look like many others of a log from those that do not. A shape is the
// start of a line behind its logger's prefix, with each word and each number as one sign: the
// lines of a log have few, and the first line of a dump or a table has one of its own.
type shapes struct {
	failed [1 << 15]uint8 // by shape: how many of its lines no kind knew

	// Of the line before: lines of a log have prefixes of one length.
	head   uint64
	prefix int

	known [1 << 12]struct { // shapes of starts of lines that were seen of late
		start uint64 // a hash
		shape uint16
	}
}

const (
	shapeBytes = 24 // of a line that its shape is made of
	manyFailed = 16 // a shape of which no kind knew so many lines is the log's own
	mostPrefix = 160
)

// new reports whether few lines of a line's shape were asked about, and which shape it is.
func (s *shapes) new(line []byte) (shape uint16, is bool) {
	body := line[s.behind(line):]
	if len(body) == 0 {
		return 0, false
	}
	shape = s.of(body)
	return shape, s.failed[shape] < manyFailed
}

// of is the shape of a line behind its prefix. Many lines of a log start alike to the letter.
func (s *shapes) of(body []byte) uint16 {
	if len(body) < shapeBytes {
		return shapeOf(body)
	}
	a, b, c := binary.LittleEndian.Uint64(body), binary.LittleEndian.Uint64(body[8:]),
		binary.LittleEndian.Uint64(body[16:])
	start := (a*0x9e3779b97f4a7c15^b)*0xbf58476d1ce4e5b9 ^ c*0x94d049bb133111eb | 1
	k := &s.known[start>>52]
	if k.start != start {
		k.start, k.shape = start, shapeOf(body[:shapeBytes])
	}
	return k.shape
}

// dull tells lines of a section that look like many others of it which no kind knows. Only kinds
// that stand in logs are asked about them: so the time for a log of no kind does not grow with what
// all others do to refuse a line. A new section counts anew.
type dull struct {
	section, failed int
	shapes          *shapes // nil: few lines of the section failed
	head            []byte
}

const dullAfter = 512 // lines of a section, before shapes are counted

// is reports whether a line is one of these.
func (d *dull) is(l paste.Line, section int) bool {
	return d.shapes != nil && d.section == section && d.shapes.failed[d.shape(l)] >= manyFailed
}

// add counts a line of a section that no kind knew.
func (d *dull) add(l paste.Line, section int) {
	if d.section != section {
		*d = dull{section: section, head: d.head}
	}
	if d.failed++; d.failed < dullAfter {
		return
	}
	if d.shapes == nil {
		d.shapes = new(shapes)
	}
	d.shapes.fail(d.shape(l))
}

func (d *dull) shape(l paste.Line) uint16 {
	d.head = append(d.head[:0], l.Text[:min(len(l.Text), mostPrefix+shapeBytes)]...)
	shape, _ := d.shapes.new(d.head)
	return shape
}

// fail counts a line of a shape that no kind knew.
func (s *shapes) fail(shape uint16) { s.failed[shape] = min(s.failed[shape]+1, manyFailed) }

// own says that no line of these shapes need be asked about any more.
func (s *shapes) own(text []byte) {
	for line := range bytes.Lines(text) {
		if shape, is := s.new(bytes.TrimRight(line, "\r\n")); is {
			s.failed[shape] = manyFailed
		}
	}
}

// behind is where a line goes on behind what may be a logger's prefix.
func (s *shapes) behind(line []byte) int {
	if len(line) < 16 {
		return 0
	}
	head := binary.LittleEndian.Uint64(line)
	if head == s.head && s.prefix < len(line) && (s.prefix == 0 || line[s.prefix-1] == ' ') {
		return s.prefix
	}
	s.head, s.prefix = head, behindPrefix(line)
	return s.prefix
}

// behindPrefix skips what loggers write: a time, syslog's and klog's start, a bracket with a time
// or a pod's name, and docker's JSON.
func behindPrefix(line []byte) int {
	short := line[:min(len(line), mostPrefix)]
	switch c := line[0]; {
	case c >= '0' && c <= '9':
		at := 0
		for at < len(short) && inTime(short[at]) {
			at++
		}
		if at >= len("10:00:00 ") && at < len(short) { // else it is a line of numbers
			return at
		}
	case c == '[' && (line[1] == ' ' || line[1] >= '0' && line[1] <= '9' || line[1] == 'p'):
		return after(short, "] ")
	case c >= 'A' && c <= 'Z' && line[1] >= '0' && line[1] <= '9':
		return after(short, "] ")
	case c >= 'A' && c <= 'Z' && line[3] == ' ' && line[6] == ' ' && line[9] == ':':
		return after(short, ": ")
	case c == '{':
		return after(short[:min(len(short), 12)], `:"`)
	}
	return 0
}

func after(text []byte, mark string) int {
	if i := bytes.Index(text, []byte(mark)); i >= 0 {
		return i + len(mark)
	}
	return 0
}

func inTime(c byte) bool {
	return c >= '0' && c <= '9' || c == ':' || c == '-' || c == '.' || c == ' ' || c == 'T' ||
		c == 'Z' || c == ',' || c == '/' || c == '+'
}

// signs are what bytes are in a shape: all letters of one case are one sign, and so are digits.
var signs = func() (table [256]byte) {
	for i := range table {
		switch c := byte(i); {
		case c >= 'a' && c <= 'z', c >= 0x80:
			table[i] = 'a'
		case c >= 'A' && c <= 'Z':
			table[i] = 'A'
		case c >= '0' && c <= '9':
			table[i] = '0'
		default:
			table[i] = c
		}
	}
	return table
}()

func isWord(sign byte) bool { return sign == 'a' || sign == 'A' }

// shapeOf is a hash of a text's signs, where a run of one is one.
func shapeOf(text []byte) uint16 {
	h, last, run := uint32(2166136261), byte(0), 0
	for _, c := range text {
		sign := signs[c]
		switch {
		case sign == last, isWord(sign) && isWord(last), sign == '.' && last == '0':
			if run++; run != 2 || sign != ' ' { // two blanks are the gap of a table
				continue
			}
		default:
			run = 1
		}
		h = (h ^ uint32(sign)) * 16777619
		last = sign
	}
	return uint16((h ^ h>>15) & (1<<15 - 1))
}
