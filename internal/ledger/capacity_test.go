package ledger

import (
	"os"
	"testing"
)

// TestCPUs: the ledger of CPUs gets the times at which requests were under way, and what they
// waited for. The request of this case is under way until 32, and no thread is on CPU 0 from 3 to
// 29.
func TestCPUs(t *testing.T) {
	b, err := os.ReadFile("testdata/join-runnable.txtar")
	if err != nil {
		t.Fatal(err)
	}
	_, r := parseCase(t, string(b)).tell(t)
	if c := r.CPUs; c.UnusedNS != 26e6 || c.RestNS != 0 || len(c.Unused) == 0 {
		t.Errorf("%d ns are unused, %d are the rest, want 26 ms and none; requests waited for %v",
			c.UnusedNS, c.RestNS, c.Unused)
	}
}
