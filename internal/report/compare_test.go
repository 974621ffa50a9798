package report

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/compare"
	"github.com/whystall/whystall/internal/finding"
)

// hostileName is a name that each output has to make harmless.
const hostileName = "</style><script>alert(1)</script>\x1b[31m\u009b31m\u202e|@all"

func hostileComparison() *compare.Comparison {
	return &compare.Comparison{
		Schema: compare.SchemaVersion,
		Before: compare.Side{Files: []string{hostileName}, Programs: []string{hostileName}, Starts: 1},
		After:  compare.Side{Files: []string{"after.case"}, Programs: []string{"other"}, Starts: 1},
		Verdicts: []compare.Verdict{
			{Cause: "lock-contention", Title: "Requests queue for a lock", Scope: finding.Slow,
				Outcome: compare.CannotTell,
				Gates:   []compare.Gate{compare.LoadFell, compare.OthersFell},
				Unit:    compare.NSPerRequest, Before: 3e7, After: 1e6, Known: true, Latency: 0.1},
			{Cause: "thp-bloat", Scope: finding.Process, Outcome: compare.Worse,
				Unit: compare.Bytes, Before: 1 << 30, After: 3 << 30, Known: true, Found: true, Latency: 3},
		},
		New:        []compare.Fresh{{Cause: "cpu-contention", Scope: finding.Slow, Share: 0.5}},
		SlowBefore: 4e7,
		SlowAfter:  2e6,
		Entries: []compare.Entry{{Entry: hostileName},
			{Entry: "main.other", Before: compare.EntryFigure{P99: 1e6}, After: compare.EntryFigure{P99: 2e6}}},
		Figures: []compare.Figure{{Name: compare.FigureP99, Before: 1e7, After: 1e6},
			{Name: compare.FigureOthers, Before: 0, After: 1}},
		Slow: []compare.Row{{Named: account.Named{Leaf: account.LeafLock,
			Site: hostileName}, Before: 3e7, After: 1e6}},
		Distribution: []compare.Bin{{Low: 1000, Up: 1189, Before: 1}, {Low: 1189, Up: 1414, After: 1}},
	}
}

func TestComparisonOutputs(t *testing.T) {
	for _, format := range []string{"text", "markdown", "html", "json"} {
		var b strings.Builder
		if err := PrintComparison(&b, hostileComparison(), format, TextOptions{Columns: 80}); err != nil {
			t.Fatal(err)
		}
		out := b.String()
		if format == "json" {
			if !json.Valid([]byte(out)) || strings.ContainsAny(out, "\u0085\u009b\u202e") {
				t.Errorf("json: not valid, or a terminal would act upon it: %q", out)
			}
			continue
		}
		if strings.Contains(out, "\x1b") || format != "text" && strings.Contains(out, "<script") {
			t.Errorf("%s: a hostile name got through:\n%s", format, out)
		}
		for _, want := range []string{"lock-contention", "worse", "cpu-contention"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: lacks %q", format, want)
			}
		}
		for line := range strings.Lines(out) {
			if format == "text" && width(strings.TrimRight(line, "\n")) > 80 {
				t.Errorf("text: wider than 80: %q", line)
			}
		}
	}
}
