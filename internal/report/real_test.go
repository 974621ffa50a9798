package report

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/detect"
	"github.com/whystall/whystall/internal/ledger"
	"github.com/whystall/whystall/internal/report/conform"
)

// Real traces, whole and cut short, through the real ledger and detectors: what is printed must
// keep the promises that the hand-made reports keep.
func TestReal(t *testing.T) {
	files, err := filepath.Glob("../../exectrace/testdata/*.trace")
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || testing.Short() && info.Size() > 3<<20 {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, cut := range []int{len(b), len(b) * 3 / 5} {
			tr, err := exectrace.FromBytes(b[:cut], exectrace.Options{})
			if err != nil {
				t.Fatal(err)
			}
			l, err := ledger.Run(context.Background(), tr, ledger.Options{})
			if l == nil {
				t.Fatalf("%s: %v", file, err)
			}
			r := New(Source{Inputs: []Input{{Name: file}}, Ledger: l, Found: detect.Run(l, nil, detect.Facts{})})
			if len(r.Errors) > 0 {
				t.Errorf("%s cut at %d: %v", file, cut, r.Errors)
			}
			if cut < len(b) && len(r.Gaps) == 0 {
				t.Errorf("%s cut at %d: no gap is told", file, cut)
			}
			if errs := conform.Errors(Schema, render(t, r, "json")); len(errs) > 0 {
				t.Errorf("%s: %s", file, strings.Join(errs, "\n"))
			}
			safe(t, file, r)
			if r.Ledger.Slow.WallNS > 0 {
				addsUp(t, file, r)
			}
		}
	}
}

// addsUp holds the printed shares and times to the printed totals.
func addsUp(t *testing.T, name string, r *Report) {
	tab := newTable(&r.Ledger)
	var share, slow, median int64
	for _, w := range tab.rows {
		share += w.share
		slow += w.slowDigits
		median += w.medianDigits
	}
	if share != 1000 || slow != tab.slowTotal || median != tab.medianTotal {
		t.Errorf("%s: printed shares add up to %d of 1000, slow %d of %d, median %d of %d", name,
			share, slow, tab.slowTotal, median, tab.medianTotal)
	}
}
