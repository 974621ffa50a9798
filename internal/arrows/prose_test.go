package arrows

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// No code reads prose. A field of a struct is prose if it has the tag `prose:"yes"`: a sentence for
// people, which anybody may reword. This test follows such a sentence through local variables,
// results of functions, and texts that are made of it. It fails where code
//   - compares it with anything but "" or another sentence,
//   - switches on it,
//   - searches or splits it with package strings, or looks it up in a list or in a table.
//
// What is passed on as an argument is not followed: whoever prints a sentence must break its lines.
//
// The one reader of sentences is internal/evidence/kernel/version1.go, for recordings that have
// nothing else. Its sentences are in no field with the tag.

// alsoProse are fields of the public reader, whose types have no tags.
var alsoProse = []string{"exectrace.Gap.Reason"}

// searches are the functions of package strings that look for something in a text.
var searches = strings.Fields(`Compare Contains ContainsAny ContainsFunc ContainsRune Count Cut CutPrefix CutSuffix EqualFold Fields FieldsFunc
	HasPrefix HasSuffix Index IndexAny IndexByte IndexFunc IndexRune LastIndex LastIndexAny LastIndexByte Replace ReplaceAll
	Split SplitAfter SplitAfterN SplitN SplitSeq TrimPrefix TrimSuffix`)

func TestProse(t *testing.T) {
	found, fields := proseRead(os.DirFS("../.."), func(name string) bool {
		return strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "exectrace/") ||
			strings.HasPrefix(name, "cmd/")
	})
	for _, f := range found {
		t.Error(f)
	}
	if fields < 30 {
		t.Errorf("only %d fields are prose", fields)
	}
}

// repoTypes are the packages of a repository, type-checked without any other: what they take from
// std or another module has no type, and what follows from it is left out.
type repoTypes struct {
	set   *token.FileSet
	files map[string][]*ast.File // by import path
	pkgs  map[string]*types.Package
	info  types.Info
}

// Import checks a package of the repository, and gives an empty one for any other.
func (r *repoTypes) Import(importPath string) (*types.Package, error) {
	if p := r.pkgs[importPath]; p != nil {
		return p, nil
	}
	files := r.files[importPath]
	if files == nil {
		p := types.NewPackage(importPath, path.Base(importPath))
		p.MarkComplete()
		r.pkgs[importPath] = p
		return p, nil
	}
	c := types.Config{Importer: r, FakeImportC: true, Error: func(error) {}}
	p, _ := c.Check(importPath, r.set, files, &r.info)
	r.pkgs[importPath] = p
	return p, nil
}

// proseRead gives each place where prose is read, and how many fields are prose.
func proseRead(repo fs.FS, in func(name string) bool) (found []string, fields int) {
	r := &repoTypes{set: token.NewFileSet(), files: map[string][]*ast.File{},
		pkgs: map[string]*types.Package{}, info: types.Info{
			Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
			Types:      map[ast.Expr]types.TypeAndValue{},
			Selections: map[*ast.SelectorExpr]*types.Selection{}}}
	// Files of other systems would define things twice.
	linux := build.Context{GOOS: "linux", GOARCH: "amd64", Compiler: "gc",
		OpenFile: func(name string) (io.ReadCloser, error) { return repo.Open(name) },
		JoinPath: path.Join, ReleaseTags: build.Default.ReleaseTags}
	err := fs.WalkDir(repo, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (d.Name()[0] == '.' || d.Name()[0] == '_' || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || !in(name):
			return nil
		}
		if ok, err := linux.MatchFile(path.Dir(name), path.Base(name)); err != nil || !ok {
			return err
		}
		src, err := fs.ReadFile(repo, name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(r.set, name, src, parser.SkipObjectResolution)
		r.files[module+path.Dir(name)] = append(r.files[module+path.Dir(name)], f)
		return err
	})
	if err != nil {
		return []string{err.Error()}, 0
	}
	c := &proseChecker{repoTypes: r, prose: map[types.Object]bool{}}
	for importPath := range r.files {
		r.Import(importPath)
	}
	for _, files := range r.files {
		for _, f := range files {
			c.fields(f)
		}
	}
	fields = len(c.prose)
	for more := true; more; {
		n := len(c.prose)
		for _, files := range r.files {
			for _, f := range files {
				c.follow(f)
			}
		}
		more = len(c.prose) > n
	}
	for _, files := range r.files {
		for _, f := range files {
			c.reads(f)
		}
	}
	slices.Sort(c.found)
	return slices.Compact(c.found), fields
}

type proseChecker struct {
	*repoTypes
	prose map[types.Object]bool // fields, variables and functions that return it
	found []string
}

// fields marks what has the tag.
func (c *proseChecker) fields(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		ast.Inspect(spec.Type, func(n ast.Node) bool {
			field, ok := n.(*ast.Field)
			if !ok {
				return true
			}
			for _, name := range field.Names {
				full := f.Name.Name + "." + spec.Name.Name + "." + name.Name
				if field.Tag != nil &&
					reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("prose") == "yes" ||
					slices.Contains(alsoProse, full) {
					c.prose[c.info.Defs[name]] = true
				}
			}
			return true
		})
		return true
	})
}

// is reports whether an expression is prose, or holds it.
func (c *proseChecker) is(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return c.prose[c.object(e)]
	case *ast.SelectorExpr:
		return c.prose[c.info.Uses[e.Sel]]
	case *ast.ParenExpr:
		return c.is(e.X)
	case *ast.StarExpr:
		return c.is(e.X)
	case *ast.UnaryExpr:
		return e.Op == token.AND && c.is(e.X)
	case *ast.IndexExpr:
		return c.is(e.X)
	case *ast.SliceExpr:
		return c.is(e.X)
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (c.is(e.X) || c.is(e.Y))
	case *ast.CallExpr:
		return c.call(e)
	}
	return false
}

func (c *proseChecker) object(id *ast.Ident) types.Object {
	if o := c.info.Uses[id]; o != nil {
		return o
	}
	return c.info.Defs[id]
}

// call reports whether a call gives prose: a conversion, a text made of prose, or a function that
// returns it.
func (c *proseChecker) call(e *ast.CallExpr) bool {
	switch f := e.Fun.(type) {
	case *ast.Ident:
		if o := c.object(f); c.prose[o] {
			return true
		} else if _, ok := o.(*types.TypeName); !ok && f.Name != "append" && f.Name != "min" {
			return false
		}
	case *ast.SelectorExpr:
		if c.prose[c.info.Uses[f.Sel]] {
			return true
		}
		x, ok := f.X.(*ast.Ident)
		if !ok {
			return false
		}
		if p, ok := c.info.Uses[x].(*types.PkgName); !ok ||
			!slices.Contains([]string{"strings", "fmt", "slices", "cmp"}, p.Imported().Path()) ||
			slices.Contains(searches, f.Sel.Name) {
			return false
		}
	default:
		return false
	}
	return slices.ContainsFunc(e.Args, c.is)
}

// follow marks variables that get prose, and functions that return it.
func (c *proseChecker) follow(f *ast.File) {
	mark := func(to ast.Expr) {
		if id, ok := to.(*ast.Ident); ok && id.Name != "_" {
			if o := c.object(id); o != nil {
				c.prose[o] = true
			}
		}
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i, from := range n.Rhs {
					// Of several results of one call it is not known which is which; errors and
					// numbers are none.
					if len(n.Lhs) == len(n.Rhs) && c.is(from) {
						mark(n.Lhs[i])
					}
				}
			case *ast.ValueSpec:
				for i, from := range n.Values {
					if len(n.Names) == len(n.Values) && c.is(from) {
						mark(n.Names[i])
					}
				}
			case *ast.RangeStmt:
				if n.Value != nil && c.is(n.X) {
					mark(n.Value)
				}
			}
			return true
		})
		if res := fn.Type.Results; res == nil || len(res.List) != 1 || len(res.List[0].Names) > 1 {
			continue
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				return false
			case *ast.ReturnStmt:
				if len(n.Results) == 1 && c.is(n.Results[0]) {
					mark(fn.Name)
				}
			}
			return true
		})
	}
}

func (c *proseChecker) find(n ast.Node, what string) {
	c.found = append(c.found, fmt.Sprintf("%s: %s", c.set.Position(n.Pos()), what))
}

// reads finds what reads prose.
func (c *proseChecker) reads(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			switch n.Op {
			case token.EQL, token.NEQ, token.LSS, token.GTR, token.LEQ, token.GEQ:
				if c.is(n.X) != c.is(n.Y) && !c.empty(n.X) && !c.empty(n.Y) {
					c.find(n, "prose is compared")
				}
			}
		case *ast.SwitchStmt:
			if n.Tag != nil && c.is(n.Tag) {
				c.find(n, "a switch on prose")
			}
		case *ast.IndexExpr:
			// A table that is a variable of the package; a map in a function may add up what is
			// alike.
			if id, ok := n.X.(*ast.Ident); ok && c.is(n.Index) {
				if v, ok := c.object(id).(*types.Var); ok && v.Parent() == v.Pkg().Scope() {
					c.find(n, "prose is looked up")
				}
			}
		case *ast.CallExpr:
			s, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || !slices.ContainsFunc(n.Args, c.is) {
				return true
			}
			x, ok := s.X.(*ast.Ident)
			if !ok {
				return true
			}
			p, ok := c.info.Uses[x].(*types.PkgName)
			switch {
			case !ok:
			case p.Imported().Path() == "strings" && slices.Contains(searches, s.Sel.Name):
				c.find(n, "prose is searched")
			case p.Imported().Path() == "slices" && (s.Sel.Name == "Contains" || s.Sel.Name == "Index"):
				if len(n.Args) == 2 && c.is(n.Args[0]) != c.is(n.Args[1]) {
					c.find(n, "prose is looked up")
				}
			case p.Imported().Path() == "regexp":
				c.find(n, "prose is searched")
			}
		}
		return true
	})
}

// empty reports whether e is "", or nil.
func (c *proseChecker) empty(e ast.Expr) bool {
	if id, ok := e.(*ast.Ident); ok && id.Name == "nil" {
		return true
	}
	v := c.info.Types[e].Value
	return v != nil && v.Kind() == constant.String && constant.StringVal(v) == ""
}

// TestProseRead checks that TestProse can fail.
func TestProseRead(t *testing.T) {
	const shared = `package a
type M struct { What int; Why string ` + "`prose:\"yes\"`" + `; Hops []string ` + "`json:\"h\" prose:\"yes\"`" + `; Name string }
type N struct { M; List []M }
`
	for body, bad := range map[string]bool{
		`return n.Why == "x"`:                                                        true,
		`return "x" != n.Why`:                                                        true,
		`return n.Why < "x"`:                                                         true,
		`return n.Why == ""`:                                                         false,
		`return n.Why == n.List[0].Why`:                                              false,
		`return n.Name == "x"`:                                                       false,
		`return n.What == 1`:                                                         false,
		`switch n.Why { case "x": return true }; return false`:                       true,
		`switch { case n.Why == "x": return true }; return false`:                    true,
		`return strings.Contains(n.Why, "x")`:                                        true,
		`return strings.Contains(strings.ToLower(n.Why), "x")`:                       true,
		`return strings.HasPrefix(string(n.Why), "x")`:                               true,
		`return strings.Contains(n.Name, "x")`:                                       false,
		`low := strings.ToLower(n.Why); return low == "x"`:                           true,
		`why := ""; why = n.Why; return why == "x"`:                                  true,
		`why := n.Why; return why != ""`:                                             false,
		`text := "a " + n.Why; return strings.HasSuffix(text, "x")`:                  true,
		`text := fmt.Sprintf("a %s", n.Why); return strings.Index(text, "x") > 0`:    true,
		`for _, m := range n.List { if m.Why == "x" { return true } }; return false`: true,
		`for _, h := range n.Hops { if h == "x" { return true } }; return false`:     true,
		`return n.Hops[0] == "x"`:                                                    true,
		`return len(n.Hops) == 0 || n.Hops == nil`:                                   false,
		`return why(n) == "x"`:                                                       true,
		`return why(n) == ""`:                                                        false,
		`return other(n) == "x"`:                                                     false,
		`return table[n.Why] > 0`:                                                    true,
		`sums := map[string]int{}; sums[n.Why]++; return true`:                       false,
		`return slices.Contains(n.Hops, "x")`:                                        true,
		`rest, ok := strings.CutPrefix(n.Why, "x"); _ = rest; return ok`:             true,
	} {
		repo := fstest.MapFS{
			"a/a.go": {Data: []byte(shared)},
			"b/b.go": {Data: []byte("package b\nimport (\n\"fmt\"; \"slices\"; \"strings\"; \"" +
				module + "a\"\n)\nvar table = map[string]int{}\n" +
				"func why(n *a.N) string { if n.What > 0 { return \"\" }; return \"because \" + n.Why }\nfunc other(n *a.N) string { return n.Name }\n" +
				"func f(n *a.N) bool { " + body + " }\n")},
		}
		found, fields := proseRead(repo, func(string) bool { return true })
		if (len(found) > 0) != bad || fields != 2 {
			t.Errorf("%s: found %q and %d fields, want found: %v", body, found, fields, bad)
		}
	}
}
