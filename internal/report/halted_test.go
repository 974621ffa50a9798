package report

import (
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
)

// The kernel's records have each stop; glances five times a second miss most of short ones.
func TestHalted(t *testing.T) {
	seen := &evidence.Halt{NS: 200e6, By: "a signal"}
	for _, c := range []struct {
		name   string
		glance *evidence.Halt
		kernel *account.Kernel
		want   string // the start of the title
		by     string
	}{
		{"not stopped", nil, &account.Kernel{}, "", ""},
		{"glances alone", seen, nil, "STOPPED for 200 ms of 2.00 s", "by a signal."},
		{"records have more", seen, &account.Kernel{HaltedNS: 570e6}, "STOPPED for 570 ms of 2.00 s", "by a signal."},
		{"before the records", seen, &account.Kernel{HaltedNS: 30e6}, "STOPPED for 200 ms of 2.00 s", "by a signal."},
		{"records alone", nil, &account.Kernel{HaltedNS: 30e6}, "STOPPED for 30.0 ms of 2.00 s", "by a signal or a tracer."},
		{"a moment", nil, &account.Kernel{HaltedNS: 1e6}, "", ""},
	} {
		r := &Report{}
		if c.kernel != nil {
			r.Kernel = &Kernel{Kernel: *c.kernel}
		}
		r.Target.Halted = c.glance
		r.Recording.EndNS = 2e9
		title, rest := r.halted()
		if title != c.want || !strings.Contains(rest, c.by) {
			t.Errorf("%s: %q, %q", c.name, title, rest)
		}
	}
}
