package capacity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/evidence"
)

// TestStolen: what /proc/stat of a guest of two CPUs said 10 s apart. On CPU 0 4 s were stolen and
// 1 s was idle; on CPU 1 1 s was stolen and 8 s were idle.
func TestStolen(t *testing.T) {
	records, err := evidence.ParseText(strings.NewReader(`
/host/each/idle:ns counter t=0 v=1000000000 text="0"
/host/each/idle:ns counter t=10000000000 v=2000000000 text="0"
/host/each/steal:ns counter t=0 v=100000000 text="0"
/host/each/steal:ns counter t=10000000000 v=4100000000 text="0"
/host/each/idle:ns counter t=0 v=1000000000 text="1"
/host/each/idle:ns counter t=10000000000 v=9000000000 text="1"
/host/each/steal:ns counter t=0 v=100000000 text="1"
/host/each/steal:ns counter t=10000000000 v=1100000000 text="1"
`))
	if err != nil {
		t.Fatal(err)
	}
	set := new(evidence.Set)
	for _, r := range records {
		set.Add(r)
	}
	// The target had CPU 0 for 8 of its 9 busy seconds, and CPU 1 for half a second of 2.
	s := stolen(set, map[int]int64{0: 8e9, 1: 0.5e9}, 10e9)
	if s == nil {
		t.Fatal("nothing")
	}
	// At least 4+8-9 of CPU 0, at most 4 and 0.5; in the middle 4*8/9 and 1*0.5/2.
	got := fmt.Sprintf("%.2f %.2f %.2f of %.2f", float64(s.Low)/1e9, float64(s.NS)/1e9,
		float64(s.High)/1e9, float64(s.RanNS)/1e9)
	if want := "3.00 3.81 4.50 of 8.50"; got != want {
		t.Errorf("stolen %s, want %s", got, want)
	}
	if s := stolen(new(evidence.Set), map[int]int64{0: 1e9}, 10e9); s != nil {
		t.Errorf("without readings: %+v", s)
	}
}
