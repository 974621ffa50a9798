package detect

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/ledger"
	"github.com/whystall/whystall/internal/timeline/twin"
)

var update = flag.Bool("update", false, "rewrite the want section of the cases")

// TestCases runs every case: accounts written by hand, or a trace's text twin, and what all
// detectors say of it.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	for _, name := range files {
		dir := filepath.Base(filepath.Dir(name))
		t.Run(dir+"/"+strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			parts := sections(a)
			b := caseBoard(t, parts)
			honest(t, b)
			got := verdict(b, dir)
			if *update {
				a.Files = slices.DeleteFunc(a.Files, func(f txtar.File) bool { return f.Name == "want" })
				a.Files = append(a.Files, txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want := parts["want"]; got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// Every detector has a case of each kind: found, clear, blind.
func TestEveryDetectorHasCases(t *testing.T) {
	for _, d := range table {
		for _, kind := range []string{"found", "clear", "blind"} {
			names, _ := filepath.Glob("testdata/" + d.Name + "/" + kind + "*.txtar")
			if len(names) == 0 {
				t.Errorf("%s: no case %s*.txtar", d.Name, kind)
			}
			for _, n := range names {
				a, err := txtar.ParseFile(n)
				if err != nil {
					t.Fatal(err)
				}
				word := map[string]string{"found": "found " + d.Name, "clear": "ruled out " +
					d.Name, "blind": "not checked " + d.Name}[kind]
				if !strings.Contains(sections(a)["want"], word) {
					t.Errorf("%s: its want has no %q", n, word)
				}
			}
		}
	}
}

// sections gives the text of each section of a case by its name.
func sections(a *txtar.Archive) map[string]string {
	parts := map[string]string{}
	for _, f := range a.Files {
		parts[f.Name] = string(f.Data)
	}
	return parts
}

var amount = regexp.MustCompile(`(-?\d+(?:\.\d+)?)(ns|us|ms|s|KiB|MiB|GiB)\b`)

var units = map[string]float64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

// parseLedger reads a Result in JSON, whose keys are the names of Go's fields and whose numbers may
// have a unit: 20ms, 1.5GiB.
func parseLedger(text string) (*account.Result, error) {
	var lines []string
	for _, l := range strings.Split(text, "\n") {
		if !strings.HasPrefix(strings.TrimSpace(l), "#") {
			lines = append(lines, l)
		}
	}
	text = strings.Join(lines, "\n")
	var out strings.Builder
	for i, quoted := range strings.Split(text, `"`) {
		if i%2 == 1 {
			out.WriteString(`"` + quoted + `"`)
			continue
		}
		out.WriteString(amount.ReplaceAllStringFunc(quoted, func(s string) string {
			m := amount.FindStringSubmatch(s)
			f, _ := strconv.ParseFloat(m[1], 64)
			return strconv.FormatInt(int64(f*units[m[2]]), 10)
		}))
	}
	r := new(account.Result)
	return r, fill(reflect.ValueOf(r), []byte(out.String()))
}

// fill reads v from JSON by the names of Go's fields. The tags in account are the report's names,
// and leave out what the report shows in another shape.
func fill(v reflect.Value, raw json.RawMessage) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return fill(v.Elem(), raw)
	case reflect.Slice:
		var items []json.RawMessage
		err := json.Unmarshal(raw, &items)
		v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
		for i := 0; i < len(items) && err == nil; i++ {
			err = fill(v.Index(i), items[i])
		}
		return err
	case reflect.Struct:
		var fields map[string]json.RawMessage
		err := json.Unmarshal(raw, &fields)
		for name, value := range fields {
			if !v.FieldByName(name).IsValid() {
				return fmt.Errorf("%s has no field %s", v.Type(), name)
			}
			if ferr := fill(v.FieldByName(name), value); err == nil && ferr != nil {
				err = fmt.Errorf("%s: %w", name, ferr)
			}
		}
		return err
	}
	return json.Unmarshal(raw, v.Addr().Interface())
}

// caseBoard looks at a case.
func caseBoard(t *testing.T, parts map[string]string) *run {
	t.Helper()
	var r *account.Result
	var err error
	switch {
	case parts["ledger"] != "":
		if r, err = parseLedger(parts["ledger"]); err != nil {
			t.Fatalf("ledger: %v", err)
		}
	case parts["trace"] != "":
		src, err := twin.Parse(strings.NewReader(parts["trace"]))
		if err != nil {
			t.Fatalf("trace: %v", err)
		}
		if r, err = ledger.Run(context.Background(), src, ledger.Options{}); err != nil {
			t.Fatalf("trace: %v", err)
		}
	}
	set := new(evidence.Set)
	records, err := evidence.ParseText(strings.NewReader(parts["evidence"]))
	if err != nil {
		t.Fatalf("evidence: %v", err)
	}
	for _, rec := range records {
		set.Add(rec)
	}
	facts := Facts{Memory: capacity.Memory(set, false)}
	for _, line := range strings.Split(strings.TrimSpace(parts["facts"]), "\n") {
		if v, ok := strings.CutPrefix(line, "runtime "); ok {
			facts.Runtime = v
		} else if v, ok := strings.CutPrefix(line, "go "); ok {
			facts.GoVersion = v
		} else if n, ok := strings.CutPrefix(line, "cpus "); ok {
			if facts.CPUs, err = strconv.Atoi(n); err != nil {
				t.Fatal(err)
			}
		} else if v, ok := strings.CutPrefix(line, "slow-over "); ok {
			d, err := time.ParseDuration(v)
			if err != nil {
				t.Fatal(err)
			}
			facts.SlowOver = int64(d)
		} else if v, ok := strings.CutPrefix(line, "halted "); ok { // "halted 1s by a signal"
			took, by, _ := strings.Cut(v, " by ")
			d, err := time.ParseDuration(took)
			if err != nil {
				t.Fatal(err)
			}
			facts.Halted = &evidence.Halt{NS: int64(d), By: by}
		} else if line != "" {
			t.Fatalf("facts: %q", line)
		}
	}
	return look(detectors(), r, set, facts)
}

// verdict prints every finding, and what the named detector ruled out or could not check.
func verdict(b *run, name string) string {
	r := b.result()
	var s strings.Builder
	for _, f := range r.Findings {
		because := ""
		if f.BecauseOf != "" {
			because = " because of " + f.BecauseOf
		}
		what := finding.Duration(f.Explains.NS)
		if f.Explains.CPUNS > 0 {
			what = finding.Duration(f.Explains.CPUNS) + " of CPU"
		}
		if f.Explains.WaitedNS > 0 {
			what = finding.Duration(f.Explains.WaitedNS) + " waited"
		}
		fmt.Fprintf(&s, "found %s%s: %s, %s, %s\n", f.Cause, because, f.Confidence, what, percent(f.Share))
		if f.Cause != name {
			continue
		}
		fmt.Fprintf(&s, "  %s\n", f.Summary)
		for _, e := range f.Evidence {
			fmt.Fprintf(&s, "  - %s: %s\n", e.Source, e.Text)
		}
		for _, e := range f.Remedy {
			fmt.Fprintf(&s, "  > %s\n", e)
		}
		fmt.Fprintf(&s, "  $ %s\n", f.Verify)
	}
	if len(r.Findings) == 0 {
		s.WriteString("nothing found\n")
	}
	for _, f := range r.RuledOut {
		if f.Cause == name {
			fmt.Fprintf(&s, "ruled out %s: %s\n", f.Cause, f.Why)
		}
	}
	for _, f := range r.NotChecked {
		if f.Cause == name {
			fmt.Fprintf(&s, "not checked %s: %s\n", f.Cause, strings.Join(f.Missing, "; "))
		}
	}
	return s.String()
}

// honest holds a run to what no verdict may break.
func honest(t *testing.T, r *run) {
	t.Helper()
	pools := map[string]int64{}
	for _, b := range r.boards {
		honestRound(t, b, pools)
	}
	earned(t, r)
}

func honestRound(t *testing.T, b *board, pools map[string]int64) {
	t.Helper()
	granted := map[int]int64{}
	for _, p := range b.passes {
		if p.outcome == undecided || p.outcome == failed {
			t.Errorf("%s: outcome %d: %s", p.det.Name, p.outcome, p.why)
		}
		if p.outcome == clear && p.why == "" || p.outcome == notChecked && len(p.missing) == 0 {
			t.Errorf("%s: no word of why", p.det.Name)
		}
		if p.outcome != found {
			continue
		}
		f := p.finding
		if f.Summary == "" || len(f.Evidence) == 0 || len(f.Remedy) == 0 || !strings.HasPrefix(f.Verify, "whystall ") {
			t.Errorf("%s: a finding without summary, evidence, remedy or verify: %+v", p.det.Name, f)
		}
		if f.Confidence == "proven" && b.r.Kernel == nil {
			t.Errorf("%s: proven from a trace alone", p.det.Name)
		}
		set := 0
		for _, v := range []int64{f.Explains.NS, f.Explains.CPUNS, f.Explains.Bytes, f.Explains.WaitedNS} {
			if v > 0 {
				set++
			}
		}
		if set != 1 || f.Share <= 0 || f.Share > 1 {
			t.Errorf("%s: explains %+v, share %v", p.det.Name, f.Explains, f.Share)
		}
		if p.root != nil {
			if len(p.root.claims) > 0 && p.NS() > p.root.NS() || p.pooled() > p.root.pooled() {
				t.Errorf("%s: explains %d ns, its root %s only %d", p.det.Name, p.NS(), p.root.det.Name, p.root.NS())
			}
			continue
		}
		for _, c := range p.pools {
			if pools[c.term] += c.granted; pools[c.term] > c.holds {
				t.Errorf("%s: roots claim %d of the %d of %s", p.det.Name, pools[c.term], c.holds, c.term)
			}
		}
		for _, c := range p.claims {
			if granted[c.account] += c.granted; granted[c.account] > b.r.Slow.Accounts[c.account].NS {
				t.Errorf("%s: roots claim %d ns of account %+v", p.det.Name, granted[c.account],
					b.r.Slow.Accounts[c.account])
			}
		}
	}
}

func TestManual(t *testing.T) {
	for _, c := range Causes() {
		for _, part := range []string{"What happens\n", "\nEvidence\n", "\nNot to be taken for\n",
			"\nRemedy\n", "\nVerify\n", "\nSources\n"} {
			if !strings.Contains(c.Doc, part) {
				t.Errorf("%s: its page has no part %q", c.Name, strings.TrimSpace(part))
			}
		}
		for i, line := range strings.Split(c.Doc, "\n") {
			if len([]rune(line)) > 100 {
				t.Errorf("%s: line %d of its page has %d columns", c.Name, i+1, len([]rune(line)))
			}
		}
		if c.Title == "" || len(c.Needs) == 0 {
			t.Errorf("%s: no title or no needs", c.Name)
		}
		if _, ok := Manual(c.Name); !ok {
			t.Errorf("%s: not in the manual", c.Name)
		}
	}
	for _, c := range Chapters() {
		if _, ok := Manual(c.Name); ok {
			t.Errorf("%s: a chapter with the name of a cause", c.Name)
		}
		for i, line := range strings.Split(c.Doc, "\n") {
			if len([]rune(line)) > 100 {
				t.Errorf("%s: line %d of its page has %d columns", c.Name, i+1, len([]rune(line)))
			}
		}
		for _, level := range []finding.Confidence{finding.Proven, finding.Supported, finding.Possible} {
			if c.Name == howSure.Name && !strings.Contains(c.Doc, "\n  "+string(level)+": ") {
				t.Errorf("%s: does not say what %s is", c.Name, level)
			}
		}
	}
	if _, ok := Manual("gremlins"); ok {
		t.Error("a page for gremlins")
	}
}
