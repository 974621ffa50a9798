package collect

import (
	"strings"
	"testing"
)

// The one that worked most meanwhile is named with the command to type, unless the target itself
// worked more; what one had used before does not count, nor what another with its pid had.
func TestFamilyStory(t *testing.T) {
	before := family{{20, "worker", 5e9, 100}, {21, "worker", 9e9, 100}, {22, "old", 9e9, 100}}
	now := family{{20, "worker", 6e9, 100}, {21, "worker", 9.2e9, 100}, {22, "new", 1e8, 200}}
	want := "20 (worker) used 1.00 s of CPU, this one 0.50 s; look at that one: whystall diagnose --pid 20 (the busiest of 3, which used 1.30 s together)"
	if got := before.story(now, 5e8); !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want ... %q", got, want)
	}
	if got := before.story(now, 2e9); got != "" {
		t.Errorf("a target that works more than its processes: %q", got)
	}
	if got := before.story(before, 0); got != "" {
		t.Errorf("nobody worked: %q", got)
	}
}
