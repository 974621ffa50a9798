package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/detect"
	"github.com/whystall/whystall/internal/finding"
)

// crowded has more of everything than fits: five chains, long sentences, and hours of requests.
func crowded() Source {
	s := throttled()
	long := strings.Repeat("words that say much ", 30)
	s.Found.Findings = nil
	for i, cause := range []string{"direct-reclaim", "page-fault", "frequent-gc", "lock-contention", "disk-wait"} {
		root := finding.Finding{Cause: cause, Scope: finding.Slow, Title: "Threads do " + long,
			Confidence: finding.Supported, Share: 0.2 + 0.01*float64(i), BeyondUsual: 0.2 - 0.01*float64(i),
			Explains: finding.Explains{NS: 100 * ms}, Summary: long,
			Verify: "whystall diagnose --pid PID --for 20s # " + long}
		for range 6 {
			root.Evidence = append(root.Evidence, finding.Evidence{Text: long, Source: "kernel records"})
			root.Remedy = append(root.Remedy, long)
		}
		s.Found.Findings = append(s.Found.Findings, root,
			finding.Finding{Cause: "stw-pause", BecauseOf: cause, Scope: finding.Slow, Share: 0.5,
				Explains: finding.Explains{NS: ms}})
	}
	l := *s.Ledger
	for i := range 2000 {
		l.Series.Dots = append(l.Series.Dots,
			account.Dot{Begin: l.Begin + int64(i)*(l.End-l.Begin)/2000, NS: int64(i%100) * ms})
	}
	l.Series.Bands = []account.Band{
		{Kind: account.BandThrottled, Begin: l.Begin + ms, End: l.Begin + 900*ms},
		{Kind: account.BandSTW, Begin: l.Begin, End: l.Begin + 5*ms},
		{Kind: account.BandMark, Begin: l.Begin, End: l.Begin + 1},
		{Kind: account.BandReclaim, Begin: l.End - 9*ms, End: l.End + 5*ms},
	}
	s.Ledger = &l
	s.Target.Ended = long
	return s
}

// What a person on call needs fits on one screen, however much there is.
func TestScreenFits(t *testing.T) {
	all := samples()
	all["crowded"] = crowded()
	for name, s := range all {
		for _, columns := range []int{0, 40, 72, 80, 100, 120, 300} {
			var b strings.Builder
			if err := New(s).Print(&b, "text", TextOptions{Columns: columns, Colour: columns == 120,
				More: "whystall explain x.case -v"}); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(b.String(), "\n"); n > mostLines {
				t.Errorf("%s at %d columns: %d lines\n%s", name, columns, n, b.String())
			}
			if name == "hostile" || columns == 120 {
				continue // commands are not cut, and colours take no room
			}
			for l := range strings.Lines(b.String()) {
				if w := width(strings.TrimSuffix(l, "\n")); w > newPage(TextOptions{Columns: columns}).columns {
					t.Errorf("%s at %d columns has %d: %s", name, columns, w, l)
				}
			}
		}
	}
}

// A chain is one story, and what stands before a larger share says why.
func TestStories(t *testing.T) {
	var b strings.Builder
	if err := New(crowded()).Print(&b, "text", TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"FOUND 5 causes  Slow requests are slow partly because threads do",
		"That shows as stop-the-world pauses (stw-pause, 50.0 %)",
		"Before 2: of what usual requests do not lose as well it takes 20.0 %, and 2 takes 19.0 %.",
		" 5. disk-wait  supported: 24.0 % of the slow requests' time",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestMarks(t *testing.T) {
	s := crowded()
	s.Found.Findings = nil
	var b strings.Builder
	if err := New(s).Print(&b, "text", TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"throttled  ████\n", " STW  ▪\n", " GC  ▁\n", "reclaim  ",
		"throttled 1 x to 899 ms"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// Each cause has words for how it shows.
func TestShows(t *testing.T) {
	known := map[string]bool{}
	for _, c := range detect.Causes() {
		known[c.Name] = true
		if shows[c.Name] == "" {
			t.Errorf("no words for how %s shows", c.Name)
		}
	}
	for name := range shows {
		if !known[name] {
			t.Errorf("words for %s, which is no cause", name)
		}
	}
}

func TestOnly(t *testing.T) {
	for _, name := range Parts() {
		var b strings.Builder
		if err := New(throttled()).Print(&b, "text", TextOptions{Only: name}); err != nil ||
			strings.Count(b.String(), "\n") < 3 {
			t.Errorf("%s: %v\n%s", name, err, b.String())
		}
	}
	if err := New(ill()).Print(&strings.Builder{}, "text", TextOptions{Only: "x"}); err == nil {
		t.Error("a part that there is not is printed")
	}
}

func TestFilled(t *testing.T) {
	for _, c := range []struct {
		part, whole int64
		want        string
	}{{0, 10, "    "}, {1, 1000, "▏   "}, {5, 10, "██  "}, {10, 10, "████"}, {11, 10, "████"}, {3, 8, "█▌  "}} {
		if got := filled(c.part, c.whole, 4); got != c.want {
			t.Errorf("%d of %d: %q, want %q", c.part, c.whole, got, c.want)
		}
	}
	if got := fmt.Sprintf("%q", filled(1, 0, 2)); got != `"  "` {
		t.Error(got)
	}
}
