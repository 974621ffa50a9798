package fleet

import (
	"bytes"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/archive"
)

// archivedLook is how much of an archive is unpacked until a sign of samples is met; after one, so
// much more.
const (
	archivedLook = 128 << 20
	archivedMore = 8 << 30
)

// The first bytes of a block's files and of a log's mapped chunks (Prometheus'
// tsdb/docs/format).
var blockFiles = []string{"\x85\xbd\x40\xdd", "\xba\xaa\xd7\x00", "\x01\x30\xbc\x91"}

// archived is what is met in an archive.
type archived struct {
	roots map[string]*span // folders that blocks or a log lie in
	first string           // the first of them
	dump  *Dump            // a text
	at    string           // its name
	b     *archive.Budget
	more  bool
}

// archivedDump recognises blocks, a log or a dump in an archive, or a dump that is packed; nil:
// there is none.
func archivedDump(name string, f *os.File, size int64, head []byte) *Dump {
	a := &archived{roots: map[string]*span{}, b: &archive.Budget{Members: 50_000, Bytes: archivedLook}}
	zipped := bytes.HasPrefix(head, []byte("PK"))
	if zipped {
		_, _ = archive.Zip(name, f, size, a.b, a.visit)
	} else if _, err := f.Seek(0, io.SeekStart); err == nil {
		_, _ = archive.Walk(name, f, a.b, a.visit)
	}
	file := finding.ShellFile(name)
	switch root := a.roots[a.first]; {
	case root != nil && !root.last.IsZero():
		unpack := "tar -xf " + file + " -C whystall-unpacked"
		if zipped {
			unpack = "unzip -q " + file + " -d whystall-unpacked"
		}
		d := &Dump{Kind: Blocks, Path: name, First: root.first, Last: root.last}
		d.Commands = d.serve("mkdir whystall-unpacked && " + unpack + " && mv " +
			finding.ShellFile(path.Join("whystall-unpacked", a.first)) + " whystall-copy && rm -f whystall-copy/lock")
		return d
	case a.dump != nil:
		unpack := "tar -xOf " + file + " -- " + finding.ShellWord(a.at)
		switch {
		case a.at == "":
			unpack = packedBy(head) + " < " + file
		case zipped && strings.ContainsAny(a.at, `*?[]\`): // unzip takes it for a pattern
			return nil
		case zipped:
			unpack = "unzip -p " + file + " " + finding.ShellWord(a.at)
		}
		a.dump.Path = name
		a.dump.Commands = a.dump.serve(unpack +
			" > whystall-dump && promtool tsdb create-blocks-from openmetrics whystall-dump whystall-copy")
		return a.dump
	}
	return nil
}

// packedBy is the program that unpacks a file to standard output.
func packedBy(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("BZh")):
		return "bzip2 -dc"
	case bytes.HasPrefix(head, []byte("\xfd7zXZ")):
		return "xz -dc"
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		return "zstd -dc"
	}
	return "gzip -dc"
}

// visit looks at one file of the archive.
func (a *archived) visit(name string, r io.Reader) error {
	if strings.Contains(name, ":") || path.Clean("/"+name) != "/"+strings.TrimPrefix(name, "./") {
		return nil // in an archive within, or a name that leads out
	}
	folder, base := path.Split(strings.TrimPrefix(name, "./"))
	folder = strings.TrimSuffix(folder, "/")
	head, _ := io.ReadAll(io.LimitReader(r, 4))
	whole := io.MultiReader(bytes.NewReader(head), r)
	for _, mark := range blockFiles {
		if string(head) == mark {
			a.sign()
		}
	}
	switch {
	case base == "meta.json":
		if m := readMeta(whole); m != nil && path.Base(folder) == m.ULID {
			a.root(outer(folder)).add(time.UnixMilli(m.MinTime).UTC(), time.UnixMilli(m.MaxTime).UTC())
		}
	case walSegment.MatchString(base) &&
		(path.Base(folder) == "wal" || strings.HasPrefix(path.Base(folder), "checkpoint.")):
		for path.Base(folder) != "wal" && folder != "." && folder != "" {
			folder = path.Dir(folder)
		}
		s := span{}
		if segmentSpan(whole, &s) {
			a.sign()
			a.root(outer(folder)).add(s.first, s.last)
		}
	case a.dump == nil:
		a.text(name, whole)
	}
	return nil
}

// sign allows for more: there are samples here.
func (a *archived) sign() {
	if !a.more {
		a.more = true
		a.b.Bytes += archivedMore
	}
}

// outer is the folder that a folder lies in; "" is the archive's own.
func outer(folder string) string {
	if dir := path.Dir(folder); dir != "." && dir != "/" {
		return dir
	}
	return ""
}

func (a *archived) root(dir string) *span {
	if len(a.roots) == 0 {
		a.first = dir
	}
	if a.roots[dir] == nil {
		a.roots[dir] = &span{}
	}
	return a.roots[dir]
}

// text takes a file for a dump, if it is one; its middle is not kept.
func (a *archived) text(name string, r io.Reader) {
	head, err := io.ReadAll(io.LimitReader(r, dumpLook))
	if err != nil || !sampled(head) {
		return
	}
	a.sign()
	more, err := io.ReadAll(io.LimitReader(r, dumpHead-dumpLook))
	if err != nil {
		return
	}
	head = append(head, more...)
	end := tail(slices.Clone(head[max(0, len(head)-dumpTail):]))
	if _, err := io.Copy(&end, r); err != nil {
		return
	}
	if first, last, ok := openMetricsTimes(head, end[max(0, len(end)-dumpTail):]); ok {
		a.dump, a.at = &Dump{Kind: OpenMetrics, First: first, Last: last}, name
	}
}

// dumpLook is how much of a text tells whether it may be a dump.
const dumpLook = 16 << 10

// tail keeps the end of what is written to it.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	if n := len(*t); n > 4*dumpTail {
		*t = append((*t)[:0], (*t)[n-dumpTail:]...)
	}
	return len(p), nil
}
