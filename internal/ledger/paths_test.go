package ledger

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// pausesOf tells a case's pauses in words.
func pausesOf(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	_, r := parseCase(t, string(b)).tell(t)
	var out strings.Builder
	for _, p := range r.Kernel.Barriers {
		fmt.Fprintf(&out, "%s, initiator %d, awaited %d by note %v: stopped %.1f ms, delayed %.1f ms, slow %.1f ms, %s\n",
			p.Kind, p.Initiator, p.Awaited, p.ByNote, ms(p.StoppedNS), ms(p.DelayedNS), ms(p.SlowNS), p.Grade)
		for _, l := range p.Leaves {
			fmt.Fprintf(&out, "  %.1f ms %s\n", ms(l.NS), l.Who)
		}
		for _, h := range p.Hops {
			fmt.Fprintf(&out, "  %s\n", h)
		}
	}
	return out.String()
}

// TestPauses: who was awaited and what kept it are told hop by hop; the restart is a figure of its own.
func TestPauses(t *testing.T) {
	for name, want := range map[string]string{
		"join-stw": `GC sweep termination, initiator 1000, awaited 1001 by note true: stopped 23.0 ms, delayed 7.0 ms, slow 47.5 ms, proven
  18.0 ms throttled
`,
		"join-barrier": `safe-point, initiator 1000, awaited 1001 by note true: stopped 15.0 ms, delayed 0.0 ms, slow 30.0 ms, proven
  13.0 ms no CPU (hog)
`,
	} {
		if got := pausesOf(t, name); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got\n%swant\n%s", name, got, want)
		} else {
			for _, hop := range []string{"thread 1000 sleeps on", "thread 1001", "(futex wait)", "(futex wake)"} {
				if !strings.Contains(got, hop) {
					t.Errorf("%s: no hop %q in\n%s", name, hop, got)
				}
			}
		}
	}
}
