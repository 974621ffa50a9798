package ledger

import (
	"context"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/timeline/twin"
)

// A stack dump of all goroutines is the service's own doing although its kind has the word trace in
// it.
func TestOurPauses(t *testing.T) {
	for kind, want := range map[string]bool{"all goroutines stack trace": false,
		"start trace": true, "stop trace": true, "goroutine profile": false} {
		text := strings.Replace(`
unit 1ms
procs 2
goroutine A main.dump
	0 running
	1..9 stw KIND at runtime.Stack<main.dump
	10 end
`, "KIND", kind, 1)
		r, err := Run(context.Background(), twin.Must(text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.STWs) != 1 || r.STWs[0].Ours != want {
			t.Errorf("%s: %+v, want ours %v", kind, r.STWs, want)
		}
	}
}
