package cli

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/report"
	"github.com/whystall/whystall/internal/report/conform"
)

// The JSON on any attachment conforms to the schema: a sample in ten, chosen by its name, alone and
// with another.
func TestAttachedSchema(t *testing.T) {
	files, err := filepath.Glob("../attach/*/testdata/*.txtar")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d samples, %v", len(files), err)
	}
	last := ""
	for _, file := range files {
		if crc32.ChecksumIEEE([]byte(filepath.Base(file)))%10 != 0 {
			continue
		}
		sample, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(sample), "\n-- paste")
		_, rest, _ = strings.Cut(rest, "--\n")
		text, _, _ := strings.Cut(rest, "\n-- ")
		name := filepath.Join(t.TempDir(), "paste.txt")
		if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{name}, {name, last}} {
			if args[len(args)-1] == "" {
				continue
			}
			_, out, stderr := run(append([]string{"explain", "--format", "json"}, args...)...)
			if out == "" && stderr != "" {
				continue // a look-alike that a format refuses
			}
			if errs := conform.Errors(report.Schema, []byte(out)); len(errs) > 0 {
				t.Errorf("%s: %s\n%s", file, strings.Join(errs, "\n"), stderr)
			}
		}
		last = name
	}
}

// Of an archive with more known parts than are held, the first ones are, and the rest is counted.
func TestHeldOfArchive(t *testing.T) {
	in := &input{name: "x.zip", members: 2}
	for i := range mostHeldParts + 5 {
		in.take([]*attach.Part{{Kind: &attach.Kind{}, File: fmt.Sprint(i), Lines: []paste.Line{{N: 1, Text: "a"}}}}, nil)
	}
	if len(in.parts) != mostHeldParts || in.beyond != 5 || in.first != fmt.Sprint(mostHeldParts) {
		t.Errorf("%d parts, %d beyond, the first in %s", len(in.parts), in.beyond, in.first)
	}
	in = &input{members: 2}
	for range 3 {
		in.take([]*attach.Part{{Kind: &attach.Kind{}, Lines: make([]paste.Line, mostHeldLines/2)}}, nil)
	}
	if len(in.parts) != 2 || in.beyond != 1 {
		t.Errorf("%d parts, %d beyond", len(in.parts), in.beyond)
	}
}

// A text that nothing knows is said to be unknown on one screen, with its lines and without a list
// of causes. Numbers that decide nothing have no such list either.
func TestUnknownText(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"foo 12 bar 33\nfoo 13 bar 31\nfoo 14 bar 39\n", "x.txt:1-3  not known"},
		{"procs -----------memory---------- ---swap-- -----io----\n foo bar\n", "not known, nearest to "},
		{"node_load1 0.5\nnode_load5 0.7\n# TYPE node_boot_time gauge\nnode_boot_time 1\n",
			"NOTHING IN IT SAYS WHETHER ANYTHING IS SLOW"},
		{"it was slow all day yesterday\n", "NOT KNOWN"},
	} {
		name := filepath.Join(t.TempDir(), "x.txt")
		if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		status, out, _ := run("explain", name)
		if status != statusNoLook || !strings.Contains(out, c.want) || strings.Contains(out, "not checked") {
			t.Errorf("%q: status %d, want %q in\n%s", c.text, status, c.want, out)
		}
	}
}

// Whether a format may read a text hangs on the parts of this text, not on those of another file of
// the archive.
func TestWholeByItsOwnParts(t *testing.T) {
	part := func(k format.Kind) *attach.Part { return &attach.Part{Kind: &attach.Kind{Format: k}} }
	for _, c := range []struct {
		name  string
		parts []*attach.Part
		items int
	}{
		{"its part is what the format takes it for", []*attach.Part{part(format.KindMetrics)}, 1},
		{"another kind knows it better", []*attach.Part{part(format.KindUnknown)}, 0},
	} {
		in, left := &input{parts: append([]*attach.Part{part(format.KindMetrics)}, c.parts...)}, int64(100)
		if err := in.whole("x.txt", format.KindMetrics, []byte("a 1\n"), c.parts, nil,
			&left); err != nil || len(in.items) != c.items {
			t.Errorf("%s: %d items, %v", c.name, len(in.items), err)
		}
	}
}
