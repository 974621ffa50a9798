package arrows

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

var (
	// citation is how a comment cites a page of docs/: by its file or by its file and a heading, as
	// in docs/ledger.md, "6. Locks".
	citation = regexp.MustCompile(`\bdocs/([\w-]+\.md)(?:, "([^"]+)")?`)
	// byNumber is how comments once cited rules that were not in the repository.
	byNumber = regexp.MustCompile(`(?i)ledger rules|rules (?:of|for) joining|\bsections? \d+(?: \(.*?\))?(?: to \d+)? of the rules|\brules'? sections? \d`)
	// link is a link of a page to a file of this repository, with or without a heading.
	link = regexp.MustCompile(`\]\(([\w./-]+)?(?:#([\w-]+))?\)`)
)

// TestDocs sees to it that what comments cite and pages link to is there.
func TestDocs(t *testing.T) {
	found, citations, links := checkDocs(os.DirFS("../.."))
	for _, f := range found {
		t.Error(f)
	}
	// A test that found nothing to look at would pass whatever the pages hold.
	if citations < 10 || links < 5 {
		t.Errorf("only %d citations and %d links seen", citations, links)
	}
}

// checkDocs gives each citation of a page or heading that does not exist, each citation in the old
// form, and each broken link. It also counts the citations with a heading and the links that it
// read.
func checkDocs(repo fs.FS) (found []string, citations, links int) {
	pages := map[string][]string{} // headings by page
	headings := func(page string) ([]string, error) {
		if hs, ok := pages[page]; ok {
			return hs, nil
		}
		b, err := fs.ReadFile(repo, page)
		if err != nil {
			return nil, err
		}
		pages[page] = headingsOf(string(b))
		return pages[page], nil
	}
	err := fs.WalkDir(repo, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			found = append(found, err.Error())
			return nil
		case d.IsDir():
			if name != "." && (d.Name()[0] == '.' && d.Name() != ".ci" || d.Name() == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		switch path.Ext(name) {
		case ".go":
			comments, err := commentsOf(repo, name)
			if err != nil {
				found = append(found, err.Error())
			}
			for at, text := range comments {
				if old := byNumber.FindString(text); old != "" {
					found = append(found, fmt.Sprintf(`%s: cites %q; say docs/PAGE.md, "HEADING"`, at, old))
				}
				for _, m := range citation.FindAllStringSubmatch(text, -1) {
					hs, err := headings("docs/" + m[1])
					if err != nil {
						found = append(found, fmt.Sprintf("%s: cites docs/%s: %v", at, m[1], err))
						continue
					}
					if m[2] == "" {
						continue
					}
					if citations++; !slices.Contains(hs, m[2]) {
						found = append(found, fmt.Sprintf("%s: docs/%s has no heading %q", at, m[1], m[2]))
					}
				}
			}
		case ".md":
			b, err := fs.ReadFile(repo, name)
			if err != nil {
				found = append(found, err.Error())
				return nil
			}
			for _, m := range link.FindAllStringSubmatch(string(b), -1) {
				page := name
				if m[1] != "" {
					page = path.Join(path.Dir(name), m[1])
				}
				links++
				if _, err := fs.Stat(repo, page); err != nil {
					found = append(found, fmt.Sprintf("%s: links to %s: %v", name, m[1], err))
					continue
				}
				if m[2] == "" {
					continue
				}
				hs, err := headings(page)
				if err != nil {
					found = append(found, fmt.Sprintf("%s: links to %s: %v", name, page, err))
				}
				if !containsAnchor(hs, m[2]) {
					found = append(found, fmt.Sprintf("%s: %s has no heading #%s", name, page, m[2]))
				}
			}
		}
		return nil
	})
	if err != nil {
		found = append(found, err.Error())
	}
	return found, citations, links
}

// commentsOf gives the comments of a Go file by their place, each as one line.
func commentsOf(repo fs.FS, name string) (map[string]string, error) {
	src, err := fs.ReadFile(repo, name)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	comments := map[string]string{}
	for _, g := range f.Comments {
		comments[set.Position(g.Pos()).String()] = strings.Join(strings.Fields(g.Text()), " ")
	}
	return comments, nil
}

// headingsOf gives the headings of a page, without those inside code.
func headingsOf(page string) (hs []string) {
	code := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if text := strings.TrimLeft(line, "#"); !code && text != line && strings.HasPrefix(text, " ") {
			hs = append(hs, strings.TrimSpace(text))
		}
	}
	return hs
}

// containsAnchor reports whether one of the headings has the anchor that GitHub gives it.
func containsAnchor(hs []string, anchor string) bool {
	for _, h := range hs {
		a := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z':
				return r
			}
			return -1
		}, strings.ToLower(h))
		if a == anchor {
			return true
		}
	}
	return false
}

// TestCheckDocs sees to it that TestDocs can fail.
func TestCheckDocs(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		ok               bool
	}{
		{"a heading that is there", "a.go", "package p\n\n// See docs/rules.md, \"2. Locks\".\n", true},
		{"in two lines", "a.go", "package p\n\n// See docs/rules.md, \"2.\n// Locks\".\n", true},
		{"in a trailing comment", "a.go", "package p\n\nconst a = 1 // docs/rules.md, \"2. Locks\"\n", true},
		{"a page", "a.go", "package p\n\n// See docs/rules.md.\n", true},
		{"a heading that is missing", "a.go", "package p\n\n// See docs/rules.md, \"3. Waits\".\n", false},
		{"a heading inside code", "a.go", "package p\n\n// See docs/rules.md, \"no heading\".\n", false},
		{"in a test", "a_test.go", "package p\n\n// See docs/rules.md, \"3. Waits\".\n", false},
		{"in a module of its own", "lab/a.go", "package p\n\n// See docs/rules.md, \"3. Waits\".\n", false},
		{"a page that is missing", "a.go", "package p\n\n// See docs/other.md, \"2. Locks\".\n", false},
		{"by number", "a.go", "package p\n\n// Limits, ledger rules section 11.\n", false},
		{"by number, in two lines", "a.go",
			"package p\n\n// Who is awaited (rules of\n// joining, section 4).\n", false},
		{"by number, of the rules", "a.go", "package p\n\n// A part by section 8 (b) to (e) of the rules.\n", false},
		{"another's section", "a.go",
			"package p\n\n// More than the header can count: section 0 has the numbers.\n", true},
		{"a link", "docs/a.md", "[rules](rules.md), [code](../a.go), [up](../README.md)\n", true},
		{"a link to a heading", "README.md", "[locks](docs/rules.md#2-locks)\n", true},
		{"a link to a heading of its own", "docs/rules.md", "# Rules\n[rules](#rules)\n", true},
		{"a link elsewhere", "README.md", "[Go](https://go.dev/x#y)\n", true},
		{"a link to no file", "docs/a.md", "[rules](docs/rules.md)\n", false},
		{"a link to no heading", "README.md", "[waits](docs/rules.md#3-waits)\n", false},
	} {
		repo := fstest.MapFS{
			"lab/go.mod":    {Data: []byte("module lab\n")},
			"README.md":     {Data: []byte("# All\n")},
			"docs/rules.md": {Data: []byte("# Rules\n\n## 2. Locks\n\n```\n# no heading\n```\n")},
			"a.go":          {Data: []byte("package p\n")},
		}
		repo[c.file] = &fstest.MapFile{Data: []byte(c.text)}
		if found, _, _ := checkDocs(repo); (len(found) == 0) != c.ok {
			t.Errorf("%s: found %q, want fine %v", c.name, found, c.ok)
		}
	}
}
