package collect

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"io"
	"os"
	"path"
	"strings"
)

// program is what an executable's file says about it.
type program struct {
	runtime   string // "go", "jvm", "python", "ruby", "node"; "" native
	goVersion string
	buildID   string
}

// examine reads headers only. name is the program's path, which need not be where file is.
func examine(file, name string) (p program) {
	if info, err := buildinfo.ReadFile(file); err == nil {
		p.runtime, p.goVersion = "go", info.GoVersion
	}
	base := path.Base(strings.TrimSuffix(name, " (deleted)"))
	switch {
	case p.runtime != "":
	case base == "java":
		p.runtime = "jvm"
	case strings.HasPrefix(base, "python"), strings.HasPrefix(base, "pypy"):
		p.runtime = "python"
	case strings.HasPrefix(base, "ruby"):
		p.runtime = "ruby"
	case base == "node", base == "nodejs":
		p.runtime = "node"
	}
	f, err := elf.Open(file)
	if err != nil {
		return p
	}
	defer f.Close()
	p.buildID = buildID(f)
	if p.runtime != "" {
		return p
	}
	if f.Section(".gopclntab") != nil { // Go before 1.13 left no build information
		p.runtime = "go"
		return p
	}
	// A program may embed a runtime: uwsgi does, and so may a launcher with a name of its own.
	libs, _ := f.ImportedLibraries()
	for _, l := range libs {
		switch {
		case strings.HasPrefix(l, "libjvm."):
			p.runtime = "jvm"
		case strings.HasPrefix(l, "libpython"):
			p.runtime = "python"
		case strings.HasPrefix(l, "libruby"):
			p.runtime = "ruby"
		case strings.HasPrefix(l, "libnode."):
			p.runtime = "node"
		}
	}
	return p
}

// buildID is the linker's, in hex, or Go's.
func buildID(f *elf.File) string {
	for _, name := range []string{".note.gnu.build-id", ".note.go.buildid"} {
		s := f.Section(name)
		if s == nil || s.Size > 4096 {
			continue
		}
		b, err := s.Data()
		if err != nil || len(b) < 12 {
			continue
		}
		// A note: the sizes of its name and its content, its type, then both, each padded to 4
		// bytes.
		owner := (int64(binary.LittleEndian.Uint32(b)) + 3) &^ 3
		size := int64(binary.LittleEndian.Uint32(b[4:]))
		if owner > 64 || size > 512 || 12+owner+size > int64(len(b)) {
			continue
		}
		id := b[12+owner : 12+owner+size]
		if name == ".note.go.buildid" {
			return strings.ToValidUTF8(string(id), "?")
		}
		return hex.EncodeToString(id)
	}
	return ""
}

// maxScan is how much of an executable is searched; the table of names lies in its first half.
const maxScan = 1 << 30

// servesProfiles reports whether a Go program has net/http/pprof linked in. Its table of function
// names has them in plain text, each ended by a zero byte, in every Go release and in stripped
// programs too.
func servesProfiles(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	want := []byte("\x00net/http/pprof.Index\x00")
	r := io.LimitReader(f, maxScan)
	buf := make([]byte, 1<<20)
	had := 0
	for {
		n, err := io.ReadFull(r, buf[had:])
		if bytes.Contains(buf[:had+n], want) {
			return true
		}
		if err != nil {
			return false
		}
		// The name may lie across two reads.
		had = copy(buf, buf[len(buf)-len(want):])
	}
}
