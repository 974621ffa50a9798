package account

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// leaves are all constants of type Leaf.
func leaves(t *testing.T) (l []Leaf) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "leaf.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.ValueSpec)
		if !ok || s.Type == nil || len(s.Values) != 1 {
			return true
		}
		if id, ok := s.Type.(*ast.Ident); !ok || id.Name != "Leaf" {
			return true
		}
		value, err := strconv.Unquote(s.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		l = append(l, Leaf(value))
		return true
	})
	if len(l) < 40 {
		t.Fatalf("%d leaves", len(l))
	}
	return l
}

// What a leaf is called and what code takes it for must agree: a new one is easily forgotten.
func TestLeaves(t *testing.T) {
	for _, l := range leaves(t) {
		if was, want := l.Unexplained(), strings.HasPrefix(string(l), "unexplained"); was != want {
			t.Errorf("%s: unexplained %v", l, was)
		}
		if was, want := l.Stopped(), strings.HasPrefix(string(l), "stop-the-world") && l != LeafSTWQueue; was != want {
			t.Errorf("%s: stopped %v", l, was)
		}
	}
}

func TestWords(t *testing.T) {
	for want, a := range map[string]Named{
		"no CPU (own threads), at main.f": {Class: ClassOwn,
			Leaf: LeafNoCPU, Site: "main.f", Detail: OwnThreads},
		"asleep in main.wait": {Class: ClassOwn,
			Leaf: LeafAsleep, Detail: "main.wait"},
		"stop-the-world (read mem stats): main.g": {Class: ClassMessage,
			Leaf: LeafSTW, Actor: "main.g", Detail: StopReadMemStats},
		"stop-the-world, queued in main.h": {Class: ClassRuntime,
			Leaf: LeafSTWQueue, Detail: "main.h"},
		"lock at main.mu: between holders": {Class: ClassLock,
			Leaf: LeafLockBetween, Site: "main.mu"},
		"lock at main.mu: holder unseen": {Class: ClassLock,
			Leaf: LeafLockUnseen, Site: "main.mu"},
		"lock at main.mu: its holder is not known": {Class: ClassLock, Leaf: LeafLock, Site: "main.mu"},
		"lock at main.mu, its holder main.g: on CPU in main.work": {Class: ClassLock,
			Leaf: LeafOnCPU, Site: "main.mu", Actor: "main.g", Detail: "main.work"},
		"on CPU: the request itself": {Class: ClassOwn, Leaf: LeafOnCPU},
	} {
		if got := Words(a, func(s string) string { return s }); got != want {
			t.Errorf("%+v: %q, want %q", a, got, want)
		}
	}
}
