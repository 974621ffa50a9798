// Package schedtest makes timelines of threads from streams written by hand, for tests: a text that
// a person can check by eye (see kernel.ParseText).
package schedtest

import (
	"testing"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// Timeline is the timeline of a stream written by hand. It ends the test where the text is wrong.
func Timeline(t testing.TB, text string) *sched.Timeline {
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
