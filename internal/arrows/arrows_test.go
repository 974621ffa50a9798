package arrows

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/whystall/whystall/"

// Data flows down this list; imports point up it. Beside each room stands what it may import
// besides std: rooms by their folder, other modules by their path or its start. A room's
// subfolders belong to the room unless they are listed. A room with nothing beside it, and every
// room that is not listed, may import std only.
const rooms = `
exectrace
internal/sensor/proc
internal/sensor/symbol github.com/ianlancetaylor/demangle golang.org/x/arch
internal/sensor/perfevent golang.org/x/sys
internal/sensor/session golang.org/x/sys
internal/sensor/bpf internal/sensor/session github.com/cilium/ebpf golang.org/x/sys
internal/evidence   github.com/klauspost/compress
internal/format     internal/evidence
internal/format/paste
internal/format/archive github.com/klauspost/compress github.com/ulikunitz/xz
internal/toll       internal/evidence
internal/collect    internal/evidence internal/format internal/toll internal/sensor/
internal/target
internal/timeline   exectrace
internal/timeline/twin exectrace
internal/sched      internal/evidence/kernel exectrace
internal/sched/schedtest internal/evidence/kernel internal/sched
internal/request    internal/timeline exectrace
internal/unit       internal/sched internal/request internal/evidence/kernel
internal/account    internal/evidence/kernel
internal/oncpu      internal/sched internal/account internal/evidence/kernel
internal/capacity   internal/sched internal/oncpu internal/account internal/evidence
internal/ledger/books internal/account internal/request internal/oncpu
internal/ledger/thread internal/sched internal/oncpu internal/request internal/unit internal/capacity internal/account internal/evidence internal/ledger/books
internal/oldclock   internal/timeline internal/sched exectrace
internal/ledger     internal/timeline internal/sched internal/oldclock internal/oncpu internal/request internal/capacity internal/account internal/evidence exectrace
internal/finding
internal/attach     internal/format/paste internal/format internal/finding internal/evidence internal/attach
internal/attach/profiler internal/format/paste internal/finding internal/evidence internal/attach internal/oncpu internal/sched internal/account
internal/attach/kernelfile internal/format/paste internal/format internal/finding internal/evidence internal/attach internal/sched
internal/attach/attachtest internal/attach internal/format/paste github.com/rogpeppe/go-internal/txtar
internal/detect     internal/account internal/finding internal/evidence
internal/compare    internal/account internal/finding
internal/fleet      internal/finding internal/format/archive github.com/klauspost/compress github.com/prometheus/client_golang github.com/prometheus/common
internal/report     internal/account internal/finding internal/evidence internal/toll internal/compare internal/fleet
internal/export     internal/account internal/finding github.com/google/pprof/profile google.golang.org/protobuf/encoding/protowire
internal/cli        exectrace internal/ github.com/alecthomas/kong
internal/need
internal/browser    internal/need github.com/chromedp
internal/arrows
cmd/whystall        internal/cli
`

// What tests may import beyond their room's own list; * is every room's. Tests read real
// traces, so all may use the reader.
const testRooms = `
*                   exectrace internal/need internal/browser
exectrace           golang.org/x/exp/trace
internal/detect     internal/format internal/request internal/capacity internal/ledger internal/timeline/twin github.com/rogpeppe/go-internal/txtar
internal/report     internal/format internal/request internal/ledger internal/detect
internal/export     internal/ledger internal/timeline/twin go.opentelemetry.io/proto/otlp google.golang.org/protobuf
internal/cli        github.com/chromedp/chromedp/kb github.com/rogpeppe/go-internal/testscript github.com/google/pprof/profile
internal/fleet      google.golang.org/protobuf/encoding/protowire
internal/format     github.com/rogpeppe/go-internal/txtar github.com/google/pprof/profile
internal/attach     github.com/rogpeppe/go-internal/txtar internal/attach/attachtest
internal/attach/kernelfile github.com/rogpeppe/go-internal/txtar internal/attach/attachtest
internal/attach/profiler github.com/rogpeppe/go-internal/txtar
internal/sched      internal/timeline github.com/rogpeppe/go-internal/txtar
internal/timeline   internal/timeline/twin
internal/timeline/twin internal/timeline
internal/request    internal/timeline/twin
internal/ledger/books internal/account internal/request
internal/oldclock   internal/timeline/twin internal/evidence/kernel
internal/ledger     internal/timeline/twin github.com/rogpeppe/go-internal/txtar
cmd/whystall        github.com/rogpeppe/go-internal/testscript github.com/google/pprof/profile
`

func TestArrows(t *testing.T) {
	found, files := check(os.DirFS("../.."))
	for _, f := range found {
		t.Error(f)
	}
	// A test that saw no sources would pass, whatever they import.
	if files < 20 {
		t.Errorf("only %d Go files seen", files)
	}
	for room := range list(rooms) {
		if entries, _ := os.ReadDir("../../" + room); len(entries) == 0 {
			t.Errorf("%s: in the list of rooms, but not there", room)
		}
	}
	text, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(string(text))
	for room := range list(rooms) {
		if !slices.Contains(rows, room) {
			t.Errorf("%s: a room without a row in ARCHITECTURE.md", room)
		}
	}
	for _, row := range rows {
		if _, ok := list(rooms)[row]; !ok {
			t.Errorf("%s: a row in ARCHITECTURE.md, but no room of the list", row)
		}
	}
}

// rowsOf gives the rooms in the first column of ARCHITECTURE.md's table.
func rowsOf(text string) (rows []string) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "| `"); ok {
			room, _, _ := strings.Cut(rest, "`")
			rows = append(rows, room)
		}
	}
	return rows
}

// check returns each import that the lists do not allow, and the number of files that it read.
func check(repo fs.FS) (found []string, files int) {
	allowed, allowedInTests := list(rooms), list(testRooms)
	walk := func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			found = append(found, err.Error())
			return nil
		}
		if d.IsDir() {
			_, err := fs.Stat(repo, path.Join(name, "go.mod"))
			foreign := err == nil && name != "." // a module of its own
			if foreign || name != "." && (d.Name()[0] == '.' || d.Name()[0] == '_' || d.Name() == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		files++
		src, err := fs.ReadFile(repo, name)
		if err != nil {
			found = append(found, err.Error())
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, src, parser.ImportsOnly)
		if err != nil {
			found = append(found, err.Error())
			return nil
		}
		room := roomOf(path.Dir(name), allowed)
		may := allowed[room]
		if strings.HasSuffix(name, "_test.go") {
			may = append(append(append([]string{room}, may...), allowedInTests["*"]...), allowedInTests[room]...)
		}
		for _, spec := range f.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				found = append(found, fmt.Sprintf("%s: %v", set.Position(spec.Pos()), err))
			} else if !permitted(p, room, may) {
				found = append(found, fmt.Sprintf("%s: %s may not import %q", set.Position(spec.Pos()), room, p))
			}
		}
		return nil
	}
	if err := fs.WalkDir(repo, ".", walk); err != nil {
		found = append(found, err.Error())
	}
	return found, files
}

// permitted reports whether a file of room may import p. Only std has no dot in its path's first
// element; "C" has none either, and is refused because the binary is static.
func permitted(p, room string, may []string) bool {
	first, _, _ := strings.Cut(p, "/")
	if !strings.Contains(first, ".") {
		return p != "C"
	}
	own, isOwn := strings.CutPrefix(p, module)
	if isOwn {
		p = own
		if within(p, room) { // a room's own subfolders
			return true
		}
	}
	for _, m := range may {
		if within(p, m) {
			return true
		}
	}
	return false
}

// within reports whether p is the folder dir or lies under it. A dir that ends in a slash stands
// only for what lies under it.
func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// roomOf is the longest listed folder that holds dir, otherwise dir itself.
func roomOf(dir string, rooms map[string][]string) string {
	for d := dir; d != "."; d = path.Dir(d) {
		if _, ok := rooms[d]; ok {
			return d
		}
	}
	return dir
}

func list(text string) map[string][]string {
	m := map[string][]string{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 0 {
			m[f[0]] = f[1:]
		}
	}
	return m
}

// TestCheck checks that TestArrows can fail.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		file, imports string
		ok            bool
	}{
		{"exectrace/a.go", "sort", true},
		{"exectrace/a.go", "C", false},
		{"exectrace/a.go", "golang.org/x/exp/trace", false},
		{"exectrace/a_test.go", "golang.org/x/exp/trace", true},
		{"exectrace/a_test.go", module + "exectrace", true},
		{"exectrace/sub/a.go", module + "exectrace", true},
		{"exectrace/a.go", module + "internal/evidence", false},
		{"internal/ledger/a.go", module + "internal/timeline", true},
		{"internal/ledger/a.go", module + "internal/timelinex", false},
		{"internal/timeline/a.go", module + "internal/ledger", false},
		{"internal/finding/a.go", module + "internal/ledger", false},
		{"internal/ledger/a.go", "github.com/alecthomas/kong", false},
		{"internal/ledger/a_test.go", "golang.org/x/exp/trace", false},
		{"internal/cli/a.go", "github.com/alecthomas/kong", true},
		{"internal/cli/a.go", "github.com/alecthomas/kongplete", false},
		{"internal/new/a.go", module + "internal/ledger", false},
		{"internal/new/a.go", "os", true},
		{"internal/ledger/testdata/a.go", "github.com/x/y", true},
		{"lab/a.go", "github.com/x/y", true},
	} {
		repo := fstest.MapFS{
			"lab/go.mod": {Data: []byte("module lab\n")},
			c.file:       {Data: fmt.Appendf(nil, "package p\nimport _ %q\n", c.imports)},
		}
		if found, _ := check(repo); (len(found) == 0) != c.ok {
			t.Errorf("%s imports %s: found %q, want allowed %v", c.file, c.imports, found, c.ok)
		}
	}
	broken := fstest.MapFS{"exectrace/a.go": {Data: []byte("package")}}
	if found, _ := check(broken); len(found) != 1 {
		t.Errorf("a file that does not parse: found %q, want one", found)
	}
}
