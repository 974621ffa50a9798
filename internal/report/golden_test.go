package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func render(t *testing.T, r *Report, output string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.Print(&b, output, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func samples() map[string]Source {
	blind := ill()
	blind.Ledger, blind.Found.Findings, blind.Found.RuledOut = nil, nil, nil
	return map[string]Source{"ill": ill(), "healthy": healthy(), "hostile": hostile(),
		"blind": blind, "throttled": throttled(), "native": native(), "untraced": untraced()}
}

func TestGolden(t *testing.T) {
	for name, s := range samples() {
		for _, o := range Outputs() {
			got := render(t, New(s), o.Name)
			file := filepath.Join("testdata", name+"."+o.Ext)
			if len(got) == 0 {
				t.Fatalf("%s: prints nothing", file)
			}
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s differs; go test ./internal/report -update, and read the difference\n%s", file, got)
			}
		}
	}
}

// A terminal or a browser must not act upon what came from the input, and a person must be able to
// read it.
func TestPrintsSafely(t *testing.T) {
	for name, s := range samples() {
		safe(t, name, New(s))
		if r := New(s); r.Ledger.Slow.WallNS > 0 {
			addsUp(t, name, r)
		}
	}
	md := string(render(t, New(hostile()), "markdown"))
	// Outside code spans nothing of the names may be markup; code spans keep them as they are.
	md = regexp.MustCompile("``.*?``").ReplaceAllString(md, "")
	md = regexp.MustCompile("([^\\\\])`[^`]*`").ReplaceAllString(md, "$1")
	for _, l := range strings.Split(md, "\n") {
		for _, bad := range []string{"**bold**", "<script", "x](", " `tick", "@someone", "http://"} {
			if strings.Contains(l, bad) {
				t.Errorf("markdown has %q in %s", bad, l)
			}
		}
		if strings.HasPrefix(l, "FOUND 0 causes") {
			t.Errorf("a name forged the line %s", l)
		}
	}
}

func safe(t *testing.T, name string, r *Report) {
	t.Helper()
	for _, o := range Outputs() {
		out := string(render(t, r, o.Name))
		for _, c := range out {
			if c != '\n' && !unicode.IsPrint(c) {
				t.Errorf("%s as %s prints %U", name, o.Name, c)
			}
		}
		if o.Name != "text" {
			continue
		}
		for _, columns := range []int{Columns, 80} {
			if name == "hostile" && columns < Columns {
				continue // has words that are longer, and commands are not cut
			}
			var b strings.Builder
			if err := r.Text(&b, TextOptions{Columns: columns}); err != nil {
				t.Fatal(err)
			}
			for _, l := range strings.Split(b.String(), "\n") {
				if width(l) > columns {
					t.Errorf("%s.txt: %d columns of %d: %s", name, width(l), columns, l)
				}
			}
		}
	}
}

// Everything has goldens of its own: what -v prints.
func TestGoldenAll(t *testing.T) {
	for name, s := range samples() {
		for _, o := range Outputs() {
			if o.Name != "text" && o.Name != "markdown" {
				continue
			}
			var b bytes.Buffer
			if err := New(s).Print(&b, o.Name, TextOptions{All: true}); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".all."+o.Ext)
			if *update {
				if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(file); err != nil || !bytes.Equal(b.Bytes(), want) {
				t.Errorf("%s differs (%v); go test ./internal/report -update, and read the difference\n%s", file, err, b.Bytes())
			}
		}
	}
}
