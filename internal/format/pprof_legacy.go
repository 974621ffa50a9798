package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// CPU profiles of gperftools, of Go before 1.9 and of C++ and Java servers are no protocol buffers.
// They are words of 4 or 8 bytes in the machine's order: a head of 0, 3, 0 (1 for Java), the period
// in us, 0; then for each stack its samples, its depth and its addresses, innermost first; then 0,
// 1, 0. The map of the address space follows as text, and for Java the names of the addresses.
// Source: cpuprofile-fileformat.html of gperftools.

// wordsOf is how a legacy profile writes numbers.
type wordsOf struct {
	size  int
	order binary.ByteOrder
}

var legacyWords = []wordsOf{{8, binary.LittleEndian}, {4, binary.LittleEndian},
	{8, binary.BigEndian}, {4, binary.BigEndian}}

// at is the word at an index; 0 behind the end, which legacyHead has ruled out for the head.
func (w wordsOf) at(data []byte, i int) uint64 {
	if (i+1)*w.size > len(data) {
		return 0
	}
	if w.size == 4 {
		return uint64(w.order.Uint32(data[i*4:]))
	}
	return w.order.Uint64(data[i*8:])
}

// mostPeriod bounds the period of a CPU profile: a minute, in us.
const mostPeriod = 60e6

// legacyHead recognises the head of a legacy CPU profile.
func legacyHead(data []byte) (w wordsOf, periodNS int64, ok bool) {
	for _, w := range legacyWords {
		if len(data) < 8*w.size {
			continue
		}
		version, period := w.at(data, 2), w.at(data, 3)
		if w.at(data, 0) == 0 && w.at(data, 1) == 3 && version <= 1 && period > 0 &&
			period <= mostPeriod && w.at(data, 4) == 0 && w.at(data, 6) > 0 && w.at(data, 6) <= maxDepth {
			return w, int64(period) * 1000, true
		}
	}
	return w, 0, false
}

// parseLegacyCPU parses one. Addresses stand for functions where the file has no names.
func parseLegacyCPU(data []byte) (*Profile, error) {
	w, period, ok := legacyHead(data)
	if !ok {
		return nil, errors.New("read profile: not a legacy CPU profile")
	}
	type stack struct {
		at, depth int
		samples   uint64
	}
	var stacks []stack
	frames, i, total := 0, 5, len(data)/w.size
	for i+1 < total {
		n, depth := w.at(data, i), w.at(data, i+1)
		if depth > maxDepth || int(depth) > total-i-2 || n > 1<<40 {
			return nil, fmt.Errorf("read profile: stack %d is damaged or cut", len(stacks))
		}
		i += 2 + int(depth)
		if n == 0 && depth == 1 && w.at(data, i-1) == 0 {
			break
		}
		stacks = append(stacks, stack{i - int(depth), int(depth), n})
		frames += int(depth)
		if err := errors.Join(tooMany("stacks", len(stacks), maxStacks),
			tooMany("frames", frames, maxFrames)); err != nil {
			return nil, fmt.Errorf("read profile: %w", err)
		}
	}
	names := legacyNames(data[min(i*w.size, len(data)):])
	p := &Profile{Types: []string{"samples/count", "cpu/nanoseconds"}}
	for _, s := range stacks {
		out := ProfileStack{Values: []int64{int64(s.samples), int64(s.samples) * period}}
		for k := range s.depth {
			at := w.at(data, s.at+k)
			name, ok := names[at]
			if !ok {
				name = "0x" + strconv.FormatUint(at, 16)
			}
			out.Funcs = append(out.Funcs, name)
		}
		p.Stacks = append(p.Stacks, out)
	}
	return p, nil
}

// legacyNames reads the names that Java's profiles have: "0x00000003 com.example.Cart.add".
func legacyNames(text []byte) map[uint64]string {
	names := map[uint64]string{}
	for line := range bytes.Lines(text) {
		f := strings.Fields(string(line[:min(len(line), 1024)]))
		if len(f) < 2 || !strings.HasPrefix(f[0], "0x") || len(names) >= maxEntries/16 {
			continue
		}
		if at, err := strconv.ParseUint(f[0][2:], 16, 64); err == nil {
			names[at] = f[1]
		}
	}
	return names
}
