package ledger

import (
	"context"
	"reflect"
	"testing"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/timeline"
)

// TestBatches: records and events make the same ledger, also with so short a history that short
// cuts do not fit.
func TestBatches(t *testing.T) {
	for _, name := range traces(t) {
		for _, o := range []Options{{}, {Bytes: 1 << 17, SlowOver: 1e6}} {
			tr, err := exectrace.Open(name, exectrace.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := Run(context.Background(), tr, o)
			if err != nil {
				t.Fatal(err)
			}
			samePass(t, tr, o, r)
			tr.Close()
		}
	}
}

// blocksOnly hides a trace's batches.
type blocksOnly struct{ timeline.Source }

// samePass holds r, which came of records, to what comes of events.
func samePass(t testing.TB, tr *exectrace.Trace, o Options, r *account.Result) {
	t.Helper()
	want, err := Run(context.Background(), blocksOnly{tr}, o)
	if err != nil {
		t.Fatal(err)
	}
	got := *r
	for _, x := range []*account.Result{&got, want} {
		x.Reader.NS, x.Reader.MaxHeap = 0, 0
	}
	if !reflect.DeepEqual(&got, want) {
		t.Fatalf("%d events: of records %+v, of events %+v", want.Reader.Events, got, *want)
	}
}
