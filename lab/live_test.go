package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// need skips a test which this machine cannot run. Like the main module's tests, it fails the test
// where WHYSTALL_REQUIRE lists what is missing.
func need(t *testing.T, feature string, has bool, why string) {
	t.Helper()
	if has {
		return
	}
	for want := range strings.SplitSeq(os.Getenv("WHYSTALL_REQUIRE"), ",") {
		if want = strings.TrimSpace(want); want == "all" || want == feature {
			t.Fatalf("needs %s, which WHYSTALL_REQUIRE requires: %s", feature, why)
		}
	}
	t.Skipf("needs %s: %s", feature, why)
}

// labReady builds whystall, and skips where it cannot record what live verdicts need.
func labReady(t *testing.T) (*builder, string) {
	t.Helper()
	if testing.Short() {
		t.Skip("records live programs for half a minute")
	}
	b := newBuilder(t.TempDir(), t.Output(), "")
	whystall, err := b.whystall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, _ := exec.Command(whystall, "doctor", "--format", "json").Output() // status 1: not all of it can be seen
	var doctor struct {
		Abilities []struct {
			Tier  string
			Ready bool
		}
	}
	if err := json.Unmarshal(out, &doctor); err != nil {
		t.Fatal(err)
	}
	for feature, tier := range map[string]string{"bpf": "eBPF", "perf": "perf_event"} {
		ready := false
		for _, a := range doctor.Abilities {
			ready = ready || a.Tier == tier && a.Ready
		}
		need(t, feature, ready, "whystall doctor says so")
	}
	need(t, "cgroup", os.Geteuid() == 0, "making one takes root")
	return b, whystall
}

// expect runs a variant, and fails where the verdict is wrong.
func expect(t *testing.T, b *builder, whystall, name, variant string) {
	t.Helper()
	cases, err := loadCases()
	if err != nil {
		t.Fatal(err)
	}
	c := find(cases, name)
	v := c.variant(variant)
	var got verdict
	for try := range 5 {
		got, err = judge(t.Context(), b, whystall, chosen{c, v}, 5*time.Second,
			filepath.Join(b.dir, fmt.Sprintf("%s.%s.%d.case", name, variant, try)))
		var why skip
		if errors.As(err, &why) {
			need(t, "cgroup", false, string(why))
		}
		if err != nil {
			t.Fatal(err)
		}
		// How ill a service is differs from run to run. Where the clients saw nothing, there is
		// nothing to find.
		seen, _ := slowMean(got.witnessed, got.share, 1)
		if !got.missed || seen >= evident {
			break
		}
		t.Logf("%s/%s: %s; but the clients' slowest requests took %.1f ms", name, variant, got.words(), seen/1e6)
	}
	if !got.ok {
		need(t, "quiet", got.others <= busyShare,
			fmt.Sprintf("others used %.0f %% of the CPUs, and that shows in a verdict: %s",
				100*got.others, got.words()))
	}
	if t.Logf("%s/%s: %s", name, variant, got.words()); !got.ok {
		t.Errorf("%s/%s: the verdict is wrong", name, variant)
	}
}

// evident is how long, in ns, the slow requests take where there must be something to find.
const evident = 40e6

// TestLive runs the quick part of verify.
func TestLive(t *testing.T) {
	b, whystall := labReady(t)
	for _, name := range []string{"gomaxprocs-over-quota/ill", "lock-contention/like-slow-downstream"} {
		c, v, _ := strings.Cut(name, "/")
		expect(t, b, whystall, c, v)
	}
}

// TestRenamed gives everything in the lab's programs another name, processes and URLs included.
// Whystall must not depend on names.
func TestRenamed(t *testing.T) {
	b, whystall := labReady(t)
	for name, at := range map[string]string{"lock-contention": "", "gomaxprocs-over-quota": "server"} {
		out := filepath.Join(b.dir, "zebra-"+strconv.Itoa(len(name)))
		renamed(t, name, at, out)
		key := name + "/"
		if at != "" {
			key += ":" + at
		}
		b.once(key, func(as string) error { return os.Rename(out, as) })
		expect(t, b, whystall, name, "ill")
	}
}

var urlPath = regexp.MustCompile(`^"/[a-z]+"$`)

// renamed builds a case's program, one package in its folder at, with other identifiers, paths and
// file names.
func renamed(t *testing.T, name, at, out string) {
	t.Helper()
	from, to := filepath.Join(name, at), t.TempDir()
	files, err := filepath.Glob(filepath.Join(from, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(name, err)
	}
	pkg := to
	if at == "" { // it is a package of the lab's module
		pkg = filepath.Join(to, "quagga")
		if err := errors.Join(os.CopyFS(filepath.Join(to, "witness"), os.DirFS("witness")),
			os.Mkdir(pkg, 0o755)); err != nil {
			t.Fatal(err)
		}
		from = "."
	}
	b, err := os.ReadFile(filepath.Join(from, "go.mod"))
	if err == nil {
		err = os.WriteFile(filepath.Join(to, "go.mod"), b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var parsed []*ast.File
	names := map[string]string{} // of functions, methods, types and variables of the package
	paths := map[string]string{}
	for _, file := range files {
		f, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
		add := func(id *ast.Ident) {
			if id.Name != "main" && id.Name != "_" {
				names[id.Name] = fmt.Sprintf("okapi%d", len(names))
			}
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				add(d.Name)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						add(s.Name)
					case *ast.ValueSpec:
						for _, id := range s.Names {
							add(id)
						}
					}
				}
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && urlPath.MatchString(l.Value) {
				p, _ := strconv.Unquote(l.Value)
				paths[p] = fmt.Sprintf("/tapir%d", len(paths))
			}
			return true
		})
	}
	if len(names) < 3 || len(paths) == 0 {
		t.Fatalf("%s: renames only %v and %v", name, names, paths)
	}
	for i, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if other, ok := names[n.Name]; ok {
					n.Name = other
				}
			case *ast.BasicLit:
				for p, other := range paths {
					if n.Kind == token.STRING &&
						(strings.HasSuffix(n.Value, p+`"`) || strings.HasSuffix(n.Value, p+`\n"`)) {
						n.Value = strings.Replace(n.Value, p, other, 1)
					}
				}
			}
			return true
		})
		var text bytes.Buffer
		if err := format.Node(&text, set, f); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(pkg, fmt.Sprintf("gnu%d.go", i)), text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := goBuild(t.Context(), "go", pkg, out, "."); err != nil {
		t.Fatal(err)
	}
}
