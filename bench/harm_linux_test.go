package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestStand starts a target and its clients: they are answered, its pages are, and it ends with its
// standard input. How long anything took is not looked at.
func TestStand(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a server")
	}
	ctx, dir := t.Context(), t.TempDir()
	target := stressed{key: "t", args: []string{"-heap=1"}, file: true}
	program, _, err := buildTarget(ctx, target, dir)
	if err != nil {
		t.Fatal(err)
	}
	h, end, err := startTarget(ctx, target, program, dir)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := startHelper(ctx, "clients", h.says["addr"])
	if err != nil {
		t.Fatal(errors.Join(err, end()))
	}
	s := &stand{t: target, o: harmOptions{window: 500 * time.Millisecond}, dir: dir, target: h, clients: clients}
	if err := s.setRate(50); err != nil {
		t.Fatal(err)
	}
	var f felts
	for range 20 { // a machine may have no CPU for it for a while
		if f, err = s.attached(ctx, part{page: "heap"}); err != nil {
			t.Fatal(err)
		}
		if f.window.PerS > 0 {
			break
		}
	}
	if f.window.Due == 0 || f.window.PerS == 0 || f.window.P99 < f.window.P50 {
		t.Errorf("got %+v", f.window)
	}
	clients.end()
	if err := end(); err != nil {
		t.Error(err)
	}
	if !gone(h.pid) {
		t.Error("the target did not end")
	}
}

// TestHarmNames: --only chooses rows by "target part", and C++ has no pages.
func TestHarmNames(t *testing.T) {
	o := harmOptions{only: regexp.MustCompile(`^(native|go1\.19) (trace|whole)$`)}
	var got []string
	for _, target := range stressedTargets() {
		for _, p := range o.chosen(target) {
			got = append(got, target.key+" "+p.key)
		}
	}
	if want := "go1.19 trace, go1.19 whole, native whole"; strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestHarmOptions(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"--pairs", "0"}, {"--seconds", "0.1"},
		{"--settle", "2m"}, {"--only", "("}, {"--format", "xml"}, {"--rate", "0"}} {
		if _, err := readHarmOptions(args); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
	if o, err := readHarmOptions(nil); err != nil || o.pairs != 20 || o.window != 2*time.Second {
		t.Errorf("%+v %v", o, err)
	}
}

// TestStaleCgroups: an empty group of a killed run is removed; others, and those of a run that
// lives, are not.
func TestStaleCgroups(t *testing.T) {
	dir := t.TempDir()
	ours := groupName + strconv.Itoa(os.Getpid())
	for _, name := range []string{groupName + "999999999", groupName + "999999998/in-it", ours, "other"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	removeStale(dir)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 3 {
		t.Errorf("left %v, %v", left, err)
	}
}
