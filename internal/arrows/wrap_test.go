package arrows

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

// Comments are read in a window beside others. A URL, or a line that is indented because its layout
// matters, may be a little longer.
const (
	maxComment       = 100
	maxCommentLaid   = 120
	columnsOfATab    = 4
	minCommentsToSee = 5000
)

// TestCommentWidth holds every comment line to its width, those of tests included.
func TestCommentWidth(t *testing.T) {
	found, comments := checkComments(os.DirFS("../.."))
	for _, f := range found {
		t.Error(f)
	}
	if comments < minCommentsToSee {
		t.Errorf("only %d lines of comments seen", comments)
	}
}

// checkComments gives each comment line that is too wide, and how many lines it saw. A comment
// behind code is not looked at: the code sets that line's width.
func checkComments(repo fs.FS) (found []string, comments int) {
	for name, src := range sources(repo, &found) {
		f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			found = append(found, err.Error())
			continue
		}
		if ast.IsGenerated(f) {
			continue
		}
		n := 0
		for line := range strings.Lines(string(src)) {
			n++
			text := strings.TrimLeft(line, "\t")
			if !strings.HasPrefix(text, "//") || strings.HasPrefix(text, "//go:") {
				continue
			}
			comments++
			most := maxComment
			if strings.HasPrefix(text, "//\t") || strings.HasPrefix(text, "//  ") || strings.Contains(text, "://") {
				most = maxCommentLaid
			}
			if w := columns(strings.TrimRight(line, "\n")); w > most {
				found = append(found, fmt.Sprintf("%s:%d: the comment has %d columns, at most %d", name, n, w, most))
			}
		}
	}
	return found, comments
}

func columns(line string) int {
	return utf8.RuneCountInString(line) + (columnsOfATab-1)*strings.Count(line, "\t")
}

// TestCheckComments checks that TestCommentWidth can fail.
func TestCheckComments(t *testing.T) {
	for _, c := range []struct {
		line string
		ok   bool
	}{
		{"// " + strings.Repeat("x", 97), true},
		{"// " + strings.Repeat("x", 98), false},
		{"// " + strings.Repeat("é", 97), true},
		{"\t// " + strings.Repeat("x", 94), false},
		{"//\t" + strings.Repeat("x", 112), true},
		{"//\t" + strings.Repeat("x", 120), false},
		{"// https://" + strings.Repeat("x", 100), true},
		{"var x = 1 // " + strings.Repeat("x", 100), true},
		{"//go:embed " + strings.Repeat("x", 100), true},
	} {
		found, _ := checkComments(fstest.MapFS{"a_test.go": {Data: []byte("package p\n\n" + c.line + "\n")}})
		if (len(found) == 0) != c.ok {
			t.Errorf("%s: found %q, want none %v", c.line, found, c.ok)
		}
	}
}
