package cli

import (
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/detect"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/report"
)

// vocabulary is what code once looked for in sentences, and what it might look for.
var vocabulary = strings.Fields(`tlb numa throttled throttling reclaim disk fault page mmap_lock mmap lock clone thread threads creation stacks of waits
	socket timer own idle wake-up latency whystall this recording mutex runtime safe-point proven supported possible gc termination memory kernel
	stream hijacked gap damaged cut off no request execution trace not known missing lost permitted tracepoint eBPF`)

// scramble replaces every text with the tag prose by random words, and gives how many there were. A
// text that is empty stays so: that there is none is a fact.
func scramble(rnd *rand.Rand, v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			n += scramble(rnd, v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			n += scramble(rnd, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch x := v.Field(i); {
			case !f.IsExported():
			case f.Tag.Get("prose") != "yes":
				n += scramble(rnd, x)
			case x.Kind() == reflect.String:
				n += reword(rnd, x)
			default: // []string
				for i := range x.Len() {
					n += reword(rnd, x.Index(i))
				}
			}
		}
	}
	return n
}

func reword(rnd *rand.Rand, x reflect.Value) int {
	if x.String() == "" {
		return 0
	}
	words := make([]string, 1+rnd.IntN(9))
	for i := range words {
		words[i] = vocabulary[rnd.IntN(len(vocabulary))]
		if rnd.IntN(5) == 0 {
			words[i] += ":"
		}
	}
	x.SetString(strings.Join(words, " "))
	return 1
}

// explained is what a case comes to. With rnd all prose of it is scrambled wherever a room hands it
// to the next.
func explained(t *testing.T, file string, rnd *rand.Rand) (verdict string, texts int) {
	t.Helper()
	// A limit of memory is the whole process's, and cases run at once.
	con := &console{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard,
		getenv: func(string) string { return "off" }}
	in := con.load([]string{file})
	defer in.close()
	if rnd != nil {
		if in.kern != nil {
			missing := in.kern.Header().Missing // what the reader holds itself
			texts += scramble(rnd, reflect.ValueOf(missing))
		}
		texts += scramble(rnd, reflect.ValueOf(in.manifest)) + scramble(rnd, reflect.ValueOf(&in.target)) +
			scramble(rnd, reflect.ValueOf(in.tiers)) + scramble(rnd, reflect.ValueOf(in.inputs)) +
			scramble(rnd, reflect.ValueOf(in.gaps))
		for _, name := range in.set.Names() {
			for i, r := range in.set.All(name) {
				if r.Shape == evidence.GapShape {
					texts += reword(rnd, reflect.ValueOf(&in.set.All(name)[i].Text).Elem())
				}
			}
		}
	}
	r, err := con.account(in, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if rnd != nil {
		texts += scramble(rnd, reflect.ValueOf(r))
	}
	found := detect.Run(r, in.set, detect.Facts{Service: in.target.Service, CPUs: in.target.CPUs})
	verdict = verdictOf(r, &found)
	if rnd != nil {
		texts += scramble(rnd, reflect.ValueOf(&found))
	}
	rep := report.New(report.Source{Target: in.target, Inputs: in.inputs, Gaps: in.gaps,
		Tiers: in.tiers, Ledger: r, Found: found})
	return verdict + fmt.Sprintf("status %d\n", statusOf(rep)), texts
}

// verdictOf is all that is decided, without a sentence.
func verdictOf(r *account.Result, found *finding.Result) string {
	var s strings.Builder
	for _, f := range found.Findings {
		fmt.Fprintf(&s, "found %s because of %q: %s, %+v, %.6f, %d lines of evidence, %d of remedy\n", f.Cause, f.BecauseOf, f.Confidence, f.Explains, f.Share,
			len(f.Evidence), len(f.Remedy))
	}
	for _, f := range found.RuledOut {
		fmt.Fprintf(&s, "ruled out %s\n", f.Cause)
	}
	for _, f := range found.NotChecked {
		fmt.Fprintf(&s, "not checked %s\n", f.Cause)
	}
	fmt.Fprintf(&s, "left %v\n", found.Left)
	for _, c := range []*account.Column{&r.Slow, &r.Median, &r.All} {
		fmt.Fprintf(&s, "column of %d, %d ns in %d accounts\n", c.Requests, c.WallNS, len(c.Accounts))
	}
	return s.String()
}

// TestVerdictsWithoutProse explains every recording twice: as it is, and with random words in the
// place of every sentence that one room hands to another. The verdicts are the same.
func TestVerdictsWithoutProse(t *testing.T) {
	if testing.Short() {
		t.Skip("explains every recording twice")
	}
	files, err := filepath.Glob("testdata/lab/*.case")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for i, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".case"), func(t *testing.T) {
			t.Parallel()
			want, _ := explained(t, file, nil)
			got, texts := explained(t, file, rand.New(rand.NewPCG(uint64(i), 3)))
			if got != want {
				t.Errorf("with random words:\n%s\nas recorded:\n%s", got, want)
			}
			// A case has some at least: boundaries, reasons, and what was not checked.
			if texts < 20 {
				t.Errorf("only %d sentences were replaced", texts)
			}
		})
	}
}

// TestScramble checks that the random words reach what they should.
func TestScramble(t *testing.T) {
	r := &account.Result{Requests: account.Requests{NoRequestsCause: "a",
		Groups: []account.Group{{Entry: "main.f", Boundary: "b"}}},
		Kernel: &account.Kernel{Barriers: []account.Barrier{{Kind: "c", Hops: []string{"d", ""}}}}}
	n := scramble(rand.New(rand.NewPCG(1, 2)), reflect.ValueOf(r))
	g, b := r.Requests.Groups[0], r.Kernel.Barriers[0]
	if n != 3 || r.Requests.NoRequestsCause == "a" || g.Boundary == "b" || b.Hops[0] == "d" ||
		g.Entry != "main.f" || b.Kind != "c" || b.Hops[1] != "" {
		t.Errorf("%d replaced: %+v", n, r)
	}
}
