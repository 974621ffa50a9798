package collect

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/whystall/whystall/internal/evidence"
)

func TestHalt(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later := func(s int) time.Time { return at.Add(time.Duration(s) * time.Second) }
	stopped, traced := procStat{state: 'T'}, procStat{state: 't'}
	frozen := filepath.Join(t.TempDir(), "freezer.state")
	if err := os.WriteFile(frozen, []byte("FROZEN\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := func(cpu int64) procStat { return procStat{state: 'R', cpuNS: cpu} }
	asleep, ran := procStat{state: 'D'}, procStat{state: 'D', cpuNS: 1e7}
	for _, c := range []struct {
		name string
		was  []procStat // one each second; the recording starts with the second
		want *evidence.Halt
		said string // the last word
	}{
		{"never", []procStat{r(1), r(2), r(3)}, nil, ""},
		{"frozen", []procStat{ran, asleep, asleep}, &evidence.Halt{NS: 1e9, By: byFreezer.String()},
			"it is stopped by " + byFreezer.String() + " at 03:04:07.000 UTC"},
		{"a while", []procStat{r(1), stopped, stopped, r(2), r(3)},
			&evidence.Halt{NS: 2e9, By: bySignal.String()}, "it goes on at 03:04:08.000 UTC"},
		{"to the end", []procStat{r(1), r(2), traced},
			&evidence.Halt{NS: 1e9, By: byDebugger.String()}, "it is stopped by a debugger at 03:04:07.000 UTC"},
		{"all the time", []procStat{stopped, stopped, stopped},
			&evidence.Halt{NS: 2e9, By: bySignal.String()}, "it is stopped by " +
				bySignal.String() + " at 03:04:05.000 UTC"},
		{"before", []procStat{stopped, r(1), r(2)}, nil, "it goes on at 03:04:06.000 UTC"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := halt{freezers: []string{frozen}}
			last := ""
			for i, s := range c.was {
				if said := h.look(s, later(i)); said != "" {
					last = said
				}
				if i == 1 {
					h.start(later(i))
				}
			}
			got := h.sum(later(len(c.was)))
			if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
				t.Errorf("halted %+v, want %+v", got, c.want)
			}
			if last != c.said {
				t.Errorf("said %q, want %q", last, c.said)
			}
		})
	}
}
