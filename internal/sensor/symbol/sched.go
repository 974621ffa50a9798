package symbol

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// schedOffsets is where fields of the runtime's schedt lie.
type schedOffsets struct {
	version          string
	lock, stop, safe uint64
}

// schedTable is from the DWARF of programs built with the last patch release of each version, for
// amd64 and arm64, which agree. All offsets are for 64-bit words. From 1.24 on lock2 sleeps on the
// M's own semaphore, so no thread sleeps on the lock's address.
var schedTable = []schedOffsets{
	{"1.13", 16, 256, 296},
	{"1.14", 24, 264, 304},
	{"1.15", 24, 264, 304},
	{"1.16", 24, 264, 312},
	{"1.17", 24, 264, 312},
	{"1.18", 24, 232, 272},
	{"1.19", 24, 232, 272},
	{"1.20", 24, 240, 280},
	{"1.21", 24, 240, 280},
	{"1.22", 24, 240, 280},
	{"1.23", 24, 240, 280},
	{"1.24", 0, 240, 280},
	{"1.25", 0, 256, 296},
	{"1.26", 0, 272, 312},
}

// schedOf finds the offsets of a version as buildinfo has it: "go1.26.8", "go1.26.8 X:nodwarf5",
// "go1.26-abcdef".
func schedOf(version, arch string) (schedOffsets, error) {
	if arch != "amd64" && arch != "arm64" {
		return schedOffsets{}, fmt.Errorf("find stopnote: no table for %q", arch)
	}
	// Static lock ranking makes every lock larger.
	if !strings.Contains(version, "staticlockranking") {
		for _, o := range schedTable {
			if rest, ok := strings.CutPrefix(version, "go"+o.version); ok &&
				(rest == "" || rest[0] < '0' || rest[0] > '9') {
				return o, nil
			}
		}
	}
	return schedOffsets{}, fmt.Errorf("find stopnote: no table for %.60q", version)
}

// findObject finds the linked address of a variable in the full symbol table, which it reads
// through without keeping it.
func findObject(im *image, name string) (uint64, error) {
	sec, ok := im.named(".symtab")
	names, ok2 := im.named(".strtab")
	if !ok || !ok2 || !im.wide || sec.entry != 24 {
		return 0, fmt.Errorf("find %s: the program has no symbols (stripped)", name)
	}
	if sec.size/24 > maxScanned || names.size > maxStrings {
		return 0, fmt.Errorf("find %s: %d symbols with %d bytes of names, over the limit", name,
			sec.size/24, names.size)
	}
	// It finds the places of the name first, as names lie one after another: then it need not read
	// the name of each symbol.
	places := findStrings(im, names, name)
	le := binary.LittleEndian
	r := io.NewSectionReader(im.r, int64(sec.off), int64(sec.size))
	block := make([]byte, 4096*24)
	for len(places) > 0 {
		n, err := io.ReadFull(r, block)
		for b := block[:n/24*24]; len(b) > 0; b = b[24:] {
			if b[4]&15 == 1 && places[le.Uint32(b)] {
				return le.Uint64(b[8:]), nil
			}
		}
		if err != nil {
			break
		}
	}
	return 0, fmt.Errorf("find %s: no such symbol", name)
}

const maxStrings = 1 << 28

// findStrings returns the offsets in a string table at which the string s is, alone or as the end
// of another.
func findStrings(im *image, table section, s string) map[uint32]bool {
	found := map[uint32]bool{}
	want := s + "\x00"
	const step = 1 << 16
	for off := uint64(0); off < table.size; off += step {
		b, err := im.bytes(table.off+off, min(step+uint64(len(want))-1, table.size-off))
		if err != nil {
			break
		}
		text := string(b)
		for i := 0; len(found) < 64; {
			j := strings.Index(text[i:], want)
			if j < 0 {
				break
			}
			found[uint32(off)+uint32(i+j)] = true
			i += j + 1
		}
	}
	return found
}
