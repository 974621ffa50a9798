package collect

import (
	"runtime"
	"testing"
)

// Recordings overlap while one segment begins and another ends: what was found is there again when
// the last is over.
func TestMoreProcsOverlap(t *testing.T) {
	was := runtime.GOMAXPROCS(0)
	first := moreProcs()
	second := moreProcs()
	first()
	if n := runtime.GOMAXPROCS(0); n != was+spareProcs {
		t.Errorf("%d Ps while one records, want %d", n, was+spareProcs)
	}
	third := moreProcs()
	second()
	third()
	if n := runtime.GOMAXPROCS(0); n != was {
		t.Errorf("%d Ps afterwards, want %d", n, was)
	}
}
