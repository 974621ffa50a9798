package attach

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
)

// Long cuts a text that is too long to be held. head is its start, and r the rest.
//
//  1. All of it is searched for marks of scattered kinds, as they stand in logs. Only the lines
//     around a mark are asked about them.
//  2. A line that does not look like many others (shapes.go) is asked about all kinds: it may start
//     a dump or a table. What a kind claims is read on as far as it goes, within bounds.
//
// So most of a log is not divided into parts of lines at all, and memory does not grow with the
// text, but for the lines of parts.
func Long(file string, head []byte, r io.Reader, kinds *Kinds) (parts []*Part, notes []string, err error) {
	if paste.UTF16(head) {
		parts, _ = cutAll(file, head[:utf16Text], kinds)
		return parts, []string{fmt.Sprintf("%s: a long text in UTF-16: only its first %d MiB are looked at", file, utf16Text>>20)}, nil
	}
	l := &long{w: window{r: r, buf: head}, all: newCutter(file, kinds),
		logs: newCutter(file, kinds.scattered), held: map[*Kind]int{}, found: -1}
	l.logs.limit = mostLines
	l.logs.starts = func(line paste.Line) bool {
		at, _ := l.marks.next([]byte(cmp.Or(line.Raw, line.Text)), 0)
		return at >= 0
	}
	l.sample = bytes.Clone(head[:min(len(head), markSample)])
	l.look()
	l.run()
	l.all.clip()
	l.logs.clip()
	parts = append(l.all.parts, l.logs.parts...)
	slices.SortStableFunc(parts, func(a, b *Part) int { return cmp.Compare(a.First(), b.First()) })
	return parts, l.notes(file), l.w.err
}

// long is the state of a walk through a long text.
type long struct {
	w    window
	line int     // lines before the window's position
	all  *cutter // asks about all kinds
	logs *cutter // asks about scattered kinds only

	marks    *marks
	filled   int    // kinds that it no longer looks for
	sample   []byte // of the text, for marks
	found    int64  // where the next mark stands; -1: not yet known
	single   bool   // its line stands for itself
	searched int64  // up to where there is no other mark

	shapes shapes
	forced int // the line that is asked whatever its shape: it follows a prompt
	asked  int
	passed int // lines that were not asked since too many others had been

	path   string       // of files that a grep named, the one that was asked about last
	lines  []paste.Line // around the position, from some line on
	until  int64        // where they end
	last   *Part        // the part that ends right above the position
	held   map[*Kind]int
	total  int  // lines of parts that are not scattered
	capped bool // the last claim may go on behind what is held
	more   map[*Kind]bool
}

// Lines that no kind knows may be asked so often: some at the start, and then by the length.
const (
	firstAsks  = 4096
	bytesAnAsk = 16 << 10
)

// run walks through the text.
func (l *long) run() {
	for {
		l.w.more(windowSize)
		data := l.w.lines()
		if len(data) == 0 {
			return
		}
		at, what := l.next(data)
		l.w.at += at
		switch what {
		case atMark:
			l.aroundMark()
		case atNew:
			l.newLine()
		}
	}
}

type event int

const (
	atEnd  event = iota
	atMark       // a line with a mark
	atNew        // a line that looks like few others
)

// next returns the offset of the next line that is to be asked about. It counts the lines before.
func (l *long) next(data []byte) (at int, what event) {
	pos := l.w.pos()
	l.search(data, pos)
	for at < len(data) {
		end := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if l.found >= 0 && l.found < pos+int64(end) {
			return at, atMark
		}
		if shape, is := l.shapes.new(trimmed(data[at:end])); (is || l.line+1 == l.forced) && !l.logs.has(l.line+1) {
			if l.asked < firstAsks+int(pos/bytesAnAsk) || l.line+1 == l.forced {
				return at, atNew
			}
			l.shapes.fail(shape)
			l.passed++
		}
		if data[end-1] == '\n' {
			l.line++
		}
		at, l.last = end, nil
	}
	return at, atEnd
}

// search finds the next mark in data, which starts at pos, unless that is known.
func (l *long) search(data []byte, pos int64) {
	if l.found >= 0 {
		return
	}
	from := max(l.searched-pos, 0)
	if from >= int64(len(data)) {
		return
	}
	at, single := l.marks.next(data, int(from))
	l.searched = pos + int64(len(data))
	if at >= 0 {
		l.found, l.single = pos+int64(at), single
	}
}

func trimmed(line []byte) []byte {
	n := len(line)
	for n > 0 && (line[n-1] == '\n' || line[n-1] == '\r' || line[n-1] == ' ') {
		n--
	}
	return line[:n]
}

// aroundMark asks about the lines around the mark in the line at the position. It does not go on:
// what no scattered kind claims may be another's.
func (l *long) aroundMark() {
	pos := l.w.pos()
	data := l.w.lines()
	end := l.group(data)
	if end == len(data) && !l.w.done && end < windowSize { // it may go on
		l.w.more(2 * windowSize)
		data = l.w.lines()
		end = l.group(data)
	}
	l.found, l.searched = -1, pos+int64(end)
	l.logs.spans = l.logs.spans[:0]
	if end > longestLine {
		return
	}
	before := len(l.logs.parts)
	group := paste.Lines(data[:end])
	for i := range group {
		group[i].N += l.line
	}
	l.logs.lines(group)
	l.logs.unknown = nil
	if len(l.logs.parts) != before || l.full() {
		l.look()
	}
}

// group is how many bytes of data stand together around the mark in its first line: lines with
// marks, and some behind each.
func (l *long) group(data []byte) (end int) {
	_, end = lineAround(data, 0)
	single := l.single
	for seen := 0; seen < behindMark && end < len(data); seen++ {
		_, next := lineAround(data, end)
		if more, alone := l.marks.next(data[end:next], 0); more >= 0 {
			seen, single = 0, single && alone
		} else if single {
			break
		}
		if end = next; end > longestLine {
			break
		}
	}
	return end
}

// look makes the search for the kinds that still want lines. It is made anew only where there are
// fewer of them: none wants lines again.
func (l *long) look() {
	full := map[*Kind]bool{}
	for _, p := range l.logs.parts {
		if p.Kind.Scattered && len(p.Lines) >= mostLines {
			full[p.Kind] = true
		}
	}
	if l.marks != nil && len(full) == l.filled {
		return
	}
	l.filled = len(full)
	var all []mark
	for _, k := range l.logs.kinds.all {
		if full[k] {
			continue
		}
		texts := k.Marks
		if len(texts) == 0 {
			texts = k.Hints
		}
		for _, t := range texts {
			all = append(all, mark{text: t, single: k.Single})
		}
	}
	l.marks = newMarks(all, l.sample)
}

// full reports whether a part has just got all the lines that it may have.
func (l *long) full() bool {
	return slices.ContainsFunc(l.logs.parts, func(p *Part) bool { return p.Left > 0 })
}

// newLine asks all kinds about the line at the position, and goes on behind what one claims.
func (l *long) newLine() {
	l.context(contextLines, contextSize)
	first := l.lines[0]
	if first.Command != "" {
		l.prompt()
		return
	}
	if first.Text == "" && first.Raw == "" {
		l.skip(1)
		return
	}
	if first.Path != "" && first.Path != l.path {
		if n := l.files(); n > 0 {
			l.skip(n)
			return
		}
	}
	kind, part := l.claim()
	if kind == nil {
		l.asked++
		l.fail()
		l.all.unknown = nil // but for this one, which may be a title
		l.all.unknow(l.lines[:1:1])
		l.skip(1)
		return
	}
	last := l.last
	switch {
	case kind.Scattered:
		if p := l.logs.place(nil, kind, cloned(part)); p.Left > 0 {
			l.own(len(part)) // it has all the lines that it may have
		}
	case l.total >= mostOthers || l.held[kind] >= mostParts:
		l.tooMany(kind)
		l.own(len(part))
		last = nil
	default:
		last = l.place(kind, part)
	}
	l.skip(len(part))
	l.last = last
}

// What is looked at behind a line at first.
const (
	contextLines = 64
	contextSize  = 16 << 10
)

// context makes the lines from the position on, unless those that are there reach far enough.
func (l *long) context(lines, size int) {
	if len(l.lines) > 0 && l.lines[0].N == l.line+1 && lines == contextLines &&
		(len(l.lines) >= contextLines/2 || l.w.done && l.until == l.w.off+int64(len(l.w.buf))) {
		return
	}
	l.w.more(size)
	data := l.w.lines()
	end := most(data, lines, size)
	l.until = l.w.pos() + int64(end)
	l.lines = paste.Lines(data[:end])
	for i := range l.lines {
		l.lines[i].N += l.line
	}
}

// claim asks about the first line. Where the claim ends near the end of what is looked at, more is.
func (l *long) claim() (*Kind, []paste.Line) {
	for lines, size := contextLines, contextSize; ; {
		var raw rawView
		here := l.lines[:section(l.lines)]
		kind, part := l.all.claim(here, 0, &raw)
		part = part[:l.alien(len(part))]
		l.capped = false
		near := len(part) > len(l.lines)-min(len(l.lines)/2, lookEdge)
		if kind == nil || !near || l.w.done && l.until == l.w.off+int64(len(l.w.buf)) {
			return kind, part
		}
		if kind.Scattered && lines >= logLines {
			return kind, part
		}
		if lines >= largeLines && size >= largeWindow || l.total >= mostOthers || l.held[kind] >= mostParts {
			l.capped = true
			return kind, part
		}
		lines, size = min(lines*8, largeLines), min(size*8, largeWindow)
		l.context(lines, size)
	}
}

// manyOwn lines of the log's own shapes, one below the other, are no part of a dump in it.
const manyOwn = 16

// alien is how many of the first lines from the position on are before the log's own lines: a kind
// whose end was cut off may claim all that follows.
func (l *long) alien(lines int) int {
	data, run, end := l.w.lines(), 0, 0
	for n := range lines {
		_, next := lineAround(data, 0)
		line := trimmed(data[:next])
		data = data[next:]
		if len(line) == 0 {
			continue
		}
		if _, is := l.shapes.new(line); is {
			if at, _ := l.marks.next(line, 0); at < 0 { // a line with a mark may be the log's
				run, end = 0, n+1
			}
			continue
		}
		if run++; run == manyOwn {
			return end
		}
	}
	return lines
}

// place keeps what a kind claims.
func (l *long) place(kind *Kind, lines []paste.Line) *Part {
	if len(lines) < len(l.lines)/2 { // it would keep the rest in memory
		lines = cloned(lines)
	}
	before := len(l.all.parts)
	p := l.all.place(l.last, kind, lines)
	if len(l.all.parts) != before {
		l.held[kind]++
	}
	if l.total += len(lines); l.capped {
		p.Left = -1
		l.own(len(lines))
	}
	return p
}

// cloned copies lines, so that they keep no more text in memory than their own.
func cloned(lines []paste.Line) []paste.Line {
	lines = slices.Clone(lines)
	for i := range lines {
		lines[i].Text, lines[i].Raw = strings.Clone(lines[i].Text), strings.Clone(lines[i].Raw)
	}
	return lines
}

func (l *long) tooMany(kind *Kind) {
	if l.more == nil {
		l.more = map[*Kind]bool{}
	}
	l.more[kind] = true
}

// prompt takes the prompt at the position. What follows is asked whatever its shape.
func (l *long) prompt() {
	l.all.prompt = l.lines[0]
	l.all.typed(l.lines[0])
	l.all.section++
	l.asked++
	l.fail()
	l.skip(1 + l.all.named(l.lines[:sameHost(l.lines, 0)], 1))
	l.forced = l.line + 1
}

// files takes lines of several files that grep named, which are known together.
func (l *long) files() int {
	l.path = l.lines[0].Path
	l.context(mostNamed, windowSize)
	return l.all.named(l.lines, 0)
}

// fail counts the shape of the line at the position.
func (l *long) fail() {
	data := l.w.lines()
	_, end := lineAround(data, 0)
	shape, _ := l.shapes.new(trimmed(data[:end]))
	l.shapes.fail(shape)
}

// own takes the shapes of some lines from the position on for the text's own.
func (l *long) own(lines int) {
	data := l.w.lines()
	l.shapes.own(data[:most(data, lines, len(data))])
}

// skip goes on behind some lines.
func (l *long) skip(lines int) {
	data := l.w.lines()
	n := most(data, lines, len(data))
	l.w.at += n
	l.line += lines
	l.lines = l.lines[min(lines, len(l.lines)):]
	l.last = nil
	if l.found >= 0 && l.found < l.w.pos() {
		l.found = -1
	}
	l.searched = max(l.searched, l.w.pos())
}

// notes say what was not looked at.
func (l *long) notes(file string) []string {
	note := fmt.Sprintf("%s is long: of lines that look alike the first %d were asked about every kind, all for marks of logs", file, manyFailed)
	if l.passed > 0 {
		note += fmt.Sprintf("; %s that look like few others were not asked, since too many had been", Plural(l.passed, "line"))
	}
	for _, k := range l.all.kinds.all {
		if l.more[k] {
			note += fmt.Sprintf("; further parts of %s are left out", k.Name)
		}
	}
	return []string{note}
}
