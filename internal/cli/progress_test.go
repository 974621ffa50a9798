package cli

import (
	"testing"
	"time"

	"github.com/whystall/whystall/internal/collect"
	"github.com/whystall/whystall/internal/evidence"
)

func TestTick(t *testing.T) {
	all := map[evidence.Counted]bool{evidence.CountedCPU: true, evidence.CountedThrottled: true,
		evidence.CountedQueued: true, evidence.CountedSwitches: true}
	load := &collect.Load{CPUs: 0.5, Switches: 1234.4, ThrottledNS: 312e6, Stalled: 3, Readings: 40, Seen: all}
	for want, u := range map[string]collect.Progress{
		"attaching": {Doing: "attaching"},
		"7 s left (Ctrl-C ends it), CPU 0.50, throttled 312 ms, stalls 3/40, 1234 switches/s, 2.00 KiB": {Elapsed: 13 * time.Second, Of: 20 * time.Second, Received: 2048, Load: load},
		"0 s left (Ctrl-C ends it), CPU 0.50, 0 B":                                                      {Elapsed: 21 * time.Second, Of: 20 * time.Second, Load: &collect.Load{CPUs: 0.5, Seen: map[evidence.Counted]bool{evidence.CountedCPU: true}}},
	} {
		if got := tick(&u); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
