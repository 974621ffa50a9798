package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The ranks are those of tables of the sign test.
func TestInterval(t *testing.T) {
	for _, c := range []struct {
		n         int
		low, high float64
	}{{1, 0, 0}, {5, 0, 0}, {6, 1, 6}, {8, 1, 8}, {9, 2, 8}, {15, 4, 12}, {20, 6, 15}, {50, 18, 33}, {1000, 469, 532}} {
		var ratios []float64
		for i := range c.n { // 1 to n, out of order
			ratios = append(ratios, float64((i*7919)%c.n+1))
		}
		if low, high := interval(ratios); low != c.low || high != c.high {
			t.Errorf("%d ratios: from number %v to %v, want %v to %v", c.n, low, high, c.low, c.high)
		}
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		m     result
		fails bool
	}{
		{result{Ratio: 1, Low: 0.9, High: 1.1}, false},
		{result{Ratio: 1.03, Low: 0.99, High: 1.1}, false},
		{result{Ratio: 1.031, Low: 0.9, High: 1.1}, true},
		{result{Ratio: 1.01, Low: 1.001, High: 1.02}, true},
		{result{Ratio: 1.01, Low: 1, High: 1.02}, false},
		{result{Ratio: 0.9, Low: 0.8, High: 0.95}, false},
		{result{Ratio: 1.02}, false}, // too few pairs
	} {
		if got := c.m.judge(); (got != "") != c.fails {
			t.Errorf("%+v: %q", c.m, got)
		}
	}
}

func TestPairs(t *testing.T) {
	order := ""
	clock := time.Duration(0)
	pairs, err := takePairs(3, func(tree bool) (cost, error) {
		order += map[bool]string{false: "b", true: "t"}[tree]
		clock += time.Second
		return cost{cpu: clock}, nil
	})
	if err != nil || order != "bttbbt" {
		t.Errorf("order %s, %v", order, err)
	}
	m := result{Runs: 2}
	m.sum(pairs) // (1,2), (4,3), (5,6)
	if fmt.Sprint(m.Ratios) != "[2 0.75 1.2]" || m.Ratio != 1.2 || m.BaseCPU != 2 || m.TreeCPU != 1.5 {
		t.Errorf("%+v", m)
	}
	if _, err := takePairs(2, func(bool) (cost, error) { return cost{}, errors.New("no") }); err == nil {
		t.Error("a sample that fails is no error")
	}
}

const testSchema = `{
	"properties": {
		"cause": {"type": "string"},
		"why": {"type": "string", "x-prose": true},
		"took": {"type": "integer", "x-varies": true},
		"list": {"type": "array", "items": {"$ref": "#/$defs/entry"}}
	},
	"$defs": {"entry": {"properties": {"name": {}, "text": {"x-prose": true}}}}
}`

func TestDifference(t *testing.T) {
	s, err := readSchema([]byte(testSchema))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ was, is, want string }{
		{`{"cause": "a", "took": 1}`, `{"took": 2, "cause": "a"}`, ``},
		{`{"cause": "a"}`, `{"cause": "b"}`, `.cause: "b", was "a"`},
		{`{"n": 1.10}`, `{"n": 1.1}`, `.n: 1.1, was 1.10`},
		{`{"n": 1}`, `{"n": "1"}`, `.n: "1", was 1`},
		{`{"n": {"x": 1}}`, `{"n": [1]}`, `.n: [1], was {"x":1}`},
		{`{"n": null}`, `{}`, `.n: (nothing), was null`},
		{`{}`, `{"took": 1}`, `.took: 1, was (nothing)`},
		{`{"why": "2 of 3 waited"}`, `{"why": "of 3 there waited 2"}`, `1 sentences`},
		{`{"why": "2 of 3"}`, `{"why": "2 of 4"}`, `1 sentences figures .why: "2 of 4", was "2 of 3"`},
		{`{"why": ""}`, `{"why": "none"}`, `.why: "none", was ""`},
		{`{"why": "one"}`, `{"why": 1}`, `.why: 1, was "one"`},
		{`{"list": [{"name": "a"}, {"name": "b"}]}`, `{"list": [{"name": "b"}, {"name": "a"}]}`,
			`.list[0].name: "b", was "a" .list[1].name: "a", was "b"`},
		{`{"list": [{"text": "a"}]}`, `{"list": [{"text": "b"}, {}]}`, `.list | length: 2, was 1 1 sentences`},
	} {
		d := differ{root: s}
		d.compare("", s, decode(t, c.was), decode(t, c.is))
		var got []string
		for _, f := range d.found {
			got = append(got, f.String())
		}
		if d.sentences > 0 {
			got = append(got, fmt.Sprint(d.sentences, " sentences"))
		}
		for _, f := range d.figures {
			got = append(got, "figures "+f.String())
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s and %s:\n got %s\nwant %s", c.was, c.is, got, c.want)
		}
	}
}

func decode(t *testing.T, text string) (v any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// The marks are in the report's schema: sentences have one, names and numbers have none.
func TestMarks(t *testing.T) {
	b, err := os.ReadFile("../internal/report/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	s, err := readSchema(b)
	if err != nil {
		t.Fatal(err)
	}
	const report = `{"findings": [{"cause": "x", "summary": "x", "confidence": "x", "evidence": [{"text": "x"}]}],
		"ledger": {"slow": {"accounts": [{"cause": "x", "actor": "x", "detail": "x"}]}}, "cost": {"explain_ns": 1}}`
	d := differ{root: s}
	d.compare("", s, decode(t, report), decode(t, strings.NewReplacer(`"x"`, `"y"`, `1`, `2`).Replace(report)))
	var got []string
	for _, f := range d.found {
		got = append(got, f.Path)
	}
	want := ".findings[0].cause .findings[0].confidence .ledger.slow.accounts[0].actor .ledger.slow.accounts[0].cause .ledger.slow.accounts[0].detail"
	if got := strings.Join(got, " "); got != want || d.sentences != 2 {
		t.Errorf("differ: %s, and %d sentences; want %s, and 2", got, d.sentences, want)
	}
	if _, err := readSchema([]byte(`{"properties": {"why": {}}}`)); err == nil {
		t.Error("a schema without marks is accepted: every sentence would be a name")
	}
}

// The worktree is gone after an error, a panic and an interrupt.
func TestWorktree(t *testing.T) {
	repo := t.TempDir()
	ctx := t.Context()
	for _, args := range [][]string{
		{"init", "-q"}, {"-c", "user.name=x", "-c", "user.email=x@localhost", "commit", "-q",
			"--allow-empty", "-m", "empty"},
	} {
		if _, err := git(ctx, repo, args...); err != nil {
			t.Skip(err)
		}
	}
	worktrees := func() int {
		l, err := git(t.Context(), repo, "worktree", "list", "--porcelain")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(l, "worktree ")
	}
	ctx, cancel := context.WithCancel(ctx)
	for name, use := range map[string]func() error{
		"error": func() error { return errors.New("no") }, "panic": func() error { panic("no") },
		"interrupt": func() error { cancel(); return ctx.Err() },
	} {
		var used string
		func() {
			defer func() { recover() }()
			ctx := ctx
			if name != "interrupt" {
				ctx = t.Context()
			}
			withWorktree(ctx, repo, "HEAD", func(dir string) error {
				if used = dir; worktrees() != 2 {
					t.Errorf("%s: there is no worktree", name)
				}
				return use()
			})
		}()
		if _, err := os.Stat(filepath.Dir(used)); err == nil || worktrees() != 1 {
			t.Errorf("%s: worktree %s is still there", name, used)
		}
	}
	if err := withWorktree(ctx, repo, "HEAD", func(string) error { return nil }); err == nil || worktrees() != 1 {
		t.Errorf("interrupted before its start: %v, %d worktrees", err, worktrees())
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--pairs 3", "--pairs: needs --against"}, {"--against x --pairs -1", "--pairs: want 0"},
		{"--against x --format yaml", "--format: want text"},
		{"--against x y", `"y" is no flag`}, {"--sizes 5,x", `--sizes: want sizes in MB, got "x"`},
		{"--runs 0", "--runs: want 1"},
		{"--against= --pairs 1", "want a commit"}, {"--against no-such-commit", "is no commit"},
		{"--against HEAD --only (", "--only"},
	} {
		var out bytes.Buffer
		if err := bench(t.Context(), strings.Fields(c.args), &out, &out); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.args, err, c.want)
		}
	}
	o, err := readOptions([]string{"--against", "x"}, nil)
	if err != nil || o.pairs < 15 || len(o.mbs) != 2 {
		t.Errorf("by default: %+v, %v", o, err)
	}
}

// TestAgainst compares the tree with its own commit, on input too small to say anything. What is
// judged of times is not looked at.
func TestAgainst(t *testing.T) {
	if testing.Short() {
		t.Skip("builds whystall twice")
	}
	if _, err := git(t.Context(), "..", "rev-parse", "HEAD"); err != nil {
		t.Skip(err)
	}
	o, err := readOptions([]string{"--against", "HEAD", "--pairs", "1", "--sizes", "1", "--only",
		"1 MB", "--dir", t.TempDir(), "--format", "json"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.recordings = []string{labCases + "/sched-latency.ill.case"}
	var out, progress bytes.Buffer
	if err := against(t.Context(), o, &out, &progress); err != nil && !errors.Is(err, errWorse) {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var c comparison
	if err := json.Unmarshal(out.Bytes(), &c); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if c.Same.Recordings != 1 || len(c.Rows) != 4 {
		t.Fatalf("%d recordings, %d rows\n%s", c.Same.Recordings, len(c.Rows), &out)
	}
	for _, r := range c.Rows {
		if r.NotMeasured != "" || len(r.Ratios) != 1 || r.BaseCPU <= 0 || r.TreeCPU <= 0 || r.RSS <= 0 || r.High != 0 {
			t.Errorf("%+v", r)
		}
	}
	var text bytes.Buffer
	c.print(&text)
	for _, want := range []string{"base: ", "says the same: ", "reader, every event, 1 MB",
		"explain, 1 MB", "too few pairs", "of 4 rows fail"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}
