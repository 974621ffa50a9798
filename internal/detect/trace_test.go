package detect

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/ledger"
)

// TestFixtures runs all detectors on real traces: none fails, none claims too much. What they say is printed; what
// they must say of the healthy ones is below.
func TestFixtures(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 29 MB of traces")
	}
	names, err := filepath.Glob("../../exectrace/testdata/*.trace")
	if err != nil || len(names) < 7 {
		t.Fatalf("%d traces, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".trace"), func(t *testing.T) {
			tr, err := exectrace.Open(name, exectrace.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			r, err := ledger.Run(context.Background(), tr, ledger.Options{})
			if err != nil {
				t.Fatal(err)
			}
			b := look(detectors(), r, nil, Facts{})
			honest(t, b)
			t.Logf("%s", verdict(b, ""))
		})
	}
}
