package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain makes the test's binary a child, as the benchmark's own is.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "child" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestBench runs the whole of it on traces too small to say anything.
func TestBench(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs whystall")
	}
	var out bytes.Buffer
	if err := bench(t.Context(), []string{"--runs", "1", "--sizes", "1", "--dir", t.TempDir()},
		&out, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	t.Logf("%s", &out)
	for _, want := range []string{"1 MB: ", "format of Go 1.21: ", "x/exp/trace, empty loop",
		"whystall reader", "whystall explain", "go tool trace"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in the table", want)
		}
	}
}

func TestMedian(t *testing.T) {
	m := median([]cost{{cpu: 3, wall: 9, rss: 1}, {cpu: 1, wall: 7, rss: 5}, {cpu: 2, wall: 8, rss: 2}})
	if want := (cost{cpu: 2, wall: 8, rss: 5}); m != want {
		t.Errorf("got %+v, want %+v", m, want)
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		ratio float64
		want  string
	}{{8, "1/8.0 (goal 1/8: met)"}, {7.9, "1/7.9 (goal 1/8: MISSED)"}, {0.5, "2.0 times (goal 1/8: MISSED)"}} {
		if got := fraction(c.ratio) + verdict(c.ratio, 8); got != c.want {
			t.Errorf("%v: got %q, want %q", c.ratio, got, c.want)
		}
	}
}

func TestCPUTime(t *testing.T) {
	c, _, err := runProgram(t.Context(), program{name: "sleep", args: []string{"sleep", "0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	if c.wall < 100*time.Millisecond || c.cpu >= c.wall || c.rss == 0 {
		t.Errorf("of a sleep: %+v", c)
	}
	if _, _, err := runProgram(t.Context(), program{name: "false", args: []string{"false"}}); err == nil {
		t.Error("a program that fails is no error")
	}
}

// TestQuartiles: the middle half of an odd and an even number.
func TestQuartiles(t *testing.T) {
	for _, c := range []struct {
		of              []float64
		low, mid, right float64
	}{{[]float64{5, 1, 3, 2, 4}, 2, 3, 4}, {[]float64{4, 3, 2, 1}, 2, 2.5, 3}, {[]float64{7}, 7, 7, 7}} {
		if low, mid, right := quartiles(c.of); low != c.low || mid != c.mid || right != c.right {
			t.Errorf("%v: got %v %v %v", c.of, low, mid, right)
		}
	}
}

// The map in doc.go names every file.
func TestMap(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f != "doc.go" && !strings.HasSuffix(f, "_test.go") && !strings.Contains(string(doc), "//\t"+f+" ") {
			t.Errorf("%s is not in the map", f)
		}
	}
}

// TestProfiled: the program which replaces main.go builds, and profiles what it explains.
func TestProfiled(t *testing.T) {
	if testing.Short() {
		t.Skip("builds whystall without a profile")
	}
	tmp := t.TempDir()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	program, output := filepath.Join(tmp, "profiled"), filepath.Join(tmp, "default.pgo")
	if err := buildProfiled(t.Context(), root, tmp, program); err != nil {
		t.Fatal(err)
	}
	if b, err := exec.Command(program, output, fallback, fallback).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	b, err := exec.Command("go", "tool", "pprof", "-raw", output).CombinedOutput()
	if err != nil || !strings.Contains(string(b), "whystall/internal/ledger.") || strings.Contains(string(b), tmp) {
		t.Errorf("want functions of the ledger and no path of the program: %v\n%s", err, b)
	}
}
