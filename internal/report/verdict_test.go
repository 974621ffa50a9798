package report

import (
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
)

// TestNothingSays: what was checked in part is not also listed as not checked.
func TestNothingSays(t *testing.T) {
	r := &Report{
		RuledOut:   []finding.RuledOut{{Cause: "lock-contention"}, {Cause: "stw-pause"}},
		NotChecked: []finding.NotChecked{{Cause: "lock-contention"}, {Cause: "thp-bloat"}},
	}
	_, got := r.nothing()
	if want := "2 causes were checked and ruled out. Not checked (see below): thp-bloat. Checked only in part: lock-contention."; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestNothingOfDamage: a trace that is damaged over most of its length has no requests for that
// reason, and the report says so.
func TestNothingOfDamage(t *testing.T) {
	r := &Report{Recording: Recording{BeginNS: 0, EndNS: 1e9},
		Requests: Requests{Requests: account.Requests{NoRequestsCause: "no request began and ended inside the trace"}}}
	for _, c := range []struct {
		gap  Gap
		says bool
	}{
		{Gap{BeginNS: 0, EndNS: 9e8, Source: traceSource}, true},
		{Gap{BeginNS: 0, EndNS: 1e8, Source: traceSource}, false},
		{Gap{BeginNS: 0, EndNS: 9e8, Source: "recording of metrics"}, false},
	} {
		r.Gaps = []Gap{c.gap}
		if _, got := r.nothing(); strings.Contains(got,
			"900 ms of the trace's 1.00 s are damaged or cut off") != c.says {
			t.Errorf("gap %+v: %s", c.gap, got)
		}
	}
}

// Where the trace was left out, that is why no request was seen, and not that a page is missing.
func TestUntraced(t *testing.T) {
	var r Report
	r.Requests.NoRequestsCause = "no execution trace was read"
	if got := r.unrequested(); !strings.Contains(got, "No execution trace was read") {
		t.Errorf("got %q", got)
	}
	r.Cost.Eased = []evidence.Easing{{Part: evidence.TracePart, Did: evidence.LeftOut,
		Why: evidence.WhyMemory, Measured: 0.94, Limit: 0.9}}
	if got := r.unrequested(); !strings.Contains(got, "94 %") || strings.Contains(got, "--pprof") {
		t.Errorf("got %q", got)
	}
}
