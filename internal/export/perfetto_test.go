package export

import (
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// fields are those of one message: numbers of varints and fixed64, bytes of what is longer.
type fields map[protowire.Number][]field

type field struct {
	n uint64
	b []byte
}

func decode(t *testing.T, b []byte) fields {
	t.Helper()
	out := fields{}
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
		var f field
		switch kind {
		case protowire.VarintType:
			f.n, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			f.n, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			f.b, n = protowire.ConsumeBytes(b)
		default:
			t.Fatalf("field %d of the type %d", num, kind)
		}
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		out[num] = append(out[num], f)
		b = b[n:]
	}
	return out
}

func (f fields) number(i protowire.Number) uint64 {
	if len(f[i]) == 0 {
		return 0
	}
	return f[i][0].n
}

// perfettoRead holds a file to what its readers need, and counts what it has.
type perfettoRead struct {
	tracks        map[uint64]string
	words         [3]map[uint64]string
	open          map[uint64][]uint64 // starts of a track's open slices
	busy          map[uint64]uint64   // when a track's last slice ended
	flows         map[uint64]bool
	last          uint64
	slices, wakes int
}

func (r *perfettoRead) packet(t *testing.T, p fields, first bool) {
	t.Helper()
	if p.number(packetSequence) == 0 {
		t.Error("a packet without a sequence")
	}
	if want := map[bool]uint64{true: flagsCleared, false: flagsNeeded}[first]; p.number(packetFlags) != want {
		t.Errorf("flags %d, want %d", p.number(packetFlags), want)
	}
	for _, m := range p[packetInterned] {
		for i, num := range [3]protowire.Number{internedNames, internedNotes, internedStrings} {
			for _, x := range decode(t, m.b)[num] {
				w := decode(t, x.b)
				r.words[i][w.number(1)] = string(w[2][0].b)
				if !utf8.Valid(w[2][0].b) || len(w[2][0].b) > mostText+10 {
					t.Errorf("a word of %d bytes, or no UTF-8", len(w[2][0].b))
				}
			}
		}
	}
	for _, m := range p[packetTrack] {
		d := decode(t, m.b)
		if parent := d.number(trackParent); parent != 0 && r.tracks[parent] == "" {
			t.Errorf("a track below one that is not there yet: %d", parent)
		}
		r.tracks[d.number(trackUUID)] = string(d[trackName][0].b)
	}
	for _, m := range p[packetEvent] {
		r.event(t, p.number(packetTimestamp), decode(t, m.b))
	}
}

func (r *perfettoRead) event(t *testing.T, at uint64, e fields) {
	t.Helper()
	track := e.number(eventTrack)
	if r.tracks[track] == "" || at < r.last {
		t.Errorf("an event at %d after %d, of the track %d", at, r.last, track)
	}
	r.last = at
	switch mark(e.number(eventType)) {
	case markBegin:
		if len(r.open[track]) == 0 && at < r.busy[track] {
			t.Errorf("slices of %s overlap", r.tracks[track])
		}
		r.open[track] = append(r.open[track], at)
	case markEnd:
		n := len(r.open[track])
		if n == 0 || r.open[track][n-1] >= at {
			t.Fatalf("an end at %d that ends nothing on %s", at, r.tracks[track])
		}
		r.open[track], r.busy[track] = r.open[track][:n-1], at
		r.slices++
	}
	if n := e.number(eventNameID); n != 0 && r.words[wordEvent][n] == "" {
		t.Errorf("an event with the name %d, which is not there", n)
	}
	for _, m := range e[eventNotes] {
		note := decode(t, m.b)
		if id := note.number(noteStringID); r.words[wordNote][note.number(noteNameID)] == "" ||
			id != 0 && r.words[wordText][id] == "" {
			t.Errorf("a note %v whose words are not there", note)
		}
	}
	for _, f := range e[eventFlows] {
		r.flows[f.n] = true
	}
	for _, f := range e[eventFlowsEnd] {
		if !r.flows[f.n] {
			t.Error("a flow ends before it starts")
		}
		r.wakes++
	}
}

func TestPerfetto(t *testing.T) {
	for name, want := range map[string]struct {
		s             *Source
		slices, wakes int
	}{
		// The recording, 2 findings, 2 requests, 2 links, a band, a stop-the-world, 2 requests; of
		// goroutines 2 spans of 7, 1 of 8 and its rest in the second story, and of Ps 1.
		"trace":  {sample(), 17, 1},
		"native": {native(), 9, 0},
	} {
		r := &perfettoRead{tracks: map[uint64]string{}, open: map[uint64][]uint64{},
			busy: map[uint64]uint64{}, flows: map[uint64]bool{}}
		for i := range r.words {
			r.words[i] = map[uint64]string{}
		}
		for i, m := range decode(t, written(t, want.s, "perfetto"))[tracePacket] {
			r.packet(t, decode(t, m.b), i == 0)
		}
		for track, open := range r.open {
			if len(open) > 0 {
				t.Errorf("%s: %d slices of %s have no end", name, len(open), r.tracks[track])
			}
		}
		if r.slices != want.slices || r.wakes != want.wakes {
			t.Errorf("%s: %d slices and %d flows, want %d and %d", name, r.slices, r.wakes, want.slices, want.wakes)
		}
	}
}
