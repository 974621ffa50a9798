package books

import (
	"testing"

	"github.com/whystall/whystall/internal/request"
)

// TestNoRequests: that requests start and never end is said before what else was looked at.
func TestNoRequests(t *testing.T) {
	handsOn := request.Group{Entry: "main.listen", Kind: "loop", Count: 8357,
		Why: "hands its work on: 8355 of 8357 created a goroutine"}
	stuck := request.Group{Entry: "main.serve", Kind: "goroutine", Listed: true}
	stuck.LeftOut[request.OpenBegin], stuck.LeftOut[request.OpenEnd] = 11008, 24762
	few := request.Group{Entry: "main.watch", Kind: "goroutine", Listed: true}
	few.LeftOut[request.OpenBegin] = 2
	nameless := request.Group{Kind: "goroutine", Listed: true}
	nameless.LeftOut[request.OpenEnd] = 16
	for _, tc := range []struct {
		groups []request.Group
		want   string
	}{
		{[]request.Group{handsOn}, "hands its work on: 8355 of 8357 created a goroutine"},
		{[]request.Group{handsOn, few, stuck},
			"no request began and ended inside the trace; of main.serve 11008 were under way at its start, and 24762 began and did not end: they pile up, and where they wait is in /debug/pprof/goroutine?debug=1"},
		{[]request.Group{few},
			"no request began and ended inside the trace; of main.watch 2 were under way at its start, and 0 began and did not end"},
		{[]request.Group{nameless},
			"no request began and ended inside the trace; of a function whose name is lost 0 were under way at its start, and 16 began and did not end: they pile up, and where they wait is in /debug/pprof/goroutine?debug=1"},
		{nil, "no goroutine was seen that takes work in a loop, nor tasks, regions or a known server"},
	} {
		if got := noRequests(tc.groups); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}
