package export

import (
	"bufio"
	"cmp"
	"io"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of fields, of protos/perfetto/trace/*.proto of https://github.com/google/perfetto.
const (
	tracePacket = 1

	packetClockSnapshot = 6
	packetTimestamp     = 8
	packetSequence      = 10
	packetEvent         = 11
	packetInterned      = 12
	packetFlags         = 13
	packetDefaults      = 59
	packetTrack         = 60

	trackUUID, trackName, trackParent, trackCounter, trackOrdering, trackRank = 1, 2, 5, 8, 11, 12
	counterUnit, counterUnitName                                              = 3, 6

	eventNotes, eventType, eventNameID, eventTrack = 4, 9, 10, 11
	eventDouble, eventFlows, eventFlowsEnd         = 44, 47, 48

	noteNameID, noteInt, noteDouble, noteStringID, noteArray = 1, 4, 5, 17, 12

	internedNames, internedNotes, internedStrings = 2, 3, 29

	clockClocks, clockPrimary, clockID, clockTimestamp = 1, 2, 1, 2
	defaultsClock                                      = 58

	clockRealtime, clockMonotonic, clockBoottime = 1, 3, 6
	orderExplicit                                = 3
	flagsCleared, flagsNeeded                    = 1, 2
	unitCount, unitBytes                         = 2, 3
)

// mark is what an event is: TrackEvent.Type.
type mark int

const (
	markBegin   mark = 1
	markEnd     mark = 2
	markInstant mark = 3
	markCounter mark = 4
)

// event is one on a track.
type event struct {
	at    int64
	mark  mark
	track uint64
	depth int
	name  string
	notes []note
	value float64 // of a counter
	flow  uint64  // that starts here, 0 none
	ends  uint64  // that ends here
}

// note is an annotation. One of its values is set.
type note struct {
	name   string
	text   string
	list   []string
	number int64
	share  float64
}

// order is in which of several events at one moment come first: what ends, the innermost first,
// then moments, then what starts, the outermost first.
func order(a, b *event) int {
	rank := func(e *event) int {
		switch e.mark {
		case markEnd:
			return -1 - e.depth
		case markBegin:
			return 1 + e.depth
		}
		return 0
	}
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(rank(a), rank(b)))
}

// packets are the tracks and events of one file.
type packets struct {
	tracks []track
	events []event
	flows  uint64
}

type track struct {
	id, parent uint64
	name       string
	rank       int
	unit       int // of a counter; 0: it has slices
	unitName   string
}

// base is where the numbers of tracks and flows start, so that they differ from those of other
// files that are put behind this one.
const base = 0x7768797374616c6c

func (p *packets) track(t track) uint64 {
	t.id, t.rank = base+uint64(len(p.tracks))+1, len(p.tracks)
	p.tracks = append(p.tracks, t)
	return t.id
}

// slice adds a stretch of a track, within others if depth is more than 0. It returns the place of
// its start among the events, -1 if it has no length.
func (p *packets) slice(track uint64, begin, end int64, depth int, name string, notes ...note) int {
	if end <= begin {
		return -1
	}
	p.events = append(p.events, event{at: begin, mark: markBegin, track: track, depth: depth,
		name: name, notes: notes}, event{at: end, mark: markEnd, track: track, depth: depth})
	return len(p.events) - 2
}

// clocks says what times are of.
type clocks struct {
	id     uint64 // of all times
	at     int64
	wall   bool
	offset int64
}

// write writes everything, with names by number where each stands first.
func (p *packets) write(to io.Writer, c clocks) error {
	w := &packetWriter{w: bufio.NewWriter(to)}
	for i := range w.words {
		w.words[i] = map[string]uint64{}
	}
	w.first(c)
	for i := range p.tracks {
		w.track(&p.tracks[i])
	}
	slices.SortStableFunc(p.events, func(a, b event) int { return order(&a, &b) })
	for i := range p.events {
		w.event(&p.events[i])
	}
	if w.err != nil {
		return w.err
	}
	return w.w.Flush()
}

type packetWriter struct {
	w     *bufio.Writer
	words [3]map[string]uint64 // names of events, names of annotations, texts
	fresh [3][]string          // of them those that this packet has first
	err   error
}

const (
	wordEvent = iota
	wordNote
	wordText
)

// word is the number of a word.
func (w *packetWriter) word(kind int, s string) uint64 {
	n, ok := w.words[kind][s]
	if !ok {
		n = uint64(len(w.words[kind]) + 1)
		w.words[kind][s] = n
		w.fresh[kind] = append(w.fresh[kind], s)
	}
	return n
}

func number(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func fixed(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), v)
}

func words(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func message(b []byte, field protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), m)
}

// packet writes one, with the words that it has first.
func (w *packetWriter) packet(b []byte, flags uint64) {
	var interned []byte
	for kind, field := range [3]protowire.Number{internedNames, internedNotes, internedStrings} {
		for _, s := range w.fresh[kind] {
			interned = message(interned, field, words(number(nil, 1, w.words[kind][s]), 2, s))
		}
		w.fresh[kind] = w.fresh[kind][:0]
	}
	if interned != nil {
		b = message(b, packetInterned, interned)
	}
	b = number(number(b, packetSequence, 1), packetFlags, flags)
	if _, err := w.w.Write(message(nil, tracePacket, b)); w.err == nil {
		w.err = err
	}
}

func (w *packetWriter) first(c clocks) {
	w.packet(message(nil, packetDefaults, number(nil, defaultsClock, c.id)), flagsCleared)
	clock := func(id uint64, at int64) []byte {
		return number(number(nil, clockID, id), clockTimestamp, uint64(max(0, at)))
	}
	m := message(nil, clockClocks, clock(c.id, c.at))
	if c.wall {
		m = message(m, clockClocks, clock(clockRealtime, c.at+c.offset))
	}
	w.packet(message(nil, packetClockSnapshot, number(m, clockPrimary, c.id)), flagsNeeded)
}

func (w *packetWriter) track(t *track) {
	b := words(number(nil, trackUUID, t.id), trackName, t.name)
	if t.parent != 0 {
		b = number(b, trackParent, t.parent)
	}
	if t.unit != 0 {
		c := number(nil, counterUnit, uint64(t.unit))
		if t.unitName != "" {
			c = words(nil, counterUnitName, t.unitName)
		}
		b = message(b, trackCounter, c)
	}
	b = number(number(b, trackOrdering, orderExplicit), trackRank, uint64(t.rank))
	w.packet(message(nil, packetTrack, b), flagsNeeded)
}

func (w *packetWriter) event(e *event) {
	b := number(number(nil, eventType, uint64(e.mark)), eventTrack, e.track)
	if e.name != "" {
		b = number(b, eventNameID, w.word(wordEvent, e.name))
	}
	if e.mark == markCounter {
		b = fixed(b, eventDouble, math.Float64bits(e.value))
	}
	if e.flow != 0 {
		b = fixed(b, eventFlows, e.flow)
	}
	if e.ends != 0 {
		b = fixed(b, eventFlowsEnd, e.ends)
	}
	for i := range e.notes {
		if m := w.note(&e.notes[i]); m != nil {
			b = message(b, eventNotes, m)
		}
	}
	w.packet(message(number(nil, packetTimestamp, uint64(max(0, e.at))), packetEvent, b), flagsNeeded)
}

// note is nil where there is nothing to say.
func (w *packetWriter) note(n *note) []byte {
	b := number(nil, noteNameID, w.word(wordNote, n.name))
	switch {
	case n.text != "":
		return number(b, noteStringID, w.word(wordText, n.text))
	case n.number != 0:
		return number(b, noteInt, uint64(n.number))
	case n.share != 0:
		return protowire.AppendFixed64(protowire.AppendTag(b, noteDouble, protowire.Fixed64Type),
			math.Float64bits(n.share))
	case len(n.list) > 0:
		for _, s := range n.list {
			b = message(b, noteArray, number(nil, noteStringID, w.word(wordText, s)))
		}
		return b
	}
	return nil
}
