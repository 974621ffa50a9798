package format

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/evidence"
)

var update = flag.Bool("update", false, "rewrite goldens")

// golden holds got to testdata/NAME.golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
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

// dump prints a set as text, in the order of the table of streams.
func dump(s *evidence.Set) string {
	var b strings.Builder
	for _, st := range Streams {
		for _, r := range s.All(st.Name) {
			b.WriteString(r.String() + "\n")
		}
	}
	return b.String()
}

func gather(t *testing.T, names ...string) (*evidence.Set, []Kind, []error) {
	t.Helper()
	var items []Item
	for i, n := range names {
		items = append(items, Item{Name: n, Data: testdata(t, n), Time: int64(i+1) * 1e9})
	}
	return Gather(items)
}

// Each file is from a real program; what is read of it stands beside it.
func TestFiles(t *testing.T) {
	for _, tc := range []struct {
		name, problem string
		kinds         Kind
		files         []string
	}{
		{"metrics-default", "", KindMetrics, []string{"metrics-default.txt"}},
		{"metrics-all", "", KindMetrics, []string{"metrics-all.txt"}},
		{"vars", "", KindVars, []string{"vars.begin.json"}},
		{"heap-text", "", KindHeapText, []string{"heap-text.txt"}},
		{"memstats", "", KindHeapText, []string{"memstats.txt"}},
		{"mutex", "", KindPprof, []string{"mutex.begin.pb.gz", "mutex.end.pb.gz"}},
		{"mutex-rate", "", KindMutexText, []string{"mutex-rate.txt"}},
		{"block", "", KindPprof, []string{"block.pb.gz"}},
		{"block-off", "", KindPprof, []string{"block.end.pb.gz"}},
		{"heap", "", KindPprof, []string{"heap.begin.pb.gz", "heap.end.pb.gz"}},
		{"heap-alone", "", KindPprof, []string{"heap.end.pb.gz"}},
		{"goroutine", "", KindPprof, []string{"goroutine.end.pb.gz"}},
		{"cpu", "", KindPprof, []string{"cpu.pb.gz"}},
		{"threadcreate", "read threadcreate.pb.gz: a pprof profile of [threadcreate/count]: not one that is used here", KindPprof, []string{"threadcreate.pb.gz"}},
		{"gctrace", `gctrace.log: read gctrace: line 9: want gc N @TIMEs P%: ..., got "gc 10 @x"`, KindGCTrace, []string{"gctrace.log"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set, kinds, problems := gather(t, tc.files...)
			for i, k := range kinds {
				if k != tc.kinds {
					t.Errorf("%s is %s, want %s", tc.files[i], k, tc.kinds)
				}
			}
			problem := ""
			for _, p := range problems {
				if p != nil {
					problem += p.Error()
				}
			}
			if problem != tc.problem {
				t.Errorf("problem %s\nwant    %s", problem, tc.problem)
			}
			golden(t, tc.name, dump(set))
		})
	}
}

// Every stream that a parser gives is in the table, and has its shape there in words.
func TestStreamsTable(t *testing.T) {
	listed := map[string]string{}
	for _, s := range Streams {
		if listed[s.Name] != "" || s.Doc == "" {
			t.Errorf("%s: twice, or without a word", s.Name)
		}
		listed[s.Name] = s.Doc
	}
	given := map[string]evidence.Shape{}
	for _, m := range metrics {
		given[m.stream] = m.shape
	}
	files, _ := os.ReadDir("testdata")
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".golden") {
			records, err := evidence.ParseText(bytes.NewReader(testdata(t, f.Name())))
			if err != nil {
				t.Errorf("%s: %v", f.Name(), err)
			}
			for _, r := range records {
				given[r.Stream] = r.Shape
			}
		}
	}
	for name, shape := range given {
		doc, ok := listed[name]
		if !ok {
			t.Errorf("%s is not in the table", name)
		} else if !strings.HasPrefix(strings.ToLower(doc), shape.String()) {
			t.Errorf("%s is a %s, its doc says %q", name, shape, doc)
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("%s is in the table, and no test gives it", name)
	}
}

// Two sources of the same stream are not mixed: growth between two sources is none.
func TestFirstSourceCounts(t *testing.T) {
	set, _, _ := gather(t, "vars.begin.json", "metrics-default.txt")
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

// FuzzGather gives anything to whatever parser it looks like.
func FuzzGather(f *testing.F) {
	files, _ := os.ReadDir("testdata")
	for _, e := range files {
		if e.IsDir() {
			continue
		}
		b := testdata(f, e.Name())
		if plain, err := Gunzip(b, 1<<20); err == nil {
			b = plain // a packed one is beyond what a fuzzer can change to any purpose
		}
		if len(b) < 20<<10 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		set, _, _ := Gather([]Item{{Name: "a", Data: data, Time: 1}, {Name: "mutex", Data: data, Time: 2}})
		for _, s := range Streams {
			for _, r := range set.All(s.Name) {
				if again, err := evidence.ParseRecord(r.String()); err != nil || again.String() != r.String() {
					t.Fatalf("%s is not a record that can be kept: %v", r, err)
				}
			}
			set.Delta(s.Name)
		}
	})
}
