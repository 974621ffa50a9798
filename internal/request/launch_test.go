package request

import (
	"fmt"
	"strings"
	"testing"
)

// Goroutines with one entry function are distinguished by what it calls, if it is a launcher. Each
// line of waits is a goroutine, each wait its stack above main.entry with the line of the call.
func TestLaunched(t *testing.T) {
	for _, tc := range []struct {
		name  string
		waits []string
		want  string // entries of what was found
	}{
		{"each goroutine its own function", []string{"read:7", "read:7", "write:7", "write:7"}, "main.read main.write"},
		{"jobs, called by whoever is free", []string{"read:7 write:7", "write:7 read:7", "read:7"}, "main.entry"},
		{"a loop that waits itself", []string{"itself read:7", "itself write:7", "itself write:7"}, "main.entry"},
		{"a loop that reads, then calls a handler", []string{"next:6 read:7", "next:6 write:7",
			"next:6 write:7"}, "main.entry"},
		{"two lines, two functions", []string{"read:7", "read:7", "write:8"}, ""},
		{"one function", []string{"read:7", "read:7", "read:7"}, "main.entry"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var b strings.Builder
			for g, line := range tc.waits {
				fmt.Fprintf(&b, "goroutine G%d\n", g)
				waits := strings.Fields(line)
				for i := range 40 {
					at, line, called := strings.Cut(waits[i%len(waits)], ":")
					stack := "internal/poll.(*FD).Read<main." + at + "<main.entry:" + line
					if !called {
						stack = "internal/poll.(*FD).Read<main.entry:3"
					}
					at0 := i*100 + g
					fmt.Fprintf(&b,
						"\t%d waiting network at %s\n\t%d runnable by P\n\t%d running\n", at0, stack, at0+50, at0+51)
				}
			}
			f, _ := byHand(t, b.String(), Options{})
			entries := map[string]bool{}
			for _, g := range f.Groups() {
				if g.Count > 10 {
					entries[g.Entry] = true
				}
			}
			var got []string
			for _, e := range []string{"main.entry", "main.read", "main.write"} {
				if entries[e] {
					got = append(got, e)
				}
			}
			if s := strings.Join(got, " "); s != tc.want {
				t.Errorf("found %q, want %q", s, tc.want)
			}
		})
	}
}
