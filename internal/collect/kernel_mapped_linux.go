package collect

import (
	"bufio"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/sensor/bpf"
)

// mappedFiles names the files whose pages threads fault in from a disk. The target's maps are read
// at most once a second, and only while there are such faults: a file mapped since has no name
// until then.
type mappedFiles struct {
	maps   string // file
	readAt int64  // when it was read
	list   []mappedFile
}

type mappedFile struct {
	start, end uint64
	path       string
}

const (
	mapsEvery = 1e9
	maxMaps   = 16 << 20 // bytes of maps; 65530 mappings of long paths are as many
)

// fault returns the number of a stack of one frame for the file of a major fault, 0 for none.
func (m *mappedFiles) fault(s *bpfStream, e *bpf.Event) uint32 {
	if e.Time-m.readAt > mapsEvery || m.readAt == 0 {
		m.readAt, m.list = e.Time, m.list[:0]
		if f, err := os.Open(m.maps); err == nil {
			m.list = readMapped(io.LimitReader(f, maxMaps), m.list)
			f.Close()
		}
	}
	i, found := slices.BinarySearchFunc(m.list, e.Arg[1], func(x mappedFile, addr uint64) int {
		switch {
		case x.end <= addr:
			return -1
		case x.start > addr:
			return 1
		}
		return 0
	})
	if !found {
		return 0
	}
	return s.fileStack(m.list[i].path, e.Time)
}

// readMapped appends the mappings of files. It passes over lines that it cannot read: without a
// name nothing is claimed.
func readMapped(r io.Reader, list []mappedFile) []mappedFile {
	for b := bufio.NewScanner(r); b.Scan(); {
		// "7f1c00000000-7f1c10000000 r--s 00000000 fe:00 131 /var/lib/data.db"
		line := b.Text()
		at := strings.IndexByte(line, '/')
		from, rest, ok := strings.Cut(line, "-")
		to, _, ok2 := strings.Cut(rest, " ")
		start, err := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if at < 0 || !ok || !ok2 || err != nil || err2 != nil || end <= start {
			continue
		}
		if n := len(list); n > 0 && start < list[n-1].end {
			continue // the map changed between two pages of it
		}
		list = append(list, mappedFile{start, end, line[at:]})
	}
	return list
}
