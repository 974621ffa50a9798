package symbol

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	maxMappings = 1 << 16 // executable ones; the kernel's own limit is 65530 of all, unless raised
	maxMapsLine = 8 << 10 // a path has at most 4 KiB; escapes quadruple it only if it is odd
)

// mapping is one executable line of /proc/PID/maps.
type mapping struct {
	start, end uint64
	offset     uint64 // in the file
	dev        uint64 // major<<32 | minor
	inode      uint64
	path       string // as the target's mount namespace has it; "" anonymous
	deleted    bool

	mod *module
}

// parseMaps returns the executable mappings, ascending. Those that it returns with an error are
// good.
func parseMaps(r io.Reader) ([]mapping, error) {
	// The kernel hands out a page at a time, and releases mmap_lock in between: a larger buffer
	// changes nothing.
	b := bufio.NewReaderSize(r, maxMapsLine)
	var all []mapping
	for n := 1; ; n++ {
		line, err := b.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			return all, nil
		}
		if err != nil && err != io.EOF {
			if errors.Is(err, bufio.ErrBufferFull) {
				err = fmt.Errorf("line %d: longer than %d bytes", n, maxMapsLine)
			}
			return all, err
		}
		m, exec, err := parseMapping(string(line))
		if err != nil {
			return all, fmt.Errorf("line %d: %w", n, err)
		}
		if !exec {
			continue
		}
		if len(all) > 0 && m.start < all[len(all)-1].end {
			continue // the map changed between two pages of it
		}
		if len(all) == maxMappings {
			return all, fmt.Errorf("more than %d executable mappings", maxMappings)
		}
		all = append(all, m)
	}
}

// parseMapping reads "55d0c0a00000-55d0c0a21000 r-xp 00001000 fe:00 131 /usr/bin/x (deleted)".
func parseMapping(line string) (m mapping, exec bool, err error) {
	line = strings.TrimSuffix(line, "\n")
	var field [5]string
	rest := line
	for i := range field {
		rest = strings.TrimLeft(rest, " ")
		f, r, _ := strings.Cut(rest, " ")
		if f == "" {
			return m, false, fmt.Errorf("want 5 fields, got %d", i)
		}
		field[i], rest = f, r
	}
	from, to, ok := strings.Cut(field[0], "-")
	if !ok || len(field[1]) != 4 {
		return m, false, fmt.Errorf("not a mapping: %.60q", line)
	}
	major, minor, _ := strings.Cut(field[3], ":")
	var maj, min uint64
	for _, p := range []struct {
		to   *uint64
		text string
		base int
		bits int
	}{
		{&m.start, from, 16, 64}, {&m.end, to, 16, 64}, {&m.offset, field[2], 16, 64},
		{&maj, major, 16, 32}, {&min, minor, 16, 32}, {&m.inode, field[4], 10, 64},
	} {
		if *p.to, err = strconv.ParseUint(p.text, p.base, p.bits); err != nil {
			return m, false, fmt.Errorf("%.60q: %w", line, err)
		}
	}
	if m.end <= m.start {
		return m, false, fmt.Errorf("%.60q: ends before it starts", line)
	}
	m.dev = maj<<32 | min
	m.path = strings.ReplaceAll(strings.TrimLeft(rest, " "), `\012`, "\n")
	if p, ok := strings.CutSuffix(m.path, " (deleted)"); ok && m.inode != 0 {
		m.path, m.deleted = p, true
	}
	return m, field[1][2] == 'x', nil
}
