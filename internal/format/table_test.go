package format

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/whystall/whystall/internal/evidence"
)

// No row lacks a part, and the rows agree with each other.
func TestTable(t *testing.T) {
	kinds, names, described := map[Kind]*row{}, map[string]*row{}, map[string]*row{}
	for _, r := range rows() {
		if flaw := r.flaw(); flaw != "" {
			t.Errorf("%s: %s", cmp.Or(string(r.kind), r.name), flaw)
		}
		if kinds[r.kind] != nil || names[r.name] != nil {
			t.Errorf("%s, %s: two rows", r.kind, r.name)
		}
		kinds[r.kind], names[r.name] = r, r
		for _, s := range r.streams {
			if described[s.Name] != nil || s.Doc == "" {
				t.Errorf("%s: stream %s is described by another row as well, or by no word", r.name, s.Name)
			}
			described[s.Name] = r
		}
	}
	for _, r := range rows() {
		for _, s := range r.also {
			if described[s] == nil || described[s] == r {
				t.Errorf("%s: also gives %s, which no other row describes", r.name, s)
			}
		}
		for _, k := range r.yields {
			if kinds[k] == nil {
				t.Errorf("%s: yields to %s, which is no row", r.name, k)
			}
		}
	}
	for stream, by := range givers() {
		for i, a := range by {
			for _, b := range by[:i] {
				if a.rank == b.rank && a.rank != rankKernel {
					t.Errorf("%s: %s and %s both give it with rank %d: their readings would be mixed", stream, a.name, b.name, a.rank)
				}
			}
		}
	}
}

// givers lists the rows that say they give a stream.
func givers() map[string][]*row {
	m := map[string][]*row{}
	for _, r := range rows() {
		for _, s := range r.streams {
			m[s.Name] = append(m[s.Name], r)
		}
		for _, s := range r.also {
			m[s] = append(m[s], r)
		}
	}
	return m
}

const lookAlikes = "not.txtar"

// samplesOf lists the samples in a row's folder. Files whose names are equal up to the first dot
// belong together: heap.1.pb.gz and heap.2.pb.gz are the sample heap.
func samplesOf(t testing.TB, name string) map[string][]string {
	t.Helper()
	files, err := os.ReadDir(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, f := range files {
		if n := f.Name(); n != lookAlikes && filepath.Ext(n) != ".golden" {
			stem, _, _ := strings.Cut(n, ".")
			out[name+"/"+stem] = append(out[name+"/"+stem], name+"/"+n)
		}
	}
	return out
}

func allSamples(t testing.TB) (files []string) {
	t.Helper()
	for _, r := range rows() {
		if r.standsAlone() {
			for _, group := range samplesOf(t, r.name) {
				files = append(files, group...)
			}
		}
	}
	slices.Sort(files)
	return files
}

// standsAlone reports whether people may hand in a file of this kind: others are in a recorder's
// member only.
func (r *row) standsAlone() bool { return r.looks != nil || r.line != nil || r.named != nil }

// Each sample comes from a real program, except a few lines by hand; its golden stands beside it. A
// row gives no stream that it does not name, and there is a sample for each stream that it names.
func TestSamples(t *testing.T) {
	folders, _ := os.ReadDir("testdata")
	for _, f := range folders {
		if f.IsDir() && f.Name() != "fuzz" && !slices.ContainsFunc(rows(), func(r *row) bool { return r.name == f.Name() && r.standsAlone() }) {
			t.Errorf("testdata/%s: no row has this name", f.Name())
		}
	}
	given := map[string]map[int]bool{} // stream -> ranks of the rows whose samples give it
	for _, r := range rows() {
		if !r.standsAlone() {
			continue
		}
		samples := samplesOf(t, r.name)
		if len(samples) == 0 {
			t.Errorf("testdata/%s: no sample", r.name)
		}
		for name, files := range samples {
			t.Run(name, func(t *testing.T) {
				set, kinds, problems := gather(t, files...)
				checkSample(t, r, set, kinds)
				for _, s := range set.Names() {
					if given[s] == nil {
						given[s] = map[int]bool{}
					}
					given[s][r.rank] = true
				}
				var b strings.Builder
				for i, k := range kinds {
					b.WriteString("# kind: " + string(k) + "\n")
					if problems[i] != nil {
						b.WriteString("# problem: " + problems[i].Error() + "\n")
					}
				}
				golden(t, name, b.String()+dump(set))
			})
		}
	}
	for stream, by := range givers() {
		for _, r := range by {
			if !given[stream][r.rank] {
				t.Errorf("%s: no sample of %s or of the rows of its rank gives it", stream, r.name)
			}
		}
	}
}

// checkSample checks a sample against its row: at least one file is of its kind, and the row names
// all streams.
func checkSample(t *testing.T, r *row, set *evidence.Set, kinds []Kind) {
	t.Helper()
	if !slices.Contains(kinds, r.kind) && r.kind != KindGzip {
		t.Errorf("it is %q, want %s", kinds, r.kind)
	}
	by := givers()
	for _, stream := range set.Names() {
		named := slices.ContainsFunc(by[stream], func(g *row) bool { return r.open() || slices.Contains(kinds, g.kind) })
		if !named {
			t.Errorf("%s: given and not named in the row", stream)
		}
		for _, rec := range set.All(stream) {
			if doc := docOf(stream); rec.Shape != evidence.GapShape && !strings.HasPrefix(strings.ToLower(doc), rec.Shape.String()) {
				t.Errorf("%s is a %s, its description says %q", stream, rec.Shape, doc)
			}
		}
	}
}

func docOf(stream string) string {
	for _, s := range Streams() {
		if s.Name == stream {
			return s.Doc
		}
	}
	return ""
}

// Each row refuses what merely looks like its kind. TestSamples checks that it refuses the samples
// of all other rows: what two rows know is of no kind.
func TestLookAlikes(t *testing.T) {
	for _, r := range rows() {
		if !r.standsAlone() {
			continue
		}
		a, err := txtar.ParseFile(filepath.Join("testdata", r.name, lookAlikes))
		if err != nil || len(a.Files) == 0 {
			t.Errorf("%s: no look-alikes: %v", r.name, err)
			continue
		}
		for _, f := range a.Files {
			if slices.Contains(identifyWhole(f.Name, f.Data), r) {
				t.Errorf("testdata/%s/%s: %s was taken for %s", r.name, lookAlikes, f.Name, r.kind)
			}
		}
	}
}

// A row that yields does so for a sample: otherwise nobody knows whether it must.
func TestYields(t *testing.T) {
	knows := func(r *row, data []byte) bool {
		h := newHead(data[:min(len(data), HeadSize)])
		return r.looks != nil && r.looks(h) || r.line != nil && slices.ContainsFunc(strings.Split(h.start, "\n"), r.line)
	}
	for _, r := range rows() {
		for _, k := range r.yields {
			var files []string
			for group := range maps.Values(samplesOf(t, rowOf(k).name)) {
				files = append(files, group...)
			}
			if !slices.ContainsFunc(files, func(n string) bool { return knows(r, testdata(t, n)) }) {
				t.Errorf("%s yields to %s, and no sample of that needs it", r.name, k)
			}
		}
	}
}

// A row that is not whole gives errors, not silence.
func TestFlaws(t *testing.T) {
	whole := row{kind: "x", name: "x", rank: 1, line: func(string) bool { return true }, streams: []evidence.Stream{{Name: "/x:x", Doc: "x"}},
		parse: alone(func([]byte, int64) ([]evidence.Record, error) { return nil, nil })}
	if flaw := whole.flaw(); flaw != "" {
		t.Error(flaw)
	}
	for want, spoil := range map[string]func(*row){
		"no kind or no name":       func(r *row) { r.name = "" },
		"nothing knows it":         func(r *row) { r.line = nil },
		"no rank among":            func(r *row) { r.rank = 0 },
		"neither a parser nor":     func(r *row) { r.parse = nil },
		"no stream":                func(r *row) { r.streams = nil },
		"known by its start and":   func(r *row) { r.looks = func(head) bool { return true } },
		"reason to have none, or ": func(r *row) { r.unused = "x" },
	} {
		r := whole
		spoil(&r)
		if flaw := r.flaw(); !strings.Contains(flaw, want) {
			t.Errorf("want %q, got %q", want, flaw)
		}
	}
}

// A text that several rows know is of no kind: one known wrongly is worse than an unknown one.
func TestTwoKinds(t *testing.T) {
	_, kinds, problems := Gather([]Item{{Name: "x", Data: []byte("MemTotal: 1 kB\n")}, {Name: "y", Data: []byte("/a/b:ns t=1 v=2 text=\"gc 7 @1.2s\"\n")}})
	if kinds[0] != KindMeminfo || kinds[1] != KindRecords || problems[0] != nil || problems[1] != nil {
		t.Error(kinds, problems)
	}
	a, b := &row{kind: "a"}, &row{kind: "b"}
	if known := unyielding([]*row{a, b}); len(known) != 2 {
		t.Errorf("%d rows left of two that do not yield", len(known))
	}
	a.yields = []Kind{"b"}
	if known := unyielding([]*row{a, b}); len(known) != 1 || known[0] != b {
		t.Errorf("%d rows left, want the one that is yielded to", len(known))
	}
}
