package format

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Bounds of a profile. The decoder here is our own because profile.Parse makes some 60 bytes of
// each 2 that a hostile profile has, and unpacks without end; a test holds it to the same answers.
const (
	maxUnpacked = 64 << 20
	maxEntries  = 1 << 20 // of locations, functions, strings each
	maxStacks   = 1 << 19
	maxFrames   = 4 << 20 // of all stacks together
	maxDepth    = 512     // of one stack: Go's own profiles have 128 at most
)

// Profile is the part of a pprof profile that is used: the sums of each stack.
type Profile struct {
	Types      []string // "delay/nanoseconds", one for each value of a stack
	Stacks     []ProfileStack
	TimeNS     int64 // Unix epoch, when it was taken; 0: not stated
	DurationNS int64 // what it covers; 0: all since the program started, for cumulative ones
}

// ProfileStack has the sums of one stack, innermost function first.
type ProfileStack struct {
	Funcs  []string
	Values []int64
}

// ParseProfile parses a pprof profile, packed or not. It reads the message twice: samples may come
// before the functions they name.
func ParseProfile(data []byte) (*Profile, error) {
	data, err := Gunzip(data, maxUnpacked)
	if err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	if _, _, ok := legacyHead(data); ok {
		return parseLegacyCPU(data)
	}
	d := &profileDecoder{locations: map[uint64][]uint64{}, functions: map[uint64]uint64{}, stacks: map[string]int{}}
	for _, pass := range []func(num uint64, wire int, v uint64, b []byte) error{d.tables, d.samples} {
		if err := fields(data, pass); err != nil {
			return nil, fmt.Errorf("read profile: %w", err)
		}

	}
	if len(d.p.Types) == 0 {
		return nil, errors.New("read profile: has no sample types")
	}
	return &d.p, nil
}

// profileDecoder follows profile.proto of github.com/google/pprof; the numbers of its fields are in
// the cases.
type profileDecoder struct {
	p         Profile
	types     [][2]uint64 // of each sample type: name, unit
	strings   []string
	locations map[uint64][]uint64 // id -> functions, innermost first
	functions map[uint64]uint64   // id -> name
	lines     int
	stacks    map[string]int // locations of a stack -> index in p.Stacks
	frames    int
}

func (d *profileDecoder) tables(num uint64, wire int, v uint64, b []byte) error {
	switch {
	case num == 1 && wire == 2: // sample_type
		t, err := message(b, 1, 2)
		if d.types = append(d.types, [2]uint64{t[0], t[1]}); len(d.types) > 16 {
			return errors.New("more than 16 sample types")
		}
		return err
	case num == 4 && wire == 2:
		return d.location(b)
	case num == 5 && wire == 2: // function: id, name
		f, err := message(b, 1, 2)
		d.functions[f[0]] = f[1]
		return errors.Join(err, tooMany("functions", len(d.functions), maxEntries))
	case num == 6 && wire == 2: // string_table
		d.strings = append(d.strings, string(b))
		return tooMany("strings", len(d.strings), maxEntries)
	case num == 9 && wire == 0:
		d.p.TimeNS = int64(v)
	case num == 10 && wire == 0:
		d.p.DurationNS = int64(v)
	}
	return nil
}

func (d *profileDecoder) location(b []byte) error {
	var id uint64
	var funcs []uint64
	err := fields(b, func(num uint64, wire int, v uint64, b []byte) error {
		switch {
		case num == 1 && wire == 0:
			id = v
		case num == 4 && wire == 2: // line: function_id
			l, err := message(b, 1, 2)
			funcs = append(funcs, l[0])
			d.lines++
			return errors.Join(err, tooMany("lines", d.lines, maxEntries))
		}
		return nil
	})
	d.locations[id] = funcs
	return errors.Join(err, tooMany("locations", len(d.locations), maxEntries))
}

func (d *profileDecoder) samples(num uint64, wire int, v uint64, b []byte) error {
	if d.p.Types == nil {
		for _, t := range d.types {
			d.p.Types = append(d.p.Types, d.str(t[0])+"/"+d.str(t[1]))
		}
	}
	if num != 2 || wire != 2 {
		return nil
	}
	var where []byte // locations, as a key
	values := make([]int64, 0, len(d.types))
	err := fields(b, func(num uint64, wire int, v uint64, b []byte) error {
		switch num {
		case 1: // location_id
			return repeated(wire, v, b, func(v uint64) error {
				if len(where) < maxDepth*8 {
					where = binary.LittleEndian.AppendUint64(where, v)
				}
				return nil
			})
		case 2: // value
			return repeated(wire, v, b, func(v uint64) error {
				if len(values) == len(d.types) {
					return errors.New("sample: more values than sample types")
				}
				values = append(values, int64(v))
				return nil
			})
		}
		return nil // labels: the sums are over them
	})
	if err != nil {
		return err
	}
	if len(values) != len(d.types) {
		return fmt.Errorf("sample: want %d values, got %d", len(d.types), len(values))
	}
	i, ok := d.stacks[string(where)]
	if !ok {
		i = len(d.p.Stacks)
		d.stacks[string(where)] = i
		d.p.Stacks = append(d.p.Stacks, ProfileStack{Funcs: d.names(where), Values: make([]int64, len(d.types))})
		if err := errors.Join(tooMany("stacks", i, maxStacks), tooMany("frames", d.frames, maxFrames)); err != nil {
			return err
		}
	}
	for k, v := range values {
		d.p.Stacks[i].Values[k] += v
	}
	return nil
}

func (d *profileDecoder) names(where []byte) []string {
	var out []string
	for ; len(where) >= 8; where = where[8:] {
		for _, f := range d.locations[binary.LittleEndian.Uint64(where)] {
			if len(out) == maxDepth {
				break
			}
			name := d.str(d.functions[f])
			if name == "" {
				name = "?"
			}
			out = append(out, name)
		}
	}
	d.frames += len(out)
	return out
}

func (d *profileDecoder) str(i uint64) string {
	if i >= uint64(len(d.strings)) {
		return ""
	}
	return d.strings[i]
}

func tooMany(what string, n, most int) error {
	if n > most {
		return fmt.Errorf("more than %d %s", most, what)
	}
	return nil
}

var errWire = errors.New("not a protocol buffer, or cut short")

// fields calls do for each field of a message: v for numbers, b for bytes.
func fields(data []byte, do func(num uint64, wire int, v uint64, b []byte) error) error {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 || tag>>3 == 0 {
			return errWire
		}
		data = data[n:]
		wire := int(tag & 7)
		var v uint64
		var b []byte
		switch wire {
		case 0:
			if v, n = binary.Uvarint(data); n <= 0 {
				return errWire
			}
		case 1:
			n = 8
		case 2:
			size, m := binary.Uvarint(data)
			if m <= 0 || size > uint64(len(data)-m) {
				return errWire
			}
			b, n = data[m:m+int(size)], m+int(size)
		case 5:
			n = 4
		default:
			return errWire
		}
		if n > len(data) {
			return errWire
		}
		if err := do(tag>>3, wire, v, b); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// message returns two numeric fields of a message.
func message(b []byte, first, second uint64) (out [2]uint64, err error) {
	err = fields(b, func(num uint64, wire int, v uint64, _ []byte) error {
		switch {
		case wire != 0:
		case num == first:
			out[0] = v
		case num == second:
			out[1] = v
		}
		return nil
	})
	return out, err
}

// repeated calls do for each number of a repeated field, packed or not.
func repeated(wire int, v uint64, b []byte, do func(uint64) error) error {
	if wire == 0 {
		return do(v)
	}
	if wire != 2 {
		return errWire
	}
	for len(b) > 0 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return errWire
		}
		if err := do(v); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// looksProfile recognises a legacy CPU profile, or an uncompressed one of today: all fields that
// the head has room for are those of profile.proto, and a ValueType is among them. Go writes that
// first, in a CPU profile second.
func looksProfile(h head) bool {
	if _, _, ok := legacyHead(h.data); ok {
		return true
	}
	head := h.data
	const valueTypes = 1<<1 | 1<<11
	const lengths, numbers = 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<11 | 1<<13,
		1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<12 | 1<<13 | 1<<14 | 1<<15
	typed := false
	for n := 0; n < 32 && len(head) > 0; n++ {
		field, wire := head[0]>>3, head[0]&7
		size, used := binary.Uvarint(head[1:])
		switch {
		case head[0]&0x80 != 0 || used <= 0:
			return typed && len(head) < 10 // cut where head ends
		case wire == 2 && lengths>>field&1 == 1:
			if valueTypes>>field&1 == 1 {
				if !isValueType(head[1:]) {
					return false
				}
				typed = true
			}
			used += int(min(size, HeadSize))
		case wire == 0 && numbers>>field&1 == 1:
		default:
			return false
		}
		head = head[min(len(head), 1+used):]
	}
	return typed
}

// isValueType recognises a short message of two indexes, its length in front.
func isValueType(b []byte) bool {
	if len(b) == 0 || b[0] < 2 || b[0] > 22 || int(b[0]) >= len(b) {
		return false
	}
	return fields(b[1:1+b[0]], func(num uint64, wire int, _ uint64, _ []byte) error {
		if wire != 0 || num > 2 {
			return errWire
		}
		return nil
	}) == nil
}
