package format

import (
	"flag"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/evidence"
)

var update = flag.Bool("update", false, "rewrite goldens")

// golden compares got with testdata/NAME.golden. One without a record or an error is refused: a
// file that gives nothing must say why.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if !slices.ContainsFunc(strings.Split(got, "\n"), func(line string) bool { return line != "" && !strings.HasPrefix(line, "# kind: ") }) {
		t.Errorf("%s: no record and no error", name)
		return
	}
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}

func testdata(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// dump prints a set as text, by stream.
func dump(s *evidence.Set) string {
	var b strings.Builder
	for _, stream := range s.Names() {
		for _, r := range s.All(stream) {
			b.WriteString(r.String() + "\n")
		}
	}
	return b.String()
}

// gather reads files of testdata, with a second between them.
func gather(t *testing.T, names ...string) (*evidence.Set, []Kind, []error) {
	t.Helper()
	var items []Item
	for i, n := range names {
		items = append(items, Item{Name: path.Base(n), Data: testdata(t, n), Time: int64(i+1) * 1e9})
	}
	return Gather(items)
}

// Two sources of the same stream are not mixed: growth between two sources is none.
func TestFirstSourceCounts(t *testing.T) {
	set, _, _ := gather(t, "vars/memstats.json", "metrics/default.txt")
	if n := len(set.All("/go/gc/cycles:gc-cycles")); n != 1 {
		t.Errorf("%d readings, want that of the metrics alone", n)
	}
	if _, ok := set.Fact("/go/version:text"); !ok {
		t.Error("no version")
	}
}

func TestMetricsOddities(t *testing.T) {
	for _, tc := range []struct{ page, want, err string }{
		{"go_goroutines 7", "/go/sched/goroutines:goroutines sample t=5 v=7\n", ""},
		{"  # a comment\ngo_goroutines\t7 1700000000000\r\n# EOF", "/go/sched/goroutines:goroutines sample t=5 v=7\n", ""},
		{`go_goroutines{job="a}\"b",x="1"} 7 # {trace="x"} 1`, "/go/sched/goroutines:goroutines sample t=5 v=7\n", ""},
		{"go_goroutines{pod=\"a\"} 7\ngo_goroutines{pod=\"b\"} 9", `/go/sched/goroutines:goroutines gap t=5 end=5 text="the page has 2 series go_goroutines: it speaks for several processes"` + "\n", ""},
		{"go_goroutines NaN\ngo_threads +Inf", "", ""},
		{"go_goroutines seven\ngo_threads 3", "/go/sched/threads:threads sample t=5 v=3\n", "read metrics: line 1: go_goroutines: want name{labels} value"},
		{"go_goroutines{ 7", "", "read metrics: line 1: go_goroutines: want name{labels} value"},
		{"go_goroutines7 7\nunknown nonsense here", "", ""},
		{`go_info{a="b",version="go1.2\"x"} 1`, `/go/version:text fact t=5 text="go1.2\"x"` + "\n", ""},
		{"process_cpu_seconds_total 1.5", "/process/cpu:ns t=5 v=1500000000\n", ""},
	} {
		records, err := Metrics([]byte(tc.page), 5)
		got := ""
		for _, r := range records {
			got += r.String() + "\n"
		}
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
			t.Errorf("%s: got %s%v\nwant %s%s", tc.page, got, err, tc.want, tc.err)
		}
	}
}

func TestIdentify(t *testing.T) {
	for head, want := range map[string]Kind{
		"":                                  KindEmpty,
		"go 1.26 trace\x00\x00\x00":         KindTrace,
		"go 1.9 trace\x00\x00\x00\x00":      KindTrace,
		"go 1.26 tracer of my own":          KindTrace, // exectrace says what is wrong with it
		"go 1.26 is out":                    KindUnknown,
		"\x1f\x8b\x08\x00":                  KindGzip,
		"PK\x03\x04":                        KindZip,
		" \n<!DOCTYPE HTML><html>":          KindHTML,
		"\xef\xbb\xbf<html>":                KindHTML,
		"{\"cmdline\": [\"x\"],":            KindVars,
		"{\"status\":\"ok\"}":               KindUnknown,
		"# HELP go_goroutines x":            KindMetrics,
		"up 1\n":                            KindMetrics,
		"hello world\n":                     KindUnknown,
		"--- mutex:\ncycles/second=1\n":     KindMutexText,
		"heap profile: 1: 2 [3: 4] @ heap":  KindHeapText,
		"# runtime.MemStats\n# Alloc = 1":   KindHeapText,
		"--- contention:\ncycles/second=1":  KindUnknown,
		"x\ngc 7 @1.2s 3%: 0.1+2+0.1 ms":    KindGCTrace,
		"/a/b:ns t=1 v=2\n":                 KindRecords,
		"/usr/bin/x is not a record of any": KindUnknown,
		"\x00\x01\x02":                      KindUnknown,
		"\xff\xfe\xfd text":                 KindUnknown,
		"\n\n\x0b\x0c":                      KindUnknown,
	} {
		if got := Identify([]byte(head)); got != want {
			t.Errorf("%q is %s, want %s", head, got, want)
		}
	}
}

// FuzzGather hands arbitrary bytes to the parser that knows them.
func FuzzGather(f *testing.F) {
	for _, name := range allSamples(f) {
		b := testdata(f, name)
		if plain, err := Gunzip(b, 1<<20); err == nil {
			b = plain // a fuzzer cannot usefully change a packed one
		}
		if len(b) < 20<<10 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		set, _, _ := Gather([]Item{{Name: "a", Data: data, Time: 1}, {Name: "mutex", Data: data, Time: 2}})
		for _, stream := range set.Names() {
			for _, r := range set.All(stream) {
				if again, err := evidence.ParseRecord(r.String()); err != nil || again.String() != r.String() {
					t.Fatalf("%s is not a record that can be kept: %v", r, err)
				}
			}
			set.Delta(stream)
		}
	})
}
