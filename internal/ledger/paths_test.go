package ledger

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/whystall/whystall/exectrace"
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

// TestPauseWork: what a stop-the-world does itself is known by its kind and by its initiator's time
// on a CPU.
func TestPauseWork(t *testing.T) {
	const want = "all goroutines stack trace, initiator 1000, awaited 0 by note false: stopped 30.0 ms, delayed 0.0 ms, slow 28.0 ms, proven\n  30.0 ms on CPU\n"
	if got := pausesOf(t, "join-stw-work"); !strings.HasPrefix(got, want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestSTWSite: an agent in the process takes its profiles itself, and other people's scrapes are
// served; only the trace's own are ours.
func TestSTWSite(t *testing.T) {
	for _, c := range []struct {
		stack, site string
		ours        bool
	}{
		{"runtime.stopTheWorld runtime.Stack runtime/pprof.writeGoroutineStacks runtime/pprof.(*Profile).WriteTo main.agent", "main.agent", false},
		{"runtime.Stack runtime/pprof.writeGoroutineStacks net/http/pprof.handler.ServeHTTP net/http.(*conn).serve", "net/http/pprof.handler.ServeHTTP", false},
		{"runtime.traceStart runtime/trace.Start net/http/pprof.Trace net/http.(*conn).serve",
			"net/http/pprof.Trace", true},
		{"runtime.stopTheWorld runtime.GC runtime/debug.FreeOSMemory", "runtime/debug.FreeOSMemory", false},
		{"runtime.gcStart", "", false},
	} {
		var stack []exectrace.Frame
		for _, f := range strings.Fields(c.stack) {
			stack = append(stack, exectrace.Frame{Func: f})
		}
		if site, ours := stwSite(stack); site != c.site || ours != c.ours {
			t.Errorf("%s: got %q, ours %v", c.stack, site, ours)
		}
	}
}

// TestPauses: who was awaited and what kept it are told hop by hop; the restart is a figure of its
// own.
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
