package detect

import "testing"

// Every cause has a remedy that fits a line or two of a screen.
func TestFirstRemedy(t *testing.T) {
	for _, c := range Causes() {
		if s := FirstRemedy(c.Name); len(s) < 15 || len(s) > 300 {
			t.Errorf("%s: %d bytes: %q", c.Name, len(s), s)
		}
	}
	if s := FirstRemedy("no such cause"); s != "" {
		t.Errorf("got %q", s)
	}
}
