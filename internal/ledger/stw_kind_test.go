package ledger

import (
	"context"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/timeline/twin"
)

// A request that starts a GC cycle itself waits inside its own call until a loop without preemption
// points stops.
func TestOwnStopTheWorldHasKind(t *testing.T) {
	r, err := Run(context.Background(), twin.Must(`
unit 1ms
version 11
procs 2
goroutine A main.serve
	0 waiting network at internal/poll.(*FD).Read
	1 runnable by P
	2 running
	2..40 task serve
	3..33 stw GC sweep termination at runtime.mallocgc<main.handle
	40 waiting network at internal/poll.(*FD).Read
goroutine B main.tight
	0 running
	41 end
`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range r.Slow.Accounts {
		if a.Leaf == account.LeafSTWWork {
			if a.Detail != "GC sweep termination" || a.NS != 30e6 {
				t.Errorf("%+v", a)
			}
			if len(r.STWs) != 1 || r.STWs[0].SlowNS != 30e6 {
				t.Errorf("%+v", r.STWs)
			}
			return
		}
	}
	t.Errorf("%+v", r.Slow.Accounts)
}
