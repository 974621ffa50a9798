package exectrace

import (
	"encoding/binary"
	"math/bits"
)

// uvarint decodes the varint at d[i] and gives the index behind it. Past the end of d, or for a
// varint that does not end, that index is past the end: so callers check once an event.
func uvarint(d []byte, i int) (uint64, int) {
	if uint(i) < uint(len(d)) && d[i] < 0x80 {
		return uint64(d[i]), i + 1
	}
	return uvarintSlow(d, i)
}

const pastEnd = 1 << 40

func uvarintSlow(d []byte, i int) (uint64, int) {
	if uint(i)+1 < uint(len(d)) && d[i+1] < 0x80 {
		return uint64(d[i]&0x7f) | uint64(d[i+1])<<7, i + 2
	}
	var v uint64
	for s := uint(0); s < 64 && uint(i) < uint(len(d)); s += 7 {
		b := d[i]
		i++
		if b < 0x80 {
			if s == 63 && b > 1 {
				break
			}
			return v | uint64(b)<<s, i
		}
		v |= uint64(b&0x7f) << s
	}
	return 0, pastEnd
}

// The fast decoders (v2sprint.go, v2sums.go) load eight bytes at once and find where varints end in
// them without a loop:
//
//  1. The last byte of a varint is the one whose top bit is clear. stopBits turns those bits into
//     ones, and all others into zeros.
//  2. The lowest of them is where the first varint ends: TrailingZeros64 gives its place, 7 bits
//     into the byte. stops & (stops-1) takes it away, so that the next lowest is where the second
//     ends.
//  3. varint moves the seven bits of each byte together.

// short masks the stop bits of the first five bytes. A varint that varint can decode ends in one.
const short = 0x8080808080

// first8 loads the eight bytes at d[i], which must be there.
func first8(d []byte, i int) uint64 { return binary.LittleEndian.Uint64(d[i:]) }

// stopBits marks the last byte of each varint in w by its top bit.
func stopBits(w uint64) uint64 { return ^w & 0x8080808080808080 }

// varint gives the value of the varint at the start of w, which ends at the lowest stop bit. Only
// five bytes of it count.
func varint(w, stops uint64) uint64 {
	x := w & (stops ^ (stops - 1))
	return x&0x7f | x>>1&0x3f80 | x>>2&0x1fc000 | x>>3&0xfe00000 | x>>4&0x7f0000000
}

// varint4 is varint for at most four bytes.
func varint4(w, stops uint64) uint64 {
	x := w & (stops ^ (stops - 1))
	return x&0x7f | x>>1&0x3f80 | x>>2&0x1fc000 | x>>3&0xfe00000
}

// second is the value of the second varint in w.
func second(w, stops uint64) uint32 {
	n := bits.TrailingZeros64(stops) + 1
	return uint32(varint(w>>n, stops>>n))
}
