package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

const module = "github.com/whystall/whystall/"

// mostGone is the share of the profile's functions which the program may have lost. They are not
// weighed by their time: what the compiler inlines by the profile also decides what it puts on the
// heap. When one package moved, whose functions had less than 1 % of the time, a case took 13 MiB
// more.
const mostGone = 0.05

// The compiler finds the hot paths in default.pgo by the names of functions. A function that is
// renamed, or moves to another package, loses its place there without a word.
func TestProfile(t *testing.T) {
	b, err := os.ReadFile("default.pgo")
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	gone, all := goneFunctions(p, declared(t))
	if float64(len(gone)) > mostGone*float64(all) {
		t.Errorf("%d of %d functions in default.pgo are gone; make it anew, by go run -C bench . profile:\n%s", len(gone), all, strings.Join(gone, "\n"))
	}
}

// Methods, closures and instances of generic functions are found under the names of their
// declarations.
func TestGoneFunctions(t *testing.T) {
	sample := func(names ...string) *profile.Sample {
		s := &profile.Sample{}
		for _, n := range names {
			s.Location = append(s.Location,
				&profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: n}}}})
		}
		return s
	}
	p := &profile.Profile{Sample: []*profile.Sample{
		sample("runtime.mallocgc", module+"internal/x.(*T).m-range1", module+"internal/x.f.func2.1"),
		sample(module+"internal/x.g[...]", module+"internal/x.T[go.shape.int32].v", "main.main"),
		sample(module+"internal/y.f", module+"internal/x.(*T).w"),
	}}
	has := map[string]bool{"internal/x.T.m": true, "internal/x.f": true, "internal/x.g": true, "internal/x.T.v": true}
	gone, all := goneFunctions(p, has)
	if want := []string{"internal/x.(*T).w", "internal/y.f"}; all != 6 || !slices.Equal(gone, want) {
		t.Errorf("%v of %d are gone, want %v of 6", gone, all, want)
	}
}

// name splits the name of a function, or of a closure in it, as profiles write it: the folder of
// its package, the type of its receiver and the function.
var name = regexp.MustCompile(`^((?:\w+/)*\w+)\.(?:\(\*?(\w+)(?:\[[^\]]*\])?\)\.)?(\w+)(?:\[[^\]]*\])?(?:\.(\w+))?`)

// goneFunctions lists the module's functions in a profile which has does not have, and counts all.
func goneFunctions(p *profile.Profile, has map[string]bool) (gone []string, all int) {
	there := map[string]bool{}
	for _, s := range p.Sample {
		for _, l := range s.Location {
			for _, line := range l.Line {
				function, ok := strings.CutPrefix(line.Function.Name, module)
				if !ok {
					continue
				}
				m := name.FindStringSubmatch(function)
				switch {
				case m == nil:
					there[function] = false
				case m[2] != "": // a method of a pointer
					there[function] = has[m[1]+"."+m[2]+"."+m[3]]
				default: // a function, a closure in it, or a method of a value
					there[function] = has[m[1]+"."+m[3]] || has[m[1]+"."+m[3]+"."+m[4]]
				}
			}
		}
	}
	for function, ok := range there {
		if !ok {
			gone = append(gone, function)
		}
	}
	slices.Sort(gone)
	return gone, len(there)
}

// declared is the set of the module's functions, as folder.function, and methods, as
// folder.type.method.
func declared(t *testing.T) map[string]bool {
	all := map[string]bool{}
	for _, root := range []string{"../../exectrace", "../../internal", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			folder, err := filepath.Rel("../..", filepath.Dir(path))
			if err != nil {
				return err
			}
			for _, d := range f.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					all[filepath.ToSlash(folder)+"."+receiver(f)+f.Name.Name] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// receiver is the type of a method's receiver and a dot, "" of a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	typ := f.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.Name + "."
		default:
			return ""
		}
	}
}
