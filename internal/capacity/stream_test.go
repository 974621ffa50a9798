package capacity

import (
	"testing"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// streamOf is the timeline of a stream written by hand.
func streamOf(t testing.TB, text string) *sched.Timeline {
	t.Helper()
	src, err := kernel.ParseText(text)
	if err != nil {
		t.Fatal(err)
	}
	k, err := sched.New(src)
	if err != nil {
		t.Fatal(err)
	}
	return k
}
